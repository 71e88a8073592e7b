/* SPDX-License-Identifier: MIT */
/*
 * The order of judgement, row by row: a ruleset by hand, a request, what the store is made to say, and what must come
 * out. plan and verdict are filled with junk first, since neither is cleared by the code under test.
 */
#include "core/decide.h"

#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define S(literal)                                                                                           \
	{                                                                                                    \
		literal, sizeof(literal) - 1                                                                 \
	}

enum { GENERAL, LOGIN, AGENT, TINY, N_LIMITS };

static const struct limit_key_part by_client[] = {{.part = KEY_CLIENT}},
				   by_identity[] = {{.part = KEY_IDENTITY}};

#define LIMIT(title, size, parts)                                                                            \
	{                                                                                                    \
		.name = S(title), .bucket = {NS_PER_S, size}, .window_s = size, .key = parts, .n_key = 1,    \
		.headers = true                                                                              \
	}

static const struct limit limits[N_LIMITS] = {
	[GENERAL] = LIMIT("general", 300, by_client),
	[LOGIN] = LIMIT("login", 10, by_client),
	[AGENT] = LIMIT("agent", 1000, by_identity),
	[TINY] = LIMIT("tiny", 2, by_client),
};

/* How long each limit refuses in these tests. */
static const ns waits_ns[N_LIMITS] = {NS_PER_S, 6 * NS_PER_S, 2 * NS_PER_S, 3 * NS_PER_S};

enum { EDGE, OPS, SLOW, N_IDENTITIES };

static const uint16_t own_limits[] = {AGENT}, only_edge[] = {EDGE};
static const struct identity identities[N_IDENTITIES] = {
	[EDGE] = {.name = S("edge")},
	[OPS] = {.name = S("ops")},
	[SLOW] = {.name = S("slow"), .limits = own_limits, .n_limits = 1},
};
static const char *const token_texts_z[N_IDENTITIES] = {
	"token-of-edge-012", "token-of-ops-0123", "token-of-slow-012"};
static struct identity_token tokens[N_IDENTITIES];
static const struct str token_headers[] = {S("X-Internal-Token"), S("Authorization")};

static const uint16_t general[] = {GENERAL}, login[] = {LOGIN}, general_login[] = {GENERAL, LOGIN},
		      login_general[] = {LOGIN, GENERAL}, general_tiny[] = {GENERAL, TINY},
		      tiny_login[] = {TINY, LOGIN};

#define PATH(title)                                                                                          \
	.name = S(title),                                                                                    \
	.match = {.paths = (const struct path_pattern[]){{S("/" title "/"), true}}, .n_paths = 1}
#define LIMITS(list) .limits = list, .n_limits = COUNT(list)
#define EDGE_ONLY .require = REQUIRE_LISTED, .required = only_edge, .n_required = 1

static const struct rule rule_list[] = {
	{PATH("blocked"), .action = ACTION_DENY},
	{PATH("open"), .action = ACTION_ALLOW},
	{PATH("bare")},
	{PATH("plain"), LIMITS(general)},
	{PATH("login"), LIMITS(login)},
	{PATH("two"), LIMITS(general_login)},
	{PATH("owt"), LIMITS(login_general)},
	{PATH("tiny"), LIMITS(general_tiny)},
	{PATH("any"), .require = REQUIRE_ANY, LIMITS(general)},
	{PATH("any-bare"), .require = REQUIRE_ANY},
	{PATH("edge"), EDGE_ONLY, LIMITS(general)},
	{PATH("s-blocked"), .action = ACTION_DENY, .shadow = true},
	{PATH("s-open"), .action = ACTION_ALLOW, .shadow = true},
	{PATH("s-two"), LIMITS(general_login), .shadow = true},
	{PATH("s-tiny"), LIMITS(tiny_login), .shadow = true},
	{PATH("s-any"), .require = REQUIRE_ANY, LIMITS(general), .shadow = true},
	{PATH("s-edge"), EDGE_ONLY, LIMITS(login), .shadow = true},
	{PATH("s-edge-bare"), EDGE_ONLY, .shadow = true},
	{.name = S("rest"), LIMITS(general)},
};

static struct ruleset rules;
static _Alignas(16) char block[DECIDE_ARENA_BYTES + 4096];
static struct arena arena;

