/* SPDX-License-Identifier: MIT */
/*
 * GET /: the facts as a page for people. Without a script, and with no style but our own: its Content-Security-Policy allows
 * no other. The worst comes first: whoever opens the page sees without scrolling
 * whether a key looks wrong. Whatever a client or an operator has chosen goes through write_html.
 */
#include "server/admin.h"

#include "server/facts.h"
#include "server/write.h"

static const char style_z[] =
	":root{--ink:#1c1f23;--soft:#5b636d;--line:#d8dde3;--paper:#fff;--bad:#b3261e;--badbg:#fdecea;--note:#8a6100;"
	"--notebg:#fff6e0;--good:#1d6b3a;--goodbg:#e9f6ee}\n"
	"@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#9aa4af;--line:#3a4149;--paper:#16191d;--bad:#ff8a80;"
	"--badbg:#3a1714;--note:#ffce6b;--notebg:#362a0d;--good:#7ddc9c;--goodbg:#10301c}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0;padding:1rem 1.5rem 3rem;background:var(--paper);color:var(--ink);font:15px/1.45 system-ui,sans-serif;"
	"max-width:76rem;margin:0 auto}\n"
	"header{display:flex;flex-wrap:wrap;gap:0 1.5rem;align-items:baseline;border-bottom:1px solid var(--line);"
	"margin-bottom:1rem}\n"
	"h1{font-size:1.3rem;margin:.2rem 0}h2{font-size:1.05rem;margin:1.6rem 0 .4rem}h3{font-size:1rem;margin:0 0 .2rem}\n"
	"p{margin:.2rem 0 .5rem;max-width:60rem}.soft{color:var(--soft)}\n"
	"article,.fine{border-left:5px solid var(--good);background:var(--goodbg);padding:.7rem 1rem;margin:0 0 .8rem}\n"
	".warning{border-color:var(--bad);background:var(--badbg)}.warning h3{color:var(--bad)}\n"
	".note{border-color:var(--note);background:var(--notebg)}.note h3{color:var(--note)}\n"
	"pre,code,td.key{font-family:ui-monospace,monospace;font-size:.9em}\n"
	"pre{margin:.3rem 0 0;padding:.5rem .7rem;background:var(--paper);border:1px solid var(--line);white-space:pre-wrap;"
	"overflow-wrap:anywhere}\n"
	"table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.22rem .7rem .22rem 0;"
	"border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}\n"
	"th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;padding-right:1.5rem;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
	".two{display:grid;grid-template-columns:repeat(auto-fit,minmax(26rem,1fr));gap:0 2.5rem}a{color:inherit}\n";

/* ---------------------------------------------------------------------------------------------------- pieces */

static void put(struct text *t, const char *before_z, struct str s, const char *after_z)
{
	text_z(t, before_z);
	write_html(t, s);
	text_z(t, after_z);
}

static void put_z(struct text *t, const char *before_z, const char *text, const char *after_z)
{
	put(t, before_z, str_from_z(text), after_z);
}

static void put_number(struct text *t, const char *before_z, uint64_t n, const char *after_z)
{
	text_z(t, before_z);
	text_u64(t, n);
	text_z(t, after_z);
}

static void put_time(struct text *t, const char *before_z, ns since_1970, const char *after_z)
{
	text_z(t, before_z);
	write_time_words(t, since_1970);
	text_z(t, after_z);
}

static void put_duration(struct text *t, ns duration)
{
	static const struct {
		uint64_t seconds;
		const char *word_z;
	} units[] = {{86400, " d "}, {3600, " h "}, {60, " min "}, {1, " s"}};
	uint64_t left = duration / NS_PER_S;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (left < units[i].seconds && units[i].seconds > 1)
			continue;
		text_u64(t, left / units[i].seconds);
		text_z(t, units[i].word_z);
		left %= units[i].seconds;
	}
}

