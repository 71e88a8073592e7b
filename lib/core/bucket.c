/* SPDX-License-Identifier: MIT */
/*
 * The bucket is kept as a moment in time and not as a count of units, so that nothing is ever accumulated: there is no
 * remainder to lose between calls, no refill step, and a bucket that was never seen needs no memory. The only rounding is
 * the interval's, once, and upwards, which makes a rate like 7,000,000/second stricter by a part in a thousand and never
 * laxer.
 * Overflow: now < 2^62 and room < 2^62, so now + room + cost x interval < 3 x 2^62 fits into 64 bits; bucket_rule_make
 * keeps the room there, the callers keep cost <= burst.
 */
#include "core/bucket.h"

#define COUNT_MAX ((uint64_t)INT32_MAX)
#define ROOM_END_NS ((ns)1 << 62)

bool bucket_rule_make(struct bucket_rule *ret, uint64_t count, ns period_ns, uint64_t burst)
{
	ns interval_ns;
	ns room_ns;

	if (count < 1 || count > COUNT_MAX || burst < 1 || burst > COUNT_MAX)
		return false;
	interval_ns = period_ns / count + (period_ns % count != 0);
	if (interval_ns < 1)
		return false;
	if (__builtin_mul_overflow(interval_ns, burst, &room_ns) || room_ns >= ROOM_END_NS)
		return false;
	*ret = (struct bucket_rule){.interval_ns = interval_ns, .burst = burst};
	return true;
}

static ns bucket_debt_ns(ns paid_at, ns now)
{
	return paid_at > now ? paid_at - now : 0;
}

ns bucket_wait_ns(const struct bucket_rule *r, ns paid_at, uint64_t cost, ns now)
{
	ns owed_ns = bucket_debt_ns(paid_at, now) + cost * r->interval_ns;
	ns room_ns = bucket_room_ns(r);

	return owed_ns > room_ns ? owed_ns - room_ns : 0;
}

ns bucket_charge(const struct bucket_rule *r, ns paid_at, uint64_t cost, ns now)
{
	return (paid_at > now ? paid_at : now) + cost * r->interval_ns;
}

uint64_t bucket_remaining(const struct bucket_rule *r, ns paid_at, ns now)
{
	ns debt_ns = bucket_debt_ns(paid_at, now);

	return debt_ns == 0 ? r->burst : (bucket_room_ns(r) - debt_ns) / r->interval_ns;
}

ns bucket_next_ns(const struct bucket_rule *r, ns paid_at, ns now)
{
	ns debt_ns = bucket_debt_ns(paid_at, now);

	/* A debt of exactly k intervals has a whole interval to go, not none. */
	return debt_ns == 0 ? 0 : (debt_ns - 1) % r->interval_ns + 1;
}
