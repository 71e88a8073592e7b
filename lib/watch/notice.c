/* SPDX-License-Identifier: MIT */
/*
 * The wording of first-time log lines. A wrong key looks like success from outside, so the first request that shows it must
 * say so where a person reads, with the line that cures it. One line per kind and network: a warning printed for every
 * request is read as noise. Whether a cure is offered depends only on own_networks: advice to trust an address that merely
 * sent a header would be advice to trust an attacker.
 */
#include "watch/notice.h"

#include "base/ip.h"
#include "base/log.h"
#include "base/range.h"

#include <pthread.h>
#include <stdlib.h>

#define NETWORKS_MAX 256
#define LINE_BYTES 1024

enum kind { KIND_HEADER_IGNORED, KIND_UNDECIDED, KIND_DOOR, KIND_CALLER };

struct seen {
	uint8_t kind;
	uint8_t detail; /* the undecided reason, the door's header, or the door */
	struct ip network;
};

struct notice {
	pthread_mutex_t lock;
	struct seen seen[NETWORKS_MAX];
	size_t n_seen;
	uint64_t suppressed;
};

enum err notice_new(struct notice **ret)
{
	struct notice *n = calloc(1, sizeof(*n));

	if (n == NULL)
		return ERR_MEMORY;
	pthread_mutex_init(&n->lock, NULL);
	*ret = n;
	return ERR_OK;
}

void notice_free(struct notice *n)
{
	if (n == NULL)
		return;
	pthread_mutex_destroy(&n->lock);
	free(n);
}

uint64_t notice_suppressed(struct notice *n)
{
	uint64_t suppressed;

	pthread_mutex_lock(&n->lock);
	suppressed = n->suppressed;
	pthread_mutex_unlock(&n->lock);
	return suppressed;
}

void notice_forget(struct notice *n)
{
	pthread_mutex_lock(&n->lock);
	n->n_seen = 0;
	pthread_mutex_unlock(&n->lock);
}

static bool is_first(struct notice *n, const struct seen *what)
{
	bool first = true;

	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < n->n_seen && first; i++)
		first = n->seen[i].kind != what->kind || n->seen[i].detail != what->detail ||
			!ip_equal(&n->seen[i].network, &what->network);
	if (first && n->n_seen == NETWORKS_MAX) {
		n->suppressed++;
		first = false;
	} else if (first) {
		n->seen[n->n_seen++] = *what;
	}
	pthread_mutex_unlock(&n->lock);
	return first;
}

static void write_range_list(struct text *t, const struct range_set *set, const struct ip *peer)
{
	char buffer[RANGE_TEXT_BYTES];
	const char *separator = "";

	text_z(t, "[");
	for (size_t i = 0; i < set->n; i++) {
		text_z(t, separator);
		text_json(t, str_make(buffer, range_print(&set->items[i], buffer)));
		separator = ", ";
	}
	if (peer != NULL && range_set_find(set, peer) == NULL) {
		text_z(t, separator);
		text_json(t, str_make(buffer, ip_print(peer, buffer)));
	}
	text_z(t, "]");
}

void notice_cure(struct text *t, const struct client_rule *rule, const struct ip *peer)
{
	enum strategy strategy = rule->strategy == STRATEGY_PEER ? STRATEGY_TRUSTED_RANGES : rule->strategy;

	text_z(t, "\"client\": {\"strategy\": ");
	text_json(t, strategy_word(strategy));
	if (rule->header_is_forwarded || strategy == STRATEGY_NAMED_HEADER) {
		text_z(t, ", \"header\": ");
		text_json(t, rule->header);
	}
	if (strategy == STRATEGY_HOP_COUNT) {
		text_z(t, ", \"hops\": ");
		text_u64(t, rule->hops);
	}
	if (rule->trusted.n > 0 || peer != NULL) {
		text_z(t, ", \"trusted_proxies\": ");
		write_range_list(t, &rule->trusted, peer);
	}
	if (rule->trust_unix || peer == NULL)
		text_z(t, ", \"trust_unix\": true");
	if (rule->none_on_undecided)
		text_z(t, ", \"on_undecided\": \"none\"");
	if (rule->ipv6_prefix != 64) {
		text_z(t, ", \"ipv6_prefix\": ");
		text_u64(t, rule->ipv6_prefix);
	}
	text_z(t, "}");
}

static bool has_header(const struct request *req, struct str name)
{
	for (size_t i = 0; i < req->n_headers; i++) {
		if (str_equal_nocase(req->headers[i].name, name))
			return true;
	}
	return false;
}

