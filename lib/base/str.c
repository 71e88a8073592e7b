/* SPDX-License-Identifier: MIT */
/*
 * Slices of bytes. Everything here may be handed bytes of a hostile peer, so nothing depends on a
 * terminator, on the locale or on the signedness of char. memcmp, memchr and memmove are the only help: the
 * libc's own text functions stop at a NUL, and its case functions follow the locale (Turkish I).
 */
#include "base/str.h"

#include <endian.h>

#define NAME_MAX_BYTES 64 /* longer names are not compared for "did you mean" */
#define EDIT 2 /* the price of one edit; a wrong case is half of it */

/* Of eight bytes at once. */
#define ONES 0x0101010101010101u
#define HIGH_BITS 0x8080808080808080u

static int hex_value(char c)
{
	unsigned digit = (unsigned char)c - (unsigned)'0';
	unsigned letter = ((unsigned char)c | 0x20u) - (unsigned)'a';

	if (digit < 10)
		return (int)digit;
	return letter < 6 ? (int)letter + 10 : -1;
}

bool str_starts_with(struct str s, struct str prefix)
{
	return s.len >= prefix.len && str_equal(str_head(s, prefix.len), prefix);
}

bool str_starts_with_nocase(struct str s, struct str prefix)
{
	if (s.len < prefix.len)
		return false;
	/* From the end: header names of one length begin alike, X-Forwarded-For and X-Forwarded-Uri. */
	for (size_t i = prefix.len; i-- > 0;)
		if (s.ptr[i] != prefix.ptr[i] && str_lower_char(s.ptr[i]) != str_lower_char(prefix.ptr[i]))
			return false;
	return true;
}

bool str_ends_with(struct str s, struct str suffix)
{
	return s.len >= suffix.len && str_equal(str_from(s, s.len - suffix.len), suffix);
}

int str_compare(struct str a, struct str b)
{
	size_t n = a.len < b.len ? a.len : b.len;
	int order = n != 0 ? memcmp(a.ptr, b.ptr, n) : 0;

	if (order != 0)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

size_t str_find(struct str s, char c)
{
	const char *p = s.len != 0 ? memchr(s.ptr, c, s.len) : NULL;

	return p != NULL ? (size_t)(p - s.ptr) : s.len;
}

size_t str_find_last(struct str s, char c)
{
	const char *p = s.len != 0 ? memrchr(s.ptr, c, s.len) : NULL;

	return p != NULL ? (size_t)(p - s.ptr) : s.len;
}

struct str str_from(struct str s, size_t at)
{
	if (at > s.len)
		at = s.len;
	/* Adding even 0 to a null pointer is undefined. */
	return at != 0 ? str_make(s.ptr + at, s.len - at) : s;
}

struct str str_head(struct str s, size_t n)
{
	return str_make(s.ptr, n < s.len ? n : s.len);
}

struct str str_trim(struct str s)
{
	while (s.len != 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
		s.len--;
	while (s.len != 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t')) {
		s.ptr++;
		s.len--;
	}
	return s;
}

bool str_to_u64(struct str s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.len == 0 || (s.ptr[0] == '0' && s.len > 1))
		return false;
	for (size_t i = 0; i < s.len; i++) {
		uint64_t digit = (uint64_t)((unsigned char)s.ptr[i] - (unsigned)'0');

		if (!str_is_digit(s.ptr[i]) || v > max / 10 || digit > max - v * 10)
			return false;
		v = v * 10 + digit;
	}
	*ret = v;
	return true;
}

static bool is_plain(char c)
{
	return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/* Index of the first byte of eight that is not plain, or 8. Each sum sets the high bit of a byte that is not, and of bytes
 * that have it set already; what it carries or borrows can only mark bytes above the first. */
static size_t plain_of_eight(const char *p)
{
	uint64_t word, odd;

	memcpy(&word, p, sizeof(word));
	word = le64toh(word);
	odd = word | (word + ONES) | (word - ONES * ' ') | ((word ^ ONES * '"') - ONES) |
	      ((word ^ ONES * '\\') - ONES);
	odd &= HIGH_BITS;
	return odd != 0 ? (size_t)__builtin_ctzll(odd) / 8 : 8;
}

size_t str_plain(struct str s)
{
	size_t n = 0, more = 8;

	while (s.len - n >= 8 && more == 8) {
		more = plain_of_eight(s.ptr + n);
		n += more;
	}
	if (more < 8)
		return n;
	/* The last bytes once more together with some before them, which are plain. */
	if (s.len >= 8)
		return s.len - 8 + plain_of_eight(s.ptr + s.len - 8);
	while (n < s.len && is_plain(s.ptr[n]))
		n++;
	return n;
}

static const bool token_bytes[256] = {['0' ... '9'] = true,
	['A' ... 'Z'] = true,
	['a' ... 'z'] = true,
	['!'] = true,
	['#'] = true,
	['$'] = true,
	['%'] = true,
	['&'] = true,
	['\''] = true,
	['*'] = true,
	['+'] = true,
	['-'] = true,
	['.'] = true,
	['^'] = true,
	['_'] = true,
	['`'] = true,
	['|'] = true,
	['~'] = true};

bool str_is_token_byte(char c)
{
	return token_bytes[(unsigned char)c];
}

bool str_is_token(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (!str_is_token_byte(s.ptr[i]))
			return false;
	}
	return s.len != 0;
}

static unsigned char_cost(char a, char b)
{
	if (a == b)
		return 0;
	return str_lower_char(a) == str_lower_char(b) ? EDIT / 2 : EDIT;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Edits between a and b in units of 1/EDIT; two neighbours swapped are one. Both at most NAME_MAX_BYTES. */
static unsigned edit_distance(struct str a, struct str b)
{
	unsigned rows[3][NAME_MAX_BYTES + 1];

	for (unsigned j = 0; j <= b.len; j++)
		rows[0][j] = j * EDIT;
	for (size_t i = 1; i <= a.len; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];

		row[0] = (unsigned)i * EDIT;
		for (size_t j = 1; j <= b.len; j++) {
			unsigned d = above[j - 1] + char_cost(a.ptr[i - 1], b.ptr[j - 1]);

			d = least(d, least(above[j], row[j - 1]) + EDIT);
			if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
				d = least(d, above2[j - 2] + EDIT);
			row[j] = d;
		}
	}
	return rows[a.len % 3][b.len];
}

size_t str_nearest(struct str s, const struct str *names, size_t n)
{
	size_t best = n;
	unsigned best_distance = 0;

	for (size_t i = 0; i < n && s.len <= NAME_MAX_BYTES; i++) {
		size_t longer = s.len > names[i].len ? s.len : names[i].len;
		unsigned distance;

		if (names[i].len > NAME_MAX_BYTES)
			continue;
		distance = edit_distance(s, names[i]);
		/* More than a third of the letters wrong is another word, not a slip. */
		if (distance * 3 <= longer * EDIT && (best == n || distance < best_distance)) {
			best = i;
			best_distance = distance;
		}
	}
	return best;
}

void str_hex(const uint8_t *bytes, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
	*out = '\0';
}

bool str_unhex(struct str s, uint8_t *out, size_t len)
{
	if (s.len / 2 != len || s.len % 2 != 0)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (hex_value(s.ptr[i]) < 0)
			return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(hex_value(s.ptr[2 * i]) << 4 | hex_value(s.ptr[2 * i + 1]));
	return true;
}
