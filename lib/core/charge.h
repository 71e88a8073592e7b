/* SPDX-License-Identifier: MIT */
/*
 * charge: what a plan asks the store to take, and what the store says to each.
 *
 * Model      The enforced charges of a plan are one group, its shadow charges another. Each group is taken all or none;
 *            the shadow group is taken only if the enforced one was. Every charge gets its own outcome, in the same
 *            order. A peek takes nothing and gets the same outcomes.
 *            The key holds the limit's name and the key's parts, each with its length in front, so that every door, every
 *            instance and every reload means the same bucket.
 * Ownership  Slices live in the request's arena.
 * Threads    confined.
 */
#ifndef POSTERN_CORE_CHARGE_H
#define POSTERN_CORE_CHARGE_H

#include "core/bucket.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHARGES_MAX 16

struct charge {
	struct bucket_rule rule;
	uint32_t cost;      /* at most rule.burst */
	bool peek;
	bool shadow;
	struct str key;     /* names the bucket */
	struct str wide;    /* names the overflow bucket: same limit, the client's wide network */
};

struct taking {
	bool refused;       /* this bucket does not hold the cost */
	bool overflow;      /* a shared overflow bucket answered */
	uint64_t remaining; /* whole units left, after taking if the group was taken */
	ns wait_ns;         /* refused: until the cost fits; else 0 */
	ns next_ns;         /* until one more whole unit; 0 only when full */
};

#endif
