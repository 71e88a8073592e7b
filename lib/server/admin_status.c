/* SPDX-License-Identifier: MIT */
/*
 * GET /status and GET /top: the facts as JSON. The shape is the contract that api/openapi.yaml describes; all text in it is ASCII
 * or escaped.
 */
#include "server/admin.h"

#include "server/facts.h"
#include "server/write.h"

static const char *next(size_t i)
{
	return i == 0 ? "{" : ", {";
}

static void write_string(struct text *t, const char *separator_z, const char *name_z, const char *value_z)
{
	write_word(t, separator_z, name_z, str_from_z(value_z));
}

static void write_name_or_null(struct text *t, const char *name_z, bool has, struct str value)
{
	write_name(t, ", ", name_z);
	if (has)
		text_json(t, value);
	else
		text_z(t, "null");
}

static void write_ranges(struct text *t, const char *name_z, const struct range_set *set)
{
	char buffer[RANGE_TEXT_BYTES];

	write_name(t, ", ", name_z);
	text_char(t, '[');
	for (size_t i = 0; i < set->n; i++) {
		text_z(t, i == 0 ? "" : ", ");
		text_json(t, str_make(buffer, range_print(&set->items[i], buffer)));
	}
	text_char(t, ']');
}

/* ---------------------------------------------------------------------------------------------------- findings */

static void write_finding(struct text *t, const struct finding *f)
{
	bool first = true;

	write_word(t, "", "code", finding_word(f->code));
	write_name_or_null(t, "rule", f->rule != NULL, f->rule != NULL ? f->rule->name : STR(""));
	write_string(t, ", ", "key", f->key_z);
	write_time(t, ", ", "since", f->since);
	write_name(t, ", ", "signals");
	text_char(t, '[');
	for (unsigned i = 0; i < SIGNAL_COUNT; i++) {
		if (!(f->signals & 1u << i))
			continue;
		text_z(t, first ? "" : ", ");
		text_json(t, signal_word((enum signal)i));
		first = false;
	}
	text_char(t, ']');
	write_number(t, ", ", "requests", f->requests);
	write_string(t, ", ", "text", f->text_z);
	write_string(t, ", ", "cure", f->cure_z);
	text_char(t, '}');
}

static void write_findings(struct text *t, const char *name_z, const struct finding *items, size_t n)
{
	write_name(t, ", ", name_z);
	text_char(t, '[');
	for (size_t i = 0; i < n; i++) {
		text_z(t, next(i));
		write_finding(t, &items[i]);
	}
	text_char(t, ']');
}

static void write_refusals(struct text *t, const struct facts *f)
{
	write_name(t, ", ", "own_service_refused");
	text_char(t, '[');
	for (size_t i = 0; i < f->n_refusals; i++) {
		const struct own_refusal *r = &f->refusals[i];

		write_string(t, next(i), "remote_addr", r->remote_addr_z);
		write_string(t, ", ", "client", r->client_z);
		write_word(t, ", ", "token", token_state_word(r->token));
		write_name_or_null(t, "identity_guess", r->identity_guess != NULL,
			r->identity_guess != NULL ? r->identity_guess->name : STR(""));
		write_word(t, ", ", "reason", reason_word(r->reason));
		write_name_or_null(t, "rule", r->rule != NULL, r->rule != NULL ? r->rule->name : STR(""));
		write_number(t, ", ", "count", r->count);
		write_time(t, ", ", "first", r->first);
		write_time(t, ", ", "last", r->last);
		write_string(t, ", ", "text", r->text_z);
		text_char(t, '}');
	}
	text_char(t, ']');
}

static void write_identities(struct text *t, const struct facts *f)
{
	char buffer[IP_TEXT_BYTES];

	write_name(t, ", ", "identities");
	text_char(t, '[');
	for (size_t i = 0; i < f->n_ledger; i++) {
		const struct own_ledger *l = &f->ledger[i];

		write_word(t, next(i), "name", l->identity->name);
		write_word(t, ", ", "slot", token_slot_word(l->slot));
		write_number(t, ", ", "requests", l->requests);
		write_time(t, ", ", "first_used", l->first_used);
		write_time(t, ", ", "last_used", l->last_used);
		write_name(t, ", ", "addresses");
		text_char(t, '[');
		for (size_t k = 0; k < l->n_addresses; k++) {
			text_z(t, k == 0 ? "" : ", ");
			text_json(t, str_make(buffer, ip_print(&l->addresses[k], buffer)));
		}
		text_char(t, ']');
		write_number(t, ", ", "addresses_left_out", l->addresses_left_out);
		text_char(t, '}');
	}
	text_char(t, ']');
}

/* ---------------------------------------------------------------------------------------------------- the rest */

