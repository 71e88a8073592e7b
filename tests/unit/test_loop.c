/* SPDX-License-Identifier: MIT */
/*
 * Real descriptors and the real clock, but no result rests on how long something takes: due times lie in the past or an
 * hour ahead, and where a turn must wait for a timer it waits for that alone. A loop that never wakes up ends by alarm.
 */
#include "io/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR (3600 * NS_PER_S)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static struct loop *loop;

static int setup(void **state)
{
	(void)state;
	return loop_new(&loop) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

/* ------------------------------------------------------------------------------------------------- descriptors */

/* Ready for reading from the start. */
struct source {
	struct loop_fd handle;
	unsigned calls;
	uint32_t events;
	void (*then)(struct source *self);
	struct source **others; /* two slots, for then */
};

static void source_ready(void *arg, uint32_t events)
{
	struct source *s = arg;

	s->calls++;
	s->events = events;
	if (s->then != NULL)
		s->then(s);
}

static void source_open(struct source *s, uint32_t events, void (*then)(struct source *self))
{
	memset(s, 0, sizeof *s);
	s->handle = (struct loop_fd){
		.fd = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC), .ready = source_ready, .arg = s};
	s->then = then;
	assert_true(s->handle.fd >= 0);
	assert_int_equal(loop_add(loop, &s->handle, events), ERR_OK);
	assert_true(s->handle.active);
}

static void source_close(struct source *s)
{
	loop_remove(loop, &s->handle);
	(void)close(s->handle.fd);
}

static void ready_is_told_every_turn_until_removed(void **state)
{
	struct source s;

	(void)state;
	source_open(&s, EPOLLIN, NULL);
	loop_turn(loop, HOUR);
	loop_turn(loop, HOUR);
	assert_int_equal(s.calls, 2);
	assert_int_equal(s.events, EPOLLIN);
	assert_int_equal(loop_change(loop, &s.handle, EPOLLIN | EPOLLOUT), ERR_OK);
	loop_turn(loop, HOUR);
	assert_int_equal(s.events, EPOLLIN | EPOLLOUT);
	loop_remove(loop, &s.handle);
	assert_false(s.handle.active);
	loop_remove(loop, &s.handle);
	loop_turn(loop, 0);
	assert_int_equal(s.calls, 3);
	source_close(&s);
}

static void add_fails_on_what_epoll_refuses(void **state)
{
	struct loop_fd file = {.fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC), .ready = source_ready};
	struct loop_fd none = {.fd = -1, .ready = source_ready};

	(void)state;
	assert_true(file.fd >= 0);
	assert_int_equal(loop_add(loop, &file, EPOLLIN), ERR_IO);
	assert_false(file.active);
	assert_int_equal(loop_add(loop, &none, EPOLLIN), ERR_IO);
	assert_int_equal(close(file.fd), 0);
}

static void remove_self(struct source *s)
{
	loop_remove(loop, &s->handle);
}

static void a_callback_may_remove_itself(void **state)
{
	struct source s;

	(void)state;
	source_open(&s, EPOLLIN, remove_self);
	loop_turn(loop, HOUR);
	loop_turn(loop, 0);
	assert_int_equal(s.calls, 1);
	source_close(&s);
}

/* Both are ready in one turn: the one that is called first frees the other. */
static void free_the_other(struct source *s)
{
	struct source **other = s->others[0] == s ? &s->others[1] : &s->others[0];

	if (*other == NULL)
		return;
	source_close(*other);
	free(*other);
	*other = NULL;
}

static void a_callback_may_free_a_handle_that_is_ready_too(void **state)
{
	struct source *both[2];
	unsigned left;

	(void)state;
	for (size_t i = 0; i < COUNT(both); i++) {
		both[i] = malloc(sizeof *both[i]);
		assert_non_null(both[i]);
		source_open(both[i], EPOLLIN, free_the_other);
		both[i]->others = both;
	}
	loop_turn(loop, HOUR);
	assert_true((both[0] == NULL) != (both[1] == NULL));
	left = both[0] == NULL;
	assert_int_equal(both[left]->calls, 1);
	loop_turn(loop, HOUR);
	assert_int_equal(both[left]->calls, 2);
	source_close(both[left]);
	free(both[left]);
}

/* The other's descriptor and handle are put to a new use in the turn in which the old one was ready. */
static void reuse_the_other(struct source *s)
{
	struct source *other = s->others[0] == s ? s->others[1] : s->others[0];
	uint64_t count;

	s->then = NULL;
	other->then = NULL;
	assert_int_equal(read(other->handle.fd, &count, sizeof count), sizeof count);
	loop_remove(loop, &other->handle);
	assert_int_equal(loop_add(loop, &other->handle, EPOLLIN), ERR_OK);
}

static void cut_the_other(struct source *s)
{
	struct source *other = s->others[0] == s ? s->others[1] : s->others[0];

	s->then = NULL;
	other->then = NULL;
	assert_int_equal(loop_change(loop, &other->handle, 0), ERR_OK);
}

