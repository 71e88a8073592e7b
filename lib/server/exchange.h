/* SPDX-License-Identifier: MIT */
/*
 * exchange: one HTTP question on its way to its answer, and the pool that exchanges come from.
 *
 * Model      Taken when the header is complete, given back when the answer is out: an idle connection holds none, and a
 *            busy worker uses the same few over and over without asking the allocator.
 * Units      bytes.
 * Ownership  The worker owns the pool. Question and answer are views of the exchange's arena, of its body, and of the
 *            transport's buffers; all are valid until exchange_put.
 * Threads    confined.
 * Errors     exchange_take: NULL without memory. The body's own marks say what became of it.
 * Limits     EXCHANGE_LINES_MAX header lines; a body of at most the pool's body_max_bytes.
 */
#ifndef POSTERN_SERVER_EXCHANGE_H
#define POSTERN_SERVER_EXCHANGE_H

#include "adapter/adapter.h"
#include "adapter/http.h"
#include "adapter/problem.h"
#include "base/arena.h"
#include "base/ip.h"
#include "core/request.h"

#include <stdbool.h>
#include <stddef.h>

#define EXCHANGE_LINES_MAX 256
#define EXCHANGE_INLINE_BYTES 2048 /* the usual /check body and then some */

/* Who has connected, as far as the gate needs it. */
struct peer {
	struct str address; /* text: "127.0.0.1", or "unix" */
	struct ip ip;
	bool has_ip, is_unix;
	bool is_listed;       /* see gate_lists */
	uint64_t is_listed_by;
};

struct exchange {
	struct exchange *next; /* in the pool */
	struct exchange_pool *pool;

	/* Filled by the transport. */
	struct peer *peer;
	struct http_question question;
	struct header_line lines[EXCHANGE_LINES_MAX];
	bool is_http_1_0;
	bool is_malformed; /* the bytes hold something that the lines do not show */

	/* Kept by exchange_line_add. */
	unsigned n_hosts, n_lengths, n_codings, n_keys;
	bool has_odd_name, has_bare_cr, is_coding_odd;

	/* Filled by exchange_framing. */
	bool body_announced;
	uint64_t body_announced_bytes; /* 0 where the length is not told */

	/* Filled by the service. */
	const struct adapter_http *door;
	bool has_problem;
	struct problem problem;
	bool answered;
	struct http_answer answer;

	struct arena arena;
	char *body; /* inline_body or the heap */
	size_t body_len, body_cap;
	bool body_no_memory;
	char inline_body[EXCHANGE_INLINE_BYTES];
};

struct exchange_pool {
	struct exchange *spare;
	size_t n_spare;
	size_t arena_bytes, body_max_bytes;
};

void exchange_pool_init(struct exchange_pool *p, size_t header_bytes, size_t body_max_bytes);
void exchange_pool_done(struct exchange_pool *p);

struct exchange *exchange_take(struct exchange_pool *p);
void exchange_put(struct exchange *x);

/* Adds a header line as it was sent; the value's white space is cut off here. There must be room. */
void exchange_line_add(struct exchange *x, struct str name, struct str value);

/* Looks at what decides where this question ends and the next begins, and at names; where a reader after or before us might
 * see it otherwise, sets the problem and returns false. RFC 9112 3.2, 5.1, 6.1 to 6.3. */
bool exchange_framing(struct exchange *x);

/* Appends a piece of the body. False, and the problem set, past the limit. Without memory: body_no_memory is set. */
bool exchange_body_add(struct exchange *x, const char *bytes, size_t n);

/* The problem of a body past the limit, for where its length is told before it comes. */
void exchange_body_refuse(struct exchange *x);

/* Takes n bytes from the heap as the exchange's body, in place of what it had; NULL without memory. */
char *exchange_body_heap(struct exchange *x, size_t n);

/* Takes over n bytes of the heap as the exchange's body, in place of what it had. */
void exchange_body_own(struct exchange *x, char *bytes, size_t n);

/* Makes the answer out of the problem. */
void exchange_answer_problem(struct exchange *x);

/* Makes the answer out of the problem and returns it as it goes over the wire, the last of its connection; for where the
 * library can send none. Empty if there is no room. */
struct str exchange_raw_problem(struct exchange *x);

/* Copies names and values of the answer's header lines with a NUL behind each, and an empty value as one space, which is the
 * same on the wire. False if the arena has no room for them or for anything before. */
bool exchange_seal(struct exchange *x);

#endif
