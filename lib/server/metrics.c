/* SPDX-License-Identifier: MIT */
/*
 * Every series is there from the first scrape on, at 0: a rate over one that appears with its first event misses that
 * event. Labels come from closed lists only; a status that is not on ours counts as "other".
 */
#include "server/metrics.h"

#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "io/proc.h"
#include "server/server.h"

#include "revision.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The frequent ones first: they are looked up for every answer. */
static const struct {
	unsigned status;
	struct str word;
} codes[METRICS_CODES] = {
	{200, {"200", 3}},
	{429, {"429", 3}},
	{403, {"403", 3}},
	{401, {"401", 3}},
	{400, {"400", 3}},
	{404, {"404", 3}},
	{405, {"405", 3}},
	{413, {"413", 3}},
	{415, {"415", 3}},
	{431, {"431", 3}},
	{503, {"503", 3}},
	{505, {"505", 3}},
	{0, {"other", 5}},
};

/* Codes of gRPC, likewise. */
static const struct {
	unsigned status;
	struct str word;
} call_codes[METRICS_CALL_CODES] = {
	{RPC_OK, {"OK", 2}},
	{METRICS_CALL_CANCELLED, {"CANCELLED", 9}},
	{RPC_INVALID_ARGUMENT, {"INVALID_ARGUMENT", 16}},
	{RPC_DEADLINE_EXCEEDED, {"DEADLINE_EXCEEDED", 17}},
	{RPC_NOT_FOUND, {"NOT_FOUND", 9}},
	{RPC_PERMISSION_DENIED, {"PERMISSION_DENIED", 17}},
	{RPC_RESOURCE_EXHAUSTED, {"RESOURCE_EXHAUSTED", 18}},
	{RPC_UNIMPLEMENTED, {"UNIMPLEMENTED", 13}},
	{RPC_UNAVAILABLE, {"UNAVAILABLE", 11}},
	{RPC_INTERNAL, {"INTERNAL", 8}},
};

static const uint64_t decision_upper_ns[] = {
	5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000};
static const struct metric_bounds decision_bounds = {decision_upper_ns, COUNT(decision_upper_ns)};

void metrics_count_answer(struct server_counters *c, enum listen_name listener, unsigned status)
{
	size_t i = 0;

	while (i < METRICS_CODES - 1 && codes[i].status != status)
		i++;
	metric_add(&c->answers[listener][i], 1);
}

void metrics_count_problem(struct server_counters *c, enum problem_code code)
{
	metric_add(&c->problems[code], 1);
}

void metrics_count_call(struct server_counters *c, const struct adapter_rpc *method, unsigned status)
{
	size_t m = method != NULL ? (size_t)(method - adapter_rpc_at(0)) : adapter_rpc_count(), i = 0;

	while (i < METRICS_CALL_CODES - 1 && call_codes[i].status != status)
		i++;
	metric_add(&c->calls[m][i], 1);
}

void metrics_observe_decision(struct server_counters *c, enum door door, ns duration_ns)
{
	metric_observe(&c->durations[door], &decision_bounds, duration_ns);
}

static void write_build(struct text *t)
{
	const struct metric_label labels[] = {
		{"version", STR(POSTERN_VERSION)},
		{"revision", STR(POSTERN_REVISION)},
		{"libnghttp2", str_from_z(server_grpc_library_z())},
		{"jansson", str_from_z(json_library_z())},
		{"libsodium", str_from_z(digest_library_z())},
	};

	metric_family(t, METRIC_BUILD_INFO);
	metric_sample(t, METRIC_BUILD_INFO, labels, COUNT(labels), 1);
}

static void write_answers(struct text *t, const struct server_counters *const *counters, size_t n)
{
	metric_family(t, METRIC_REQUESTS);
	for (unsigned l = 0; l < LISTEN_COUNT; l++) {
		for (size_t code = 0; code < METRICS_CODES; code++) {
			const struct metric_label labels[] = {
				{"listener", listen_name_word((enum listen_name)l)},
				{"code", codes[code].word}};
			uint64_t sum = 0;

			for (size_t i = 0; i < n; i++)
				sum += metric_get(&counters[i]->answers[l][code]);
			metric_sample(t, METRIC_REQUESTS, labels, COUNT(labels), sum);
		}
	}
}

