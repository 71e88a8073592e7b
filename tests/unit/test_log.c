/* SPDX-License-Identifier: MIT */
/*
 * The log writes into one end of a pair of sockets that keep messages apart, so that a line which took two writes would
 * arrive as two. Lines in JSON form are read back with json.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define TIME_BYTES (sizeof("2026-01-02T03:04:05.678901Z") - 1)

static int ends[2];
static char line[65536];

static int open_ends(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends);
}

static int close_ends(void **state)
{
	(void)state;
	return close(ends[0]) | close(ends[1]);
}

/* One message without its line feed, or an empty one if there is none. */
static struct str receive(void)
{
	ssize_t n = recv(ends[0], line, sizeof(line), 0);

	if (n < 0)
		return str_make(NULL, 0);
	assert_true(n > 0 && n <= PIPE_BUF);
	assert_int_equal(line[n - 1], '\n');
	for (ssize_t i = 0; i < n - 1; i++)
		assert_true(line[i] >= ' ' && line[i] <= '~');
	return str_make(line, (size_t)n - 1);
}

/* In text form, behind the time. */
static void expect_text(const char *expected_z)
{
	struct str s = receive();

	assert_true(s.len > TIME_BYTES);
	line[s.len] = '\0';
	assert_string_equal(line + TIME_BYTES, expected_z);
}

static struct json *receive_json(void)
{
	struct json_fault fault;
	struct json *root;

	assert_int_equal(json_read(&root, receive(), &fault), ERR_OK);
	return root;
}

static void expect_member(const struct json *root, const char *name_z, const char *expected_z)
{
	const struct json *v = json_member(root, name_z);

	assert_non_null(v);
	assert_true(str_equal(json_text(v), str_from_z(expected_z)));
}

static void test_text_form(void **state)
{
	const struct log_field fields[] = {
		LOG_Z("door", "check"),
		LOG_NUM("dur_us", 7),
		LOG_STR("identity", str_make(NULL, 0)),
		LOG_Z("path", "/a b"),
		LOG_Z("quote", "\" identity=\"edge"),
		LOG_Z("equals", "a=b"),
		LOG_Z("slash", "a\\b"),
		LOG_NUM("most", UINT64_MAX),
	};

	(void)state;
	log_setup(LOG_DEBUG, LOG_TEXT, ends[1]);
	log_write(LOG_INFO, "decision", STR("deny"), fields, 8);
	expect_text(" info decision: deny door=check dur_us=7 identity=\"\" path=\"/a b\" quote=\"\\\" "
		    "identity=\\\"edge\""
		    " equals=\"a=b\" slash=\"a\\\\b\" most=18446744073709551615");
	log_say(LOG_ERROR, "start_failed", "port %d is taken", 9180);
	expect_text(" error start_failed: port 9180 is taken");
	log_say(LOG_WARN, "seen", "said \\x1b once");
	expect_text(" warn seen: said \\x1b once");
}

static void test_json_form(void **state)
{
	const struct log_field fields[] = {LOG_Z("path", "/a\"b\\c"), LOG_NUM("dur_us", 7)};
	struct str s;

	(void)state;
	log_setup(LOG_DEBUG, LOG_JSON, ends[1]);
	log_write(LOG_DEBUG, "decision", STR("de\"ny"), fields, 2);
	s = receive();
	assert_true(str_starts_with(s, STR("{\"ts\":\"")));
	s = str_from(s, strlen("{\"ts\":\"") + TIME_BYTES);
	assert_true(str_equal(s, STR("\",\"level\":\"debug\",\"event\":\"decision\",\"msg\":\"de\\\"ny\","
				     "\"path\":\"/a\\\"b\\\\c\",\"dur_us\":7}")));
}

static void test_time_is_now_in_utc(void **state)
{
	ns before = clock_wall_ns() / 1000, after, told;
	unsigned micros;
	struct tm tm = {0};
	struct str s;

	(void)state;
	log_setup(LOG_DEBUG, LOG_TEXT, ends[1]);
	log_say(LOG_INFO, "tick", "x");
	after = clock_wall_ns() / 1000;
	s = receive();
	line[s.len] = '\0';
	assert_int_equal(strptime(line, "%Y-%m-%dT%H:%M:%S", &tm) - line, 19);
	assert_int_equal(sscanf(line + 19, ".%6uZ ", &micros), 1);
	assert_int_equal(line[26], 'Z');
	told = (ns)timegm(&tm) * 1000000 + micros;
	assert_true(told >= before && told <= after);
}

static void test_lines_under_the_level_are_dropped(void **state)
{
	(void)state;
	log_setup(LOG_WARN, LOG_TEXT, ends[1]);
	assert_false(log_wants(LOG_INFO));
	assert_true(log_wants(LOG_WARN));
	log_say(LOG_INFO, "quiet", "x");
	log_write(LOG_DEBUG, "quiet", STR("x"), NULL, 0);
	assert_int_equal(receive().len, 0);
	log_say(LOG_WARN, "loud", "x");
	expect_text(" warn loud: x");
}

static void test_auto_is_json_where_no_terminal_is(void **state)
{
	struct json *root;

	(void)state;
	log_setup(LOG_DEBUG, LOG_AUTO, ends[1]);
	log_say(LOG_INFO, "tick", "x");
	root = receive_json();
	expect_member(root, "event", "tick");
	json_free(root);
}

