/* SPDX-License-Identifier: MIT */
/*
 * An explanation for people: sentences, the answer first. It walks the trace that the decision's own code filled, so it cannot
 * disagree with the decision.
 */
#include "adapter/explain.h"

#include "adapter/explain_parts.h"

#include "core/headers.h"

static void words_step(struct text *t, const struct client_step *s)
{
	text_z(t, "  ");
	if (s->verdict == STEP_FALLBACK) {
		text_z(t, "so it is undecided; what stands in is ");
		if (s->has_address)
			explain_write_ip(t, &s->address);
		else
			text_z(t, "nobody: the strict bucket \"none\"");
		text_char(t, '\n');
		return;
	}
	if (s->is_peer) {
		text_z(t, "remote_addr \"");
	} else {
		text_z(t, "entry -");
		text_u64(t, (uint64_t)-s->position);
		text_z(t, " (from the right, line ");
		text_u64(t, s->line);
		text_z(t, ") \"");
	}
	text_visible(t, s->raw, EXPLAIN_RAW_BYTES);
	switch (s->verdict) {
	case STEP_UNTRUSTED: text_z(t, "\" is no trusted proxy: no header is believed"); break;
	case STEP_TRUSTED: text_z(t, "\" is a trusted proxy, by "); break;
	case STEP_COUNTED: text_z(t, "\" is passed over by the hop count"); break;
	case STEP_CHOSEN: text_z(t, "\" is the client"); break;
	default:
		text_z(t, "\" cannot be used: ");
		text_str(t, client_reason_text(s->reason));
		break;
	}
	if (s->verdict == STEP_TRUSTED && s->by != NULL)
		explain_write_range(t, s->by);
	else if (s->verdict == STEP_TRUSTED)
		text_z(t, "\"any\" or trust_unix");
	text_char(t, '\n');
}

static void words_count(struct text *t, size_t n, const char *one, const char *many)
{
	if (n == 0)
		return;
	text_z(t, "  ");
	text_u64(t, n);
	text_z(t, n == 1 ? one : many);
	text_char(t, '\n');
}

static void words_client(struct text *t, const struct ruleset *rules, const struct explanation *e)
{
	const struct client *c = &e->verdict.client;
	const struct client_trace *trace = &e->trace.client;

	text_z(t, "client: ");
	if (c->has_address)
		explain_write_ip(t, &c->address);
	else
		text_z(t, "none");
	text_z(t, c->decided ? ", decided: " : ", undecided: ");
	text_str(t, client_reason_word(c->reason));
	text_z(t, " (");
	text_str(t, client_reason_text(c->reason));
	text_z(t, ")\n  strategy ");
	text_str(t, strategy_word(rules->client.strategy));
	if (rules->client.strategy != STRATEGY_PEER) {
		text_z(t, ", reading ");
		text_str(t, rules->client.header);
	}
	text_char(t, '\n');
	for (size_t i = 0; i < trace->n_steps; i++)
		words_step(t, &trace->steps[i]);
	words_count(t, trace->steps_left_out, " further entry was judged and is not shown",
		" further entries were judged and are not shown");
	words_count(t, trace->entries_unread, " entry further left was not looked at: a client can write it",
		" entries further left were not looked at: a client can write them");
	if (trace->other_forwarding)
		text_z(t, "  other forwarding headers were present and not read\n");
	if (trace->connection_names_header)
		text_z(t, "  the Connection header names the header we read: a proxy may drop it\n");
	text_z(t, "  its bucket key is ");
	explain_write_key(t, rules, c);
	text_char(t, '\n');
}

static void words_token(struct text *t, const struct token_result *token)
{
	text_z(t, "token: ");
	text_str(t, token_state_word(token->state));
	if (token->identity != NULL) {
		text_z(t, ", identity ");
		text_str(t, token->identity->name);
		text_z(t, " (");
		text_str(t, token_slot_word(token->slot));
		text_z(t, " token)");
	}
	text_char(t, '\n');
}

static void words_rules(struct text *t, const struct explanation *e)
{
	if (e->trace.has_path) {
		text_z(t, "path: ");
		text_visible(t, e->trace.path_normalised, 256);
		if (!str_equal(e->trace.path_normalised, e->trace.path_raw)) {
			text_z(t, " (as sent: ");
			text_visible(t, e->trace.path_raw, 256);
			text_z(t, "; the stricter of both counts)");
		}
		text_char(t, '\n');
	}
	if (e->trace.third != NULL) {
		text_z(t, "  some servers read ");
		text_visible(t, e->trace.reading, 256);
		text_z(t, ", where rule ");
		text_str(t, e->trace.third->name);
		text_z(t, " holds: refused, since what is served cannot be known\n");
	}
	for (size_t i = 0; i < e->trace.n_rules; i++) {
		const struct rule_step *s = &e->trace.rules[i];

		text_z(t, "rule ");
		text_str(t, s->rule->name);
		text_z(t, s->miss == MISS_NONE ? ": matches" : ": does not match: ");
		if (s->miss != MISS_NONE)
			text_z(t, explain_miss_z(s->miss));
		if ((s->miss == MISS_NONE) != (s->miss_raw == MISS_NONE))
			text_z(t, s->miss_raw == MISS_NONE ? ", but matches the path as sent"
							   : ", but not the path as sent");
		text_char(t, '\n');
	}
}

static void words_limits(struct text *t, const struct verdict *v)
{
	for (size_t i = 0; i < v->n_limits; i++) {
		const struct verdict_limit *l = &v->limits[i];

		text_z(t, "limit ");
		text_str(t, l->limit->name);
		text_z(t, ": ");
		text_u64(t, l->taking.remaining);
		text_z(t, " of ");
		text_u64(t, l->limit->bucket.burst);
		text_z(t, " left");
		if (l->taking.next_ns > 0) {
			text_z(t, ", one more in ");
			text_u64(t, headers_reset_s(&l->taking));
			text_z(t, " s");
		}
		text_z(t, l->taking.refused ? ": refuses" : "");
		text_z(t, l->taking.overflow ? " (shared overflow bucket)" : "");
		text_z(t, l->shadow ? " (shadow)" : "");
		text_char(t, '\n');
	}
}

void explain_words(
	struct text *t, const struct ruleset *rules, const struct request *req, const struct explanation *e)
{
	const struct verdict *v = &e->verdict;

	text_str(t, decision_word(v->decision));
	text_z(t, ": ");
	text_str(t, reason_word(v->reason));
	text_z(t, " (");
	text_str(t, reason_text(v->reason));
	text_z(t, ")");
	if (v->reason == REASON_SHADOW) {
		text_z(t, "; it would have been ");
		text_str(t, reason_word(v->would));
	}
	if (v->has_wait) {
		text_z(t, "; the same request can pass in ");
		text_u64(t, headers_retry_after_s(v));
		text_z(t, " s");
	}
	text_char(t, '\n');
	if (v->reason == REASON_DOOR_MISCONFIGURED) {
		text_z(t, "  the door ");
		text_str(t, door_path(req->door));
		text_z(t, " needs the header ");
		text_str(t, v->fault_header);
		text_z(t, ", and exactly one\n");
	}
	if (!v->has_client)
		return;
	words_client(t, rules, e);
	words_token(t, &v->token);
	words_rules(t, e);
	words_limits(t, v);
	for (unsigned i = 0; i < WARNING_COUNT; i++) {
		if (v->warnings & 1u << i) {
			text_z(t, "warning: ");
			text_str(t, warning_word((enum warning)i));
			text_char(t, '\n');
		}
	}
}
