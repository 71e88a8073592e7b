/* SPDX-License-Identifier: MIT */
/*
 * answer: the members of a /check answer, shared by check.c and explain.c.
 *
 * Ownership  a is workspace for header values.
 * Threads    Pure.
 * Errors     the overflow marks of text and arena.
 * Limits     ANSWER_BYTES hold any answer: 16 limits, every header, an id of 256 bytes.
 */
#ifndef POSTERN_ADAPTER_ANSWER_H
#define POSTERN_ADAPTER_ANSWER_H

#include "base/arena.h"
#include "base/text.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

#define ANSWER_BYTES ((size_t)12 * 1024)

/* "decision": ..., "id": ...: without the outer braces, so that explain can add a member of its own. */
void answer_members(struct text *t, const struct ruleset *rules, const struct request *req,
	const struct verdict *v, struct arena *a);

#endif
