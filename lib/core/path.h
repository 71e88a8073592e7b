/* SPDX-License-Identifier: MIT */
/*
 * path: the path that rules look at.
 *
 * Model      Normalised: query and fragment cut off, %XX decoded once, ";params" of each segment dropped, "//" and dot
 *            segments resolved, one trailing slash dropped ("/" stays). Raw: what was said up to the first "?" or "#",
 *            unchanged. An absolute-form target ("http://host/path") loses scheme and authority in both.
 *            Rules are matched on both; where they differ the stricter holds, so a client gains nothing by spelling. A
 *            doubtful path has further readings: whoever serves it may have yet another in mind.
 * Ownership  The result lies in the arena, or is a view of the input where nothing had to change.
 * Threads    Pure.
 * Errors     none: any byte may come out (%00 too); "*" and an empty path stay as they are. With a full arena the
 *            normalised path is {NULL, 0} and the arena is overflown.
 * Source     RFC 3986 5.2.4 (dot segments), 3.3 (parameters).
 */
#ifndef POSTERN_CORE_PATH_H
#define POSTERN_CORE_PATH_H

#include "base/arena.h"
#include "base/str.h"

#include <stdbool.h>

struct path_views {
	struct str raw, normalised; /* the very same slice where nothing had to change */
	bool doubtful; /* a ".." or a backslash: some servers read another path than these two */
};

struct path_views path_look(struct str said, struct arena *a);

/* The normalised one alone. */
struct str path_normalise(struct str said, struct arena *a);

/* What another server may read in a doubtful raw path, n counting from 0; written into room for raw.len bytes. False behind
 * the last. */
bool path_reading(struct str raw, unsigned n, char *room, struct str *ret);

/* Lower case in ASCII; a view of the input if it holds no capital. */
struct str path_fold_case(struct str path, struct arena *a);

#endif
