/* SPDX-License-Identifier: MIT */
/*
 * Explanations: the JSON form is read back with the JSON library, the words are held to the letter for chains as they occur.
 * Nothing is charged by them, and hostile text comes out cut and escaped.
 */
#include "adapter/adapter.h"
#include "adapter/explain.h"

#include "base/json.h"
#include "base/text.h"

#include "../support/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define OUTPUT_BYTES ((size_t)128 * 1024)

static struct judge judge;
static struct explanation explanation;

static void use_config(const char *config_z)
{
	judge_close(&judge);
	judge_open(&judge, config_z);
}

static struct request check(const char *body_z)
{
	const struct http_question q = {.body = judge_quotes(&judge, body_z), .caller_allowed = true};
	struct problem problem;
	struct request req;

	if (!check_decode(&q, &judge.arena, &req, &problem))
		fail_msg("%s: %s", body_z, problem.detail_z);
	return req;
}

static struct str words(const struct request *req)
{
	struct text t;

	judge_explain(&judge, req, &explanation);
	text_init_arena(&t, &judge.arena, OUTPUT_BYTES / 4);
	explain_words(&t, judge.rules, req, &explanation);
	assert_false(t.overflow || judge.arena.overflow);
	return text_view(&t);
}

static struct json *tree(const struct request *req)
{
	struct json_fault fault;
	struct json *root;
	struct text t;

	judge_explain(&judge, req, &explanation);
	text_init_arena(&t, &judge.arena, OUTPUT_BYTES);
	explain_json(&t, judge.rules, req, &explanation, &judge.arena);
	assert_false(t.overflow || judge.arena.overflow);
	if (json_read(&root, text_view(&t), &fault) != ERR_OK)
		fail_msg("%s: %.*s", fault.detail_z, STR_ARG(text_view(&t)));
	return root;
}

static void assert_words(const char *body_z, const char *wanted_z)
{
	const struct request req = check(body_z);
	struct str got = words(&req), wanted = str_from_z(wanted_z);

	if (!str_equal(got, wanted))
		fail_msg("\ngot\n%.*s\nwanted\n%s", STR_ARG(got), wanted_z);
	json_free(tree(&req));
	judge_forget(&judge);
}

/* ------------------------------------------------------------------------------------------------ words */

#define LOGIN_RULES                                                                                          \
	"'identities': {'edge': {'token_sha256': "                                                           \
	"'e0e03b3292d48dc64c1f510c65dbeb36f2b3f2874c60da6f29c006412d10c235'}}, "                             \
	"'limits': {'l': {'rate': '2/minute'}, 's': {'rate': '1/minute'}}, 'rules': ["                       \
	"{'name': 'login', 'match': {'path': '/login', 'method': 'POST'}, 'limits': ['l']}, "                \
	"{'name': 'trial', 'match': {'path': '/trial'}, 'mode': 'shadow', 'limits': ['s']}, "                \
	"{'name': 'rest', 'limits': ['l', 's']}]"
#define TWO_RANGES                                                                                           \
	"'client': {'strategy': 'trusted_ranges', 'trusted_proxies': ['10.0.0.0/8', '192.168.7.1']}, "

static void test_words_without_configuration(void **state)
{
	(void)state;
	use_config("{}");
	assert_words("{'remote_addr': '203.0.113.9:5'}",
		"allow: allowed (within every limit)\n"
		"client: 203.0.113.9, decided: peer (the strategy is peer: remote_addr itself)\n"
		"  strategy peer\n"
		"  remote_addr \"203.0.113.9:5\" is the client\n"
		"  its bucket key is 4:203.0.113.9\n"
		"token: absent\n"
		"rule default: matches\n"
		"limit per-client: 300 of 300 left\n");
	assert_words("{'remote_addr': '172.18.0.5', 'headers': {'X-Forwarded-For': '203.0.113.9'}}",
		"allow: allowed (within every limit)\n"
		"client: 172.18.0.5, decided: peer (the strategy is peer: remote_addr itself)\n"
		"  strategy peer\n"
		"  remote_addr \"172.18.0.5\" is the client\n"
		"  other forwarding headers were present and not read\n"
		"  its bucket key is 4:172.18.0.5\n"
		"token: absent\n"
		"rule default: matches\n"
		"limit per-client: 300 of 300 left\n"
		"warning: forwarded_header_ignored\n");
}

