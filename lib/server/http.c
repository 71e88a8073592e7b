/* SPDX-License-Identifier: MIT */
/*
 * Times are kept by a patrol: a look at all channels a few times a second, while there are any, costs less than a timer a
 * channel, which would have to be set again with every question.
 */
#include "server/http.h"

#include "server/http_channel.h"

#include <stdlib.h>

#define PATROL_MIN_NS (10 * NS_PER_MS)
#define PATROL_MAX_NS NS_PER_S

static void patrol_set(struct http *h)
{
	const struct http_options *o = &h->options;
	ns shortest = o->request_timeout_ns < o->idle_timeout_ns ? o->request_timeout_ns : o->idle_timeout_ns;
	ns period = shortest / 4;

	if (period < PATROL_MIN_NS)
		period = PATROL_MIN_NS;
	if (period > PATROL_MAX_NS)
		period = PATROL_MAX_NS;
	loop_timer_set(h->loop, &h->patrol, loop_now(h->loop) + period);
}

static void patrol(void *arg)
{
	struct http *h = arg;

	for (struct channel *k = h->first, *next; k != NULL; k = next) {
		next = k->next;
		channel_check_time(k);
	}
	if (h->first != NULL)
		patrol_set(h);
}

void http_add(struct http *h, struct connection *c)
{
	channel_open(h, c);
	if (!h->patrol.active)
		patrol_set(h);
}

void http_shut_idle(struct http *h)
{
	for (struct channel *k = h->first; k != NULL; k = k->next)
		channel_shut_idle(k);
}

enum err http_open(struct http **ret, struct loop *loop, const struct http_options *options)
{
	struct http *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return ERR_MEMORY;
	h->loop = loop;
	h->options = *options;
	h->patrol = (struct loop_timer){.fire = patrol, .arg = h};
	http_buffers_init(&h->buffers, options->header_bytes);
	*ret = h;
	return ERR_OK;
}

void http_close(struct http *h)
{
	if (h == NULL)
		return;
	while (h->first != NULL)
		channel_end(h->first);
	loop_timer_stop(h->loop, &h->patrol);
	http_buffers_done(&h->buffers);
	free(h);
}
