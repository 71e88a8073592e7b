/* SPDX-License-Identifier: MIT */
/*
 * An exchange is large (its arena alone is twice the header limit and more), so it is not cleared: only the fields that say
 * what the rest means are. Bodies start inline, since nearly all fit there; a larger one moves to the heap at the length it
 * was announced with, or doubles when it comes in chunks.
 */
#include "server/exchange.h"

#include <stdlib.h>

/* Line arrays, keys and the answer, also as it goes over the wire. What a client can make long comes on top: the headers of a header door and the path in
 * them twice over, or a body's text, its path normalised, and that once more in lower case (or as others read it). */
#define ARENA_FIXED_BYTES ((size_t)64 * 1024)
#define SPARE_MAX 64

void exchange_pool_init(struct exchange_pool *p, size_t header_bytes, size_t body_max_bytes)
{
	*p = (struct exchange_pool){
		.arena_bytes = ARENA_FIXED_BYTES + 2 * header_bytes + 3 * body_max_bytes, .body_max_bytes = body_max_bytes};
}

void exchange_pool_done(struct exchange_pool *p)
{
	while (p->spare != NULL) {
		struct exchange *x = p->spare;

		p->spare = x->next;
		free(x);
	}
	p->n_spare = 0;
}

struct exchange *exchange_take(struct exchange_pool *p)
{
	struct exchange *x = p->spare;

	if (x != NULL) {
		p->spare = x->next;
		p->n_spare--;
	} else {
		x = malloc(sizeof(*x) + p->arena_bytes);
		if (x == NULL)
			return NULL;
		arena_init(&x->arena, x + 1, p->arena_bytes);
	}
	arena_reset(&x->arena);
	x->pool = p;
	x->peer = NULL;
	x->question = (struct http_question){.headers = x->lines};
	x->body_announced = false;
	x->body_announced_bytes = 0;
	x->door = NULL;
	x->has_problem = false;
	x->answered = false;
	x->body = x->inline_body;
	x->body_len = 0;
	x->body_cap = sizeof(x->inline_body);
	x->body_no_memory = false;
	return x;
}

static void body_free(struct exchange *x)
{
	if (x->body != x->inline_body)
		free(x->body);
	x->body = x->inline_body;
	x->body_cap = sizeof(x->inline_body);
}

void exchange_put(struct exchange *x)
{
	struct exchange_pool *p = x->pool;

	body_free(x);
	if (p->n_spare >= SPARE_MAX) {
		free(x);
		return;
	}
	x->next = p->spare;
	p->spare = x;
	p->n_spare++;
}

/* Makes room for n more bytes; the new capacity is what was announced, or the double. */
static bool body_grow(struct exchange *x, size_t n)
{
	size_t want = x->body_len + n, cap = 2 * x->body_cap;
	char *grown;

	if (x->body_announced_bytes >= want)
		cap = (size_t)x->body_announced_bytes;
	if (cap < want)
		cap = want;
	if (cap > x->pool->body_max_bytes)
		cap = x->pool->body_max_bytes;
	grown = malloc(cap);
	if (grown == NULL)
		return false;
	memcpy(grown, x->body, x->body_len);
	body_free(x);
	x->body = grown;
	x->body_cap = cap;
	return true;
}

void exchange_body_refuse(struct exchange *x)
{
	problem_set(&x->problem, PROBLEM_BODY_TOO_LARGE, "at most %zu bytes: http.body_bytes",
		x->pool->body_max_bytes);
	x->has_problem = true;
}

bool exchange_body_add(struct exchange *x, const char *bytes, size_t n)
{
	if (x->body_no_memory)
		return true;
	if (n > x->pool->body_max_bytes - x->body_len) {
		exchange_body_refuse(x);
		return false;
	}
	x->body_no_memory = n > x->body_cap - x->body_len && !body_grow(x, n);
	if (!x->body_no_memory) {
		memcpy(x->body + x->body_len, bytes, n);
		x->body_len += n;
	}
	return true;
}

char *exchange_body_heap(struct exchange *x, size_t n)
{
	char *bytes = malloc(n);

	if (bytes != NULL)
		exchange_body_own(x, bytes, n);
	return bytes;
}

void exchange_body_own(struct exchange *x, char *bytes, size_t n)
{
	body_free(x);
	x->body = bytes;
	x->body_cap = n;
}

void exchange_answer_problem(struct exchange *x)
{
	problem_encode(&x->problem, &x->arena, &x->answer);
	x->answered = true;
}
