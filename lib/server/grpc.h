/* SPDX-License-Identifier: MIT */
/*
 * grpc: gRPC on one worker's loop: the sockets of its HTTP/2 connections and their times.
 *
 * Model      Connections are accepted elsewhere and handed over. In a turn a connection is read once and written once,
 *            whatever number of calls that covers; while something could not be written it is not read. Prior knowledge only:
 *            what does not begin as HTTP/2 does is told so in HTTP/1.1 and closed. One timer for all connections, set to the
 *            first thing that is due.
 *            A connection ends in two steps (grpc_session), when its age or the whole server says so, and lingers for a
 *            second, so that what is on its way meets no closed socket.
 * Units      bytes; ns on the loop's clock.
 * Ownership  grpc_add takes the connection, also where it fails. What struct grpc_options points at outlives the grpc.
 * Threads    confined to the loop's thread; grpc_open and grpc_close before and after it runs.
 * Blocking   Never, but on the store.
 * Errors     grpc_open: ERR_MEMORY.
 * Limits     64 KiB read from a connection a turn; those of the grpc settings.
 */
#ifndef POSTERN_SERVER_GRPC_H
#define POSTERN_SERVER_GRPC_H

#include "base/err.h"
#include "config/config.h"
#include "engine/engine.h"
#include "io/loop.h"
#include "server/connection.h"
#include "server/metrics.h"

#include <stdatomic.h>

struct grpc;

struct grpc_options {
	const struct config *config;
	struct engine_worker *engine;
	struct server_counters *counters;
	struct probe_board *probes;
	const atomic_bool *draining; /* true: says that it is not serving, and serves */
};

MUST_USE enum err grpc_open(struct grpc **ret, struct loop *loop, const struct grpc_options *options);
void grpc_close(struct grpc *g); /* NULL is fine; cuts what is open */

void grpc_add(struct grpc *g, struct connection *c);

/* Between two turns: another one is in force, whose grpc settings are the same. */
void grpc_config_set(struct grpc *g, const struct config *config);

/* Tells watchers that draining has changed. */
void grpc_changed(struct grpc *g);

/* Begins the end of every connection there is, once. */
void grpc_leave(struct grpc *g);

#endif
