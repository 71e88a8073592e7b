/* SPDX-License-Identifier: MIT */
/*
 * Level-triggered epoll. The kernel hands out up to 64 ready handles at once, and a callback may remove, free or reuse
 * any of them: so removal looks through the rest of the batch and blanks what it finds there.
 * Timers are one sorted list, searched from both ends in step. They are either short (a store's deadline: near the
 * head) or long and all alike (idle connections: near the tail), so that a heap would gain nothing.
 * Due timers move to a list of their own before the first one fires: one that arms itself again for a time already past
 * then waits for the next turn instead of holding this one up for ever.
 * The wait is taken from the last turn's clock, late by that turn's length at most, and rounded up to the
 * milliseconds of epoll_wait, so that a wake-up is never too early.
 */
#include "io/loop.h"

#include "base/must.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_A_TURN 64

struct loop {
	int epoll_fd;
	ns now;
	struct epoll_event events[EVENTS_A_TURN];
	int event_at, event_n; /* the batch being handed out; what lies before event_at is done */
	struct loop_timer armed, firing; /* heads of rings, never timers themselves */
	struct loop_fd waker;
	void (*wake)(void *arg);
	void *wake_arg;
	atomic_bool stop;
};

static void ring_init(struct loop_timer *head)
{
	head->next = head;
	head->prev = head;
}

static void ring_insert_before(struct loop_timer *place, struct loop_timer *t)
{
	t->next = place;
	t->prev = place->prev;
	place->prev->next = t;
	place->prev = t;
}

static void ring_remove(struct loop_timer *t)
{
	t->prev->next = t->next;
	t->next->prev = t->prev;
}

static void waker_ready(void *arg, uint32_t epoll_events)
{
	struct loop *l = arg;
	uint64_t count;

	(void)epoll_events;
	if (read(l->waker.fd, &count, sizeof count) == (ssize_t)sizeof count && l->wake != NULL)
		l->wake(l->wake_arg);
}

enum err loop_new(struct loop **ret)
{
	struct loop *l = calloc(1, sizeof *l);
	enum err e = ERR_IO;

	if (l == NULL)
		return ERR_MEMORY;
	l->waker = (struct loop_fd){
		.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .ready = waker_ready, .arg = l};
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->waker.fd >= 0 && l->epoll_fd >= 0)
		e = loop_add(l, &l->waker, EPOLLIN);
	if (e != ERR_OK) {
		loop_free(l);
		return e;
	}
	ring_init(&l->armed);
	ring_init(&l->firing);
	l->now = clock_monotonic_ns();
	*ret = l;
	return ERR_OK;
}

void loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	if (l->epoll_fd >= 0)
		(void)close(l->epoll_fd);
	if (l->waker.fd >= 0)
		(void)close(l->waker.fd);
	free(l);
}

static enum err control(struct loop *l, int operation, struct loop_fd *h, uint32_t epoll_events)
{
	struct epoll_event event = {.events = epoll_events, .data.ptr = h};

	if (epoll_ctl(l->epoll_fd, operation, h->fd, &event) == 0)
		return ERR_OK;
	return errno == ENOSPC || errno == ENOMEM ? ERR_FULL : ERR_IO;
}

/* Cuts what the rest of this turn would still tell the handle down to mask. */
static void pending_cut(struct loop *l, const struct loop_fd *h, uint32_t mask)
{
	for (int i = l->event_at; i < l->event_n; i++) {
		if (l->events[i].data.ptr == h)
			l->events[i].events &= mask;
	}
}

enum err loop_add(struct loop *l, struct loop_fd *h, uint32_t epoll_events)
{
	enum err e;

	must(!h->active);
	e = control(l, EPOLL_CTL_ADD, h, epoll_events);
	h->active = e == ERR_OK;
	return e;
}

enum err loop_change(struct loop *l, struct loop_fd *h, uint32_t epoll_events)
{
	enum err e;

	must(h->active);
	e = control(l, EPOLL_CTL_MOD, h, epoll_events);
	if (e == ERR_OK)
		pending_cut(l, h, epoll_events | EPOLLERR | EPOLLHUP);
	return e;
}

void loop_remove(struct loop *l, struct loop_fd *h)
{
	if (!h->active)
		return;
	/* Fails only if the descriptor was closed first, which took it off the list as well. */
	(void)control(l, EPOLL_CTL_DEL, h, 0);
	h->active = false;
	pending_cut(l, h, 0);
}

void loop_timer_set(struct loop *l, struct loop_timer *t, ns due)
{
	struct loop_timer *head = &l->armed, *early, *late;

	loop_timer_stop(l, t);
	early = head->next;
	late = head->prev;
	/* Equal times keep the order in which they were set. */
	while (early != head && early->due <= due && late != head && late->due > due) {
		early = early->next;
		late = late->prev;
	}
	t->due = due;
	t->active = true;
	ring_insert_before(early == head || early->due > due ? early : late->next, t);
}

void loop_timer_stop(struct loop *l, struct loop_timer *t)
{
	(void)l;
	if (!t->active)
		return;
	ring_remove(t);
	t->active = false;
}

ns loop_now(const struct loop *l)
{
	return l->now;
}

void loop_wake(struct loop *l)
{
	int errno_kept = errno; /* a signal handler may run between a call and its caller's look at errno */
	uint64_t one = 1;

	/* Fails only where the counter is full, and then the loop is awake already. */
	if (write(l->waker.fd, &one, sizeof one) < 0)
		errno = errno_kept;
}

void loop_on_wake(struct loop *l, void (*wake)(void *arg), void *arg)
{
	l->wake = wake;
	l->wake_arg = arg;
}

static int wait_ms(const struct loop *l, ns max_wait)
{
	ns wait = max_wait;
	const struct loop_timer *first = l->armed.next;

	if (first != &l->armed) {
		ns left = first->due > l->now ? first->due - l->now : 0;

		wait = left < wait ? left : wait;
	}
	if (wait == UINT64_MAX)
		return -1;
	wait = wait / NS_PER_MS + (wait % NS_PER_MS != 0);
	return wait < INT_MAX ? (int)wait : INT_MAX;
}

static void fire_timers(struct loop *l)
{
	while (l->armed.next != &l->armed && l->armed.next->due <= l->now) {
		struct loop_timer *t = l->armed.next;

		ring_remove(t);
		ring_insert_before(&l->firing, t);
	}
	while (l->firing.next != &l->firing) {
		struct loop_timer *t = l->firing.next;

		loop_timer_stop(l, t);
		t->fire(t->arg);
	}
}

void loop_turn(struct loop *l, ns max_wait)
{
	int n = epoll_wait(l->epoll_fd, l->events, EVENTS_A_TURN, wait_ms(l, max_wait));

	must(n >= 0 || errno == EINTR);
	l->now = clock_monotonic_ns();
	l->event_n = n > 0 ? n : 0;
	l->event_at = 0;
	while (l->event_at < l->event_n) {
		const struct epoll_event *event = &l->events[l->event_at++];
		const struct loop_fd *h = event->data.ptr;

		/* Blanked by pending_cut: the handle may be gone. */
		if (event->events != 0)
			h->ready(h->arg, event->events);
	}
	fire_timers(l);
}

void loop_run(struct loop *l)
{
	while (!atomic_exchange(&l->stop, false))
		loop_turn(l, UINT64_MAX);
}

void loop_stop(struct loop *l)
{
	atomic_store(&l->stop, true);
	loop_wake(l);
}
