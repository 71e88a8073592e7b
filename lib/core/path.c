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

/* What a byte may mean. Most mean nothing, and a look-up for each is all that most paths need. */
enum { ENDS = 1, CHANGES = 2, SLASH = 4, DOT = 8 };
static const uint8_t meanings[256] = {
	['?'] = ENDS, ['#'] = ENDS, ['%'] = CHANGES, [';'] = CHANGES, ['/'] = SLASH, ['.'] = DOT};

/* Cuts query and fragment. *ret_plain: nothing to decode, to drop or to resolve. A "." behind a slash may be harmless,
 * but is rare enough to look twice at. */
static struct str cut(struct str said, bool *ret_plain)
{
	unsigned seen = 0, before = 0;
	size_t i;

	for (i = 0; i < said.len; i++) {
		unsigned meaning = meanings[(uint8_t)said.ptr[i]];

		if (meaning & ENDS)
			break;
		/* An empty segment or one that begins with a dot changes the path, too. */
		if ((before & SLASH) && meaning != 0)
			meaning |= CHANGES;
		seen |= meaning;
		before = meaning;
	}
	*ret_plain = !(seen & CHANGES) && (i == 0 || (said.ptr[0] == '/' && (i == 1 || !(before & SLASH))));
	return str_make(said.ptr, i);
}

/* RFC 9112 3.2.1: a target without a path means "/". */
static struct str without_authority(struct str s)
{
	size_t start = authority_end(s);

	if (start == 0)
		return s;
	return start == s.len ? STR("/") : str_make(s.ptr + start, s.len - start);
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

struct path_views path_look(struct str said, struct arena *a)
{
	struct path_views v;
	bool plain;
	char *copy;

	v.raw = cut(said, &plain);
	v.normalised = v.raw;
	if (plain)
		return v;
	v.raw = without_authority(v.raw);
	copy = arena_alloc(a, v.raw.len);
	if (copy == NULL)
		v.normalised = (struct str){NULL, 0};
	else
		v.normalised = str_make(copy, resolve(copy, decode(v.raw, copy)));
	return v;
}

struct str path_normalise(struct str said, struct arena *a)
{
	return path_look(said, a).normalised;
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
