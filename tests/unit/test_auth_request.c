/* SPDX-License-Identifier: MIT */
/*
 * The door /auth-request: X-Real-IP is what nginx says, an equal X-Forwarded-For entry is the same hop, the URL cannot be
 * bent by a Host header, and every denial is one that nginx lets through and keeps the connection for.
 */
#include "adapter/adapter.h"

#include "../support/door.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ADDR "X-Real-IP: 203.0.113.9\n"
#define METHOD "X-Original-Method: GET\n"
#define URL "X-Original-URL: https://api.example.com/\n"

static struct judge judge;

static void use_config(const char *config_z)
{
	judge_close(&judge);
	judge_open(&judge, config_z);
}

static struct request decode(const char *lines_z, struct header_line lines[DOOR_LINES_MAX])
{
	const struct http_question q = door_question("/auth-request?x=1", lines_z, lines);

	return door_decode(&judge, DOOR_AUTH_REQUEST, &q);
}

/* ------------------------------------------------------------------------------------------------ reading */

/* What is told, what is taken as remote_addr, and what is left of X-Forwarded-For. */
static const struct {
	const char *lines_z, *remote_addr_z, *left_z;
} addresses[] = {
	{ADDR, "203.0.113.9", ""},
	{"x-real-ip: 203.0.113.9", "203.0.113.9", ""},
	{"X-Real-IP: 2001:db8::1", "2001:db8::1", ""},
	/* Empty or odd is for the core to judge. */
	{"X-Real-IP: ", "", ""},
	{"X-Real-IP: unix:\nX-Forwarded-For: 6.6.6.6", "unix:", "[6.6.6.6]"},
	/* An equal last entry is the same hop, however it is written. */
	{ADDR "X-Forwarded-For: 203.0.113.9", "203.0.113.9", ""},
	{ADDR "X-Forwarded-For: 6.6.6.6, 203.0.113.9", "203.0.113.9", "[6.6.6.6]"},
	{ADDR "X-Forwarded-For: 6.6.6.6\nX-Forwarded-For: 203.0.113.9", "203.0.113.9", "[6.6.6.6]"},
	{ADDR "X-Forwarded-For: ::ffff:203.0.113.9", "203.0.113.9", ""},
	{"X-Real-IP: 2001:db8::1\nX-Forwarded-For: 6.6.6.6, 2001:DB8:0::1", "2001:db8::1", "[6.6.6.6]"},
	{"X-Real-IP: unix:\nX-Forwarded-For: 6.6.6.6,unix:", "unix:", "[6.6.6.6]"},
	/* Once only: the entry before it was not written by this hop. */
	{ADDR "X-Forwarded-For: 203.0.113.9, 203.0.113.9", "203.0.113.9", "[203.0.113.9]"},
	{ADDR "X-Forwarded-For: 203.0.113.9\nX-Forwarded-For: 203.0.113.9", "203.0.113.9", "[203.0.113.9]"},
	/* Another last entry is somebody else's. */
	{ADDR "X-Forwarded-For: 203.0.113.9, 10.0.0.1", "203.0.113.9", "[203.0.113.9, 10.0.0.1]"},
	{ADDR "X-Forwarded-For: 203.0.113.9\nX-Forwarded-For: ", "203.0.113.9", "[203.0.113.9][]"},
	{ADDR "X-Forwarded-For: 203.0.113.9:4711", "203.0.113.9", "[203.0.113.9:4711]"},
	{ADDR "X-Forwarded-For: 203.0.113.90", "203.0.113.9", "[203.0.113.90]"},
	{"X-Real-IP: \nX-Forwarded-For: 6.6.6.6,", "", "[6.6.6.6,]"},
	/* Other families are the client's writing. */
	{ADDR "X_Real_IP: 6.6.6.6\nX-Postern-Remote-Addr: 6.6.6.6\nForwarded: for=6.6.6.6", "203.0.113.9",
		""},
};

static void test_addresses(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		struct header_line lines[DOOR_LINES_MAX];
		const struct request req = decode(addresses[i].lines_z, lines);

		door_assert_text(req.remote_addr, str_from_z(addresses[i].remote_addr_z));
		door_assert_text(
			door_lines(&judge, &req, STR("X-Forwarded-For")), str_from_z(addresses[i].left_z));
		judge_forget(&judge);
	}
}

