/* SPDX-License-Identifier: MIT */
/*
 * bucket: how much a key may still spend.
 *
 * Model      GCRA. One number a key: the moment at which all debt is paid (paid_at). A bucket that was never used, or
 *            whose moment has passed, is full; absent and full are the same. Equal to a token bucket of this interval
 *            that starts full and refills continuously.
 * Units      ns on the caller's monotonic clock; cost and burst in whole units.
 * Ownership  None; plain arithmetic on values.
 * Threads    Pure. The caller serialises calls on one bucket, and sees to it that now never goes back.
 * Errors     bucket_rule_make: false outside the limits. The rest cannot fail or overflow within them.
 * Limits     count and burst 1 to 2^31-1; the interval (rounded up) 1 ns to 2^62; interval x burst below 2^62; now below 2^62.
 *            Over any window W a bucket passes at most burst + W / interval.
 * Source     ITU-T I.371 (GCRA, virtual scheduling); rounding up keeps the error on the strict side.
 */
#ifndef POSTERN_CORE_BUCKET_H
#define POSTERN_CORE_BUCKET_H

#include "base/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct bucket_rule {
	ns interval_ns;  /* time one unit takes */
	uint64_t burst;  /* units a full bucket holds */
};

/* count units each period_ns, at most burst at once. */
bool bucket_rule_make(struct bucket_rule *ret, uint64_t count, ns period_ns, uint64_t burst);

/* Time that refills an empty bucket: interval x burst. */
static inline ns bucket_room_ns(const struct bucket_rule *r)
{
	return r->interval_ns * r->burst;
}

/* A debt larger than the bucket can hold (the limit was lowered) is cut to what it holds. */
static inline ns bucket_cut(const struct bucket_rule *r, ns paid_at, ns now)
{
	ns most = now + bucket_room_ns(r);

	return paid_at > most ? most : paid_at;
}

/* How long until cost units fit; 0: they fit now. cost is 1 to burst; paid_at is cut. */
ns bucket_wait_ns(const struct bucket_rule *r, ns paid_at, uint64_t cost, ns now);

/* The moment after taking cost units that fit. */
ns bucket_charge(const struct bucket_rule *r, ns paid_at, uint64_t cost, ns now);

/* Whole units there now; at most burst. */
uint64_t bucket_remaining(const struct bucket_rule *r, ns paid_at, ns now);

/* Time until there is one whole unit more; 0 only when full. */
ns bucket_next_ns(const struct bucket_rule *r, ns paid_at, ns now);

#endif