static void test_no_byte_forges_a_line_or_drives_a_terminal(void **state)
{
	char all[256];
	struct log_field field = LOG_STR("value", str_make(all, sizeof(all)));
	struct json *root;
	struct str text;

	(void)state;
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	log_setup(LOG_DEBUG, LOG_TEXT, ends[1]);
	log_write(LOG_INFO, "hostile", str_make(all, sizeof(all)), &field, 1);
	assert_true(receive().len > sizeof(all));
	assert_int_equal(receive().len, 0);

	log_setup(LOG_DEBUG, LOG_JSON, ends[1]);
	log_write(LOG_INFO, "hostile", str_make(all, sizeof(all)), &field, 1);
	root = receive_json();
	text = json_text(json_member(root, "value"));
	/* Bytes from 0x80 up have become characters of two bytes. */
	assert_int_equal(text.len, 128 + 2 * 128);
	assert_memory_equal(text.ptr, all, 128);
	json_free(root);
}

static void test_values_are_cut(void **state)
{
	char long_z[2001], expected_z[400];
	struct log_field fields[] = {
		LOG_STR("a", str_make(long_z, 256)), LOG_STR("b", str_make(long_z, 257))};
	struct json *root;

	(void)state;
	memset(long_z, 'x', 2000);
	long_z[2000] = '\0';
	log_setup(LOG_DEBUG, LOG_JSON, ends[1]);
	log_write(LOG_INFO, "long", str_from_z(long_z), fields, 2);
	root = receive_json();
	(void)snprintf(expected_z, sizeof(expected_z), "%.256s", long_z);
	expect_member(root, "a", expected_z);
	(void)snprintf(expected_z, sizeof(expected_z), "%.256s...(257 bytes)", long_z);
	expect_member(root, "b", expected_z);
	assert_int_equal(json_text(json_member(root, "msg")).len, 1024 + strlen("...(2000 bytes)"));
	json_free(root);

	log_setup(LOG_DEBUG, LOG_TEXT, ends[1]);
	log_write(LOG_INFO, "long", STR("x"), fields, 2);
	assert_true(str_ends_with(receive(), STR("xxx...(257 bytes)\"")));
}

static void test_hostile_values_push_nothing_out_of_the_line(void **state)
{
	static const char *const names[] = {
		"f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10", "f11"};
	enum { N = sizeof(names) / sizeof(names[0]) };
	struct log_field fields[N + 1];
	char escapes[5000];

	(void)state;
	memset(escapes, 0x1b, sizeof(escapes));
	for (size_t i = 0; i < N; i++)
		fields[i] = LOG_STR(names[i], str_make(escapes, sizeof(escapes)));
	fields[N] = LOG_Z("identity", "edge");
	for (enum log_format format = LOG_TEXT; format <= LOG_JSON; format++) {
		struct str s;

		log_setup(LOG_DEBUG, format, ends[1]);
		log_write(LOG_INFO, "hostile", str_make(escapes, sizeof(escapes)), fields, N + 1);
		s = receive();
		assert_true(str_ends_with(
			s, format == LOG_JSON ? STR(",\"identity\":\"edge\"}") : STR(" identity=edge")));
		assert_non_null(memmem(s.ptr, s.len, "f11", 3));
		assert_non_null(memmem(s.ptr, s.len, "...(5000 bytes)", 15));
	}
}

static void test_far_too_many_fields_are_left_out(void **state)
{
	struct log_field fields[500];
	struct json *root;

	(void)state;
	for (size_t i = 0; i < 500; i++)
		fields[i] = LOG_Z("field", "0123456789abcdef");
	log_setup(LOG_DEBUG, LOG_JSON, ends[1]);
	log_write(LOG_INFO, "many", STR("x"), fields, 500);
	root = receive_json();
	assert_int_equal(json_count(root), 4);
	json_free(root);
}

static void test_level_and_form_may_change(void **state)
{
	struct json *root;

	(void)state;
	log_setup(LOG_WARN, LOG_TEXT, ends[1]);
	log_change(LOG_DEBUG, LOG_JSON);
	log_say(LOG_DEBUG, "seen", "x");
	root = receive_json();
	expect_member(root, "event", "seen");
	json_free(root);
	log_change(LOG_ERROR, LOG_TEXT);
	assert_false(log_wants(LOG_WARN));
	log_say(LOG_ERROR, "seen", "y");
	expect_text(" error seen: y");
}

static void test_a_failed_write_is_forgotten(void **state)
{
	(void)state;
	log_setup(LOG_DEBUG, LOG_TEXT, -1);
	errno = ENOENT;
	log_say(LOG_INFO, "lost", "x");
	assert_int_equal(errno, ENOENT);
}

static void test_limit(void **state)
{
	struct log_limit l = {.period_ns = 1000, .burst = 2};

	(void)state;
	assert_true(log_limit_allows(&l, 5000));
	assert_true(log_limit_allows(&l, 5999));
	assert_false(log_limit_allows(&l, 5999));
	assert_false(log_limit_allows(&l, 5999));
	assert_int_equal(l.suppressed, 2);
	assert_true(log_limit_allows(&l, 6000));
	assert_int_equal(l.suppressed, 2);
	l.suppressed = 0;
	assert_true(log_limit_allows(&l, 6999));
	assert_false(log_limit_allows(&l, 6999));
	assert_int_equal(l.suppressed, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_text_form, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(test_json_form, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(test_time_is_now_in_utc, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(
			test_lines_under_the_level_are_dropped, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(
			test_auto_is_json_where_no_terminal_is, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(
			test_no_byte_forges_a_line_or_drives_a_terminal, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(test_values_are_cut, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(
			test_hostile_values_push_nothing_out_of_the_line, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(test_far_too_many_fields_are_left_out, open_ends, close_ends),
		cmocka_unit_test_setup_teardown(test_level_and_form_may_change, open_ends, close_ends),
		cmocka_unit_test(test_a_failed_write_is_forgotten),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
