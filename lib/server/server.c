/* SPDX-License-Identifier: MIT */
/*
 * Puts the parts together and takes them apart again. Stopping has three steps, and each begins where the last one has been
 * seen through: not ready, so that whoever deals out traffic stops sending it; no new connections, and one more answer on
 * those there are, so that nobody's question meets a closed socket; then the end, when the last is gone or the time is up.
 * ops goes on answering until then. All of it is driven by worker 0's loop, which is the main thread.
 */
#include "server/server.h"

#include "server/acceptor.h"
#include "server/admin.h"
#include "server/ops.h"
#include "server/reload.h"
#include "server/worker.h"

#include "base/log.h"
#include "io/proc.h"
#include "watch/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Of ops and admin each. */
#define SIDE_CONNECTIONS_MAX 64
#define SIDE_HEADER_BYTES ((size_t)8 * 1024)
/* Descriptors that questions never get: for ops and admin, and for files that are read meanwhile. */
#define DESCRIPTORS_KEPT 24
#define LOOK_NS (10 * NS_PER_MS)
#define WATCH_NS NS_PER_S

struct server {
	const struct config *config; /* in force */
	struct reload reload;
	struct worker **workers;
	unsigned n_workers, next_worker, next_grpc_worker;
	struct acceptor acceptors[LISTEN_COUNT];
	struct connection_counters connections[LISTEN_COUNT];
	struct probe_board *probes;
	struct ops ops;
	struct admin admin;
	struct side {
		struct exchange_pool pool;
		struct http *http;
	} sides[LISTEN_COUNT]; /* of ops and admin, on worker 0 */
	struct loop_fd signals;
	struct loop_timer watch;
	struct worker_flags flags;
	struct loop_timer step;
	ns deadline;
	enum err outcome;
};

/* ---------------------------------------------------------------------------------------------------- stopping */

static void stop(struct server *s, enum err outcome)
{
	s->outcome = outcome;
	loop_timer_stop(s->workers[0]->loop, &s->step);
	loop_stop(s->workers[0]->loop);
}

static void step_set(struct server *s, void (*fire)(void *arg), ns wait)
{
	struct loop *loop = s->workers[0]->loop;

	s->step.fire = fire;
	s->step.arg = s;
	loop_timer_set(loop, &s->step, loop_now(loop) + wait);
}

static void finish_look(void *arg)
{
	struct server *s = arg;
	size_t open = atomic_load(&s->connections[LISTEN_HTTP].open) +
		atomic_load(&s->connections[LISTEN_GRPC].open);

	if (open == 0) {
		stop(s, ERR_OK);
	} else if (loop_now(s->workers[0]->loop) >= s->deadline) {
		log_say(LOG_WARN, "drain_timeout", "the time to finish is up, connections cut off: %zu",
			open);
		stop(s, ERR_TIMEOUT);
	} else {
		step_set(s, finish_look, LOOK_NS);
	}
}

static void wake_all(struct server *s)
{
	for (unsigned i = 0; i < s->n_workers; i++)
		loop_wake(s->workers[i]->loop);
}

static void accepting_end(void *arg)
{
	struct server *s = arg;

	acceptor_close(&s->acceptors[LISTEN_HTTP]);
	acceptor_close(&s->acceptors[LISTEN_GRPC]);
	atomic_store(&s->flags.closing, true);
	wake_all(s);
	s->deadline = loop_now(s->workers[0]->loop) + s->config->drain_timeout_ns;
	step_set(s, finish_look, 0);
}

static void signal_take(struct server *s, int number)
{
	if (number == SIGHUP) {
		reload_ask(&s->reload);
		return;
	}
	if (atomic_load(&s->flags.draining)) {
		log_say(LOG_WARN, "stop_now", "told to stop a second time, not waiting for what is open");
		stop(s, ERR_TIMEOUT);
		return;
	}
	log_say(LOG_INFO, "drain", "told to stop: not ready any more, finishing what is open");
	atomic_store(&s->flags.draining, true);
	wake_all(s);
	step_set(s, accepting_end, s->config->drain_delay_ns);
}

static void signals_ready(void *arg, uint32_t epoll_events)
{
	struct server *s = arg;
	int number;

	(void)epoll_events;
	while ((number = proc_signals_next(s->signals.fd)) != 0)
		signal_take(s, number);
}

/* ---------------------------------------------------------------------------------------------------- reload */

/* Worker 0 takes it at once, so that whatever runs in this thread sees one configuration and not two. */
static void config_changed(void *arg, const struct config *config)
{
	struct server *s = arg;

	s->config = config;
	s->admin.config = config;
	worker_pass(s->workers[0]);
	for (unsigned i = 1; i < s->n_workers; i++)
		loop_wake(s->workers[i]->loop);
}

void server_reload_from(struct server *s, const struct server_source *source)
{
	s->reload.source = *source;
}

/* ---------------------------------------------------------------------------------------------------- starting */

