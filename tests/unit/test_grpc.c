/* SPDX-License-Identifier: MIT */
/*
 * The small readers and writers of gRPC: times and messages in headers.
 */
#include "server/grpc_call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void timeouts(void **state)
{
	static const struct {
		const char *text_z;
		ns want;
	} good[] = {
		{"200m", 200 * NS_PER_MS},
		{"20m", 20 * NS_PER_MS},
		{"0m", 0},
		{"00000001S", NS_PER_S},
		{"1H", 3600 * NS_PER_S},
		{"2M", 120 * NS_PER_S},
		{"5u", 5000},
		{"7n", 7},
		{"99999999S", 99999999 * NS_PER_S},
		{"99999999H", UINT64_MAX},
	};
	static const char *const bad[] = {"", "m", "1", "1x", "1 m", " 1m", "1m ", "-1m", "+1m", "1.5S", "123456789m", "1mm", "0x1m"};
	ns got = 1;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_true(call_timeout_parse(str_from_z(good[i].text_z), &got));
		assert_true(got == good[i].want);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(call_timeout_parse(str_from_z(bad[i]), &got));
	assert_false(call_timeout_parse(str_make("1\0m", 3), &got));
}

static void assert_encoded(struct str from, const char *want_z)
{
	char out[64];
	size_t n = call_detail_encode(from, out, sizeof(out));

	assert_int_equal(n, strlen(want_z));
	assert_memory_equal(out, want_z, n);
}

static void details(void **state)
{
	char out[64], long_text[200];

	(void)state;
	assert_encoded(STR(""), "");
	assert_encoded(STR("plain, with ~ and \"quotes\""), "plain, with ~ and \"quotes\"");
	assert_encoded(STR("100%\r\n\t"), "100%25%0D%0A%09");
	assert_encoded(str_make("\0\xff\x7f\xc3\xa4", 5), "%00%FF%7F%C3%A4");
	memset(long_text, '\n', sizeof(long_text));
	assert_int_equal(call_detail_encode(str_make(long_text, sizeof(long_text)), out, sizeof(out)), 63);
	memset(long_text, 'a', sizeof(long_text));
	assert_true(call_detail_encode(str_make(long_text, sizeof(long_text)), out, sizeof(out)) <= sizeof(out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts),
		cmocka_unit_test(details),
	};

	return cmocka_run_group_tests_name("grpc", tests, NULL, NULL);
}
