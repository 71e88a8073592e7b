/* SPDX-License-Identifier: MIT */
/* Answers byte by byte as they go over the wire, and the date in front of them. */
#include "server/http_answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct exchange_pool pool;
static struct exchange *x;
static struct http_date date;

static int setup(void **state)
{
	(void)state;
	exchange_pool_init(&pool, 1024, 1024);
	x = exchange_take(&pool);
	http_date_write(&date, 784111777);
	return x == NULL ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	exchange_put(x);
	exchange_pool_done(&pool);
	return 0;
}

static void make(unsigned status, struct str value, struct str body)
{
	x->answer.status = status;
	x->answer.n_headers = 0;
	x->answer.body = body;
	http_answer_add(&x->answer, STR("X-A"), value);
	http_answer_add(&x->answer, STR("X-Empty"), STR(""));
}

#define DATE "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

static void test_forms(void **state)
{
	static const struct {
		struct http_answer_form form;
		unsigned status;
		const char *text_z;
	} cases[] = {
		{{&date, false, false, false}, 200,
			"HTTP/1.1 200 OK\r\n" DATE "X-A: b\r\nX-Empty: \r\nContent-Length: 4\r\n\r\nbody"},
		{{&date, false, true, false}, 429,
			"HTTP/1.1 429 Too Many Requests\r\n" DATE
			"Connection: close\r\nX-A: b\r\nX-Empty: \r\nContent-Length: 4\r\n\r\nbody"},
		{{&date, false, false, true}, 505,
			"HTTP/1.1 505 HTTP Version Not Supported\r\n" DATE
			"Connection: keep-alive\r\nX-A: b\r\nX-Empty: \r\nContent-Length: 4\r\n\r\nbody"},
		{{&date, false, true, true}, 418,
			"HTTP/1.1 418 \r\n" DATE
			"Connection: close\r\nX-A: b\r\nX-Empty: \r\nContent-Length: 4\r\n\r\nbody"},
		{{&date, true, false, false}, 503,
			"HTTP/1.1 503 Service Unavailable\r\n" DATE
			"X-A: b\r\nX-Empty: \r\nContent-Length: 4\r\n\r\n"},
	};
	struct str out[2];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		make(cases[i].status, STR("b"), STR("body"));
		assert_true(http_answer_write(x, &cases[i].form, out));
		if (!str_equal(out[0], str_from_z(cases[i].text_z)))
			fail_msg("%.*s", STR_ARG(out[0]));
		assert_int_equal(out[1].len, 0);
	}
}

/* A large body is sent from where it lies. */
static void test_large_body(void **state)
{
	static char body[100000];
	const struct http_answer_form form = {.date = &date};
	struct str out[2];

	(void)state;
	make(200, STR("b"), str_make(body, sizeof(body)));
	assert_true(http_answer_write(x, &form, out));
	assert_true(str_ends_with(out[0], STR("Content-Length: 100000\r\n\r\n")));
	assert_ptr_equal(out[1].ptr, body);
	assert_int_equal(out[1].len, sizeof(body));
}

/* No visitor writes a header line of ours. */
static void test_line_breaks(void **state)
{
	static const char *const values[] = {"a\r\nX-Postern-Identity: edge", "a\nb", "a\rb", "\x7f", "\x1f"};
	const struct http_answer_form form = {.date = &date};
	struct str out[2];

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		make(200, str_from_z(values[i]), STR(""));
		assert_false(http_answer_write(x, &form, out));
	}
}

static void test_no_room(void **state)
{
	const struct http_answer_form form = {.date = &date};
	struct str out[2];

	(void)state;
	make(200, STR("b"), STR(""));
	while (arena_alloc(&x->arena, 1) != NULL)
		;
	assert_false(http_answer_write(x, &form, out));
	out[0] = http_answer_failure();
	assert_true(str_starts_with(out[0], STR("HTTP/1.1 503 ")));
	assert_true(str_ends_with(out[0], STR("Content-Length: 22\r\n\r\n{\"error\": \"internal\"}\n")));
}

static void test_dates(void **state)
{
	static const struct {
		uint64_t unix_s;
		const char *line_z;
	} cases[] = {
		{0, "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"},
		{784111777, DATE},
		{1709210096, "Date: Thu, 29 Feb 2024 12:34:56 GMT\r\n"},
		{253402300799, "Date: Fri, 31 Dec 9999 23:59:59 GMT\r\n"},
	};
	struct http_date d = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		http_date_write(&d, cases[i].unix_s);
		assert_memory_equal(d.line, cases[i].line_z, HTTP_DATE_BYTES);
	}
	/* Read again only when its second is over. */
	http_date_refresh(&d, 5);
	assert_true(d.due > 5 && d.due <= 5 + NS_PER_S);
	memset(d.line, 'x', sizeof(d.line));
	http_date_refresh(&d, d.due - 1);
	assert_int_equal(d.line[0], 'x');
	http_date_refresh(&d, d.due);
	assert_int_equal(d.line[0], 'D');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_forms, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_body, setup, teardown),
		cmocka_unit_test_setup_teardown(test_line_breaks, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test(test_dates),
	};

	return cmocka_run_group_tests_name("http_answer", tests, NULL, NULL);
}
