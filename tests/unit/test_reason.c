/* SPDX-License-Identifier: MIT */
/*
 * The words are a contract with logs, dashboards and callers: spelled out once more here, so that a careless edit of
 * the table fails a test.
 */
#include "core/reason.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void assert_word(struct str got, const char *want_z)
{
	assert_int_equal(got.len, strlen(want_z));
	assert_memory_equal(got.ptr, want_z, got.len);
}

static bool is_snake(struct str s)
{
	size_t i;

	for (i = 0; i < s.len; i++) {
		if (!((s.ptr[i] >= 'a' && s.ptr[i] <= 'z') || s.ptr[i] == '_'))
			return false;
	}
	return s.len > 0;
}

static void test_reasons(void **state)
{
	static const struct {
		enum reason reason;
		const char *word_z;
		enum decision decision;
		unsigned http;
	} rows[] = {
		{REASON_ALLOWED, "allowed", DECISION_ALLOW, 200},
		{REASON_EXEMPT, "exempt", DECISION_ALLOW, 200},
		{REASON_RULE_ALLOW, "rule_allow", DECISION_ALLOW, 200},
		{REASON_SHADOW, "shadow", DECISION_ALLOW, 200},
		{REASON_RATE_LIMITED, "rate_limited", DECISION_DENY, 429},
		{REASON_TABLE_PRESSURE, "table_pressure", DECISION_DENY, 429},
		{REASON_COST_TOO_LARGE, "cost_too_large", DECISION_DENY, 403},
		{REASON_BLOCKED, "blocked", DECISION_DENY, 403},
		{REASON_IDENTITY_REQUIRED, "identity_required", DECISION_DENY, 401},
		{REASON_CALLER_NOT_ALLOWED, "caller_not_allowed", DECISION_DENY, 403},
		{REASON_DOOR_MISCONFIGURED, "door_misconfigured", DECISION_DENY, 403},
		{REASON_INTERNAL, "internal", DECISION_ERROR, 503},
	};
	size_t i;

	(void)state;
	assert_int_equal(sizeof(rows) / sizeof(rows[0]), REASON_COUNT);
	assert_int_equal(REASON_ALLOWED, 0);
	for (i = 0; i < REASON_COUNT; i++) {
		assert_word(reason_word(rows[i].reason), rows[i].word_z);
		assert_int_equal(reason_decision(rows[i].reason), rows[i].decision);
		assert_int_equal(reason_http(rows[i].reason), rows[i].http);
		assert_true(reason_text(rows[i].reason).len > 0);
	}
}

static void test_denials_are_4xx(void **state)
{
	unsigned r;

	(void)state;
	for (r = 0; r < REASON_COUNT; r++) {
		unsigned http = reason_http((enum reason)r);

		switch (reason_decision((enum reason)r)) {
		case DECISION_ALLOW: assert_int_equal(http, 200); break;
		case DECISION_DENY: assert_true(http == 401 || http == 403 || http == 429); break;
		default: assert_int_equal(http, 503); break;
		}
	}
}

static void test_client_reasons(void **state)
{
	unsigned r, s;

	(void)state;
	for (r = 0; r < CLIENT_REASON_COUNT; r++) {
		assert_true(is_snake(client_reason_word((enum client_reason)r)));
		assert_true(client_reason_text((enum client_reason)r).len > 0);
		for (s = 0; s < r; s++)
			assert_false(str_equal(client_reason_word((enum client_reason)r),
				client_reason_word((enum client_reason)s)));
	}
	assert_true(client_reason_decided(CLIENT_REASON_PEER));
	assert_true(client_reason_decided(CLIENT_REASON_NAMED_HEADER));
	assert_false(client_reason_decided(CLIENT_REASON_PEER_UNUSABLE));
	assert_false(client_reason_decided(CLIENT_REASON_FOR_MISSING));
}

static void test_other_words(void **state)
{
	(void)state;
	assert_word(decision_word(DECISION_ALLOW), "allow");
	assert_word(decision_word(DECISION_DENY), "deny");
	assert_word(decision_word(DECISION_ERROR), "error");
	assert_word(token_state_word(TOKEN_STATE_ABSENT), "absent");
	assert_word(token_state_word(TOKEN_STATE_VALID), "valid");
	assert_word(token_state_word(TOKEN_STATE_UNKNOWN), "unknown");
	assert_word(token_state_word(TOKEN_STATE_AMBIGUOUS), "ambiguous");
	assert_word(warning_word(WARNING_FORWARDED_HEADER_IGNORED), "forwarded_header_ignored");
	assert_word(warning_word(WARNING_CLIENT_UNDECIDED), "client_undecided");
}

static void test_doors(void **state)
{
	unsigned d;

	(void)state;
	for (d = 0; d < DOOR_COUNT; d++) {
		assert_true(is_snake(door_word((enum door)d)));
		assert_int_equal(door_path((enum door)d).ptr[0], '/');
		assert_int_equal(door_find(door_word((enum door)d)), d);
	}
	assert_word(door_path(DOOR_FORWARD_AUTH), "/forward-auth");
	assert_true(door_is_prefix(DOOR_EXT_AUTHZ_HTTP) && !door_is_prefix(DOOR_CHECK));
	assert_int_equal(door_find(STR("Check")), DOOR_COUNT);
	assert_int_equal(door_find(STR("")), DOOR_COUNT);
}

static void test_door_headers(void **state)
{
	unsigned h;

	(void)state;
	for (h = 0; h < DOOR_HEADER_COUNT; h++) {
		struct str name = door_header_name((enum door_header)h);

		assert_true(str_is_token(name));
		assert_int_equal(door_header_find(door_header_door((enum door_header)h), name), h);
		assert_int_equal(door_header_find(DOOR_CHECK, name), DOOR_HEADER_COUNT);
	}
	assert_int_equal(door_header_find(DOOR_AUTH_REQUEST, STR("X-Forwarded-Uri")), DOOR_HEADER_COUNT);
	assert_int_equal(door_header_find(DOOR_AUTH_REQUEST, STR("")), DOOR_HEADER_COUNT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_denials_are_4xx),
		cmocka_unit_test(test_client_reasons),
		cmocka_unit_test(test_other_words),
		cmocka_unit_test(test_doors),
		cmocka_unit_test(test_door_headers),
	};

	return cmocka_run_group_tests_name("reason", tests, NULL, NULL);
}
