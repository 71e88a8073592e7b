/* SPDX-License-Identifier: MIT */
/*
 * slots: a space-saving sketch over an array of any item that begins with a struct slot; private to watch.
 *
 * Model      A newcomer to a full list takes the place of the least and inherits its count as its error, so whoever makes
 *            up more than 1/max of the stream is in the list.
 * Ownership  The array is the caller's.
 * Threads    confined.
 * Source     Metwally, Agrawal, El Abbadi (2005); see top.h.
 */
#ifndef POSTERN_WATCH_SLOTS_H
#define POSTERN_WATCH_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct slot {
	uint64_t hash; /* of the key */
	uint64_t count, error; /* count is too high by at most error */
};

/* A view of an array whose items begin with a struct slot. */
struct slots {
	void *items;
	size_t item_size, max;
	size_t *n;
};

/* The item of this hash with weight added to it. *ret_is_new: it is all zeros behind its slot. Never NULL. */
void *slots_take(struct slots s, uint64_t hash, uint64_t weight, bool *ret_is_new);

/* The item of this hash, or NULL. */
void *slots_find(struct slots s, uint64_t hash);

/* The same for a list being merged: NULL where the list is full and nobody in it counts less. */
void *slots_merge(struct slots s, const struct slot *from, bool *ret_is_new);

#endif
