/* SPDX-License-Identifier: MIT */
/*
 * verdict: allow or deny, why, what to tell the client, what to tell the upstream.
 *
 * Ownership  Slices and pointers lead into the ruleset and the request's arena.
 * Threads    confined.
 */
#ifndef POSTERN_CORE_VERDICT_H
#define POSTERN_CORE_VERDICT_H

#include "core/charge.h"
#include "core/client.h"
#include "core/identity.h"
#include "core/policy.h"
#include "core/reason.h"

struct verdict_limit {
	const struct limit *limit;
	struct taking taking;
	bool shadow;
};

struct verdict {
	enum decision decision;
	enum reason reason;
	enum reason would;     /* reason SHADOW: what it would have been */
	bool has_client;       /* false where the callers gate or the door refused before looking */
	struct client client;
	struct token_result token;
	const struct rule *rule; /* the rule that refused, else the normalised path's; NULL if none was looked for */
	struct verdict_limit limits[CHARGES_MAX];
	size_t n_limits;
	bool has_wait;         /* a wait makes sense: refused by a limit or by a missing store */
	ns wait_ns;            /* until the same request can pass, as far as the limits know; > 0 if has_wait */
	unsigned warnings;     /* bits 1 << enum warning */
	struct str fault_header; /* DOOR_MISCONFIGURED: the header that is missing or doubled */
};

#endif
