/* SPDX-License-Identifier: MIT */
/*
 * Who is asking: the gate in front of every strategy but peer, then the strategy. Decision and explanation are one code
 * path: the trace is filled on the way and never asked.
 * rightmost is hop_count with one hop, and trusted_ranges goes on where those stop, so the three share one walk; what they
 * do not share is their word for success. Nothing here repairs a header: an entry that cannot be read ends the
 * walk, because the one to its left was within the client's reach.
 */
#include "core/client.h"

#include "core/client_parts.h"

static const struct {
	struct str word;
	enum client_reason decided;
} strategies[STRATEGY_COUNT] = {
	[STRATEGY_PEER] = {STR("peer"), CLIENT_REASON_PEER},
	[STRATEGY_SINGLE_VALUE] = {STR("single_value"), CLIENT_REASON_SINGLE_VALUE},
	[STRATEGY_RIGHTMOST] = {STR("rightmost"), CLIENT_REASON_RIGHTMOST},
	[STRATEGY_HOP_COUNT] = {STR("hop_count"), CLIENT_REASON_HOP_COUNT},
	[STRATEGY_TRUSTED_RANGES] = {STR("trusted_ranges"), CLIENT_REASON_TRUSTED_RANGE},
	[STRATEGY_NAMED_HEADER] = {STR("named_header"), CLIENT_REASON_NAMED_HEADER},
};

struct str strategy_word(enum strategy s)
{
	return strategies[s].word;
}

enum strategy strategy_find(struct str word)
{
	unsigned s = 0;

	while (s < STRATEGY_COUNT && !str_equal(strategies[s].word, word))
		s++;
	return (enum strategy)s;
}

static void peer_read(struct client *c, struct str remote_addr)
{
	enum client_reason why;
	struct ip ip;

	if (ip_parse_with_port(&ip, remote_addr, NULL)) {
		if (!client_address_usable(&ip, &why))
			return;
		c->has_peer = true;
		c->peer = ip;
		return;
	}
	c->peer_is_unix = str_starts_with(remote_addr, STR("@")) || str_starts_with(remote_addr, STR("/")) ||
			  str_starts_with(remote_addr, STR("unix:"));
}

static bool forwarding_is_present(const struct request *req)
{
	for (size_t i = 0; i < req->n_headers; i++)
		if (client_name_is(req->headers[i].name, STR("X-Forwarded-For")) ||
			client_name_is(req->headers[i].name, STR("Forwarded")))
			return true;
	return false;
}

/* "any" also trusts Unix, absent and junk peers. */
static bool gate_opens(const struct client_rule *rule, const struct client *c, const struct range **ret_by)
{
	if (rule->trust_any)
		return true;
	if (c->peer_is_unix)
		return rule->trust_unix;
	*ret_by = c->has_peer ? range_set_find(&rule->trusted, &c->peer) : NULL;
	return *ret_by != NULL;
}

static bool entry_read(
	const struct client_rule *rule, struct str entry, struct ip *ret_ip, enum client_reason *ret_reason)
{
	if (rule->header_is_forwarded)
		return client_forwarded_read(entry, ret_ip, ret_reason);
	return client_entry_read(entry, ret_ip, ret_reason);
}

/* single_value and named_header: one line, one value. Which of two was ours cannot be known, not even of equal ones. */
static enum client_reason read_single(const struct client_rule *rule, const struct request *req,
	struct client_trace *trace, struct ip *ret_ip)
{
	struct client_list list, others;
	struct client_judged judged = {.verdict = STEP_REFUSED};
	enum list_found found;

	client_list_start(&list, rule, req);
	if (!client_list_line(&list))
		return CLIENT_REASON_HEADER_MISSING;
	others = list;
	if (client_list_line(&others))
		return CLIENT_REASON_MULTIPLE_LINES;
	found = client_list_next(&list, &judged.raw);
	if (list.in_line)
		return CLIENT_REASON_MULTIPLE_VALUES;
	if (found == LIST_MALFORMED) {
		judged.reason = CLIENT_REASON_MALFORMED_HEADER;
	} else if (judged.raw.len == 0) {
		return CLIENT_REASON_HEADER_EMPTY;
	} else if (entry_read(rule, judged.raw, ret_ip, &judged.reason)) {
		judged.verdict = STEP_CHOSEN;
		judged.ip = ret_ip;
		judged.reason = strategies[rule->strategy].decided;
	}
	if (trace != NULL)
		client_trace_entry(trace, &list, 1, &judged);
	return judged.reason;
}