static int setup_group(void **state)
{
	(void)state;
	if (digest_init() != ERR_OK)
		return -1;
	for (uint16_t i = 0; i < N_IDENTITIES; i++) {
		digest_sha256(&tokens[i].digest, str_from_z(token_texts_z[i]));
		tokens[i].identity = i;
	}
	rules = (struct ruleset){
		.client = {.strategy = STRATEGY_PEER, .ipv6_prefix = 64, .network_v4 = 24, .network_v6 = 48},
		.identities = {identities, N_IDENTITIES, tokens, N_IDENTITIES, token_headers,
			COUNT(token_headers)},
		.limits = limits,
		.n_limits = N_LIMITS,
		.rules = rule_list,
		.n_rules = COUNT(rule_list),
	};
	return 0;
}

/* ------------------------------------------------------------------------------------------------ the harness */

#define NO_TOKEN (-1)
#define FORGED (-2)

struct row {
	const char *title_z, *path_z;
	int token;
	uint32_t cost;
	const char *refusing_z; /* limits that refuse, "!" behind one: in an overflow bucket */
	const char *charges_z; /* what must be charged, "~" before a shadow charge; NULL: the plan is final */
	enum reason reason, would;
	const char *rule_z;
	unsigned wait_s;
};

#define OK REASON_ALLOWED

