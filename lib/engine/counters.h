/* SPDX-License-Identifier: MIT */
/*
 * counters: what an engine and its workers are made of; for engine.c and metrics.c only.
 *
 * Model      Arrays of single-writer counters, one set a worker. decisions is [rule label][door][reason].
 * Threads    each worker writes its own set; a scrape reads all.
 */
#ifndef POSTERN_ENGINE_COUNTERS_H
#define POSTERN_ENGINE_COUNTERS_H

#include "base/metric.h"
#include "core/policy.h"
#include "core/reason.h"

#include <stddef.h>

struct store;
struct notice;
struct watch;
struct watch_worker;

#define RULE_LABELS_MAX 200
enum { RULE_LABEL_NONE, RULE_LABEL_OTHER, RULE_LABELS_EXTRA }; /* behind the rules' own labels */

struct identity_counter {
	metric_counter requests;
	metric_counter last_used_ns; /* on the loop's clock; 0: never */
};

struct engine_worker {
	struct engine *engine;
	struct watch_worker *watch;
	metric_counter *decisions;
	struct identity_counter *identities; /* [identity][slot] */
	metric_counter *key_fallbacks;       /* [limit] */
	metric_counter client_reasons[CLIENT_REASON_COUNT];
	metric_counter token_states[TOKEN_STATE_COUNT];
	metric_counter warnings[WARNING_COUNT];
	metric_counter door_headers[DOOR_HEADER_COUNT]; /* found missing or doubled */
	metric_counter label_overflow;
};

struct engine {
	const struct ruleset *rules;
	struct store *store;
	struct notice *notice;
	struct watch *watch;
	struct engine_worker *workers;
	unsigned n_workers;
	size_t n_own_labels, n_rule_labels;
};

#endif
