/* SPDX-License-Identifier: MIT */
/*
 * Writes answers into a buffer. Every piece goes in whole or not at all, and after the first that did not
 * fit nothing goes in: a caller looks at the mark once, and what is there never ends inside an escape.
 * Strings are copied in runs of plain bytes between the ones that need an escape, since nearly all of them
 * have none.
 */
#include "base/text.h"

#define U64_DIGITS 20
#define VISIBLE_FIRST 0x20
#define VISIBLE_LAST 0x7e

static const char hex_digits[] = "0123456789abcdef";

void text_init(struct text *t, char *buffer, size_t cap)
{
	*t = (struct text){.ptr = buffer, .cap = cap};
}

void text_init_arena(struct text *t, struct arena *a, size_t cap)
{
	char *buffer = arena_alloc(a, cap);

	*t = (struct text){.ptr = buffer, .cap = buffer != NULL ? cap : 0, .overflow = buffer == NULL};
}

static void put(struct text *t, const char *bytes, size_t n)
{
	if (t->overflow || n > t->cap - t->len) {
		t->overflow = true;
		return;
	}
	if (n != 0)
		memcpy(t->ptr + t->len, bytes, n);
	t->len += n;
}

void text_char(struct text *t, char c)
{
	if (t->overflow || t->len == t->cap) {
		t->overflow = true;
		return;
	}
	t->ptr[t->len++] = c;
}

void text_str(struct text *t, struct str s)
{
	put(t, s.ptr, s.len);
}

void text_u64(struct text *t, uint64_t v)
{
	static const char pairs[] = "00010203040506070809101112131415161718192021222324"
				    "25262728293031323334353637383940414243444546474849"
				    "50515253545556575859606162636465666768697071727374"
				    "75767778798081828384858687888990919293949596979899";
	char digits[U64_DIGITS];
	size_t at = sizeof(digits);

	if (v < 10) {
		text_char(t, (char)('0' + v));
		return;
	}
	while (v >= 100) {
		at -= 2;
		memcpy(digits + at, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10) {
		at -= 2;
		memcpy(digits + at, pairs + v * 2, 2);
	} else {
		digits[--at] = (char)('0' + v);
	}
	put(t, digits + at, sizeof(digits) - at);
}

static bool is_visible(unsigned char c)
{
	return c >= VISIBLE_FIRST && c <= VISIBLE_LAST;
}

static void put_escaped(struct text *t, unsigned char c)
{
	if (c == '"' || c == '\\')
		put(t, (char[]){'\\', (char)c}, 2);
	else
		put(t, (char[]){'\\', 'u', '0', '0', hex_digits[c >> 4], hex_digits[c & 15]}, 6);
}

void text_json(struct text *t, struct str s)
{
	text_char(t, '"');
	for (;;) {
		size_t run = str_plain(s);

		put(t, s.ptr, run);
		if (run == s.len)
			break;
		put_escaped(t, (unsigned char)s.ptr[run]);
		s = str_from(s, run + 1);
	}
	text_char(t, '"');
}

void text_visible(struct text *t, struct str s, size_t max)
{
	struct str shown = str_head(s, max);
	size_t run = 0;

	for (size_t i = 0; i < shown.len; i++) {
		unsigned char c = (unsigned char)shown.ptr[i];

		if (is_visible(c) && c != '\\')
			continue;
		put(t, shown.ptr + run, i - run);
		run = i + 1;
		if (c == '\\')
			put(t, "\\\\", 2);
		else
			put(t, (char[]){'\\', 'x', hex_digits[c >> 4], hex_digits[c & 15]}, 4);
	}
	put(t, shown.len != 0 ? shown.ptr + run : NULL, shown.len - run);
	if (shown.len < s.len)
		put(t, "...", 3);
}

struct str text_view(const struct text *t)
{
	return str_make(t->ptr, t->len);
}