static const struct row rows[] = {
	/* a third rule, that of what another server reads */
	{"third: blocked", "/%65dge/;/../x", NO_TOKEN, 1, "", NULL, REASON_BLOCKED, OK, "edge", 0},
	{"third: whoever asks", "/%65dge/;/../x", EDGE, 1, "", NULL, REASON_BLOCKED, OK, "edge", 0},
	{"third: with limits only", "/%74wo\\..\\two\\x", SLOW, 1, "", NULL, REASON_BLOCKED, OK, "two", 0},
	{"third: of two others", "/plain/../login/;/../../tiny//../x", NO_TOKEN, 1, "", NULL, REASON_BLOCKED, OK,
		"tiny", 0},
	{"third: shadow", "/%73-blocked/;/../x", NO_TOKEN, 1, "", "general", OK, OK, "rest", 0},
	{"third: lets pass", "/%6fpen/;/../x", NO_TOKEN, 1, "", "general", OK, OK, "rest", 0},
	{"third: says nothing", "/%62are/;/../x", NO_TOKEN, 1, "", "general", OK, OK, "rest", 0},
	{"third: behind one that denies", "/blocked/../%65dge/;/../x", EDGE, 1, "", NULL, REASON_BLOCKED, OK,
		"blocked", 0},
	{"third: there is none", "/edge/;/../x", EDGE, 1, "", NULL, REASON_EXEMPT, OK, "rest", 0},
	{"third: what honest clients send", "/two/a/../b", NO_TOKEN, 1, "", "general,login", OK, OK, "two", 0},
	/* charges and refusals */
	{"one limit", "/plain/", NO_TOKEN, 1, "", "general", REASON_ALLOWED, OK, "plain", 0},
	{"the rest", "/", NO_TOKEN, 1, "", "general", REASON_ALLOWED, OK, "rest", 0},
	{"no path", NULL, NO_TOKEN, 1, "", "general", REASON_ALLOWED, OK, "rest", 0},
	{"one limit, empty", "/plain/", NO_TOKEN, 1, "general", "general", REASON_RATE_LIMITED, OK, "plain",
		1},
	{"two limits", "/two/", NO_TOKEN, 1, "", "general,login", REASON_ALLOWED, OK, "two", 0},
	{"second empty", "/two/", NO_TOKEN, 1, "login", "general,login", REASON_RATE_LIMITED, OK, "two", 6},
	{"both empty: the longest wait", "/two/", NO_TOKEN, 1, "general,login", "general,login",
		REASON_RATE_LIMITED, OK, "two", 6},
	{"both empty, the other order", "/owt/", NO_TOKEN, 1, "general,login", "login,general",
		REASON_RATE_LIMITED, OK, "owt", 6},
	{"overflow bucket", "/two/", NO_TOKEN, 1, "login!", "general,login", REASON_TABLE_PRESSURE, OK, "two",
		6},
	{"both in overflow", "/two/", NO_TOKEN, 1, "login!,general!", "general,login", REASON_TABLE_PRESSURE,
		OK, "two", 6},
	{"overflow and own", "/two/", NO_TOKEN, 1, "login!,general", "general,login", REASON_RATE_LIMITED, OK,
		"two", 6},
	{"own and overflow", "/owt/", NO_TOKEN, 1, "general!,login", "login,general", REASON_RATE_LIMITED, OK,
		"owt", 6},
	{"overflow in front, own behind", "/owt/", NO_TOKEN, 1, "login!,general", "login,general",
		REASON_RATE_LIMITED, OK, "owt", 6},
	/* actions */
	{"blocked", "/blocked/", NO_TOKEN, 1, "", NULL, REASON_BLOCKED, OK, "blocked", 0},
	{"blocked before exempt", "/blocked/", EDGE, 1, "", NULL, REASON_BLOCKED, OK, "blocked", 0},
	{"blocked before own limits", "/blocked/", SLOW, 1, "", NULL, REASON_BLOCKED, OK, "blocked", 0},
	{"blocked before cost", "/blocked/", NO_TOKEN, 1000000, "", NULL, REASON_BLOCKED, OK, "blocked", 0},
	{"open", "/open/", NO_TOKEN, 1, "", NULL, REASON_RULE_ALLOW, OK, "open", 0},
	{"open, own limits do not hold", "/open/", SLOW, 1, "", NULL, REASON_RULE_ALLOW, OK, "open", 0},
	{"open, any cost", "/open/", NO_TOKEN, 1000000, "", NULL, REASON_RULE_ALLOW, OK, "open", 0},
	{"open, exempt", "/open/", EDGE, 1, "", NULL, REASON_EXEMPT, OK, "open", 0},
	{"no limits", "/bare/", NO_TOKEN, 1, "", NULL, REASON_RULE_ALLOW, OK, "bare", 0},
	/* identities */
	{"exempt", "/two/", EDGE, 1, "", NULL, REASON_EXEMPT, OK, "two", 0},
	{"exempt before cost", "/tiny/", EDGE, 1000000, "", NULL, REASON_EXEMPT, OK, "tiny", 0},
	{"own limits replace", "/two/", SLOW, 1, "", "agent", REASON_ALLOWED, OK, "two", 0},
	{"own limit empty", "/two/", SLOW, 1, "agent", "agent", REASON_RATE_LIMITED, OK, "two", 2},
	{"own limits on a rule without", "/bare/", SLOW, 1, "", "agent", REASON_ALLOWED, OK, "bare", 0},
	{"forged is a stranger", "/two/", FORGED, 1, "", "general,login", REASON_ALLOWED, OK, "two", 0},
	{"forged is limited", "/two/", FORGED, 1, "login", "general,login", REASON_RATE_LIMITED, OK, "two",
		6},
	/* cost */
	{"cost fits", "/tiny/", NO_TOKEN, 2, "", "general,tiny", REASON_ALLOWED, OK, "tiny", 0},
	{"cost above one burst", "/tiny/", NO_TOKEN, 3, "", NULL, REASON_COST_TOO_LARGE, OK, "tiny", 0},
	{"cost above an own burst", "/plain/", SLOW, 1001, "", NULL, REASON_COST_TOO_LARGE, OK, "plain", 0},
	{"cost within an own burst", "/tiny/", SLOW, 1000, "", "agent", REASON_ALLOWED, OK, "tiny", 0},
	/* requirements */
	{"met by an exempt one", "/any/", OPS, 1, "", NULL, REASON_EXEMPT, OK, "any", 0},
	{"met by one with limits", "/any/", SLOW, 1, "", "agent", REASON_ALLOWED, OK, "any", 0},
	{"not met: charged", "/any/", NO_TOKEN, 1, "", "general", REASON_IDENTITY_REQUIRED, OK, "any", 0},
	{"forged: charged", "/any/", FORGED, 1, "", "general", REASON_IDENTITY_REQUIRED, OK, "any", 0},
	{"forged until empty", "/any/", FORGED, 1, "general", "general", REASON_RATE_LIMITED, OK, "any", 1},
	{"not met, nothing to charge", "/any-bare/", NO_TOKEN, 1, "", NULL, REASON_IDENTITY_REQUIRED, OK,
		"any-bare", 0},
	{"met, nothing to charge", "/any-bare/", OPS, 1, "", NULL, REASON_EXEMPT, OK, "any-bare", 0},
	{"met, own limits", "/any-bare/", SLOW, 1, "", "agent", REASON_ALLOWED, OK, "any-bare", 0},
	{"cost before requirement", "/any/", NO_TOKEN, 301, "", NULL, REASON_COST_TOO_LARGE, OK, "any", 0},
	{"listed", "/edge/", EDGE, 1, "", NULL, REASON_EXEMPT, OK, "edge", 0},
	{"another exempt one: not charged", "/edge/", OPS, 1, "", NULL, REASON_IDENTITY_REQUIRED, OK, "edge",
		0},
	{"another exempt one, before cost", "/edge/", OPS, 1000, "", NULL, REASON_IDENTITY_REQUIRED, OK,
		"edge", 0},
	{"another one with limits: charged", "/edge/", SLOW, 1, "", "agent", REASON_IDENTITY_REQUIRED, OK,
		"edge", 0},
	{"another one with limits, empty", "/edge/", SLOW, 1, "agent", "agent", REASON_RATE_LIMITED, OK,
		"edge", 2},
	/* shadow */
	{"shadow deny", "/s-blocked/", NO_TOKEN, 1, "", NULL, REASON_SHADOW, REASON_BLOCKED, "s-blocked", 0},
	{"shadow deny, exempt", "/s-blocked/", EDGE, 1, "", NULL, REASON_SHADOW, REASON_BLOCKED, "s-blocked",
		0},
	{"shadow allow", "/s-open/", NO_TOKEN, 1, "", NULL, REASON_RULE_ALLOW, OK, "s-open", 0},
	{"shadow limits hold", "/s-two/", NO_TOKEN, 1, "", "~general,~login", REASON_ALLOWED, OK, "s-two", 0},
	{"shadow limit empty", "/s-two/", NO_TOKEN, 1, "login", "~general,~login", REASON_SHADOW,
		REASON_RATE_LIMITED, "s-two", 0},
	{"shadow limit in overflow", "/s-two/", NO_TOKEN, 1, "login!", "~general,~login", REASON_SHADOW,
		REASON_TABLE_PRESSURE, "s-two", 0},
	{"shadow cost", "/s-tiny/", NO_TOKEN, 3, "", NULL, REASON_SHADOW, REASON_COST_TOO_LARGE, "s-tiny", 0},
	{"shadow, exempt", "/s-two/", EDGE, 1, "", NULL, REASON_EXEMPT, OK, "s-two", 0},
	{"shadow, own limits", "/s-two/", SLOW, 1, "agent", "~agent", REASON_SHADOW, REASON_RATE_LIMITED,
		"s-two", 0},
	{"shadow requirement", "/s-any/", NO_TOKEN, 1, "", "~general", REASON_SHADOW,
		REASON_IDENTITY_REQUIRED, "s-any", 0},
	{"shadow requirement, empty", "/s-any/", NO_TOKEN, 1, "general", "~general", REASON_SHADOW,
		REASON_RATE_LIMITED, "s-any", 0},
	{"shadow requirement met", "/s-any/", OPS, 1, "", NULL, REASON_EXEMPT, OK, "s-any", 0},
	{"shadow requirement, another exempt one", "/s-edge/", OPS, 1, "", NULL, REASON_SHADOW,
		REASON_IDENTITY_REQUIRED, "s-edge", 0},
	{"shadow requirement, no limits", "/s-edge-bare/", NO_TOKEN, 1, "", NULL, REASON_SHADOW,
		REASON_IDENTITY_REQUIRED, "s-edge-bare", 0},
	/* two paths: the stricter of both. Normalised first, then as sent. */
	{"plain and login", "/login/../plain/x", NO_TOKEN, 1, "", "general,login", REASON_ALLOWED, OK,
		"plain", 0},
	{"the raw one refuses", "/login/../plain/x", NO_TOKEN, 1, "login", "general,login",
		REASON_RATE_LIMITED, OK, "login", 6},
	{"the normalised one refuses", "/login/../plain/x", NO_TOKEN, 1, "general", "general,login",
		REASON_RATE_LIMITED, OK, "plain", 1},
	{"equal limits once", "/plain/../two/x", NO_TOKEN, 1, "", "general,login", REASON_ALLOWED, OK, "two",
		0},
	{"equal limits once, other order", "/owt/../two/x", NO_TOKEN, 1, "", "general,login", REASON_ALLOWED,
		OK, "two", 0},
	{"own limits once", "/login/../plain/x", SLOW, 1, "", "agent", REASON_ALLOWED, OK, "plain", 0},
	{"escape by encoding", "/%6cogin/", NO_TOKEN, 1, "", "login,general", REASON_ALLOWED, OK, "login", 0},
	{"raw denies", "/blocked/../plain/x", NO_TOKEN, 1, "", NULL, REASON_BLOCKED, OK, "blocked", 0},
	{"normalised denies", "/plain/../blocked/x", NO_TOKEN, 1, "", NULL, REASON_BLOCKED, OK, "blocked", 0},
	{"normalised allows, raw has limits", "/plain/../open/x", NO_TOKEN, 1, "", "general", REASON_ALLOWED,
		OK, "open", 0},
	{"raw allows, normalised has limits", "/open/../login/x", NO_TOKEN, 1, "login", "login",
		REASON_RATE_LIMITED, OK, "login", 6},
	{"raw allows, exempt", "/open/../login/x", EDGE, 1, "", NULL, REASON_EXEMPT, OK, "login", 0},
	{"raw allows, own limits", "/open/../login/x", SLOW, 1, "", "agent", REASON_ALLOWED, OK, "login", 0},
	{"raw requires", "/any/../login/x", NO_TOKEN, 1, "", "login,general", REASON_IDENTITY_REQUIRED, OK,
		"any", 0},
	{"normalised requires", "/login/../any/x", NO_TOKEN, 1, "", "general,login", REASON_IDENTITY_REQUIRED,
		OK, "any", 0},
	{"raw requires another", "/edge/../login/x", OPS, 1, "", NULL, REASON_IDENTITY_REQUIRED, OK, "edge",
		0},
	{"raw is too small for the cost", "/tiny/../plain/x", NO_TOKEN, 3, "", NULL, REASON_COST_TOO_LARGE,
		OK, "tiny", 0},
	{"both allow", "/open/../bare/x", NO_TOKEN, 1, "", NULL, REASON_RULE_ALLOW, OK, "bare", 0},
	/* two paths, one in shadow mode */
	{"shadow denies beside limits", "/s-blocked/../plain/x", NO_TOKEN, 1, "", "general", REASON_SHADOW,
		REASON_BLOCKED, "plain", 0},
	{"limits refuse beside shadow deny", "/s-blocked/../plain/x", NO_TOKEN, 1, "general", "general",
		REASON_RATE_LIMITED, OK, "plain", 1},
	{"shadow limits beside limits", "/s-two/../login/x", NO_TOKEN, 1, "", "login,~general",
		REASON_ALLOWED, OK, "login", 0},
	{"shadow first: enforced all the same", "/login/../s-two/x", NO_TOKEN, 1, "", "login,~general",
		REASON_ALLOWED, OK, "s-two", 0},
	{"shadow first, enforced refuses", "/login/../s-two/x", NO_TOKEN, 1, "login,general",
		"login,~general", REASON_RATE_LIMITED, OK, "login", 6},
	{"enforced holds, shadow would not", "/login/../s-two/x", NO_TOKEN, 1, "general", "login,~general",
		REASON_SHADOW, REASON_RATE_LIMITED, "s-two", 0},
	{"what shadow denies it does not charge", "/s-blocked/../s-two/x", NO_TOKEN, 1, "", NULL,
		REASON_SHADOW, REASON_BLOCKED, "s-two", 0},
	{"shadow group whole or not at all", "/s-tiny/../s-two/x", NO_TOKEN, 3, "", NULL, REASON_SHADOW,
		REASON_COST_TOO_LARGE, "s-two", 0},
	{"shadow cost beside limits", "/s-tiny/../plain/x", NO_TOKEN, 3, "", "general", REASON_SHADOW,
		REASON_COST_TOO_LARGE, "plain", 0},
	{"enforced deny beside shadow", "/s-two/../blocked/x", NO_TOKEN, 1, "", NULL, REASON_BLOCKED, OK,
		"blocked", 0},
	{"requirement beside shadow limits", "/s-two/../any/x", NO_TOKEN, 1, "login", "general,~login",
		REASON_IDENTITY_REQUIRED, OK, "any", 0},
};

