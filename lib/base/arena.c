/* SPDX-License-Identifier: MIT */
/*
 * Bump allocation. The block is trimmed to 16 bytes at both ends when it comes in, so that an allocation is
 * one addition and one comparison, and "does it fit" never has to think about padding.
 * Once something did not fit nothing does any more: a small piece that still fits behind a large one that
 * did not would only make half-built answers look whole.
 */
#include "base/arena.h"

#define ALIGN ((size_t)16)

void arena_init(struct arena *a, void *block, size_t size)
{
	size_t skip = (size_t)(-(uintptr_t)block & (ALIGN - 1));

	if (block == NULL || size < skip)
		*a = (struct arena){0};
	else
		*a = (struct arena){.base = (char *)block + skip, .size = (size - skip) & ~(ALIGN - 1)};
}

void arena_reset(struct arena *a)
{
	a->used = 0;
	a->overflow = false;
}

void *arena_alloc(struct arena *a, size_t n)
{
	char *p;

	if (a->overflow || a->base == NULL || n > a->size - a->used) {
		a->overflow = true;
		return NULL;
	}
	p = a->base + a->used;
	/* size is a multiple of ALIGN, so rounding up stays within it. */
	a->used += (n + ALIGN - 1) & ~(ALIGN - 1);
	return p;
}

void arena_release(struct arena *a, const void *p)
{
	a->used = (size_t)((const char *)p - a->base);
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
	size_t n;

	if (__builtin_mul_overflow(count, size, &n)) {
		a->overflow = true;
		return NULL;
	}
	return arena_alloc(a, n);
}

struct str arena_copy(struct arena *a, struct str s)
{
	char *p = arena_alloc(a, s.len);

	if (p == NULL)
		return (struct str){NULL, 0};
	if (s.len != 0)
		memcpy(p, s.ptr, s.len);
	return str_make(p, s.len);
}
