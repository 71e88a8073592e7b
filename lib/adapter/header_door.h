/* SPDX-License-Identifier: MIT */
/*
 * header_door: what the doors have in common that gateways knock at with header lines.
 *
 * Model      A door reads lines of its own family only, and each line that holds one value must come once: one that is
 *            missing or comes twice makes the request a fault and is never guessed around. The entry of X-Forwarded-For
 *            that the gateway itself wrote is its last one over all lines; a door takes it out, so that what is left is
 *            what the hops before have said.
 * Ownership  Values are views of the lines; shortened lists of lines and answers lie in the arena.
 * Threads    Pure.
 * Errors     An arena without room: a problem at the start, the arena's overflow mark where answers are written.
 */
#ifndef POSTERN_ADAPTER_HEADER_DOOR_H
#define POSTERN_ADAPTER_HEADER_DOOR_H

#include "adapter/http.h"
#include "adapter/problem.h"
#include "base/arena.h"
#include "core/policy.h"
#include "core/verdict.h"

/* A request being put together from lines of our own, which are taken out as they are used up. */
struct header_door {
	struct request *req;
	struct header_line *lines; /* the same as req->headers, but writable */
};

/* A request with nothing in it but a copy of the lines, and whether the caller may ask. False and a problem: no room. */
bool header_door_start(struct header_door *d, const struct http_question *q, enum door door, struct arena *a,
	struct request *ret, struct problem *ret_problem);

/* Makes the request a fault, unless it is one already. */
void header_door_refuse(struct header_door *d, enum door_header h);

/* The value of a line that must not come twice; required: nor be missing. False where there is none, or a fault. */
bool header_door_value(struct header_door *d, enum door_header h, bool required, struct str *ret);

/* The same as a fact of the request. */
void header_door_fact(struct header_door *d, enum door_header h, bool required, struct fact *ret);

/* remote_addr from a line that must come once; the line is used up, and so is a last X-Forwarded-For entry that is the same
 * hop. */
void header_door_take_remote_addr(struct header_door *d, enum door_header h);

/* remote_addr from the last X-Forwarded-For entry over all lines, which is used up; h: the row of that header. */
void header_door_take_last_entry(struct header_door *d, enum door_header h);

/* Status and header lines without a body; on an allow with what the upstream is told, on a denial with what the client is. */
void header_door_lines(
	const struct ruleset *rules, const struct verdict *v, struct arena *a, struct http_answer *ret);

/* The same, and on a denial exactly {"error": "<reason>", "retry_after": n} with a detail for a misconfigured door. */
void header_door_answer(
	const struct ruleset *rules, const struct verdict *v, struct arena *a, struct http_answer *ret);

#endif
