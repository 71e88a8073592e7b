/* SPDX-License-Identifier: MIT */
/*
 * connection: one accepted connection, and the list of those that one http serves.
 *
 * Model      Made where connections are accepted, handed to a worker, and freed when its socket is closed. The list knows
 *            since when each one is awaited, and shuts down those that take too long: a patrol at a quarter of the time
 *            allowed, while there is anything to patrol.
 * Units      ns on the loop's clock.
 * Ownership  The descriptor is closed by whoever serves the connection; until it is told of that, it is ours to shut down.
 * Threads    confined; the count of open ones is shared.
 * Blocking   Never.
 * Errors     connection_new: NULL without memory.
 */
#ifndef POSTERN_SERVER_CONNECTION_H
#define POSTERN_SERVER_CONNECTION_H

#include "io/loop.h"
#include "server/exchange.h"
#include "server/gate.h"
#include "server/metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct connection {
	struct connection *next, *prev; /* in a queue, later in a list */
	struct connection_counters *counters;
	enum listen_name listener;
	int fd;
	struct sockaddr_storage address;
	socklen_t address_len; /* 0 for Unix peers */
	struct peer peer;
	char peer_text[GATE_ADDRESS_BYTES];

	/* Kept by http.c. */
	struct exchange *exchange;
	bool is_suspect; /* a look has found it stuck in its chunks, and none of them has come since */
	bool in_request; /* a request line has come, and its answer has not gone out whole */
	ns waiting_since; /* 0: for nothing */
	char *query; /* where the target's query begins in the library's buffer, without its first byte; or NULL */
	char query_first; /* that byte */
};

struct connection_list {
	struct loop *loop;
	struct loop_timer patrol;
	ns request_timeout_ns;
	struct connection *first;
	size_t n;
};

/* Counts it as open; connection_free counts it off. */
struct connection *connection_new(struct connection_counters *counters, int fd,
	const struct sockaddr_storage *address, socklen_t address_len);
void connection_free(struct connection *c);

void connection_list_init(struct connection_list *l, struct loop *loop, ns request_timeout_ns);
void connection_list_done(struct connection_list *l); /* it is empty by then */
void connection_list_add(struct connection_list *l, struct connection *c);
void connection_list_remove(struct connection_list *l, struct connection *c);

/* Looks for those whose chunks the library will never read on; ends those that were so at the last look already. all_silent:
 * the library has been told nothing by anybody since then. */
void connection_list_shut_stuck(struct connection_list *l, bool all_silent);

/* Ends those between two questions; one whose next question is on its way is still answered. */
void connection_list_shut_idle(struct connection_list *l);

#endif
