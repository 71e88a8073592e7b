/* SPDX-License-Identifier: MIT */
/*
 * Bodies in chunks: what comes out of them, where they end, and what is refused. Each is given whole, byte by byte, and cut in
 * two at every place, and must come to the same end at the same byte.
 */
#include "server/http_body.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define B(literal)                                                                                           \
	{                                                                                                    \
		literal, sizeof(literal) - 1                                                                 \
	}

struct outcome {
	enum chunks_state state;
	size_t used, n;
	char data[64];
};

/* Reads what lies between from and to. */
static void feed(struct chunks *c, struct str text, size_t to, struct outcome *o)
{
	while (o->state == CHUNKS_MORE || o->state == CHUNKS_PIECE) {
		size_t used;
		struct str piece;

		o->state = chunks_read(c, text.ptr + o->used, to - o->used, &used, &piece);
		o->used += used;
		if (o->state == CHUNKS_PIECE) {
			assert_true(piece.len > 0 && o->n + piece.len <= sizeof(o->data));
			memcpy(o->data + o->n, piece.ptr, piece.len);
			o->n += piece.len;
		} else if (o->state == CHUNKS_MORE) {
			assert_int_equal(o->used, to);
			return;
		}
	}
}

static void assert_same(const struct outcome *a, const struct outcome *b)
{
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->used, b->used);
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->data, b->data, a->n);
}

static struct outcome read_every_way(struct str text)
{
	struct outcome whole = {.state = CHUNKS_MORE}, o = {.state = CHUNKS_MORE};
	struct chunks c;

	chunks_init(&c);
	feed(&c, text, text.len, &whole);
	chunks_init(&c);
	for (size_t n = 1; n <= text.len; n++)
		feed(&c, text, n, &o);
	assert_same(&whole, &o);
	for (size_t cut = 0; cut <= text.len; cut++) {
		o = (struct outcome){.state = CHUNKS_MORE};
		chunks_init(&c);
		feed(&c, text, cut, &o);
		feed(&c, text, text.len, &o);
		assert_same(&whole, &o);
	}
	return whole;
}

static void test_good(void **state)
{
	static const struct {
		struct str text, data;
		size_t behind;
	} cases[] = {
		{B("0\r\n\r\n"), B(""), 0},
		{B("0\r\n\r\nGET"), B(""), 3},
		{B("000\r\n\r\n"), B(""), 0},
		{B("5\r\nhello\r\n0\r\n\r\n"), B("hello"), 0},
		{B("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\nx"), B("hello world"), 1},
		{B("a\r\n0123456789\r\n0\r\n\r\n"), B("0123456789"), 0},
		{B("A\r\n0123456789\r\n0\r\n\r\n"), B("0123456789"), 0},
		{B("000000000000000a\r\n0123456789\r\n0\r\n\r\n"), B("0123456789"), 0},
		{B("2\r\n\r\n\r\n0\r\n\r\n"), B("\r\n"), 0},
		{B("3;a\r\nabc\r\n0;b=c;d=\"e f\"\r\n\r\n"), B("abc"), 0},
		{B("3;\r\nabc\r\n0\r\n\r\n"), B("abc"), 0},
		{B("3\r\nabc\r\n0\r\nX: 1\r\nY: 2\r\n\r\n"), B("abc"), 0},
		{B("1\r\na\r\n1\r\nb\r\n1\r\nc\r\n0\r\n\r\n"), B("abc"), 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome o = read_every_way(cases[i].text);

		if (o.state != CHUNKS_END)
			fail_msg("%.*s", STR_ARG(cases[i].text));
		assert_int_equal(o.used, cases[i].text.len - cases[i].behind);
		assert_int_equal(o.n, cases[i].data.len);
		assert_memory_equal(o.data, cases[i].data.ptr, o.n);
		/* Unfinished wherever it is cut. */
		for (size_t n = 0; n < o.used; n++)
			assert_int_equal(read_every_way(str_head(cases[i].text, n)).state, CHUNKS_MORE);
	}
}

static void test_bad(void **state)
{
	static const struct str texts[] = {
		B("\r\n"),
		B(";a\r\n"),
		B("x\r\n"),
		B("-1\r\n"),
		B("+1\r\n"),
		B("0x1\r\n"),
		B(" 1\r\n"),
		B("1 \r\n"),
		B("1 ;a\r\n"),
		B("1\t\r\n"),
		B("1\n"),
		B("1\rX"),
		B("1\r\r\n"),
		B("1\0\r\n"),
		B("1;a\nb\r\n"),
		B("1;a\rb\r\n"),
		B("1;a\0b\r\n"),
		B("1;\x7f\r\n"),
		B("1,2\r\n"),
		B("00000000000000001\r\n"),
		B("fffffffffffffffff\r\n"),
		B("1\r\nab\r\n"),
		B("1\r\na\n"),
		B("1\r\na\rb"),
		B("1\r\na0\r\n\r\n"),
		B("1\r\na\r\n\r\n0\r\n\r\n"),
		B("0\n\r\n"),
		B("0\r\n\n"),
		B("0\r\n\rx"),
		B("0\r\nX: 1\n\r\n"),
		B("0\r\nX: 1\rY\r\n\r\n"),
		B("0\r\nX: \0\r\n\r\n"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (read_every_way(texts[i]).state != CHUNKS_BAD)
			fail_msg("%.*s", STR_ARG(texts[i]));
	}
}

/* The largest size that can be written is taken as it is; it never wraps round to a small one. */
static void test_largest_size(void **state)
{
	static const char text[] = "ffffffffffffffff\r\nabc";
	struct chunks c;
	struct str piece;
	size_t used;

	(void)state;
	chunks_init(&c);
	assert_int_equal(chunks_read(&c, text, sizeof(text) - 1, &used, &piece), CHUNKS_PIECE);
	assert_int_equal(piece.len, 3);
	assert_true(c.left == UINT64_MAX - 3);
}

/* Lines that say nothing have an end, in one long one or in many short ones. */
static void test_spare_bytes(void **state)
{
	static const struct {
		struct str first, more;
		size_t counted; /* bytes of more that count */
	} cases[] = {
		{B("1;"), B("x"), 1},
		{B(""), B("1;xxxxxxx\r\na\r\n"), 7},
		{B("0\r\n"), B("X"), 1},
		{B("0\r\n"), B("X: 1\r\n"), 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct chunks c;
		struct str piece, text = cases[i].first;
		enum chunks_state s;
		size_t used, at = 0, counted = 0, n = 0;

		chunks_init(&c);
		do {
			s = chunks_read(&c, text.ptr + at, text.len - at, &used, &piece);
			at += used;
			if (s == CHUNKS_MORE) {
				text = cases[i].more;
				at = 0;
				counted += cases[i].counted;
				assert_true(++n < 10000);
			}
		} while (s == CHUNKS_MORE || s == CHUNKS_PIECE);
		assert_int_equal(s, CHUNKS_BAD);
		assert_in_range(counted, CHUNKS_SPARE_BYTES, CHUNKS_SPARE_BYTES + 16);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_largest_size),
		cmocka_unit_test(test_spare_bytes),
	};

	return cmocka_run_group_tests_name("http_body", tests, NULL, NULL);
}
