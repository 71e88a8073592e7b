/* SPDX-License-Identifier: MIT */
/*
 * Writing by hand: exact bytes, and no byte behind the buffer at any size of it.
 */
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

static void assert_text(const struct text *t, struct str expected)
{
	assert_false(t->overflow);
	assert_int_equal(t->len, expected.len);
	assert_memory_equal(t->ptr, expected.ptr, expected.len);
}

static void test_u64(void **state)
{
	char buffer[32], expected[32];
	struct text t;

	(void)state;
	/* Both sides of every change of length, and the ends. */
	for (uint64_t v = 1, i = 0; i < 20; i++, v *= 10) {
		const uint64_t near[] = {v - 1, v, v + 1, v * 9 + 9};

		for (size_t k = 0; k < 4; k++) {
			int len = snprintf(expected, sizeof(expected), "%" PRIu64, near[k]);

			text_init(&t, buffer, sizeof(buffer));
			text_u64(&t, near[k]);
			assert_text(&t, str_make(expected, (size_t)len));
		}
	}
	text_init(&t, buffer, sizeof(buffer));
	text_u64(&t, UINT64_MAX);
	assert_text(&t, STR("18446744073709551615"));
}

static void test_json(void **state)
{
	char buffer[2048], expected[16];
	struct text t;

	(void)state;
	text_init(&t, buffer, sizeof(buffer));
	text_json(&t, STR("a\"b\\c\n/\x7f\x80\xff\0z"));
	assert_text(&t, STR("\"a\\\"b\\\\c\\u000a/\\u007f\\u0080\\u00ff\\u0000z\""));
	text_init(&t, buffer, sizeof(buffer));
	text_json(&t, (struct str){NULL, 0});
	assert_text(&t, STR("\"\""));
	for (unsigned c = 0; c < 256; c++) {
		char one = (char)c;
		int len;

		if (c == '"' || c == '\\')
			len = snprintf(expected, sizeof(expected), "\"\\%c\"", one);
		else if (c >= 0x20 && c <= 0x7e)
			len = snprintf(expected, sizeof(expected), "\"%c\"", one);
		else
			len = snprintf(expected, sizeof(expected), "\"\\u%04x\"", c);
		text_init(&t, buffer, sizeof(buffer));
		text_json(&t, str_make(&one, 1));
		assert_text(&t, str_make(expected, (size_t)len));
	}
}

static void test_visible(void **state)
{
	char buffer[64];
	struct text t;

	(void)state;
	text_init(&t, buffer, sizeof(buffer));
	text_visible(&t, STR("ok \x1b[0m\\\xff\0"), 100);
	assert_text(&t, STR("ok \\x1b[0m\\\\\\xff\\x00"));
	text_init(&t, buffer, sizeof(buffer));
	text_visible(&t, STR("abcdef"), 3);
	assert_text(&t, STR("abc..."));
	text_init(&t, buffer, sizeof(buffer));
	text_visible(&t, STR("abc"), 3);
	assert_text(&t, STR("abc"));
	text_init(&t, buffer, sizeof(buffer));
	text_visible(&t, (struct str){NULL, 0}, 0);
	assert_text(&t, STR(""));
}

static void write_everything(struct text *t)
{
	text_char(t, '{');
	text_json(t, STR("a\n\"\x80"));
	text_z(t, ": ");
	text_u64(t, 1234567);
	text_str(t, STR(", "));
	text_visible(t, STR("\x01\\xyz"), 3);
	text_char(t, '}');
}

static void test_overflow(void **state)
{
	char whole[128], buffer[128];
	struct text t;
	size_t need;

	(void)state;
	text_init(&t, whole, sizeof(whole));
	write_everything(&t);
	assert_false(t.overflow);
	need = t.len;
	for (size_t cap = 0; cap <= need; cap++) {
		memset(buffer, '#', sizeof(buffer));
		text_init(&t, buffer, cap);
		write_everything(&t);
		assert_int_equal(t.overflow, cap < need);
		assert_true(t.len <= cap);
		assert_memory_equal(buffer, whole, t.len);
		for (size_t i = t.len; i < sizeof(buffer); i++)
			assert_int_equal(buffer[i], '#');
		assert_int_equal(text_view(&t).len, t.len);
	}
}

static void test_overflow_is_sticky(void **state)
{
	char buffer[4];
	struct text t;

	(void)state;
	text_init(&t, buffer, sizeof(buffer));
	text_str(&t, STR("ab"));
	text_str(&t, STR("cdefg"));
	text_char(&t, 'h');
	text_str(&t, STR(""));
	assert_true(t.overflow);
	assert_true(str_equal(text_view(&t), STR("ab")));
}

static void test_arena(void **state)
{
	_Alignas(16) char block[64];
	struct arena a;
	struct text t;

	(void)state;
	arena_init(&a, block, sizeof(block));
	text_init_arena(&t, &a, 64);
	text_z(&t, "in the arena");
	assert_text(&t, STR("in the arena"));
	assert_ptr_equal(t.ptr, block);
	text_init_arena(&t, &a, 1);
	assert_true(t.overflow);
	text_z(&t, "x");
	assert_int_equal(text_view(&t).len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_u64),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_visible),
		cmocka_unit_test(test_overflow),
		cmocka_unit_test(test_overflow_is_sticky),
		cmocka_unit_test(test_arena),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