static void test_words_behind_proxies(void **state)
{
	(void)state;
	use_config("{" TWO_RANGES LOGIN_RULES "}");
	assert_words("{'remote_addr': '10.0.0.1', 'headers': {'X-Forwarded-For': '6.6.6.6, 203.0.113.9, "
		     "192.168.7.1'}, "
		     "'path': '/a/../login;x?y', 'method': 'POST'}",
		"allow: allowed (within every limit)\n"
		"client: 203.0.113.9, decided: trusted_range (the first entry from the right that is no "
		"trusted proxy)\n"
		"  strategy trusted_ranges, reading X-Forwarded-For\n"
		"  remote_addr \"10.0.0.1\" is a trusted proxy, by 10.0.0.0/8\n"
		"  entry -1 (from the right, line 1) \"192.168.7.1\" is a trusted proxy, by 192.168.7.1\n"
		"  entry -2 (from the right, line 1) \"203.0.113.9\" is the client\n"
		"  1 entry further left was not looked at: a client can write it\n"
		"  its bucket key is 4:203.0.113.9\n"
		"token: absent\n"
		"path: /login (as sent: /a/../login;x; the stricter of both counts)\n"
		"rule login: matches, but not the path as sent\n"
		"rule trial: does not match: path\n"
		"rule rest: matches\n"
		"limit l: 2 of 2 left\n"
		"limit s: 1 of 1 left\n");
	assert_words("{'remote_addr': '10.0.0.1', 'headers': {'X-Forwarded-For': '6.6.6.6, junk\\u0000\\n, "
		     "192.168.7.1'}, "
		     "'token': 'postern_0123456789abcdef', 'path': '/trial'}",
		"allow: exempt (proven identity, not counted)\n"
		"client: 10.0.0.1, undecided: illegal_bytes (the entry holds control or non-ASCII bytes)\n"
		"  strategy trusted_ranges, reading X-Forwarded-For\n"
		"  remote_addr \"10.0.0.1\" is a trusted proxy, by 10.0.0.0/8\n"
		"  entry -1 (from the right, line 1) \"192.168.7.1\" is a trusted proxy, by 192.168.7.1\n"
		"  entry -2 (from the right, line 1) \"junk\\x00\\x0a\" cannot be used: the entry holds "
		"control or non-ASCII "
		"bytes\n"
		"  so it is undecided; what stands in is 10.0.0.1\n"
		"  1 entry further left was not looked at: a client can write it\n"
		"  its bucket key is u:4:10.0.0.1\n"
		"token: valid, identity edge (current token)\n"
		"path: /trial\n"
		"rule login: does not match: method\n"
		"rule trial: matches\n"
		"warning: client_undecided\n");
}

static void take(const char *body_z)
{
	const struct request req = check(body_z);
	struct verdict v;

	judge_decide(&judge, &req, &v);
	assert_int_equal(v.decision, DECISION_ALLOW);
}

