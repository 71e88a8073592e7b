/* SPDX-License-Identifier: MIT */
/*
 * An explanation for programs: the /check answer with one more member. It walks the trace that the decision's own code filled,
 * so it cannot disagree with the decision.
 */
#include "adapter/explain.h"

#include "adapter/answer.h"
#include "adapter/explain_parts.h"

static const char *const step_words[] = {
	[STEP_UNTRUSTED] = "untrusted",
	[STEP_TRUSTED] = "trusted",
	[STEP_COUNTED] = "counted",
	[STEP_CHOSEN] = "chosen",
	[STEP_REFUSED] = "refused",
	[STEP_FALLBACK] = "fallback",
};

static void write_name(struct text *t, const char *separator, const char *name)
{
	text_z(t, separator);
	text_char(t, '"');
	text_z(t, name);
	text_z(t, "\": ");
}

static void json_step(struct text *t, const struct client_step *s)
{
	write_name(t, "{", "step");
	text_z(t, s->verdict == STEP_FALLBACK ? "\"fallback\""
		  : s->is_peer                ? "\"remote_addr\""
					      : "\"entry\"");
	if (s->position != 0) {
		write_name(t, ", ", "position");
		text_char(t, '-');
		text_u64(t, (uint64_t)-s->position);
		write_name(t, ", ", "line");
		text_u64(t, s->line);
	}
	if (s->verdict != STEP_FALLBACK) {
		write_name(t, ", ", "raw");
		text_json(t, str_head(s->raw, EXPLAIN_RAW_BYTES));
	}
	write_name(t, ", ", "address");
	text_z(t, s->has_address ? "\"" : "null");
	if (s->has_address) {
		explain_write_ip(t, &s->address);
		text_char(t, '"');
	}
	write_name(t, ", ", "verdict");
	text_char(t, '"');
	text_z(t, step_words[s->verdict]);
	text_char(t, '"');
	if (s->verdict == STEP_REFUSED || s->verdict == STEP_FALLBACK) {
		write_name(t, ", ", "reason");
		text_json(t, client_reason_word(s->reason));
	}
	if (s->verdict == STEP_TRUSTED && s->by != NULL) {
		write_name(t, ", ", "by");
		text_char(t, '"');
		explain_write_range(t, s->by);
		text_char(t, '"');
	}
	text_char(t, '}');
}

static void json_number(struct text *t, const char *name, uint64_t number)
{
	write_name(t, ", ", name);
	text_u64(t, number);
}

static void json_bool(struct text *t, const char *name, bool value)
{
	write_name(t, ", ", name);
	text_z(t, value ? "true" : "false");
}

void explain_client_json(
	struct text *t, const struct ruleset *rules, const struct client *c, const struct client_trace *trace)
{
	write_name(t, "", "strategy");
	text_json(t, strategy_word(rules->client.strategy));
	write_name(t, ", ", "address");
	text_z(t, c->has_address ? "\"" : "null");
	if (c->has_address) {
		explain_write_ip(t, &c->address);
		text_char(t, '"');
	}
	write_name(t, ", ", "reason");
	text_json(t, client_reason_word(c->reason));
	write_name(t, ", ", "class");
	text_z(t, c->decided ? "\"decided\"" : "\"undecided\"");
	write_name(t, ", ", "key");
	text_char(t, '"');
	explain_write_key(t, rules, c);
	text_char(t, '"');
	write_name(t, ", ", "steps");
	for (size_t i = 0; i < trace->n_steps; i++) {
		text_z(t, i == 0 ? "[" : ", ");
		json_step(t, &trace->steps[i]);
	}
	text_z(t, trace->n_steps == 0 ? "[]" : "]");
	json_number(t, "steps_left_out", trace->steps_left_out);
	json_number(t, "header_lines", trace->lines);
	json_number(t, "entries_unread", trace->entries_unread);
	json_bool(t, "other_forwarding_headers", trace->other_forwarding);
	json_bool(t, "connection_names_header", trace->connection_names_header);
}

static void json_rules(struct text *t, const struct explanation *e)
{
	write_name(t, ", ", "rules");
	text_char(t, '[');
	for (size_t i = 0; i < e->trace.n_rules; i++) {
		const struct rule_step *s = &e->trace.rules[i];

		write_name(t, i == 0 ? "{" : ", {", "name");
		text_json(t, s->rule->name);
		write_name(t, ", ", "result");
		text_json(t, str_from_z(explain_miss_z(s->miss)));
		write_name(t, ", ", "result_raw_path");
		text_json(t, str_from_z(explain_miss_z(s->miss_raw)));
		text_char(t, '}');
	}
	text_char(t, ']');
}

void explain_json(struct text *t, const struct ruleset *rules, const struct request *req,
	const struct explanation *e, struct arena *a)
{
	text_char(t, '{');
	answer_members(t, rules, req, &e->verdict, a);
	write_name(t, ", ", "explain");
	write_name(t, "{", "config");
	text_json(t, rules->hash);
	if (e->verdict.has_client) {
		text_z(t, ", ");
		explain_client_json(t, rules, &e->verdict.client, &e->trace.client);
		if (e->trace.has_path) {
			write_name(t, ", ", "path");
			text_json(t, e->trace.path_normalised);
			write_name(t, ", ", "path_raw");
			text_json(t, e->trace.path_raw);
		}
		if (e->trace.third != NULL) {
			write_name(t, ", ", "other_reading");
			write_name(t, "{", "path");
			text_json(t, e->trace.reading);
			write_name(t, ", ", "rule");
			text_json(t, e->trace.third->name);
			text_char(t, '}');
		}
		json_rules(t, e);
	}
	text_z(t, "}}\n");
}
