/* SPDX-License-Identifier: MIT */
/*
 * The text form of /metrics, byte for byte.
 */
#include "base/metric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static char buffer[8192];
static struct text out;

static int start(void **state)
{
	(void)state;
	text_init(&out, buffer, sizeof(buffer));
	return 0;
}

static void expect(const char *expected_z)
{
	struct str s = text_view(&out);

	assert_false(out.overflow);
	assert_int_equal(s.len, strlen(expected_z));
	assert_memory_equal(s.ptr, expected_z, s.len);
}

static void test_every_family_has_name_type_and_help(void **state)
{
	(void)state;
	for (enum metric m = 0; m < METRIC_COUNT; m++) {
		char help[120], type[120];
		struct str s;
		size_t line;

		(void)start(NULL);
		metric_family(&out, m);
		s = text_view(&out);
		line = str_find(s, '\n') + 1;
		(void)snprintf(help, sizeof(help), "# HELP %s ", metric_name(m));
		(void)snprintf(type, sizeof(type), "# TYPE %s ", metric_name(m));
		assert_true(str_starts_with(s, str_from_z(help)));
		assert_true(line > strlen(help) + 1);
		s = str_from(s, line);
		assert_true(str_starts_with(s, str_from_z(type)));
		s = str_from(s, strlen(type));
		assert_true(str_equal(s, STR("counter\n")) || str_equal(s, STR("gauge\n")) ||
			    str_equal(s, STR("histogram\n")));
	}
}

static void test_samples(void **state)
{
	const struct metric_label one[] = {{"listener", STR("http")}};
	const struct metric_label two[] = {{"listener", STR("http")}, {"code", STR("")}};

	(void)state;
	metric_family(&out, METRIC_PROCESS_FDS);
	metric_sample(&out, METRIC_PROCESS_FDS, NULL, 0, 0);
	metric_sample(&out, METRIC_CONNECTIONS, one, 1, 7);
	metric_sample(&out, METRIC_REQUESTS, two, 2, UINT64_MAX);
	expect("# HELP process_open_fds Open file descriptors.\n"
	       "# TYPE process_open_fds gauge\n"
	       "process_open_fds 0\n"
	       "postern_connections{listener=\"http\"} 7\n"
	       "postern_requests_total{listener=\"http\",code=\"\"} 18446744073709551615\n");
}

static void test_label_values_are_escaped(void **state)
{
	const struct metric_label label = {"rule", STR("a\\b\"c\nd,}= \xc3\xbc")};

	(void)state;
	metric_sample(&out, METRIC_DECISIONS, &label, 1, 1);
	expect("postern_decisions_total{rule=\"a\\\\b\\\"c\\nd,}= \xc3\xbc\"} 1\n");
}

static void test_seconds_are_exact(void **state)
{
	static const uint64_t values[] = {
		0, 1, 1000, 100000000, 1500000000, 2000000000, 1000000001, UINT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		metric_sample_seconds(&out, METRIC_PROCESS_CPU, NULL, 0, values[i]);
	expect("process_cpu_seconds_total 0\n"
	       "process_cpu_seconds_total 0.000000001\n"
	       "process_cpu_seconds_total 0.000001\n"
	       "process_cpu_seconds_total 0.1\n"
	       "process_cpu_seconds_total 1.5\n"
	       "process_cpu_seconds_total 2\n"
	       "process_cpu_seconds_total 1.000000001\n"
	       "process_cpu_seconds_total 18446744073.709551615\n");
}

static void test_histogram_is_cumulative_over_its_parts(void **state)
{
	static const uint64_t upper[] = {5000, 10000, 1000000000};
	const struct metric_bounds bounds = {upper, 3};
	const struct metric_label label = {"door", STR("check")};
	struct metric_histogram a = {0}, b = {0};
	const struct metric_histogram *const items[] = {&a, &b};
	const struct metric_parts both = {&bounds, items, 2}, none = {&bounds, NULL, 0};

	(void)state;
	metric_observe(&a, &bounds, 0);
	metric_observe(&a, &bounds, 5000);
	metric_observe(&a, &bounds, 5001);
	metric_observe(&b, &bounds, 1000000000);
	metric_observe(&b, &bounds, 1000000001);
	metric_sample_histogram(&out, METRIC_DECISION_DURATION, &label, 1, &both);
	metric_sample_histogram(&out, METRIC_DECISION_DURATION, NULL, 0, &none);
	expect("postern_decision_duration_seconds_bucket{door=\"check\",le=\"0.000005\"} 2\n"
	       "postern_decision_duration_seconds_bucket{door=\"check\",le=\"0.00001\"} 3\n"
	       "postern_decision_duration_seconds_bucket{door=\"check\",le=\"1\"} 4\n"
	       "postern_decision_duration_seconds_bucket{door=\"check\",le=\"+Inf\"} 5\n"
	       "postern_decision_duration_seconds_sum{door=\"check\"} 2.000010002\n"
	       "postern_decision_duration_seconds_count{door=\"check\"} 5\n"
	       "postern_decision_duration_seconds_bucket{le=\"0.000005\"} 0\n"
	       "postern_decision_duration_seconds_bucket{le=\"0.00001\"} 0\n"
	       "postern_decision_duration_seconds_bucket{le=\"1\"} 0\n"
	       "postern_decision_duration_seconds_bucket{le=\"+Inf\"} 0\n"
	       "postern_decision_duration_seconds_sum 0\n"
	       "postern_decision_duration_seconds_count 0\n");
}

static void test_histogram_with_all_bounds(void **state)
{
	static const uint64_t upper[15] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	const struct metric_bounds bounds = {upper, 15};
	struct metric_histogram h = {0};

	(void)state;
	for (uint64_t v = 1; v <= 16; v++)
		metric_observe(&h, &bounds, v);
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(metric_get(&h.counts[i]), 1);
	assert_int_equal(metric_get(&h.sum_ns), 136);
}

static void test_counters(void **state)
{
	metric_counter c = 0;

	(void)state;
	metric_add(&c, 3);
	metric_add(&c, 4);
	assert_int_equal(metric_get(&c), 7);
	metric_set(&c, 2);
	assert_int_equal(metric_get(&c), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_every_family_has_name_type_and_help, start),
		cmocka_unit_test_setup(test_samples, start),
		cmocka_unit_test_setup(test_label_values_are_escaped, start),
		cmocka_unit_test_setup(test_seconds_are_exact, start),
		cmocka_unit_test_setup(test_histogram_is_cumulative_over_its_parts, start),
		cmocka_unit_test_setup(test_histogram_with_all_bounds, start),
		cmocka_unit_test(test_counters),
	};

	return cmocka_run_group_tests_name("metric", tests, NULL, NULL);
}
