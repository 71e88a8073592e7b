/* SPDX-License-Identifier: MIT */
/*
 * Nothing here closes a socket: it is shut down, which whoever serves it finds out as if the client had gone, and then
 * closes it the way it closes any other. A scan of a list a few times a second costs less than a timer a connection, which
 * would have to be set again with every request.
 * Whose chunk is stuck cannot be asked of the HTTP library, but it shows: there are bytes that it does not read, look after
 * look. Bytes that just fill its buffer do not even show that; then all go that have been as silent as the culprit.
 */
#include "server/connection.h"

#include "server/exchange.h"

#include <stdlib.h>
#include <sys/ioctl.h>

#define PATROL_MIN_NS (10 * NS_PER_MS)
#define PATROL_MAX_NS NS_PER_S

struct connection *connection_new(struct connection_counters *counters, int fd,
	const struct sockaddr_storage *address, socklen_t address_len)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->fd = fd;
	c->address = *address;
	c->address_len = address_len;
	c->counters = counters;
	atomic_fetch_add(&counters->open, 1);
	return c;
}

void connection_free(struct connection *c)
{
	atomic_fetch_sub(&c->counters->open, 1);
	free(c);
}

static void patrol_set(struct connection_list *l)
{
	ns period = l->request_timeout_ns / 4;

	if (period < PATROL_MIN_NS)
		period = PATROL_MIN_NS;
	if (period > PATROL_MAX_NS)
		period = PATROL_MAX_NS;
	loop_timer_set(l->loop, &l->patrol, loop_now(l->loop) + period);
}

static void patrol(void *arg)
{
	struct connection_list *l = arg;

	for (struct connection *c = l->first; c != NULL; c = c->next) {
		if (c->waiting_since != 0 && loop_now(l->loop) - c->waiting_since > l->request_timeout_ns)
			(void)shutdown(c->fd, SHUT_RDWR);
	}
	if (l->n > 0)
		patrol_set(l);
}

void connection_list_init(struct connection_list *l, struct loop *loop, ns request_timeout_ns)
{
	*l = (struct connection_list){.loop = loop, .request_timeout_ns = request_timeout_ns};
	l->patrol = (struct loop_timer){.fire = patrol, .arg = l};
}

void connection_list_done(struct connection_list *l)
{
	loop_timer_stop(l->loop, &l->patrol);
}

void connection_list_add(struct connection_list *l, struct connection *c)
{
	c->prev = NULL;
	c->next = l->first;
	if (l->first != NULL)
		l->first->prev = c;
	l->first = c;
	l->n++;
	c->waiting_since = loop_now(l->loop);
	if (!l->patrol.active)
		patrol_set(l);
}

void connection_list_remove(struct connection_list *l, struct connection *c)
{
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		l->first = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
	l->n--;
}

static bool has_unread(const struct connection *c)
{
	int n = 0;

	return ioctl(c->fd, FIONREAD, &n) == 0 && n > 0;
}

/* True if there was one. */
static bool shut_suspects(struct connection_list *l, bool unread_only)
{
	bool found = false;

	for (struct connection *c = l->first; c != NULL; c = c->next) {
		if (!c->is_suspect || (unread_only && !has_unread(c)))
			continue;
		(void)shutdown(c->fd, SHUT_RDWR);
		found = true;
	}
	return found;
}

void connection_list_shut_stuck(struct connection_list *l, bool all_silent)
{
	if (!shut_suspects(l, true) && all_silent)
		(void)shut_suspects(l, false);
	for (struct connection *c = l->first; c != NULL; c = c->next) {
		const struct exchange *x = c->exchange;

		c->is_suspect = x != NULL && x->n_codings > 0 && !x->answered && (all_silent || has_unread(c));
	}
}

void connection_list_shut_idle(struct connection_list *l)
{
	for (struct connection *c = l->first; c != NULL; c = c->next) {
		/* Only for reading: what has already come is still read and answered. */
		if (!c->in_request)
			(void)shutdown(c->fd, SHUT_RD);
	}
}
