/* SPDX-License-Identifier: MIT */
/*
 * Connections are accepted in one place and dealt out in turn: a gateway keeps few of them, and sockets that share a port put
 * both of a gateway's two connections on one worker in half of all trials.
 * Epoll tells of a waiting connection as long as it waits, so when descriptors have run out the listener must leave the loop
 * for a while, or the loop would do nothing else.
 */
#include "server/acceptor.h"

#include <unistd.h>

#define ACCEPTS_A_TURN 64
#define CLOSING_TURNS 64 /* with that many a turn, all that a full backlog holds */
#define PAUSE_NS (100 * NS_PER_MS)

static void take(struct acceptor *a, int fd, const struct sockaddr_storage *address, socklen_t address_len)
{
	struct connection *c = NULL;

	if (atomic_load(&a->counters->open) < a->max_connections)
		c = connection_new(a->counters, fd);
	if (c == NULL) {
		metric_add(&a->counters->rejected, 1);
		(void)close(fd);
		return;
	}
	gate_peer_init(&c->peer, (const struct sockaddr *)address, address_len, c->peer_text);
	a->deal(a->arg, c);
}

static void pause_accepting(struct acceptor *a)
{
	if (log_limit_allows(&a->log_limit, loop_now(a->loop)))
		log_say(LOG_WARN, "descriptors_exhausted",
			"no descriptors left: new connections wait until some are closed");
	loop_remove(a->loop, &a->handle);
	loop_timer_set(a->loop, &a->pause, loop_now(a->loop) + PAUSE_NS);
}

static void resume_accepting(void *arg)
{
	struct acceptor *a = arg;

	if (loop_add(a->loop, &a->handle, EPOLLIN) != ERR_OK)
		loop_timer_set(a->loop, &a->pause, loop_now(a->loop) + PAUSE_NS);
}

/* False if nothing more can be had now. */
static bool accept_some(struct acceptor *a)
{
	for (unsigned i = 0; i < ACCEPTS_A_TURN; i++) {
		struct sockaddr_storage address;
		socklen_t address_len;
		int fd;
		enum err e = listen_accept(&a->listener, &fd, &address, &address_len);

		if (e == ERR_OK)
			take(a, fd, &address, address_len);
		else if (e == ERR_FULL && a->handle.active)
			pause_accepting(a);
		if (e == ERR_FULL || e == ERR_ABSENT)
			return false;
	}
	return true;
}

static void ready(void *arg, uint32_t epoll_events)
{
	(void)epoll_events;
	(void)accept_some(arg);
}

enum err acceptor_open(struct acceptor *a, const struct endpoint *e)
{
	enum err error = listen_open(&a->listener, e);

	if (error != ERR_OK)
		return error;
	a->handle = (struct loop_fd){.fd = a->listener.fd, .ready = ready, .arg = a};
	a->pause = (struct loop_timer){.fire = resume_accepting, .arg = a};
	a->log_limit = (struct log_limit){.period_ns = 10 * NS_PER_S, .burst = 1};
	error = loop_add(a->loop, &a->handle, EPOLLIN);
	if (error != ERR_OK)
		listen_close(&a->listener);
	a->is_open = error == ERR_OK;
	a->was_open = a->is_open;
	return error;
}

void acceptor_close(struct acceptor *a)
{
	if (!a->is_open)
		return;
	a->is_open = false;
	loop_remove(a->loop, &a->handle);
	loop_timer_stop(a->loop, &a->pause);
	/* Bounded: whoever goes on connecting must not hold this up. */
	for (unsigned i = 0; i < CLOSING_TURNS && accept_some(a); i++)
		;
	listen_close(&a->listener);
}
