/* SPDX-License-Identifier: MIT */
/*
 * A key is a list of parts: a letter for what the part is, its length, its bytes. The letters and lengths make it
 * impossible to spell one bucket's key in another's parts ("ab" + "c" against "a" + "bc"; a path that is written like
 * the digest of another; a client standing in for an absent host against a host of those bytes).
 * Everything long or secret goes in as a plain SHA-256, so a key has a bounded size, holds no credential, and is the
 * same on every machine. Several lines of one header are chained by digest instead of being joined first: a client
 * could otherwise make us take as much room as all its headers for each limit, and being out of room must not be in
 * anybody's hand.
 */
#include "core/policy.h"

#include "base/digest.h"

#define TEXT_BYTES_MAX 64

/* What a part is. A digest has the capital letter. */
enum part_kind {
	PART_LIMIT = 'l',
	PART_CLIENT = 'c',
	PART_NETWORK = 'n',
	PART_IDENTITY = 'i',
	PART_HOST = 'h',
	PART_PATH = 'p',
	PART_METHOD = 'm',
	PART_HEADER = 'x',
	PART_HEADER_LINES = 'y',
};

/* The caller has taken POLICY_PART_BYTES_MAX for each part. */
struct key_writer {
	size_t len;
	uint8_t *bytes;
};

static void put_head(struct key_writer *w, int kind, size_t n)
{
	w->bytes[w->len] = (uint8_t)kind;
	w->bytes[w->len + 1] = (uint8_t)n;
	w->len += 2;
}

static void put_bytes(struct key_writer *w, int kind, const void *bytes, size_t n)
{
	put_head(w, kind, n);
	if (n > 0)
		memcpy(w->bytes + w->len, bytes, n);
	w->len += n;
}

static void put_digest(struct key_writer *w, enum part_kind kind, const struct digest *d)
{
	put_bytes(w, (int)kind - 'a' + 'A', d->bytes, DIGEST_BYTES);
}

static void put_text(struct key_writer *w, enum part_kind kind, struct str s)
{
	struct digest d;

	if (s.len <= TEXT_BYTES_MAX) {
		put_bytes(w, (int)kind, s.ptr, s.len);
		return;
	}
	digest_sha256(&d, s);
	put_digest(w, kind, &d);
}

static void put_client(struct key_writer *w, const struct client_rule *rule, const struct client *c)
{
	size_t n = client_key(rule, c, w->bytes + w->len + 2);

	put_head(w, PART_CLIENT, n);
	w->len += n;
}

static void put_network(struct key_writer *w, const struct client_rule *rule, const struct client *c)
{
	size_t n = client_network_key(rule, c, w->bytes + w->len + 2);

	put_head(w, PART_NETWORK, n);
	w->len += n;
}

/* All lines of one header in their order; false if there is none. */
static bool put_header(struct key_writer *w, const struct request *req, struct str name)
{
	struct digest pair[2];
	size_t i, lines = 0;

	for (i = 0; i < req->n_headers; i++) {
		const struct header_line *h = &req->headers[i];

		if (h->name.len != name.len || !str_equal_nocase(h->name, name))
			continue;
		digest_sha256(&pair[lines > 0], str_trim(h->value));
		if (lines++ > 0)
			digest_sha256(&pair[0], str_make((const char *)pair, sizeof(pair)));
	}
	if (lines > 0)
		put_digest(w, lines == 1 ? PART_HEADER : PART_HEADER_LINES, &pair[0]);
	return lines > 0;
}

static bool put_fact(struct key_writer *w, enum part_kind kind, struct str text, bool said)
{
	if (said)
		put_text(w, kind, text);
	return said;
}

/* False if what the part names is absent; nothing is written then. */
static bool put_part(struct key_writer *w, const struct ruleset *rules, const struct limit_key_part *part,
	const struct policy_view *view)
{
	const struct request *req = view->req;

	switch (part->part) {
	case KEY_NETWORK: put_network(w, &rules->client, view->client); return true;
	case KEY_IDENTITY:
		if (view->token->state != TOKEN_STATE_VALID)
			return false;
		put_text(w, PART_IDENTITY, view->token->identity->name);
		return true;
	case KEY_HOST: return put_fact(w, PART_HOST, view->host, req->host.said);
	case KEY_PATH: return put_fact(w, PART_PATH, view->path_normalised, req->path.said);
	case KEY_METHOD: return put_fact(w, PART_METHOD, req->method.text, req->method.said);
	case KEY_HEADER: return put_header(w, req, part->header);
	case KEY_CLIENT:
	case KEY_PART_COUNT: break;
	}
	put_client(w, &rules->client, view->client);
	return true;
}

/* One text holds both: network, limit, parts. The wide key is its beginning, the bucket's its end. */
bool policy_keys_make(struct policy_keys *ret, const struct ruleset *rules, const struct limit *limit,
	const struct policy_view *view, struct arena *a)
{
	struct key_writer w = {.bytes = arena_alloc(a, (2 + limit->n_key) * POLICY_PART_BYTES_MAX)};
	bool fallback = false;
	size_t i, name_at;

	if (w.bytes == NULL)
		return false;
	put_network(&w, &rules->client, view->client);
	name_at = w.len;
	put_text(&w, PART_LIMIT, limit->name);
	ret->wide = str_make((const char *)w.bytes, w.len);
	for (i = 0; i < limit->n_key; i++) {
		if (put_part(&w, rules, &limit->key[i], view))
			continue;
		put_client(&w, &rules->client, view->client);
		fallback = true;
	}
	ret->bucket = str_make((const char *)w.bytes + name_at, w.len - name_at);
	ret->fallback = fallback;
	return true;
}