static void test_words_of_levels(void **state)
{
	(void)state;
	use_config("{'client': {'strategy': 'hop_count', 'hops': 2, 'trusted_proxies': 'any', "
		   "'on_undecided': 'none'}, " LOGIN_RULES "}");
	take("{'remote_addr': '10.0.0.1', 'headers': {'X-Forwarded-For': '2001:db8::1, 10.0.0.2'}}");
	take("{'remote_addr': '10.0.0.1', 'headers': {'X-Forwarded-For': '2001:db8::1, 10.0.0.2'}, 'path': "
	     "'/trial'}");
	assert_words("{'remote_addr': '10.0.0.1', 'headers': {'X-Forwarded-For': '2001:db8::1, 10.0.0.2'}}",
		"deny: rate_limited (a limit is empty); the same request can pass in 60 s\n"
		"client: 2001:db8::1, decided: hop_count (the entry at the configured distance from the "
		"right)\n"
		"  strategy hop_count, reading X-Forwarded-For\n"
		"  remote_addr \"10.0.0.1\" is a trusted proxy, by \"any\" or trust_unix\n"
		"  entry -1 (from the right, line 1) \"10.0.0.2\" is passed over by the hop count\n"
		"  entry -2 (from the right, line 1) \"2001:db8::1\" is the client\n"
		"  its bucket key is 6:2001:db8::/64\n"
		"token: absent\n"
		"rule login: does not match: method\n"
		"rule trial: does not match: path\n"
		"rule rest: matches\n"
		"limit l: 1 of 2 left, one more in 30 s\n"
		"limit s: 0 of 1 left, one more in 60 s: refuses\n");
	assert_words("{'remote_addr': '10.0.0.1', 'headers': {'X-Forwarded-For': '2001:db8::1'}, 'path': "
		     "'/trial'}",
		"allow: allowed (within every limit)\n"
		"client: none, undecided: too_few_hops (fewer entries than the configured hops)\n"
		"  strategy hop_count, reading X-Forwarded-For\n"
		"  remote_addr \"10.0.0.1\" is a trusted proxy, by \"any\" or trust_unix\n"
		"  entry -1 (from the right, line 1) \"2001:db8::1\" is passed over by the hop count\n"
		"  so it is undecided; what stands in is nobody: the strict bucket \"none\"\n"
		"  its bucket key is none\n"
		"token: absent\n"
		"path: /trial\n"
		"rule login: does not match: method\n"
		"rule trial: matches\n"
		"limit s: 1 of 1 left (shadow)\n"
		"warning: client_undecided\n");
}

static void test_words_of_a_door(void **state)
{
	static const struct header_line line = {{"X-Forwarded-For", 15}, {"203.0.113.9", 11}};
	const struct http_question q = {.headers = &line, .n_headers = 1, .caller_allowed = true};
	struct problem problem;
	struct request req;

	(void)state;
	assert_true(forward_auth_decode(&q, &judge.arena, &req, &problem));
	assert_true(str_equal(
		words(&req), STR("deny: door_misconfigured (a required header is missing or comes twice)\n"
				 "  the door /forward-auth needs the header X-Forwarded-Method, and exactly "
				 "one\n")));
	json_free(tree(&req));
}

/* ------------------------------------------------------------------------------------------------ JSON */

static const struct json *member(const struct json *object, const char *name_z)
{
	const struct json *v = json_member(object, name_z);

	if (v == NULL)
		fail_msg("no member %s", name_z);
	return v;
}

static void assert_text(const struct json *object, const char *name_z, const char *wanted_z)
{
	assert_true(json_kind(member(object, name_z)) == JSON_KIND_STRING);
	assert_true(str_equal(json_text(member(object, name_z)), str_from_z(wanted_z)));
}

static void test_json(void **state)
{
	struct request req;
	struct json *root;
	const struct json *explain, *steps, *step, *rules;

	(void)state;
	use_config("{" TWO_RANGES LOGIN_RULES "}");
	req = check("{'remote_addr': '10.0.0.1', 'headers': {'X-Forwarded-For': ['6.6.6.6, 5.5.5.5', "
		    "'203.0.113.9, "
		    "192.168.7.1']}, 'path': '//login', 'method': 'POST', 'id': 'x'}");
	root = tree(&req);
	assert_text(root, "decision", "allow");
	assert_text(root, "rule", "login");
	assert_text(root, "id", "x");
	explain = member(root, "explain");
	assert_int_equal(json_text(member(explain, "config")).len, 12);
	assert_text(explain, "strategy", "trusted_ranges");
	assert_text(explain, "address", "203.0.113.9");
	assert_text(explain, "reason", "trusted_range");
	assert_text(explain, "class", "decided");
	assert_text(explain, "key", "4:203.0.113.9");
	assert_text(explain, "path", "/login");
	assert_text(explain, "path_raw", "//login");
	assert_int_equal(json_integer_of(member(explain, "entries_unread")), 2);
	assert_int_equal(json_integer_of(member(explain, "header_lines")), 2);
	steps = member(explain, "steps");
	assert_int_equal(json_count(steps), 3);
	step = json_item(steps, 1);
	assert_text(step, "step", "entry");
	assert_text(step, "raw", "192.168.7.1");
	assert_text(step, "verdict", "trusted");
	assert_text(step, "by", "192.168.7.1");
	assert_int_equal(json_integer_of(member(step, "position")), -1);
	assert_int_equal(json_integer_of(member(step, "line")), 2);
	assert_text(json_item(steps, 2), "verdict", "chosen");
	rules = member(explain, "rules");
	assert_int_equal(json_count(rules), 3);
	assert_text(json_item(rules, 0), "name", "login");
	assert_text(json_item(rules, 0), "result", "matched");
	assert_text(json_item(rules, 0), "result_raw_path", "path");
	assert_text(json_item(rules, 2), "result_raw_path", "matched");
	json_free(root);
}

