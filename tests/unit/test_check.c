/* SPDX-License-Identifier: MIT */
/*
 * The door /check: what it reads, what it refuses and where it says the fault is, and its answers to the byte. Every answer is
 * read back with the JSON library. Single quotes stand for double ones in questions, answers and configurations.
 */
#include "adapter/adapter.h"

#include "base/json.h"
#include "base/text.h"

#include "../support/judge.h"

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

static bool decode(struct str body, struct request *ret, struct problem *ret_problem)
{
	const struct http_question q = {
		.method = STR("POST"), .target = STR("/check"), .body = body, .caller_allowed = true};

	return check_decode(&q, &judge.arena, ret, ret_problem);
}

static struct request decode_ok(struct str body)
{
	struct problem problem;
	struct request req;

	if (!decode(body, &req, &problem))
		fail_msg("%.*s: %s", STR_ARG(body), problem.detail_z);
	return req;
}

static void parse(struct str body)
{
	struct json_fault fault;
	struct json *root;

	if (json_read(&root, body, &fault) != ERR_OK)
		fail_msg("%s: %.*s", fault.detail_z, STR_ARG(body));
	json_free(root);
}

static void assert_text(struct str got, struct str wanted)
{
	if (!str_equal(got, wanted))
		fail_msg("\ngot    %.*s\nwanted %.*s", STR_ARG(got), STR_ARG(wanted));
}

/* ------------------------------------------------------------------------------------------------ reading */

static void show(struct text *t, const char *name_z, struct str value)
{
	text_z(t, name_z);
	text_char(t, '=');
	text_visible(t, value, 400);
	text_char(t, ' ');
}

static void show_fact(struct text *t, const char *name_z, const struct fact *fact)
{
	if (fact->said)
		show(t, name_z, fact->text);
}

static struct str show_request(const struct request *req)
{
	struct text t;

	text_init_arena(&t, &judge.arena, 4096);
	show(&t, "addr", req->remote_addr);
	for (size_t i = 0; i < req->n_headers; i++) {
		text_char(&t, '[');
		text_visible(&t, req->headers[i].name, 400);
		text_z(&t, "]=");
		text_visible(&t, req->headers[i].value, 400);
		text_char(&t, ' ');
	}
	show_fact(&t, "token", &req->token);
	show_fact(&t, "method", &req->method);
	show_fact(&t, "host", &req->host);
	show_fact(&t, "path", &req->path);
	show_fact(&t, "id", &req->id);
	text_z(&t, "cost=");
	text_u64(&t, req->cost);
	text_z(&t, req->peek ? " peek" : "");
	assert_false(t.overflow);
	return text_view(&t);
}

