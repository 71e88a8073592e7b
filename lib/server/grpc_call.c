/* SPDX-License-Identifier: MIT */
/*
 * The answer is made in arenas that all calls of a worker share, since a decision never waits; only the finished message is
 * copied into the call, which keeps it until the connection has taken it. An idle connection so holds no buffer at all, and
 * a busy one no more than its calls.
 * The question's arena is apart from the answer's: a question that just fits must not leave too little room for the verdict,
 * or whoever writes the question could choose that there is none.
 */
#include "server/grpc_call.h"

#include "server/grpc_session.h"

#include <stdlib.h>

/* Unpacking makes a structure of up to about a hundred bytes of a header line; a byte of it is at most eight. */
#define QUESTION_BYTES_PER_BYTE 8
#define QUESTION_EXTRA_BYTES ((size_t)256 * 1024)
/* Keys, path and host in two forms, and the answer. */
#define ANSWER_EXTRA_BYTES ((size_t)64 * 1024)
#define SPARE_MAX 256
#define OUT_BYTES_MAX ((size_t)1 << 20) /* that a caller may leave lying */
#define HINT_PERIOD_NS (60 * NS_PER_S)

static enum err arena_open(struct arena *a, char **ret_block, size_t size)
{
	*ret_block = malloc(size);
	if (*ret_block == NULL)
		return ERR_MEMORY;
	arena_init(a, *ret_block, size);
	return ERR_OK;
}

enum err grpc_service_init(struct grpc_service *s)
{
	size_t message = s->config->grpc_message_bytes;
	enum err e = arena_open(
		&s->question, &s->question_block, QUESTION_BYTES_PER_BYTE * message + QUESTION_EXTRA_BYTES);

	s->hints = (struct log_limit){.period_ns = HINT_PERIOD_NS, .burst = 1};
	if (e == ERR_OK)
		e = arena_open(&s->answer, &s->answer_block,
			2 * message + DECIDE_ARENA_BYTES + ANSWER_EXTRA_BYTES);
	return e;
}

void grpc_service_done(struct grpc_service *s)
{
	while (s->spare != NULL) {
		struct call *c = s->spare;

		s->spare = c->next;
		free(c);
	}
	free(s->question_block);
	free(s->answer_block);
}

/* ---------------------------------------------------------------------------------------------------- calls */

struct call *call_take(struct grpc_service *s, struct session *session, int32_t id)
{
	struct call *c = s->spare;

	if (c != NULL) {
		s->spare = c->next;
		s->n_spare--;
	} else {
		c = malloc(sizeof(*c));
		if (c == NULL)
			return NULL;
	}
	/* The buffers are large and need no clearing. */
	memset(c, 0, offsetof(struct call, detail));
	c->service = s;
	c->session = session;
	c->id = id;
	c->encoding_fits = true;
	c->timeout_fits = true;
	c->due = loop_now(s->loop) + s->config->grpc_request_timeout_ns;
	c->in = (struct call_bytes){c->in_room, 0, sizeof(c->in_room)};
	c->out = (struct call_bytes){c->out_room, 0, sizeof(c->out_room)};
	return c;
}

static void bytes_done(struct call_bytes *b, const char *room)
{
	if (b->ptr != room)
		free(b->ptr);
}

void call_put(struct call *c)
{
	struct grpc_service *s = c->service;

	bytes_done(&c->in, c->in_room);
	bytes_done(&c->out, c->out_room);
	if (s->n_spare >= SPARE_MAX) {
		free(c);
		return;
	}
	c->next = s->spare;
	s->spare = c;
	s->n_spare++;
}

/* Room for cap bytes in all. */
static bool bytes_grow(struct call_bytes *b, char *room, size_t cap)
{
	char *grown;

	if (cap <= b->cap)
		return true;
	grown = malloc(cap);
	if (grown == NULL)
		return false;
	memcpy(grown, b->ptr, b->len);
	bytes_done(b, room);
	b->ptr = grown;
	b->cap = cap;
	return true;
}

static void bytes_add(struct call_bytes *b, struct str bytes)
{
	if (bytes.len > 0)
		memcpy(b->ptr + b->len, bytes.ptr, bytes.len);
	b->len += bytes.len;
}

/* ---------------------------------------------------------------------------------------------------- going out */

