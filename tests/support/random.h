/* SPDX-License-Identifier: MIT */
/*
 * random: numbers that look random and are the same in every run.
 *
 * Ownership  A struct random is the caller's; set seed to anything.
 * Threads    confined.
 * Source     splitmix64 (Steele, Lea, Flood 2014).
 */
#ifndef POSTERN_TESTS_RANDOM_H
#define POSTERN_TESTS_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t seed;
};

static inline uint64_t random_u64(struct random *r)
{
	uint64_t z = r->seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 to n - 1; n is not 0. */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
	return random_u64(r) % n;
}

#endif
