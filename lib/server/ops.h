/* SPDX-License-Identifier: MIT */
/*
 * ops: the service of the ops listener: /livez, /readyz, /metrics. For probes and scrapers, not gated.
 *
 * Model      Alive is who answers at all; ready is who is not on its way out. Neither asks anything outside this process.
 * Ownership  Everything struct ops points at outlives it.
 * Threads    confined to worker 0; reads what others count.
 * Blocking   reads /proc/self for a scrape.
 * Errors     a scrape without memory is 503.
 */
#ifndef POSTERN_SERVER_OPS_H
#define POSTERN_SERVER_OPS_H

#include "engine/engine.h"
#include "io/loop.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/reload.h"

#include <stdatomic.h>
#include <stddef.h>

struct ops {
	const struct loop *loop;
	struct engine *engine;
	const atomic_bool *draining;
	struct server_counters *own;
	const struct server_counters *counters[METRICS_WORKERS_MAX]; /* of every worker, its own included */
	size_t n_counters;
	const struct connection_counters *connections; /* by listener */
	const struct reload *reload;
	size_t scrape_bytes; /* that the last scrape fitted into */
};

struct http_service ops_service(struct ops *o);

#endif
