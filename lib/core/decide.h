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
 *            charged (equal limit and key once) and either's denial or requirement counts. A path in doubt (path.h) that
 *            some server reads as a third rule's is blocked by that rule, unless it lets everything pass or is in shadow
 *            mode. Limits, action and requirement of a rule in shadow mode never refuse; what they would have done is
 *            told as "would", judged in the same order: what a shadow rule would have refused without charging is not
 *            charged for it either, and an exempt identity that it would have refused is told as shadow.
 *            The limits of an identity stand in for those of every rule that counts (action limit, none of its own
 *            included). A limit that both an enforced and a shadow rule name is charged once, as an enforced one.
 * Ownership  Both structs are the caller's; keys lie in the arena. Neither is cleared first, because both are large:
 *            of an array the first n items are valid, and the fields of the client and the token only if has_client.
 * Threads    Pure.
 * Errors     a full arena, or more than 16 charges: reason internal, nothing charged.
 * Limits     the arena needs DECIDE_ARENA_BYTES for keys, and twice the length of the path and that of the host on top
 *            (one of the two is the path normalised, the other first one reading after another and then lower case); with a
 *            trace also one struct rule_step a rule.
 */
#ifndef POSTERN_CORE_DECIDE_H
#define POSTERN_CORE_DECIDE_H

#include "base/arena.h"
#include "core/charge.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

/* All that keys can take, whatever is sent. */
#define DECIDE_ARENA_BYTES (CHARGES_MAX * (POLICY_KEYS_BYTES_MAX + 16))

struct plan {
	bool is_final;           /* no charges; reason below is the verdict's */
	enum reason reason;      /* final reason, or what stands if every charge is taken */
	enum reason would;       /* what a shadow rule would have said so far; REASON_ALLOWED: nothing */
	bool has_client;         /* else the fault of the request ended it: no client, no rule, token absent */
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
	struct client_trace client; /* if the plan has a client */
	struct str path_normalised, path_raw;
	bool has_path;
	const struct rule *third; /* blocks, because it is the rule of ... */
	struct str reading;       /* ... what another server may read; if third is not NULL */
	struct rule_step *rules; /* in the arena; up to and including the last that was looked at for either path */
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
