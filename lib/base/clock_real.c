/* SPDX-License-Identifier: MIT */
/*
 * The two readers of real time, in a file of their own so that the lint can see who links them: code that
 * decides gets its time as an argument and can be driven through a year of virtual time in a test.
 */
#include "base/clock.h"

#include "base/must.h"

#include <time.h>

static ns read_ns(clockid_t id)
{
	struct timespec t;

	/* Fails only for a clock that does not exist. */
	must(clock_gettime(id, &t) == 0);
	return (ns)t.tv_sec * NS_PER_S + (ns)t.tv_nsec;
}

ns clock_monotonic_ns(void)
{
	ns now = read_ns(CLOCK_MONOTONIC);

	return now != 0 ? now : 1;
}

ns clock_wall_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}