static const struct {
	const char *body_z, *request_z;
} questions[] = {
	{"{'remote_addr': '172.18.0.5:53122'}", "addr=172.18.0.5:53122 cost=1"},
	{"{'remote_addr': ''}", "addr= cost=1"},
	{"{'remote_addr': 'a', 'headers': {'X-A': 'v', 'x-a': 'w'}, 'token': 't', 'method': 'GET', 'host': "
	 "'h', "
	 "'path': '/p?q', 'cost': 7, 'peek': true, 'id': 'i'}",
		"addr=a [X-A]=v [x-a]=w token=t method=GET host=h path=/p?q id=i cost=7 peek"},
	{"{'id': '', 'token': '', 'method': '', 'host': '', 'path': '', 'remote_addr': 'a'}",
		"addr=a token= method= host= path= id= cost=1"},
	{"{'remote_addr': 'a', 'cost': 1000000, 'peek': false}", "addr=a cost=1000000"},
	{"{'headers': {}, 'remote_addr': 'a'}", "addr=a cost=1"},
	{"{'headers': [], 'remote_addr': 'a'}", "addr=a cost=1"},
	/* Order and repeats. */
	{"{'remote_addr': 'a', 'headers': {'X-A': ['1', '2'], 'B': [], 'C': ''}}",
		"addr=a [X-A]=1 [X-A]=2 [C]= cost=1"},
	{"{'remote_addr': 'a', 'headers': [['A', '1'], ['B', '2'], ['A', '3']]}",
		"addr=a [A]=1 [B]=2 [A]=3 cost=1"},
	/* Any byte. */
	{"{'remote_addr': '\\u0000\\n\\u007f'}", "addr=\\x00\\x0a\\x7f cost=1"},
	{"{'remote_addr': '\xc2\x80\xc3\xbf\\u00e9'}", "addr=\\x80\\xff\\xe9 cost=1"},
	{"{'remote_addr': 'a', 'headers': {'': 'v', ' \xc3\xa9': '\\u0000'}}",
		"addr=a []=v [ \\xe9]=\\x00 cost=1"},
	{"{'remote_addr': 'a', 'headers': [['X\\u0000', 'v']]}", "addr=a [X\\x00]=v cost=1"},
	{"{'remote_addr': '\xe2\x82\xac', 'path': '\\u0100\\ud83d\\ude00'}",
		"addr=\\xe2\\x82\\xac path=\\xc4\\x80\\xf0\\x9f\\x98\\x80 cost=1"},
	{"{'remote_addr': 'a', 'token': '\\u00ff', 'path': '/\\u00e9'}",
		"addr=a token=\\xff path=/\\xe9 cost=1"},
	{"{'remote\\u005faddr': '\\u0061'}", "addr=a cost=1"},
	{" \t\r\n{ 'remote_addr' : 'a' } \n", "addr=a cost=1"},
};

static void test_questions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		struct request req;

		judge_forget(&judge);
		req = decode_ok(judge_quotes(&judge, questions[i].body_z));
		assert_int_equal(req.door, DOOR_CHECK);
		assert_int_equal(req.fault, REASON_ALLOWED);
		assert_text(show_request(&req), str_from_z(questions[i].request_z));
	}
}

#define DEEP_8 "/0/0/0/0/0/0/0/0"
#define DEEP DEEP_8 DEEP_8 DEEP_8 DEEP_8 DEEP_8 DEEP_8 DEEP_8 "/0/0/0/0/0/0/0"

