/* SPDX-License-Identifier: MIT */
/*
 * counters: what an engine and its workers are made of; for the files of engine only.
 *
 * Model      Arrays of single-writer counters, one set a worker, indexed by rows: a row has a name (of a rule, an identity or
 *            a limit) and keeps it while rulesets come and go, so a counter goes on where the name does. An edition is a
 *            ruleset and the rows of its names. A row whose name is in no ruleset any more is free for another one.
 * Threads    Each worker writes its own set, and knows which edition it goes by; a scrape reads all. Editions are frozen.
 */
#ifndef POSTERN_ENGINE_COUNTERS_H
#define POSTERN_ENGINE_COUNTERS_H

#include "base/metric.h"
#include "core/policy.h"
#include "core/reason.h"
#include "engine/engine.h"

#include <stddef.h>

struct store;
struct notice;
struct watch;
struct watch_worker;

#define ROW_NAME_BYTES 64 /* 63 at most, and a NUL */
#define RULE_LABELS_MAX 200

/* Whose names have rows. */
enum named { NAMED_RULES, NAMED_IDENTITIES, NAMED_LIMITS, NAMED_COUNT };

/* The first rows of rules are not of a name: no rule, and those beyond RULE_LABELS_MAX. */
enum { ROW_NO_RULE, ROW_OTHER_RULE };

/* What is counted for an identity's slot. */
enum { IDENTITY_REQUESTS, IDENTITY_LAST_USED_NS /* on the loop's clock; 0: never */, IDENTITY_COUNTERS };

struct engine_worker {
	struct engine *engine;
	const struct edition *edition; /* this and the next are read and written by the worker alone */
	struct watch_worker *watch;
	/* [row][door][reason] of rules, [row][slot][IDENTITY_COUNTERS] of identities, [row] of limits: parts of keys that
	 * were replaced by the client. */
	metric_counter *rows[NAMED_COUNT];
	metric_counter client_reasons[CLIENT_REASON_COUNT];
	metric_counter token_states[TOKEN_STATE_COUNT];
	metric_counter warnings[WARNING_COUNT];
	metric_counter door_headers[DOOR_HEADER_COUNT]; /* found missing or doubled */
	metric_counter label_overflow;
};

struct row {
	char name_z[ROW_NAME_BYTES];
	bool is_used; /* the edition's ruleset has this name */
};

struct roster {
	struct row *rows;
	size_t n;
	uint16_t *row_of; /* by index in the ruleset */
};

struct edition {
	const struct ruleset *rules;
	struct watch *watch;
	struct roster rosters[NAMED_COUNT];
};

struct engine {
	struct edition *edition; /* in force: for scrapes, and for the next one to go on from */
	struct store *store;
	struct notice *notice;
	struct engine_worker *workers;
	unsigned n_workers;
};

/* Room for the rows of one worker. */
MUST_USE enum err rows_new(struct engine_worker *w);
void rows_free(struct engine_worker *w);

/* Of the row of what has this index in the worker's ruleset, or of one of those of no name. */
static inline metric_counter *rows_decision(struct engine_worker *w, size_t row, enum door d, enum reason r)
{
	return &w->rows[NAMED_RULES][(row * DOOR_COUNT + d) * REASON_COUNT + r];
}

static inline metric_counter *rows_identity(struct engine_worker *w, size_t row, enum token_slot slot)
{
	return &w->rows[NAMED_IDENTITIES][(row * TOKEN_SLOT_COUNT + slot) * IDENTITY_COUNTERS];
}

static inline metric_counter *rows_limit(struct engine_worker *w, size_t row)
{
	return &w->rows[NAMED_LIMITS][row];
}

#endif
