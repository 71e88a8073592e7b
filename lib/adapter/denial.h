/* SPDX-License-Identifier: MIT */
/*
 * denial: what a refused client is shown by the doors that answer in a gateway's name.
 *
 * Model      {"error": "<reason>", "retry_after": n}, and which header a misconfigured door misses; no rule, no identity, no
 *            client.
 * Threads    Pure.
 * Errors     the arena's overflow mark.
 */
#ifndef POSTERN_ADAPTER_DENIAL_H
#define POSTERN_ADAPTER_DENIAL_H

#include "base/arena.h"
#include "core/verdict.h"

struct str denial_body(const struct verdict *v, struct arena *a);

#endif
