/* SPDX-License-Identifier: MIT */
/*
 * clock: time inside postern.
 *
 * Model      Time is an argument: a worker reads the clock once a turn and hands it on. Only serve's loop and the
 *            command line call the two readers below.
 * Units      nanoseconds, unsigned 64 bit. Monotonic time starts at boot and stays below 2^62.
 * Threads    shared (the readers have no state).
 */
#ifndef POSTERN_BASE_CLOCK_H
#define POSTERN_BASE_CLOCK_H

#include <stdint.h>

typedef uint64_t ns;

#define NS_PER_MS ((ns)1000000)
#define NS_PER_S ((ns)1000000000)

/* CLOCK_MONOTONIC, never 0. For everything that decides. */
ns clock_monotonic_ns(void);

/* CLOCK_REALTIME since 1970. For logs and metrics only. */
ns clock_wall_ns(void);

#endif