static void deal_grpc(void *arg, struct connection *c)
{
	struct server *s = arg;

	c->listener = LISTEN_GRPC;
	s->next_grpc_worker = (s->next_grpc_worker + 1) % s->n_workers;
	worker_hand(s->workers[s->next_grpc_worker], c);
}

static void deal_http(void *arg, struct connection *c)
{
	struct server *s = arg;

	s->next_worker = (s->next_worker + 1) % s->n_workers;
	worker_hand(s->workers[s->next_worker], c);
}

static void deal_side(void *arg, struct connection *c)
{
	struct side *side = arg;

	http_add(side->http, c);
}

static enum err workers_open(struct server *s, struct engine *engine)
{
	s->workers = calloc(s->config->workers, sizeof(*s->workers));
	if (s->workers == NULL)
		return ERR_MEMORY;
	for (; s->n_workers < s->config->workers; s->n_workers++) {
		enum err e = worker_open(&s->workers[s->n_workers], s->n_workers, &s->reload,
			engine_worker_at(engine, s->n_workers), s->probes, &s->flags);

		if (e != ERR_OK)
			return e;
	}
	return ERR_OK;
}

static void watch_look(void *arg)
{
	struct server *s = arg;
	struct loop *loop = s->workers[0]->loop;

	watch_tick(engine_watch(s->ops.engine), loop_now(loop), clock_wall_ns());
	loop_timer_set(loop, &s->watch, loop_now(loop) + WATCH_NS);
}

static enum err side_open(
	struct server *s, enum listen_name name, const struct http_service *service, size_t body_max_bytes)
{
	struct side *side = &s->sides[name];
	const struct http_options options = {
		.listener = name,
		.service = *service,
		.pool = &side->pool,
		.counters = &s->workers[0]->counters,
		.closing = &s->flags.closing,
		.header_bytes = SIDE_HEADER_BYTES,
		.idle_timeout_ns = s->config->http_idle_timeout_ns,
		.request_timeout_ns = s->config->http_request_timeout_ns,
	};

	exchange_pool_init(&side->pool, SIDE_HEADER_BYTES, body_max_bytes);
	return http_open(&side->http, s->workers[0]->loop, &options);
}

static enum err ops_open(struct server *s, struct engine *engine)
{
	struct http_service service;

	s->ops.loop = s->workers[0]->loop;
	s->ops.engine = engine;
	s->ops.draining = &s->flags.draining;
	s->ops.own = &s->workers[0]->counters;
	s->ops.connections = s->connections;
	s->ops.reload = &s->reload;
	for (; s->ops.n_counters < s->n_workers; s->ops.n_counters++)
		s->ops.counters[s->ops.n_counters] = &s->workers[s->ops.n_counters]->counters;
	service = ops_service(&s->ops);
	return side_open(s, LISTEN_OPS, &service, 0);
}

static enum err admin_open(struct server *s, struct engine *engine)
{
	struct http_service service;

	if (!s->config->listen[LISTEN_ADMIN].on)
		return ERR_OK;
	s->admin.config = s->config;
	s->admin.reload = &s->reload.status;
	s->admin.loop = s->workers[0]->loop;
	s->admin.engine = engine;
	s->admin.own = &s->workers[0]->counters;
	s->admin.probes = s->probes;
	s->admin.started = loop_now(s->workers[0]->loop);
	s->admin.is_unix = s->config->listen[LISTEN_ADMIN].endpoint.is_unix;
	service = admin_service(&s->admin);
	return side_open(s, LISTEN_ADMIN, &service, s->config->http_body_bytes);
}

/* number: errno as listen_open left it. */
static const char *listen_fault(enum err e, int number)
{
	switch (number) {
	case EADDRNOTAVAIL: return "this address is not one of this machine's";
	case EEXIST: return "a file that is no socket is there";
	case ENOENT:
	case ENOTDIR: return "its folder is not there";
	default: return err_text(e);
	}
}

static enum err listener_open(struct server *s, enum listen_name name, char *reterr_note, size_t note_size)
{
	struct acceptor *a = &s->acceptors[name];
	const struct endpoint *e = &s->config->listen[name].endpoint;
	void (*const deals[LISTEN_COUNT])(void *arg, struct connection *c) = {
		[LISTEN_HTTP] = deal_http,
		[LISTEN_GRPC] = deal_grpc,
		[LISTEN_OPS] = deal_side,
		[LISTEN_ADMIN] = deal_side};
	const size_t limits[LISTEN_COUNT] = {[LISTEN_HTTP] = s->config->http_max_connections,
		[LISTEN_GRPC] = s->config->grpc_max_connections,
		[LISTEN_OPS] = SIDE_CONNECTIONS_MAX,
		[LISTEN_ADMIN] = SIDE_CONNECTIONS_MAX};
	char where[ENDPOINT_TEXT_BYTES];
	enum err error;
	int number;

