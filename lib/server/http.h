/* SPDX-License-Identifier: MIT */
/*
 * http: HTTP/1.1 and HTTP/1.0 on one worker's loop for one listener.
 *
 * Model      Connections are accepted elsewhere and handed over; each is a channel in the loop. A question becomes an exchange,
 *            the service fills in the answer, and the answer goes out from the exchange's own memory. Two ways to answer: at
 *            once, before the body, which ends the connection; or when the whole question is there, which keeps it. What
 *            cannot be read as a question is answered here, with a problem. A question may take its time from accept, or from
 *            the first byte of a later one, to the last byte of its answer.
 * Units      bytes; ns on the loop's clock.
 * Ownership  http_add takes the connection, also where it fails. What struct http_options points at outlives the http.
 * Threads    confined to the loop's thread; http_open and http_close before and after it runs.
 * Blocking   Never.
 * Errors     http_open: ERR_MEMORY.
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
	size_t header_bytes;
	ns idle_timeout_ns, request_timeout_ns;
};

MUST_USE enum err http_open(struct http **ret, struct loop *loop, const struct http_options *options);
void http_close(struct http *h); /* NULL is fine; cuts what is open */

void http_add(struct http *h, struct connection *c);

/* Ends connections between two questions; one whose next question is on its way is still answered. */
void http_shut_idle(struct http *h);

#endif
