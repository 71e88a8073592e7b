/* SPDX-License-Identifier: MIT */
/*
 * engine: one decision from request to verdict: plan, store, conclude. Counts what it decides.
 *
 * Model      An engine has one ruleset, one store, one notice board, one watch and a fixed number of workers. Each worker counts for
 *            itself; a scrape sums. Deciding never fails: a request that cannot be judged gets reason internal.
 * Units      ns on the loop's clock.
 * Ownership  The engine owns its workers, notice board and watch; ruleset and store are the caller's and must outlive it.
 * Threads    engine_worker: confined to one thread. engine_open/close: before and after the workers.
 *            engine_metrics_write, engine_*_read, engine_bucket_forgive: any thread, while workers run.
 * Blocking   only on the store.
 * Errors     engine_open: ERR_MEMORY.
 * Limits     at most 200 rule labels in metrics, the rest is booked under "_other".
 */
#ifndef POSTERN_ENGINE_ENGINE_H
#define POSTERN_ENGINE_ENGINE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "core/decide.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;
struct engine;
struct engine_worker;
struct watch;

MUST_USE enum err engine_open(struct engine **ret, const struct ruleset *rules, struct store *store, unsigned workers);
void engine_close(struct engine *e); /* NULL is fine */

const struct ruleset *engine_rules(const struct engine *e);
struct engine_worker *engine_worker_at(struct engine *e, unsigned index);

/* For findings, own services and top lists. */
struct watch *engine_watch(struct engine *e);

/* Judges, charges, counts, and has the notice board and the watch look at the verdict. */
void engine_decide(struct engine_worker *w, const struct request *req, struct arena *a, ns now, struct verdict *ret);

/* The same decision with its reasoning; charges and counts nothing. */
void engine_explain(struct engine_worker *w, const struct request *req, struct arena *a, ns now,
	struct explanation *ret);

/* Decisions since start, by reason. */
void engine_decisions_read(const struct engine *e, uint64_t ret[REASON_COUNT]);

/* How full the store is; counted by walking it. */
struct engine_table {
	uint64_t entries, capacity, overflow_total;
	size_t bytes;
};
void engine_table_read(struct engine *e, ns now, struct engine_table *ret);

/* What is in one bucket; takes nothing. */
void engine_bucket_read(
	struct engine *e, const struct limit *limit, const struct policy_keys *keys, ns now, struct taking *ret);

/* As store_forgive. */
bool engine_bucket_forgive(struct engine *e, const struct policy_keys *keys, ns now);

/* The families that engine and store own, in Prometheus text form. wall_now: time since 1970 at the same moment as now. */
void engine_metrics_write(struct engine *e, struct text *t, ns now, ns wall_now);

#endif
