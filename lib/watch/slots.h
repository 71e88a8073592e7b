/* SPDX-License-Identifier: MIT */
/*
 * slots: a space-saving sketch; private to watch. Tells which place of an array of the caller's belongs to a hash.
 *
 * Model      A newcomer to a full list takes the place of the least and inherits its count as its error, so whoever makes
 *            up more than 1/max of the stream is in the list.
 * Ownership  The caller's; all zeros is the empty list.
 * Threads    confined.
 * Limits     SLOTS_MAX places.
 * Source     Metwally, Agrawal, El Abbadi (2005); see top.h.
 */
#ifndef POSTERN_WATCH_SLOTS_H
#define POSTERN_WATCH_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOTS_MAX 32
#define SLOTS_NONE SLOTS_MAX

struct slot {
	uint64_t hash; /* of the key */
	uint64_t count, error; /* count is too high by at most error */
};

struct slots {
	size_t n;
	uint64_t hashes[SLOTS_MAX], counts[SLOTS_MAX], errors[SLOTS_MAX];
};

/* The place of this hash in a list of at most max, with weight added to it. *ret_is_new: it was given to this hash now, and
 * what stands there is another's. */
size_t slots_take(struct slots *s, size_t max, uint64_t hash, uint64_t weight, bool *ret_is_new);

/* The same for a list being merged: SLOTS_NONE where the list is full and nobody in it counts less. */
size_t slots_merge(struct slots *s, size_t max, const struct slot *from, bool *ret_is_new);

struct slot slots_at(const struct slots *s, size_t i);

#endif
