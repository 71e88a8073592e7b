/* SPDX-License-Identifier: MIT */
/*
 * An exchange is large (its arena alone is twice the header limit and more), so it is not cleared: only the fields that say
 * what the rest means are. Bodies start inline, since nearly all fit there; a larger one moves to the heap at the length it
 * was announced with, or doubles when it comes in chunks.
 * Framing is judged here and not left to the HTTP library, which takes the first of two lengths, a length beside a transfer
 * coding, codings it does not know, and any byte in a field's name.
 */
#include "server/exchange.h"

#include "server/gate.h"

#include "base/text.h"

#include <stdlib.h>

/* Line arrays, keys and the answer. What a client can make long comes on top: the headers of a header door and the path in
 * them twice over, or a body's text, its path normalised, and that once more in lower case (or as others read it). */
#define ARENA_FIXED_BYTES ((size_t)64 * 1024)
#define SPARE_MAX 64
#define RAW_HEAD_BYTES 512

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
	x->is_http_1_0 = false;
	x->is_malformed = false;
	x->n_hosts = 0;
	x->n_lengths = 0;
	x->n_codings = 0;
	x->n_keys = 0;
	x->has_odd_name = false;
	x->has_bare_cr = false;
	x->is_coding_odd = false;
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

static bool framing_fault(struct exchange *x, const char *detail_z)
{
	problem_set(&x->problem, PROBLEM_BAD_FRAMING, "%s", detail_z);
	x->has_problem = true;
	return false;
}

/* Names that are no token are where parsers disagree most: "Content-Length :" is one field to some and none to others. */
void exchange_line_add(struct exchange *x, struct str name, struct str value)
{
	struct str cut = str_trim(value);

	x->lines[x->question.n_headers++] = (struct header_line){name, cut};
	x->has_odd_name = x->has_odd_name || !str_is_token(name);
	x->has_bare_cr = x->has_bare_cr || str_find(value, '\r') < value.len;
	switch (name.len) {
	case sizeof("Host") - 1: x->n_hosts += str_equal_nocase(name, STR("Host")); break;
	case sizeof(GATE_KEY) - 1: x->n_keys += str_equal_nocase(name, STR(GATE_KEY)); break;
	case sizeof("Content-Length") - 1:
		if (!str_equal_nocase(name, STR("Content-Length")))
			break;
		x->n_lengths++;
		/* Leading zeros are legal, odd, and as good as too large. */
		if (!str_to_u64(cut, UINT64_MAX, &x->body_announced_bytes))
			x->body_announced_bytes = UINT64_MAX;
		break;
	case sizeof("Transfer-Encoding") - 1:
		if (!str_equal_nocase(name, STR("Transfer-Encoding")))
			break;
		x->n_codings++;
		/* As it was sent: with a blank behind it the library does not know this coding either. */
		x->is_coding_odd = !str_equal_nocase(value, STR("chunked"));
		break;
	default: break;
	}
}

bool exchange_framing(struct exchange *x)
{
	const struct http_question *q = &x->question;

	x->body_announced = x->n_codings > 0 || x->body_announced_bytes > 0;
	if (x->n_lengths > 1)
		return framing_fault(x, "Content-Length comes twice");
	if (x->n_codings > 0 && (x->n_lengths > 0 || x->is_http_1_0))
		return framing_fault(x, "Transfer-Encoding stands beside Content-Length or in HTTP/1.0");
	if (x->n_codings > 1 || x->is_coding_odd)
		return framing_fault(x, "Transfer-Encoding may be chunked and nothing else");
	if (x->is_malformed || !str_is_token(q->method) || str_find(q->target, ' ') < q->target.len)
		return framing_fault(
			x, "a NUL, a folded line, a bare line feed or a blank stands where none may be");
	/* RFC 9112 2.2: an end of line to some readers. */
	if (x->has_bare_cr || str_find(q->target, '\r') < q->target.len)
		return framing_fault(x, "a bare carriage return stands in the target or a header's value");
	if (str_equal(q->method, STR("CONNECT")))
		return framing_fault(x, "CONNECT asks for a tunnel, and there is none here");
	if (x->has_odd_name)
		return framing_fault(x, "a header's name is no token");
	if (x->n_hosts > 1 || (x->n_hosts == 0 && !x->is_http_1_0))
		return framing_fault(x, "Host is missing or comes twice");
	return true;
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

struct str exchange_raw_problem(struct exchange *x)
{
	const struct http_answer *a = &x->answer;
	struct text t;

	exchange_answer_problem(x);
	text_init_arena(&t, &x->arena, RAW_HEAD_BYTES + a->body.len);
	text_z(&t, "HTTP/1.1 ");
	text_u64(&t, a->status);
	text_z(&t, " Refused\r\n");
	for (size_t i = 0; i < a->n_headers; i++) {
		text_str(&t, a->headers[i].name);
		text_z(&t, ": ");
		text_str(&t, a->headers[i].value);
		text_z(&t, "\r\n");
	}
	text_z(&t, "Connection: close\r\nContent-Length: ");
	text_u64(&t, a->body.len);
	text_z(&t, "\r\n\r\n");
	text_str(&t, a->body);
	return t.overflow ? STR("") : text_view(&t);
}

static bool seal(struct arena *a, struct str *s)
{
	char *copy = arena_alloc(a, s->len + 2);

	if (copy == NULL)
		return false;
	if (s->len > 0)
		memcpy(copy, s->ptr, s->len);
	else
		copy[s->len++] = ' ';
	copy[s->len] = '\0';
	s->ptr = copy;
	return true;
}

bool exchange_seal(struct exchange *x)
{
	for (size_t i = 0; i < x->answer.n_headers; i++) {
		if (!seal(&x->arena, &x->answer.headers[i].name) ||
			!seal(&x->arena, &x->answer.headers[i].value))
			return false;
	}
	return !x->arena.overflow;
}