/* Where limit stands in a list like "login!,general"; 0: it does not, 1: plainly, 2: with a "!". */
static unsigned listed(const char *list_z, struct str limit)
{
	struct str rest = str_from_z(list_z);

	while (rest.len > 0) {
		struct str item = str_head(rest, str_find(rest, ','));
		bool marked = str_ends_with(item, STR("!"));

		rest = str_from(rest, item.len + 1);
		if (str_equal(marked ? str_head(item, item.len - 1) : item, limit))
			return marked ? 2 : 1;
	}
	return 0;
}

static void charges_text(const struct plan *plan, char out[256])
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_charges; i++) {
		struct str name = plan->limits[i]->name;

		if (i > 0)
			out[n++] = ',';
		if (plan->charges[i].shadow)
			out[n++] = '~';
		memcpy(out + n, name.ptr, name.len);
		n += name.len;
	}
	out[n] = '\0';
}

static void fake_store(const struct plan *plan, const char *refusing_z, struct taking takings[CHARGES_MAX])
{
	for (size_t i = 0; i < plan->n_charges; i++) {
		unsigned how = listed(refusing_z, plan->limits[i]->name);

		takings[i] = (struct taking){
			.refused = how > 0, .overflow = how == 2, .remaining = how > 0 ? 0 : 7};
		takings[i].wait_ns = how > 0 ? waits_ns[plan->limits[i] - limits] : 0;
		takings[i].next_ns = how > 0 ? takings[i].wait_ns : NS_PER_S / 2;
	}
}

