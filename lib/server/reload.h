/* SPDX-License-Identifier: MIT */
/*
 * reload: takes a changed configuration while questions are answered.
 *
 * Model      Asked for, a thread of its own loads and checks the new configuration and makes ready all that it needs; worker 0
 *            then publishes it, which is one pointer, and each worker takes it at a quiet point between two questions.
 *            When all have, what was before is freed and the attempt is told of. A configuration with a fault changes
 *            nothing. One that is the same as before, tokens included, is not taken. Asked for during an attempt, another
 *            one follows it.
 * Units      times: ns since 1970.
 * Ownership  See struct server_source for configurations; reload owns what else hangs on one.
 * Threads    reload_pass, reload_tell: any worker, of that number. The rest: worker 0.
 * Blocking   reload_close waits for the loading thread. Nothing else does.
 * Errors     reload_open: ERR_MEMORY, ERR_IO, ERR_FULL. What becomes of an attempt is in log, metrics and status.
 */
#ifndef POSTERN_SERVER_RELOAD_H
#define POSTERN_SERVER_RELOAD_H

#include "base/clock.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/text.h"
#include "config/change.h"
#include "config/config.h"
#include "engine/engine.h"
#include "io/loop.h"
#include "server/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What workers go by. */
struct generation {
	const struct config *config;
	struct edition *edition;
};

#define RELOAD_ERROR_BYTES 512

struct reload_status {
	bool ok;                          /* the last attempt, the start included */
	char error_z[RELOAD_ERROR_BYTES]; /* its first fault; "" if ok */
	ns checked_at;                    /* of the last attempt that was ok */
	ns loaded_at;                     /* of what is in force */
	char restart_z[CHANGE_TEXT_BYTES]; /* what is in force asks for, and gets only by a restart: "workers"; mostly "" */
};

enum reload_result { RELOAD_SUCCESS, RELOAD_UNCHANGED, RELOAD_FAILURE, RELOAD_RESULT_COUNT };

enum reload_stage {
	RELOAD_IDLE,
	RELOAD_LOADING, /* by a thread, to which the attempt belongs until it is done */
	RELOAD_TAKING   /* it is in force, and not yet everywhere */
};

/* One attempt. */
struct reload_attempt {
	atomic_bool done;
	enum reload_result result;
	enum err error;
	struct fault_list faults;
	struct config *config;   /* the new one */
	struct generation *next;
	struct change change;
	ns began; /* on the loop's clock */
};

struct reload {
	/* Filled by the caller, the first two before reload_open. */
	struct engine *engine;
	const struct config *config;  /* in force */
	struct server_source source;  /* load NULL: from nowhere */
	void (*in_force)(void *arg, const struct config *config); /* has every worker pass soon, worker 0 at once */
	void *arg;

	/* Kept by reload. */
	struct loop *loop;
	struct loop_fd news;
	struct snapshot *snapshot;
	struct generation *current;
	struct config *before; /* while it is being taken leave of */
	enum reload_stage stage;
	bool again;
	pthread_t thread;
	struct reload_attempt attempt;
	struct reload_status status;
	uint64_t counts[RELOAD_RESULT_COUNT];
};

MUST_USE enum err reload_open(struct reload *r);
void reload_close(struct reload *r); /* no worker runs any more; never opened: nothing */

/* With the loop of worker 0. */
MUST_USE enum err reload_attach(struct reload *r, struct loop *loop);

void reload_ask(struct reload *r);

/* A quiet point of a worker: it holds nothing of what was in force before. This is, for this worker. */
const struct generation *reload_pass(struct reload *r, unsigned worker);

/* What it was given was new, and it has taken it. */
void reload_tell(const struct reload *r);

/* The families that reload owns. */
void reload_metrics_write(const struct reload *r, struct text *t);

#endif
