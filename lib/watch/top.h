/* SPDX-License-Identifier: MIT */
/*
 * top: who is busiest and who is refused most, rule by rule.
 *
 * Model      Space-saving sketches over the client's key: anybody with more than 1/TOP_KEYS_MAX of a rule's requests is in the
 *            list, and a count is too high by at most error. Counts are of the current window and the one before it (at
 *            least ten minutes), estimated from a sample where the rule is busy.
 * Ownership  Copies.
 * Threads    shared.
 * Limits     TOP_KEYS_MAX keys a rule and kind, the first WATCH_RULES_MAX rules.
 * Source     Metwally, Agrawal, El Abbadi: Efficient Computation of Frequent and Top-k Elements in Data Streams (2005).
 */
#ifndef POSTERN_WATCH_TOP_H
#define POSTERN_WATCH_TOP_H

#include "base/clock.h"
#include "core/client.h"
#include "core/policy.h"

#include <stddef.h>
#include <stdint.h>

#define TOP_KEYS_MAX 32

enum top_kind { TOP_BUSIEST, TOP_REFUSED };

struct top_row {
	const struct rule *rule;
	uint8_t key[CLIENT_KEY_BYTES]; /* for client_key_text */
	size_t key_len;
	uint64_t requests; /* or refusals, by kind */
	uint64_t error; /* at most so much too high */
};

struct watch;

/* One rule's list, the highest first; rule_index as in the ruleset. Returns how many of at most max were written. */
size_t top_read(
	struct watch *w, size_t rule_index, enum top_kind kind, ns now, struct top_row *ret, size_t max);

/* All rules' lists in one, the highest first. */
size_t top_read_all(struct watch *w, enum top_kind kind, ns now, struct top_row *ret, size_t max);

#endif
