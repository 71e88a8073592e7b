/* SPDX-License-Identifier: MIT */
/*
 * acceptor: takes the connections of one listener and deals them out.
 *
 * Model      Accepts up to 64 connections a turn. Past the limit a connection is closed at once and counted; where
 *            descriptors run out, accepting pauses for 100 ms instead of spinning.
 * Ownership  deal takes each connection over. Loop and counters are the caller's.
 * Threads    confined to worker 0.
 * Blocking   Never.
 * Errors     acceptor_open: those of listen_open and loop_add.
 * Limits     max_connections for all workers together.
 */
#ifndef POSTERN_SERVER_ACCEPTOR_H
#define POSTERN_SERVER_ACCEPTOR_H

#include "base/endpoint.h"
#include "base/err.h"
#include "base/log.h"
#include "io/listen.h"
#include "io/loop.h"
#include "server/connection.h"

#include <stdbool.h>
#include <stddef.h>

struct acceptor {
	/* Filled by the caller. */
	struct loop *loop;
	struct connection_counters *counters;
	size_t max_connections;
	void (*deal)(void *arg, struct connection *c);
	void *arg;

	/* Kept by the acceptor. */
	struct listener listener;
	struct loop_fd handle;
	struct loop_timer pause;
	struct log_limit log_limit;
	bool is_open, was_open;
};

MUST_USE enum err acceptor_open(struct acceptor *a, const struct endpoint *e);

/* Deals out what has connected already, then closes; not open: nothing. */
void acceptor_close(struct acceptor *a);

#endif
