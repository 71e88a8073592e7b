/* SPDX-License-Identifier: MIT */
/*
 * What a turn has read is answered in the same turn and leaves in one send: with many calls on a connection that is where the
 * speed comes from. The buffers are the worker's, one for reading and one for writing; a connection has one of its own only
 * while its peer does not take what it was sent.
 * A gateway whose cluster lacks the setting for HTTP/2 sends gRPC in HTTP/1.1, and all its user sees are refusals: that is
 * recognised, and the log says which setting.
 */
#include "server/grpc.h"

#include "server/grpc_session.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 * 1024)
#define WRITE_BYTES ((size_t)128 * 1024)
#define LINGER_NS NS_PER_S
#define HEARD_WITHIN_NS (5 * NS_PER_S)
#define PATROL_MIN_NS (5 * NS_PER_MS)

/* A connection's life. */
enum stage {
	STAGE_PREFACE, /* nothing whole has come yet */
	STAGE_SERVING,
	STAGE_NOTICED, /* told that it will end; still takes new calls */
	STAGE_LEAVING, /* takes no new ones */
	STAGE_LINGER   /* everything is sent; waits for the peer to close */
};

struct link {
	struct link *next, *prev;
	struct grpc *grpc;
	struct connection *connection;
	struct session *session;
	struct loop_fd handle;
	enum stage stage;
	size_t preface_seen;
	ns since;        /* of the stage */
	ns last_read;
	ns stuck_since;  /* what is in unsent waits since then */
	ns age_due;      /* UINT64_MAX: never */
	char *unsent;    /* on the heap, or NULL */
	size_t unsent_at, unsent_len;
};

struct grpc {
	struct loop *loop;
	struct grpc_service service;
	struct loop_timer patrol;
	struct link *first;
	uint64_t jitter; /* state of a generator; its quality is of no matter */
	struct log_limit hints;
	bool is_leaving;
	char *read_buffer, *write_buffer;
};

static void patrol_by(struct grpc *g, ns due)
{
	ns soonest = loop_now(g->loop) + PATROL_MIN_NS;

	if (due == UINT64_MAX)
		return;
	due = due > soonest ? due : soonest;
	if (!g->patrol.active || due < g->patrol.due)
		loop_timer_set(g->loop, &g->patrol, due);
}

static void link_free(struct link *l)
{
	struct grpc *g = l->grpc;

	if (l->prev != NULL)
		l->prev->next = l->next;
	else
		g->first = l->next;
	if (l->next != NULL)
		l->next->prev = l->prev;
	loop_remove(g->loop, &l->handle);
	session_close(l->session);
	(void)close(l->connection->fd);
	connection_free(l->connection);
	free(l->unsent);
	free(l);
}

static void stage_set(struct link *l, enum stage stage)
{
	l->stage = stage;
	l->since = loop_now(l->grpc->loop);
}

/* ---------------------------------------------------------------------------------------------------- writing */

/* How much the socket took; -1: it is broken. */
static ssize_t send_some(struct link *l, const char *bytes, size_t n)
{
	ssize_t sent = send(l->connection->fd, bytes, n, MSG_NOSIGNAL);

	if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return 0;
	return sent;
}

/* Keeps what the socket did not take, and waits for it alone. */
static bool keep_unsent(struct link *l, const char *bytes, size_t n)
{
	struct grpc *g = l->grpc;

	l->unsent = malloc(n);
	if (l->unsent == NULL)
		return false;
	memcpy(l->unsent, bytes, n);
	l->unsent_at = 0;
	l->unsent_len = n;
	l->stuck_since = loop_now(g->loop);
	patrol_by(g, l->stuck_since + g->service.config->grpc_request_timeout_ns);
	return loop_change(g->loop, &l->handle, EPOLLOUT) == ERR_OK;
}

/* Everything the session has, gathered into as few sends as can be. False: the link is broken. */
static bool flush(struct link *l)
{
	char *buffer = l->grpc->write_buffer;
	const uint8_t *piece;
	size_t n, filled;

	if (l->unsent != NULL)
		return true;
	do {
		ssize_t sent;

		filled = 0;
		/* A piece is a frame, and those that we send are 16 KiB at most. */
		while (filled <= WRITE_BYTES / 2 && (n = session_output(l->session, &piece)) > 0) {
			if (n > WRITE_BYTES / 2)
				return false;
			memcpy(buffer + filled, piece, n);
			filled += n;
		}
		if (filled == 0)
			return true;
		sent = send_some(l, buffer, filled);
		if (sent < 0)
			return false;
		if ((size_t)sent < filled)
			return keep_unsent(l, buffer + sent, filled - (size_t)sent);
	} while (filled > WRITE_BYTES / 2);
	return true;
}

