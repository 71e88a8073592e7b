/* SPDX-License-Identifier: MIT */
/*
 * The usual question comes in one piece and its answer goes out in one: a recv, a send, and no word to epoll. Only what does
 * not fit that waits, and always for one thing at a time: for bytes while something is missing, for room while an answer is
 * stuck. A peer that sends many questions ahead is made to wait the same way after some of them: a socket that has room is
 * ready in the next turn, after everybody else.
 * A head that comes in pieces is checked as it comes and read once more when it is whole, because the exchange that its lines
 * go to is large, and a peer that only begins heads shall not hold one.
 */
#include "server/http_channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define READS_A_TURN 16u
#define ANSWERS_A_TURN 32u
#define LINGER_NS (2 * NS_PER_S)
#define LINGER_READ_BYTES ((size_t)16 * 1024)
#define LINGER_BYTES ((uint64_t)8 * 1024 * 1024)

/* What a step leaves to be done. */
enum step {
	STEP_ON, /* something else can be done at once */
	STEP_WAIT, /* more bytes must come */
	STEP_END /* the channel is at its end */
};

static ns now_of(const struct channel *k)
{
	return loop_now(k->http->loop);
}

/* False: the channel cannot go on. */
static bool wait_for(struct channel *k, uint32_t epoll_events)
{
	if (k->waits_for == epoll_events)
		return true;
	k->waits_for = epoll_events;
	return loop_change(k->http->loop, &k->handle, epoll_events) == ERR_OK;
}

static void buffer_drop(struct channel *k)
{
	http_buffer_put(&k->http->buffers, k->buffer);
	k->buffer = NULL;
	k->start = 0;
	k->filled = 0;
}

/* Moves what is there to the front. */
static void buffer_close_up(struct channel *k)
{
	memmove(k->buffer->bytes, k->buffer->bytes + k->start, k->filled - k->start);
	k->filled -= k->start;
	k->start = 0;
}

/* ---------------------------------------------------------------------------------------------------- answering */

static void answer_ready(struct channel *k)
{
	struct http *h = k->http;
	struct exchange *x = k->exchange;
	struct http_answer_form form = {
		.date = &h->date,
		.without_body = str_equal(x->question.method, STR("HEAD")),
		.to_http_1_0 = k->head.is_http_1_0,
	};

	k->phase = PHASE_ANSWER;
	if (atomic_load_explicit(h->options.closing, memory_order_relaxed)) {
		k->is_last = true;
		k->has_unread = true; /* the peer may have sent the next one before it can know */
	}
	form.is_last = k->is_last;
	http_date_refresh(&h->date, now_of(k));
	if (!x->answered || !http_answer_write(x, &form, k->output)) {
		k->is_last = true;
		x->answer.status = 503;
		k->output[0] = http_answer_failure();
	}
	metrics_count_answer(h->options.counters, h->options.listener, x->answer.status);
}

/* Answers with the problem that is set, as the last thing this connection says. */
static void answer_problem(struct channel *k)
{
	struct exchange *x = k->exchange;

	k->is_last = true;
	k->has_unread = true;
	metrics_count_problem(k->http->options.counters, x->problem.code);
	exchange_answer_problem(x);
	answer_ready(k);
}

static void refuse(struct channel *k, const struct head_fault *fault)
{
	problem_set(&k->exchange->problem, fault->code, "%s", fault->detail_z);
	answer_problem(k);
}

/* Without memory for an exchange. */
static enum step answer_failure(struct channel *k)
{
	k->phase = PHASE_ANSWER;
	k->is_last = true;
	k->has_unread = true;
	k->output[0] = http_answer_failure();
	metrics_count_answer(k->http->options.counters, k->http->options.listener, 503);
	return STEP_ON;
}

static enum step linger(struct channel *k)
{
	if (shutdown(k->connection->fd, SHUT_WR) != 0)
		return STEP_END;
	k->phase = PHASE_LINGER;
	k->moved_at = now_of(k);
	k->left = LINGER_BYTES;
	buffer_drop(k);
	return STEP_WAIT;
}

/* The answer is out. */
static enum step answer_done(struct channel *k)
{
	if (k->exchange != NULL)
		exchange_put(k->exchange);
	k->exchange = NULL;
	if (k->is_last)
		return k->has_unread || k->start < k->filled ? linger(k) : STEP_END;
	k->phase = PHASE_HEAD;
	k->head.scanned = 0;
	k->asked_at = k->start < k->filled ? now_of(k) : 0;
	/* Behind the next head there must be room for a body again. */
	if (k->filled > k->buffer->size - HTTP_BODY_ROOM)
		buffer_close_up(k);
	return STEP_ON;
}