static const struct {
	const char *body_z;
	enum problem_code code;
	unsigned line, column;
	const char *pointer_z, *detail_part_z;
} faults[] = {
	{"", PROBLEM_BODY_NOT_JSON, 1, 1, "", "empty"},
	{"{'remote_addr': 'a'", PROBLEM_BODY_NOT_JSON, 1, 20, "", "ends inside an object"},
	{"{'remote_addr': 'a'} {}", PROBLEM_BODY_NOT_JSON, 1, 22, "", ""},
	{"{'remote_addr': '\xff'}", PROBLEM_BODY_NOT_UTF8, 1, 18, "", ""},
	{"{'remote_addr': 'a',\n 'remote_addr': 'b'}", PROBLEM_DUPLICATE_MEMBER, 2, 2, "/remote_addr", ""},
	{"{'remote_addr': 'a', 'headers': {'A': 'b', 'A': 'b'}}", PROBLEM_DUPLICATE_MEMBER, 1, 44,
		"/headers/A", ""},
	{"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", PROBLEM_BODY_TOO_DEEP, 1,
		65, DEEP, ""},
	{"'remote_addr'", PROBLEM_WRONG_TYPE, 1, 1, "", "an object is wanted here, not a string"},
	{"\n null", PROBLEM_WRONG_TYPE, 2, 2, "", "not null"},
	{"{}", PROBLEM_MISSING_MEMBER, 1, 1, "", "remote_addr is required"},
	{" {'method': 'GET'}", PROBLEM_MISSING_MEMBER, 1, 2, "", "remote_addr is required"},
	{"{'remote_addr': 'a',\n  'hots': 'h'}", PROBLEM_UNKNOWN_MEMBER, 2, 3, "/hots",
		"did you mean \"host\"?"},
	{"{'remote_addr': 'a', 'Cost': 2}", PROBLEM_UNKNOWN_MEMBER, 1, 22, "/Cost", "did you mean \"cost\"?"},
	{"{'remoteaddr': 'a'}", PROBLEM_UNKNOWN_MEMBER, 1, 2, "/remoteaddr", "did you mean \"remote_addr\"?"},
	{"{'remote_addr': 'a', 'completely': 2}", PROBLEM_UNKNOWN_MEMBER, 1, 22, "/completely",
		"unknown member"},
	{"{'remote_addr': 'a', 'a/b~c': 2}", PROBLEM_UNKNOWN_MEMBER, 1, 22, "/a~1b~0c", "unknown member"},
	{"{'remote_addr': null}", PROBLEM_WRONG_TYPE, 1, 17, "/remote_addr",
		"a string is wanted here, not null"},
	{"{'remote_addr': 'a', 'token': 5}", PROBLEM_WRONG_TYPE, 1, 31, "/token", "not a whole number"},
	{"{'remote_addr': 'a', 'method': ['GET']}", PROBLEM_WRONG_TYPE, 1, 32, "/method", "not an array"},
	{"{'remote_addr': 'a', 'path': {}}", PROBLEM_WRONG_TYPE, 1, 30, "/path", "not an object"},
	{"{'remote_addr': 'a', 'cost': 0}", PROBLEM_OUT_OF_RANGE, 1, 30, "/cost", "1 to 1000000"},
	{"{'remote_addr': 'a', 'cost': -1}", PROBLEM_OUT_OF_RANGE, 1, 30, "/cost", "1 to 1000000"},
	{"{'remote_addr': 'a', 'cost': 1000001}", PROBLEM_OUT_OF_RANGE, 1, 30, "/cost", "1 to 1000000"},
	{"{'remote_addr': 'a', 'cost': 9223372036854775807}", PROBLEM_OUT_OF_RANGE, 1, 30, "/cost",
		"1 to 1000000"},
	{"{'remote_addr': 'a', 'cost': 1.0}", PROBLEM_WRONG_TYPE, 1, 30, "/cost", "whole number"},
	{"{'remote_addr': 'a', 'cost': 1e3}", PROBLEM_WRONG_TYPE, 1, 30, "/cost", "whole number"},
	{"{'remote_addr': 'a', 'cost': '1'}", PROBLEM_WRONG_TYPE, 1, 30, "/cost", "not a string"},
	{"{'remote_addr': 'a', 'peek': 1}", PROBLEM_WRONG_TYPE, 1, 30, "/peek", "true or false"},
	{"{'remote_addr': 'a', 'headers': 'X'}", PROBLEM_WRONG_TYPE, 1, 33, "/headers", "not a string"},
	{"{'remote_addr': 'a', 'headers': {'A': 1}}", PROBLEM_WRONG_TYPE, 1, 39, "/headers/A",
		"a string is wanted"},
	{"{'remote_addr': 'a', 'headers': {'A': ['b', null]}}", PROBLEM_WRONG_TYPE, 1, 45, "/headers/A/1",
		"not null"},
	{"{'remote_addr': 'a', 'headers': {'A': [['b']]}}", PROBLEM_WRONG_TYPE, 1, 40, "/headers/A/0",
		"not an array"},
	{"{'remote_addr': 'a', 'headers': [\n['A', 'b'],\n['A']]}", PROBLEM_WRONG_TYPE, 3, 1, "/headers/1",
		"a pair [name, value]"},
	{"{'remote_addr': 'a', 'headers': [['A', 'b', 'c']]}", PROBLEM_WRONG_TYPE, 1, 34, "/headers/0",
		"a pair [name, value] is wanted here, not a list of 3"},
	{"{'remote_addr': 'a', 'headers': ['A', 'b']}", PROBLEM_WRONG_TYPE, 1, 34, "/headers/0", "a pair"},
	{"{'remote_addr': 'a', 'headers': [[1, 'b']]}", PROBLEM_WRONG_TYPE, 1, 35, "/headers/0/0",
		"a string"},
	{"{'remote_addr': 'a', 'headers': [['A', ['b']]]}", PROBLEM_WRONG_TYPE, 1, 40, "/headers/0/1",
		"a string"},
	{"{'remote_addr': 'a', 'id': '\xc4\x80'}", PROBLEM_ILLEGAL_CHARACTER, 1, 28, "/id", "above U+00FF"},
	{"{'remote_addr': 'a', 'id': 'b\\ud83d\\ude00'}", PROBLEM_ILLEGAL_CHARACTER, 1, 28, "/id", "above U+00FF"},
	/* NUL in a name needs the array form. */
	{"{'remote_addr': 'a', 'headers': {'X\\u0000': 'v'}}", PROBLEM_BODY_NOT_JSON, 1, 36, "/headers", ""},
};

