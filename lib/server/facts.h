/* SPDX-License-Identifier: MIT */
/*
 * facts: what /status, the page and /top show, gathered at one moment.
 *
 * Ownership  The caller frees with facts_free; rules, identities and limits are pointers into the ruleset and must not outlive
 *            the question that they were gathered for.
 * Threads    confined to worker 0.
 * Blocking   on the locks of watch and store.
 * Errors     facts_new: NULL without memory.
 * Limits     fixed lists; the ledger has two rows an identity.
 */
#ifndef POSTERN_SERVER_FACTS_H
#define POSTERN_SERVER_FACTS_H

#include "config/config.h"
#include "engine/engine.h"
#include "server/reload.h"
#include "watch/finding.h"
#include "watch/own.h"
#include "watch/top.h"

#include <stddef.h>
#include <stdint.h>

struct facts_top {
	struct top_row rows[TOP_KEYS_MAX];
	size_t n;
};

struct facts {
	ns uptime_ns;
	const struct config *config;
	const struct reload_status *reload;
	const struct ruleset *rules;
	uint64_t decisions[REASON_COUNT], decided[DECISION_COUNT];
	struct facts_top busiest, refused;

	/* Not for /top. */
	struct engine_table table;
	struct finding findings[FINDINGS_MAX]; /* warnings first */
	size_t n_findings, n_warnings;
	struct own_refusal refusals[OWN_REFUSALS_MAX];
	size_t n_refusals;
	struct own_ledger *ledger;
	size_t n_ledger;
};

struct facts_source {
	const struct config *config;
	const struct reload_status *reload;
	struct engine *engine;
	ns now, started; /* on the loop's clock */
};

/* All of it; or what /top shows, of the rule of that index, or of all rules where there is none of it. */
struct facts *facts_new(const struct facts_source *source);
struct facts *facts_new_top(const struct facts_source *source, size_t rule_index);
void facts_free(struct facts *f); /* NULL is fine */

#endif
