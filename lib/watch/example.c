/* SPDX-License-Identifier: MIT */
/*
 * Whether a setting would cure what was seen can be tried: who the client is, is a pure function of a rule and a few header
 * lines, so the last few requests of each kind keep exactly those lines. Advice that was tried on the traffic at hand is
 * worth more than advice from a table of guesses. A request whose lines do not fit is no example; nobody can push
 * the honest ones out for longer than sixteen requests.
 */
#include "watch/part.h"

#include "core/client_parts.h"

#define CONFIGURED FORWARDING_COUNT /* the header of the rule in force, where it is none of those */

static const struct client_rule rules[FORWARDING_COUNT] = {
	[FORWARDING_FOR] = {.header = {"X-Forwarded-For", 15}},
	[FORWARDING_RFC7239] = {.header = {"Forwarded", 9}, .header_is_forwarded = true},
	[FORWARDING_REAL_IP] = {.header = {"X-Real-IP", 9}},
	[FORWARDING_CF] = {.header = {"CF-Connecting-IP", 16}},
	[FORWARDING_TRUE] = {.header = {"True-Client-IP", 14}},
};

const struct client_rule *forwarding_rule(enum forwarding which)
{
	return &rules[which];
}

static bool name_find(const struct client_rule *rule, struct str name, uint8_t *ret)
{
	for (unsigned i = 0; i < FORWARDING_COUNT; i++) {
		if (client_name_is(name, rules[i].header)) {
			*ret = (uint8_t)i;
			return true;
		}
	}
	*ret = CONFIGURED;
	return rule->header.len != 0 && client_name_is(name, rule->header);
}

/* A line is which header it is, the length of its value, and the value. */
static bool put_line(struct example *e, uint8_t which, struct str value)
{
	if (value.len > EXAMPLE_BYTES - 2 || e->len > EXAMPLE_BYTES - 2 - value.len)
		return false;
	e->bytes[e->len] = which;
	e->bytes[e->len + 1] = (uint8_t)value.len;
	if (value.len != 0)
		memcpy(e->bytes + e->len + 2, value.ptr, value.len);
	e->len = (uint16_t)(e->len + 2 + value.len);
	return true;
}

void example_keep(struct examples *e, enum example_kind kind, const struct client_rule *rule,
	const struct request *req, const struct client *c, uint64_t key_hash)
{
	struct example *into = &e->items[kind][e->n[kind] % EXAMPLES_MAX];
	unsigned lines = 0;
	uint8_t which;

	into->len = 0;
	into->whole = true;
	for (size_t i = 0; i < req->n_headers; i++) {
		if (name_find(rule, req->headers[i].name, &which) &&
			(lines++ == EXAMPLE_LINES_MAX || !put_line(into, which, req->headers[i].value)))
			into->whole = false;
	}
	into->has_peer = c->has_peer;
	into->peer_is_unix = c->peer_is_unix;
	into->peer = c->peer;
	into->key_hash = key_hash;
	e->n[kind]++;
}

void example_open(const struct client_rule *rule, const struct example *e, struct example_request *ret)
{
	ret->req = (struct request){
		.remote_addr = e->peer_is_unix ? STR("unix:") : STR(""), .headers = ret->lines, .cost = 1};
	if (e->has_peer)
		ret->req.remote_addr = str_make(ret->remote_addr, ip_print(&e->peer, ret->remote_addr));
	for (size_t at = 0; at < e->len; at += 2u + e->bytes[at + 1]) {
		struct header_line *line = &ret->lines[ret->req.n_headers++];

		line->name = e->bytes[at] == CONFIGURED ? rule->header : rules[e->bytes[at]].header;
		line->value = str_make((const char *)e->bytes + at + 2, e->bytes[at + 1]);
	}
}