static void assert_problem(const struct problem *p, size_t i)
{
	if (p->code != faults[i].code || p->line != faults[i].line || p->column != faults[i].column ||
		strcmp(p->pointer_z, faults[i].pointer_z) != 0 ||
		strstr(p->detail_z, faults[i].detail_part_z) == NULL)
		fail_msg("%s\ngot %.*s %u:%u \"%s\" %s", faults[i].body_z, STR_ARG(problem_word(p->code)),
			p->line, p->column, p->pointer_z, p->detail_z);
}

static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct http_answer answer;
		struct problem problem;
		struct request req;
		struct str body;

		judge_forget(&judge);
		body = judge_quotes(&judge, faults[i].body_z);
		if (decode(body, &req, &problem))
			fail_msg("taken: %s", faults[i].body_z);
		assert_problem(&problem, i);
		problem_encode(&problem, &judge.arena, &answer);
		assert_int_equal(answer.status, problem_http(problem.code));
		parse(answer.body);
	}
}

static struct str long_body(size_t lines, size_t id_bytes)
{
	struct text t;

	text_init_arena(&t, &judge.arena, 16384);
	text_z(&t, "{\"remote_addr\": \"a\", \"headers\": {\"A\": [");
	for (size_t i = 0; i < lines; i++)
		text_z(&t, i > 0 ? ", \"\"" : "\"\"");
	text_z(&t, "]}, \"id\": \"");
	for (size_t i = 0; i < id_bytes; i++)
		text_z(&t, "\\u00ff");
	text_z(&t, "\"}");
	assert_false(t.overflow);
	return text_view(&t);
}

static void test_limits(void **state)
{
	struct problem problem;
	struct request req;

	(void)state;
	req = decode_ok(long_body(256, 256));
	assert_int_equal(req.n_headers, 256);
	assert_int_equal(req.id.text.len, 256);
	assert_false(decode(long_body(257, 1), &req, &problem));
	assert_int_equal(problem.code, PROBLEM_HEADERS_TOO_LARGE);
	assert_string_equal(problem.pointer_z, "/headers/A/256");
	assert_false(decode(long_body(1, 257), &req, &problem));
	assert_int_equal(problem.code, PROBLEM_OUT_OF_RANGE);
	assert_string_equal(problem.pointer_z, "/id");
}

/* A name that no pointer holds: the place is that of the object it stands in. */
static void test_name_too_long_for_a_pointer(void **state)
{
	struct problem problem;
	struct request req;
	struct text t;

	(void)state;
	text_init_arena(&t, &judge.arena, 1024);
	text_z(&t, "{\"remote_addr\": \"a\", \"headers\": {\"");
	for (int i = 0; i < 400; i++)
		text_char(&t, 'x');
	text_z(&t, "\": 1}}");
	assert_false(decode(text_view(&t), &req, &problem));
	assert_int_equal(problem.code, PROBLEM_WRONG_TYPE);
	assert_string_equal(problem.pointer_z, "/headers");
	assert_int_equal(problem.column, 33);
}

static void test_full_arena(void **state)
{
	struct http_question q = {.body = STR("{\"remote_addr\": \"a\\n\", \"headers\": {\"A\": \"b\"}}"),
		.caller_allowed = true};
	struct problem problem;
	struct request req;
	struct arena small;
	char block[128];

	(void)state;
	arena_init(&small, block, sizeof(block));
	assert_false(check_decode(&q, &small, &req, &problem));
	assert_int_equal(problem.code, PROBLEM_HEADERS_TOO_LARGE);
}

