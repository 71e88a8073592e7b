/* SPDX-License-Identifier: MIT */
/*
 * http_body: a body that comes in chunks, out of bytes that come as they come.
 *
 * Model      Each call reads on to the next piece of data, to the end, or to where the bytes run out. Extensions and trailer
 *            lines are read over.
 * Units      bytes.
 * Ownership  A piece is a slice of what was given.
 * Threads    confined; no state but the struct's.
 * Errors     CHUNKS_BAD; the same however the bytes were cut up.
 * Limits     16 digits of a size; CHUNKS_SPARE_BYTES of everything that is neither size nor data, in one body. How much data there
 *            may be is for the owner to judge.
 * Source     RFC 9112 7.1.
 */
#ifndef POSTERN_SERVER_HTTP_BODY_H
#define POSTERN_SERVER_HTTP_BODY_H

#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

#define CHUNKS_SPARE_BYTES ((size_t)4096)

enum chunks_state { CHUNKS_MORE, CHUNKS_PIECE, CHUNKS_END, CHUNKS_BAD };

struct chunks {
	unsigned place; /* in the grammar */
	unsigned n_digits;
	uint64_t left; /* of this chunk */
	size_t spare; /* what extensions and trailers may still take */
};

void chunks_init(struct chunks *c);

/* *ret_used: how many of the n bytes were read. CHUNKS_MORE: all of them. */
enum chunks_state chunks_read(struct chunks *c, const char *bytes, size_t n, size_t *ret_used, struct str *ret_piece);

#endif
