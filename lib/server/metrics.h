/* SPDX-License-Identifier: MIT */
/*
 * metrics: what server counts, and how a scrape shows it.
 *
 * Model      One set of single-writer counters a worker; a scrape sums. Connections are counted once for all workers, since
 *            their limit holds for all together.
 * Threads    each worker writes its own set; the open count is an atomic of its own; a scrape reads all, from one thread.
 * Errors     the overflow mark of text.
 * Limits     METRICS_WORKERS_MAX sets.
 */
#ifndef POSTERN_SERVER_METRICS_H
#define POSTERN_SERVER_METRICS_H

#include "adapter/problem.h"
#include "adapter/rpc.h"
#include "base/metric.h"
#include "base/text.h"
#include "config/config.h"
#include "core/reason.h"

#include <stdatomic.h>
#include <stddef.h>

#define METRICS_WORKERS_MAX 64 /* the upper end of the setting "workers" */
#define METRICS_CALL_METHODS 8 /* at most; the last stands for those that are none of ours */
#define METRICS_CALL_CODES 10
#define METRICS_CALL_CANCELLED 1 /* the code of gRPC for a call that its caller gave up */
#define METRICS_CODES 13 /* the status codes that this program sends, and one for any other */

struct server_counters {
	metric_counter answers[LISTEN_COUNT][METRICS_CODES];
	metric_counter problems[PROBLEM_COUNT];
	metric_counter calls[METRICS_CALL_METHODS][METRICS_CALL_CODES];
	struct metric_histogram durations[DOOR_COUNT];
};

struct connection_counters {
	atomic_size_t open;
	metric_counter rejected; /* written by the accepting thread */
};

void metrics_count_answer(struct server_counters *c, enum listen_name listener, unsigned status);
void metrics_count_problem(struct server_counters *c, enum problem_code code);

/* A gRPC call has ended. method: NULL for one that is none of ours. */
void metrics_count_call(struct server_counters *c, const struct adapter_rpc *method, unsigned status);
void metrics_observe_decision(struct server_counters *c, enum door door, ns duration_ns);

/* The families that server owns: counters[n] of all workers, connections by listener. */
void metrics_write(struct text *t, const struct server_counters *const *counters, size_t n,
	const struct connection_counters connections[LISTEN_COUNT]);

#endif
