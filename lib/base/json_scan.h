/* SPDX-License-Identifier: MIT */
/*
 * json_scan: goes through a JSON text once and knows where it is. Private to json.
 *
 * Model      A step hands out the next value with its place; names, brackets and commas pass on the way. The grammar is
 *            checked to the letter (RFC 8259), so the first fault of any bytes is found. What a scan cannot see by
 *            itself, equal names and numbers too large, jansson has seen: it says where it stopped.
 * Ownership  The scan and all its slices live as long as the text.
 * Threads    confined.
 * Errors     SCAN_FAULT: kind, fault_at and why are filled.
 * Limits     depth 64. No recursion, no allocation.
 */
#ifndef POSTERN_BASE_JSON_SCAN_H
#define POSTERN_BASE_JSON_SCAN_H

#include "base/json.h"

#define JSON_DEPTH_MAX 64

/* No place in any text. */
#define JSON_NOWHERE SIZE_MAX

enum json_scan_step { SCAN_VALUE, SCAN_END, SCAN_FAULT };

/* One open array or object. */
struct json_level {
	bool is_object;
	size_t index;    /* of the item or member being read */
	struct str name; /* of that member, as written between its quotes */
};

struct json_scan {
	struct str text;
	size_t at;

	size_t duplicate_end; /* a member's name that ends here has come before; or JSON_NOWHERE */
	size_t overflow_end;  /* a number that ends here is too large; or JSON_NOWHERE */

	struct json_level levels[JSON_DEPTH_MAX];
	size_t depth;       /* levels in use */
	size_t value_depth; /* how many were open around the value handed out last */
	size_t value_at, name_at;
	bool began, opened;

	enum json_fault_kind kind;
	size_t fault_at;
	bool fault_has_name; /* the fault is the name in the innermost level */
	const char *why;     /* static sentence */
};

void json_scan_init(struct json_scan *s, struct str text);
enum json_scan_step json_scan_next(struct json_scan *s);

/* Fills kind, place, pointer and sentence from a scan that ended in SCAN_FAULT. */
void json_scan_explain(const struct json_scan *s, struct json_fault *ret_fault);

/* A name that the scan has passed, decoded into out. What does not fit is left away, from the start of a character on,
 * and *ret_whole (may be NULL) is false. */
struct str json_scan_name(struct str raw, char *out, size_t size, bool *ret_whole);

/* Line and column of a byte of the text; both from 1. */
void json_scan_place(struct str text, size_t at, unsigned *ret_line, unsigned *ret_column);

#endif
