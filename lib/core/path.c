/* SPDX-License-Identifier: MIT */
/*
 * The order is the point. Decoding comes first and happens once, so that %2e, %2f and %3b mean what they mean to a
 * server that decodes before it looks; parameters go next, because "..;x" is ".." to those that know them; dot
 * segments and empty segments are resolved last, on what is left. A "%" without two hex digits stays as it is, and
 * "%25" gives a "%" that is not looked at again. A backslash is a letter like any other: turning it into a slash would
 * move requests between rules that no server in front of us moves.
 * The work is done in place on one copy, since no step makes a path longer; most paths need none and are not copied.
 */
#include "core/path.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Where the path starts behind "scheme://authority", or 0 if there is no such thing. */
static size_t authority_end(struct str s)
{
	size_t i = 0;

	if (s.len == 0 || !is_letter(s.ptr[0]))
		return 0;
	while (i < s.len && (is_letter(s.ptr[i]) || str_is_digit(s.ptr[i]) || s.ptr[i] == '+' ||
				    s.ptr[i] == '-' || s.ptr[i] == '.'))
		i++;
	if (s.len - i < 3 || memcmp(s.ptr + i, "://", 3) != 0)
		return 0;
	i += 3;
	while (i < s.len && s.ptr[i] != '/')
		i++;
	return i;
}

struct str path_raw(struct str said)
{
	struct str s = said;
	size_t i, start;

	for (i = 0; i < s.len; i++) {
		if (s.ptr[i] == '?' || s.ptr[i] == '#')
			break;
	}
	s.len = i;
	start = authority_end(s);
	if (start == 0)
		return s;
	/* RFC 9112 3.2.1: a target without a path means "/". */
	return start == s.len ? STR("/") : str_make(s.ptr + start, s.len - start);
}

/* Nothing to decode, to drop or to resolve. A "." behind a slash may be harmless, but is rare enough to look twice at. */
static bool is_plain(struct str s)
{
	bool after_slash = false;
	size_t i;

	for (i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '%' || c == ';')
			return false;
		if (after_slash && (c == '/' || c == '.'))
			return false;
		after_slash = c == '/';
	}
	return s.len == 0 || (s.ptr[0] == '/' && (s.len == 1 || !after_slash));
}

static size_t decode(struct str s, char *out)
{
	uint8_t byte;
	size_t i, n = 0;

	for (i = 0; i < s.len; i++) {
		if (s.ptr[i] == '%' && s.len - i >= 3 && str_unhex(str_make(s.ptr + i + 1, 2), &byte, 1)) {
			out[n++] = (char)byte;
			i += 2;
		} else {
			out[n++] = s.ptr[i];
		}
	}
	return n;
}

/* Length without the last segment; a root slash stays. */
static size_t parent_of(const char *path, size_t len, size_t root)
{
	while (len > root && path[len - 1] != '/')
		len--;
	return len > root ? len - 1 : len;
}

/* Drops parameters, empty segments and dot segments in place. What is kept never overtakes what is read. */
static size_t resolve(char *path, size_t len)
{
	size_t root = len > 0 && path[0] == '/' ? 1 : 0;
	size_t kept = root, at, end, n;

	for (at = root; at < len; at = end + 1) {
		end = at + str_find(str_make(path + at, len - at), '/');
		n = str_find(str_make(path + at, end - at), ';');
		if (n == 0 || (n == 1 && path[at] == '.'))
			continue;
		if (n == 2 && path[at] == '.' && path[at + 1] == '.') {
			kept = parent_of(path, kept, root);
			continue;
		}
		if (kept > root)
			path[kept++] = '/';
		memmove(path + kept, path + at, n);
		kept += n;
	}
	return kept;
}

struct str path_normalise(struct str said, struct arena *a)
{
	struct str raw = path_raw(said);
	char *copy;

	if (is_plain(raw))
		return raw;
	copy = arena_alloc(a, raw.len);
	if (copy == NULL)
		return (struct str){NULL, 0};
	return str_make(copy, resolve(copy, decode(raw, copy)));
}

struct str path_fold_case(struct str path, struct arena *a)
{
	size_t i = 0, k;
	char *copy;

	while (i < path.len && str_lower_char(path.ptr[i]) == path.ptr[i])
		i++;
	if (i == path.len)
		return path;
	copy = arena_alloc(a, path.len);
	if (copy == NULL)
		return (struct str){NULL, 0};
	memcpy(copy, path.ptr, i);
	for (k = i; k < path.len; k++)
		copy[k] = str_lower_char(path.ptr[k]);
	return str_make(copy, path.len);
}