static const struct {
	const char *value_z[2];
	bool fits;
} content_types[] = {
	{{NULL, NULL}, true},
	{{"application/json", NULL}, true},
	{{"Application/JSON", NULL}, true},
	{{"application/json; charset=utf-8", NULL}, true},
	{{"application/json ;charset=latin1", NULL}, true},
	{{"", NULL}, false},
	{{"text/plain", NULL}, false},
	{{"application/x-www-form-urlencoded", NULL}, false},
	{{"application/jsonx", NULL}, false},
	{{"application/json", "application/json"}, false},
};

static void test_content_types(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(content_types) / sizeof(content_types[0]); i++) {
		struct header_line lines[2];
		struct http_question q = {
			.headers = lines, .body = STR("{\"remote_addr\": \"a\"}"), .caller_allowed = true};
		struct problem problem;
		struct request req;

		while (q.n_headers < 2 && content_types[i].value_z[q.n_headers] != NULL) {
			lines[q.n_headers] = (struct header_line){
				STR("content-type"), str_from_z(content_types[i].value_z[q.n_headers])};
			q.n_headers++;
		}
		assert_int_equal(check_decode(&q, &judge.arena, &req, &problem), content_types[i].fits);
		if (!content_types[i].fits)
			assert_int_equal(problem.code, PROBLEM_UNSUPPORTED_MEDIA_TYPE);
		if (!content_types[i].fits)
			assert_non_null(strstr(problem.detail_z, "--json"));
	}
}

/* ------------------------------------------------------------------------------------------------ answering */

static const struct str *answer_header(const struct http_answer *answer, struct str name)
{
	for (size_t i = 0; i < answer->n_headers; i++) {
		if (str_equal(answer->headers[i].name, name))
			return &answer->headers[i].value;
	}
	return NULL;
}

static void encode(const struct request *req, const struct verdict *v, struct http_answer *ret)
{
	check_encode(judge.rules, req, v, &judge.arena, ret);
	assert_false(judge.arena.overflow);
	assert_true(str_ends_with(ret->body, STR("}\n")));
	parse(ret->body);
	assert_true(str_equal(*answer_header(ret, STR("Cache-Control")), STR("no-store")));
}

static struct str ask(const char *body_z, unsigned status)
{
	struct request req = decode_ok(judge_quotes(&judge, body_z));
	struct http_answer answer;
	struct verdict v;

	judge_decide(&judge, &req, &v);
	encode(&req, &v, &answer);
	assert_int_equal(answer.status, status);
	assert_true(str_equal(*answer_header(&answer, STR("Content-Type")), STR("application/json")));
	return str_head(answer.body, answer.body.len - 1);
}

static void assert_answer(const char *body_z, const char *answer_z)
{
	assert_text(ask(body_z, 200), judge_quotes(&judge, answer_z));
}

/* part_z stands somewhere in the answer. */
static void assert_has(const char *body_z, const char *part_z)
{
	struct str answer = ask(body_z, 200), part = judge_quotes(&judge, part_z);

	if (memmem(answer.ptr, answer.len, part.ptr, part.len) == NULL)
		fail_msg("\ngot    %.*s\nwanted %.*s", STR_ARG(answer), STR_ARG(part));
}

#define SHOWN                                                                                                \
	"'RateLimit-Policy': '\\'per-client\\';q=5;w=1, \\'login\\';q=2;w=60', 'RateLimit': "                \
	"'\\'per-client\\';r=4;t=1, \\'login\\';r=1;t=30'"

