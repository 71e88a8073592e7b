/* SPDX-License-Identifier: MIT */
/*
 * Writes a verdict as JSON by hand: few members, all of them ours, and only keys, ids and addresses of others need escaping.
 * A test reads every answer back with the JSON library.
 */
#include "adapter/answer.h"

#include "core/headers.h"

/* A word of ours or a name that a configuration may hold: nothing in it needs an escape. */
static void write_word(struct text *t, struct str before, struct str word)
{
	text_str(t, before);
	text_char(t, '"');
	text_str(t, word);
	text_char(t, '"');
}

static void write_text(struct text *t, struct str before, struct str value)
{
	text_str(t, before);
	text_json(t, value);
}

static void write_number(struct text *t, struct str before, uint64_t number)
{
	text_str(t, before);
	text_u64(t, number);
}

static void write_client(struct text *t, const struct client *c)
{
	char address[IP_TEXT_BYTES];

	if (c->has_address)
		write_word(t, STR(", \"client\": {\"address\": "),
			str_make(address, ip_print(&c->address, address)));
	else
		text_z(t, ", \"client\": {\"address\": null");
	write_word(t, STR(", \"reason\": "), client_reason_word(c->reason));
	text_z(t, c->decided ? ", \"decided\": true}" : ", \"decided\": false}");
}

static void write_identity(struct text *t, const struct token_result *token)
{
	if (token->identity != NULL)
		write_word(t, STR(", \"identity\": "), token->identity->name);
	else
		text_z(t, ", \"identity\": null");
	write_word(t, STR(", \"token\": "), token_state_word(token->state));
}

static void write_limit(struct text *t, const struct verdict_limit *l)
{
	write_word(t, STR("{\"name\": "), l->limit->name);
	write_number(t, STR(", \"quota\": "), l->limit->bucket.burst);
	write_number(t, STR(", \"window\": "), l->limit->window_s);
	write_number(t, STR(", \"remaining\": "), l->taking.remaining);
	write_number(t, STR(", \"reset\": "), headers_reset_s(&l->taking));
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
	text_z(t, ", \"limits\": [");
	for (size_t i = 0; i < v->n_limits; i++) {
		if (i > 0)
			text_z(t, ", ");
		write_limit(t, &v->limits[i]);
	}
	text_char(t, ']');
}

static void write_lines(struct text *t, struct str before, const struct header_line *lines, size_t n)
{
	text_str(t, before);
	for (size_t i = 0; i < n; i++) {
		write_word(t, i > 0 ? STR(", ") : STR(""), lines[i].name);
		write_text(t, STR(": "), lines[i].value);
	}
	text_char(t, '}');
}

static void write_list(struct text *t, struct str before, const struct str *items, size_t n)
{
	text_str(t, before);
	for (size_t i = 0; i < n; i++)
		write_word(t, i > 0 ? STR(", ") : STR(""), items[i]);
	text_char(t, ']');
}

static void write_headers(
	struct text *t, const struct ruleset *rules, const struct verdict *v, struct arena *a)
{
	struct header_line
		lines[HEADERS_CLIENT_MAX > HEADERS_UPSTREAM ? HEADERS_CLIENT_MAX : HEADERS_UPSTREAM];
	struct str names[TOKEN_HEADERS_MAX];

	write_lines(t, STR(", \"response_headers\": {"), lines, headers_for_client(rules, v, a, lines));
	headers_for_upstream(v, a, lines);
	write_lines(t, STR(", \"upstream_headers\": {"), lines, HEADERS_UPSTREAM);
	write_list(t, STR(", \"remove_headers\": ["), names, headers_to_remove(rules, v, names));
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
		write_list(t, STR(", \"warnings\": ["), words, n);
}

void answer_members(struct text *t, const struct ruleset *rules, const struct request *req,
	const struct verdict *v, struct arena *a)
{
	write_word(t, STR("\"decision\": "), decision_word(v->decision));
	write_word(t, STR(", \"reason\": "), reason_word(v->reason));
	if (v->reason == REASON_SHADOW)
		write_word(t, STR(", \"would\": "), reason_word(v->would));
	write_number(t, STR(", \"status\": "), reason_http(v->reason));
	if (v->has_client) {
		write_client(t, &v->client);
		write_identity(t, &v->token);
	}
	if (v->rule != NULL)
		write_word(t, STR(", \"rule\": "), v->rule->name);
	else
		text_z(t, ", \"rule\": null");
	write_limits(t, v);
	if (v->has_wait) {
		write_number(t, STR(", \"retry_after\": "), headers_retry_after_s(v));
		write_number(t, STR(", \"retry_after_ms\": "), headers_retry_after_ms(v));
	}
	write_headers(t, rules, v, a);
	write_warnings(t, v->warnings);
	if (req->id.said)
		write_text(t, STR(", \"id\": "), req->id.text);
}
