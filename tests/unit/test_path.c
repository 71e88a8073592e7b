/* SPDX-License-Identifier: MIT */
/*
 * Spellings that have been used to walk around a rule on a path, and what both views make of them. A row is wrong if
 * either view is: rules look at both.
 */
#include "core/path.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct row {
	struct str said, raw, normalised;
};

#define S(literal)                                                                                           \
	{                                                                                                    \
		literal, sizeof(literal) - 1                                                                 \
	}
#define ROW(said, raw, normalised)                                                                           \
	{                                                                                                    \
		S(said), S(raw), S(normalised)                                                               \
	}

static const struct row rows[] = {
	/* nothing to do */
	ROW("/", "/", "/"),
	ROW("/login", "/login", "/login"),
	ROW("/api/v1/users", "/api/v1/users", "/api/v1/users"),
	ROW("/.well-known/x", "/.well-known/x", "/.well-known/x"),
	ROW("/a/...", "/a/...", "/a/..."),
	ROW("/a/.b/..c/d.", "/a/.b/..c/d.", "/a/.b/..c/d."),
	ROW("/login.", "/login.", "/login."),
	ROW("/login ", "/login ", "/login "),
	ROW("", "", ""),
	ROW("*", "*", "*"),
	/* query and fragment */
	ROW("/login?x=1", "/login", "/login"),
	ROW("/login?", "/login", "/login"),
	ROW("/login?/../admin", "/login", "/login"),
	ROW("/login#top", "/login", "/login"),
	ROW("/login#?", "/login", "/login"),
	ROW("/login?a#b", "/login", "/login"),
	ROW("/public#/../admin", "/public", "/public"),
	ROW("?x=1", "", ""),
	ROW("#", "", ""),
	ROW("/login%3Fx", "/login%3Fx", "/login?x"),
	ROW("/login%23x", "/login%23x", "/login#x"),
	/* decoding, once */
	ROW("/%6Cogin", "/%6Cogin", "/login"),
	ROW("/%6cogin", "/%6cogin", "/login"),
	ROW("%2Flogin", "%2Flogin", "/login"),
	ROW("/%256cogin", "/%256cogin", "/%6cogin"),
	ROW("/a%252fb", "/a%252fb", "/a%2fb"),
	ROW("/a%25%32%66b", "/a%25%32%66b", "/a%2fb"),
	ROW("/a%2Fb", "/a%2Fb", "/a/b"),
	ROW("/a%2fb%2f", "/a%2fb%2f", "/a/b"),
	ROW("/100%", "/100%", "/100%"),
	ROW("/a%2", "/a%2", "/a%2"),
	ROW("/a%zz", "/a%zz", "/a%zz"),
	ROW("/a%%41", "/a%%41", "/a%A"),
	ROW("/a%+1b", "/a%+1b", "/a%+1b"),
	ROW("/a+b", "/a+b", "/a+b"),
	ROW("/a%20b", "/a%20b", "/a b"),
	ROW("/%75%6e%69", "/%75%6e%69", "/uni"),
	ROW("/%u002e%u002e/x", "/%u002e%u002e/x", "/%u002e%u002e/x"),
	/* any byte may come out */
	ROW("/login%00", "/login%00", "/login\0"),
	ROW("/a%00/../b", "/a%00/../b", "/b"),
	ROW("/a\0b", "/a\0b", "/a\0b"),
	ROW("/%0d%0aX:y", "/%0d%0aX:y", "/\r\nX:y"),
	ROW("/%ff%fe", "/%ff%fe", "/\xff\xfe"),
	ROW("/\xc3\xa4", "/\xc3\xa4", "/\xc3\xa4"),
	ROW("/%c3%a4", "/%c3%a4", "/\xc3\xa4"),
	ROW("/a/%c0%ae%c0%ae/b", "/a/%c0%ae%c0%ae/b", "/a/\xc0\xae\xc0\xae/b"),
	ROW("/a/%c0%af../b", "/a/%c0%af../b", "/a/\xc0\xaf../b"),
	/* empty segments and the slash at the end */
	ROW("//login", "//login", "/login"),
	ROW("///", "///", "/"),
	ROW("/login/", "/login/", "/login"),
	ROW("/login//", "/login//", "/login"),
	ROW("/a//b///c", "/a//b///c", "/a/b/c"),
	ROW("/a/%2f/b", "/a/%2f/b", "/a/b"),
	ROW("//evil.example/login", "//evil.example/login", "/evil.example/login"),
	/* dot segments */
	ROW("/.", "/.", "/"),
	ROW("/..", "/..", "/"),
	ROW("/./login", "/./login", "/login"),
	ROW("/login/.", "/login/.", "/login"),
	ROW("/login/..", "/login/..", "/"),
	ROW("/x/../login", "/x/../login", "/login"),
	ROW("/a/b/../../login", "/a/b/../../login", "/login"),
	ROW("/a/../../../login", "/a/../../../login", "/login"),
	ROW("/a/../..", "/a/../..", "/"),
	ROW("/a/b/..", "/a/b/..", "/a"),
	ROW("/a/b/../c/", "/a/b/../c/", "/a/c"),
	ROW("/a//../b", "/a//../b", "/b"),
	ROW("/%2e/login", "/%2e/login", "/login"),
	ROW("/x/%2e%2e/login", "/x/%2e%2e/login", "/login"),
	ROW("/x/.%2E/login", "/x/.%2E/login", "/login"),
	ROW("/x%2f..%2flogin", "/x%2f..%2flogin", "/login"),
	ROW("/x/%2e%2e%2flogin", "/x/%2e%2e%2flogin", "/login"),
	ROW("/x/%252e%252e/login", "/x/%252e%252e/login", "/x/%2e%2e/login"),
	ROW("/a/.../b", "/a/.../b", "/a/.../b"),
	ROW("/a/.. /b", "/a/.. /b", "/a/.. /b"),
	/* parameters */
	ROW("/login;v=1", "/login;v=1", "/login"),
	ROW("/login;", "/login;", "/login"),
	ROW("/login;a=b;c/", "/login;a=b;c/", "/login"),
	ROW("/a;x/b;y/c", "/a;x/b;y/c", "/a/b/c"),
	ROW("/;/login", "/;/login", "/login"),
	ROW("/;x", "/;x", "/"),
	ROW("/x/..;/login", "/x/..;/login", "/login"),
	ROW("/x/..;a=b/login", "/x/..;a=b/login", "/login"),
	ROW("/./;x/.;y/login", "/./;x/.;y/login", "/login"),
	ROW("/login%3Bv=1", "/login%3Bv=1", "/login"),
	ROW("/x/%2e%2e%3b/login", "/x/%2e%2e%3b/login", "/login"),
	ROW("/x;/../login", "/x;/../login", "/login"),
	ROW("/public;%2f..%2flogin", "/public;%2f..%2flogin", "/login"),
	ROW("/a;?b", "/a;", "/a"),
	/* a backslash is no slash */
	ROW("/x\\..\\login", "/x\\..\\login", "/x\\..\\login"),
	ROW("/x/..\\login", "/x/..\\login", "/x/..\\login"),
	ROW("/x/..%5clogin", "/x/..%5clogin", "/x/..\\login"),
	ROW("\\login", "\\login", "\\login"),
	/* absolute form */
	ROW("http://host/login", "/login", "/login"),
	ROW("HTTPS://user:pw@host:443/login?x", "/login", "/login"),
	ROW("http://host", "/", "/"),
	ROW("http://host?x=/login", "/", "/"),
	ROW("http://host#/login", "/", "/"),
	ROW("http:///login", "/login", "/login"),
	ROW("http://[::1]:80//a/../login;x", "//a/../login;x", "/login"),
	ROW("h2+x-1.0://host/login", "/login", "/login"),
	ROW("http://host%2flogin/x", "/x", "/x"),
	ROW("http:/login", "http:/login", "http:/login"),
	ROW("1http://host/login", "1http://host/login", "1http:/host/login"),
	ROW("://host/login", "://host/login", ":/host/login"),
	ROW("/http://host/login", "/http://host/login", "/http:/host/login"),
	/* no slash at the start: no server takes these, so they are only kept in order */
	ROW("login", "login", "login"),
	ROW("login/", "login/", "login"),
	ROW("a/../../b", "a/../../b", "b"),
	ROW(".", ".", ""),
	ROW("..", "..", ""),
	ROW("a//b/./c", "a//b/./c", "a/b/c"),
	ROW("host:443", "host:443", "host:443"),
	ROW(" /login", " /login", " /login"),
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void assert_str(struct str got, struct str want)
{
	assert_int_equal(got.len, want.len);
	if (want.len > 0)
		assert_memory_equal(got.ptr, want.ptr, want.len);
}

static void test_rows(void **state)
{
	_Alignas(16) char block[1024];
	struct arena a;
	size_t i;

	(void)state;
	arena_init(&a, block, sizeof(block));
	for (i = 0; i < N_ROWS; i++) {
		struct path_views got;

		arena_reset(&a);
		print_message("%s\n", rows[i].said.ptr);
		got = path_look(rows[i].said, &a);
		assert_str(got.raw, rows[i].raw);
		assert_str(got.normalised, rows[i].normalised);
		assert_str(path_normalise(rows[i].said, &a), rows[i].normalised);
		assert_false(a.overflow);
	}
}

/* What came out holds nothing that a second look would resolve: dots, empty segments, a slash at the end. */
static void test_result_is_resolved(void **state)
{
	_Alignas(16) char block[1024];
	struct arena a;
	size_t i, k;

	(void)state;
	for (i = 0; i < N_ROWS; i++) {
		struct str p;

		arena_init(&a, block, sizeof(block));
		p = path_normalise(rows[i].said, &a);
		for (k = 0; k < p.len; k++) {
			struct str rest;

			if (p.ptr[k] != '/')
				continue;
			if (k + 1 == p.len) {
				assert_int_equal(p.len, 1);
				break;
			}
			rest = str_from(p, k + 1);
			rest = str_head(rest, str_find(rest, '/'));
			assert_false(str_equal(rest, STR("")) || str_equal(rest, STR(".")) ||
				     str_equal(rest, STR("..")));
		}
	}
}

static const struct {
	struct str said, reading; /* one of those, or none if empty: the path is not in doubt */
} others[] = {
	/* what real servers made of them */
	{S("/%69nternal/;/../x"), S("/internal/x")}, /* nginx, Caddy, Python: ";" is a name like any other */
	{S("//internal/;/../x"), S("//internal/x")},
	{S("/%69nternal/%3b/../x"), S("/internal/x")},
	{S("/z/../internal//../x"), S("/internal/x")}, /* Envoy without merge_slashes, Node: an empty name is one */
	{S("/q/z//../../internal/;/../x"), S("/internal/x")},
	{S("/%69nternal/../x"), S("/internal/../x")}, /* WSGI: decoded, nothing else */
	{S("/%69nternal/..%2fx"), S("/internal/../x")},
	{S("/%69nternal/a%2f../../x"), S("/internal/x")}, /* ASP.NET: "%2f" is no slash */
	{S("/%69nternal/%2e%2e/../x"), S("/internal/x")}, /* who resolves first and decodes later */
	{S("/internal\\x"), S("/internal/x")}, /* JavaScript's URL: a backslash is a slash */
	{S("/q\\..\\internal\\x"), S("/internal/x")},
	{S("/internal%5cx"), S("/internal/x")}, /* IIS */
	{S("/%69nternal\\a%2f..\\..\\x"), S("/internal/x")},
	/* empty names are kept one by one, and one that goes takes no other along */
	{S("//a/../x"), S("//x")},
	{S("//../x"), S("/x")},
	{S("///../x"), S("//x")},
	{S("/a/../"), S("/")},
	{S("http://host/%69nternal/;/../x"), S("/internal/x")},
	/* "..;" is the parent to those that know parameters */
	{S("/a/..;/x"), S("/a/..;/x")},
	{S("/a/..;b"), S("/a/..;b")},
	/* nobody reads these in another way that matters */
	{S("/a/b"), S("")},
	{S("/a//b/"), S("")},
	{S("/a;x/b%20c"), S("")},
	{S("/a/.../b"), S("")},
	{S("/a/..b/c"), S("")},
	{S("/a/b../c"), S("")},
	{S("/a?/../b\\"), S("")},
};

static void test_readings(void **state)
{
	_Alignas(16) char block[256];
	char room[64];
	struct arena a;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct path_views v;
		struct str reading;
		bool found = false;

		arena_init(&a, block, sizeof(block));
		print_message("%s\n", others[i].said.ptr);
		v = path_look(others[i].said, &a);
		assert_int_equal(v.doubtful, others[i].reading.len > 0);
		for (unsigned n = 0; path_reading(v.raw, n, room, &reading); n++) {
			assert_ptr_equal(reading.ptr, room);
			assert_true(reading.len <= v.raw.len);
			found = found || str_equal(reading, others[i].reading);
		}
		assert_true(found || !v.doubtful);
	}
}

