/* SPDX-License-Identifier: MIT */
/*
 * Slices: every function with the empty slice, with bytes that a terminator-minded function would trip over,
 * and at the edges of its arithmetic.
 */
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct str none = {NULL, 0};

static void test_compare(void **state)
{
	(void)state;
	assert_true(str_equal(none, STR("")));
	assert_true(str_equal(STR("a\0b"), STR("a\0b")));
	assert_false(str_equal(STR("a\0b"), STR("a\0c")));
	assert_true(str_equal_nocase(STR("X-Forwarded-FOR"), STR("x-forwarded-for")));
	assert_false(str_equal_nocase(STR("x_forwarded"), STR("x-forwarded")));
	/* '@' and '[' stand beside the letters, and 0xc1 is A with the top bit set. */
	assert_false(str_equal_nocase(STR("@"), STR("`")));
	assert_false(str_equal_nocase(STR("["), STR("{")));
	assert_false(str_equal_nocase(STR("\xc1"), STR("\xe1")));
	assert_true(str_equal_nocase(none, STR("")));
	assert_true(str_compare(STR("a"), STR("b")) < 0);
	assert_true(str_compare(STR("a"), STR("aa")) < 0);
	assert_true(str_compare(STR("\x80"), STR("a")) > 0);
	assert_int_equal(str_compare(none, STR("")), 0);
	assert_true(str_compare(none, STR("a")) < 0);
}

static void test_ends(void **state)
{
	(void)state;
	assert_true(str_starts_with(STR("unix:/x"), STR("unix:")));
	assert_false(str_starts_with(STR("unix"), STR("unix:")));
	assert_true(str_starts_with(none, none));
	assert_true(str_starts_with_nocase(STR("BEARER x"), STR("Bearer ")));
	assert_false(str_starts_with_nocase(STR("BEARE"), STR("Bearer")));
	assert_true(str_ends_with(STR("a/*"), STR("/*")));
	assert_false(str_ends_with(STR("*"), STR("/*")));
	assert_true(str_ends_with(STR("x"), none));
}

static void test_find(void **state)
{
	(void)state;
	assert_int_equal(str_find(STR("a,b,c"), ','), 1);
	assert_int_equal(str_find_last(STR("a,b,c"), ','), 3);
	assert_int_equal(str_find(STR("abc"), ','), 3);
	assert_int_equal(str_find_last(STR("abc"), ','), 3);
	assert_int_equal(str_find(STR("a\0,"), ','), 2);
	assert_int_equal(str_find(STR("a\xff"), '\xff'), 1);
	assert_int_equal(str_find(none, 'a'), 0);
	assert_int_equal(str_find_last(none, 'a'), 0);
}

static void test_cut(void **state)
{
	(void)state;
	assert_true(str_equal(str_from(STR("abc"), 1), STR("bc")));
	assert_true(str_equal(str_from(STR("abc"), 0), STR("abc")));
	assert_int_equal(str_from(STR("abc"), 9).len, 0);
	assert_int_equal(str_from(none, 9).len, 0);
	assert_true(str_equal(str_head(STR("abc"), 2), STR("ab")));
	assert_true(str_equal(str_head(STR("abc"), 9), STR("abc")));
	assert_true(str_equal(str_trim(STR(" \t a b\t ")), STR("a b")));
	assert_int_equal(str_trim(STR(" \t ")).len, 0);
	assert_int_equal(str_trim(none).len, 0);
	/* Only space and tab are trimmed. */
	assert_int_equal(str_trim(STR("\va\n")).len, 3);
}

static void test_to_u64(void **state)
{
	static const struct str bad[] = {STR(""), STR("00"), STR("01"), STR("+1"), STR("-1"), STR(" 1"),
		STR("1 "), STR("1x"), STR("0x1"), STR("18446744073709551616"), STR("99999999999999999999"),
		STR("1\0")};
	uint64_t v = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(str_to_u64(bad[i], UINT64_MAX, &v));
	assert_false(str_to_u64(STR("65536"), 65535, &v));
	assert_false(str_to_u64(STR("655350"), 65535, &v));
	assert_false(str_to_u64(STR("9"), 8, &v));
	assert_false(str_to_u64(STR("1"), 0, &v));
	assert_int_equal(v, 7);
	assert_true(str_to_u64(STR("0"), 0, &v));
	assert_int_equal(v, 0);
	assert_true(str_to_u64(STR("65535"), 65535, &v));
	assert_int_equal(v, 65535);
	assert_true(str_to_u64(STR("18446744073709551615"), UINT64_MAX, &v));
	assert_true(v == UINT64_MAX);
}