static void put_ranges(struct text *t, const struct range_set *set, const char *none_z)
{
	char buffer[RANGE_TEXT_BYTES];

	for (size_t i = 0; i < set->n; i++)
		put(t, i == 0 ? "" : ", ", str_make(buffer, range_print(&set->items[i], buffer)), "");
	text_z(t, set->n == 0 ? none_z : "");
}

/* ---------------------------------------------------------------------------------------------------- sections */

static void put_head(struct text *t, const struct facts *f)
{
	text_z(t, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		  "<meta name=\"viewport\" content=\"width=device-width\"><title>postern: ");
	put_number(t, "", f->n_warnings, f->n_warnings == 1 ? " warning" : " warnings");
	text_z(t, "</title><link rel=\"stylesheet\" href=\"/style.css\"></head>\n<body>\n<header><h1>postern</h1>");
	text_z(t, "<p class=\"soft\">" POSTERN_VERSION ", up for ");
	put_duration(t, f->uptime_ns);
	put(t, ", configuration <code>", f->rules->hash, "</code>");
	put_time(t, " of ", f->reload->loaded_at, "</p>");
	put_number(t, "<p class=\"soft\">", f->decided[DECISION_ALLOW], " allowed, ");
	put_number(t, "", f->decided[DECISION_DENY], " denied</p></header>\n<main>\n");
}

static void put_finding(struct text *t, const struct finding *f, const char *class_z)
{
	put_z(t, "<article class=\"", class_z, "\"><h3>");
	put(t, "", finding_word(f->code), ": ");
	put(t, "", finding_text(f->code), "</h3>\n<p class=\"soft\">");
	if (f->rule != NULL)
		put(t, "rule <code>", f->rule->name, "</code>, ");
	put_z(t, "key <code>", f->key_z, "</code>, since ");
	put_time(t, "", f->since, "</p>\n");
	put_z(t, "<p>", f->text_z, "</p>");
	if (f->cure_z[0] != '\0')
		put_z(t, "\n<p>Cure:</p><pre>", f->cure_z, "</pre>");
	text_z(t, "</article>\n");
}

static void put_reload(struct text *t, const struct reload_status *r)
{
	if (!r->ok)
		put_z(t, "<article class=\"warning\"><h3>the last reload failed</h3>\n<p>The configuration in force stays. First fault:"
			 "</p><pre>", r->error_z, "</pre></article>\n");
	if (r->restart_z[0] != '\0')
		put_z(t, "<article class=\"note\"><h3>waiting for a restart</h3>\n<p>The file says otherwise of <code>", r->restart_z,
			"</code></p></article>\n");
}

static void put_warnings(struct text *t, const struct facts *f)
{
	text_z(t, "<section id=\"warnings\">\n");
	put_reload(t, f->reload);
	for (size_t i = 0; i < f->n_warnings; i++)
		put_finding(t, &f->findings[i], "warning");
	if (f->n_warnings == 0)
		text_z(t, "<p class=\"fine\">No warning: no key looks wrong in the requests seen so far.</p>\n");
	text_z(t, "</section>\n");
}

static void put_refusals(struct text *t, const struct facts *f)
{
	if (f->n_refusals == 0)
		return;
	text_z(t, "<section id=\"own\"><h2>Own services refused</h2>\n");
	for (size_t i = 0; i < f->n_refusals; i++) {
		const struct own_refusal *r = &f->refusals[i];

		put_z(t, "<article class=\"warning\"><h3>", r->remote_addr_z, "");
		if (r->identity_guess != NULL)
			put(t, ", which seems to be ", r->identity_guess->name, "");
		put_number(t, ": refused ", r->count, r->count == 1 ? " time" : " times");
		put_time(t, "</h3>\n<p class=\"soft\">last ", r->last, ", ");
		put(t, "", reason_word(r->reason), ", token ");
		put(t, "", token_state_word(r->token), ", client ");
		put_z(t, "<code>", r->client_z, "</code></p>\n<p>");
		put_z(t, "", r->text_z, "</p></article>\n");
	}
	text_z(t, "</section>\n");
}