static void write_calls(struct text *t, const struct server_counters *const *counters, size_t n)
{
	metric_family(t, METRIC_GRPC_CALLS);
	for (size_t m = 0; m <= adapter_rpc_count(); m++) {
		const struct adapter_rpc *method = m < adapter_rpc_count() ? adapter_rpc_at(m) : NULL;

		for (size_t code = 0; code < METRICS_CALL_CODES; code++) {
			const struct metric_label labels[] = {
				{"service", method != NULL ? method->service : STR("_other")},
				{"method", method != NULL ? method->method : STR("_other")},
				{"code", call_codes[code].word}};
			uint64_t sum = 0;

			for (size_t i = 0; i < n; i++)
				sum += metric_get(&counters[i]->calls[m][code]);
			metric_sample(t, METRIC_GRPC_CALLS, labels, COUNT(labels), sum);
		}
	}
}

static void write_problems(struct text *t, const struct server_counters *const *counters, size_t n)
{
	metric_family(t, METRIC_BAD_REQUESTS);
	for (unsigned code = 0; code < PROBLEM_COUNT; code++) {
		const struct metric_label label = {"code", problem_word((enum problem_code)code)};
		uint64_t sum = 0;

		if (problem_http((enum problem_code)code) == 0)
			continue; /* only a configuration can have it */
		for (size_t i = 0; i < n; i++)
			sum += metric_get(&counters[i]->problems[code]);
		metric_sample(t, METRIC_BAD_REQUESTS, &label, 1, sum);
	}
}

static void write_connections(struct text *t, const struct connection_counters connections[LISTEN_COUNT])
{
	metric_family(t, METRIC_CONNECTIONS);
	for (unsigned l = 0; l < LISTEN_COUNT; l++) {
		const struct metric_label label = {"listener", listen_name_word((enum listen_name)l)};

		metric_sample(t, METRIC_CONNECTIONS, &label, 1, atomic_load(&connections[l].open));
	}
	metric_family(t, METRIC_CONNECTIONS_REJECTED);
	for (unsigned l = 0; l < LISTEN_COUNT; l++) {
		const struct metric_label label = {"listener", listen_name_word((enum listen_name)l)};

		metric_sample(
			t, METRIC_CONNECTIONS_REJECTED, &label, 1, metric_get(&connections[l].rejected));
	}
}

static void write_durations(struct text *t, const struct server_counters *const *counters, size_t n)
{
	metric_family(t, METRIC_DECISION_DURATION);
	for (unsigned door = 0; door < DOOR_COUNT; door++) {
		const struct metric_label label = {"door", door_word((enum door)door)};
		const struct metric_histogram *items[METRICS_WORKERS_MAX];
		const struct metric_parts parts = {&decision_bounds, items, n};

		for (size_t i = 0; i < n; i++)
			items[i] = &counters[i]->durations[door];
		metric_sample_histogram(t, METRIC_DECISION_DURATION, &label, 1, &parts);
	}
}

static void write_process(struct text *t)
{
	struct proc_usage usage;

	proc_usage_read(&usage);
	metric_family(t, METRIC_PROCESS_CPU);
	metric_sample_seconds(t, METRIC_PROCESS_CPU, NULL, 0, usage.cpu_ns);
	const struct {
		enum metric metric;
		uint64_t value;
	} rows[] = {
		{METRIC_PROCESS_RSS, usage.resident_bytes},
		{METRIC_PROCESS_FDS, usage.open_fds},
		{METRIC_PROCESS_MAX_FDS, usage.max_fds},
		{METRIC_PROCESS_START, usage.start_time_unix_s},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		metric_family(t, rows[i].metric);
		metric_sample(t, rows[i].metric, NULL, 0, rows[i].value);
	}
}

void metrics_write(struct text *t, const struct server_counters *const *counters, size_t n,
	const struct connection_counters connections[LISTEN_COUNT])
{
	write_build(t);
	write_answers(t, counters, n);
	write_calls(t, counters, n);
	write_problems(t, counters, n);
	write_connections(t, connections);
	write_durations(t, counters, n);
	write_process(t);
}
