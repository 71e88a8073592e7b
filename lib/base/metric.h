/* SPDX-License-Identifier: MIT */
/*
 * metric: names, help and form of what /metrics shows. Rows of api/metrics.def.
 *
 * Model      Values live with their owners (engine, server, store), as single-writer counters; a scrape sums them and
 *            writes families with the calls below. Labels come from closed sets only, never from a client.
 * Units      as the name says: _total counts, _seconds, _bytes.
 * Threads    counters: one writer each, any reader (relaxed atomics). Writing: confined.
 * Source     Prometheus text exposition 0.0.4; the form is what "promtool check metrics" accepts.
 */
#ifndef POSTERN_BASE_METRIC_H
#define POSTERN_BASE_METRIC_H

#include "base/str.h"
#include "base/text.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum metric {
#define METRIC(id, name, type, help) METRIC_##id,
#include "metrics.def"
#undef METRIC
	METRIC_COUNT
};

/* A counter with exactly one writing thread; no lock prefix on the decision path. */
typedef _Atomic uint64_t metric_counter;

static inline void metric_add(metric_counter *c, uint64_t n)
{
	atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline void metric_set(metric_counter *c, uint64_t n)
{
	atomic_store_explicit(c, n, memory_order_relaxed);
}

static inline uint64_t metric_get(const metric_counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

struct metric_label {
	const char *name;
	struct str value; /* escaped by the writer */
};

const char *metric_name(enum metric m);

/* "# HELP" and "# TYPE". Once a family, before its samples. */
void metric_family(struct text *t, enum metric m);
void metric_sample(struct text *t, enum metric m, const struct metric_label *labels, size_t n, uint64_t value);

/* A value in seconds from nanoseconds, written without floating point: 1.5 for 1500000000. */
void metric_sample_seconds(struct text *t, enum metric m, const struct metric_label *labels, size_t n, uint64_t ns_value);

/* Histogram with fixed upper bounds in ns; counts[n_bounds] is what lies above the last. Not cumulative inside. */
struct metric_histogram {
	metric_counter counts[16];
	metric_counter sum_ns;
};
struct metric_bounds {
	const uint64_t *upper_ns;
	size_t n; /* at most 15 */
};
void metric_observe(struct metric_histogram *h, const struct metric_bounds *b, uint64_t value_ns);

/* The same histogram as several writers keep it, one part each: a scrape shows their sum. */
struct metric_parts {
	const struct metric_bounds *bounds;
	const struct metric_histogram *const *items;
	size_t n;
};
void metric_sample_histogram(struct text *t, enum metric m, const struct metric_label *labels, size_t n,
	const struct metric_parts *parts);

#endif
