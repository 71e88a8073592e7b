/* SPDX-License-Identifier: MIT */
/*
 * doors: the service of the http listener: callers gate, door, decision, answer.
 *
 * Model      A question that must not be waited for is answered when its header is complete, and its connection ends with
 *            that: ambiguous framing, a caller that may not ask /check, a body where none is taken or a larger one than
 *            allowed. All others are decided when they are complete.
 * Ownership  Everything struct doors points at outlives it.
 * Threads    confined to its worker.
 * Blocking   only on the store.
 * Errors     every question gets an answer; what cannot be decided is told as that.
 */
#ifndef POSTERN_SERVER_DOORS_H
#define POSTERN_SERVER_DOORS_H

#include "base/log.h"
#include "config/config.h"
#include "engine/engine.h"
#include "io/loop.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/probe.h"

struct doors {
	const struct config *config;
	const struct loop *loop;
	struct engine_worker *engine;
	struct server_counters *counters;
	struct probe_board *probes;
	struct log_limit hints; /* lines that say what to mend at the caller */
};

struct http_service doors_service(struct doors *d);

#endif