/* When a caller must have taken its answer: it has windows of its own, and may leave them shut. */
static ns take_by(const struct call *c)
{
	return loop_now(c->service->loop) + c->service->config->grpc_request_timeout_ns;
}

void call_refuse(struct call *c, enum rpc_status status, struct str detail)
{
	if (c->has_ended)
		return;
	c->has_ended = true;
	c->is_deaf = true;
	c->status = status;
	if (c->due == UINT64_MAX)
		c->due = take_by(c);
	c->detail_len = call_detail_encode(detail, c->detail, sizeof(c->detail));
}

/* A message that is to go out; what has gone out already makes room first. */
static void send_message(struct call *c, struct str message)
{
	char prefix[CALL_PREFIX_BYTES] = {0, (char)(message.len >> 24), (char)(message.len >> 16),
		(char)(message.len >> 8), (char)message.len};
	size_t waiting = c->out.len - c->out_sent;

	if (c->out_sent > 0) {
		memmove(c->out.ptr, c->out.ptr + c->out_sent, waiting);
		c->out.len = waiting;
		c->out_sent = 0;
	}
	if (waiting > OUT_BYTES_MAX)
		call_refuse(c, RPC_RESOURCE_EXHAUSTED, STR("the caller does not take its answers"));
	else if (!bytes_grow(&c->out, c->out_room, waiting + sizeof(prefix) + message.len))
		call_refuse(c, RPC_UNAVAILABLE, STR("no memory"));
	if (c->has_ended)
		return;
	bytes_add(&c->out, str_make(prefix, sizeof(prefix)));
	bytes_add(&c->out, message);
}

/* ends: with that the call is answered. */
static void take_answer(struct call *c, const struct rpc_answer *answer, bool ends)
{
	if (answer->status != RPC_OK) {
		call_refuse(c, answer->status, answer->detail);
		return;
	}
	send_message(c, answer->message);
	if (ends && !c->has_ended) {
		c->has_ended = true;
		c->status = RPC_OK;
	}
}

static void find_id(const struct call *c, struct request *req)
{
	struct str name = c->service->config->request_id_header;

	for (size_t i = 0; name.len > 0 && i < req->n_headers; i++) {
		if (str_equal_nocase(req->headers[i].name, name)) {
			req->id = (struct fact){req->headers[i].value, true};
			return;
		}
	}
}

/* A caller that may not ask is told so as a denial: a call that fails may be let through by its failure mode. */
static void decide(struct call *c, struct str message)
{
	struct grpc_service *s = c->service;
	struct request req = {.door = c->method->door,
		.fault = REASON_CALLER_NOT_ALLOWED,
		.remote_addr = session_peer(c->session)->address,
		.cost = 1};
	struct verdict verdict;
	struct rpc_answer answer;
	ns started = clock_monotonic_ns();

	arena_reset(&s->question);
	arena_reset(&s->answer);
	if (c->is_allowed && !c->method->decode(message, &s->question, &req, &answer)) {
		take_answer(c, &answer, true);
		return;
	}
	find_id(c, &req);
	engine_decide(s->engine, &req, &s->answer, loop_now(s->loop), &verdict);
	probe_see(s->probes, &s->config->rules, &req, &verdict, loop_now(s->loop));
	c->method->encode(&s->config->rules, &verdict, &s->answer, &answer);
	take_answer(c, &answer, true);
	metrics_observe_decision(s->counters, req.door, clock_monotonic_ns() - started);
}

static void answer_message(struct call *c, struct str message)
{
	struct grpc_service *s = c->service;
	struct rpc_answer answer;

	if (c->method->shape == RPC_DECISION) {
		decide(c, message);
		return;
	}
	arena_reset(&s->question);
	c->context.serving = !atomic_load(s->draining);
	c->method->answer(message, &c->context, &s->question, &answer);
	take_answer(c, &answer, c->method->shape == RPC_UNARY);
}

void call_changed(struct call *c)
{
	struct rpc_answer answer;

	if (c->has_ended || c->method == NULL || c->method->shape != RPC_WATCH || !c->has_begun)
		return;
	arena_reset(&c->service->question);
	c->context.serving = !atomic_load(c->service->draining);
	c->method->changed(&c->context, &c->service->question, &answer);
	take_answer(c, &answer, false);
	session_send(c->session, c);
}

/* ---------------------------------------------------------------------------------------------------- coming in */

