/* SPDX-License-Identifier: MIT */
/*
 * connection: one accepted connection, and who is at its other end.
 *
 * Model      Made where connections are accepted, handed to a worker, freed by whoever serves it when its socket is closed.
 * Ownership  The descriptor is closed by whoever serves the connection.
 * Threads    confined; the count of open ones is shared.
 * Errors     connection_new: NULL without memory.
 */
#ifndef POSTERN_SERVER_CONNECTION_H
#define POSTERN_SERVER_CONNECTION_H

#include "server/exchange.h"
#include "server/gate.h"
#include "server/metrics.h"

#include <stdbool.h>
#include <stddef.h>

struct connection {
	struct connection *next; /* in a queue */
	struct connection_counters *counters;
	enum listen_name listener;
	int fd;
	struct peer peer;
	char peer_text[GATE_ADDRESS_BYTES];
};

/* Counts it as open; connection_free counts it off. */
struct connection *connection_new(struct connection_counters *counters, int fd);
void connection_free(struct connection *c);

#endif
