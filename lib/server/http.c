/* SPDX-License-Identifier: MIT */
/*
 * What libmicrohttpd 0.9.75 makes of a request is not always what was sent, and where its memory for one request runs out it
 * may close without an answer, which a gateway takes for a failure of ours and may let the request pass. Hence:
 * It decodes the target, so it gets a decoder that does nothing; it cuts the target up at each "&", so the byte behind "?" is
 * hidden from it until the first handler call; it cuts up Cookie, so a cookie of our own stands first and is the only one it
 * sees; and where what is left might not hold the answer's header, 431 goes out by hand.
 * It joins folded lines to a name, cuts values at NUL and drops lines without a name. It parses in place, so all that shows
 * as gaps between the pieces it tells us of. The rest of the framing is judged in exchange.c, so its strict mode stays off.
 * A response queued in the first handler call ends the connection, at 3.5 times the CPU: only where that is wanted. None can
 * be queued in the middle of a body. It knows one timeout, for silence, and none for a request that trickles: a patrol over
 * our own list shuts those sockets down. It refuses an empty value in a header; exchange_seal makes that one space.
 * Where a chunk's line outgrows its buffer it asks to be run again at once, for ever: such connections are found and ended.
 */
#include "server/http.h"

#include "server/server.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Turns in a row that the library asked for while it told us of nothing and no event came: the longest header that is read
 * step by step takes less. From then on it gets a rest between two of them. */
#define IDLE_TURNS_MAX 256
#define REST_NS NS_PER_MS
/* ... and that it asked for, whatever else happened in them, between two looks for who is stuck. */
#define LOOK_TURNS 32

#define SPARE_CONNECTIONS                                                                                    \
	64 /* ours are counted for all workers; the library must never be the one to refuse */

/* The library's memory for one request: half of it, or the header if that is more, holds what was read; then a record for
 * each line (two and some bytes more for our cookie); then the answer's header, which stays under ANSWER_HEADER_BYTES.
 * It is wiped one and a half times a request, which at 32 KiB is a tenth of all the time spent; so there is no more of it
 * than 70 lines, or 130 in a header of 12 KiB, need beside the default of 16 KiB. */
#define POOL_BESIDE_BYTES ((size_t)8 * 1024)
#define POOL_BYTES_MIN ((size_t)16 * 1024)
#define RECORD_BYTES ((size_t)64)
#define RECORDS_OF_OURS 3
#define ANSWER_HEADER_BYTES ((size_t)3584)

static const char cookie_of_ours[] = "postern";

struct http {
	struct MHD_Daemon *daemon;
	struct loop *loop;
	struct loop_fd epoll;
	struct loop_hook hook;
	bool ready;
	bool moved; /* the library has told us of something since the turn began, or an event has come */
	unsigned asked_turns, idle_turns;
	ns rest_until;
	struct http_options options;
	struct connection_list list;
	struct connection *adding; /* handed to the library, which has not shown it to us yet */
	struct MHD_Response *failure;
	size_t pool_bytes;
	bool parses_in_place; /* this version lays a request out as question_fill expects it */
	bool no_room; /* the request that is about to be reported as completed gets no answer for want of memory */
};

const char *server_http_library_z(void)
{
	return MHD_get_version();
}

/* ---------------------------------------------------------------------------------------------------- connections */

