/* SPDX-License-Identifier: MIT */
/*
 * arena: the workspace of one request, or of one frozen configuration.
 *
 * Model      Bump allocation from one block of a fixed size. A request that does not fit marks the arena as
 *            overflown for good (until reset), and nothing fits after that: build everything, look at the mark once.
 * Units      bytes; every allocation is aligned to 16.
 * Ownership  The block is the caller's; up to 15 bytes at either end are left unused to align it.
 * Threads    confined.
 * Errors     arena_alloc: NULL and overflow set. A size of 0 gives a valid pointer.
 */
#ifndef POSTERN_BASE_ARENA_H
#define POSTERN_BASE_ARENA_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct arena {
	char *base;
	size_t size, used;
	bool overflow;
};

void arena_init(struct arena *a, void *block, size_t size);
void arena_reset(struct arena *a);

/* n bytes, not cleared, or NULL. */
void *arena_alloc(struct arena *a, size_t n);

/* Gives back p, which is not NULL, and all that was taken behind it. */
void arena_release(struct arena *a, const void *p);

/* count items of size bytes each; the product is checked. */
void *arena_array(struct arena *a, size_t count, size_t size);

/* A copy that lives as long as the arena; {NULL, 0} on overflow. */
struct str arena_copy(struct arena *a, struct str s);

#endif
