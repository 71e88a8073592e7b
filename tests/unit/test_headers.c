/* SPDX-License-Identifier: MIT */
/*
 * Header lines as text, exactly: clients parse them. Times around a whole second show the rounding.
 */
#include "core/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MS NS_PER_MS

static const struct limit per_client = {
	.name = {"per-client", 10}, .bucket = {NS_PER_S / 5, 300}, .window_s = 60, .headers = true};
static const struct limit login = {
	.name = {"login", 5}, .bucket = {6 * NS_PER_S, 10}, .window_s = 60, .headers = true};
static const struct limit hidden = {
	.name = {"hidden", 6}, .bucket = {NS_PER_S, 5}, .window_s = 5, .headers = false};
static const struct identity edge = {.name = {"edge", 4}};

static _Alignas(16) char block[8192];
static struct arena arena;
static struct ruleset rules;
static struct verdict v;
static struct header_line lines[HEADERS_CLIENT_MAX];

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, block, sizeof(block));
	rules = (struct ruleset){.headers = {.ratelimit = true, .retry_after = true}};
	v = (struct verdict){.decision = DECISION_ALLOW,
		.reason = REASON_ALLOWED,
		.has_client = true,
		.client = {.has_address = true, .decided = true, .address = ip_from_v4(0xcb007109)}};
	return 0;
}

static void add(const struct limit *limit, bool shadow, struct taking taking)
{
	v.limits[v.n_limits++] = (struct verdict_limit){limit, taking, shadow};
}

static void deny(enum reason reason, ns wait_ns)
{
	v.decision = DECISION_DENY;
	v.reason = reason;
	v.has_wait = wait_ns > 0;
	v.wait_ns = wait_ns;
}

/* All lines as "Name: value\n" in their order. */
static void assert_lines(const char *want_z)
{
	char got[1024];
	size_t n = headers_for_client(&rules, &v, &arena, lines), len = 0;

	assert_false(arena.overflow);
	for (size_t i = 0; i < n; i++) {
		const struct str pieces[] = {lines[i].name, STR(": "), lines[i].value, STR("\n")};

		for (size_t k = 0; k < COUNT(pieces); k++) {
			memcpy(got + len, pieces[k].ptr, pieces[k].len);
			len += pieces[k].len;
		}
	}
	got[len] = '\0';
	assert_string_equal(got, want_z);
}

static void test_rounding(void **state)
{
	static const struct {
		ns wait_ns;
		uint64_t s, ms;
	} rows[] = {
		{1, 1, 1},
		{MS, 1, 1},
		{MS + 1, 1, 2},
		{NS_PER_S - 1, 1, 1000},
		{NS_PER_S, 1, 1000},
		{NS_PER_S + 1, 2, 1001},
		{5210 * MS, 6, 5210},
		{6 * NS_PER_S, 6, 6000},
		{(ns)1 << 62, 4611686019, 4611686018428},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct taking t = {.next_ns = rows[i].wait_ns};

		deny(REASON_RATE_LIMITED, rows[i].wait_ns);
		assert_int_equal(headers_retry_after_s(&v), rows[i].s);
		assert_int_equal(headers_retry_after_ms(&v), rows[i].ms);
		assert_int_equal(headers_reset_s(&t), rows[i].s);
	}
	v.wait_ns = 0;
	v.has_wait = true;
	assert_int_equal(headers_retry_after_s(&v), 1);
	assert_int_equal(headers_retry_after_ms(&v), 1);
	v.has_wait = false;
	v.wait_ns = NS_PER_S;
	assert_int_equal(headers_retry_after_s(&v), 0);
	assert_int_equal(headers_retry_after_ms(&v), 0);
	assert_int_equal(headers_reset_s(&(struct taking){.next_ns = 0}), 0);
}

static void test_allow(void **state)
{
	(void)state;
	add(&per_client, false, (struct taking){.remaining = 211, .next_ns = 150 * MS});
	assert_lines("RateLimit-Policy: \"per-client\";q=300;w=60\n"
		     "RateLimit: \"per-client\";r=211;t=1\n");
}

static void test_full_bucket(void **state)
{
	(void)state;
	add(&per_client, false, (struct taking){.remaining = 300});
	assert_lines("RateLimit-Policy: \"per-client\";q=300;w=60\n"
		     "RateLimit: \"per-client\";r=300;t=0\n");
}

