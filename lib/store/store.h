/* SPDX-License-Identifier: MIT */
/*
 * store: where buckets live. The port; memory.c stands behind it.
 *
 * Model      A fixed table, its size known at start. 16-byte entries: a 64-bit tag (keyed SipHash of the charge's key) and a
 *            64-bit time; four to a cache line; two candidate lines a key, both in one shard; one lock a shard, taken in
 *            order where a decision has several charges. An entry whose time has passed is an absent one and is reused:
 *            no sweeper. A newcomer whose lines are full of debtors is charged to an overflow bucket of the same limit and
 *            the same wide network (a small table, 1/64 of the size, one place a key; a place that several keys owe to is
 *            charged and, until it is paid, cut for none of them). Nobody in debt is ever evicted, so flooding refunds
 *            nobody.
 *            Inside a shard time never goes back: it keeps the latest now it was given and uses the later one.
 * Units      bytes; ns on one monotonic clock for all workers.
 * Ownership  The store owns its tables; charges and takings are the caller's.
 * Threads    shared. Locks are taken in ascending shard order; never held across a call out.
 * Blocking   only on a shard's lock, for the time of one decision.
 * Errors     store_open: ERR_RANGE (max_bytes under STORE_BYTES_MIN), ERR_MEMORY. store_take cannot fail.
 * Limits     STORE_BYTES_MIN to 64 GiB.
 */
#ifndef POSTERN_STORE_STORE_H
#define POSTERN_STORE_STORE_H

#include "base/clock.h"
#include "base/err.h"
#include "core/charge.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

#define STORE_BYTES_MIN ((size_t)64 * 1024)

MUST_USE enum err store_open(struct store **ret, size_t max_bytes);
void store_close(struct store *s); /* NULL is fine */

/* Takes or peeks n charges (1 to CHARGES_MAX) as charge.h says and fills n takings. */
void store_take(struct store *s, const struct charge *charges, size_t n, ns now, struct taking *ret_takings);

/* The bucket of this key owes nothing any more. False if it owed nothing before. A newcomer that is charged to an overflow
 * bucket has none of its own: what a whole network owes together is not one key's to be forgiven. */
bool store_forgive(struct store *s, struct str key, ns now);

struct store_usage {
	uint64_t entries;   /* buckets in debt now, overflow buckets left out; counted by walking, for a scrape */
	uint64_t capacity;  /* how many entries there can be */
	uint64_t overflow_total; /* charges that an overflow bucket answered */
	size_t bytes;       /* both tables */
};
void store_usage_read(struct store *s, ns now, struct store_usage *ret);

#endif
