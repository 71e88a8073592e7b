/* SPDX-License-Identifier: MIT */
/*
 * What people ask a running engine, and the one thing they may change: forgive a bucket. A bucket is read by the very call that
 * charges it, as a peek, so that what is shown is what the next request will find, the shared overflow bucket included.
 */
#include "engine/engine.h"

#include "engine/counters.h"

#include "store/store.h"

void engine_decisions_read(const struct engine *e, uint64_t ret[REASON_COUNT])
{
	size_t series = e->edition->rosters[NAMED_RULES].n * DOOR_COUNT * REASON_COUNT;

	for (size_t i = 0; i < REASON_COUNT; i++)
		ret[i] = 0;
	for (unsigned w = 0; w < e->n_workers; w++)
		for (size_t i = 0; i < series; i++)
			ret[i % REASON_COUNT] += metric_get(&e->workers[w].rows[NAMED_RULES][i]);
}

void engine_table_read(struct engine *e, ns now, struct engine_table *ret)
{
	struct store_usage usage;

	store_usage_read(e->store, now, &usage);
	*ret = (struct engine_table){usage.entries, usage.capacity, usage.overflow_total, usage.bytes};
}

void engine_bucket_read(
	struct engine *e, const struct limit *limit, const struct policy_keys *keys, ns now, struct taking *ret)
{
	const struct charge peek = {
		.rule = limit->bucket, .cost = 1, .peek = true, .key = keys->bucket, .wide = keys->wide};

	store_take(e->store, &peek, 1, now, ret);
}

bool engine_bucket_forgive(struct engine *e, const struct policy_keys *keys, ns now)
{
	return store_forgive(e->store, keys->bucket, now);
}