/* Is there nothing to walk? Looks at further lines only while they are blank. */
static bool list_is_blank(struct client_list list, enum client_reason *ret_reason)
{
	*ret_reason = CLIENT_REASON_HEADER_MISSING;
	while (client_list_line(&list)) {
		if (str_trim(list.rest).len != 0)
			return false;
		*ret_reason = CLIENT_REASON_HEADER_EMPTY;
	}
	return true;
}

/* Judges the nth entry from the right. STEP_COUNTED and STEP_TRUSTED go on, the other two end the walk. */
static void judge_entry(const struct client_rule *rule, unsigned n, enum list_found found,
	struct client_judged *judged, struct ip *ret_ip)
{
	unsigned hops = rule->strategy == STRATEGY_HOP_COUNT ? rule->hops : 1;

	judged->verdict = STEP_REFUSED;
	judged->ip = NULL;
	judged->by = NULL;
	if (found == LIST_MALFORMED) {
		judged->reason = CLIENT_REASON_MALFORMED_HEADER;
		return;
	}
	if (n < hops && rule->strategy == STRATEGY_HOP_COUNT) {
		judged->verdict = STEP_COUNTED;
		return;
	}
	if (!entry_read(rule, judged->raw, ret_ip, &judged->reason))
		return;
	judged->ip = ret_ip;
	if (rule->strategy == STRATEGY_TRUSTED_RANGES)
		judged->by = range_set_find(&rule->trusted, ret_ip);
	judged->verdict = judged->by != NULL ? STEP_TRUSTED : STEP_CHOSEN;
	judged->reason = strategies[rule->strategy].decided;
}

/* rightmost, hop_count and trusted_ranges. */
static enum client_reason read_list(const struct client_rule *rule, const struct request *req,
	struct client_trace *trace, struct ip *ret_ip)
{
	struct client_list list;
	struct client_judged judged;
	enum client_reason blank;

	client_list_start(&list, rule, req);
	if (list_is_blank(list, &blank))
		return blank;
	for (unsigned n = 1;; n++) {
		enum list_found found = client_list_next(&list, &judged.raw);

		if (found == LIST_END)
			return rule->strategy == STRATEGY_TRUSTED_RANGES ? CLIENT_REASON_ALL_TRUSTED
									 : CLIENT_REASON_TOO_FEW_HOPS;
		if (n > CLIENT_ENTRIES_MAX)
			return CLIENT_REASON_TOO_MANY_HOPS;
		judge_entry(rule, n, found, &judged, ret_ip);
		if (trace != NULL)
			client_trace_entry(trace, &list, n, &judged);
		if (judged.verdict == STEP_CHOSEN || judged.verdict == STEP_REFUSED)
			return judged.reason;
	}
}

static enum client_reason read_headers(const struct client_rule *rule, const struct request *req,
	struct client_trace *trace, struct ip *ret_ip)
{
	switch (rule->strategy) {
	case STRATEGY_SINGLE_VALUE:
	case STRATEGY_NAMED_HEADER: return read_single(rule, req, trace, ret_ip);
	default: return read_list(rule, req, trace, ret_ip);
	}
}

/* Without headers there is the peer or nothing. */
static void resolve_peer(const struct client_rule *rule, struct client *c)
{
	c->decided = c->has_address = c->has_peer;
	c->address = c->peer;
	if (!c->has_peer)
		c->reason = CLIENT_REASON_PEER_UNUSABLE;
	else if (rule->strategy == STRATEGY_PEER)
		c->reason = CLIENT_REASON_PEER;
	else
		c->reason = CLIENT_REASON_PEER_UNTRUSTED;
}

static void resolve_headers(const struct client_rule *rule, const struct request *req,
	struct client_trace *trace, struct client *c)
{
	struct ip found;

	c->reason = read_headers(rule, req, trace, &found);
	c->decided = client_reason_decided(c->reason);
	c->has_address = c->decided || (c->has_peer && !rule->none_on_undecided);
	if (c->has_address)
		c->address = c->decided ? found : c->peer;
}

void client_resolve(const struct client_rule *rule, const struct request *req, struct client_trace *trace,
	struct client *ret)
{
	const struct range *by = NULL;

	*ret = (struct client){.forwarding_present = forwarding_is_present(req)};
	peer_read(ret, req->remote_addr);
	if (rule->strategy != STRATEGY_PEER)
		ret->header_read = gate_opens(rule, ret, &by);
	if (trace != NULL) {
		client_trace_start(trace, rule, req);
		client_trace_peer(trace, rule, req, ret, by);
	}
	if (ret->header_read)
		resolve_headers(rule, req, trace, ret);
	else
		resolve_peer(rule, ret);
	if (trace != NULL && !ret->decided)
		client_trace_fallback(trace, ret);
}