static const struct {
	const char *url_z, *host_z, *path_z; /* path NULL: refused; host NULL: not said */
} urls[] = {
	{"https://api.example.com/login?x=1", "api.example.com", "/login?x=1"},
	{"HTTP://api.example.com:8443/", "api.example.com:8443", "/"},
	{"/a%2Fb/../c?x=http://y/", NULL, "/a%2Fb/../c?x=http://y/"},
	{"//evil/x", NULL, "//evil/x"},
	{"https://[2001:db8::1]:443/x", "[2001:db8::1]:443", "/x"},
	/* A request of HTTP/1.0 need not name a host. */
	{"http:///login", NULL, "/login"},
	/* nginx takes such a Host, and the path is what comes behind it all the same. */
	{"http://x?y/login", "x?y", "/login"},
	{"http://x#y/login", "x#y", "/login"},
	{"http://u@x/login", "u@x", "/login"},
	{"http://a:/?/login", "a:", "/?/login"},
	/* No URL, and nothing to guess at. */
	{"", NULL, NULL},
	{"login", NULL, NULL},
	{"*", NULL, NULL},
	{"http://api.example.com", NULL, NULL},
	{"http://api.example.com?/login", "api.example.com?", "/login"},
	{"ftp://api.example.com/login", NULL, NULL},
	{" /login", NULL, NULL},
};

static void test_urls(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct header_line lines[DOOR_LINES_MAX] = {{STR("X-Real-IP"), STR("203.0.113.9")},
			{STR("X-Original-Method"), STR("POST")},
			{STR("X-Original-URL"), str_from_z(urls[i].url_z)}};
		const struct http_question q = {
			.method = STR("GET"), .headers = lines, .n_headers = 3, .caller_allowed = true};
		const struct request req = door_decode(&judge, DOOR_AUTH_REQUEST, &q);

		door_assert_text(req.method.text, STR("POST"));
		assert_int_equal(req.path.said, urls[i].path_z != NULL);
		assert_int_equal(req.host.said, urls[i].host_z != NULL);
		door_assert_text(req.path.text, str_from_z(urls[i].path_z));
		door_assert_text(req.host.text, str_from_z(urls[i].host_z));
		door_assert_text(req.fault_header, urls[i].path_z != NULL ? STR("") : STR("X-Original-URL"));
	}
}

static const struct {
	const char *lines_z, *header_z; /* "": fine */
} required[] = {
	{ADDR METHOD URL, ""},
	{"", "X-Real-IP"},
	{METHOD URL "X-Forwarded-For: 203.0.113.9", "X-Real-IP"},
	{"X_Real_IP: 203.0.113.9\n" METHOD URL, "X-Real-IP"},
	{ADDR ADDR METHOD URL, "X-Real-IP"},
	{ADDR "x-real-ip: 6.6.6.6\n" METHOD URL, "X-Real-IP"},
	{ADDR URL, "X-Original-Method"},
	{ADDR METHOD METHOD URL, "X-Original-Method"},
	{ADDR URL "X-Forwarded-Method: GET", "X-Original-Method"},
	{ADDR METHOD, "X-Original-URL"},
	{ADDR METHOD URL URL, "X-Original-URL"},
	{ADDR METHOD "X-Forwarded-Uri: /\nX-Original-URI: /", "X-Original-URL"},
};

static void test_required_headers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
		struct header_line lines[DOOR_LINES_MAX];
		const struct request req = decode(required[i].lines_z, lines);
		bool fine = required[i].header_z[0] == '\0';

		assert_int_equal(req.fault, fine ? REASON_ALLOWED : REASON_DOOR_MISCONFIGURED);
		door_assert_text(req.fault_header, str_from_z(required[i].header_z));
	}
}

static void test_caller_comes_first(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];
	struct http_question q = door_question("/auth-request", "", lines);

	(void)state;
	q.caller_allowed = false;
	assert_int_equal(door_decode(&judge, DOOR_AUTH_REQUEST, &q).fault, REASON_CALLER_NOT_ALLOWED);
}

