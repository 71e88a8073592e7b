/* SPDX-License-Identifier: MIT */
/*
 * http: HTTP/1 on one worker's loop for one listener. The only file that sees libmicrohttpd.
 *
 * Model      The daemon has no listening socket: connections are accepted elsewhere and handed over. Its epoll descriptor is
 *            nested in the loop, and a hook runs it in the turn in which that is ready. Each question is turned into an
 *            exchange, the service fills in the answer, and the answer goes out from the exchange's own memory.
 *            Two ways to answer: at once, before the body, which ends the connection; or when the whole question is
 *            there, which keeps it. Too long a question is judged by http.c itself: from accept to the first complete
 *            header, and from there (or from the request line of a later question) to the answer's last byte.
 * Units      bytes; ns on the loop's clock.
 * Ownership  http_add takes the connection, also where it fails. What struct http_options points at outlives the http.
 * Threads    confined to the loop's thread; http_open and http_close before and after it runs.
 * Blocking   Never.
 * Errors     http_open: ERR_MEMORY, ERR_FULL, ERR_IO.
 * Limits     those of http_options.
 */
#ifndef POSTERN_SERVER_HTTP_H
#define POSTERN_SERVER_HTTP_H

#include "base/err.h"
#include "io/loop.h"
#include "server/connection.h"
#include "server/exchange.h"
#include "server/metrics.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct http;

/* Who answers. */
struct http_service {
	/* The header is complete. True: the answer is made, and the connection ends with it. */
	bool (*begin)(void *arg, struct exchange *x);
	/* Question and body are complete: makes the answer. */
	void (*finish)(void *arg, struct exchange *x);
	void *arg;
};

struct http_options {
	enum listen_name listener;
	struct http_service service;
	struct exchange_pool *pool;
	struct server_counters *counters;
	const atomic_bool *closing; /* true: each answer is the last of its connection */
	size_t header_bytes, max_connections;
	ns idle_timeout_ns, request_timeout_ns;
};

MUST_USE enum err http_open(struct http **ret, struct loop *loop, const struct http_options *options);
void http_close(struct http *h); /* NULL is fine; cuts what is open */

void http_add(struct http *h, struct connection *c);

/* As connection_list_shut_idle. */
void http_shut_idle(struct http *h);

#endif
