/* SPDX-License-Identifier: MIT */
/*
 * The door /forward-auth: which entry is taken as remote_addr and what is left of the header, what is believed and what is
 * refused, and that a refused client learns nothing but the reason.
 */
#include "adapter/adapter.h"

#include "base/text.h"

#include "../support/door.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct judge judge;

static void use_config(const char *config_z)
{
	judge_close(&judge);
	judge_open(&judge, config_z);
}

static struct request decode(const struct http_question *q)
{
	return door_decode(&judge, DOOR_FORWARD_AUTH, q);
}

static struct http_question question_of(const char *lines_z, struct header_line lines[DOOR_LINES_MAX])
{
	return door_question("/forward-auth?x=1", lines_z, lines);
}

/* ------------------------------------------------------------------------------------------------ reading */

#define REST "\nX-Forwarded-Method: GET\nX-Forwarded-Uri: /"

/* What stands in X-Forwarded-For lines, what is taken, and what is left: lines of other names are left out. */
static const struct {
	const char *lines_z, *taken_z, *left_z;
} entries[] = {
	{"X-Forwarded-For: 203.0.113.9", "203.0.113.9", ""},
	{"x-forwarded-for: 203.0.113.9", "203.0.113.9", ""},
	{"X-Forwarded-For: 6.6.6.6, 203.0.113.9", "203.0.113.9", "[6.6.6.6]"},
	{"X-Forwarded-For: 6.6.6.6,\t9.9.9.9 ,203.0.113.9\t ", "203.0.113.9", "[6.6.6.6,\t9.9.9.9]"},
	{"X-Forwarded-For: [2001:db8::1]:80", "[2001:db8::1]:80", ""},
	/* The last over all lines. */
	{"X-Forwarded-For: 6.6.6.6\nX-Forwarded-For: 203.0.113.9", "203.0.113.9", "[6.6.6.6]"},
	{"X-Forwarded-For: 6.6.6.6\nX-Forwarded-For: 7.7.7.7, 203.0.113.9\nOther: 8.8.8.8", "203.0.113.9",
		"[6.6.6.6][7.7.7.7]"},
	{"X-Forwarded-For: 1.1.1.1, 2.2.2.2\nX-FORWARDED-FOR: 203.0.113.9", "203.0.113.9",
		"[1.1.1.1, 2.2.2.2]"},
	/* Empty or odd is what it is; the entry before it was typed by somebody else. */
	{"X-Forwarded-For: ", "", ""},
	{"X-Forwarded-For: 6.6.6.6,", "", "[6.6.6.6]"},
	{"X-Forwarded-For: 6.6.6.6, \t", "", "[6.6.6.6]"},
	{"X-Forwarded-For: 6.6.6.6\nX-Forwarded-For: ", "", "[6.6.6.6]"},
	{"X-Forwarded-For: ,", "", ""},
	{"X-Forwarded-For: , 203.0.113.9", "203.0.113.9", ""},
	{"X-Forwarded-For: 6.6.6.6,, 203.0.113.9", "203.0.113.9", "[6.6.6.6,]"},
	{"X-Forwarded-For: 6.6.6.6, unknown", "unknown", "[6.6.6.6]"},
	{"X-Forwarded-For: 6.6.6.6; 203.0.113.9", "6.6.6.6; 203.0.113.9", ""},
	{"X-Forwarded-For: \"a, b\"", "b\"", "[\"a]"},
	/* Other families are the client's writing. */
	{"X_Forwarded_For: 6.6.6.6\nX-Real-IP: 7.7.7.7\nForwarded: for=8.8.8.8\nX-Forwarded-For: 203.0.113.9",
		"203.0.113.9", ""},
};

static void test_own_entry_is_consumed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		struct header_line lines[DOOR_LINES_MAX];
		char lines_z[512];
		struct http_question q;
		struct request req;
		struct text left;

		judge_forget(&judge);
		text_init(&left, lines_z, sizeof(lines_z) - 1);
		text_z(&left, entries[i].lines_z);
		text_z(&left, REST);
		lines_z[left.len] = '\0';
		q = question_of(lines_z, lines);
		req = decode(&q);
		assert_int_equal(req.fault, REASON_ALLOWED);
		door_assert_text(req.remote_addr, str_from_z(entries[i].taken_z));
		door_assert_text(
			door_lines(&judge, &req, STR("X-Forwarded-For")), str_from_z(entries[i].left_z));
	}
}