static bool resend(struct link *l)
{
	ssize_t sent = send_some(l, l->unsent + l->unsent_at, l->unsent_len - l->unsent_at);

	if (sent < 0)
		return false;
	if (sent > 0)
		l->stuck_since = loop_now(l->grpc->loop);
	l->unsent_at += (size_t)sent;
	if (l->unsent_at < l->unsent_len)
		return true;
	free(l->unsent);
	l->unsent = NULL;
	return loop_change(l->grpc->loop, &l->handle, EPOLLIN) == ERR_OK;
}

/* ---------------------------------------------------------------------------------------------------- stages */

/* When the link must be looked at again. */
static ns due_of(const struct link *l)
{
	const struct config *config = l->grpc->service.config;
	ns due = session_due(l->session), idle = l->last_read + config->grpc_idle_timeout_ns;

	if (l->unsent != NULL)
		return l->stuck_since + config->grpc_request_timeout_ns;
	switch (l->stage) {
	case STAGE_PREFACE:
		return l->since + (l->grpc->is_leaving ? LINGER_NS : config->grpc_request_timeout_ns);
	case STAGE_SERVING:
		idle = idle < l->age_due ? idle : l->age_due;
		return due < idle ? due : idle;
	case STAGE_NOTICED:
		return due < l->since + HEARD_WITHIN_NS ? due : l->since + HEARD_WITHIN_NS;
	case STAGE_LEAVING: return due;
	case STAGE_LINGER: return l->since + LINGER_NS;
	}
	return UINT64_MAX;
}

static void linger(struct link *l)
{
	(void)shutdown(l->connection->fd, SHUT_WR);
	stage_set(l, STAGE_LINGER);
	patrol_by(l->grpc, l->since + LINGER_NS);
}

static void notice(struct link *l)
{
	session_notice(l->session);
	stage_set(l, STAGE_NOTICED);
	patrol_by(l->grpc, l->since + HEARD_WITHIN_NS);
}

static void leave(struct link *l)
{
	session_leave(l->session);
	stage_set(l, STAGE_LEAVING);
}

/* Sends what there is and goes on to the next stage where this one is over. The link may be gone afterwards. */
static void settle(struct link *l)
{
	if (l->stage == STAGE_LINGER)
		return;
	if (l->stage == STAGE_NOTICED && session_was_heard(l->session))
		leave(l);
	if (!flush(l)) {
		link_free(l);
		return;
	}
	if (l->unsent == NULL && session_is_done(l->session))
		linger(l);
	else
		patrol_by(l->grpc, due_of(l));
}

/* ---------------------------------------------------------------------------------------------------- reading */

static const char other_protocol[] =
	"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain\r\nContent-Length: 63\r\n"
	"Connection: close\r\n\r\n"
	"this listener speaks gRPC: HTTP/2 without TLS, prior knowledge\n";

/* A method, a space and a path. */
static bool is_http1(struct str bytes)
{
	size_t i = 0;

	while (i < bytes.len && bytes.ptr[i] >= 'A' && bytes.ptr[i] <= 'Z')
		i++;
	return i > 0 && str_starts_with(str_from(bytes, i), STR(" /"));
}

static void refuse_http1(struct link *l, struct str bytes)
{
	struct grpc *g = l->grpc;

	if (str_starts_with(bytes, STR("POST ")) && log_limit_allows(&g->hints, loop_now(g->loop)))
		log_say(LOG_WARN, "grpc_over_http1",
			"a call came over HTTP/1.1: give the cluster in front \"http2_protocol_options\" (in Envoy: "
			"typed_extension_protocol_options, HttpProtocolOptions, explicit_http_config)");
	(void)send_some(l, other_protocol, sizeof(other_protocol) - 1);
	metrics_count_answer(g->service.counters, LISTEN_GRPC, 505);
	linger(l);
}

/* False: it is no beginning of HTTP/2. */
static bool preface_fits(struct link *l, struct str bytes)
{
	struct str rest = str_from(STR(SESSION_PREFACE), l->preface_seen);

	rest = str_head(rest, bytes.len);
	l->preface_seen += rest.len;
	if (l->preface_seen == SESSION_PREFACE_BYTES)
		stage_set(l, STAGE_SERVING);
	return str_starts_with(bytes, rest);
}

static void take(struct link *l, struct str bytes)
{
	struct grpc *g = l->grpc;

	l->last_read = loop_now(g->loop);
	if (l->stage == STAGE_LINGER)
		return;
	if (l->stage == STAGE_PREFACE && !preface_fits(l, bytes) && is_http1(bytes)) {
		refuse_http1(l, bytes);
		return;
	}
	if (session_receive(l->session, bytes.ptr, bytes.len)) {
		settle(l);
	} else if (flush(l)) {
		linger(l);
	} else {
		link_free(l);
	}
}

static void ready(void *arg, uint32_t epoll_events)
{
	struct link *l = arg;
	ssize_t n;

	if (l->unsent != NULL) {
		if (!resend(l))
			link_free(l);
		else if (l->unsent == NULL)
			settle(l);
		return;
	}
	(void)epoll_events;
	n = recv(l->connection->fd, l->grpc->read_buffer, READ_BYTES, 0);
	if (n > 0)
		take(l, str_make(l->grpc->read_buffer, (size_t)n));
	else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		link_free(l);
}

