/* SPDX-License-Identifier: MIT */
/*
 * sketch: how many different ones went by, in 64 bytes.
 *
 * Model      HyperLogLog with 64 registers. Up to about 150 the count comes from how many registers are still empty;
 *            below 30 it is off by a tenth, then by an eighth (standard error). Only hashes go in, and they must be keyed:
 *            who knows the hash can stir the count.
 * Ownership  The caller's; all zeros is the empty sketch.
 * Threads    confined.
 * Source     Flajolet, Fusy, Gandouet, Meunier: HyperLogLog (2007).
 */
#ifndef POSTERN_WATCH_SKETCH_H
#define POSTERN_WATCH_SKETCH_H

#include <stdint.h>

#define SKETCH_REGISTERS 64

struct sketch {
	uint8_t registers[SKETCH_REGISTERS];
};

void sketch_add(struct sketch *s, uint64_t hash);
uint64_t sketch_count(const struct sketch *s);

/* to counts what either has seen. */
void sketch_merge(struct sketch *to, const struct sketch *from);

#endif