static void request_make(struct request *ret, const char *path_z, uint32_t cost)
{
	*ret = (struct request){.remote_addr = STR("198.51.100.7:4711"), .cost = cost};
	ret->path = (struct fact){str_from_z(path_z), path_z != NULL};
}

static void plan_for(const struct request *req, struct trace *trace, struct plan *ret)
{
	arena_init(&arena, block, sizeof(block));
	memset(ret, 0xa5, sizeof(*ret));
	decide_plan(&rules, req, &arena, trace, ret);
}

static void conclude(
	const struct request *req, const struct plan *plan, const struct taking *takings, struct verdict *ret)
{
	memset(ret, 0xa5, sizeof(*ret));
	decide_conclude(&rules, req, plan, takings, ret);
}

static void check_row(const struct row *row)
{
	struct request req;
	struct plan plan;
	struct verdict v;
	struct taking takings[CHARGES_MAX];
	char charges_z[256];

	request_make(&req, row->path_z, row->cost);
	if (row->token != NO_TOKEN) {
		req.token.said = true;
		req.token.text =
			str_from_z(row->token == FORGED ? "forged-forged-forged" : token_texts_z[row->token]);
	}
	plan_for(&req, NULL, &plan);
	assert_int_equal(plan.is_final, row->charges_z == NULL);
	charges_text(&plan, charges_z);
	assert_string_equal(charges_z, row->charges_z != NULL ? row->charges_z : "");
	fake_store(&plan, row->refusing_z, takings);
	conclude(&req, &plan, plan.is_final ? NULL : takings, &v);
	assert_string_equal(reason_word(v.reason).ptr, reason_word(row->reason).ptr);
	assert_string_equal(reason_word(v.would).ptr, reason_word(row->would).ptr);
	assert_int_equal(v.decision, reason_decision(row->reason));
	assert_non_null(v.rule);
	assert_string_equal(v.rule->name.ptr, row->rule_z);
	assert_int_equal(v.has_wait, row->wait_s > 0);
	assert_int_equal(v.wait_ns, row->wait_s * NS_PER_S);
	assert_int_equal(v.n_limits, plan.n_charges);
	for (size_t i = 0; i < v.n_limits; i++) {
		assert_ptr_equal(v.limits[i].limit, plan.limits[i]);
		assert_int_equal(v.limits[i].shadow, plan.charges[i].shadow);
		assert_int_equal(v.limits[i].taking.refused, takings[i].refused);
		assert_int_equal(v.limits[i].taking.next_ns, takings[i].next_ns);
	}
}