static struct connection *connection_of(struct MHD_Connection *m)
{
	return MHD_get_connection_info(m, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void on_connection(
	void *cls, struct MHD_Connection *m, void **socket_context, enum MHD_ConnectionNotificationCode code)
{
	struct http *h = cls;

	(void)m;
	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*socket_context = h->adding;
		connection_list_add(&h->list, h->adding);
		h->adding = NULL;
	} else {
		connection_list_remove(&h->list, *socket_context);
		connection_free(*socket_context);
	}
}

void http_add(struct http *h, struct connection *c)
{
	h->adding = c;
	/* Where it fails the library closes the descriptor, and tells on_connection only if it had told it of the start. */
	if (MHD_add_connection(h->daemon, c->fd, (const struct sockaddr *)&c->address, c->address_len) !=
			MHD_YES &&
		h->adding != NULL)
		connection_free(c);
	h->adding = NULL;
	h->ready = true;
}

void http_shut_idle(struct http *h)
{
	connection_list_shut_idle(&h->list);
}

/* ---------------------------------------------------------------------------------------------------- questions */

/* The target is there, the header not yet. What this returns is the context of the other two calls. */
static void *on_target(void *cls, const char *target, struct MHD_Connection *m)
{
	struct http *h = cls;
	struct connection *c = connection_of(m);
	const char *mark = strchr(target, '?');

	h->moved = true;
	c->in_request = true;
	if (c->waiting_since == 0)
		c->waiting_since = loop_now(h->loop);
	c->query = NULL;
	if (mark != NULL) {
		/* The buffer is the library's own and writable. */
		c->query = (char *)(uintptr_t)(mark + 1);
		c->query_first = *c->query;
		*c->query = '\0';
	}
	(void)MHD_set_connection_value_n(m, MHD_HEADER_KIND, MHD_HTTP_HEADER_COOKIE,
		sizeof(MHD_HTTP_HEADER_COOKIE) - 1, cookie_of_ours, sizeof(cookie_of_ours) - 1);
	return c;
}

static size_t leave_escaped(void *cls, struct MHD_Connection *m, char *s)
{
	(void)cls;
	(void)m;
	return strlen(s);
}

/* Makes the target whole again: the library has put a NUL where "?" was, and we one behind it. */
static void target_restore(struct connection *c)
{
	if (c->query == NULL)
		return;
	c->query[-1] = '?';
	c->query[0] = c->query_first;
	c->query = NULL;
}

/* A walk over the header lines as the library tells them. */
struct walk {
	struct exchange *x;
	const char *next; /* where the next line must begin if all were told */
	size_t n;
	bool whole;
};

static enum MHD_Result take_line(void *cls, enum MHD_ValueKind kind, const char *name, size_t name_len,
	const char *value, size_t value_len)
{
	struct walk *w = cls;

	(void)kind;
	if (value == cookie_of_ours)
		return MHD_YES;
	w->whole = w->whole && name == w->next && value > name + name_len;
	for (const char *p = name + name_len + 1; w->whole && p < value; p++)
		w->whole = *p == ' ' || *p == '\t';
	w->next = value + value_len + 2;
	w->n++;
	if (w->n <= EXCHANGE_LINES_MAX)
		exchange_line_add(w->x, str_make(name, name_len), str_make(value, value_len));
	return MHD_YES;
}

/* False, and the problem set, if the header is larger than allowed, or so large that an answer might have no room. */
static bool question_fill(
	struct http *h, struct exchange *x, struct MHD_Connection *m, const char *const request_line[3])
{
	const char *method = request_line[0], *url = request_line[1], *version = request_line[2];
	size_t header_bytes =
		MHD_get_connection_info(m, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size;
	size_t read_bytes = h->pool_bytes / 2;
	struct walk w = {.x = x, .next = version + strlen(version) + 2, .whole = true};

	x->question.method = str_from_z(method);
	x->question.target = str_from_z(url);
	x->is_http_1_0 = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
	MHD_get_connection_values_n(m, MHD_HEADER_KIND, take_line, &w);
	x->is_malformed = h->parses_in_place && (url != method + x->question.method.len + 1 ||
							version != url + x->question.target.len + 1 ||
							!w.whole || w.next + 2 != method + header_bytes);
	if (read_bytes < header_bytes)
		read_bytes = header_bytes;
	if (w.n <= EXCHANGE_LINES_MAX && header_bytes <= h->options.header_bytes &&
		read_bytes + (w.n + RECORDS_OF_OURS) * RECORD_BYTES + ANSWER_HEADER_BYTES <= h->pool_bytes)
		return true;
	problem_set(&x->problem, PROBLEM_HEADERS_TOO_LARGE,
		"too many header lines, or more bytes in them than http.header_bytes");
	x->has_problem = true;
	return false;
}

/* ---------------------------------------------------------------------------------------------------- answers */

static enum MHD_Result send_failure(struct http *h, struct MHD_Connection *m)
{
	return MHD_queue_response(m, MHD_HTTP_SERVICE_UNAVAILABLE, h->failure);
}

/* A line that the library will not take must not be left out in silence: a missing identity header lets a forged one live. */
static bool add_headers(const struct exchange *x, struct MHD_Response *r, bool last)
{
	for (size_t i = 0; i < x->answer.n_headers; i++) {
		const struct header_line *line = &x->answer.headers[i];

		if (MHD_add_response_header(r, line->name.ptr, line->value.ptr) != MHD_YES)
			return false;
	}
	return !last || MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close") == MHD_YES;
}

static enum MHD_Result send_answer(struct http *h, struct MHD_Connection *m, struct exchange *x)
{
	bool last = atomic_load_explicit(h->options.closing, memory_order_relaxed);
	struct str body = x->answer.body;
	struct MHD_Response *r;
	enum MHD_Result queued;