static void test_full_arena(void **state)
{
	struct header_line lines[DOOR_LINES_MAX];
	const struct http_question q =
		door_question("/auth-request", ADDR METHOD URL "X-Forwarded-For: 203.0.113.9", lines);
	struct problem problem;
	struct request req;
	struct arena small;
	char block[32];

	(void)state;
	arena_init(&small, block, sizeof(block));
	assert_false(auth_request_decode(&q, &small, &req, &problem));
	assert_int_equal(problem.code, PROBLEM_HEADERS_TOO_LARGE);
}

/* ------------------------------------------------------------------------------------------------ answering */

static void assert_answer(const char *lines_z, const char *answer_z)
{
	struct header_line lines[DOOR_LINES_MAX];
	const struct http_question q = door_question("/auth-request", lines_z, lines);

	door_assert_text(door_ask(&judge, DOOR_AUTH_REQUEST, &q), judge_quotes(&judge, answer_z));
}

#define CONFIG                                                                                               \
	"{'identities': {'edge': {'token_sha256': "                                                          \
	"'e0e03b3292d48dc64c1f510c65dbeb36f2b3f2874c60da6f29c006412d10c235'}}, 'limits': {'l': {'rate': "    \
	"'2/minute'}}, "                                                                                     \
	"'rules': [{'name': 'no', 'match': {'path': '/no'}, 'action': 'deny'}, {'name': 'ours', 'match': "   \
	"{'path': '/ours'}, 'require': 'identity', 'limits': ['l']}, {'name': 'rest', 'limits': ['l']}]}"
#define NO_STORE "Cache-Control: no-store|"

static void test_answers(void **state)
{
	(void)state;
	use_config(CONFIG);
	assert_answer(ADDR METHOD URL,
		"200 |" NO_STORE "RateLimit-Policy: 'l';q=2;w=60|RateLimit: 'l';r=1;t=30|"
		"X-Postern-Client: 203.0.113.9|X-Postern-Identity: |");
	assert_answer(ADDR METHOD URL "X-Internal-Token: postern_0123456789abcdef",
		"200 |" NO_STORE "X-Postern-Client: 203.0.113.9|X-Postern-Identity: edge|");
	assert_answer(ADDR METHOD "X-Original-URL: http://x?y/no",
		"403 |" NO_STORE "X-Postern-Status: 403|X-Postern-Reason: blocked|");
	assert_answer(ADDR METHOD "X-Original-URL: /ours",
		"401 |" NO_STORE
		"WWW-Authenticate: Bearer|X-Postern-Status: 401|X-Postern-Reason: identity_required|");
	assert_answer(ADDR METHOD URL,
		"403 |" NO_STORE "Retry-After: 30|RateLimit-Policy: 'l';q=2;w=60|RateLimit: 'l';r=0;t=30|"
		"X-Postern-Status: 429|X-Postern-Reason: rate_limited|");
	assert_answer(ADDR METHOD,
		"403 |" NO_STORE
		"X-Postern-Status: 403|X-Postern-Reason: door_misconfigured: X-Original-URL|");
}

static void test_refusals_that_no_request_gives(void **state)
{
	const struct verdict caller = {.decision = DECISION_DENY, .reason = REASON_CALLER_NOT_ALLOWED};
	const struct verdict internal = {.decision = DECISION_ERROR, .reason = REASON_INTERNAL};
	const struct request req = {.door = DOOR_AUTH_REQUEST};
	struct http_answer answer;

	(void)state;
	auth_request_encode(judge.rules, &req, &caller, &judge.arena, &answer);
	assert_int_equal(answer.status, 403);
	assert_int_equal(answer.body.len, 0);
	/* What cannot be decided is no denial: nginx must come to its own failure mode. */
	auth_request_encode(judge.rules, &req, &internal, &judge.arena, &answer);
	assert_int_equal(answer.status, 503);
	assert_int_equal(answer.body.len, 0);
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
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_urls),
		cmocka_unit_test(test_required_headers),
		cmocka_unit_test(test_caller_comes_first),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_refusals_that_no_request_gives),
	};

	return cmocka_run_group_tests_name("auth_request", tests, setup, teardown);
}