static void say_header_ignored(struct text *t, struct text *cure, const struct ruleset *rules,
	const struct request *req, const struct verdict *v)
{
	struct client_rule rule = rules->client;
	bool forwarded = !has_header(req, STR("X-Forwarded-For"));

	text_z(t, "requests from ");
	text_visible(t, req->remote_addr, 64);
	text_z(t, forwarded ? " carry Forwarded" : " carry X-Forwarded-For");
	text_z(t, " and it is not read (");
	text_str(t, client_reason_text(v->client.reason));
	text_z(t, "): everybody behind that address shares its buckets. ");
	if (v->client.has_peer ? range_set_find(&rules->own_networks, &v->client.peer) == NULL : !v->client.peer_is_unix) {
		text_z(t, "That is right unless the address is a proxy of yours: it lies outside own_networks, and anybody can "
			  "send this header");
		return;
	}
	if (rule.strategy == STRATEGY_PEER && forwarded) {
		rule.header_is_forwarded = true;
		rule.header = STR("Forwarded");
	}
	notice_cure(cure, &rule, v->client.has_peer ? &v->client.peer : NULL);
	text_z(t, "If it is a proxy of yours, the cure is: ");
	text_str(t, text_view(cure));
}

static void say_undecided(struct text *t, const struct ruleset *rules, const struct request *req, const struct verdict *v)
{
	text_z(t, "the client of requests from ");
	text_visible(t, req->remote_addr, 64);
	text_z(t, " cannot be decided: ");
	text_str(t, client_reason_text(v->client.reason));
	text_z(t, " (");
	text_str(t, client_reason_word(v->client.reason));
	text_z(t, "). All such requests share one bucket. ");
	if (v->client.reason == CLIENT_REASON_PEER_UNUSABLE) {
		text_z(t, "The caller must send the address of the client's end of its connection as remote_addr");
	} else if (v->client.reason == CLIENT_REASON_ALL_TRUSTED) {
		text_z(t, "Either trusted_proxies is too wide, or these are requests of our own machines");
	} else {
		text_z(t, "The hop at that address must send a usable ");
		text_str(t, rules->client.header);
		text_z(t, " with every request");
	}
}

static void say_door(struct text *t, const struct request *req)
{
	text_z(t, "the door ");
	text_str(t, door_path(req->door));
	text_z(t, " needs the header ");
	text_str(t, req->fault_header);
	text_z(t, " exactly as its gateway writes it, and it is missing, comes twice or makes no sense: the gateway's configuration for this "
		  "door is incomplete, and every request is denied");
}

static void say_caller(struct text *t, const struct request *req)
{
	text_z(t, "a caller at ");
	text_visible(t, req->remote_addr, 64);
	text_z(t, " may not ask: its address is not listed in callers, or it showed no valid X-Postern-Key. Nothing was charged");
}

static const char *const events[] = {
	[KIND_HEADER_IGNORED] = "forwarded_header_ignored",
	[KIND_UNDECIDED] = "client_undecided",
	[KIND_DOOR] = "door_misconfigured",
	[KIND_CALLER] = "caller_not_allowed",
};

static void say(const struct ruleset *rules, const struct request *req, const struct verdict *v, enum kind kind)
{
	char line[LINE_BYTES], cure_line[LINE_BYTES];
	struct text t, cure;
	struct log_field fields[4];
	size_t n = 0;

	text_init(&t, line, sizeof(line));
	text_init(&cure, cure_line, sizeof(cure_line));
	switch (kind) {
	case KIND_HEADER_IGNORED: say_header_ignored(&t, &cure, rules, req, v); break;
	case KIND_UNDECIDED: say_undecided(&t, rules, req, v); break;
	case KIND_DOOR: say_door(&t, req); break;
	case KIND_CALLER: say_caller(&t, req); break;
	}
	fields[n++] = LOG_STR("door", door_word(req->door));
	fields[n++] = LOG_STR("remote_addr", req->remote_addr);
	if (kind == KIND_DOOR)
		fields[n++] = LOG_STR("header", req->fault_header);
	else if (kind != KIND_CALLER)
		fields[n++] = LOG_STR("client_reason", client_reason_word(v->client.reason));
	/* A list of ranges too long for the line would be cut in the middle: then only the sentence stands. */
	if (cure.len > 0 && !cure.overflow)
		fields[n++] = LOG_STR("cure", text_view(&cure));
	log_write(LOG_WARN, events[kind], text_view(&t), fields, n);
}

static void say_once(struct notice *n, const struct ruleset *rules, const struct request *req, const struct verdict *v,
	enum kind kind, uint8_t detail)
{
	struct seen what = {(uint8_t)kind, detail, {{0}}};

	if (ip_parse_with_port(&what.network, req->remote_addr, NULL))
		ip_mask(&what.network, ip_is_v4(&what.network) ? 120 : 48);
	if (is_first(n, &what))
		say(rules, req, v, kind);
}

void notice_verdict(struct notice *n, const struct ruleset *rules, const struct request *req, const struct verdict *v)
{
	if (v->reason == REASON_DOOR_MISCONFIGURED)
		say_once(n, rules, req, v, KIND_DOOR, (uint8_t)door_header_find(req->door, req->fault_header));
	if (v->reason == REASON_CALLER_NOT_ALLOWED)
		say_once(n, rules, req, v, KIND_CALLER, (uint8_t)req->door);
	if (v->warnings & 1u << WARNING_FORWARDED_HEADER_IGNORED)
		say_once(n, rules, req, v, KIND_HEADER_IGNORED, 0);
	if (v->warnings & 1u << WARNING_CLIENT_UNDECIDED)
		say_once(n, rules, req, v, KIND_UNDECIDED, (uint8_t)v->client.reason);
}