static void test_whole_answers(void **state)
{
	(void)state;
	use_config("{'limits': {'login': {'rate': '2/minute'}, 'per-client': {'rate': '300/minute', 'burst': "
		   "5}}, "
		   "'rules': [{'name': 'login', 'match': {'path': '/login'}, 'limits': ['per-client', "
		   "'login']}, "
		   "{'name': 'rest', 'limits': ['per-client']}]}");
	assert_answer("{'remote_addr': '203.0.113.9:5', 'path': '/login?x', 'id': 'a\\u0000\\u00ff'}",
		"{'decision': 'allow', 'reason': 'allowed', 'status': 200, 'client': {'address': "
		"'203.0.113.9', 'reason': "
		"'peer', 'decided': true}, 'identity': null, 'token': 'absent', 'rule': 'login', 'limits': "
		"[{'name': "
		"'per-client', 'quota': 5, 'window': 1, 'remaining': 4, 'reset': 1}, {'name': 'login', "
		"'quota': 2, "
		"'window': 60, 'remaining': 1, 'reset': 30}], 'response_headers': {" SHOWN
		"}, 'upstream_headers': "
		"{'X-Postern-Client': '203.0.113.9', 'X-Postern-Identity': ''}, 'remove_headers': "
		"['X-Internal-Token'], "
		"'id': 'a\\u0000\\u00ff'}");
	/* A peek tells what is there and takes nothing. */
	assert_answer("{'remote_addr': '203.0.113.9:6', 'path': '/login', 'peek': true, 'cost': 2}",
		"{'decision': 'deny', 'reason': 'rate_limited', 'status': 429, 'client': {'address': "
		"'203.0.113.9', "
		"'reason': 'peer', 'decided': true}, 'identity': null, 'token': 'absent', 'rule': 'login', "
		"'limits': "
		"[{'name': 'per-client', 'quota': 5, 'window': 1, 'remaining': 4, 'reset': 1}, {'name': "
		"'login', 'quota': "
		"2, 'window': 60, 'remaining': 1, 'reset': 30, 'limited': true}], 'retry_after': 30, "
		"'retry_after_ms': "
		"30000, 'response_headers': {'Retry-After': '30', " SHOWN
		"}, 'upstream_headers': {'X-Postern-Client': "
		"'203.0.113.9', 'X-Postern-Identity': ''}, 'remove_headers': ['X-Internal-Token']}");
	assert_answer("{'remote_addr': 'junk', 'path': '/', 'cost': 6, 'headers': {'Forwarded': 'for=x'}}",
		"{'decision': 'deny', 'reason': 'cost_too_large', 'status': 403, 'client': {'address': null, "
		"'reason': "
		"'peer_unusable', 'decided': false}, 'identity': null, 'token': 'absent', 'rule': 'rest', "
		"'limits': [], "
		"'response_headers': {}, 'upstream_headers': {'X-Postern-Client': '', 'X-Postern-Identity': "
		"''}, "
		"'remove_headers': ['X-Internal-Token'], 'warnings': ['forwarded_header_ignored', "
		"'client_undecided']}");
}

/* After the wait that is told the same request passes, and a ms before it does not. */
static void test_retry_after_comes_true(void **state)
{
	(void)state;
	use_config("{'limits': {'l': {'rate': '7/minute', 'burst': 1}}, 'rules': [{'name': 'r', 'limits': "
		   "['l']}]}");
	assert_has("{'remote_addr': '192.0.2.1'}", "'decision': 'allow'");
	judge.now += 1;
	assert_has("{'remote_addr': '192.0.2.1'}", "'retry_after': 9, 'retry_after_ms': 8572,");
	judge.now += 8571 * NS_PER_MS;
	assert_has("{'remote_addr': '192.0.2.1'}", "'retry_after': 1, 'retry_after_ms': 1,");
	judge.now += NS_PER_MS;
	assert_has("{'remote_addr': '192.0.2.1'}", "'decision': 'allow'");
}

#define TOKEN_A "postern_0123456789abcdef"
#define TOKEN_B "postern_fedcba9876543210"

