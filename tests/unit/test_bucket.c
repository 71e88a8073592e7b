/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic of one bucket: limits of the rule, rounding, and the exact edges of wait, remaining and next. Long random
 * runs against an independent token bucket are in test_model.c.
 */
#include "core/bucket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT_MAX ((uint64_t)INT32_MAX)
#define TWO_62 ((ns)1 << 62)
#define DAY_NS (86400 * NS_PER_S)

static struct bucket_rule rule_of(uint64_t count, ns period_ns, uint64_t burst)
{
	struct bucket_rule r;

	assert_true(bucket_rule_make(&r, count, period_ns, burst));
	return r;
}

static void test_rule_limits(void **state)
{
	static const struct {
		uint64_t count;
		ns period_ns;
		uint64_t burst;
		bool ok;
		ns interval_ns;
	} cases[] = {
		{300, 60 * NS_PER_S, 300, true, 200000000},
		{7000000, NS_PER_S, 1, true, 143}, /* 142.86: rounded up */
		{1000000000, NS_PER_S, 1, true, 1},
		{COUNT_MAX, NS_PER_S, COUNT_MAX, true, 1}, /* faster than a ns each: 1 ns */
		{10, 13 * NS_PER_S, 10, true, 1300000000},
		{1, 3600 * NS_PER_S, 1, true, 3600 * NS_PER_S},
		{1, DAY_NS, 53375, true, DAY_NS}, /* just below 2^62 */
		{1, DAY_NS, 53376, false, 0},
		{1, DAY_NS, 1000000, false, 0}, /* 8.6e19 does not fit 64 bits either */
		{1, TWO_62 - 1, 1, true, TWO_62 - 1},
		{1, TWO_62, 1, false, 0},
		{1, UINT64_MAX, 1, false, 0},
		{2, UINT64_MAX, 1, false, 0},
		{COUNT_MAX, UINT64_MAX, 1, true, 8589934597},
		{0, NS_PER_S, 1, false, 0},
		{1, NS_PER_S, 0, false, 0},
		{1, 0, 1, false, 0},
		{COUNT_MAX + 1, NS_PER_S, 1, false, 0},
		{1, 1, COUNT_MAX + 1, false, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct bucket_rule r = {.interval_ns = 77, .burst = 78};
		bool ok = bucket_rule_make(&r, cases[i].count, cases[i].period_ns, cases[i].burst);

		assert_int_equal(ok, cases[i].ok);
		assert_int_equal(r.interval_ns, ok ? cases[i].interval_ns : 77);
		assert_int_equal(r.burst, ok ? cases[i].burst : 78);
	}
}

static void test_burst_then_rate(void **state)
{
	struct bucket_rule r = rule_of(5, 60 * NS_PER_S, 5);
	ns now = 1000;
	ns paid_at = 0;

	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(bucket_remaining(&r, paid_at, now), 5 - i);
		assert_int_equal(bucket_wait_ns(&r, paid_at, 1, now), 0);
		paid_at = bucket_charge(&r, paid_at, 1, now);
	}
	assert_int_equal(paid_at, now + 60 * NS_PER_S);
	assert_int_equal(bucket_remaining(&r, paid_at, now), 0);
	assert_int_equal(bucket_wait_ns(&r, paid_at, 1, now), 12 * NS_PER_S);
	assert_int_equal(bucket_wait_ns(&r, paid_at, 5, now), 60 * NS_PER_S);

	now += 12 * NS_PER_S - 1;
	assert_int_equal(bucket_wait_ns(&r, paid_at, 1, now), 1);
	assert_int_equal(bucket_remaining(&r, paid_at, now), 0);
	now++;
	assert_int_equal(bucket_wait_ns(&r, paid_at, 1, now), 0);
	assert_int_equal(bucket_remaining(&r, paid_at, now), 1);

	/* However long it rests, it holds no more than the burst. */
	now += 3 * 3600 * NS_PER_S;
	assert_int_equal(bucket_remaining(&r, paid_at, now), 5);
	assert_int_equal(bucket_charge(&r, paid_at, 1, now), now + 12 * NS_PER_S);
}

static void test_next(void **state)
{
	struct bucket_rule r = {.interval_ns = 100, .burst = 4};

	(void)state;
	assert_int_equal(bucket_next_ns(&r, 0, 1000), 0);
	assert_int_equal(bucket_next_ns(&r, 1000, 1000), 0);
	assert_int_equal(bucket_next_ns(&r, 1001, 1000), 1);
	assert_int_equal(bucket_next_ns(&r, 1100, 1000), 100);
	assert_int_equal(bucket_next_ns(&r, 1101, 1000), 1);
	assert_int_equal(bucket_next_ns(&r, 1400, 1000), 100);
	for (ns paid_at = 1001; paid_at <= 1400; paid_at++) {
		ns next_ns = bucket_next_ns(&r, paid_at, 1000);
		uint64_t units = bucket_remaining(&r, paid_at, 1000);

		assert_int_equal(bucket_remaining(&r, paid_at, 1000 + next_ns), units + 1);
		assert_int_equal(bucket_remaining(&r, paid_at, 1000 + next_ns - 1), units);
	}
}

static void test_cut(void **state)
{
	struct bucket_rule r = {.interval_ns = 100, .burst = 4};

	(void)state;
	assert_int_equal(bucket_room_ns(&r), 400);
	assert_int_equal(bucket_cut(&r, 0, 1000), 0);
	assert_int_equal(bucket_cut(&r, 1400, 1000), 1400);
	assert_int_equal(bucket_cut(&r, 1401, 1000), 1400);
	assert_int_equal(bucket_cut(&r, UINT64_MAX, 1000), 1400);
}

/* The largest values of all: nothing may wrap. */
static void test_extremes(void **state)
{
	struct bucket_rule r = rule_of(1, TWO_62 - 1, 1);
	ns now = TWO_62 - 1;
	ns paid_at = bucket_charge(&r, 0, 1, now);

	(void)state;
	assert_int_equal(paid_at, 2 * (TWO_62 - 1));
	assert_int_equal(bucket_cut(&r, paid_at, now), paid_at);
	assert_int_equal(bucket_wait_ns(&r, paid_at, 1, now), TWO_62 - 1);
	assert_int_equal(bucket_remaining(&r, paid_at, now), 0);
	assert_int_equal(bucket_next_ns(&r, paid_at, now), TWO_62 - 1);

	r = rule_of(COUNT_MAX, NS_PER_S, COUNT_MAX);
	paid_at = bucket_charge(&r, 0, COUNT_MAX, now);
	assert_int_equal(bucket_remaining(&r, paid_at, now), 0);
	assert_int_equal(bucket_wait_ns(&r, paid_at, COUNT_MAX, now), COUNT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rule_limits),
		cmocka_unit_test(test_burst_then_rate),
		cmocka_unit_test(test_next),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_extremes),
	};

	return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
