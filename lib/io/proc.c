/* SPDX-License-Identifier: MIT */
/*
 * Signals arrive through a descriptor, so that they are one more event of the loop and no handler runs between two lines
 * of ours. They are blocked, not handled: the kernel keeps a blocked signal even where its disposition is "ignore" (a
 * shell's background job) and for PID 1, which it otherwise shields from every signal without a handler. SIGUSR1 and
 * SIGUSR2, which have other daemons open their logs again, would end this one without a drain and are ignored.
 * CPU time and limits come from system calls about ourselves; the rest from /proc/self, with plain reads into a buffer.
 */
#include "io/proc.h"

#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

enum err proc_signals_open(int *ret_fd)
{
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return ERR_IO;
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGUSR1, SIG_IGN) == SIG_ERR ||
		signal(SIGUSR2, SIG_IGN) == SIG_ERR || pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
		(void)close(fd);
		return ERR_IO;
	}
	*ret_fd = fd;
	return ERR_OK;
}

int proc_signals_next(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof info) == (ssize_t)sizeof info ? (int)info.ssi_signo : 0;
}

void proc_harden(void)
{
	struct rlimit none = {0, 0};

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

size_t proc_raise_open_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return 0;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit raised = {limit.rlim_max, limit.rlim_max};

		if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
			limit = raised;
	}
	return (size_t)limit.rlim_cur;
}

/* Reads a small file of /proc as text; false if it cannot be read. */
static bool read_text(const char *path_z, char *out, size_t size)
{
	int fd = open(path_z, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, out, size - 1);
	(void)close(fd);
	if (n <= 0)
		return false;
	out[n] = '\0';
	return true;
}

/* The number in field at of a list separated by spaces, counted from 0; 0 if there is none. */
static uint64_t field_number(const char *text_z, unsigned at)
{
	for (; at > 0; at--) {
		text_z = strchr(text_z, ' ');
		if (text_z == NULL)
			return 0;
		text_z++;
	}
	return strtoull(text_z, NULL, 10);
}

static uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) == 0 ? (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec : 0;
}

static uint64_t start_time_read(void)
{
	char text[1024];
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	const char *rest;
	uint64_t ticks, boot_ns;

	if (ticks_per_s <= 0 || !read_text("/proc/self/stat", text, sizeof text))
		return 0;
	/* The program's name may hold spaces and brackets, so count from the last one: state is field 0, start field 19. */
	rest = strrchr(text, ')');
	ticks = rest != NULL && rest[1] == ' ' ? field_number(rest + 2, 19) : 0;
	if (ticks == 0)
		return 0;
	boot_ns = clock_wall_ns() - clock_read_ns(CLOCK_BOOTTIME);
	return (boot_ns + ticks * (NS_PER_S / (uint64_t)ticks_per_s)) / NS_PER_S;
}

static uint64_t open_fds_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint64_t n = 0;

	if (dir == NULL)
		return 0;
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
		n += entry->d_name[0] != '.';
	(void)closedir(dir);
	return n > 0 ? n - 1 : 0; /* without the folder's own */
}

void proc_usage_read(struct proc_usage *ret)
{
	char text[256];
	long page_bytes = sysconf(_SC_PAGESIZE);
	struct rlimit limit;

	*ret = (struct proc_usage){0};
	ret->cpu_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	if (page_bytes > 0 && read_text("/proc/self/statm", text, sizeof text))
		ret->resident_bytes = field_number(text, 1) * (uint64_t)page_bytes;
	ret->open_fds = open_fds_count();
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		ret->max_fds = limit.rlim_cur;
	ret->start_time_unix_s = start_time_read();
}
