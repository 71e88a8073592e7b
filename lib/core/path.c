/* SPDX-License-Identifier: MIT */
/*
 * The order is the point. Decoding comes first and happens once, so that %2e, %2f and %3b mean what they mean to a
 * server that decodes before it looks; parameters go next, because "..;x" is ".." to those that know them; dot
 * segments and empty segments are resolved last, on what is left. A "%" without two hex digits stays as it is, and
 * "%25" gives a "%" that is not looked at again. A backslash is a letter like any other: turning it into a slash would
 * move requests between rules that no server in front of us moves.
 * No order suits every server, though: those that know no parameters or keep empty segments let a ".." step over another
 * segment than those that do not, some keep "%2f" or resolve before they decode, some take a backslash for a slash. Which
 * of them answers cannot be known here, so their readings of such a path can be asked for, one by one.
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
	['?'] = ENDS, ['#'] = ENDS, ['%'] = CHANGES, [';'] = CHANGES, ['\\'] = CHANGES, ['/'] = SLASH, ['.'] = DOT};

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

/* How servers differ. Without RESOLVE dot segments stay. */
enum { RESOLVE = 1, PARAMETERS = 2, MERGE = 4, KEEP_2F = 8, DECODE_LAST = 16, BACKSLASH = 32 };
#define OURS (RESOLVE | PARAMETERS | MERGE)

static const uint8_t readings[] = {
	0, /* WSGI and other gateways to applications */
	RESOLVE | MERGE, /* nginx, Caddy's and Python's files, Go */
	RESOLVE, RESOLVE | PARAMETERS,
	RESOLVE | KEEP_2F, /* ASP.NET */
	RESOLVE | KEEP_2F | MERGE, RESOLVE | KEEP_2F | MERGE | PARAMETERS,
	RESOLVE | DECODE_LAST, RESOLVE | DECODE_LAST | MERGE,
	RESOLVE | BACKSLASH, /* URL of JavaScript, with and without KEEP_2F */
	RESOLVE | BACKSLASH | KEEP_2F, RESOLVE | BACKSLASH | MERGE
};

static bool is_encoded(struct str s, size_t at, uint8_t *ret)
{
	return s.len - at >= 3 && s.ptr[at] == '%' && str_unhex(str_make(s.ptr + at + 1, 2), ret, 1);
}

/* out may be s.ptr itself. */
static size_t decode(struct str s, char *out, unsigned how)
{
	uint8_t byte;
	size_t i, n = 0;

	for (i = 0; i < s.len; i++) {
		if (is_encoded(s, i, &byte) && !(byte == '/' && (how & KEEP_2F))) {
			out[n] = (char)byte;
			i += 2;
		} else {
			out[n] = s.ptr[i];
		}
		if (out[n] == '\\' && (how & BACKSLASH))
			out[n] = '/';
		n++;
	}
	return n;
}

/* Length without the last segment; a root slash stays. */
static size_t parent_of(const char *path, size_t len, size_t root, bool *ret_any_left)
{
	while (len > root && path[len - 1] != '/')
		len--;
	*ret_any_left = len > root;
	return len > root ? len - 1 : len;
}

/* Drops parameters, empty segments and dot segments in place, as far as that is asked for. What is kept never overtakes
 * what is read. */
static size_t resolve(char *path, size_t len, unsigned how)
{
	size_t root = len > 0 && path[0] == '/' ? 1 : 0;
	size_t kept = root, at, end, n;
	bool any = false;

	for (at = root; at < len; at = end + 1) {
		end = at + str_find(str_make(path + at, len - at), '/');
		n = end - at;
		if (how & PARAMETERS)
			n = str_find(str_make(path + at, n), ';');
		if ((n == 0 && (how & MERGE)) || (n == 1 && path[at] == '.'))
			continue;
		if (n == 2 && path[at] == '.' && path[at + 1] == '.') {
			kept = parent_of(path, kept, root, &any);
			continue;
		}
		if (any)
			path[kept++] = '/';
		any = true;
		memmove(path + kept, path + at, n);
		kept += n;
	}
	return kept;
}

/* A backslash, or a segment ".." for one server or another: behind ";" some read no further, others look for the slash. */
static bool is_doubtful(struct str path)
{
	for (size_t i = 0; i < path.len; i++) {
		if (path.ptr[i] == '\\')
			return true;
		if (path.len - i >= 2 && path.ptr[i] == '.' && path.ptr[i + 1] == '.' &&
			(i == 0 || path.ptr[i - 1] == '/') &&
			(path.len - i == 2 || path.ptr[i + 2] == '/' || path.ptr[i + 2] == ';'))
			return true;
	}
	return false;
}

struct path_views path_look(struct str said, struct arena *a)
{
	struct path_views v;
	bool plain;
	char *copy;

	v.raw = cut(said, &plain);
	v.normalised = v.raw;
	v.doubtful = false;
	if (plain)
		return v;
	v.raw = without_authority(v.raw);
	copy = arena_alloc(a, v.raw.len);
	if (copy == NULL) {
		v.normalised = (struct str){NULL, 0};
		return v;
	}
	v.normalised = str_make(copy, decode(v.raw, copy, OURS));
	v.doubtful = is_doubtful(v.normalised);
	v.normalised.len = resolve(copy, v.normalised.len, OURS);
	return v;
}

bool path_reading(struct str raw, unsigned n, char *room, struct str *ret)
{
	unsigned how;
	size_t len = raw.len;

	if (n >= sizeof(readings))
		return false;
	how = readings[n];
	if (how & DECODE_LAST)
		memcpy(room, raw.ptr, len);
	else
		len = decode(raw, room, how);
	if (how & RESOLVE)
		len = resolve(room, len, how);
	if (how & DECODE_LAST)
		len = decode(str_make(room, len), room, how);
	*ret = str_make(room, len);
	return true;
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
