/* SPDX-License-Identifier: MIT */
/*
 * explain_parts: what the two forms of an explanation share.
 *
 * Threads    Pure.
 */
#ifndef POSTERN_ADAPTER_EXPLAIN_PARTS_H
#define POSTERN_ADAPTER_EXPLAIN_PARTS_H

#include "base/ip.h"
#include "base/range.h"
#include "base/text.h"
#include "core/policy.h"

/* Raw text is hostile: no more of it than this is shown. */
#define EXPLAIN_RAW_BYTES 64

void explain_write_ip(struct text *t, const struct ip *ip);
void explain_write_range(struct text *t, const struct range *range);

/* The key of the client's bucket, for people. */
void explain_write_key(struct text *t, const struct ruleset *rules, const struct client *c);

/* Which part of a rule did not match, or "matched". */
const char *explain_miss_z(enum rule_miss miss);

#endif