static void test_token(void **state)
{
	(void)state;
	assert_true(str_is_token(STR("X-Forwarded-For")));
	assert_true(str_is_token(STR("!#$%&'*+-.^_`|~09azAZ")));
	assert_false(str_is_token(none));
	for (unsigned c = 0; c < 256; c++) {
		char one = (char)c;
		static const char others[] = "\"(),/:;<=>?@[\\]{}";
		bool expected = c > 0x20 && c < 0x7f && memchr(others, (int)c, sizeof(others) - 1) == NULL;

		assert_int_equal(str_is_token(str_make(&one, 1)), expected);
	}
}

static size_t plain_slowly(struct str s)
{
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= ' ' && s.ptr[n] <= '~' && s.ptr[n] != '"' && s.ptr[n] != '\\')
		n++;
	return n;
}

/* Every byte at every place, in front of and behind every other kind, at lengths around the eight bytes taken at once. */
static void test_plain(void **state)
{
	static const char around[] = {
		' ', '~', '!', '#', '[', ']', 'a', '\x7f', '\x1f', '"', '\\', '\x80', '\xff', '\0'};
	char bytes[26];

	(void)state;
	assert_int_equal(str_plain(str_make(NULL, 0)), 0);
	for (size_t fill = 0; fill < sizeof(around); fill++)
		for (size_t len = 1; len <= sizeof(bytes); len++)
			for (size_t at = 0; at < len; at++)
				for (int c = 0; c < 256; c++) {
					memset(bytes, 'a', at);
					memset(bytes + at, around[fill], len - at);
					bytes[at] = (char)c;
					assert_int_equal(str_plain(str_make(bytes, len)),
						plain_slowly(str_make(bytes, len)));
				}
}

static void test_nearest(void **state)
{
	static const struct str names[] = {
		STR("limits"), STR("listen"), STR("rules"), STR("trusted_proxies"), STR("grpc")};
	const size_t n = sizeof(names) / sizeof(names[0]);
	char longest[200];

	(void)state;
	assert_int_equal(str_nearest(STR("limts"), names, n), 0);
	assert_int_equal(str_nearest(STR("Limits"), names, n), 0);
	assert_int_equal(str_nearest(STR("lisetn"), names, n), 1);
	assert_int_equal(str_nearest(STR("RULES"), names, n), n);
	assert_int_equal(str_nearest(STR("trusted_proxy"), names, n), 3);
	assert_int_equal(str_nearest(STR("gprc"), names, n), 4);
	assert_int_equal(str_nearest(STR("rule"), names, n), 2);
	assert_int_equal(str_nearest(STR("xyz"), names, n), n);
	assert_int_equal(str_nearest(none, names, n), n);
	assert_int_equal(str_nearest(STR("x"), names, 0), 0);
	memset(longest, 'a', sizeof(longest));
	assert_int_equal(str_nearest(str_make(longest, sizeof(longest)), names, n), n);
}

static void test_hex(void **state)
{
	const uint8_t bytes[] = {0x00, 0x9f, 0xa0, 0xff};
	uint8_t back[4] = {1, 2, 3, 4};
	char out[9];

	(void)state;
	str_hex(bytes, sizeof(bytes), out);
	assert_string_equal(out, "009fa0ff");
	str_hex(bytes, 0, out);
	assert_string_equal(out, "");
	assert_false(str_unhex(STR("009fa0f"), back, 4));
	assert_false(str_unhex(STR("009fa0fff"), back, 4));
	assert_false(str_unhex(STR("009fa0fg"), back, 4));
	assert_false(str_unhex(STR("009fa0f\0"), back, 4));
	assert_false(str_unhex(STR("0x9fa0ff"), back, 4));
	assert_int_equal(back[3], 4);
	assert_true(str_unhex(STR("009FA0fF"), back, 4));
	assert_memory_equal(back, bytes, 4);
	assert_true(str_unhex(none, back, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_compare),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_to_u64),
		cmocka_unit_test(test_token),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_hex),
	};

	return cmocka_run_group_tests_name("str", tests, NULL, NULL);
}