static void test_order_of_judgement(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		print_message("%s\n", rows[i].title_z);
		check_row(&rows[i]);
	}
}

/* ------------------------------------------------------------------------------------------------ single points */

static void test_fault(void **state)
{
	static const enum reason faults[] = {REASON_CALLER_NOT_ALLOWED, REASON_DOOR_MISCONFIGURED};
	struct request req;
	struct plan plan;
	struct verdict v;

	(void)state;
	for (size_t i = 0; i < COUNT(faults); i++) {
		request_make(&req, "/blocked/", 1);
		req.token = (struct fact){STR("token-of-edge-012"), true};
		req.fault = faults[i];
		req.fault_header = STR("X-Forwarded-Uri");
		plan_for(&req, NULL, &plan);
		assert_true(plan.is_final);
		assert_int_equal(plan.n_charges, 0);
		conclude(&req, &plan, NULL, &v);
		assert_int_equal(v.reason, faults[i]);
		assert_int_equal(v.decision, DECISION_DENY);
		assert_false(v.has_client);
		assert_null(v.rule);
		assert_null(v.token.identity);
		assert_int_equal(v.token.state, TOKEN_STATE_ABSENT);
		assert_int_equal(v.warnings, 0);
		assert_int_equal(v.n_limits, 0);
		assert_false(v.has_wait);
		assert_true(str_equal(v.fault_header, STR("X-Forwarded-Uri")));
	}
}

