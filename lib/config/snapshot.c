/* SPDX-License-Identifier: MIT */
/*
 * A reader announces what it holds in a place of its own, so that nobody shares a cache line with anybody on the way to a
 * decision, and the publisher looks at all those places. That is enough because there are never more than two values: a
 * reader that has announced the new one can never find the old one again, since the place it looks at only moves on.
 * The order of memory: what a reader did with the old value comes before its announcement (release), and the publisher's
 * look at that (acquire) before whatever frees the value.
 */
#include "config/snapshot.h"

#include "base/must.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#define CACHE_LINE_BYTES 64

struct reader {
	alignas(CACHE_LINE_BYTES) _Atomic(const void *) held;
};

struct snapshot {
	_Atomic(void *) current;
	void *before; /* to retire; NULL: nothing */
	unsigned n_readers;
	struct reader readers[];
};

enum err snapshot_open(struct snapshot **ret, unsigned readers, void *first)
{
	size_t bytes = sizeof(struct snapshot) + readers * sizeof(struct reader);
	struct snapshot *s = aligned_alloc(CACHE_LINE_BYTES, bytes);

	if (s == NULL)
		return ERR_MEMORY;
	atomic_init(&s->current, first);
	s->before = NULL;
	s->n_readers = readers;
	for (unsigned i = 0; i < readers; i++)
		atomic_init(&s->readers[i].held, first);
	*ret = s;
	return ERR_OK;
}

void snapshot_close(struct snapshot *s)
{
	free(s);
}

const void *snapshot_pass(struct snapshot *s, unsigned reader)
{
	const void *value = atomic_load_explicit(&s->current, memory_order_acquire);

	atomic_store_explicit(&s->readers[reader].held, value, memory_order_release);
	return value;
}

void snapshot_publish(struct snapshot *s, void *next)
{
	must(s->before == NULL);
	s->before = atomic_exchange_explicit(&s->current, next, memory_order_acq_rel);
}

void *snapshot_retire(struct snapshot *s)
{
	void *before = s->before;

	for (unsigned i = 0; i < s->n_readers; i++) {
		if (atomic_load_explicit(&s->readers[i].held, memory_order_acquire) == before)
			return NULL;
	}
	s->before = NULL;
	return before;
}