static void test_other_lines_stay_in_order(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];
	const struct http_question q =
		question_of("Host: check\nA: 1\nX-Forwarded-For: 1.1.1.1, 2.2.2.2\nA: 2\n"
			    "X-Forwarded-Method: POST\nX-Forwarded-Uri: /a%2Fb/../c?x=1\n"
			    "X-Forwarded-Host: api.example.com\nX-Forwarded-Proto: https",
			lines);
	const struct request req = decode(&q);

	(void)state;
	assert_int_equal(req.n_headers, 8);
	for (size_t i = 0; i < req.n_headers; i++) {
		door_assert_text(req.headers[i].name, lines[i].name);
		door_assert_text(req.headers[i].value, i == 2 ? STR("1.1.1.1") : lines[i].value);
	}
	assert_true(req.method.said && req.host.said && req.path.said);
	door_assert_text(req.method.text, STR("POST"));
	door_assert_text(req.host.text, STR("api.example.com"));
	door_assert_text(req.path.text, STR("/a%2Fb/../c?x=1"));
}

#define XFF "X-Forwarded-For: 203.0.113.9\n"
#define METHOD "X-Forwarded-Method: GET\n"
#define URI "X-Forwarded-Uri: /\n"

static const struct {
	const char *lines_z, *header_z; /* "": fine */
} required[] = {
	{XFF METHOD URI, ""},
	{XFF METHOD "X-Forwarded-Uri: ", ""},
	{XFF METHOD URI "X-Forwarded-Host: a\nX-Forwarded-Proto: http", ""},
	{"", "X-Forwarded-For"},
	{METHOD URI, "X-Forwarded-For"},
	{"X_Forwarded_For: 1.1.1.1\n" METHOD URI, "X-Forwarded-For"},
	{XFF URI, "X-Forwarded-Method"},
	{XFF METHOD, "X-Forwarded-Uri"},
	{XFF METHOD "X-Original-URL: /x", "X-Forwarded-Uri"},
	{XFF METHOD "x-forwarded-method: POST\n" URI, "X-Forwarded-Method"},
	{XFF METHOD METHOD URI, "X-Forwarded-Method"},
	{XFF METHOD URI "X-Forwarded-Uri: /admin", "X-Forwarded-Uri"},
	{XFF METHOD URI "X-Forwarded-Host: a\nX-Forwarded-Host: b", "X-Forwarded-Host"},
	{XFF METHOD URI "X-Forwarded-Proto: http\nX-Forwarded-Proto: https", "X-Forwarded-Proto"},
};

static void test_required_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
		struct header_line lines[DOOR_LINES_MAX];
		const struct http_question q = question_of(required[i].lines_z, lines);
		const struct request req = decode(&q);
		bool fine = required[i].header_z[0] == '\0';

		assert_int_equal(req.fault, fine ? REASON_ALLOWED : REASON_DOOR_MISCONFIGURED);
		door_assert_text(req.fault_header, str_from_z(required[i].header_z));
	}
}

static void test_host_is_not_the_callers(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];
	const struct http_question q = question_of("Host: postern.local\n" XFF METHOD URI, lines);
	const struct request req = decode(&q);

	(void)state;
	assert_false(req.host.said);
}

static void test_caller_comes_first(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];
	struct http_question q = question_of("", lines);
	struct request req;

	(void)state;
	q.caller_allowed = false;
	req = decode(&q);
	assert_int_equal(req.fault, REASON_CALLER_NOT_ALLOWED);
}

static void test_full_arena(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];
	const struct http_question q = question_of(XFF METHOD URI, lines);
	struct problem problem;
	struct request req;
	struct arena small;
	char block[32];

	(void)state;
	arena_init(&small, block, sizeof(block));
	assert_false(forward_auth_decode(&q, &small, &req, &problem));
	assert_int_equal(problem.code, PROBLEM_HEADERS_TOO_LARGE);
}

/* ------------------------------------------------------------------------------------------------ answering */

static struct str ask(const char *lines_z)
{
	struct header_line lines[DOOR_LINES_MAX];
	const struct http_question q = question_of(lines_z, lines);

	return door_ask(&judge, DOOR_FORWARD_AUTH, &q);
}

static void assert_answer(const char *lines_z, const char *answer_z)
{
	door_assert_text(ask(lines_z), judge_quotes(&judge, answer_z));
}

static void assert_has(const char *lines_z, const char *part_z)
{
	struct str answer = ask(lines_z);

	if (memmem(answer.ptr, answer.len, part_z, strlen(part_z)) == NULL)
		fail_msg("\ngot    %.*s\nwanted %s", STR_ARG(answer), part_z);
}

