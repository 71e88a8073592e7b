/* SPDX-License-Identifier: MIT */
/*
 * text: writes an answer by hand.
 *
 * Model      A cursor over a buffer with a sticky overflow mark: write everything, look once at the end.
 *            jansson's printing costs 50 times more (measured), hence this.
 * Ownership  The buffer is the caller's.
 * Threads    confined.
 * Errors     overflow is set and nothing more is written; what stands before stays valid.
 */
#ifndef POSTERN_BASE_TEXT_H
#define POSTERN_BASE_TEXT_H

#include "base/arena.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
	char *ptr;
	size_t len, cap;
	bool overflow;
};

void text_init(struct text *t, char *buffer, size_t cap);

/* Takes cap bytes of the arena; if it has none, the text is overflown from the start. */
void text_init_arena(struct text *t, struct arena *a, size_t cap);

void text_char(struct text *t, char c);
void text_str(struct text *t, struct str s);
/* Inline, so that the length of a literal is known when it is compiled. */
static inline void text_z(struct text *t, const char *text_z)
{
	text_str(t, str_from_z(text_z));
}

void text_u64(struct text *t, uint64_t v);

/* s as a JSON string with its quotes. Bytes from 0x80 up stand for U+0080..U+00FF (one byte, one character), and
 * everything outside 0x20..0x7e is written as \u00XX, so any byte is legal and the output is plain ASCII. */
void text_json(struct text *t, struct str s);

/* s in plain ASCII for people: bytes outside 0x20..0x7e as \xNN, the backslash doubled, cut to max bytes of input
 * with "..." behind where it was longer. For hostile text in logs, explain and error messages. */
void text_visible(struct text *t, struct str s, size_t max);

/* What was written so far. Check overflow before using it for an answer. */
struct str text_view(const struct text *t);

#endif
