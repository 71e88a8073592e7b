/* SPDX-License-Identifier: MIT */
/*
 * http_buffer: where the bytes of a question lie while it is on its way.
 *
 * Model      Of one size as long as heads are of usual size, then as large as a head may be. A few of the usual ones are kept.
 * Units      bytes.
 * Ownership  The pool's user gives each buffer back or frees it by http_buffer_put.
 * Threads    confined.
 * Errors     NULL, or false, without memory.
 * Limits     HTTP_BODY_ROOM beside the largest head, so that behind a whole head there is always room for its body to come through.
 */
#ifndef POSTERN_SERVER_HTTP_BUFFER_H
#define POSTERN_SERVER_HTTP_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

#define HTTP_BODY_ROOM ((size_t)1024)

struct http_buffer {
	struct http_buffer *next; /* in the pool */
	size_t size;
	char bytes[];
};

struct http_buffers {
	struct http_buffer *spare;
	size_t n_spare;
	size_t usual_bytes, most_bytes;
};

void http_buffers_init(struct http_buffers *p, size_t header_bytes);
void http_buffers_done(struct http_buffers *p);

struct http_buffer *http_buffer_take(struct http_buffers *p);
void http_buffer_put(struct http_buffers *p, struct http_buffer *b); /* NULL is fine */

/* Puts a larger one with the same bytes into its place. It may have the largest size already: then nothing happens. */
bool http_buffer_grow(struct http_buffers *p, struct http_buffer **b, size_t filled);

#endif
