/* SPDX-License-Identifier: MIT */
/*
 * worker: a thread with its loop, and the questions it answers.
 *
 * Model      Everything of a question stays on one worker. Connections come through worker_hand. When closing is set and the
 *            worker woken it lingers: answers are the last of their connections, and after about 300 ms the idle ones
 *            are ended; gRPC ends its connections in the way of its own protocol. When draining is set and the worker woken,
 *            those who watch its health are told. Whenever it is woken it takes the configuration that is in force, between
 *            two questions: so nothing that is kept from one turn of its loop to the next may point into one.
 * Ownership  The worker owns its loop and what hangs in it. Reload, engine worker, probe board and flags are the caller's.
 * Threads    Worker 0 is run by the thread that opened it, the others by their own. worker_hand and the
 *            loop's wake-up: shared. The rest: the thread that opened it, before worker_start or after worker_join.
 * Blocking   worker_join.
 * Errors     ERR_MEMORY, ERR_FULL, ERR_IO.
 */
#ifndef POSTERN_SERVER_WORKER_H
#define POSTERN_SERVER_WORKER_H

#include "base/err.h"
#include "server/connection.h"
#include "server/doors.h"
#include "server/exchange.h"
#include "server/grpc.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/reload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* How far the end of the whole server has come. */
struct worker_flags {
	atomic_bool draining; /* not ready any more, answering as ever */
	atomic_bool closing;  /* no new connections */
};

struct worker {
	struct loop *loop;
	struct http *http;
	struct grpc *grpc;
	struct exchange_pool pool;
	struct server_counters counters;
	struct doors doors;
	const struct worker_flags *flags;
	bool was_draining;
	struct reload *reload;
	unsigned index;

	struct loop_timer linger;

	bool has_thread;
	pthread_t thread;
	pthread_mutex_t lock; /* for the inbox, held for a few instructions */
	struct connection *inbox; /* last in, first out */
};

MUST_USE enum err worker_open(struct worker **ret, unsigned index, struct reload *reload, struct engine_worker *engine,
	struct probe_board *probes, const struct worker_flags *flags);
void worker_close(struct worker *w); /* NULL is fine; cuts what is open */

MUST_USE enum err worker_start(struct worker *w);
void worker_join(struct worker *w); /* stops its loop; not started: nothing */

/* A quiet point: goes by the configuration in force from here on. For the worker's own thread; woken, it does so by itself. */
void worker_pass(struct worker *w);

/* The connection's way in, from the accepting thread. */
void worker_hand(struct worker *w, struct connection *c);

#endif
