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
 * Limits     HTTP_LINES_MAX header lines; a body of at most the pool's body_max_bytes.
 */
#ifndef POSTERN_SERVER_EXCHANGE_H
#define POSTERN_SERVER_EXCHANGE_H

#include "adapter/adapter.h"
#include "adapter/http.h"
#include "adapter/problem.h"
#include "base/arena.h"
#include "base/ip.h"
#include "core/request.h"
#include "server/http_parse.h"

#include <stdbool.h>
#include <stddef.h>

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
	struct header_line lines[HTTP_LINES_MAX];
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

#endif