static void test_other_reading(void **state)
{
	static const char question_z[] = "{'remote_addr': '203.0.113.9', 'path': '/%74rial/../%6cogin/;/..', 'method': 'POST'}";
	struct request req;
	struct json *root;
	const struct json *reading;

	(void)state;
	use_config("{" LOGIN_RULES "}");
	assert_words(question_z,
		"deny: blocked (the rule denies)\n"
		"client: 203.0.113.9, decided: peer (the strategy is peer: remote_addr itself)\n"
		"  strategy peer\n"
		"  remote_addr \"203.0.113.9\" is the client\n"
		"  its bucket key is 4:203.0.113.9\n"
		"token: absent\n"
		"path: / (as sent: /%74rial/../%6cogin/;/..; the stricter of both counts)\n"
		"  some servers read /login, where rule login holds: refused, since what is served cannot be known\n"
		"rule login: does not match: path\n"
		"rule trial: does not match: path\n"
		"rule rest: matches\n");
	req = check(question_z);
	root = tree(&req);
	assert_text(root, "rule", "login");
	reading = member(member(root, "explain"), "other_reading");
	assert_text(reading, "path", "/login");
	assert_text(reading, "rule", "login");
	json_free(root);
	judge_forget(&judge);
	req = check("{'remote_addr': '203.0.113.9', 'path': '/a/../b'}");
	root = tree(&req);
	assert_null(json_member(member(root, "explain"), "other_reading"));
	json_free(root);
}

static void test_explaining_charges_nothing(void **state)
{
	const char *body_z = "{'remote_addr': '203.0.113.9'}";

	(void)state;
	use_config("{'limits': {'l': {'rate': '1/hour'}}, 'rules': [{'name': 'r', 'limits': ['l']}]}");
	for (int i = 0; i < 5; i++) {
		const struct request req = check(body_z);

		json_free(tree(&req));
		judge_forget(&judge);
	}
	take(body_z);
}

/* As many entries and rules as may be, every raw text at its most hostile. */
static void test_hostile_request(void **state)
{
	struct header_line line = {STR("X-Forwarded-For"), {NULL, 0}};
	struct request req = {.door = DOOR_CHECK,
		.cost = 1,
		.remote_addr = STR("10.0.0.1"),
		.headers = &line,
		.n_headers = 1};
	char *value, *path;
	struct str got;

	(void)state;
	use_config("{" TWO_RANGES LOGIN_RULES "}");
	path = arena_alloc(&judge.arena, 8192);
	value = arena_alloc(&judge.arena, 8192);
	assert_non_null(path);
	assert_non_null(value);
	memset(path, 0xff, 8192);
	path[0] = '/';
	memset(value, 0x01, 8192);
	memcpy(value + 8192 - 20, ",10.1.1.1,10.1.1.2 ,", 20);
	line.value = str_make(value, 8192 - 1);
	req.path = (struct fact){str_make(path, 8192), true};
	json_free(tree(&req));
	got = words(&req);
	assert_true(got.len < 8192);
	for (size_t i = 0; i < got.len; i++)
		assert_true(got.ptr[i] == '\n' || (got.ptr[i] >= ' ' && got.ptr[i] <= '~'));
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
		cmocka_unit_test(test_words_without_configuration),
		cmocka_unit_test(test_words_behind_proxies),
		cmocka_unit_test(test_words_of_levels),
		cmocka_unit_test(test_words_of_a_door),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_other_reading),
		cmocka_unit_test(test_explaining_charges_nothing),
		cmocka_unit_test(test_hostile_request),
	};

	return cmocka_run_group_tests_name("explain", tests, setup, teardown);
}