static void test_identities(void **state)
{
	(void)state;
	use_config(
		"{'identities': {'edge': {'token_sha256': "
		"'e0e03b3292d48dc64c1f510c65dbeb36f2b3f2874c60da6f29c006412d10c235'}, 'agent': "
		"{'token_sha256': "
		"'8580b8af730a7ea9b17dbf3fcef548f31c8a0eb85e3a9ed21fe79a50373f7935', 'limits': ['agent']}}, "
		"'limits': {'agent': {'rate': '10/second', 'key': ['identity']}, 'l': {'rate': '2/hour'}}, "
		"'rules': "
		"[{'name': 'internal', 'match': {'path': '/internal/*'}, 'require': 'identity', 'limits': "
		"['l']}, "
		"{'name': 'rest', 'limits': ['l']}]}");
	assert_has("{'remote_addr': 'a', 'token': '" TOKEN_A "'}",
		"'reason': 'exempt', 'status': 200, 'client': {'address': null, 'reason': 'peer_unusable', "
		"'decided': "
		"false}, 'identity': 'edge', 'token': 'valid', 'rule': 'rest', 'limits': [],");
	assert_has("{'remote_addr': 'a', 'token': '" TOKEN_A "'}", "'X-Postern-Identity': 'edge'");
	assert_has("{'remote_addr': 'a', 'token': '" TOKEN_A "'}", "'remove_headers': ['X-Internal-Token']");
	assert_has("{'remote_addr': 'a', 'headers': {'authorization': 'Bearer " TOKEN_B "'}}",
		"'limits': [{'name': 'agent', 'quota': 10,");
	assert_has("{'remote_addr': 'a', 'headers': {'authorization': 'Bearer " TOKEN_B "'}}",
		"'remove_headers': ['X-Internal-Token', 'Authorization']");
	assert_has("{'remote_addr': 'a', 'headers': {'x-internal-token': '" TOKEN_A "'}, 'token': ''}",
		"'token': 'absent'");
	assert_has("{'remote_addr': '192.0.2.2', 'token': 'wrong', 'path': '/internal/x'}",
		"'reason': 'identity_required', 'status': 401,");
	assert_has("{'remote_addr': '192.0.2.2', 'token': 'wrong', 'path': '/internal/x'}",
		"'response_headers': {'WWW-Authenticate': 'Bearer'}, 'upstream_headers'");
	assert_has("{'remote_addr': '192.0.2.2', 'token': 'wrong', 'path': '/internal/x'}",
		"'reason': 'rate_limited'");
	assert_has("{'remote_addr': 'c', 'headers': [['X-Internal-Token', 'x'], ['X-Internal-Token', 'y']]}",
		"'token': 'ambiguous'");
}

static void test_actions_and_shadow(void **state)
{
	(void)state;
	use_config("{'limits': {'l': {'rate': '1/hour'}, 'hidden': {'rate': '5/hour', 'headers': false}}, "
		   "'headers': "
		   "{'x_ratelimit': true}, 'rules': [{'name': 'no', 'match': {'path': '/no'}, 'action': "
		   "'deny'}, {'name': "
		   "'yes', 'match': {'path': '/yes'}, 'action': 'allow'}, {'name': 'maybe', 'match': "
		   "{'path': '/maybe'}, "
		   "'mode': 'shadow', 'limits': ['l']}, {'name': 'rest', 'limits': ['l', 'hidden']}]}");
	assert_has("{'remote_addr': 'a', 'path': '/no'}",
		"'decision': 'deny', 'reason': 'blocked', 'status': 403,");
	assert_has("{'remote_addr': 'a', 'path': '/yes'}",
		"'decision': 'allow', 'reason': 'rule_allow', 'status': 200,");
	assert_has("{'remote_addr': 'a', 'path': '/maybe'}", "'reason': 'allowed'");
	assert_has("{'remote_addr': 'a', 'path': '/maybe'}",
		"'reason': 'shadow', 'would': 'rate_limited', 'status': 200,");
	assert_has("{'remote_addr': 'a', 'path': '/maybe'}",
		"'limited': true, 'shadow': true}], 'response_headers': {},");
	assert_has("{'remote_addr': '192.0.2.1'}",
		"'response_headers': {'RateLimit-Policy': '\\'l\\';q=1;w=3600', 'RateLimit': "
		"'\\'l\\';r=0;t=3600', "
		"'X-RateLimit-Limit': '1', 'X-RateLimit-Remaining': '0', 'X-RateLimit-Reset': '3600'}");
	assert_has("{'remote_addr': '192.0.2.1', 'peek': true}", "'name': 'hidden', 'quota': 5,");
}