static void test_charge_contents(void **state)
{
	struct request req;
	struct plan plan;
	struct policy_view view;
	struct policy_keys keys;

	(void)state;
	request_make(&req, "/two/", 3);
	req.peek = true;
	plan_for(&req, NULL, &plan);
	policy_view_make(&view, NULL, &req, &plan.client, &plan.token, &arena);
	assert_int_equal(plan.n_charges, 2);
	for (size_t i = 0; i < plan.n_charges; i++) {
		const struct charge *c = &plan.charges[i];

		assert_int_equal(c->cost, 3);
		assert_true(c->peek);
		assert_false(c->shadow);
		assert_int_equal(c->rule.burst, plan.limits[i]->bucket.burst);
		assert_int_equal(c->rule.interval_ns, plan.limits[i]->bucket.interval_ns);
		assert_true(policy_keys_make(&keys, &rules, plan.limits[i], &view, &arena));
		assert_true(str_equal(c->key, keys.bucket));
		assert_true(str_equal(c->wide, keys.wide));
		assert_false(plan.fallbacks[i]);
		assert_string_equal(plan.charge_rules[i]->name.ptr, "two");
	}
	assert_false(str_equal(plan.charges[0].key, plan.charges[1].key));
}

static void test_fallback_is_told(void **state)
{
	static const struct limit_key_part by_host[] = {{.part = KEY_HOST}};
	static const struct limit lone = LIMIT("lone", 5, by_host);
	static const uint16_t first[] = {0};
	static const struct rule rest = {.name = S("rest"), LIMITS(first)};
	const struct ruleset kept = rules;
	struct request req;
	struct plan plan;

	(void)state;
	rules.limits = &lone;
	rules.rules = &rest;
	rules.n_rules = 1;
	request_make(&req, "/", 1);
	plan_for(&req, NULL, &plan);
	assert_true(plan.fallbacks[0]);
	req.host = (struct fact){STR("a.example"), true};
	plan_for(&req, NULL, &plan);
	assert_false(plan.fallbacks[0]);
	rules = kept;
}

static unsigned warnings_with(struct str remote_addr, struct str header_name)
{
	const struct header_line line = {header_name, STR("203.0.113.9")};
	struct request req;
	struct plan plan;
	struct verdict v;
	struct taking takings[CHARGES_MAX];

	request_make(&req, "/two/", 1);
	req.remote_addr = remote_addr;
	req.headers = &line;
	req.n_headers = 1;
	plan_for(&req, NULL, &plan);
	fake_store(&plan, "", takings);
	conclude(&req, &plan, takings, &v);
	assert_true(v.has_client);
	assert_int_equal(v.reason, REASON_ALLOWED);
	return v.warnings;
}

static void test_warnings(void **state)
{
	const unsigned ignored = 1u << WARNING_FORWARDED_HEADER_IGNORED,
		       undecided = 1u << WARNING_CLIENT_UNDECIDED;

	(void)state;
	assert_int_equal(warnings_with(STR("198.51.100.7"), STR("Cookie")), 0);
	assert_int_equal(warnings_with(STR("198.51.100.7"), STR("x-forwarded-for")), ignored);
	assert_int_equal(warnings_with(STR("198.51.100.7"), STR("Forwarded")), ignored);
	assert_int_equal(warnings_with(STR("nonsense"), STR("Cookie")), undecided);
	assert_int_equal(warnings_with(STR(""), STR("X-Forwarded-For")), ignored | undecided);
	rules.client.strategy = STRATEGY_RIGHTMOST;
	rules.client.trust_any = true;
	rules.client.header = STR("X-Forwarded-For");
	assert_int_equal(warnings_with(STR("198.51.100.7"), STR("X-Forwarded-For")), 0);
	rules.client.trust_any = false;
	assert_int_equal(warnings_with(STR("198.51.100.7"), STR("X-Forwarded-For")), ignored);
	rules.client.strategy = STRATEGY_PEER;
}

/* Wherever the arena ends, the answer is either the right one or "cannot decide", and then nothing is charged. */
static void test_full_arena(void **state)
{
	struct request req;
	struct plan plan;
	struct verdict v;
	size_t room, failures = 0;

	(void)state;
	request_make(&req, "/x/../two/", 1);
	for (room = 0; room <= 512; room += 16) {
		arena_init(&arena, block, room);
		memset(&plan, 0xa5, sizeof(plan));
		decide_plan(&rules, &req, &arena, NULL, &plan);
		if (!plan.is_final) {
			assert_int_equal(plan.n_charges, 2);
			assert_false(arena.overflow);
			continue;
		}
		failures++;
		assert_int_equal(plan.n_charges, 0);
		conclude(&req, &plan, NULL, &v);
		assert_int_equal(v.reason, REASON_INTERNAL);
		assert_int_equal(v.decision, DECISION_ERROR);
		assert_true(v.has_client);
	}
	assert_in_range(failures, 2, 31);
}

