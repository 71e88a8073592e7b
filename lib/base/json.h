/* SPDX-License-Identifier: MIT */
/*
 * json: reads JSON. The only file that sees jansson, which is the judge of the grammar.
 *
 * Model      json_read gives a tree or one fault. Refused: duplicate member names, anything behind the value, bytes
 *            that are not UTF-8, nesting deeper than 64. \u0000 is legal inside strings. An integer is one only if it is
 *            written as one: 1.0 and 1e3 are reals.
 *            Positions are not kept in the tree: json_locate finds them by one extra scan, on failure only.
 * Units      line and column count from 1; columns are bytes.
 * Ownership  The tree owns its strings; slices live until json_free, which wipes every string first (tokens pass
 *            through here).
 * Threads    confined; json_setup (installs the wiping free) once before the first use.
 * Errors     a struct json_fault: kind, place, JSON pointer (RFC 6901) as far as it is known.
 * Limits     depth 64; integers are 64 bit signed.
 */
#ifndef POSTERN_BASE_JSON_H
#define POSTERN_BASE_JSON_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json; /* one value in a tree */

enum json_kind {
	JSON_KIND_NULL,
	JSON_KIND_BOOL,
	JSON_KIND_INTEGER,
	JSON_KIND_REAL,
	JSON_KIND_STRING,
	JSON_KIND_ARRAY,
	JSON_KIND_OBJECT
};

enum json_fault_kind {
	JSON_FAULT_SYNTAX,    /* also: empty input, trailing bytes, bad escapes */
	JSON_FAULT_UTF8,
	JSON_FAULT_DUPLICATE, /* a member name comes twice in one object */
	JSON_FAULT_DEPTH,
	JSON_FAULT_MEMORY
};

#define JSON_POINTER_BYTES 256

struct json_fault {
	enum json_fault_kind kind;
	unsigned line, column;
	char pointer_z[JSON_POINTER_BYTES]; /* the container being read, or the member that comes twice; cut if longer */
	char detail_z[160];                 /* one sentence for people, plain ASCII, holds no string of the input but names */
};

/* Version of the library in use. */
const char *json_library_z(void);

/* Makes every free of the library wipe first. Once, before threads start. */
void json_setup(void);

MUST_USE enum err json_read(struct json **ret_root, struct str text, struct json_fault *ret_fault);
void json_free(struct json *root); /* NULL is fine */

enum json_kind json_kind(const struct json *v);
const char *json_kind_name(enum json_kind k); /* "an object", "a string": for messages */
bool json_bool(const struct json *v);
int64_t json_integer_of(const struct json *v);
struct str json_text(const struct json *v); /* of a string: UTF-8 bytes, may hold NUL */

size_t json_count(const struct json *v);                        /* items of an array, members of an object */
const struct json *json_item(const struct json *array, size_t i);
const struct json *json_member(const struct json *object, const char *name_z); /* NULL if absent */

/* Walks an object in the order it was written:
 *   struct json_walk w = json_walk_start(obj); while (json_walk_next(&w)) use w.name, w.value; */
struct json_walk {
	const struct json *object;
	void *cursor;
	struct str name;
	const struct json *value;
};
struct json_walk json_walk_start(const struct json *object);
bool json_walk_next(struct json_walk *w);

/* Writes "/parent/name" with ~0 and ~1 escaped into a pointer; cut to what fits, always terminated. */
void json_pointer_push(char pointer_z[JSON_POINTER_BYTES], struct str name);
void json_pointer_push_index(char pointer_z[JSON_POINTER_BYTES], size_t index);
void json_pointer_pop(char pointer_z[JSON_POINTER_BYTES]);

/* Where the value (or, with at_name, the member's name) of this pointer starts in a text that json_read accepted.
 * False if the pointer leads nowhere. */
bool json_locate(struct str text, const char *pointer_z, bool at_name, unsigned *ret_line, unsigned *ret_column);

#endif