/* STEP_ON: nothing is left to be sent. STEP_WAIT: the socket takes no more just then. */
static enum step send_output(struct channel *k)
{
	while (k->output[0].len + k->output[1].len > 0) {
		ssize_t sent;

		if (k->output[1].len == 0) {
			sent = send(k->connection->fd, k->output[0].ptr, k->output[0].len, MSG_NOSIGNAL);
		} else {
			struct iovec parts[2];
			struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

			for (size_t i = 0; i < 2; i++)
				parts[i] = (struct iovec){(void *)(uintptr_t)k->output[i].ptr, k->output[i].len};
			sent = sendmsg(k->connection->fd, &message, MSG_NOSIGNAL);
		}
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? STEP_WAIT : STEP_END;
		k->moved_at = now_of(k);
		for (size_t i = 0, gone = (size_t)sent; i < 2; i++) {
			size_t of_this = gone < k->output[i].len ? gone : k->output[i].len;

			k->output[i] = str_from(k->output[i], of_this);
			gone -= of_this;
		}
	}
	return STEP_ON;
}

/* ---------------------------------------------------------------------------------------------------- questions */

static void question_finish(struct channel *k)
{
	k->http->options.service.finish(k->http->options.service.arg, k->exchange);
	answer_ready(k);
}

/* The head is whole and lies in front of start. */
static void question_begin(struct channel *k)
{
	const struct http_service *service = &k->http->options.service;
	struct exchange *x = k->exchange;

	x->peer = &k->connection->peer;
	x->question.method = k->head.method;
	x->question.target = k->head.target;
	x->question.n_headers = k->head.n_lines;
	x->body_announced = k->head.is_chunked || k->head.length > 0;
	x->body_announced_bytes = k->head.length;
	k->is_last = !k->head.keeps_alive;
	k->has_unread = false;
	if (service->begin(service->arg, x)) {
		k->is_last = true;
		k->has_unread = true;
		answer_ready(k);
		return;
	}
	if (!x->body_announced) {
		question_finish(k);
		return;
	}
	k->phase = PHASE_BODY;
	k->body_at = k->start;
	k->left = k->head.length;
	chunks_init(&k->chunks);
	if (k->head.expects_continue && k->start == k->filled)
		k->output[0] = STR("HTTP/1.1 100 Continue\r\n\r\n");
}

static enum step read_head(struct channel *k)
{
	bool is_fresh = k->head.scanned == 0;
	const char *bytes;
	enum head_state state;

	if (k->start == k->filled) {
		buffer_drop(k);
		return STEP_WAIT;
	}
	bytes = k->buffer->bytes + k->start;
	if (k->asked_at == 0)
		k->asked_at = now_of(k);
	k->exchange = exchange_take(k->http->options.pool);
	if (k->exchange == NULL)
		return answer_failure(k);
	if (is_fresh)
		http_head_init(&k->head, k->http->options.header_bytes, k->exchange->lines);
	state = http_head_read(&k->head, bytes, k->filled - k->start);
	if (state == HEAD_DONE && !is_fresh) {
		http_head_init(&k->head, k->http->options.header_bytes, k->exchange->lines);
		state = http_head_read(&k->head, bytes, k->filled - k->start);
	}
	switch (state) {
	case HEAD_MORE:
		exchange_put(k->exchange);
		k->exchange = NULL;
		k->head.lines = NULL;
		return STEP_WAIT;
	case HEAD_BAD: refuse(k, k->head.fault); break;
	case HEAD_DONE:
		k->start += k->head.n_bytes;
		question_begin(k);
		break;
	}
	return STEP_ON;
}

/* A body with a length. One that has come with its head is judged where it lies. */
static enum step read_counted(struct channel *k)
{
	struct exchange *x = k->exchange;
	size_t n = k->filled - k->start;

	if (n > k->left)
		n = (size_t)k->left;
	if (n == k->head.length && n <= x->pool->body_max_bytes) {
		x->question.body = str_make(k->buffer->bytes + k->start, n);
	} else {
		if (!exchange_body_add(x, k->buffer->bytes + k->start, n)) {
			answer_problem(k);
			return STEP_ON;
		}
		x->question.body = str_make(x->body, x->body_len);
	}
	k->start += n;
	k->left -= n;
	if (k->left > 0)
		return STEP_WAIT;
	question_finish(k);
	return STEP_ON;
}

static enum step read_chunks(struct channel *k)
{
	static const struct head_fault fault = {PROBLEM_BAD_FRAMING, "a chunk of the body is malformed, or its lines are too long"};
	struct exchange *x = k->exchange;

	for (;;) {
		size_t used;
		struct str piece;
		enum chunks_state state =
			chunks_read(&k->chunks, k->buffer->bytes + k->start, k->filled - k->start, &used, &piece);

		k->start += used;
		switch (state) {
		case CHUNKS_MORE: return STEP_WAIT;
		case CHUNKS_PIECE:
			if (exchange_body_add(x, piece.ptr, piece.len))
				continue;
			answer_problem(k);
			return STEP_ON;
		case CHUNKS_END:
			x->question.body = str_make(x->body, x->body_len);
			question_finish(k);
			return STEP_ON;
		case CHUNKS_BAD: refuse(k, &fault); return STEP_ON;
		}
	}
}