#define CONFIG                                                                                               \
	"{'identities': {'edge': {'token_sha256': "                                                          \
	"'e0e03b3292d48dc64c1f510c65dbeb36f2b3f2874c60da6f29c006412d10c235'}}, 'limits': {'l': {'rate': "    \
	"'2/minute'}}, "                                                                                     \
	"'rules': [{'name': 'no', 'match': {'path': '/no'}, 'action': 'deny'}, {'name': 'ours', 'match': "   \
	"{'path': "                                                                                          \
	"'/ours'}, 'require': 'identity', 'limits': ['l']}, {'name': 'rest', 'limits': ['l']}]}"
#define TOKEN "X-Internal-Token: postern_0123456789abcdef\n"

static void test_answers(void **state)
{
	(void)state;
	use_config(CONFIG);
	assert_answer(XFF METHOD URI,
		"200 |Cache-Control: no-store|RateLimit-Policy: 'l';q=2;w=60|RateLimit: 'l';r=1;t=30|"
		"X-Postern-Client: 203.0.113.9|X-Postern-Identity: |");
	assert_answer(XFF METHOD URI TOKEN,
		"200 |Cache-Control: no-store|X-Postern-Client: 203.0.113.9|X-Postern-Identity: edge|");
	/* Undecided: exactly one value, and that is empty. */
	assert_answer("X-Forwarded-For: 6.6.6.6, unknown\n" METHOD URI,
		"200 |Cache-Control: no-store|RateLimit-Policy: 'l';q=2;w=60|RateLimit: 'l';r=1;t=30|"
		"X-Postern-Client: |X-Postern-Identity: |");
	assert_answer(XFF METHOD "X-Forwarded-Uri: /no",
		"403 |Cache-Control: no-store|Content-Type: application/json| "
		"{'error': 'blocked'}");
	assert_answer(XFF METHOD "X-Forwarded-Uri: /ours",
		"401 |Cache-Control: no-store|WWW-Authenticate: Bearer|Content-Type: application/json| "
		"{'error': 'identity_required'}");
	assert_answer(XFF METHOD URI,
		"429 |Cache-Control: no-store|Retry-After: 30|RateLimit-Policy: 'l';q=2;w=60|"
		"RateLimit: 'l';r=0;t=30|Content-Type: application/json| {'error': 'rate_limited', "
		"'retry_after': 30}");
	assert_answer(XFF METHOD, "403 |Cache-Control: no-store|Content-Type: application/json| {'error': "
				  "'door_misconfigured', 'detail': "
				  "'the header X-Forwarded-Uri is missing or comes twice'}");
}

static void test_refusals_that_no_request_gives(void **state)
{
	const struct verdict caller = {.decision = DECISION_DENY, .reason = REASON_CALLER_NOT_ALLOWED};
	const struct verdict internal = {.decision = DECISION_ERROR, .reason = REASON_INTERNAL};
	const struct request req = {.door = DOOR_FORWARD_AUTH};
	struct http_answer answer;

	(void)state;
	forward_auth_encode(judge.rules, &req, &caller, &judge.arena, &answer);
	assert_int_equal(answer.status, 403);
	door_assert_text(answer.body, STR("{\"error\": \"caller_not_allowed\"}\n"));
	forward_auth_encode(judge.rules, &req, &internal, &judge.arena, &answer);
	assert_int_equal(answer.status, 503);
	door_assert_text(answer.body, STR("{\"error\": \"internal\"}\n"));
}

/* One hop in front needs no configuration; a second one is one line of it. */
static void test_hops(void **state)
{
	(void)state;
	use_config("{}");
	assert_has("X-Forwarded-For: 6.6.6.6, 203.0.113.9\n" METHOD URI, "Client: 203.0.113.9|");
	use_config("{'client': {'strategy': 'trusted_ranges', 'trusted_proxies': ['10.0.0.0/8']}}");
	assert_has("X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.0.0.7\n" METHOD URI, "Client: 203.0.113.9|");
	/* A client that writes our proxy's address gains nothing by it. */
	assert_has("X-Forwarded-For: 10.0.0.7, 203.0.113.9\n" METHOD URI, "Client: 203.0.113.9|");
}

static int setup(void **state)
{
	(void)state;
	judge_open(&judge, "{}");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	judge_close(&judge);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_entry_is_consumed),
		cmocka_unit_test(test_other_lines_stay_in_order),
		cmocka_unit_test(test_required_headers),
		cmocka_unit_test(test_host_is_not_the_callers),
		cmocka_unit_test(test_caller_comes_first),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_refusals_that_no_request_gives),
		cmocka_unit_test(test_hops),
	};

	return cmocka_run_group_tests_name("forward_auth", tests, setup, teardown);
}