static void test_denial(void **state)
{
	(void)state;
	add(&per_client, false, (struct taking){.remaining = 211, .next_ns = 150 * MS});
	add(&login, false, (struct taking){.refused = true, .wait_ns = 5210 * MS, .next_ns = 5210 * MS});
	deny(REASON_RATE_LIMITED, 5210 * MS);
	assert_lines("Retry-After: 6\n"
		     "RateLimit-Policy: \"per-client\";q=300;w=60, \"login\";q=10;w=60\n"
		     "RateLimit: \"per-client\";r=211;t=1, \"login\";r=0;t=6\n");
}

static void test_shadow_and_hidden_limits_do_not_show(void **state)
{
	(void)state;
	add(&hidden, false, (struct taking){.remaining = 1, .next_ns = NS_PER_S});
	add(&login, true, (struct taking){.refused = true, .wait_ns = NS_PER_S, .next_ns = NS_PER_S});
	rules.headers.x_ratelimit = true;
	assert_lines("");
	add(&per_client, false, (struct taking){.remaining = 9, .next_ns = NS_PER_S});
	assert_lines("RateLimit-Policy: \"per-client\";q=300;w=60\n"
		     "RateLimit: \"per-client\";r=9;t=1\n"
		     "X-RateLimit-Limit: 300\n"
		     "X-RateLimit-Remaining: 9\n"
		     "X-RateLimit-Reset: 1\n");
}

static void test_a_hidden_refusal_still_says_when(void **state)
{
	(void)state;
	add(&hidden, false, (struct taking){.refused = true, .wait_ns = NS_PER_S, .next_ns = NS_PER_S});
	deny(REASON_RATE_LIMITED, NS_PER_S);
	assert_lines("Retry-After: 1\n");
}

static void test_options(void **state)
{
	(void)state;
	add(&login, false, (struct taking){.refused = true, .wait_ns = NS_PER_S, .next_ns = NS_PER_S});
	deny(REASON_RATE_LIMITED, NS_PER_S);
	rules.headers.ratelimit = false;
	assert_lines("Retry-After: 1\n");
	rules.headers.x_ratelimit = true;
	assert_lines(
		"Retry-After: 1\nX-RateLimit-Limit: 10\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1\n");
	rules.headers = (struct header_options){.ratelimit = false};
	assert_lines("");
}

/* The older three have room for one limit: the one that holds the client back most. */
static void test_tightest(void **state)
{
	static const struct {
		struct taking first, second;
		const char *limit_z;
	} rows[] = {
		{{.remaining = 5}, {.remaining = 4}, "10"},
		{{.remaining = 4}, {.remaining = 5}, "300"},
		{{.remaining = 4, .next_ns = 1}, {.remaining = 4, .next_ns = 2}, "10"},
		{{.remaining = 4, .next_ns = 2}, {.remaining = 4, .next_ns = 1}, "300"},
		{{.remaining = 1}, {.refused = true, .remaining = 3, .wait_ns = 1}, "10"},
		{{.refused = true, .wait_ns = 2}, {.refused = true, .wait_ns = 1}, "300"},
		{{.refused = true, .wait_ns = 1}, {.refused = true, .wait_ns = 2}, "10"},
		{{.refused = true, .wait_ns = 1, .remaining = 3}, {.remaining = 0}, "300"},
	};

	(void)state;
	rules.headers = (struct header_options){.x_ratelimit = true};
	for (size_t i = 0; i < COUNT(rows); i++) {
		v.n_limits = 0;
		add(&per_client, false, rows[i].first);
		add(&login, false, rows[i].second);
		assert_int_equal(headers_for_client(&rules, &v, &arena, lines), 3);
		assert_true(str_equal(lines[0].value, str_from_z(rows[i].limit_z)));
	}
}

static void test_other_answers(void **state)
{
	static const enum reason quiet[] = {REASON_BLOCKED, REASON_COST_TOO_LARGE, REASON_CALLER_NOT_ALLOWED,
		REASON_DOOR_MISCONFIGURED, REASON_INTERNAL};

	(void)state;
	assert_lines("");
	for (size_t i = 0; i < COUNT(quiet); i++) {
		deny(quiet[i], 0);
		v.decision = reason_decision(quiet[i]);
		assert_lines("");
	}
	add(&login, false, (struct taking){.remaining = 3, .next_ns = NS_PER_S});
	deny(REASON_IDENTITY_REQUIRED, 0);
	assert_lines("WWW-Authenticate: Bearer\n");
}

