/* SPDX-License-Identifier: MIT */
/*
 * loop: one epoll loop a worker thread.
 *
 * Model      File descriptors with a callback, one-shot timers, and a wake-up from other threads. The clock is read once a
 *            turn, after epoll_wait; everything in that turn sees the same loop_now.
 * Ownership  Handles (loop_fd, loop_timer) are the caller's memory and must outlive their registration. The
 *            loop never closes a descriptor it was given.
 * Threads    confined to the thread that runs it, but for loop_wake and loop_stop, which any thread and any signal
 *            handler may call.
 * Blocking   loop_run blocks until loop_stop; loop_turn for at most the given time.
 * Errors     ERR_IO, ERR_FULL from epoll_ctl. A callback may remove any handle, its own included, also one that is
 *            ready in the same turn.
 * Limits     64 events a turn.
 */
#ifndef POSTERN_IO_LOOP_H
#define POSTERN_IO_LOOP_H

#include "base/clock.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;

struct loop_fd {
	int fd;
	void (*ready)(void *arg, uint32_t epoll_events);
	void *arg;
	bool active; /* kept by the loop */
};

struct loop_timer {
	ns due;
	void (*fire)(void *arg);
	void *arg;
	struct loop_timer *next, *prev; /* kept by the loop */
	bool active;
};

MUST_USE enum err loop_new(struct loop **ret);
void loop_free(struct loop *l); /* NULL is fine */

MUST_USE enum err loop_add(struct loop *l, struct loop_fd *h, uint32_t epoll_events);
MUST_USE enum err loop_change(struct loop *l, struct loop_fd *h, uint32_t epoll_events);
void loop_remove(struct loop *l, struct loop_fd *h); /* not active: nothing */

/* (Re)arms a timer; due is on loop_now's clock. Fires once, in a turn whose loop_now >= due. */
void loop_timer_set(struct loop *l, struct loop_timer *t, ns due);
void loop_timer_stop(struct loop *l, struct loop_timer *t);

/* Monotonic; the time of this turn. */
ns loop_now(const struct loop *l);

/* Makes a blocked loop run a turn; wake (may be NULL, set before running) is then called in the loop's thread. */
void loop_wake(struct loop *l);
void loop_on_wake(struct loop *l, void (*wake)(void *arg), void *arg);

/* One turn, waiting for at most max_wait ns. */
void loop_turn(struct loop *l, ns max_wait);
void loop_run(struct loop *l);
void loop_stop(struct loop *l);

#endif
