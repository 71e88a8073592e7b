/* SPDX-License-Identifier: MIT */
/* Counted where it is made and where it is freed, so that no way of ending one can miss the count. */
#include "server/connection.h"

#include <stdlib.h>

struct connection *connection_new(struct connection_counters *counters, int fd)
{
	struct connection *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->fd = fd;
	c->counters = counters;
	atomic_fetch_add(&counters->open, 1);
	return c;
}

void connection_free(struct connection *c)
{
	atomic_fetch_sub(&c->counters->open, 1);
	free(c);
}