/* ---------------------------------------------------------------------------------------------------- time */

/* Something of the link is due. It may be gone afterwards. */
static void act(struct link *l, ns now)
{
	if (l->unsent != NULL || l->stage == STAGE_PREFACE || l->stage == STAGE_LINGER) {
		link_free(l);
		return;
	}
	session_expire(l->session, now);
	if (l->stage == STAGE_NOTICED && now >= l->since + HEARD_WITHIN_NS)
		leave(l);
	else if (l->stage == STAGE_SERVING &&
		(now >= l->age_due || now >= l->last_read + l->grpc->service.config->grpc_idle_timeout_ns))
		notice(l);
	settle(l);
}

static void patrol(void *arg)
{
	struct grpc *g = arg;
	ns now = loop_now(g->loop);

	for (struct link *l = g->first, *next; l != NULL; l = next) {
		next = l->next;
		if (due_of(l) <= now)
			act(l, now);
	}
	for (struct link *l = g->first; l != NULL; l = l->next)
		patrol_by(g, due_of(l));
}

/* ---------------------------------------------------------------------------------------------------- the whole */

enum err grpc_open(struct grpc **ret, struct loop *loop, const struct grpc_options *options)
{
	struct grpc *g = calloc(1, sizeof(*g));
	enum err e = ERR_MEMORY;

	if (g == NULL)
		return ERR_MEMORY;
	g->loop = loop;
	g->service = (struct grpc_service){.config = options->config,
		.loop = loop,
		.engine = options->engine,
		.counters = options->counters,
		.draining = options->draining,
		.probes = options->probes};
	g->patrol = (struct loop_timer){.fire = patrol, .arg = g};
	g->hints = (struct log_limit){.period_ns = 60 * NS_PER_S, .burst = 1};
	g->jitter = loop_now(loop) | 1;
	g->read_buffer = malloc(READ_BYTES);
	g->write_buffer = malloc(WRITE_BYTES);
	if (g->read_buffer != NULL && g->write_buffer != NULL)
		e = grpc_service_init(&g->service);
	if (e != ERR_OK) {
		grpc_close(g);
		return e;
	}
	*ret = g;
	return ERR_OK;
}

void grpc_close(struct grpc *g)
{
	if (g == NULL)
		return;
	while (g->first != NULL)
		link_free(g->first);
	loop_timer_stop(g->loop, &g->patrol);
	grpc_service_done(&g->service);
	free(g->read_buffer);
	free(g->write_buffer);
	free(g);
}

/* The setting, give or take a tenth, so that connections made together do not end together. */
static ns age_due(struct grpc *g)
{
	ns age = g->service.config->grpc_max_connection_age_ns;

	if (age == 0)
		return UINT64_MAX;
	g->jitter = g->jitter * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return loop_now(g->loop) + age - age / 10 + (age / 5000) * (g->jitter >> 54);
}

static struct link *link_new(struct grpc *g, struct connection *c)
{
	struct link *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return NULL;
	l->grpc = g;
	l->connection = c;
	l->handle = (struct loop_fd){.fd = c->fd, .ready = ready, .arg = l};
	l->last_read = loop_now(g->loop);
	l->age_due = g->is_leaving ? 0 : age_due(g);
	stage_set(l, STAGE_PREFACE);
	if (session_open(&l->session, &g->service, &c->peer) != ERR_OK) {
		free(l);
		return NULL;
	}
	if (loop_add(g->loop, &l->handle, EPOLLIN) != ERR_OK) {
		session_close(l->session);
		free(l);
		return NULL;
	}
	return l;
}

void grpc_add(struct grpc *g, struct connection *c)
{
	struct link *l = link_new(g, c);

	if (l == NULL) {
		(void)close(c->fd);
		connection_free(c);
		return;
	}
	l->next = g->first;
	if (g->first != NULL)
		g->first->prev = l;
	g->first = l;
	patrol_by(g, due_of(l));
}

void grpc_config_set(struct grpc *g, const struct config *config)
{
	g->service.config = config;
}

void grpc_changed(struct grpc *g)
{
	for (struct link *l = g->first, *next; l != NULL; l = next) {
		next = l->next;
		if (l->stage == STAGE_LINGER)
			continue;
		session_changed(l->session);
		settle(l);
	}
}

void grpc_leave(struct grpc *g)
{
	if (g->is_leaving)
		return;
	g->is_leaving = true;
	for (struct link *l = g->first, *next; l != NULL; l = next) {
		next = l->next;
		if (l->stage == STAGE_SERVING) {
			notice(l);
			settle(l);
		} else if (l->stage == STAGE_PREFACE) {
			l->age_due = 0;
			patrol_by(g, due_of(l));
		}
	}
}
