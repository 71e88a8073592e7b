/* SPDX-License-Identifier: MIT */
/*
 * The order of judgement is the order of the statements here. Two rules at most have a say: the one the normalised path
 * falls under and, where it is another, the one of the path as it was sent; enforced ones are looked at before shadow
 * ones, so that a limit both name is an enforced charge. A third one, under which the path falls only as another server
 * reads it, refuses: what is served cannot be known, and no honest client writes such paths.
 * Everything that refuses without charging is decided before the first key is built; everything that refuses after charging
 * is left to conclude.
 * struct plan and struct verdict are large: only what is used is written, since clearing them would cost as much as the
 * decision.
 */
#include "core/decide.h"

#include "core/path.h"

struct rule_pair {
	const struct rule *normalised;
	const struct rule *rules[2]; /* both: enforced first; among equals the normalised path's first */
	size_t n;
	const struct rule *third; /* neither of them, but the rule of what another server may read; or NULL */
	struct str reading;       /* that */
};

/* The verdict is known: nothing is charged. */
static void plan_finish(struct plan *plan, enum reason reason, const struct rule *refusing)
{
	plan->is_final = true;
	plan->n_charges = 0;
	plan->refusing_rule = refusing;
	plan->reason = reason;
	if (reason_decision(reason) == DECISION_ALLOW && plan->would != REASON_ALLOWED)
		plan->reason = REASON_SHADOW;
}

/* The first thing that would have refused is the one to tell. */
static void note_would(struct plan *plan, enum reason reason)
{
	if (plan->would == REASON_ALLOWED)
		plan->would = reason;
}

