/* SPDX-License-Identifier: MIT */
/*
 * Writes a verdict as JSON by hand: few members, all of them ours, and only keys, ids and addresses of others need escaping.
 * A test reads every answer back with the JSON library.
 */
#include "adapter/answer.h"

#include "core/headers.h"

static void write_name(struct text *t, const char *separator, const char *name)
{
	text_z(t, separator);
	text_char(t, '"');
	text_z(t, name);
	text_z(t, "\": ");
}

static void write_word(struct text *t, const char *name, struct str word)
{
	write_name(t, ", ", name);
	text_json(t, word);
}

static void write_number(struct text *t, const char *name, uint64_t number)
{
	write_name(t, ", ", name);
	text_u64(t, number);
}

static void write_client(struct text *t, const struct client *c)
{
	char address[IP_TEXT_BYTES];

	write_name(t, ", ", "client");
	write_name(t, "{", "address");
	if (c->has_address)
		text_json(t, str_make(address, ip_print(&c->address, address)));
	else
		text_z(t, "null");
	write_word(t, "reason", client_reason_word(c->reason));
	write_name(t, ", ", "decided");
	text_z(t, c->decided ? "true}" : "false}");
}

static void write_limit(struct text *t, const struct verdict_limit *l)
{
	write_name(t, "{", "name");
	text_json(t, l->limit->name);
	write_number(t, "quota", l->limit->bucket.burst);
	write_number(t, "window", l->limit->window_s);
	write_number(t, "remaining", l->taking.remaining);
	write_number(t, "reset", headers_reset_s(&l->taking));
	if (l->taking.refused)
		text_z(t, ", \"limited\": true");
	if (l->taking.overflow)
		text_z(t, ", \"overflow\": true");
	if (l->shadow)
		text_z(t, ", \"shadow\": true");
	text_char(t, '}');
}

static void write_limits(struct text *t, const struct verdict *v)
{
	write_name(t, ", ", "limits");
	text_char(t, '[');
	for (size_t i = 0; i < v->n_limits; i++) {
		if (i > 0)
			text_z(t, ", ");
		write_limit(t, &v->limits[i]);
	}
	text_char(t, ']');
}

static void write_header_object(struct text *t, const char *name, const struct header_line *lines, size_t n)
{
	write_name(t, ", ", name);
	text_char(t, '{');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			text_z(t, ", ");
		text_json(t, lines[i].name);
		text_z(t, ": ");
		text_json(t, lines[i].value);
	}
	text_char(t, '}');
}

static void write_list(struct text *t, const char *name, const struct str *items, size_t n)
{
	write_name(t, ", ", name);
	text_char(t, '[');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			text_z(t, ", ");
		text_json(t, items[i]);
	}
	text_char(t, ']');
}

static void write_headers(
	struct text *t, const struct ruleset *rules, const struct verdict *v, struct arena *a)
{
	struct header_line
		lines[HEADERS_CLIENT_MAX > HEADERS_UPSTREAM ? HEADERS_CLIENT_MAX : HEADERS_UPSTREAM];
	struct str names[TOKEN_HEADERS_MAX];

	write_header_object(t, "response_headers", lines, headers_for_client(rules, v, a, lines));
	headers_for_upstream(v, a, lines);
	write_header_object(t, "upstream_headers", lines, HEADERS_UPSTREAM);
	write_list(t, "remove_headers", names, headers_to_remove(rules, v, names));
}

static void write_warnings(struct text *t, unsigned warnings)
{
	struct str words[WARNING_COUNT];
	size_t n = 0;

	for (unsigned i = 0; i < WARNING_COUNT; i++) {
		if (warnings & 1u << i)
			words[n++] = warning_word((enum warning)i);
	}
	if (n > 0)
		write_list(t, "warnings", words, n);
}

void answer_members(struct text *t, const struct ruleset *rules, const struct request *req,
	const struct verdict *v, struct arena *a)
{
	write_name(t, "", "decision");
	text_json(t, decision_word(v->decision));
	write_word(t, "reason", reason_word(v->reason));
	if (v->reason == REASON_SHADOW)
		write_word(t, "would", reason_word(v->would));
	write_number(t, "status", reason_http(v->reason));
	if (v->has_client) {
		write_client(t, &v->client);
		write_name(t, ", ", "identity");
		if (v->token.identity != NULL)
			text_json(t, v->token.identity->name);
		else
			text_z(t, "null");
		write_word(t, "token", token_state_word(v->token.state));
	}
	write_name(t, ", ", "rule");
	if (v->rule != NULL)
		text_json(t, v->rule->name);
	else
		text_z(t, "null");
	write_limits(t, v);
	if (v->has_wait) {
		write_number(t, "retry_after", headers_retry_after_s(v));
		write_number(t, "retry_after_ms", headers_retry_after_ms(v));
	}
	write_headers(t, rules, v, a);
	write_warnings(t, v->warnings);
	if (req->id.said)
		write_word(t, "id", req->id.text);
}
