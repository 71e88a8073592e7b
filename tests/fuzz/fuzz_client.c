/* SPDX-License-Identifier: MIT */
/*
 * Derives a client's address from any rule, remote_addr and header lines, and holds the result against what must be
 * true of every request: asking for a trace changes nothing, an untrusted peer is the answer, undecided never gives header
 * text, a prefix from the client never moves a decided result, a list may be cut into lines, other headers do not matter.
 * Input: a byte for the strategy, a byte of switches, a byte for the hops, then lines: remote_addr, and one for each
 * header, "name:value", where no name means the configured header.
 */
#include "fuzz.h"

#include "base/must.h"
#include "core/client_parts.h"

#include <stdlib.h>

#define LINES_MAX 100
#define HEAD_BYTES 3

enum { SWITCH_FORWARDED = 1, SWITCH_ANY = 2, SWITCH_UNIX = 4, SWITCH_NONE = 8 };

static const struct str prefix = STR("for=6.6.6.6;x=\"\\\", 6.6.6.6, for=\"evil\\");

static struct range_set trusted_ranges(void)
{
	static const struct str texts[] = {STR("10.0.0.0/8"), STR("2001:db8:10::/48")};
	static struct range_set set;
	static char block[512];
	struct range items[2];
	const char *why;
	struct arena a;

	if (set.n != 0)
		return set;
	for (size_t i = 0; i < 2; i++)
		must(range_parse(&items[i], texts[i], &why, NULL, NULL));
	arena_init(&a, block, sizeof(block));
	must(range_set_build(&set, &a, items, 2));
	return set;
}

static struct client_rule rule_from(const uint8_t head[HEAD_BYTES])
{
	struct client_rule rule = {.strategy = (enum strategy)(head[0] % STRATEGY_COUNT),
		.trusted = trusted_ranges(),
		.trust_any = (head[1] & SWITCH_ANY) != 0,
		.trust_unix = (head[1] & SWITCH_UNIX) != 0,
		.none_on_undecided = (head[1] & SWITCH_NONE) != 0,
		.header = STR("X-Forwarded-For"),
		.hops = 1 + head[2] % CLIENT_HOPS_MAX,
		.ipv6_prefix = 32 + head[2] % 97,
		.network_v4 = 24,
		.network_v6 = 48};

	if (rule.strategy == STRATEGY_NAMED_HEADER) {
		rule.header = STR("CF-Connecting-IP");
	} else if (head[1] & SWITCH_FORWARDED) {
		rule.header = STR("Forwarded");
		rule.header_is_forwarded = true;
	}
	if (rule.strategy == STRATEGY_TRUSTED_RANGES)
		rule.trust_any = false;
	return rule;
}

static struct str take_line(struct str *rest)
{
	size_t end = str_find(*rest, '\n');
	struct str line = str_head(*rest, end);

	*rest = str_from(*rest, end + 1);
	return line;
}

static bool same(const struct client *a, const struct client *b)
{
	return a->reason == b->reason && a->decided == b->decided && a->has_address == b->has_address &&
	       a->header_read == b->header_read && (!a->has_address || ip_equal(&a->address, &b->address));
}

static struct client resolve(const struct client_rule *rule, const struct request *req)
{
	struct client_trace trace;
	struct client c, traced;

	client_resolve(rule, req, NULL, &c);
	client_resolve(rule, req, &trace, &traced);
	must(same(&c, &traced));
	must(trace.n_steps >= 1 && trace.n_steps <= CLIENT_STEPS_MAX && trace.steps[0].is_peer);
	must(trace.lines <= req->n_headers && trace.entries_unread < SIZE_MAX / 2);
	must(c.decided || trace.steps[trace.n_steps - 1].verdict == STEP_FALLBACK);
	return c;
}

static void check_result(const struct client_rule *rule, const struct client *c)
{
	char text[IP_TEXT_BYTES], key_text[CLIENT_KEY_TEXT_BYTES];
	uint8_t key[CLIENT_KEY_BYTES];
	size_t len;
	struct ip back;

	must(c->decided == client_reason_decided(c->reason));
	if (!c->decided) {
		must(!c->has_address ||
			(c->has_peer && !rule->none_on_undecided && ip_equal(&c->address, &c->peer)));
	} else {
		must(c->has_address && !ip_is_unspecified(&c->address) && !ip_is_multicast(&c->address));
		must(c->header_read || ip_equal(&c->address, &c->peer));
	}
	if (c->has_address)
		must(ip_parse(&back, str_make(text, ip_print(&c->address, text))) &&
			ip_equal(&back, &c->address));
	len = client_key(rule, c, key);
	must(len >= 1 && len <= CLIENT_KEY_BYTES && client_key_text(key, len, key_text) > 3);
	len = client_network_key(rule, c, key);
	must(len >= 1 && len <= CLIENT_KEY_BYTES && client_key_text(key, len, key_text) > 3);
}

static bool reads_list(const struct client_rule *rule)
{
	return rule->strategy == STRATEGY_RIGHTMOST || rule->strategy == STRATEGY_HOP_COUNT ||
	       rule->strategy == STRATEGY_TRUSTED_RANGES;
}