static void test_largest(void **state)
{
	static char names[CHARGES_MAX][63];
	static struct limit many[CHARGES_MAX];
	const struct taking taking = {.remaining = UINT64_MAX, .next_ns = ((ns)1 << 62)};
	size_t n;

	(void)state;
	rules.headers.x_ratelimit = true;
	memset(names, 'n', sizeof(names));
	for (size_t i = 0; i < CHARGES_MAX; i++) {
		many[i] = (struct limit){.name = str_make(names[i], sizeof(names[i])),
			.bucket = {1, UINT64_MAX},
			.window_s = UINT64_MAX,
			.headers = true};
		add(&many[i], false, taking);
	}
	deny(REASON_RATE_LIMITED, (ns)1 << 62);
	n = headers_for_client(&rules, &v, &arena, lines);
	assert_int_equal(n, 6);
	assert_false(arena.overflow);
	assert_true(str_ends_with(lines[1].value, STR(";q=18446744073709551615;w=18446744073709551615")));
	assert_true(str_ends_with(lines[2].value, STR(";r=18446744073709551615;t=4611686019")));
	assert_true(str_equal(lines[3].value, STR("18446744073709551615")));
}

static void test_full_arena(void **state)
{
	(void)state;
	add(&login, false, (struct taking){.refused = true, .wait_ns = NS_PER_S, .next_ns = NS_PER_S});
	deny(REASON_RATE_LIMITED, NS_PER_S);
	arena_init(&arena, block, 32);
	headers_for_client(&rules, &v, &arena, lines);
	assert_true(arena.overflow);
	arena_init(&arena, block, 0);
	headers_for_upstream(&v, &arena, lines);
	assert_true(arena.overflow);
	assert_int_equal(lines[0].value.len, 0);
}

static void assert_upstream(const char *client_z, const char *identity_z)
{
	struct header_line out[HEADERS_UPSTREAM];

	headers_for_upstream(&v, &arena, out);
	assert_true(str_equal(out[0].name, STR("X-Postern-Client")));
	assert_true(str_equal(out[0].value, str_from_z(client_z)));
	assert_true(str_equal(out[1].name, STR("X-Postern-Identity")));
	assert_true(str_equal(out[1].value, str_from_z(identity_z)));
	assert_false(arena.overflow);
}

static void test_upstream(void **state)
{
	(void)state;
	assert_upstream("203.0.113.9", "");
	v.token = (struct token_result){.state = TOKEN_STATE_VALID, .identity = &edge};
	assert_upstream("203.0.113.9", "edge");
	assert_true(ip_parse(&v.client.address, STR("2001:db8::1")));
	assert_upstream("2001:db8::1", "edge");
	v.client.decided = false;
	assert_upstream("", "edge");
	v.client.decided = true;
	v.client.has_address = false;
	assert_upstream("", "edge");
	v = (struct verdict){.decision = DECISION_DENY, .reason = REASON_CALLER_NOT_ALLOWED};
	assert_upstream("", "");
}

static void test_remove(void **state)
{
	static const struct str names[] = {
		{"X-Internal-Token", 16}, {"authorization", 13}, {"X-Other-Token", 13}};
	struct str out[TOKEN_HEADERS_MAX];

	(void)state;
	rules.identities.headers = names;
	rules.identities.n_headers = 3;
	assert_int_equal(headers_to_remove(&rules, &v, out), 2);
	assert_true(str_equal(out[0], names[0]));
	assert_true(str_equal(out[1], names[2]));
	v.token = (struct token_result){
		.state = TOKEN_STATE_VALID, .identity = &edge, .from_authorization = true};
	assert_int_equal(headers_to_remove(&rules, &v, out), 3);
	assert_true(str_equal(out[1], names[1]));
	v.token = (struct token_result){.state = TOKEN_STATE_ABSENT, .from_authorization = true};
	assert_int_equal(headers_to_remove(&rules, &v, out), 3);
	rules.identities.n_headers = 0;
	assert_int_equal(headers_to_remove(&rules, &v, out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_rounding, setup),
		cmocka_unit_test_setup(test_allow, setup),
		cmocka_unit_test_setup(test_full_bucket, setup),
		cmocka_unit_test_setup(test_denial, setup),
		cmocka_unit_test_setup(test_shadow_and_hidden_limits_do_not_show, setup),
		cmocka_unit_test_setup(test_a_hidden_refusal_still_says_when, setup),
		cmocka_unit_test_setup(test_options, setup),
		cmocka_unit_test_setup(test_tightest, setup),
		cmocka_unit_test_setup(test_other_answers, setup),
		cmocka_unit_test_setup(test_largest, setup),
		cmocka_unit_test_setup(test_full_arena, setup),
		cmocka_unit_test_setup(test_upstream, setup),
		cmocka_unit_test_setup(test_remove, setup),
	};

	return cmocka_run_group_tests_name("headers", tests, NULL, NULL);
}