static void put_notes(struct text *t, const struct facts *f)
{
	if (f->n_findings == f->n_warnings)
		return;
	text_z(t, "<section id=\"notes\"><h2>Worth knowing</h2>\n");
	for (size_t i = f->n_warnings; i < f->n_findings; i++)
		put_finding(t, &f->findings[i], "note");
	text_z(t, "</section>\n");
}

static void put_top(struct text *t, const struct facts_top *top, const char *id_z, const char *title_z)
{
	char buffer[CLIENT_KEY_TEXT_BYTES];

	put_z(t, "<section id=\"", id_z, "\"><h2>");
	put_z(t, "", title_z, "</h2>\n");
	if (top->n == 0) {
		text_z(t, "<p class=\"soft\">Nobody.</p></section>\n");
		return;
	}
	text_z(t, "<table><tr><th>key</th><th>rule</th><th class=\"n\">requests</th></tr>\n");
	for (size_t i = 0; i < top->n; i++) {
		const struct top_row *r = &top->rows[i];
		struct str key = str_make(buffer, client_key_text(r->key, r->key_len, buffer));

		put(t, "<tr><td class=\"key\"><a href=\"/keys/*/", key, "\">");
		put(t, "", key, "</a></td><td>");
		put(t, "", r->rule->name, "</td><td class=\"n\">");
		text_u64(t, r->requests);
		if (r->error > 0)
			put_number(t, " <span class=\"soft\">(at most ", r->error, " too many)</span>");
		text_z(t, "</td></tr>\n");
	}
	text_z(t, "</table></section>\n");
}

static void put_identities(struct text *t, const struct facts *f)
{
	char buffer[IP_TEXT_BYTES];

	text_z(t, "<section id=\"identities\"><h2>Our own services</h2>\n");
	if (f->n_ledger == 0) {
		text_z(t, "<p class=\"soft\">None is configured.</p></section>\n");
		return;
	}
	text_z(t, "<table><tr><th>identity</th><th>token</th><th class=\"n\">requests</th><th>last used</th><th>from</th></tr>\n");
	for (size_t i = 0; i < f->n_ledger; i++) {
		const struct own_ledger *l = &f->ledger[i];

		put(t, "<tr><td>", l->identity->name, "</td><td>");
		put(t, "", token_slot_word(l->slot), "</td>");
		put_number(t, "<td class=\"n\">", l->requests, "</td><td>");
		put_time(t, "", l->last_used, "</td><td class=\"key\">");
		for (size_t k = 0; k < l->n_addresses; k++)
			put(t, k == 0 ? "" : ", ", str_make(buffer, ip_print(&l->addresses[k], buffer)), "");
		text_z(t, "</td></tr>\n");
	}
	text_z(t, "</table></section>\n");
}

static void put_decisions(struct text *t, const struct facts *f)
{
	text_z(t, "<section id=\"decisions\"><h2>Decisions</h2>\n<table>");
	for (unsigned i = 0; i < REASON_COUNT; i++) {
		enum reason r = (enum reason)i;

		if (f->decisions[i] == 0)
			continue;
		put(t, "<tr><td>", decision_word(reason_decision(r)), "</td><td>");
		put(t, "<code>", reason_word(r), "</code> <span class=\"soft\">");
		put(t, "", reason_text(r), "</span></td>");
		put_number(t, "<td class=\"n\">", f->decisions[i], "</td></tr>\n");
	}
	text_z(t, "</table></section>\n");
}

static void put_table(struct text *t, const struct facts *f)
{
	put_number(t, "<section id=\"table\"><h2>Table of buckets</h2>\n<p>", f->table.entries, " of ");
	put_number(t, "", f->table.capacity, " entries in debt, ");
	put_number(t, "", f->table.overflow_total, " charges to a shared overflow bucket, ");
	put_number(t, "", f->table.bytes / 1024, " KiB.</p></section>\n");
}

