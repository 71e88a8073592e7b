/* SPDX-License-Identifier: MIT */
/*
 * http: an HTTP question and its answer, free of any library. What server and the HTTP doors exchange.
 *
 * Ownership  Slices of a question live in the server's buffers, those of an answer in the request's arena or in static
 *            text; all are valid until the answer has been sent.
 * Threads    confined.
 */
#ifndef POSTERN_ADAPTER_HTTP_H
#define POSTERN_ADAPTER_HTTP_H

#include "core/policy.h"
#include "core/request.h"

#include <stdbool.h>
#include <stddef.h>

struct http_question {
	struct str method;
	struct str target; /* raw, as on the request line */
	const struct header_line *headers;
	size_t n_headers;
	struct str body;
	bool caller_allowed; /* the callers gate has let this caller in */
	struct door_options doors; /* of the ruleset that judges it */
};

#define HTTP_ANSWER_HEADERS_MAX 24

struct http_answer {
	unsigned status;
	struct header_line headers[HTTP_ANSWER_HEADERS_MAX]; /* Content-Length is the server's */
	size_t n_headers;
	struct str body;
};

/* Adds one line; must not be called more than HTTP_ANSWER_HEADERS_MAX times. */
static inline void http_answer_add(struct http_answer *a, struct str name, struct str value)
{
	a->headers[a->n_headers++] = (struct header_line){name, value};
}

/* The value of the first line of this name (without case), or NULL; *ret_count: how many lines there are. */
const struct header_line *http_header_find(
	const struct header_line *headers, size_t n, struct str name, size_t *ret_count);

/* The path of a target: everything before the first "?". */
struct str http_target_path(struct str target);

#endif
