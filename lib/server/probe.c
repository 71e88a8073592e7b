/* SPDX-License-Identifier: MIT */
/*
 * A nonce has 128 bits, so nobody can send one that is awaited without having been told it: a stranger's headers of this name
 * cannot push out a sighting, fill memory or be read back. What is remembered is the text of the answer, written while
 * the request is there, because nothing of a request outlives it.
 * The trace comes from resolving the client once more: it is the same pure function on the same request and ruleset.
 */
#include "server/probe.h"

#include "server/write.h"

#include "adapter/explain.h"
#include "watch/notice.h"

#include <stdlib.h>

/* Ten steps and HEADERS_MAX headers, every raw byte of them escaped by five more, and what stands around them. */
#define SIGHTING_BYTES ((size_t)24 * 1024)
#define HEADERS_MAX 8
#define RAW_BYTES 64
#define VALUE_BYTES 256
#define CURE_BYTES 1024

struct sighting {
	size_t len;
	char bytes[SIGHTING_BYTES];
};

struct probe_nonce {
	char nonce[PROBE_NONCE_BYTES];
	ns until; /* 0: free */
	size_t n;
	struct sighting sightings[PROBE_SIGHTINGS_MAX];
};

enum err probe_board_new(struct probe_board **ret)
{
	struct probe_board *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return ERR_MEMORY;
	/* Large, and not touched before somebody probes. */
	b->nonces = calloc(PROBE_NONCES_MAX, sizeof(*b->nonces));
	if (b->nonces == NULL) {
		free(b);
		return ERR_MEMORY;
	}
	pthread_mutex_init(&b->lock, NULL);
	*ret = b;
	return ERR_OK;
}

void probe_board_free(struct probe_board *b)
{
	if (b == NULL)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b->nonces);
	free(b);
}

bool probe_nonce_valid(struct str nonce)
{
	uint8_t bytes[PROBE_NONCE_BYTES / 2];

	for (size_t i = 0; i < nonce.len; i++)
		if (nonce.ptr[i] != str_lower_char(nonce.ptr[i]))
			return false;
	return str_unhex(nonce, bytes, sizeof(bytes));
}

/* ---------------------------------------------------------------------------------------------------- seeing */

