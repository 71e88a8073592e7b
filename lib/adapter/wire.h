/* SPDX-License-Identifier: MIT */
/*
 * wire: writes a Protocol Buffers message by hand.
 *
 * Model      Back to front: the last field first, the inside of a message before its head. So every length is known when it
 *            is written, nothing is measured twice or moved, and no tree of structures is built. A sticky overflow mark.
 * Ownership  The room is the arena's; the finished message is a view of it.
 * Threads    confined.
 * Errors     overflow is set, also in the arena, and nothing more is written.
 * Source     https://protobuf.dev/programming-guides/encoding
 */
#ifndef POSTERN_ADAPTER_WIRE_H
#define POSTERN_ADAPTER_WIRE_H

#include "base/arena.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
	char *base;
	size_t at, size; /* what is written lies from at to size */
	struct arena *arena;
	bool overflow;
};

/* Takes size bytes of the arena. */
void wire_init(struct wire *w, struct arena *a, size_t size);

void wire_varint(struct wire *w, unsigned field, uint64_t value);

/* A string, bytes or a finished message. */
void wire_bytes(struct wire *w, unsigned field, struct str value);

/* The same with the letters A-Z as a-z: names of header lines. */
void wire_lower(struct wire *w, unsigned field, struct str value);

/* Two texts with a dot between them: names of services. */
void wire_joined(struct wire *w, unsigned field, struct str first, struct str second);

/* A message inside: mark, write its fields, then close with that mark. */
static inline size_t wire_mark(const struct wire *w)
{
	return w->at;
}
void wire_close(struct wire *w, unsigned field, size_t mark);

/* What was written. Look at overflow first. */
struct str wire_view(const struct wire *w);

/* Reads the next field of a message that is known to be sound; false at its end, or where it is not. value: the bytes of a
 * length-delimited field, else empty. */
bool wire_next(struct str *rest, unsigned *ret_field, struct str *ret_value);

#endif
