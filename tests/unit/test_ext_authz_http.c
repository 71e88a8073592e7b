/* SPDX-License-Identifier: MIT */
/*
 * The door /ext-authz: where the address comes from and that the other source is never looked at, that method, path and
 * Host are the request's own, and what Envoy is told to strip.
 */
#include "adapter/adapter.h"

#include "../support/door.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ADDR "X-Postern-Remote-Addr: 203.0.113.9\n"
#define HOST "Host: api.example.com\n"

static struct judge judge;

static void use_config(const char *config_z)
{
	judge_close(&judge);
	judge_open(&judge, config_z);
}

static struct http_question question_of(
	const char *target_z, const char *lines_z, struct header_line lines[DOOR_LINES_MAX])
{
	struct http_question q = door_question(target_z, lines_z, lines);

	q.doors = judge.rules->doors;
	return q;
}

static struct request decode(const char *lines_z, struct header_line lines[DOOR_LINES_MAX])
{
	const struct http_question q = question_of("/ext-authz/", lines_z, lines);

	return door_decode(&judge, DOOR_EXT_AUTHZ_HTTP, &q);
}

/* ------------------------------------------------------------------------------------------------ reading */

struct address_case {
	const char *lines_z, *remote_addr_z, *left_z, *fault_header_z;
};

static void assert_addresses(const struct address_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct header_line lines[DOOR_LINES_MAX];
		const struct request req = decode(cases[i].lines_z, lines);
		bool fine = cases[i].fault_header_z[0] == '\0';

		assert_int_equal(req.fault, fine ? REASON_ALLOWED : REASON_DOOR_MISCONFIGURED);
		door_assert_text(req.fault_header, str_from_z(cases[i].fault_header_z));
		door_assert_text(req.remote_addr, str_from_z(cases[i].remote_addr_z));
		door_assert_text(
			door_lines(&judge, &req, STR("X-Forwarded-For")), str_from_z(cases[i].left_z));
		judge_forget(&judge);
	}
}

static void test_address_from_header(void **state)
{
	static const struct address_case cases[] = {
		{ADDR, "203.0.113.9", "", ""},
		{"x-postern-remote-addr: 2001:db8::1\nx-forwarded-for: 6.6.6.6,2001:db8::1", "2001:db8::1",
			"[6.6.6.6]", ""},
		{ADDR "X-Forwarded-For: 203.0.113.9", "203.0.113.9", "", ""},
		{ADDR "X-Forwarded-For: 203.0.113.9, 6.6.6.6", "203.0.113.9", "[203.0.113.9, 6.6.6.6]", ""},
		{ADDR "X-Real-IP: 6.6.6.6\nX-Envoy-External-Address: 6.6.6.6", "203.0.113.9", "", ""},
		{"X-Postern-Remote-Addr: ", "", "", ""},
		/* Never the other one for want of it. */
		{"X-Forwarded-For: 203.0.113.9", "", "[203.0.113.9]", "X-Postern-Remote-Addr"},
		{"", "", "", "X-Postern-Remote-Addr"},
		{ADDR ADDR "X-Forwarded-For: 203.0.113.9", "", "[203.0.113.9]", "X-Postern-Remote-Addr"},
		{"X_Postern_Remote_Addr: 203.0.113.9", "", "", "X-Postern-Remote-Addr"},
	};

	(void)state;
	assert_addresses(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_address_from_xff_last(void **state)
{
	static const struct address_case cases[] = {
		{"x-forwarded-for: 203.0.113.9", "203.0.113.9", "", ""},
		{"x-forwarded-for: 6.6.6.6,203.0.113.9", "203.0.113.9", "[6.6.6.6]", ""},
		{"X-Forwarded-For: 6.6.6.6\nX-Forwarded-For: 203.0.113.9", "203.0.113.9", "[6.6.6.6]", ""},
		{"X-Forwarded-For: 6.6.6.6,", "", "[6.6.6.6]", ""},
		/* The header is a client's forgery here, said or not. */
		{"X-Postern-Remote-Addr: 6.6.6.6\nX-Forwarded-For: 203.0.113.9", "203.0.113.9", "", ""},
		{"X-Postern-Remote-Addr: 6.6.6.6", "", "", "X-Forwarded-For"},
		{"", "", "", "X-Forwarded-For"},
	};

	(void)state;
	use_config("{'doors': {'ext_authz': {'remote_addr': 'xff_last'}}}");
	assert_addresses(cases, sizeof(cases) / sizeof(cases[0]));
	use_config("{}");
}

static void test_facts(void **state)
{
	static const struct {
		const char *method_z, *target_z, *path_z;
	} cases[] = {
		{"GET", "/ext-authz/", "/"},
		{"POST", "/ext-authz/login?x=/ext-authz/", "/login?x=/ext-authz/"},
		{"HEAD", "/ext-authz/check", "/check"},
		{"OPTIONS", "/ext-authz/metrics", "/metrics"},
		{"BREW", "/ext-authz//a/../%2e", "//a/../%2e"},
		{"GET", "/ext-authz/?x", "/?x"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct header_line lines[DOOR_LINES_MAX];
		struct http_question q = question_of(cases[i].target_z,
			ADDR HOST "X-Forwarded-Uri: /6\nX-Original-URL: /6\nX-Forwarded-Method: PUT\n"
				  "X-Forwarded-Host: evil",
			lines);
		struct request req;

		q.method = str_from_z(cases[i].method_z);
		req = door_decode(&judge, DOOR_EXT_AUTHZ_HTTP, &q);
		assert_true(req.method.said && req.path.said && req.host.said);
		door_assert_text(req.method.text, str_from_z(cases[i].method_z));
		door_assert_text(req.path.text, str_from_z(cases[i].path_z));
		door_assert_text(req.host.text, STR("api.example.com"));
		assert_int_equal(req.n_headers, q.n_headers - 1); /* the address is used up */
	}
}

static void test_no_host(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];

	(void)state;
	assert_false(decode(ADDR, lines).host.said);
}

static void test_caller_comes_first(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];
	struct http_question q = question_of("/ext-authz/", "", lines);

	(void)state;
	q.caller_allowed = false;
	assert_int_equal(door_decode(&judge, DOOR_EXT_AUTHZ_HTTP, &q).fault, REASON_CALLER_NOT_ALLOWED);
}

static void test_full_arena(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];
	struct http_question q = question_of("/ext-authz/", ADDR "X-Forwarded-For: 203.0.113.9", lines);
	struct problem problem;
	struct request req;
	struct arena small;
	char block[32];

	(void)state;
	for (int from = REMOTE_ADDR_FROM_HEADER; from <= REMOTE_ADDR_FROM_XFF_LAST; from++) {
		q.doors.ext_authz = (enum remote_addr_from)from;
		arena_init(&small, block, sizeof(block));
		assert_false(ext_authz_http_decode(&q, &small, &req, &problem));
		assert_int_equal(problem.code, PROBLEM_HEADERS_TOO_LARGE);
	}
}

