/* SPDX-License-Identifier: MIT */
/*
 * proc: the process: signals, limits, hardening.
 *
 * Threads    confined to the main thread, before workers start.
 */
#ifndef POSTERN_IO_PROC_H
#define POSTERN_IO_PROC_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* First thing in serve: ignores SIGPIPE, SIGUSR1 and SIGUSR2, and routes SIGTERM, SIGINT and SIGHUP to the returned
 * signalfd (non-blocking). As PID 1 a process without this would not see SIGTERM at all. */
MUST_USE enum err proc_signals_open(int *ret_fd);

/* The next pending signal number, or 0. */
int proc_signals_next(int fd);

/* No core dumps, not traceable by same-user processes: tokens pass through our memory. Failure is not fatal. */
void proc_harden(void);

/* Raises the soft limit of open files to the hard one; returns the limit in force. */
size_t proc_raise_open_files(void);

/* For process_* metrics, read from /proc/self only. Zero where it cannot be read. */
struct proc_usage {
	uint64_t cpu_ns, resident_bytes, open_fds, max_fds, start_time_unix_s;
};
void proc_usage_read(struct proc_usage *ret);

#endif
