/* SPDX-License-Identifier: MIT */
/*
 * Integers only: the logarithm of linear counting is a table, since there are but 65 values of it, and the harmonic mean
 * is a sum of shifted ones. What is compared with these counts are small thresholds far from them, so 64 registers do.
 */
#include "watch/sketch.h"

#define INDEX_BITS 6

/* alpha * m * m for m = 64: 0.709 * 4096. */
#define ALPHA_M_M 2904u

/* 64 * ln(64 / empty), by the number of empty registers. */
static const uint16_t linear[SKETCH_REGISTERS + 1] = {0, 266, 222, 196, 177, 163, 151, 142, 133, 126, 119,
	113, 107, 102, 97, 93, 89, 85, 81, 78, 74, 71, 68, 65, 63, 60, 58, 55, 53, 51, 48, 46, 44, 42, 40, 39,
	37, 35, 33, 32, 30, 28, 27, 25, 24, 23, 21, 20, 18, 17, 16, 15, 13, 12, 11, 10, 9, 7, 6, 5, 4, 3, 2,
	1, 0};

void sketch_add(struct sketch *s, uint64_t hash)
{
	uint8_t *r = &s->registers[hash % SKETCH_REGISTERS];
	/* The bit on top ends the count of zeros. */
	uint8_t rank = (uint8_t)(__builtin_ctzll(hash >> INDEX_BITS | 1ull << (64 - INDEX_BITS)) + 1);

	if (rank > *r)
		*r = rank;
}

uint64_t sketch_count(const struct sketch *s)
{
	uint64_t sum = 0; /* in units of 2^-32 */
	unsigned empty = 0;

	for (unsigned i = 0; i < SKETCH_REGISTERS; i++) {
		sum += (1ull << 32) >> (s->registers[i] < 32 ? s->registers[i] : 32);
		empty += s->registers[i] == 0;
	}
	if (empty > 5)
		return linear[empty];
	return ((uint64_t)ALPHA_M_M << 32) / sum;
}

void sketch_merge(struct sketch *to, const struct sketch *from)
{
	for (unsigned i = 0; i < SKETCH_REGISTERS; i++) {
		if (from->registers[i] > to->registers[i])
			to->registers[i] = from->registers[i];
	}
}