static void write_client_rule(struct text *t, const struct client_rule *c)
{
	write_name(t, ", ", "client");
	write_word(t, "{", "strategy", strategy_word(c->strategy));
	write_name_or_null(t, "header", c->strategy != STRATEGY_PEER, c->header);
	if (c->strategy == STRATEGY_HOP_COUNT)
		write_number(t, ", ", "hops", c->hops);
	write_ranges(t, "trusted_proxies", &c->trusted);
	write_bool(t, ", ", "trust_any", c->trust_any);
	write_bool(t, ", ", "trust_unix", c->trust_unix);
	text_char(t, '}');
}

static void write_reload(struct text *t, const struct reload_status *r)
{
	write_name(t, ", ", "last_reload");
	write_bool(t, "{", "ok", r->ok);
	write_name_or_null(t, "error", !r->ok, str_from_z(r->error_z));
	write_name(t, "}, ", "restart_required");
	text_char(t, '[');
	for (struct str rest = str_from_z(r->restart_z); rest.len > 0;) {
		size_t comma = str_find(rest, ',');

		text_json(t, str_trim(str_head(rest, comma)));
		rest = str_from(rest, comma + 1);
		text_z(t, rest.len > 0 ? ", " : "");
	}
	text_char(t, ']');
}

static void write_config(struct text *t, const struct facts *f)
{
	const struct config *c = f->config;

	write_word(t, ", \"config\": {", "hash", f->rules->hash);
	write_name_or_null(t, "file", c->file_z[0] != '\0', str_from_z(c->file_z));
	write_time(t, ", ", "loaded_at", f->reload->loaded_at);
	write_reload(t, f->reload);
	write_client_rule(t, &f->rules->client);
	write_ranges(t, "own_networks", &f->rules->own_networks);
	write_number(t, ", ", "rules", f->rules->n_rules);
	write_number(t, ", ", "limits", f->rules->n_limits);
	write_number(t, ", ", "identities", f->rules->identities.n);
	text_char(t, '}');
}

static void write_decided(struct text *t, const struct facts *f)
{
	for (unsigned i = 0; i < DECISION_COUNT; i++) {
		text_z(t, i == 0 ? "" : ", ");
		text_json(t, decision_word((enum decision)i));
		text_z(t, ": ");
		text_u64(t, f->decided[i]);
	}
}

static void write_decisions(struct text *t, const struct facts *f)
{
	text_z(t, ", \"decisions\": {");
	write_decided(t, f);
	text_z(t, ", \"reasons\": {");
	for (unsigned i = 0; i < REASON_COUNT; i++) {
		text_z(t, i == 0 ? "" : ", ");
		text_json(t, reason_word((enum reason)i));
		text_z(t, ": ");
		text_u64(t, f->decisions[i]);
	}
	text_z(t, "}}");
}

static void write_store(struct text *t, const struct facts *f)
{
	write_number(t, ", \"store\": {", "entries", f->table.entries);
	write_number(t, ", ", "capacity", f->table.capacity);
	write_number(t, ", ", "overflow", f->table.overflow_total);
	write_number(t, ", ", "bytes", f->table.bytes);
	text_char(t, '}');
}

static void write_top(struct text *t, const char *name_z, const char *count_z, const struct facts_top *top)
{
	char buffer[CLIENT_KEY_TEXT_BYTES];

	write_name(t, ", ", name_z);
	text_char(t, '[');
	for (size_t i = 0; i < top->n; i++) {
		const struct top_row *r = &top->rows[i];

		write_word(t, next(i), "rule", r->rule->name);
		write_word(t, ", ", "key", str_make(buffer, client_key_text(r->key, r->key_len, buffer)));
		write_number(t, ", ", count_z, r->requests);
		write_number(t, ", ", "error", r->error);
		text_char(t, '}');
	}
	text_char(t, ']');
}

static void write_begin(struct text *t, const struct facts *f)
{
	write_string(t, "{", "version", POSTERN_VERSION);
	write_number(t, ", ", "uptime_s", f->uptime_ns / NS_PER_S);
}

static void write_tops(struct text *t, const struct facts *f)
{
	write_top(t, "refused", "refusals", &f->refused);
	write_top(t, "busiest", "requests", &f->busiest);
}

void admin_write_status(struct text *t, const void *what)
{
	const struct facts *f = what;

	write_begin(t, f);
	write_config(t, f);
	write_findings(t, "warnings", f->findings, f->n_warnings);
	write_refusals(t, f);
	write_findings(t, "notes", f->findings + f->n_warnings, f->n_findings - f->n_warnings);
	write_identities(t, f);
	write_tops(t, f);
	write_decisions(t, f);
	write_store(t, f);
	text_z(t, "}\n");
}

void admin_write_top(struct text *t, const void *what)
{
	const struct facts *f = what;

	write_begin(t, f);
	text_z(t, ", \"decisions\": {");
	write_decided(t, f);
	text_char(t, '}');
	write_tops(t, f);
	text_z(t, "}\n");
}
