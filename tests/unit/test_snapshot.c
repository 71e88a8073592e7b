/* SPDX-License-Identifier: MIT */
/*
 * Publishing and retiring. Where threads race, each value is a block that says whether it is alive: whoever frees one too
 * early is caught by its mark, and by the sanitizers, which this is written for.
 */
#include "base/err.h"
#include "config/snapshot.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#define READERS 4
#define VALUES 2000
#define ALIVE UINT64_C(0x616c697665616c76)

static struct snapshot *open_for(unsigned readers, void *first)
{
	struct snapshot *s;

	assert_int_equal(snapshot_open(&s, readers, first), ERR_OK);
	return s;
}

static void test_retired_after_the_last_reader(void **state)
{
	int a, b;
	struct snapshot *s = open_for(3, &a);

	(void)state;
	snapshot_publish(s, &b);
	assert_null(snapshot_retire(s));
	assert_ptr_equal(snapshot_pass(s, 2), &b);
	assert_ptr_equal(snapshot_pass(s, 0), &b);
	assert_ptr_equal(snapshot_pass(s, 0), &b);
	assert_null(snapshot_retire(s));
	assert_ptr_equal(snapshot_pass(s, 1), &b);
	assert_ptr_equal(snapshot_retire(s), &a);
	assert_null(snapshot_retire(s)); /* once only */
	snapshot_close(s);
}

static void test_what_was_passed_before_does_not_count(void **state)
{
	int a, b;
	struct snapshot *s = open_for(2, &a);

	(void)state;
	assert_ptr_equal(snapshot_pass(s, 0), &a);
	assert_ptr_equal(snapshot_pass(s, 1), &a);
	assert_null(snapshot_retire(s)); /* nothing was published */
	snapshot_publish(s, &b);
	assert_null(snapshot_retire(s));
	snapshot_close(s);
}

static void test_one_after_the_other(void **state)
{
	int values[5];
	struct snapshot *s = open_for(1, &values[0]);

	(void)state;
	for (size_t i = 1; i < 5; i++) {
		snapshot_publish(s, &values[i]);
		assert_ptr_equal(snapshot_pass(s, 0), &values[i]);
		assert_ptr_equal(snapshot_retire(s), &values[i - 1]);
	}
	snapshot_close(s);
}

struct value {
	uint64_t mark, number;
};

struct shared {
	struct snapshot *snapshot;
	atomic_bool stop;
	atomic_uint next_reader;
	atomic_ulong faults;
};

static struct value *value_new(uint64_t number)
{
	struct value *v = malloc(sizeof(*v));

	assert_non_null(v);
	*v = (struct value){ALIVE, number};
	return v;
}

static void *read_on(void *arg)
{
	struct shared *shared = arg;
	unsigned reader = atomic_fetch_add(&shared->next_reader, 1);
	uint64_t last = 0;

	while (!atomic_load(&shared->stop)) {
		const struct value *v = snapshot_pass(shared->snapshot, reader);

		/* Used many times between two quiet points, and never older than what was seen before. */
		for (unsigned i = 0; i < 16; i++) {
			if (v->mark != ALIVE || v->number < last)
				atomic_fetch_add(&shared->faults, 1);
		}
		last = v->number;
		if (reader % 2 == 0)
			sched_yield();
	}
	return NULL;
}

static void test_threads(void **state)
{
	struct shared shared = {.snapshot = NULL};
	pthread_t threads[READERS];
	struct value *last = value_new(0);

	(void)state;
	shared.snapshot = open_for(READERS, last);
	for (unsigned i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &shared), 0);
	for (uint64_t n = 1; n <= VALUES; n++) {
		struct value *before;

		last = value_new(n);
		snapshot_publish(shared.snapshot, last);
		while ((before = snapshot_retire(shared.snapshot)) == NULL)
			sched_yield();
		if (before->number != n - 1)
			atomic_fetch_add(&shared.faults, 1);
		before->mark = 0;
		free(before);
	}
	atomic_store(&shared.stop, true);
	for (unsigned i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	snapshot_close(shared.snapshot);
	free(last);
	assert_int_equal(atomic_load(&shared.faults), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retired_after_the_last_reader),
		cmocka_unit_test(test_what_was_passed_before_does_not_count),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests_name("snapshot", tests, NULL, NULL);
}
