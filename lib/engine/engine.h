/* SPDX-License-Identifier: MIT */
/*
 * engine: one decision from request to verdict: plan, store, conclude. Counts what it decides.
 *
 * Model      An engine has one store, one notice board and a fixed number of workers. Each worker counts for itself; a scrape
 *            sums. Deciding never fails: a request that cannot be judged gets reason internal.
 *            A ruleset and what the engine keeps for it are an edition. While workers run, a new one is made, put in
 *            force, and taken by each worker at a moment of its own; the one before is freed when all have it. Buckets
 *            are not touched by that, counters go on by name (of rules, identities and limits), and so does what is known
 *            by watch. The series of a name that is gone stay as they are, until their place is needed.
 * Units      ns on the loop's clock.
 * Ownership  The engine owns its workers, its notice board and the edition in force. Rulesets must outlive their editions;
 *            the store is the caller's and must outlive the engine.
 * Threads    engine_worker, engine_edition_take: confined to the worker's thread. engine_open/close: before and after the
 *            workers. engine_edition_new: any thread, one at a time, and not before the edition before is freed; workers
 *            and scrapes go on meanwhile. engine_edition_set and _retire, engine_rules, engine_watch, engine_*_read,
 *            engine_metrics_write, engine_bucket_forgive: one thread for all of them.
 * Blocking   only on the store.
 * Errors     ERR_MEMORY; engine_edition_new also ERR_FULL, if there are more than 1000 identities or limits.
 * Limits     at most 200 rule labels of a ruleset in metrics, the rest is booked under "_other".
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
struct edition;
struct watch;

MUST_USE enum err engine_open(struct engine **ret, const struct ruleset *rules, struct store *store, unsigned workers);
void engine_close(struct engine *e); /* NULL is fine */

/* In force. */
const struct ruleset *engine_rules(const struct engine *e);
struct edition *engine_edition(const struct engine *e);

/* Its findings, own services and top lists. */
struct watch *engine_watch(struct engine *e);

struct engine_worker *engine_worker_at(struct engine *e, unsigned index);

/* Makes ready what deciding by these rules needs. */
MUST_USE enum err engine_edition_new(struct edition **ret, struct engine *e, const struct ruleset *rules);
void engine_edition_free(struct edition *ed); /* one that was never put in force; NULL is fine */

/* Puts it in force, for scrapes; workers go on as they do. */
void engine_edition_set(struct engine *e, struct edition *ed);

/* Between two decisions of this worker: it goes by this one from now on. */
void engine_edition_take(struct engine_worker *w, const struct edition *ed);

/* Frees the one before, which no worker has any more. Where people are told apart in another way now, faults that were said
 * once are said again. */
void engine_edition_retire(struct engine *e, struct edition *before);

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
