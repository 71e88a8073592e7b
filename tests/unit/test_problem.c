/* SPDX-License-Identifier: MIT */
/*
 * The way from a request line to a door, and the documents for those that find none or ask in a way nobody understands.
 */
#include "adapter/adapter.h"
#include "adapter/problem.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static char block[16384];

static void assert_member(const struct json *root, const char *name_z, struct str wanted)
{
	const struct json *v = json_member(root, name_z);

	assert_non_null(v);
	assert_int_equal(json_kind(v), JSON_KIND_STRING);
	if (!str_equal(json_text(v), wanted))
		fail_msg("%s: got \"%.*s\", wanted \"%.*s\"", name_z, STR_ARG(json_text(v)), STR_ARG(wanted));
}

static struct json *encode(const struct problem *p, struct http_answer *ret)
{
	struct json_fault fault;
	struct json *root;
	struct arena a;

	arena_init(&a, block, sizeof(block));
	problem_encode(p, &a, ret);
	assert_false(a.overflow);
	if (json_read(&root, ret->body, &fault) != ERR_OK)
		fail_msg("%s: %.*s", fault.detail_z, STR_ARG(ret->body));
	return root;
}

/* ------------------------------------------------------------------------------------------------ doors */

static const struct {
	const char *method_z, *target_z;
	enum door door; /* DOOR_COUNT: none */
	enum problem_code code;
	const char *detail_part_z;
} targets[] = {
	{"POST", "/check", DOOR_CHECK, 0, ""},
	{"POST", "/check?x=1", DOOR_CHECK, 0, ""},
	{"GET", "/forward-auth", DOOR_FORWARD_AUTH, 0, ""},
	{"HEAD", "/forward-auth?/check", DOOR_FORWARD_AUTH, 0, ""},
	{"PROPFIND", "/forward-auth?", DOOR_FORWARD_AUTH, 0, ""},
	{"GET", "/auth-request", DOOR_AUTH_REQUEST, 0, ""},
	{"POST", "/auth-request?/ext-authz/", DOOR_AUTH_REQUEST, 0, ""},
	{"GET", "/ext-authz/", DOOR_EXT_AUTHZ_HTTP, 0, ""},
	{"OPTIONS", "/ext-authz/livez", DOOR_EXT_AUTHZ_HTTP, 0, ""},
	{"BREW", "/ext-authz//check?x=1", DOOR_EXT_AUTHZ_HTTP, 0, ""},
	{"GET", "/ext-authz/../forward-auth", DOOR_EXT_AUTHZ_HTTP, 0, ""},
	{"GET", "/ext-authz/%00?/check", DOOR_EXT_AUTHZ_HTTP, 0, ""},
	{"GET", "/ext-authz", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /ext-authz/*?"},
	{"GET", "/ext-authz?/", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /ext-authz/*?"},
	{"GET", "/ext-authz*", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /ext-authz/*?"},
	{"GET", "/ext-auth/", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /ext-authz/*?"},
	{"GET", "/auth-request/", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /auth-request?"},
	{"GET", "/check", DOOR_COUNT, PROBLEM_METHOD_NOT_ALLOWED, "/check takes POST only"},
	{"post", "/check", DOOR_COUNT, PROBLEM_METHOD_NOT_ALLOWED, "POST"},
	{"", "/check?x", DOOR_COUNT, PROBLEM_METHOD_NOT_ALLOWED, "POST"},
	{"POST", "/chek", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /check?"},
	{"GET", "/forward_auth", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /forward-auth?"},
	{"GET", "/forward-auth/", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /forward-auth?"},
	{"POST", "//check", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /check?"},
	{"POST", "/%63heck", DOOR_COUNT, PROBLEM_NOT_FOUND, "the doors are /check, /forward-auth"},
	{"POST", "/Check", DOOR_COUNT, PROBLEM_NOT_FOUND, "did you mean /check?"},
	{"GET", "/", DOOR_COUNT, PROBLEM_NOT_FOUND, "the doors are /check, /forward-auth"},
	{"GET", "", DOOR_COUNT, PROBLEM_NOT_FOUND, "the doors are"},
	{"GET", "?", DOOR_COUNT, PROBLEM_NOT_FOUND, "the doors are"},
	{"GET", "http://x/forward-auth", DOOR_COUNT, PROBLEM_NOT_FOUND, "the doors are"},
	{"GET", "*", DOOR_COUNT, PROBLEM_NOT_FOUND, "the doors are"},
};

static void test_doors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		struct problem p;
		const struct adapter_http *found = adapter_http_find(
			str_from_z(targets[i].method_z), str_from_z(targets[i].target_z), &p);

		if (targets[i].door != DOOR_COUNT) {
			assert_ptr_equal(found, adapter_http_of(targets[i].door));
			continue;
		}
		assert_null(found);
		if (p.code != targets[i].code || strstr(p.detail_z, targets[i].detail_part_z) == NULL)
			fail_msg("%s %s: %s", targets[i].method_z, targets[i].target_z, p.detail_z);
	}
}

static void test_hostile_target(void **state)
{
	static char target[100000];
	struct problem p;

	(void)state;
	memset(target, 'c', sizeof(target));
	assert_null(adapter_http_find(STR("GET"), str_make(target, sizeof(target)), &p));
	assert_int_equal(p.code, PROBLEM_NOT_FOUND);
	assert_null(adapter_http_find(STR("GET"), STR("/check\0"), &p));
	assert_null(adapter_http_find(STR("GET"), str_make(NULL, 0), &p));
}

static void test_adapters(void **state)
{
	(void)state;
	for (int door = 0; door < DOOR_COUNT; door++) {
		const struct adapter_http *a = adapter_http_of((enum door)door);

		if (door == DOOR_EXT_AUTHZ_GRPC) {
			assert_null(a);
			continue;
		}
		assert_non_null(a);
		assert_int_equal(a->door, door);
		assert_int_equal(a->takes_body, door == DOOR_CHECK);
		assert_int_equal(a->any_method, door != DOOR_CHECK);
	}
	assert_null(adapter_http_of(DOOR_COUNT));
}

/* ------------------------------------------------------------------------------------------------ documents */

static void test_methods_are_told(void **state)
{
	struct http_answer answer;
	struct problem p;

	(void)state;
	assert_null(adapter_http_find(STR("GET"), STR("/check"), &p));
	json_free(encode(&p, &answer));
	assert_int_equal(answer.status, 405);
	assert_int_equal(answer.n_headers, 3);
	assert_true(str_equal(answer.headers[2].name, STR("Allow")));
	assert_true(str_equal(answer.headers[2].value, STR("POST")));
}

static void test_document(void **state)
{
	struct http_answer answer;
	struct problem p;
	struct json *root;

	(void)state;
	problem_set(&p, PROBLEM_BODY_NOT_JSON, "%s \"%d\" \\", "a", 5);
	strcpy(p.pointer_z, "/a\"b\\\x01/\xc3\xa9\xe2\x82\xac");
	p.line = 3;
	p.column = 17;
	root = encode(&p, &answer);
	assert_int_equal(answer.status, 400);
	assert_int_equal(answer.n_headers, 2);
	assert_true(str_equal(answer.headers[0].value, STR("application/problem+json")));
	assert_true(str_equal(answer.headers[1].value, STR("no-store")));
	assert_member(root, "type", STR("urn:postern:problem:body-not-json"));
	assert_member(root, "code", STR("body_not_json"));
	assert_member(root, "title", STR("The body is not valid JSON"));
	assert_member(root, "detail", STR("a \"5\" \\"));
	assert_member(root, "pointer", str_from_z(p.pointer_z));
	assert_int_equal(json_integer_of(json_member(root, "status")), 400);
	assert_int_equal(json_integer_of(json_member(root, "line")), 3);
	assert_int_equal(json_integer_of(json_member(root, "column")), 17);
	json_free(root);
}

static void test_no_place_is_none(void **state)
{
	struct http_answer answer;
	struct problem p;
	struct json *root;

	(void)state;
	memset(&p, 0xa5, sizeof(p));
	problem_set(&p, PROBLEM_BODY_TOO_LARGE, "x");
	root = encode(&p, &answer);
	assert_int_equal(answer.status, 413);
	assert_int_equal(json_count(root), 5);
	assert_null(json_member(root, "pointer"));
	json_free(root);
}

/* Every code has an answer of its own that is never one a gateway could take for an allow. */
static void test_every_code(void **state)
{
	(void)state;
	for (int code = 0; code < PROBLEM_COUNT; code++) {
		struct http_answer answer;
		struct problem p;
		struct json *root;

		problem_set(&p, (enum problem_code)code, "x");
		root = encode(&p, &answer);
		assert_member(root, "code", problem_word((enum problem_code)code));
		assert_int_equal(answer.status, problem_http((enum problem_code)code));
		assert_true(answer.status == 0 || (answer.status >= 400 && answer.status <= 505));
		json_free(root);
	}
}

static void test_longest_document(void **state)
{
	struct http_answer answer;
	struct problem p;
	struct json *root;

	(void)state;
	problem_set(&p, PROBLEM_ILLEGAL_CHARACTER, "%0300d", 7);
	assert_int_equal(strlen(p.detail_z), sizeof(p.detail_z) - 1);
	memset(p.detail_z, '"', sizeof(p.detail_z) - 1);
	memset(p.pointer_z, '\x1f', sizeof(p.pointer_z) - 1);
	p.pointer_z[sizeof(p.pointer_z) - 1] = '\0';
	p.line = p.column = ~0u;
	root = encode(&p, &answer);
	assert_member(root, "detail", str_from_z(p.detail_z));
	assert_member(root, "pointer", str_from_z(p.pointer_z));
	json_free(root);
}

static int setup(void **state)
{
	(void)state;
	json_setup();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doors),
		cmocka_unit_test(test_hostile_target),
		cmocka_unit_test(test_adapters),
		cmocka_unit_test(test_methods_are_told),
		cmocka_unit_test(test_document),
		cmocka_unit_test(test_no_place_is_none),
		cmocka_unit_test(test_every_code),
		cmocka_unit_test(test_longest_document),
	};

	return cmocka_run_group_tests_name("problem", tests, setup, NULL);
}
