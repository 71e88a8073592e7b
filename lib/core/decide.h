/* SPDX-License-Identifier: MIT */
/*
 * decide: a decision is two pure steps around one store call.
 *
 * Model      plan looks at the request and gives either a final verdict (no charges) or charges for the store to take;
 *            conclude turns what the store said into the verdict. Order of judgement: callers gate and door; rule;
 *            blocked; a requirement that a proven exempt identity of another name does not meet (refused, nothing
 *            charged); exempt; cost above the burst; charges (refused: table_pressure only if every refusing bucket is
 *            an overflow one, and the wait is the longest of them); a requirement not met (refused, charged); allowed.
 *            Rules are found on the normalised and on the raw path; where they differ the union of both rules' limits is
 *            charged (equal limit and key once) and either's denial or requirement counts. Limits, action and
 *            requirement of a rule in shadow mode never refuse; what they would have done is told as "would".
 * Ownership  Both structs are the caller's; keys lie in the arena.
 * Threads    Pure.
 * Errors     a full arena, or more than 16 charges: reason internal, nothing charged.
 */
#ifndef POSTERN_CORE_DECIDE_H
#define POSTERN_CORE_DECIDE_H

#include "base/arena.h"
#include "core/charge.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

struct plan {
	bool is_final;           /* no charges; reason below is the verdict's */
	enum reason reason;      /* final reason, or what stands if every charge is taken */
	enum reason would;       /* what a shadow rule would have said so far; REASON_ALLOWED: nothing */
	bool has_client;
	struct client client;
	struct token_result token;
	const struct rule *rule; /* the normalised path's */
	const struct rule *refusing_rule; /* whose denial or requirement the reason is; NULL: none */
	struct charge charges[CHARGES_MAX];
	const struct limit *limits[CHARGES_MAX];     /* parallel to charges */
	const struct rule *charge_rules[CHARGES_MAX];
	bool fallbacks[CHARGES_MAX];                 /* a key part was absent and replaced by the client */
	size_t n_charges;
};

/* One line of "rule by rule", for explain. */
struct rule_step {
	const struct rule *rule;
	enum rule_miss miss;     /* on the normalised path */
	enum rule_miss miss_raw; /* on the raw path */
};

struct trace {
	struct client_trace client;
	struct str path_normalised, path_raw;
	bool has_path;
	struct rule_step *rules; /* in the arena; up to and including the last one that was looked at */
	size_t n_rules;
};

/* Everything explain shows about one request. */
struct explanation {
	struct trace trace;
	struct plan plan;
	struct verdict verdict;
};

/* trace may be NULL (the decision path). */
void decide_plan(const struct ruleset *rules, const struct request *req, struct arena *a, struct trace *trace,
	struct plan *ret);

/* takings: one for each charge, in order; not read if the plan is final. */
void decide_conclude(const struct ruleset *rules, const struct request *req, const struct plan *plan,
	const struct taking *takings, struct verdict *ret);

#endif
