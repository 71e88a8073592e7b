/* SPDX-License-Identifier: MIT */
/*
 * The list of what is wrong with a configuration: its counts, and the one line a fault is printed as.
 */
#include "base/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_empty_list(void **state)
{
	struct fault_list list;

	(void)state;
	fault_list_init(&list);
	assert_int_equal(list.n, 0);
	fault_list_done(&list);
	fault_list_done(&list);
}

static void test_grows_in_order_and_counts(void **state)
{
	struct fault_list list;

	(void)state;
	fault_list_init(&list);
	for (int i = 0; i < 100; i++)
		assert_non_null(fault_add(&list, i % 4 == 0 ? FAULT_WARNING : FAULT_ERROR, "wrong_type",
			"/rules", "number %d", i));
	assert_int_equal(list.n, 100);
	assert_int_equal(list.n_errors, 75);
	assert_int_equal(list.n_warnings, 25);
	for (size_t i = 0; i < list.n; i++) {
		char expected_z[32];

		(void)snprintf(expected_z, sizeof(expected_z), "number %zu", i);
		assert_string_equal(list.items[i].text_z, expected_z);
		assert_string_equal(list.items[i].pointer_z, "/rules");
		assert_string_equal(list.items[i].file_z, "");
		assert_int_equal(list.items[i].line, 0);
	}
	fault_list_done(&list);
	assert_null(list.items);
	assert_int_equal(list.n_errors, 0);
}

static void test_text_is_plain_and_cut(void **state)
{
	struct fault_list list;
	char long_z[2000];
	struct fault *f;

	(void)state;
	memset(long_z, 'x', sizeof(long_z) - 1);
	long_z[sizeof(long_z) - 1] = '\0';
	fault_list_init(&list);
	f = fault_add(&list, FAULT_ERROR, "bad_syntax", long_z, "a\x1b[2J\nb\xc3\xbc%s", "!");
	assert_string_equal(f->text_z, "a?[2J?b"
				       "?"
				       "?!");
	assert_int_equal(strlen(f->pointer_z), sizeof(f->pointer_z) - 1);
	f = fault_add(&list, FAULT_ERROR, "bad_syntax", "", "%s", long_z);
	assert_int_equal(strlen(f->text_z), sizeof(f->text_z) - 1);
	fault_list_done(&list);
}

static const struct {
	struct fault fault;
	const char *expected_z;
} printed[] = {
	{{FAULT_ERROR, "unknown_member", "/rules/2/limts", 14, 7, "postern.json",
		 "unknown member (did you mean \"limits\"?)"},
		"postern.json:14:7: /rules/2/limts: error: unknown member (did you mean \"limits\"?) "
		"[unknown_member]"},
	{{FAULT_WARNING, "risky", "", 0, 0, "postern.json", "anybody may ask"},
		"postern.json: warning: anybody may ask [risky]"},
	{{FAULT_ERROR, "body_not_json", "", 3, 0, "a.json", "the text is empty"},
		"a.json:3: error: the text is empty [body_not_json]"},
	{{FAULT_ERROR, "wrong_type", "/rate", 0, 9, "a.json", "must be a string"},
		"a.json: /rate: error: must be a string [wrong_type]"},
	{{FAULT_ERROR, "bad_syntax", "", 0, 0, "", "--rate: no unit"}, "error: --rate: no unit [bad_syntax]"},
	{{FAULT_ERROR, "bad_syntax", "/a", 2, 1, "", "no unit"}, "2:1: /a: error: no unit [bad_syntax]"},
	{{FAULT_ERROR, "unknown_member", "/\x1b[2J\n\xe2\x80\xae", 1, 1, "a\nb", "unknown member"},
		"a\\x0ab:1:1: /\\x1b[2J\\x0a\\xe2\\x80\\xae: error: unknown member [unknown_member]"},
};

static void test_print(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]); i++) {
		char out[400];
		size_t len = fault_print(&printed[i].fault, out, sizeof(out));

		assert_string_equal(out, printed[i].expected_z);
		assert_int_equal(len, strlen(out));
	}
}

static void test_print_cuts(void **state)
{
	const struct fault *f = &printed[0].fault;
	char out[16] = "untouched";

	(void)state;
	assert_int_equal(fault_print(f, out, 0), 0);
	assert_string_equal(out, "untouched");
	assert_int_equal(fault_print(f, out, 1), 0);
	assert_string_equal(out, "");
	assert_int_equal(fault_print(f, out, 8), 7);
	assert_string_equal(out, "postern");
}

static void test_print_of_the_longest(void **state)
{
	struct fault f = {.severity = FAULT_WARNING,
		.code = "not_in_this_version",
		.line = UINT32_MAX,
		.column = UINT32_MAX};
	char out[8192];
	size_t len;

	(void)state;
	memset(f.pointer_z, 0x9b, sizeof(f.pointer_z) - 1);
	memset(f.file_z, 0x9b, sizeof(f.file_z) - 1);
	memset(f.text_z, 'x', sizeof(f.text_z) - 1);
	len = fault_print(&f, out, sizeof(out));
	assert_int_equal(len, strlen(out));
	assert_string_equal(out + len - strlen("x [not_in_this_version]"), "x [not_in_this_version]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_list),
		cmocka_unit_test(test_grows_in_order_and_counts),
		cmocka_unit_test(test_text_is_plain_and_cut),
		cmocka_unit_test(test_print),
		cmocka_unit_test(test_print_cuts),
		cmocka_unit_test(test_print_of_the_longest),
	};

	return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
