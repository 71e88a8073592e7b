/* SPDX-License-Identifier: MIT */
/*
 * A connection belongs to the loop of one thread from its start, so the accepting thread leaves it in an inbox and wakes that
 * loop; a worker without a thread of its own is the accepting one, and takes it at once.
 * A connection that turns idle while the worker is closing has had its last answer, unless that was on its way when closing
 * began: so after the linger idle ones are looked for again and again, not once.
 */
#include "server/worker.h"

#include <stdlib.h>
#include <unistd.h>

#define LINGER_NS (300 * NS_PER_MS)
#define LOOK_NS (10 * NS_PER_MS)

static void linger_look(void *arg)
{
	struct worker *w = arg;
	http_shut_idle(w->http);
	loop_timer_set(w->loop, &w->linger, loop_now(w->loop) + LOOK_NS);
}

static void add(struct worker *w, struct connection *c)
{
	if (c->listener == LISTEN_GRPC)
		grpc_add(w->grpc, c);
	else
		http_add(w->http, c);
}

static void inbox_empty(struct worker *w)
{
	struct connection *c;

	pthread_mutex_lock(&w->lock);
	c = w->inbox;
	w->inbox = NULL;
	pthread_mutex_unlock(&w->lock);
	while (c != NULL) {
		struct connection *next = c->next;

		add(w, c);
		c = next;
	}
}

void worker_pass(struct worker *w)
{
	const struct generation *g = reload_pass(w->reload, w->index);

	if (g->config == w->doors.config)
		return;
	w->doors.config = g->config;
	grpc_config_set(w->grpc, g->config);
	engine_edition_take(w->doors.engine, g->edition);
	reload_tell(w->reload);
}

static void woken(void *arg)
{
	struct worker *w = arg;

	worker_pass(w);
	inbox_empty(w);
	if (atomic_load(&w->flags->draining) && !w->was_draining) {
		w->was_draining = true;
		grpc_changed(w->grpc);
	}
	if (atomic_load(&w->flags->closing) && !w->linger.active) {
		grpc_leave(w->grpc);
		loop_timer_set(w->loop, &w->linger, loop_now(w->loop) + LINGER_NS);
	}
}

void worker_hand(struct worker *w, struct connection *c)
{
	if (!w->has_thread) {
		add(w, c);
		return;
	}
	pthread_mutex_lock(&w->lock);
	c->next = w->inbox;
	w->inbox = c;
	pthread_mutex_unlock(&w->lock);
	loop_wake(w->loop);
}

static enum err http_start(struct worker *w, const struct config *config)
{
	const struct http_options options = {
		.listener = LISTEN_HTTP,
		.service = doors_service(&w->doors),
		.pool = &w->pool,
		.counters = &w->counters,
		.closing = &w->flags->closing,
		.header_bytes = config->http_header_bytes,
		.idle_timeout_ns = config->http_idle_timeout_ns,
		.request_timeout_ns = config->http_request_timeout_ns,
	};

	return http_open(&w->http, w->loop, &options);
}

static enum err grpc_start(struct worker *w)
{
	const struct grpc_options options = {.config = w->doors.config,
		.engine = w->doors.engine,
		.counters = &w->counters,
		.draining = &w->flags->draining,
		.probes = w->doors.probes};

	return grpc_open(&w->grpc, w->loop, &options);
}

enum err worker_open(struct worker **ret, unsigned index, struct reload *reload, struct engine_worker *engine,
	struct probe_board *probes, const struct worker_flags *flags)
{
	const struct config *config = reload_pass(reload, index)->config;
	struct worker *w = calloc(1, sizeof(*w));
	enum err e;

	if (w == NULL)
		return ERR_MEMORY;
	pthread_mutex_init(&w->lock, NULL);
	w->flags = flags;
	w->reload = reload;
	w->index = index;
	w->linger = (struct loop_timer){.fire = linger_look, .arg = w};
	exchange_pool_init(&w->pool, config->http_header_bytes, config->http_body_bytes);
	e = loop_new(&w->loop);
	if (e == ERR_OK) {
		loop_on_wake(w->loop, woken, w);
		w->doors = (struct doors){.config = config,
			.loop = w->loop,
			.engine = engine,
			.counters = &w->counters,
			.probes = probes,
			.hints = {.period_ns = 60 * NS_PER_S, .burst = 1}};
		e = http_start(w, config);
		if (e == ERR_OK)
			e = grpc_start(w);
	}
	if (e != ERR_OK) {
		worker_close(w);
		return e;
	}
	*ret = w;
	return ERR_OK;
}

static void *run(void *arg)
{
	struct worker *w = arg;

	loop_run(w->loop);
	return NULL;
}

enum err worker_start(struct worker *w)
{
	if (pthread_create(&w->thread, NULL, run, w) != 0)
		return ERR_MEMORY;
	w->has_thread = true;
	return ERR_OK;
}

void worker_join(struct worker *w)
{
	if (!w->has_thread)
		return;
	loop_stop(w->loop);
	(void)pthread_join(w->thread, NULL);
	w->has_thread = false;
}

void worker_close(struct worker *w)
{
	if (w == NULL)
		return;
	while (w->inbox != NULL) {
		struct connection *c = w->inbox;

		w->inbox = c->next;
		(void)close(c->fd);
		connection_free(c);
	}
	http_close(w->http);
	grpc_close(w->grpc);
	exchange_pool_done(&w->pool);
	loop_free(w->loop);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