	if (!exchange_seal(x))
		return send_failure(h, m);
	/* The library only reads a persistent buffer. */
	r = MHD_create_response_from_buffer(
		body.len, (void *)(uintptr_t)(body.len > 0 ? body.ptr : ""), MHD_RESPMEM_PERSISTENT);
	if (r == NULL)
		return MHD_NO;
	queued = add_headers(x, r, last) ? MHD_queue_response(m, x->answer.status, r) : send_failure(h, m);
	MHD_destroy_response(r);
	return queued;
}

/* Says the problem past the library, where that could not; returning MHD_NO then closes. Nothing else is on its way out at
 * that point, and what the socket does not take at once is lost, as it would be with a client that does not read. */
static void send_raw(struct http *h, struct connection *c, const struct problem *problem)
{
	struct exchange *x = exchange_take(h->options.pool);
	struct str bytes;

	if (x == NULL)
		return;
	x->problem = *problem;
	bytes = exchange_raw_problem(x);
	(void)send(c->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL | MSG_DONTWAIT);
	metrics_count_problem(h->options.counters, problem->code);
	metrics_count_answer(h->options.counters, h->options.listener, x->answer.status);
	exchange_put(x);
}

/* ---------------------------------------------------------------------------------------------------- calls of the library */

static enum MHD_Result on_header(
	struct http *h, struct MHD_Connection *m, struct connection *c, const char *const request_line[3])
{
	struct exchange *x = exchange_take(h->options.pool);

	if (x == NULL)
		return MHD_NO;
	c->exchange = x;
	c->waiting_since = loop_now(h->loop);
	x->peer = &c->peer;
	target_restore(c);
	if (!question_fill(h, x, m, request_line)) {
		send_raw(h, c, &x->problem);
		return MHD_NO;
	}
	return h->options.service.begin(h->options.service.arg, x) ? send_answer(h, m, x) : MHD_YES;
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *m, const char *url, const char *method,
	const char *version, const char *upload, size_t *upload_len, void **context)
{
	struct http *h = cls;
	struct connection *c = *context;
	struct exchange *x = c->exchange;
	const char *const request_line[3] = {method, url, version};

	h->moved = true;
	c->is_suspect = false;
	if (x == NULL)
		return on_header(h, m, c, request_line);
	if (*upload_len > 0) {
		if (!exchange_body_add(x, upload, *upload_len)) {
			send_raw(h, c, &x->problem);
			return MHD_NO;
		}
		*upload_len = 0;
		return MHD_YES;
	}
	x->question.body = str_make(x->body, x->body_len);
	h->options.service.finish(h->options.service.arg, x);
	return send_answer(h, m, x);
}

/* The one message that matters: the answer has no room, and the connection is about to be closed without it. */
static void on_log(void *cls, const char *format, va_list args)
{
	struct http *h = cls;

	if (strcmp(format, "%s\n") == 0 &&
		strstr(va_arg(args, const char *), "failed to create response header") != NULL)
		h->no_room = true;
}

/* What the library refused by itself. */
static void count_refusal(struct http *h, unsigned status)
{
	metrics_count_problem(
		h->options.counters, status == 431 ? PROBLEM_HEADERS_TOO_LARGE : PROBLEM_BAD_FRAMING);
}

static void on_completed(
	void *cls, struct MHD_Connection *m, void **context, enum MHD_RequestTerminationCode code)
{
	struct http *h = cls;
	struct connection *c = *context;
	const union MHD_ConnectionInfo *status = MHD_get_connection_info(m, MHD_CONNECTION_INFO_HTTP_STATUS);
	bool no_room = h->no_room;

	(void)code;
	h->moved = true;
	h->no_room = false;
	if (c == NULL)
		return;
	if (no_room) {
		struct problem p;

		problem_set(&p, PROBLEM_HEADERS_TOO_LARGE, "the header leaves no room for the answer's");
		send_raw(h, c, &p);
	} else if (status != NULL) {
		metrics_count_answer(h->options.counters, h->options.listener, status->http_status);
		if (c->exchange == NULL || !c->exchange->answered)
			count_refusal(h, status->http_status);
	}
	if (c->exchange != NULL)
		exchange_put(c->exchange);
	c->exchange = NULL;
	c->in_request = false;
	c->is_suspect = false;
	c->waiting_since = 0;
	*context = NULL;
}

/* ---------------------------------------------------------------------------------------------------- daemon */

static void epoll_ready(void *arg, uint32_t epoll_events)
{
	struct http *h = arg;

	(void)epoll_events;
	h->ready = true;
}

static ns library_patience(const struct http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(h->daemon, &ms) != MHD_YES)
		return UINT64_MAX;
	return (ns)ms * NS_PER_MS;
}

static ns hook_patience(void *arg)
{
	const struct http *h = arg;
	ns now = loop_now(h->loop);

	return h->rest_until > now ? h->rest_until - now : library_patience(h);
}

/* Behind a turn: does the library go round in circles? */
static void watch_turns(struct http *h)
{
	h->rest_until = 0;
	if (library_patience(h) > 0) {
		h->asked_turns = h->idle_turns = 0;
		return;
	}
	h->idle_turns = h->moved ? 0 : h->idle_turns + 1;
	if (++h->asked_turns % LOOK_TURNS == 0)
		connection_list_shut_stuck(&h->list, h->idle_turns >= IDLE_TURNS_MAX);
	if (h->idle_turns >= IDLE_TURNS_MAX)
		h->rest_until = loop_now(h->loop) + REST_NS;
}

static void hook_turn(void *arg)
{
	struct http *h = arg;

	if (!h->ready && hook_patience(h) > 0)
		return;
	h->moved = h->ready;
	h->ready = false;
	(void)MHD_run(h->daemon);
	watch_turns(h);
}

static size_t pool_size(size_t header_bytes)
{
	size_t bytes = header_bytes + POOL_BESIDE_BYTES;

	return bytes > POOL_BYTES_MIN ? bytes : POOL_BYTES_MIN;
}

static struct MHD_Daemon *daemon_start(struct http *h)
{
	const struct http_options *o = &h->options;
	ns idle_s = (o->idle_timeout_ns + NS_PER_S - 1) / NS_PER_S;