/* A decided result of a list stays; a single value is never replaced. */
static void check_prefixed(
	const struct client_rule *rule, const struct request *req, const struct client *before)
{
	struct client after = resolve(rule, req);

	if (reads_list(rule))
		must(!before->decided || same(before, &after));
	else if (rule->strategy != STRATEGY_PEER && before->header_read &&
		 before->reason != CLIENT_REASON_HEADER_MISSING)
		must(!after.decided);
	else if (!before->header_read)
		must(same(before, &after));
}

/* The client's text, as a line of its own and glued to the first line. */
static void check_prefix(const struct client_rule *rule, struct request req, const struct client *before)
{
	struct header_line lines[LINES_MAX + 1];
	size_t first = 0;
	struct str value;
	char *glued;

	memcpy(lines + 1, req.headers, req.n_headers * sizeof(*lines));
	lines[0] = (struct header_line){rule->header, prefix};
	req.headers = lines;
	req.n_headers++;
	check_prefixed(rule, &req, before);

	req.headers++;
	req.n_headers--;
	while (first < req.n_headers && !str_equal_nocase(req.headers[first].name, rule->header))
		first++;
	if (first == req.n_headers)
		return;
	value = req.headers[first].value;
	glued = malloc(prefix.len + 1 + value.len);
	must(glued != NULL);
	memcpy(glued, prefix.ptr, prefix.len);
	glued[prefix.len] = ',';
	if (value.len != 0)
		memcpy(glued + prefix.len + 1, value.ptr, value.len);
	lines[first + 1].value = str_make(glued, prefix.len + 1 + value.len);
	check_prefixed(rule, &req, before);
	free(glued);
}

/* Cuts the last line at its last comma. Two blank lines are told apart from a comma; both are undecided. */
static void check_split(const struct client_rule *rule, struct request req, const struct client *before)
{
	struct header_line lines[LINES_MAX + 1];
	struct str element, rest;
	struct client after;
	size_t last = req.n_headers;
	bool more;

	while (last != 0 && !str_equal_nocase(req.headers[last - 1].name, rule->header))
		last--;
	if (last == 0 || !reads_list(rule))
		return;
	if (rule->header_is_forwarded) {
		if (!client_forwarded_split(req.headers[last - 1].value, &element, &rest, &more) || !more)
			return;
	} else {
		size_t comma = str_find_last(req.headers[last - 1].value, ',');

		if (comma == req.headers[last - 1].value.len)
			return;
		rest = str_head(req.headers[last - 1].value, comma);
		element = str_from(req.headers[last - 1].value, comma + 1);
	}
	memcpy(lines, req.headers, last * sizeof(*lines));
	lines[last - 1].value = rest;
	lines[last] = (struct header_line){rule->header, element};
	memcpy(lines + last + 1, req.headers + last, (req.n_headers - last) * sizeof(*lines));
	req.headers = lines;
	req.n_headers++;
	after = resolve(rule, &req);
	must(same(before, &after) || (after.reason == CLIENT_REASON_HEADER_EMPTY && !before->decided));
}

static void check_untrusted(struct client_rule rule, const struct request *req)
{
	struct client c;

	rule.trust_any = false;
	rule.trust_unix = false;
	rule.trusted = (struct range_set){0};
	c = resolve(&rule, req);
	must(!c.header_read && c.has_address == c.has_peer && c.decided == c.has_peer);
	must(!c.has_peer || ip_equal(&c.address, &c.peer));
}

/* Only the lines of the configured header count. */
static void check_others(const struct client_rule *rule, struct request req, const struct client *before)
{
	struct header_line lines[LINES_MAX];
	struct client after;
	size_t n = 0;

	for (size_t i = 0; i < req.n_headers; i++)
		if (str_equal_nocase(req.headers[i].name, rule->header))
			lines[n++] = (struct header_line){rule->header, req.headers[i].value};
	req.headers = lines;
	req.n_headers = n;
	after = resolve(rule, &req);
	must(same(before, &after));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct header_line lines[LINES_MAX];
	struct request req = {.headers = lines};
	struct client_rule rule;
	struct client c;
	struct str rest;

	if (size < HEAD_BYTES)
		return 0;
	rule = rule_from(data);
	rest = str_make((const char *)data + HEAD_BYTES, size - HEAD_BYTES);
	req.remote_addr = take_line(&rest);
	while (rest.len != 0 && req.n_headers < LINES_MAX) {
		struct str line = take_line(&rest);
		size_t colon = str_find(line, ':');

		lines[req.n_headers].name = colon != 0 ? str_head(line, colon) : rule.header;
		lines[req.n_headers++].value = str_from(line, colon + 1);
	}
	c = resolve(&rule, &req);
	check_result(&rule, &c);
	check_prefix(&rule, req, &c);
	check_split(&rule, req, &c);
	check_untrusted(rule, &req);
	check_others(&rule, req, &c);
	return 0;
}
