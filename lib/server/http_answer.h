/* SPDX-License-Identifier: MIT */
/*
 * http_answer: an answer as it goes over the wire.
 *
 * Units      bytes.
 * Ownership  What is written lies in the exchange's arena; a large body is not copied.
 * Threads    confined.
 * Errors     false where the arena has no room, or a header line holds a byte that would make two lines of it: then nothing of
 *            this answer may go out, and http_answer_failure does.
 */
#ifndef POSTERN_SERVER_HTTP_ANSWER_H
#define POSTERN_SERVER_HTTP_ANSWER_H

#include "base/clock.h"
#include "base/str.h"
#include "server/exchange.h"

#include <stdbool.h>

#define HTTP_DATE_BYTES 37 /* "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" */

/* The Date line of this second. */
struct http_date {
	ns due; /* on the loop's clock: when the next second begins */
	char line[HTTP_DATE_BYTES];
};

/* Brings it up to date; reads the wall clock once a second. */
void http_date_refresh(struct http_date *d, ns now);

/* As http_date_refresh, for the time it is told. */
void http_date_write(struct http_date *d, uint64_t unix_s);

struct http_answer_form {
	const struct http_date *date;
	bool without_body; /* answers HEAD */
	bool is_last; /* the connection ends with it */
	bool to_http_1_0;
};

/* ret[1] is what of the body is not in ret[0]. */
bool http_answer_write(struct exchange *x, const struct http_answer_form *form, struct str ret[2]);

/* What is said where no answer can be written: 503, the last of its connection. */
struct str http_answer_failure(void);

#endif
