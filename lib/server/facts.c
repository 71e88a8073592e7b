/* SPDX-License-Identifier: MIT */
/*
 * Gathering costs milliseconds where the table is large, since its entries are counted by walking; so it happens when asked and
 * not on a timer, and a list of the busiest is read without it.
 */
#include "server/facts.h"

#include "watch/watch.h"

#include <stdlib.h>

static struct facts *facts_start(const struct facts_source *s)
{
	struct facts *f = malloc(sizeof(*f));

	if (f == NULL)
		return NULL;
	f->uptime_ns = s->now - s->started;
	f->config = s->config;
	f->reload = s->reload;
	f->rules = engine_rules(s->engine);
	f->ledger = NULL;
	f->n_ledger = f->n_findings = f->n_warnings = f->n_refusals = 0;
	engine_decisions_read(s->engine, f->decisions);
	for (size_t i = 0; i < DECISION_COUNT; i++)
		f->decided[i] = 0;
	for (unsigned i = 0; i < REASON_COUNT; i++)
		f->decided[reason_decision((enum reason)i)] += f->decisions[i];
	return f;
}

struct facts *facts_new_top(const struct facts_source *s, size_t rule_index)
{
	struct facts *f = facts_start(s);
	struct watch *w = engine_watch(s->engine);

	if (f == NULL)
		return NULL;
	if (rule_index < f->rules->n_rules) {
		f->busiest.n = top_read(w, rule_index, TOP_BUSIEST, s->now, f->busiest.rows, TOP_KEYS_MAX);
		f->refused.n = top_read(w, rule_index, TOP_REFUSED, s->now, f->refused.rows, TOP_KEYS_MAX);
	} else {
		f->busiest.n = top_read_all(w, TOP_BUSIEST, s->now, f->busiest.rows, TOP_KEYS_MAX);
		f->refused.n = top_read_all(w, TOP_REFUSED, s->now, f->refused.rows, TOP_KEYS_MAX);
	}
	return f;
}

struct facts *facts_new(const struct facts_source *s)
{
	struct facts *f = facts_new_top(s, SIZE_MAX);
	struct watch *w = engine_watch(s->engine);
	ns wall_now = clock_wall_ns();
	size_t n;

	if (f == NULL)
		return NULL;
	n = f->rules->identities.n * TOKEN_SLOT_COUNT;
	f->ledger = malloc((n + 1) * sizeof(*f->ledger));
	if (f->ledger == NULL) {
		facts_free(f);
		return NULL;
	}
	f->n_ledger = own_ledger_read(w, s->now, wall_now, f->ledger, n);
	f->n_refusals = own_refusals_read(w, s->now, wall_now, f->refusals, OWN_REFUSALS_MAX);
	f->n_findings = watch_findings(w, s->now, wall_now, f->findings, FINDINGS_MAX);
	while (f->n_warnings < f->n_findings &&
		finding_level_of(f->findings[f->n_warnings].code) == FINDING_WARNING)
		f->n_warnings++;
	engine_table_read(s->engine, s->now, &f->table);
	return f;
}

void facts_free(struct facts *f)
{
	if (f == NULL)
		return;
	free(f->ledger);
	free(f);
}