static void test_plain_is_a_view(void **state)
{
	struct arena a;
	struct str said = STR("/api/users?x=1");
	struct path_views got;

	(void)state;
	arena_init(&a, NULL, 0);
	got = path_look(said, &a);
	assert_ptr_equal(got.raw.ptr, said.ptr);
	assert_ptr_equal(got.normalised.ptr, said.ptr);
	assert_int_equal(got.normalised.len, 10);
	assert_false(a.overflow);
	said = STR("/api/x");
	assert_ptr_equal(path_fold_case(said, &a).ptr, said.ptr);
	assert_false(a.overflow);
}

static void test_full_arena(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a, NULL, 0);
	assert_null(path_normalise(STR("/a/../b"), &a).ptr);
	assert_true(a.overflow);
	arena_init(&a, NULL, 0);
	assert_null(path_fold_case(STR("/A"), &a).ptr);
	assert_true(a.overflow);
}

static void test_fold_case(void **state)
{
	_Alignas(16) char block[64];
	struct arena a;

	(void)state;
	arena_init(&a, block, sizeof(block));
	assert_str(path_fold_case(STR("/Log/IN[@`{\xc4"), &a), STR("/log/in[@`{\xc4"));
	assert_str(path_fold_case(STR("/aZ"), &a), STR("/az"));
	assert_str(path_fold_case(STR(""), &a), STR(""));
}

/* A long path of segments that all go away again: linear, and exact. */
static void test_long(void **state)
{
	enum { PAIRS = 4000 };
	static char said[PAIRS * 5 + 6], block[sizeof(said) + 32];
	struct arena a;
	size_t i;

	(void)state;
	for (i = 0; i < PAIRS; i++)
		memcpy(said + i * 5, i < PAIRS / 2 ? "/aaaa" : "/../.", 5);
	memcpy(said + PAIRS * 5, "/login", 6);
	arena_init(&a, block, sizeof(block));
	assert_str(path_normalise(str_make(said, sizeof(said)), &a), STR("/login"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_result_is_resolved),
		cmocka_unit_test(test_readings),
		cmocka_unit_test(test_plain_is_a_view),
		cmocka_unit_test(test_full_arena),
		cmocka_unit_test(test_fold_case),
		cmocka_unit_test(test_long),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