static bool is_forwarding(struct str name)
{
	static const struct str names[] = {{"X-Forwarded-For", 15}, {"Forwarded", 9}, {"X-Real-IP", 9}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (str_equal_nocase(name, names[i]))
			return true;
	return false;
}

static void write_headers(struct text *t, const struct ruleset *rules, const struct request *req)
{
	size_t n = 0;

	write_name(t, ", ", "headers");
	text_char(t, '[');
	for (size_t i = 0; i < req->n_headers && n < HEADERS_MAX; i++) {
		const struct header_line *h = &req->headers[i];
		bool is_read = rules->client.strategy != STRATEGY_PEER &&
			       str_equal_nocase(h->name, rules->client.header);

		if (!is_read && !is_forwarding(h->name))
			continue;
		text_z(t, n++ == 0 ? "[" : ", [");
		text_json(t, str_head(h->name, RAW_BYTES));
		text_z(t, ", ");
		/* What our own hops wrote stands at the end. */
		text_json(t, h->value.len > VALUE_BYTES ? str_from(h->value, h->value.len - VALUE_BYTES) : h->value);
		text_char(t, ']');
	}
	text_char(t, ']');
}

/* The setting that would make this peer believed; only one of our own, and only where nothing of it was read. */
static void write_cure(struct text *t, const struct ruleset *rules, const struct client *c)
{
	char buffer[CURE_BYTES];
	struct text cure;

	write_name(t, ", ", "cure");
	text_init(&cure, buffer, sizeof(buffer));
	if (c->forwarding_present && !c->header_read && c->has_peer &&
		range_set_find(&rules->own_networks, &c->peer) != NULL)
		notice_cure(&cure, &rules->client, &c->peer);
	if (cure.len > 0 && !cure.overflow)
		text_json(t, text_view(&cure));
	else
		text_z(t, "null");
}

static void sighting_write(
	struct text *t, const struct ruleset *rules, const struct request *req, const struct verdict *v)
{
	struct client_trace trace;
	struct client client;

	write_word(t, "{", "door", door_word(req->door));
	write_word(t, ", ", "decision", decision_word(v->decision));
	write_word(t, ", ", "reason", reason_word(v->reason));
	write_word(t, ", ", "remote_addr", str_head(req->remote_addr, RAW_BYTES));
	write_headers(t, rules, req);
	if (v->has_client) {
		client_resolve(&rules->client, req, &trace, &client);
		write_name(t, ", ", "client");
		text_char(t, '{');
		explain_client_json(t, rules, &client, &trace);
		text_char(t, '}');
		write_cure(t, rules, &client);
	}
	text_char(t, '}');
}

/* The nonce of this request; empty if it has none, or more than one. */
static struct str nonce_of(const struct request *req)
{
	struct str nonce = STR("");

	for (size_t i = 0; i < req->n_headers; i++) {
		if (!str_equal_nocase(req->headers[i].name, STR(PROBE_HEADER)))
			continue;
		if (nonce.len != 0)
			return STR("");
		nonce = str_trim(req->headers[i].value);
	}
	return nonce;
}

static struct probe_nonce *nonce_find(const struct probe_board *b, struct str nonce, ns now)
{
	for (size_t i = 0; i < PROBE_NONCES_MAX; i++) {
		struct probe_nonce *p = &b->nonces[i];

		if (p->until > now && str_equal(str_make(p->nonce, sizeof(p->nonce)), nonce))
			return p;
	}
	return NULL;
}

void probe_look(struct probe_board *b, const struct ruleset *rules, const struct request *req, const struct verdict *v,
	ns now)
{
	struct str nonce = nonce_of(req);
	struct probe_nonce *p;
	struct text t;

	if (nonce.len != PROBE_NONCE_BYTES)
		return;
	pthread_mutex_lock(&b->lock);
	p = nonce_find(b, nonce, now);
	if (p != NULL && p->n < PROBE_SIGHTINGS_MAX) {
		struct sighting *s = &p->sightings[p->n];

		text_init(&t, s->bytes, sizeof(s->bytes));
		sighting_write(&t, rules, req, v);
		s->len = t.len;
		p->n += !t.overflow;
	}
	pthread_mutex_unlock(&b->lock);
}

/* ---------------------------------------------------------------------------------------------------- reading */

static struct probe_nonce *nonce_take(const struct probe_board *b, struct str nonce)
{
	struct probe_nonce *p = &b->nonces[0];

	for (size_t i = 1; i < PROBE_NONCES_MAX; i++)
		if (b->nonces[i].until < p->until)
			p = &b->nonces[i];
	memcpy(p->nonce, nonce.ptr, sizeof(p->nonce));
	p->n = 0;
	return p;
}

void probe_read(struct probe_board *b, struct str nonce, ns now, struct text *t)
{
	struct probe_nonce *p;

	pthread_mutex_lock(&b->lock);
	p = nonce_find(b, nonce, now);
	if (p == NULL)
		p = nonce_take(b, nonce);
	p->until = now + PROBE_AWAITED_NS;
	atomic_store_explicit(&b->awaited_until, p->until, memory_order_relaxed);
	write_word(t, "{", "nonce", nonce);
	write_number(t, ", ", "awaited_s", PROBE_AWAITED_NS / NS_PER_S);
	write_name(t, ", ", "seen");
	text_char(t, '[');
	for (size_t i = 0; i < p->n; i++) {
		text_z(t, i == 0 ? "" : ", ");
		text_str(t, str_make(p->sightings[i].bytes, p->sightings[i].len));
	}
	text_z(t, "]}\n");
	pthread_mutex_unlock(&b->lock);
}