static void test_caller_not_allowed(void **state)
{
	const struct http_question q = {.body = STR("not looked at"), .caller_allowed = false};
	struct http_answer answer;
	struct problem problem;
	struct request req;
	struct verdict v;

	(void)state;
	assert_true(check_decode(&q, &judge.arena, &req, &problem));
	assert_int_equal(req.fault, REASON_CALLER_NOT_ALLOWED);
	judge_decide(&judge, &req, &v);
	encode(&req, &v, &answer);
	assert_int_equal(answer.status, 403);
	assert_true(str_equal(*answer_header(&answer, STR("Content-Type")), STR("application/problem+json")));
	assert_non_null(memmem(answer.body.ptr, answer.body.len, "\"caller_not_allowed\"", 20));
}

static void test_cannot_decide(void **state)
{
	const struct request req = {.remote_addr = STR("a")};
	struct verdict v = {.decision = DECISION_ERROR, .reason = REASON_INTERNAL};
	struct http_answer answer;

	(void)state;
	encode(&req, &v, &answer);
	assert_int_equal(answer.status, 503);
	assert_text(answer.body, judge_quotes(&judge, "{'decision': 'error', 'reason': 'internal', 'status': "
						      "503, 'rule': null, 'limits': [], 'response_headers': "
						      "{}, 'upstream_headers': {'X-Postern-Client': '', "
						      "'X-Postern-Identity': ''}, 'remove_headers': "
						      "['X-Internal-Token']}\n"));
}

/* Every member at its longest still fits. */
static void test_longest_answer(void **state)
{
	char name[64], id[256];
	const struct limit limit = {.name = {name, sizeof(name)},
		.bucket = {.burst = INT32_MAX},
		.window_s = INT64_MAX,
		.headers = true};
	const struct rule rule = {.name = {name, sizeof(name)}};
	const struct identity identity = {.name = {name, sizeof(name)}};
	const struct request req = {.id = {{id, sizeof(id)}, true}};
	struct verdict v = {.decision = DECISION_DENY,
		.reason = REASON_TABLE_PRESSURE,
		.has_client = true,
		.rule = &rule,
		.token = {.identity = &identity},
		.has_wait = true,
		.wait_ns = INT64_MAX,
		.warnings = ~0u};
	struct http_answer answer;

	(void)state;
	memset(name, 'n', sizeof(name));
	memset(id, 0xff, sizeof(id));
	use_config("{'headers': {'x_ratelimit': true}, 'token_headers': ['A', 'B', 'C', 'D', 'E', 'F', 'G', "
		   "'H']}");
	assert_true(ip_parse(&v.client.address, STR("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff")));
	v.client.has_address = v.client.decided = true;
	for (v.n_limits = 0; v.n_limits < CHARGES_MAX; v.n_limits++)
		v.limits[v.n_limits] = (struct verdict_limit){.limit = &limit,
			.taking = {.refused = true,
				.overflow = true,
				.remaining = INT64_MAX,
				.next_ns = INT64_MAX}};
	v.limits[0].shadow = true;
	encode(&req, &v, &answer);
	assert_true(answer.body.len > 6000);
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
		cmocka_unit_test(test_questions),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_name_too_long_for_a_pointer),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_content_types),
		cmocka_unit_test(test_whole_answers),
		cmocka_unit_test(test_retry_after_comes_true),
		cmocka_unit_test(test_identities),
		cmocka_unit_test(test_actions_and_shadow),
		cmocka_unit_test(test_caller_not_allowed),
		cmocka_unit_test(test_cannot_decide),
		cmocka_unit_test(test_longest_answer),
	};

	return cmocka_run_group_tests_name("check", tests, setup, teardown);
}
