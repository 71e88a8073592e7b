/* SPDX-License-Identifier: MIT */
/*
 * The steps of a derivation, written down for explain. Everything here costs more than the decision (whole headers are
 * counted), so it happens only where a trace was asked for. Long walks keep the entries nearest to us and the one that
 * ended the walk; what lies between is counted.
 */
#include "core/client_parts.h"

#define STEPS_ENTRIES_MAX 8

/* Headers by which somebody tells about an address; the first two are the lists. */
static const struct str forwarding_names[] = {
	STR("X-Forwarded-For"),
	STR("Forwarded"),
	STR("X-Real-IP"),
	STR("X-Client-IP"),
	STR("Client-IP"),
	STR("X-Cluster-Client-IP"),
	STR("X-Original-Forwarded-For"),
	STR("X-Envoy-External-Address"),
	STR("CF-Connecting-IP"),
	STR("True-Client-IP"),
	STR("Fastly-Client-IP"),
	STR("X-Azure-ClientIP"),
	STR("X-Azure-SocketIP"),
	STR("CloudFront-Viewer-Address"),
};

static bool name_is_forwarding(struct str name)
{
	for (size_t i = 0; i < sizeof(forwarding_names) / sizeof(forwarding_names[0]); i++)
		if (client_name_is(name, forwarding_names[i]))
			return true;
	return false;
}

/* RFC 9110 7.6.1: a proxy drops the fields that Connection names, also one that it has just written itself. */
static bool connection_names(struct str value, struct str name)
{
	while (value.len != 0) {
		size_t comma = str_find(value, ',');

		if (str_equal_nocase(str_trim(str_head(value, comma)), name))
			return true;
		value = str_from(value, comma + 1);
	}
	return false;
}

/* Counts what there is; every entry is unread until it has been judged. An entry whose quotes do not pair hides the rest
 * of its line and counts as one. */
static void count_entries(
	struct client_trace *trace, const struct client_rule *rule, const struct request *req)
{
	struct client_list list;
	struct str entry;

	client_list_start(&list, rule, req);
	while (client_list_next(&list, &entry) != LIST_END)
		trace->entries_unread++;
	trace->lines = list.lines_read;
}

void client_trace_start(struct client_trace *trace, const struct client_rule *rule, const struct request *req)
{
	bool reads = rule->strategy != STRATEGY_PEER;

	*trace = (struct client_trace){0};
	if (reads)
		count_entries(trace, rule, req);
	for (size_t i = 0; i < req->n_headers; i++) {
		const struct header_line *line = &req->headers[i];

		if (reads && client_name_is(line->name, rule->header))
			continue;
		if (name_is_forwarding(line->name))
			trace->other_forwarding = true;
		if (reads && client_name_is(line->name, STR("Connection")) &&
			connection_names(line->value, rule->header))
			trace->connection_names_header = true;
	}
}

void client_trace_peer(struct client_trace *trace, const struct client_rule *rule, const struct request *req,
	const struct client *c, const struct range *by)
{
	struct client_step step = {
		.is_peer = true, .raw = req->remote_addr, .has_address = c->has_peer, .address = c->peer};

	if (c->header_read) {
		step.verdict = STEP_TRUSTED;
		step.by = by;
	} else if (!c->has_peer) {
		step.verdict = STEP_REFUSED;
		step.reason = CLIENT_REASON_PEER_UNUSABLE;
	} else {
		step.verdict = rule->strategy == STRATEGY_PEER ? STEP_CHOSEN : STEP_UNTRUSTED;
	}
	trace->steps[trace->n_steps++] = step;
}

void client_trace_entry(struct client_trace *trace, const struct client_list *list, unsigned from_right,
	const struct client_judged *judged)
{
	struct client_step step = {
		.verdict = judged->verdict, .position = -(int)from_right, .raw = judged->raw};

	trace->entries_unread--;
	if (trace->n_steps > STEPS_ENTRIES_MAX) {
		trace->steps_left_out++;
		if (judged->verdict == STEP_TRUSTED || judged->verdict == STEP_COUNTED)
			return;
		trace->n_steps--;
	}
	step.line = (unsigned)trace->lines - list->lines_read + 1;
	if (judged->ip != NULL) {
		step.has_address = true;
		step.address = *judged->ip;
	}
	if (judged->verdict == STEP_TRUSTED)
		step.by = judged->by;
	if (judged->verdict == STEP_REFUSED)
		step.reason = judged->reason;
	trace->steps[trace->n_steps++] = step;
}

void client_trace_fallback(struct client_trace *trace, const struct client *c)
{
	struct client_step step = {
		.verdict = STEP_FALLBACK, .has_address = c->has_address, .address = c->address};

	step.reason = c->reason;
	trace->steps[trace->n_steps++] = step;
}