static void other_is_not_called(void (*then)(struct source *self))
{
	struct source a, b;
	struct source *both[2] = {&a, &b};

	source_open(&a, EPOLLIN, then);
	source_open(&b, EPOLLIN, then);
	a.others = both;
	b.others = both;
	loop_turn(loop, HOUR);
	assert_int_equal(a.calls + b.calls, 1);
	loop_turn(loop, HOUR);
	assert_int_equal(a.calls + b.calls, 2);
	assert_true(a.calls == 0 || b.calls == 0);
	source_close(&a);
	source_close(&b);
}

static void a_handle_added_again_does_not_hear_of_its_past(void **state)
{
	(void)state;
	other_is_not_called(reuse_the_other);
}

static void a_change_holds_in_the_same_turn(void **state)
{
	(void)state;
	other_is_not_called(cut_the_other);
}

static void more_than_one_batch_is_served_in_turn(void **state)
{
	struct source s[150];

	(void)state;
	for (size_t i = 0; i < COUNT(s); i++)
		source_open(&s[i], EPOLLIN, NULL);
	for (size_t turns = 0; turns < 3; turns++)
		loop_turn(loop, HOUR);
	for (size_t i = 0; i < COUNT(s); i++) {
		assert_int_not_equal(s[i].calls, 0);
		source_close(&s[i]);
	}
}

/* ------------------------------------------------------------------------------------------------------ timers */

struct alarm_clock {
	struct loop_timer timer;
	unsigned fired;
	ns fired_at;
	unsigned place; /* the how manyth to fire */
	void (*then)(struct alarm_clock *self);
	struct alarm_clock *other;
};

static unsigned fired_total;

static void alarm_fire(void *arg)
{
	struct alarm_clock *a = arg;

	a->fired++;
	a->fired_at = loop_now(loop);
	a->place = fired_total++;
	assert_false(a->timer.active);
	if (a->then != NULL)
		a->then(a);
}

static void alarm_set(struct alarm_clock *a, ns due)
{
	if (a->timer.arg == NULL)
		a->timer = (struct loop_timer){.fire = alarm_fire, .arg = a};
	loop_timer_set(loop, &a->timer, due);
	assert_true(a->timer.active);
}

static void timers_fire_by_due_time_and_equal_ones_as_set(void **state)
{
	struct alarm_clock a[5] = {0}, later = {0};
	ns now = loop_now(loop);
	const ns ago[5] = {10, 30, 10, 20, 30};
	const unsigned place[5] = {3, 0, 4, 2, 1};

	(void)state;
	fired_total = 0;
	alarm_set(&later, now + HOUR);
	for (size_t i = 0; i < COUNT(a); i++)
		alarm_set(&a[i], now - ago[i]);
	loop_turn(loop, HOUR);
	for (size_t i = 0; i < COUNT(a); i++) {
		assert_int_equal(a[i].fired, 1);
		assert_int_equal(a[i].place, place[i]);
	}
	loop_turn(loop, 0);
	assert_int_equal(fired_total, 5);
	assert_int_equal(later.fired, 0);
}

static void a_turn_waits_for_its_timer_and_no_longer(void **state)
{
	struct alarm_clock soon = {0}, later = {0};
	ns due = loop_now(loop) + NS_PER_MS / 2;

	(void)state;
	alarm_set(&later, loop_now(loop) + HOUR);
	alarm_set(&soon, due);
	/* One turn: a wait cut down to whole milliseconds would spin until the time has come. */
	loop_turn(loop, UINT64_MAX);
	assert_int_equal(soon.fired, 1);
	assert_true(soon.fired_at >= due);
	assert_int_equal(later.fired, 0);
}

static void a_timer_may_be_moved_and_stopped(void **state)
{
	struct alarm_clock a = {0}, b = {0};

	(void)state;
	alarm_set(&a, loop_now(loop));
	alarm_set(&b, loop_now(loop));
	alarm_set(&a, loop_now(loop) + HOUR);
	loop_timer_stop(loop, &b.timer);
	loop_timer_stop(loop, &b.timer);
	assert_false(b.timer.active);
	loop_turn(loop, 0);
	assert_int_equal(a.fired + b.fired, 0);
	alarm_set(&a, loop_now(loop) - 1);
	loop_turn(loop, HOUR);
	assert_int_equal(a.fired, 1);
}

static void arm_again(struct alarm_clock *a)
{
	alarm_set(a, loop_now(loop) - NS_PER_S);
}

static void a_timer_armed_again_for_the_past_waits_for_the_next_turn(void **state)
{
	struct alarm_clock a = {.then = arm_again};

	(void)state;
	alarm_set(&a, loop_now(loop));
	for (unsigned turn = 1; turn <= 3; turn++) {
		loop_turn(loop, HOUR);
		assert_int_equal(a.fired, turn);
	}
}

static void stop_other(struct alarm_clock *a)
{
	loop_timer_stop(loop, &a->other->timer);
}