	/* The logger must come first. */
	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		on_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_log, h, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		h->pool_bytes, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(o->max_connections + SPARE_CONNECTIONS), MHD_OPTION_CONNECTION_TIMEOUT,
		(unsigned)idle_s, MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_URI_LOG_CALLBACK, on_target, h,
		MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

static struct MHD_Response *failure_new(void)
{
	static const char body[] = "{\"error\": \"internal\"}\n";
	struct MHD_Response *r = MHD_create_response_from_buffer(
		sizeof(body) - 1, (void *)(uintptr_t)body, MHD_RESPMEM_PERSISTENT);

	if (r != NULL && (MHD_add_response_header(r, "Content-Type", "application/json") != MHD_YES ||
				 MHD_add_response_header(r, "Cache-Control", "no-store") != MHD_YES)) {
		MHD_destroy_response(r);
		r = NULL;
	}
	return r;
}

enum err http_open(struct http **ret, struct loop *loop, const struct http_options *options)
{
	struct http *h = calloc(1, sizeof(*h));
	enum err e;

	if (h == NULL)
		return ERR_MEMORY;
	h->loop = loop;
	h->options = *options;
	connection_list_init(&h->list, loop, options->request_timeout_ns);
	h->pool_bytes = pool_size(options->header_bytes);
	h->parses_in_place = str_starts_with(str_from_z(MHD_get_version()), STR("0.9.75"));
	h->failure = failure_new();
	h->daemon = h->failure != NULL ? daemon_start(h) : NULL;
	if (h->daemon == NULL) {
		http_close(h);
		return ERR_MEMORY;
	}
	h->epoll = (struct loop_fd){.fd = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd,
		.ready = epoll_ready,
		.arg = h};
	e = loop_add(loop, &h->epoll, EPOLLIN);
	if (e != ERR_OK) {
		http_close(h);
		return e;
	}
	h->hook = (struct loop_hook){.turn = hook_turn, .patience = hook_patience, .arg = h};
	loop_hook_add(loop, &h->hook);
	*ret = h;
	return ERR_OK;
}

void http_close(struct http *h)
{
	if (h == NULL)
		return;
	loop_hook_remove(h->loop, &h->hook);
	loop_remove(h->loop, &h->epoll);
	if (h->daemon != NULL)
		MHD_stop_daemon(h->daemon);
	connection_list_done(&h->list);
	if (h->failure != NULL)
		MHD_destroy_response(h->failure);
	free(h);
}