/* The length is judged before a byte of the message is kept. */
static void take_prefix(struct call *c)
{
	const uint8_t *p = c->prefix;
	size_t max = c->service->config->grpc_message_bytes;

	c->message_bytes = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
	if (p[0] > 1)
		call_refuse(c, RPC_INTERNAL, STR("the first byte of a message is 0 or 1"));
	else if (p[0] == 1)
		call_refuse(c, RPC_INTERNAL, STR("a compressed message without grpc-encoding"));
	else if (c->has_message)
		call_refuse(c, RPC_UNIMPLEMENTED, STR("one message is wanted, not more"));
	else if (c->message_bytes > max)
		call_refuse(c, RPC_RESOURCE_EXHAUSTED, STR("the message is larger than grpc.message_bytes"));
	else if (!session_may_hold(c->session, c->message_bytes) ||
		!bytes_grow(&c->in, c->in_room, c->message_bytes))
		call_refuse(c, RPC_RESOURCE_EXHAUSTED, STR("the connection holds too many unfinished messages"));
	/* Not waited out, as other refusals are: what is announced may never end. */
	if (c->has_ended && c->status == RPC_RESOURCE_EXHAUSTED)
		session_send(c->session, c);
}

static void take_message(struct call *c)
{
	if (c->method->shape == RPC_CHAT) {
		answer_message(c, str_make(c->in.ptr, c->in.len));
		c->in.len = 0;
		if (!c->has_ended)
			c->due = UINT64_MAX;
		session_send(c->session, c);
	} else {
		c->has_message = true;
	}
	c->prefix_len = 0;
}

void call_data(struct call *c, struct str bytes)
{
	while (bytes.len > 0 && !c->is_deaf) {
		size_t n;

		if (c->prefix_len < CALL_PREFIX_BYTES) {
			c->prefix[c->prefix_len++] = (uint8_t)bytes.ptr[0];
			bytes = str_from(bytes, 1);
			if (c->prefix_len == CALL_PREFIX_BYTES)
				take_prefix(c);
			if (c->prefix_len < CALL_PREFIX_BYTES || c->is_deaf || c->message_bytes > 0)
				continue;
		}
		n = c->message_bytes - c->in.len;
		n = n < bytes.len ? n : bytes.len;
		bytes_add(&c->in, str_head(bytes, n));
		bytes = str_from(bytes, n);
		if (c->in.len == c->message_bytes)
			take_message(c);
	}
}

void call_end(struct call *c)
{
	c->is_whole = true;
	if (!c->is_deaf && c->prefix_len > 0)
		call_refuse(c, RPC_INTERNAL, STR("the message is cut short"));
	else if (!c->has_ended && c->method->shape == RPC_CHAT)
		call_refuse(c, RPC_OK, STR(""));
	else if (!c->has_ended && !c->has_message && c->is_allowed)
		call_refuse(c, RPC_UNIMPLEMENTED, STR("one message is wanted, and there is none"));
	else if (!c->has_ended && loop_now(c->service->loop) >= c->due)
		call_refuse(c, RPC_DEADLINE_EXCEEDED, STR("the deadline has passed"));
	else if (!c->has_ended)
		answer_message(c, str_make(c->in.ptr, c->in.len));
	c->due = c->has_ended ? take_by(c) : UINT64_MAX;
	session_send(c->session, c);
}

void call_expire(struct call *c)
{
	if (c->has_begun && c->has_ended) {
		c->due = UINT64_MAX;
		session_reset(c->session, c);
		return;
	}
	c->due = take_by(c);
	call_refuse(c, RPC_DEADLINE_EXCEEDED, STR("the deadline has passed"));
	session_send(c->session, c);
}

/* A call that takes one message and has it all is answered already; the others would go on for ever. */
void call_leave(struct call *c)
{
	if (c->has_ended || c->method == NULL || c->method->shape == RPC_DECISION || c->method->shape == RPC_UNARY)
		return;
	call_refuse(c, RPC_UNAVAILABLE, STR("the server is going away"));
	session_send(c->session, c);
}

void call_count(struct call *c, bool is_cancelled)
{
	if (c->is_counted)
		return;
	c->is_counted = true;
	metrics_count_call(c->service->counters, c->method, is_cancelled ? METRICS_CALL_CANCELLED : c->status);
	if (!is_cancelled)
		metrics_count_answer(c->service->counters, LISTEN_GRPC, c->http_status);
}
