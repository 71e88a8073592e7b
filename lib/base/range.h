/* SPDX-License-Identifier: MIT */
/*
 * range: address ranges, and sets of them.
 *
 * Model      A range is a base and a prefix length in the 128-bit form. A set is two sorted arrays (IPv4, IPv6) built
 *            once; families never cross: an IPv6 range never matches an IPv4 address, however wide.
 * Ownership  The set's array lies in the arena given at building time.
 * Threads    Pure; a built set is frozen.
 * Errors     range_parse says why not, in words for people.
 * Limits     Refused: host bits set, netmasks, names, ports, zones, padding, /0, leading zeros in the prefix, a mapped
 *            base with a prefix under 96.
 */
#ifndef POSTERN_BASE_RANGE_H
#define POSTERN_BASE_RANGE_H

#include "base/arena.h"
#include "base/ip.h"

struct range {
	struct ip base;
	uint8_t bits; /* in the 128-bit form: IPv4 /8 is 104 */
};

struct range_set {
	const struct range *items; /* IPv4 first, each family sorted by base, then by bits */
	size_t n, n_v4;
};

/* Longest printed range and its NUL. */
#define RANGE_TEXT_BYTES (IP_TEXT_BYTES + 4)

/* Reads "10.0.0.0/8", "2001:db8::/32" or a bare address. On failure *ret_why is a static sentence part such as
 * "host bits are set"; where a corrected form is known, ret_better (may be NULL) is filled and *ret_has_better true. */
bool range_parse(struct range *ret_range, struct str s, const char **ret_why, struct range *ret_better,
	bool *ret_has_better);

bool range_contains(const struct range *r, const struct ip *ip);

/* "10.0.0.0/8"; a full-length range prints as the bare address. Returns its length. */
size_t range_print(const struct range *r, char out[RANGE_TEXT_BYTES]);

/* Sorts a copy of items into the arena. False if the arena is full. */
bool range_set_build(struct range_set *ret_set, struct arena *a, const struct range *items, size_t n);

/* The narrowest range that holds ip, or NULL. */
const struct range *range_set_find(const struct range_set *set, const struct ip *ip);

/* True if any range of a shares an address with any of b. */
bool range_set_overlaps(const struct range_set *a, const struct range_set *b);

#endif