/* ------------------------------------------------------------------------------------------------ answering */

static void assert_answer(const char *target_z, const char *lines_z, const char *answer_z)
{
	struct header_line lines[DOOR_LINES_MAX];
	const struct http_question q = question_of(target_z, lines_z, lines);

	door_assert_text(door_ask(&judge, DOOR_EXT_AUTHZ_HTTP, &q), judge_quotes(&judge, answer_z));
}

#define CONFIG(more)                                                                                         \
	"{" more "'identities': {'edge': {'token_sha256': "                                                  \
	"'e0e03b3292d48dc64c1f510c65dbeb36f2b3f2874c60da6f29c006412d10c235'}}, 'limits': {'l': {'rate': "    \
	"'2/minute'}}, "                                                                                     \
	"'rules': [{'name': 'ours', 'match': {'path': '/ours'}, 'require': 'identity', 'limits': ['l']}, "   \
	"{'name': 'rest', 'limits': ['l']}]}"
#define NO_STORE "Cache-Control: no-store|"
#define LIMIT(r) "RateLimit-Policy: 'l';q=2;w=60|RateLimit: 'l';r=" r ";t=30|"
#define UPSTREAM(identity) "X-Postern-Client: 203.0.113.9|X-Postern-Identity: " identity "|"
#define TOKEN "postern_0123456789abcdef"

static void test_answers(void **state)
{
	(void)state;
	use_config(CONFIG(""));
	assert_answer("/ext-authz/", ADDR HOST,
		"200 |" NO_STORE LIMIT("1") UPSTREAM("") "X-Envoy-Auth-Headers-To-Remove: X-Internal-Token|");
	assert_answer("/ext-authz/", ADDR HOST "X-Internal-Token: " TOKEN,
		"200 |" NO_STORE UPSTREAM("edge") "X-Envoy-Auth-Headers-To-Remove: X-Internal-Token|");
	/* Authorization is a user's login unless it proved one of us. */
	assert_answer("/ext-authz/", ADDR HOST "Authorization: Bearer " TOKEN,
		"200 |" NO_STORE UPSTREAM(
			"edge") "X-Envoy-Auth-Headers-To-Remove: X-Internal-Token, Authorization|");
	assert_answer("/ext-authz/ours", ADDR HOST,
		"401 |" NO_STORE "WWW-Authenticate: Bearer|Content-Type: application/json| {'error': "
		"'identity_required'}");
	assert_answer("/ext-authz/", ADDR HOST,
		"429 |" NO_STORE "Retry-After: 30|" LIMIT(
			"0") "Content-Type: application/json| {'error': 'rate_limited', 'retry_after': 30}");
	assert_answer("/ext-authz/", HOST "X-Forwarded-For: 203.0.113.9",
		"403 |" NO_STORE "Content-Type: application/json| {'error': 'door_misconfigured', 'detail': "
		"'the header X-Postern-Remote-Addr is missing or comes twice'}");
	/* Nothing to remove, no header that says so. */
	use_config(CONFIG("'token_headers': ['Authorization'], "));
	assert_answer("/ext-authz/", ADDR HOST, "200 |" NO_STORE LIMIT("1") UPSTREAM(""));
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
		cmocka_unit_test(test_address_from_header),
		cmocka_unit_test(test_address_from_xff_last),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_no_host),
		cmocka_unit_test(test_caller_comes_first),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests_name("ext_authz_http", tests, setup, teardown);
}