static void test_too_many_charges(void **state)
{
	static struct limit many[CHARGES_MAX + 1];
	static uint16_t all[CHARGES_MAX + 1];
	static char names[CHARGES_MAX + 1];
	static struct rule rest = {.name = S("rest"), .limits = all};
	const struct ruleset kept = rules;
	struct request req;
	struct plan plan;

	(void)state;
	for (uint16_t i = 0; i < COUNT(many); i++) {
		names[i] = (char)('a' + i);
		many[i] = (struct limit)LIMIT("", 5, by_client);
		many[i].name = str_make(&names[i], 1);
		all[i] = i;
	}
	rules.limits = many;
	rules.rules = &rest;
	rules.n_rules = 1;
	request_make(&req, "/", 1);
	rest.n_limits = CHARGES_MAX;
	plan_for(&req, NULL, &plan);
	assert_false(plan.is_final);
	assert_int_equal(plan.n_charges, CHARGES_MAX);
	rest.n_limits = CHARGES_MAX + 1;
	plan_for(&req, NULL, &plan);
	assert_true(plan.is_final);
	assert_int_equal(plan.reason, REASON_INTERNAL);
	assert_int_equal(plan.n_charges, 0);
	rules = kept;
}

static void test_trace(void **state)
{
	struct request req;
	struct plan plan;
	struct trace trace;

	(void)state;
	memset(&trace, 0xa5, sizeof(trace));
	request_make(&req, "/bare/../open/x?q", 1);
	plan_for(&req, &trace, &plan);
	assert_true(trace.has_path);
	assert_true(str_equal(trace.path_normalised, STR("/open/x")));
	assert_true(str_equal(trace.path_raw, STR("/bare/../open/x")));
	assert_int_equal(trace.n_rules, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_ptr_equal(trace.rules[i].rule, &rule_list[i]);
		assert_int_equal(trace.rules[i].miss, i == 1 ? MISS_NONE : MISS_PATH);
		assert_int_equal(trace.rules[i].miss_raw, i == 2 ? MISS_NONE : MISS_PATH);
	}
	assert_true(trace.client.n_steps > 0);

	memset(&trace, 0xa5, sizeof(trace));
	request_make(&req, NULL, 1);
	plan_for(&req, &trace, &plan);
	assert_false(trace.has_path);
	assert_int_equal(trace.n_rules, COUNT(rule_list));
	assert_null(trace.third);

	memset(&trace, 0xa5, sizeof(trace));
	request_make(&req, "/open/..;/%62locked/;/../x", 1);
	plan_for(&req, &trace, &plan);
	assert_ptr_equal(trace.third, &rule_list[0]);
	assert_true(str_equal(trace.reading, STR("/blocked/x")));

	memset(&trace, 0xa5, sizeof(trace));
	req.fault = REASON_CALLER_NOT_ALLOWED;
	plan_for(&req, &trace, &plan);
	assert_false(plan.has_client || trace.has_path);
	assert_int_equal(trace.n_rules, 0);
}

/* A client that cannot be decided has a bucket of its own, however its fallback address is spelled. */
static void test_undecided_is_apart(void **state)
{
	static const struct header_line junk = {S("X-Forwarded-For"), S("junk")};
	struct request req;
	struct plan decided, undecided;
	char key[256];

	(void)state;
	request_make(&req, "/plain/", 1);
	plan_for(&req, NULL, &decided);
	memcpy(key, decided.charges[0].key.ptr, decided.charges[0].key.len);
	decided.charges[0].key.ptr = key;
	rules.client.strategy = STRATEGY_RIGHTMOST;
	rules.client.trust_any = true;
	rules.client.header = STR("X-Forwarded-For");
	req.headers = &junk;
	req.n_headers = 1;
	plan_for(&req, NULL, &undecided);
	assert_false(undecided.client.decided);
	assert_false(str_equal(decided.charges[0].key, undecided.charges[0].key));
	rules.client.strategy = STRATEGY_PEER;
	rules.client.trust_any = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_of_judgement),
		cmocka_unit_test(test_fault),
		cmocka_unit_test(test_charge_contents),
		cmocka_unit_test(test_fallback_is_told),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_too_many_charges),
		cmocka_unit_test(test_trace),
		cmocka_unit_test(test_undecided_is_apart),
	};

	return cmocka_run_group_tests_name("decide", tests, setup_group, NULL);
}
