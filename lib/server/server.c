/* SPDX-License-Identifier: MIT */
/*
 * Puts the parts together and takes them apart again. Stopping has three steps, and each begins where the last one has been
 * seen through: not ready, so that whoever deals out traffic stops sending it; no new connections, and one more answer on
 * those there are, so that nobody's question meets a closed socket; then the end, when the last is gone or the time is up.
 * ops goes on answering until then. All of it is driven by worker 0's loop, which is the main thread.
 */
#include "server/server.h"

#include "server/acceptor.h"
#include "server/ops.h"
#include "server/worker.h"

#include "base/log.h"
#include "io/proc.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define OPS_CONNECTIONS_MAX 64
#define OPS_HEADER_BYTES ((size_t)8 * 1024)
#define OPS_BODY_BYTES ((size_t)0)
#define LOOK_NS (10 * NS_PER_MS)

struct server {
	const struct config *config;
	struct worker **workers;
	unsigned n_workers, next_worker;
	struct acceptor acceptors[LISTEN_COUNT];
	struct connection_counters connections[LISTEN_COUNT];
	struct exchange_pool ops_pool;
	struct ops ops;
	struct http *ops_http;
	struct loop_fd signals;
	atomic_bool draining, closing;
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
	size_t open = atomic_load(&s->connections[LISTEN_HTTP].open);

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

static void accepting_end(void *arg)
{
	struct server *s = arg;

	acceptor_close(&s->acceptors[LISTEN_HTTP]);
	atomic_store(&s->closing, true);
	for (unsigned i = 0; i < s->n_workers; i++)
		loop_wake(s->workers[i]->loop);
	s->deadline = loop_now(s->workers[0]->loop) + s->config->drain_timeout_ns;
	step_set(s, finish_look, 0);
}

static void signal_take(struct server *s, int number)
{
	if (number == SIGHUP) {
		log_say(LOG_WARN, "reload_unsupported",
			"this version takes a changed configuration by a restart only");
		return;
	}
	if (atomic_load(&s->draining)) {
		log_say(LOG_WARN, "stop_now", "told to stop a second time, not waiting for what is open");
		stop(s, ERR_TIMEOUT);
		return;
	}
	log_say(LOG_INFO, "drain", "told to stop: not ready any more, finishing what is open");
	atomic_store(&s->draining, true);
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

/* ---------------------------------------------------------------------------------------------------- starting */

static void deal_http(void *arg, struct connection *c)
{
	struct server *s = arg;

	s->next_worker = (s->next_worker + 1) % s->n_workers;
	worker_hand(s->workers[s->next_worker], c);
}

static void deal_ops(void *arg, struct connection *c)
{
	struct server *s = arg;

	http_add(s->ops_http, c);
}

static enum err workers_open(struct server *s, struct engine *engine)
{
	s->workers = calloc(s->config->workers, sizeof(*s->workers));
	if (s->workers == NULL)
		return ERR_MEMORY;
	for (; s->n_workers < s->config->workers; s->n_workers++) {
		enum err e = worker_open(&s->workers[s->n_workers], s->config,
			engine_worker_at(engine, s->n_workers), &s->closing);

		if (e != ERR_OK)
			return e;
	}
	return ERR_OK;
}

static enum err ops_open(struct server *s, struct engine *engine)
{
	const struct http_options options = {
		.listener = LISTEN_OPS,
		.service = ops_service(&s->ops),
		.pool = &s->ops_pool,
		.counters = &s->workers[0]->counters,
		.closing = &s->closing,
		.header_bytes = OPS_HEADER_BYTES,
		.max_connections = OPS_CONNECTIONS_MAX,
		.idle_timeout_ns = s->config->http_idle_timeout_ns,
		.request_timeout_ns = s->config->http_request_timeout_ns,
	};

	s->ops.loop = s->workers[0]->loop;
	s->ops.engine = engine;
	s->ops.draining = &s->draining;
	s->ops.own = &s->workers[0]->counters;
	s->ops.connections = s->connections;
	for (; s->ops.n_counters < s->n_workers; s->ops.n_counters++)
		s->ops.counters[s->ops.n_counters] = &s->workers[s->ops.n_counters]->counters;
	exchange_pool_init(&s->ops_pool, OPS_HEADER_BYTES, OPS_BODY_BYTES);
	return http_open(&s->ops_http, s->workers[0]->loop, &options);
}

static enum err listener_open(struct server *s, enum listen_name name, char *reterr_note, size_t note_size)
{
	struct acceptor *a = &s->acceptors[name];
	const struct endpoint *e = &s->config->listen[name].endpoint;
	char where[ENDPOINT_TEXT_BYTES];
	enum err error;

	if (!s->config->listen[name].on)
		return ERR_OK;
	a->loop = s->workers[0]->loop;
	a->config = s->config;
	a->counters = &s->connections[name];
	a->max_connections = name == LISTEN_OPS ? OPS_CONNECTIONS_MAX : s->config->http_max_connections;
	a->deal = name == LISTEN_OPS ? deal_ops : deal_http;
	a->arg = s;
	error = acceptor_open(a, e);
	if (error != ERR_OK) {
		endpoint_print(e, where);
		snprintf(reterr_note, note_size, "cannot listen on %.*s %s: %s",
			STR_ARG(listen_name_word(name)), where, err_text(error));
	}
	return error;
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
	e = workers_open(s, engine);
	if (e == ERR_OK)
		e = ops_open(s, engine);
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
	http_close(s->ops_http);
	exchange_pool_done(&s->ops_pool);
	for (unsigned i = 0; i < s->n_workers; i++)
		worker_close(s->workers[i]);
	free(s->workers);
	free(s);
}