/* ---------------------------------------------------------------------------------------------------- configuration */

static void put_client_rule(struct text *t, const struct client_rule *c)
{
	put(t, "<tr><td>client</td><td>", strategy_word(c->strategy), "");
	if (c->strategy != STRATEGY_PEER)
		put(t, " of ", c->header, "");
	if (c->strategy == STRATEGY_HOP_COUNT)
		put_number(t, ", hops ", c->hops, "");
	text_z(t, ", trusting ");
	if (c->trust_any)
		text_z(t, "anybody");
	else
		put_ranges(t, &c->trusted, c->trust_unix ? "" : "nobody");
	if (c->trust_unix)
		text_z(t, c->trusted.n > 0 ? ", unix" : "unix");
	text_z(t, "</td></tr>\n");
}

static void put_rules(struct text *t, const struct ruleset *r)
{
	static const char *const actions[] = {[ACTION_LIMIT] = "", [ACTION_DENY] = "deny", [ACTION_ALLOW] = "allow"};

	text_z(t, "<table><tr><th>rule</th><th>limits</th></tr>\n");
	for (size_t i = 0; i < r->n_rules; i++) {
		const struct rule *rule = &r->rules[i];

		put(t, "<tr><td>", rule->name, "</td><td>");
		text_z(t, actions[rule->action]);
		for (size_t k = 0; k < rule->n_limits; k++)
			put(t, k == 0 ? "" : ", ", r->limits[rule->limits[k]].name, "");
		text_z(t, rule->require != REQUIRE_NOTHING ? " (an identity is required)" : "");
		text_z(t, rule->shadow ? " (shadow: refuses nobody)" : "");
		text_z(t, "</td></tr>\n");
	}
	text_z(t, "</table>\n");
}

static void put_limits(struct text *t, const struct ruleset *r)
{
	text_z(t, "<table><tr><th>limit</th><th class=\"n\">burst</th><th class=\"n\">refilled in</th></tr>\n");
	for (size_t i = 0; i < r->n_limits; i++) {
		put(t, "<tr><td>", r->limits[i].name, "</td>");
		put_number(t, "<td class=\"n\">", r->limits[i].bucket.burst, "</td>");
		put_number(t, "<td class=\"n\">", r->limits[i].window_s, " s</td></tr>\n");
	}
	text_z(t, "</table>\n");
}

static void put_config(struct text *t, const struct facts *f)
{
	const struct ruleset *r = f->rules;

	text_z(t, "<section id=\"config\"><h2>Configuration in force</h2>\n<table>\n");
	put_z(t, "<tr><td>file</td><td>", f->config->file_z[0] != '\0' ? f->config->file_z : "none", "</td></tr>\n");
	put_client_rule(t, &r->client);
	text_z(t, "<tr><td>own networks</td><td>");
	put_ranges(t, &r->own_networks, "none");
	text_z(t, "</td></tr></table>\n<div class=\"two\"><div>");
	put_rules(t, r);
	text_z(t, "</div><div>");
	put_limits(t, r);
	text_z(t, "</div></div></section>\n");
}

void admin_write_page(struct text *t, const void *what)
{
	const struct facts *f = what;

	put_head(t, f);
	put_warnings(t, f);
	put_refusals(t, f);
	put_notes(t, f);
	text_z(t, "<div class=\"two\">\n");
	put_top(t, &f->refused, "refused", "Most refused");
	put_top(t, &f->busiest, "busiest", "Busiest");
	text_z(t, "</div>\n");
	put_identities(t, f);
	put_decisions(t, f);
	put_table(t, f);
	put_config(t, f);
	text_z(t, "</main></body></html>\n");
}

void admin_write_style(struct text *t, const void *nothing)
{
	(void)nothing;
	text_z(t, style_z);
}