	if (!s->config->listen[name].on)
		return ERR_OK;
	a->loop = s->workers[0]->loop;
	a->counters = &s->connections[name];
	a->max_connections = limits[name];
	a->deal = deals[name];
	a->arg = deals[name] == deal_side ? (void *)&s->sides[name] : s;
	error = acceptor_open(a, e);
	number = errno;
	if (error != ERR_OK) {
		endpoint_print(e, where);
		snprintf(reterr_note, note_size, "cannot listen on %.*s %s: %s",
			STR_ARG(listen_name_word(name)), where, listen_fault(error, number));
	}
	return error;
}

/* Whoever fills http must not take the descriptor that a health check needs. */
static void descriptors_share(struct server *s)
{
	struct acceptor *const asked[] = {&s->acceptors[LISTEN_HTTP], &s->acceptors[LISTEN_GRPC]};
	size_t wanted = asked[0]->max_connections + asked[1]->max_connections, room = 1;
	struct proc_usage usage;

	proc_usage_read(&usage);
	if (usage.max_fds > usage.open_fds + DESCRIPTORS_KEPT)
		room = (size_t)(usage.max_fds - usage.open_fds - DESCRIPTORS_KEPT);
	if (wanted <= room)
		return;
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		if (asked[i]->is_open)
			asked[i]->max_connections = asked[i]->max_connections * room / wanted + 1;
	}
	log_say(LOG_WARN, "few_descriptors",
		"%zu descriptors are too few for http.max_connections and grpc.max_connections: at most %zu and %zu "
		"connections are taken; raise LimitNOFILE (ulimit -n), or lower the settings",
		(size_t)usage.max_fds, asked[0]->max_connections, asked[1]->max_connections);
}

enum err server_open(struct server **ret, const struct config *config, struct engine *engine, int signal_fd,
	char *reterr_note, size_t note_size)
{
	struct server *s = calloc(1, sizeof(*s));
	enum err e;

	snprintf(reterr_note, note_size, "cannot start the server: %s", err_text(ERR_MEMORY));
	if (s == NULL)
		return ERR_MEMORY;
	s->config = config;
	s->reload.config = config;
	s->reload.engine = engine;
	s->reload.in_force = config_changed;
	s->reload.arg = s;
	e = probe_board_new(&s->probes);
	if (e == ERR_OK)
		e = reload_open(&s->reload);
	if (e == ERR_OK)
		e = workers_open(s, engine);
	if (e == ERR_OK)
		e = reload_attach(&s->reload, s->workers[0]->loop);
	if (e == ERR_OK)
		e = ops_open(s, engine);
	if (e == ERR_OK)
		e = admin_open(s, engine);
	if (e == ERR_OK) {
		s->signals = (struct loop_fd){.fd = signal_fd, .ready = signals_ready, .arg = s};
		e = loop_add(s->workers[0]->loop, &s->signals, EPOLLIN);
	}
	if (e != ERR_OK)
		snprintf(reterr_note, note_size, "cannot start the server: %s", err_text(e));
	for (unsigned name = 0; name < LISTEN_COUNT && e == ERR_OK; name++)
		e = listener_open(s, (enum listen_name)name, reterr_note, note_size);
	if (e != ERR_OK) {
		server_close(s);
		return e;
	}
	descriptors_share(s);
	*ret = s;
	return ERR_OK;
}

const struct endpoint *server_endpoint(const struct server *s, enum listen_name name)
{
	return s->acceptors[name].was_open ? &s->acceptors[name].listener.endpoint : NULL;
}

enum err server_run(struct server *s)
{
	unsigned started = 1;

	s->outcome = ERR_OK;
	s->watch = (struct loop_timer){.fire = watch_look, .arg = s};
	loop_timer_set(s->workers[0]->loop, &s->watch, loop_now(s->workers[0]->loop) + WATCH_NS);
	while (started < s->n_workers && s->outcome == ERR_OK) {
		s->outcome = worker_start(s->workers[started]);
		started += s->outcome == ERR_OK;
	}
	if (s->outcome == ERR_OK)
		loop_run(s->workers[0]->loop);
	for (unsigned i = 1; i < started; i++)
		worker_join(s->workers[i]);
	return s->outcome;
}

void server_close(struct server *s)
{
	if (s == NULL)
		return;
	for (unsigned name = 0; name < LISTEN_COUNT; name++)
		acceptor_close(&s->acceptors[name]);
	if (s->n_workers > 0)
		loop_remove(s->workers[0]->loop, &s->signals);
	reload_close(&s->reload);
	for (unsigned name = 0; name < LISTEN_COUNT; name++) {
		http_close(s->sides[name].http);
		exchange_pool_done(&s->sides[name].pool);
	}
	for (unsigned i = 0; i < s->n_workers; i++)
		worker_close(s->workers[i]);
	free(s->workers);
	probe_board_free(s->probes);
	free(s);
}