static bool same_bytes(struct str a, struct str b)
{
	return a.len == b.len && (a.ptr == b.ptr || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static bool demands_anything(const struct rule *r)
{
	return !r->shadow && (r->action == ACTION_DENY || r->require != REQUIRE_NOTHING || r->n_limits > 0);
}

/* What it finds stays in the arena. */
static void find_third(
	const struct ruleset *rules, const struct policy_view *view, struct arena *a, struct rule_pair *ret)
{
	char *room = arena_alloc(a, view->path_raw.len);
	struct policy_view other = *view;

	for (unsigned n = 0; room != NULL && path_reading(view->path_raw, n, room, &other.path_raw); n++) {
		const struct rule *r = policy_find(rules, &other, true);

		if (r == ret->rules[0] || r == ret->rules[1] || !demands_anything(r))
			continue;
		ret->third = r;
		ret->reading = other.path_raw;
		return;
	}
	if (room != NULL)
		arena_release(a, room);
}

static void find_rules(const struct ruleset *rules, const struct policy_view *view, struct arena *a,
	struct rule_pair *ret)
{
	const struct rule *x = policy_find(rules, view, false), *y = x;

	if (!same_bytes(view->path_normalised, view->path_raw))
		y = policy_find(rules, view, true);
	ret->normalised = x;
	ret->n = x == y ? 1 : 2;
	ret->rules[0] = x->shadow && !y->shadow ? y : x;
	ret->rules[1] = ret->rules[0] == x ? y : x;
	ret->third = NULL;
	if (view->path_doubtful)
		find_third(rules, view, a, ret);
}

static bool plan_blocked(struct plan *plan, const struct rule_pair *pair)
{
	for (size_t i = 0; i < pair->n; i++) {
		const struct rule *r = pair->rules[i];

		if (r->action != ACTION_DENY)
			continue;
		if (!r->shadow) {
			plan_finish(plan, REASON_BLOCKED, r);
			return true;
		}
		note_would(plan, REASON_BLOCKED);
	}
	if (pair->third != NULL)
		plan_finish(plan, REASON_BLOCKED, pair->third);
	return pair->third != NULL;
}

/* The enforced rule whose requirement is not met, or NULL. Shadow rules only leave a note. */
static const struct rule *find_unmet(
	const struct ruleset *rules, struct plan *plan, const struct rule_pair *pair)
{
	for (size_t i = 0; i < pair->n; i++) {
		const struct rule *r = pair->rules[i];

		if (policy_requirement_met(rules, r, &plan->token))
			continue;
		if (!r->shadow)
			return r;
		note_would(plan, REASON_IDENTITY_REQUIRED);
	}
	return NULL;
}

static bool has_limit(const struct plan *plan, const struct limit *limit)
{
	for (size_t i = 0; i < plan->n_charges; i++) {
		if (plan->limits[i] == limit)
			return true;
	}
	return false;
}

/* Equal limits of one request have equal keys, so the limit alone tells whether a charge is there already. */
static bool add_charge(const struct ruleset *rules, const struct policy_view *view, struct arena *a,
	const struct rule *rule, const struct limit *limit, struct plan *plan)
{
	size_t n = plan->n_charges;
	struct charge *c = &plan->charges[n];
	struct policy_keys keys;

	if (n == CHARGES_MAX || !policy_keys_make(&keys, rules, limit, view, a))
		return false;
	c->rule = limit->bucket;
	c->cost = view->req->cost;
	c->peek = view->req->peek;
	c->shadow = rule->shadow;
	c->key = keys.bucket;
	c->wide = keys.wide;
	plan->fallbacks[n] = keys.fallback;
	plan->limits[n] = limit;
	plan->charge_rules[n] = rule;
	plan->n_charges = n + 1;
	return true;
}

/* The charges of one rule, or an identity's own in their place (an exempt one never comes here). REASON_ALLOWED: they are
 * in the plan. */
static enum reason add_charges(const struct ruleset *rules, const struct policy_view *view, struct arena *a,
	const struct rule *rule, struct plan *plan)
{
	const struct identity *id = plan->token.identity;
	const uint16_t *limits = id != NULL ? id->limits : rule->limits;
	size_t n = id != NULL ? id->n_limits : rule->n_limits;

	for (size_t i = 0; i < n; i++) {
		const struct limit *limit = &rules->limits[limits[i]];

		if (has_limit(plan, limit))
			continue;
		if (view->req->cost > limit->bucket.burst)
			return REASON_COST_TOO_LARGE;
		if (!add_charge(rules, view, a, rule, limit, plan))
			return REASON_INTERNAL;
	}
	return REASON_ALLOWED;
}

/* False if the plan is final now. */
static bool plan_charges(const struct ruleset *rules, const struct policy_view *view, struct arena *a,
	const struct rule_pair *pair, struct plan *plan)
{
	for (size_t i = 0; i < pair->n; i++) {
		const struct rule *r = pair->rules[i];
		size_t before = plan->n_charges;
		enum reason reason;

		if (r->action != ACTION_LIMIT || (r->shadow && plan->would != REASON_ALLOWED))
			continue;
		reason = add_charges(rules, view, a, r, plan);
		if (reason == REASON_ALLOWED)
			continue;
		if (!r->shadow || reason == REASON_INTERNAL) {
			plan_finish(plan, reason, reason == REASON_INTERNAL ? NULL : r);
			return false;
		}
		/* The shadow group is taken whole or not at all, and this one never can be. */
		while (before > 0 && plan->charges[before - 1].shadow)
			before--;
		plan->n_charges = before;
		note_would(plan, reason);
	}
	return true;
}

static void trace_rules(const struct ruleset *rules, const struct policy_view *view,
	const struct rule_pair *pair, struct arena *a, struct trace *ret)
{
	const struct rule *last = pair->rules[0] > pair->rules[1] ? pair->rules[0] : pair->rules[1];
	size_t n;

	if (pair->third != NULL && pair->third > last)
		last = pair->third;
	n = (size_t)(last - rules->rules) + 1;
	ret->third = pair->third;
	if (pair->third != NULL)
		ret->reading = pair->reading;
	ret->has_path = view->req->path.said;
	if (ret->has_path) {
		ret->path_normalised = view->path_normalised;
		ret->path_raw = view->path_raw;
	}
	ret->rules = arena_array(a, n, sizeof(*ret->rules));
	ret->n_rules = ret->rules != NULL ? n : 0;
	for (size_t i = 0; i < ret->n_rules; i++) {
		ret->rules[i] = (struct rule_step){.rule = &rules->rules[i],
			.miss = policy_rule_check(&rules->rules[i], view, false),
			.miss_raw = policy_rule_check(&rules->rules[i], view, true)};
	}
}

/* Everything behind the fault of the request and the search for the rules. */
static void plan_judge(const struct ruleset *rules, const struct policy_view *view, struct arena *a,
	const struct rule_pair *pair, struct plan *plan)
{
	const struct identity *id = plan->token.identity;
	const struct rule *unmet;

	if (plan_blocked(plan, pair))
		return;
	if (id != NULL && id->n_limits == 0) {
		unmet = find_unmet(rules, plan, pair);
		plan_finish(plan, unmet != NULL ? REASON_IDENTITY_REQUIRED : REASON_EXEMPT, unmet);
		return;
	}
	if (!plan_charges(rules, view, a, pair, plan))
		return;
	unmet = find_unmet(rules, plan, pair);
	plan->reason = unmet != NULL ? REASON_IDENTITY_REQUIRED : REASON_ALLOWED;
	plan->refusing_rule = unmet;
	if (plan->n_charges == 0)
		plan_finish(plan, unmet != NULL ? REASON_IDENTITY_REQUIRED : REASON_RULE_ALLOW, unmet);
}

void decide_plan(const struct ruleset *rules, const struct request *req, struct arena *a, struct trace *trace,
	struct plan *ret)
{
	struct policy_view view;
	struct rule_pair pair;

	ret->is_final = false;
	ret->would = REASON_ALLOWED;
	ret->has_client = false;
	ret->rule = NULL;
	ret->refusing_rule = NULL;
	ret->n_charges = 0;
	if (trace != NULL) {
		trace->has_path = false;
		trace->third = NULL;
		trace->rules = NULL;
		trace->n_rules = 0;
	}
	if (req->fault != REASON_ALLOWED) {
		ret->token = (struct token_result){.state = TOKEN_STATE_ABSENT};
		plan_finish(ret, req->fault, NULL);
		return;
	}
	client_resolve(&rules->client, req, trace != NULL ? &trace->client : NULL, &ret->client);
	identity_find(&rules->identities, req, &ret->token);
	ret->has_client = true;
	policy_view_make(&view, trace != NULL ? NULL : rules, req, &ret->client, &ret->token, a);
	find_rules(rules, &view, a, &pair);
	if (a->overflow) {
		plan_finish(ret, REASON_INTERNAL, NULL);
		return;
	}
	ret->rule = pair.normalised;
	if (trace != NULL)
		trace_rules(rules, &view, &pair, a, trace);
	/* A bucket a spelling would undo what the rule says about case. */
	if (pair.rules[0]->ignore_case || pair.rules[1]->ignore_case)
		view.path_normalised = path_fold_case(view.path_normalised, a);
	plan_judge(rules, &view, a, &pair, ret);
}

/* What one group says. REASON_ALLOWED: it holds the cost; else the first charge that refused, and the longest wait (never
 * 0: a wait that is told must be one). */
struct refusal {
	enum reason reason;
	size_t first;
	ns wait_ns;
};

static struct refusal group_refusal(const struct plan *plan, const struct taking *takings, bool shadow)
{
	struct refusal r = {.reason = REASON_ALLOWED, .wait_ns = 1};

	for (size_t i = plan->n_charges; i-- > 0;) {
		if (plan->charges[i].shadow != shadow || !takings[i].refused)
			continue;
		if (r.reason != REASON_RATE_LIMITED)
			r.reason = takings[i].overflow ? REASON_TABLE_PRESSURE : REASON_RATE_LIMITED;
		if (takings[i].wait_ns > r.wait_ns)
			r.wait_ns = takings[i].wait_ns;
		r.first = i;
	}
	return r;
}

static void conclude_charges(const struct plan *plan, const struct taking *takings, struct verdict *ret)
{
	struct refusal refusal = group_refusal(plan, takings, false);
	enum reason would = plan->would;

	ret->n_limits = plan->n_charges;
	for (size_t i = 0; i < plan->n_charges; i++) {
		ret->limits[i].limit = plan->limits[i];
		ret->limits[i].taking = takings[i];
		ret->limits[i].shadow = plan->charges[i].shadow;
	}
	if (refusal.reason != REASON_ALLOWED) {
		ret->reason = refusal.reason;
		ret->rule = plan->charge_rules[refusal.first];
		ret->has_wait = true;
		ret->wait_ns = refusal.wait_ns;
		return;
	}
	if (plan->reason != REASON_ALLOWED)
		return;
	/* Enforced charges stand in front, so the last one tells whether there is a shadow group. */
	if (plan->charges[plan->n_charges - 1].shadow)
		refusal = group_refusal(plan, takings, true);
	/* A requirement is looked at behind the charges, so an empty limit of a shadow rule comes first. */
	if (refusal.reason != REASON_ALLOWED &&
		(would == REASON_ALLOWED || would == REASON_IDENTITY_REQUIRED))
		would = refusal.reason;
	if (would != REASON_ALLOWED) {
		ret->reason = REASON_SHADOW;
		ret->would = would;
	}
}

static unsigned warnings_of(const struct client *c)
{
	unsigned bits = 0;

	if (c->forwarding_present && !c->header_read)
		bits |= 1u << WARNING_FORWARDED_HEADER_IGNORED;
	if (!c->decided)
		bits |= 1u << WARNING_CLIENT_UNDECIDED;
	return bits;
}

void decide_conclude(const struct ruleset *rules, const struct request *req, const struct plan *plan,
	const struct taking *takings, struct verdict *ret)
{
	(void)rules;
	ret->reason = plan->reason;
	ret->would = REASON_ALLOWED;
	ret->has_client = plan->has_client;
	if (plan->has_client)
		ret->client = plan->client;
	ret->token = plan->token;
	ret->rule = plan->refusing_rule != NULL ? plan->refusing_rule : plan->rule;
	ret->n_limits = 0;
	ret->has_wait = false;
	ret->wait_ns = 0;
	ret->warnings = plan->has_client ? warnings_of(&plan->client) : 0;
	ret->fault_header = req->fault_header;
	if (!plan->is_final)
		conclude_charges(plan, takings, ret);
	else if (plan->reason == REASON_SHADOW)
		ret->would = plan->would;
	ret->decision = reason_decision(ret->reason);
}