static void a_timer_may_stop_one_that_is_due_too(void **state)
{
	struct alarm_clock second = {0}, first = {.then = stop_other, .other = &second};

	(void)state;
	alarm_set(&first, loop_now(loop) - 2);
	alarm_set(&second, loop_now(loop) - 1);
	loop_turn(loop, HOUR);
	loop_turn(loop, 0);
	assert_int_equal(first.fired, 1);
	assert_int_equal(second.fired, 0);
}

static void thousands_of_timers_stay_in_order(void **state)
{
	static struct alarm_clock a[5000];
	ns now = loop_now(loop);
	uint32_t random = 1;

	(void)state;
	fired_total = 0;
	memset(a, 0, sizeof a);
	for (unsigned round = 0; round < 2; round++) {
		for (size_t i = 0; i < COUNT(a); i++) {
			random = random * 1664525 + 1013904223;
			alarm_set(&a[i], now - 1 - (random >> 8) % 1000);
		}
	}
	for (size_t i = 0; i < COUNT(a); i += 5)
		loop_timer_stop(loop, &a[i].timer);
	loop_turn(loop, HOUR);
	assert_int_equal(fired_total, 4000);
	for (size_t i = 0; i < COUNT(a); i++) {
		assert_int_equal(a[i].fired, i % 5 != 0);
		for (size_t j = i + 1; i % 97 == 1 && j < COUNT(a); j++) {
			if (a[i].fired && a[j].fired)
				assert_int_equal(a[i].timer.due <= a[j].timer.due, a[i].place < a[j].place);
		}
	}
}

/* ----------------------------------------------------------------------------------------------- wake and stop */

static unsigned wakes;

static void count_wake(void *arg)
{
	assert_ptr_equal(arg, &wakes);
	wakes++;
}

static void wake_ends_the_wait_and_is_told_once(void **state)
{
	(void)state;
	wakes = 0;
	loop_wake(loop);
	loop_turn(loop, UINT64_MAX);
	loop_on_wake(loop, count_wake, &wakes);
	loop_wake(loop);
	loop_wake(loop);
	loop_turn(loop, UINT64_MAX);
	assert_int_equal(wakes, 1);
	loop_turn(loop, 0);
	assert_int_equal(wakes, 1);
}

static void stop_the_loop(struct alarm_clock *a)
{
	(void)a;
	loop_stop(loop);
}

static void stop_before_run_is_not_lost_and_ends_one_run_only(void **state)
{
	struct alarm_clock a = {.then = stop_the_loop};

	(void)state;
	alarm_set(&a, loop_now(loop));
	loop_stop(loop);
	loop_run(loop);
	assert_int_equal(a.fired, 0);
	loop_run(loop);
	assert_int_equal(a.fired, 1);
}

static void stop_on_signal(int number)
{
	(void)number;
	loop_stop(loop);
}

static void a_signal_handler_may_stop(void **state)
{
	struct sigaction action = {.sa_handler = stop_on_signal}, before;

	(void)state;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	errno = EDOM;
	assert_int_equal(raise(SIGUSR1), 0);
	assert_int_equal(errno, EDOM);
	loop_run(loop);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

/* Each thread asks the loop for the next number by waking it, and waits until it came. */
#define ASKS 500
static atomic_uint asked, answered;

static void answer(void *arg)
{
	(void)arg;
	atomic_store(&answered, atomic_load(&asked));
}

static void *ask_and_stop(void *arg)
{
	(void)arg;
	for (unsigned i = 1; i <= ASKS; i++) {
		atomic_store(&asked, i);
		loop_wake(loop);
		while (atomic_load(&answered) < i)
			(void)sched_yield();
	}
	loop_stop(loop);
	return NULL;
}

static void another_thread_may_wake_and_stop(void **state)
{
	pthread_t thread;

	(void)state;
	atomic_store(&answered, 0);
	loop_on_wake(loop, answer, NULL);
	assert_int_equal(pthread_create(&thread, NULL, ask_and_stop, NULL), 0);
	loop_run(loop);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(atomic_load(&answered), ASKS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ready_is_told_every_turn_until_removed),
		TEST(add_fails_on_what_epoll_refuses),
		TEST(a_callback_may_remove_itself),
		TEST(a_callback_may_free_a_handle_that_is_ready_too),
		TEST(a_handle_added_again_does_not_hear_of_its_past),
		TEST(a_change_holds_in_the_same_turn),
		TEST(more_than_one_batch_is_served_in_turn),
		TEST(timers_fire_by_due_time_and_equal_ones_as_set),
		TEST(a_turn_waits_for_its_timer_and_no_longer),
		TEST(a_timer_may_be_moved_and_stopped),
		TEST(a_timer_armed_again_for_the_past_waits_for_the_next_turn),
		TEST(a_timer_may_stop_one_that_is_due_too),
		TEST(thousands_of_timers_stay_in_order),
		TEST(wake_ends_the_wait_and_is_told_once),
		TEST(stop_before_run_is_not_lost_and_ends_one_run_only),
		TEST(a_signal_handler_may_stop),
		TEST(another_thread_may_wake_and_stop),
	};

	(void)alarm(60);
	return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