/* Everything that can be done with what is there. False: the channel is at its end. */
static bool work(struct channel *k)
{
	unsigned answers = 0;

	for (;;) {
		enum step step = send_output(k);

		if (step == STEP_WAIT)
			return wait_for(k, EPOLLOUT);
		if (step == STEP_ON) {
			switch (k->phase) {
			case PHASE_HEAD: step = read_head(k); break;
			case PHASE_BODY: step = k->head.is_chunked ? read_chunks(k) : read_counted(k); break;
			case PHASE_ANSWER:
				step = answer_done(k);
				answers++;
				break;
			case PHASE_LINGER: step = STEP_WAIT; break;
			}
		}
		if (step == STEP_END)
			return false;
		if (step == STEP_WAIT)
			return wait_for(k, EPOLLIN);
		if (answers >= ANSWERS_A_TURN && k->phase == PHASE_HEAD && k->start < k->filled)
			return wait_for(k, EPOLLOUT);
	}
}

/* ---------------------------------------------------------------------------------------------------- reading */

/* Makes room behind what is filled; returns where the room ends, or 0 without memory. The lines of a head that has been read
 * point into the buffer: while its body is read it stays where it is, and what has been taken of the body makes room. */
static size_t make_room(struct channel *k)
{
	struct http_buffers *pool = &k->http->buffers;
	size_t end;

	if (k->buffer == NULL)
		k->buffer = http_buffer_take(pool);
	else if (k->phase == PHASE_BODY)
		k->start = k->filled = k->body_at;
	else if (k->start > 0)
		buffer_close_up(k);
	if (k->buffer == NULL)
		return 0;
	end = k->buffer->size - HTTP_BODY_ROOM;
	if (k->phase == PHASE_BODY)
		return end > k->body_at + HTTP_BODY_ROOM ? end : k->body_at + HTTP_BODY_ROOM;
	if (k->filled < end)
		return end;
	return http_buffer_grow(pool, &k->buffer, k->filled) ? k->buffer->size - HTTP_BODY_ROOM : 0;
}

/* False: the channel is at its end. *ret_is_full: there may be more at once. */
static bool receive(struct channel *k, bool *ret_is_full)
{
	size_t end = make_room(k);
	ssize_t n = 0;

	if (end > 0)
		n = recv(k->connection->fd, k->buffer->bytes + k->filled, end - k->filled, 0);
	*ret_is_full = false;
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	k->moved_at = now_of(k);
	k->filled += (size_t)n;
	*ret_is_full = k->filled == end;
	return true;
}

static bool read_over(struct channel *k)
{
	char sink[LINGER_READ_BYTES];

	for (unsigned i = 0; i < READS_A_TURN; i++) {
		ssize_t n = recv(k->connection->fd, sink, sizeof(sink), 0);

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
			return true;
		if (n <= 0 || (uint64_t)n > k->left)
			return false;
		k->left -= (uint64_t)n;
	}
	return true;
}

static bool go_on(struct channel *k)
{
	bool is_full = true;

	if (k->phase == PHASE_LINGER)
		return read_over(k);
	if (k->waits_for == EPOLLOUT)
		return work(k);
	for (unsigned i = 0; is_full && i < READS_A_TURN; i++) {
		if (!receive(k, &is_full) || !work(k))
			return false;
		is_full = is_full && k->waits_for == EPOLLIN && k->phase != PHASE_LINGER;
	}
	return true;
}

static void ready(void *arg, uint32_t epoll_events)
{
	struct channel *k = arg;

	(void)epoll_events;
	if (!go_on(k))
		channel_end(k);
}

/* ---------------------------------------------------------------------------------------------------- life */

void channel_open(struct http *h, struct connection *c)
{
	struct channel *k = calloc(1, sizeof(*k));

	if (k == NULL) {
		(void)close(c->fd);
		connection_free(c);
		return;
	}
	k->http = h;
	k->connection = c;
	k->handle = (struct loop_fd){.fd = c->fd, .ready = ready, .arg = k};
	k->waits_for = EPOLLIN;
	k->asked_at = now_of(k);
	k->moved_at = k->asked_at;
	k->next = h->first;
	if (h->first != NULL)
		h->first->prev = k;
	h->first = k;
	if (loop_add(h->loop, &k->handle, EPOLLIN) != ERR_OK)
		channel_end(k);
}

void channel_end(struct channel *k)
{
	if (k->prev != NULL)
		k->prev->next = k->next;
	else
		k->http->first = k->next;
	if (k->next != NULL)
		k->next->prev = k->prev;
	loop_remove(k->http->loop, &k->handle);
	if (k->exchange != NULL)
		exchange_put(k->exchange);
	buffer_drop(k);
	(void)close(k->connection->fd);
	connection_free(k->connection);
	free(k);
}

void channel_check_time(struct channel *k)
{
	const struct http_options *o = &k->http->options;
	ns now = now_of(k), silent = now - k->moved_at;
	bool is_late = k->asked_at != 0 && now - k->asked_at > o->request_timeout_ns;

	if (k->phase == PHASE_LINGER ? silent > LINGER_NS : is_late || silent > o->idle_timeout_ns)
		channel_end(k);
}

void channel_shut_idle(struct channel *k)
{
	/* Only for reading: what has already come is still read and answered. */
	if (k->phase == PHASE_HEAD && k->buffer == NULL)
		(void)shutdown(k->connection->fd, SHUT_RD);
}
