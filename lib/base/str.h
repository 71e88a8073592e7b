/* SPDX-License-Identifier: MIT */
/*
 * str: a slice of bytes.
 *
 * Model      Pointer and length; not NUL-terminated, may hold any byte, NUL included. {NULL, 0} is the empty
 *            slice. A NUL-terminated text has a name ending in _z.
 * Ownership  A slice owns nothing: it lives as long as the bytes it points at.
 * Threads    Pure. No locale: "case" means the letters A-Z of ASCII.
 * Errors     none.
 */
#ifndef POSTERN_BASE_STR_H
#define POSTERN_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *ptr;
	size_t len;
};

/* A slice over a string literal, usable in initialisers. */
#define STR(literal) ((struct str){(literal), sizeof(literal) - 1})

/* For printf's "%.*s". The caller knows the bytes are printable. */
#define STR_ARG(s) (int)(s).len, (s).ptr != NULL ? (s).ptr : ""

static inline struct str str_make(const char *ptr, size_t len)
{
	return (struct str){ptr, len};
}

/* The slice over a NUL-terminated text; NULL gives the empty slice. */
static inline struct str str_from_z(const char *text_z)
{
	return (struct str){text_z, text_z != NULL ? strlen(text_z) : 0};
}

static inline bool str_equal(struct str a, struct str b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline char str_lower_char(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static inline bool str_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool str_starts_with(struct str s, struct str prefix);
bool str_starts_with_nocase(struct str s, struct str prefix);

/* Inline, because nearly all names it compares differ in length, and then it costs no call. */
static inline bool str_equal_nocase(struct str a, struct str b)
{
	return a.len == b.len && str_starts_with_nocase(a, b);
}

bool str_ends_with(struct str s, struct str suffix);

/* Order of the bytes, shorter first on a tie; for qsort and bsearch. <0, 0, >0. */
int str_compare(struct str a, struct str b);

/* Index of the first (last) byte c, or s.len if there is none. */
size_t str_find(struct str s, char c);
size_t str_find_last(struct str s, char c);

/* The rest from byte at on (clamped); the first n bytes (clamped). */
struct str str_from(struct str s, size_t at);
struct str str_head(struct str s, size_t n);

/* Without spaces and tabs at both ends. */
struct str str_trim(struct str s);

/* A whole decimal number: digits only, no sign, no leading zero but "0" itself, at most max.
 * Returns false otherwise and leaves *ret alone. */
bool str_to_u64(struct str s, uint64_t max, uint64_t *ret);

/* How many bytes at the start are printable ASCII but neither a quote nor a backslash: what a JSON string holds as it is. */
size_t str_plain(struct str s);

/* True for a byte of a token (RFC 9110 5.6.2). */
bool str_is_token_byte(char c);

/* True for a field name as RFC 9110 5.6.2 has it (token), not empty. */
bool str_is_token(struct str s);

/* Which of names is nearest to s by edit distance (case counts as half), for "did you mean".
 * Returns its index, or n if none is near enough to be worth saying. */
size_t str_nearest(struct str s, const struct str *names, size_t n);

/* 2*len lower-case hex digits and a NUL into out. */
void str_hex(const uint8_t *bytes, size_t len, char *out);

/* Reads exactly 2*len hex digits of either case. False if s is anything else. */
bool str_unhex(struct str s, uint8_t *out, size_t len);

#endif
