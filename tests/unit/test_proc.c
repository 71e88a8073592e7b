/* SPDX-License-Identifier: MIT */
/* Signals and limits belong to the whole process, so each test runs in a child of its own. */
#include "io/proc.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* In a child: the line of the first check that does not hold is its exit code. */
#define CHECK(cond)                                                                                          \
	do {                                                                                                 \
		if (!(cond))                                                                                 \
			_exit(__LINE__ % 255 + 1);                                                           \
	} while (0)

static void in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void signals_body(void)
{
	const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	int fd = -1, pipe_fds[2];

	/* As under nohup, or as a shell's background job. */
	CHECK(signal(SIGHUP, SIG_IGN) != SIG_ERR);
	CHECK(proc_signals_open(&fd) == ERR_OK);
	CHECK(fd >= 0);
	CHECK((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	CHECK(proc_signals_next(fd) == 0);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		CHECK(kill(getpid(), numbers[i]) == 0);
		CHECK(poll(&p, 1, -1) == 1);
		CHECK(proc_signals_next(fd) == numbers[i]);
		CHECK(proc_signals_next(fd) == 0);
	}
	CHECK(pipe(pipe_fds) == 0);
	CHECK(close(pipe_fds[0]) == 0);
	CHECK(write(pipe_fds[1], "x", 1) == -1);
}

static void signals_come_through_the_descriptor(void **state)
{
	(void)state;
	in_child(signals_body);
}

static void harden_body(void)
{
	struct rlimit core;

	proc_harden();
	CHECK(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	CHECK(getrlimit(RLIMIT_CORE, &core) == 0);
	CHECK(core.rlim_cur == 0 && core.rlim_max == 0);
}

static void hardened_means_no_core_and_no_tracing(void **state)
{
	(void)state;
	in_child(harden_body);
}

static void open_files_body(void)
{
	struct rlimit limit = {64, 128};

	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(proc_raise_open_files() == 128);
	CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK(limit.rlim_cur == 128 && limit.rlim_max == 128);
	CHECK(proc_raise_open_files() == 128);
}

static void open_files_are_raised_to_the_hard_limit(void **state)
{
	(void)state;
	in_child(open_files_body);
}

static void usage_body(void)
{
	struct proc_usage before, after;
	struct rlimit limit = {64, 128};
	uint64_t now_s = clock_wall_ns() / NS_PER_S;
	volatile unsigned work = 0;
	int fd;

	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	/* A name that would mislead who splits the line at spaces. */
	CHECK(prctl(PR_SET_NAME, "a) 1 (b", 0, 0, 0) == 0);
	proc_usage_read(&before);
	CHECK(before.max_fds == 64);
	CHECK(before.resident_bytes > 100000);
	CHECK(before.start_time_unix_s <= now_s + 1 && before.start_time_unix_s + 600 > now_s);
	CHECK(before.cpu_ns > 0);

	fd = open("/dev/null", O_RDONLY);
	CHECK(fd >= 0);
	while (work < 100000)
		work++;
	proc_usage_read(&after);
	CHECK(after.open_fds == before.open_fds + 1);
	CHECK(after.cpu_ns > before.cpu_ns);
	CHECK(after.start_time_unix_s == before.start_time_unix_s);
}

static void usage_is_our_own(void **state)
{
	(void)state;
	in_child(usage_body);
}

static void usage_can_be_read_when_hardened_body(void)
{
	struct proc_usage usage;

	/* /proc/self then belongs to root; a process without privileges still has to see itself. */
	if (getuid() == 0)
		CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	proc_harden();
	proc_usage_read(&usage);
	CHECK(usage.resident_bytes > 0 && usage.open_fds > 0 && usage.start_time_unix_s > 0);
}

static void usage_can_be_read_when_hardened(void **state)
{
	(void)state;
	in_child(usage_can_be_read_when_hardened_body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signals_come_through_the_descriptor),
		cmocka_unit_test(hardened_means_no_core_and_no_tracing),
		cmocka_unit_test(open_files_are_raised_to_the_hard_limit),
		cmocka_unit_test(usage_is_our_own),
		cmocka_unit_test(usage_can_be_read_when_hardened),
	};

	(void)alarm(60);
	return cmocka_run_group_tests_name("proc", tests, NULL, NULL);
}
