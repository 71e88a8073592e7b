/* SPDX-License-Identifier: MIT */
/*
 * Heads that are fine and what is read out of them, heads that are not and why. Each one is given whole, byte by byte, and cut
 * in two at every place, and must come to the same end at the same byte; the bytes lie in a block of exactly their size, so
 * that a sanitizer sees whoever looks behind them.
 */
#include "server/http_parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX_BYTES 1024
#define HOST "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n"

#define B(literal)                                                                                           \
	{                                                                                                    \
		literal, sizeof(literal) - 1                                                                 \
	}

static struct header_line lines[HTTP_LINES_MAX];

static enum head_state read_all(struct http_head *h, const char *bytes, size_t n)
{
	http_head_init(h, MAX_BYTES, lines);
	return http_head_read(h, bytes, n);
}

/* As an owner does whose buffer may move: what came in pieces is checked without lines, and read once more when it is whole. */
static enum head_state read_on(struct http_head *h, const char *bytes, size_t n, bool is_first)
{
	enum head_state state;

	if (is_first)
		http_head_init(h, MAX_BYTES, lines);
	else
		h->lines = NULL;
	state = http_head_read(h, bytes, n);
	return state == HEAD_DONE && !is_first ? read_all(h, bytes, n) : state;
}

static void assert_same(const struct http_head *a, const struct http_head *b)
{
	assert_ptr_equal(a->fault, b->fault);
	assert_int_equal(a->n_bytes, b->n_bytes);
	assert_int_equal(a->n_lines, b->n_lines);
	assert_int_equal(a->length, b->length);
	assert_int_equal(a->is_http_1_0, b->is_http_1_0);
	assert_int_equal(a->keeps_alive, b->keeps_alive);
	assert_int_equal(a->is_chunked, b->is_chunked);
	assert_int_equal(a->expects_continue, b->expects_continue);
}

/* The state at the end, which must be the same for all ways to cut. */
static enum head_state read_every_way(struct http_head *ret, struct str text)
{
	char *bytes = malloc(text.len);
	struct http_head h;
	enum head_state whole, state = HEAD_MORE;

	assert_non_null(bytes);
	memcpy(bytes, text.ptr, text.len);
	whole = read_all(ret, bytes, text.len);
	for (size_t n = 1; n <= text.len && state == HEAD_MORE; n++) {
		char *part = malloc(n);

		assert_non_null(part);
		memcpy(part, bytes, n);
		state = read_on(&h, part, n, n == 1);
		free(part);
	}
	assert_int_equal(state, whole);
	if (state != HEAD_MORE)
		assert_same(ret, &h);
	for (size_t n = 0; n < text.len; n++) {
		state = read_on(&h, bytes, n, true);
		if (state == HEAD_MORE)
			state = read_on(&h, bytes, text.len, false);
		assert_int_equal(state, whole);
		if (state != HEAD_MORE)
			assert_same(ret, &h);
	}
	whole = read_all(ret, bytes, text.len);
	free(bytes);
	return whole;
}

/* ---------------------------------------------------------------------------------------------------- fine */

enum { V10 = 1, CLOSE = 2, CHUNKED = 4, CONTINUE = 8 };

static const struct good {
	struct str text;
	size_t n_lines;
	unsigned flags;
	uint64_t length;
	size_t behind; /* bytes that belong to what comes next */
} good[] = {
	{B(GET HOST "\r\n"), 1, 0, 0, 0},
	{B(GET HOST "\r\nGET / HTTP/1.1\r\n"), 1, 0, 0, 16},
	{B("\r\n" GET HOST "\r\n"), 1, 0, 0, 0},
	{B(GET "host:a\r\n\r\n"), 1, 0, 0, 0},
	{B(GET "HOST:\r\n\r\n"), 1, 0, 0, 0},
	{B("GET / HTTP/1.0\r\n\r\n"), 0, V10 | CLOSE, 0, 0},
	{B("GET / HTTP/1.0\r\n" HOST "\r\n"), 1, V10 | CLOSE, 0, 0},
	{B("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 1, V10, 0, 0},
	{B("GET / HTTP/1.0\r\nConnection: Keep-Alive, close\r\n\r\n"), 1, V10 | CLOSE, 0, 0},
	{B(GET HOST "Connection: close\r\n\r\n"), 2, CLOSE, 0, 0},
	{B(GET HOST "connection: CLOSE\r\n\r\n"), 2, CLOSE, 0, 0},
	{B(GET HOST "Connection: upgrade , close\t\r\n\r\n"), 2, CLOSE, 0, 0},
	{B(GET HOST "Connection: a\r\nConnection: ,,close\r\n\r\n"), 3, CLOSE, 0, 0},
	{B(GET HOST "Connection: closed, not-close\r\n\r\n"), 2, 0, 0, 0},
	{B(GET HOST "Connection: keep-alive\r\n\r\n"), 2, 0, 0, 0},
	{B(GET HOST "Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"), 3, 0, 0, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"), 2, 0, 5, 5},
	{B("POST / HTTP/1.1\r\n" HOST "content-length:0\r\n\r\n"), 2, 0, 0, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Content-Length: \t 17 \t\r\n\r\n"), 2, 0, 17, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Content-Length: 007\r\n\r\n"), 2, 0, 7, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551615\r\n\r\n"), 2, 0, UINT64_MAX, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n"), 2, 0, UINT64_MAX, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Content-Length: 99999999999999999999999999\r\n\r\n"), 2, 0, UINT64_MAX, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 2, CHUNKED, 0, 5},
	{B("POST / HTTP/1.1\r\n" HOST "transfer-encoding:\tCHUNKED\r\n\r\n"), 2, CHUNKED, 0, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n"), 2, CONTINUE, 0, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n\r\n"), 2, CONTINUE, 0, 0},
	{B("POST / HTTP/1.1\r\n" HOST "Expect: something else\r\n\r\n"), 2, 0, 0, 0},
	{B("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"), 1, V10 | CLOSE, 0, 0},
	{B("b!#$%&'*+-.^_`|~9 / HTTP/1.1\r\n" HOST "\r\n"), 1, 0, 0, 0},
	{B("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), 1, 0, 0, 0},
	{B("GET http://a/b?c HTTP/1.1\r\n" HOST "\r\n"), 1, 0, 0, 0},
	{B("GET /\x80\xff\"<>\\^`{|} HTTP/1.1\r\n" HOST "\r\n"), 1, 0, 0, 0},
	{B("GET /?a&b=c#d HTTP/1.1\r\n" HOST "\r\n"), 1, 0, 0, 0},
	{B(GET HOST "X: a\tb \xc3\xa4\xff\r\n\r\n"), 2, 0, 0, 0},
	{B(GET HOST "X:\r\nX: \t \r\n\r\n"), 3, 0, 0, 0},
	{B(GET HOST "b!#$%&'*+-.^_`|~9: : ;,=\"\r\n\r\n"), 2, 0, 0, 0},
	{B(GET HOST "X: 1\r\nX: 1\r\nX: 2\r\n\r\n"), 4, 0, 0, 0},
	{B(GET HOST "Content-Lengths: x\r\nTransfer-Encodings: y\r\n\r\n"), 3, 0, 0, 0},
	{B(GET HOST "X: 12345678901234567890\t1234567890123456789012345\r\n\r\n"), 2, 0, 0, 0},
};

static void test_good(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		const struct good *g = &good[i];
		struct http_head h;

		if (read_every_way(&h, g->text) != HEAD_DONE)
			fail_msg("%.*s", STR_ARG(g->text));
		assert_int_equal(h.n_lines, g->n_lines);
		assert_int_equal(h.length, g->length);
		assert_int_equal(h.n_bytes, g->text.len - g->behind);
		assert_int_equal(h.is_http_1_0, (g->flags & V10) != 0);
		assert_int_equal(h.keeps_alive, (g->flags & CLOSE) == 0);
		assert_int_equal(h.is_chunked, (g->flags & CHUNKED) != 0);
		assert_int_equal(h.expects_continue, (g->flags & CONTINUE) != 0);
	}
}

/* Any head that is cut short is unfinished, wherever the cut is. */
static void test_unfinished(void **state)
{
	struct http_head h;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		for (size_t n = 0; n < good[i].text.len - good[i].behind; n++)
			assert_int_equal(read_all(&h, good[i].text.ptr, n), HEAD_MORE);
	}
}

static void test_what_is_read(void **state)
{
	static const char text[] = "GET /a?b HTTP/1.1\r\nHost: h:80\r\nX-A:  one,\ttwo \t\r\nx-b:\r\n\r\nmore";
	struct http_head h;

	(void)state;
	assert_int_equal(read_all(&h, text, sizeof(text) - 1), HEAD_DONE);
	assert_true(str_equal(h.method, STR("GET")) && str_equal(h.target, STR("/a?b")));
	assert_int_equal(h.n_lines, 3);
	assert_true(str_equal(lines[0].name, STR("Host")) && str_equal(lines[0].value, STR("h:80")));
	assert_true(str_equal(lines[1].name, STR("X-A")) && str_equal(lines[1].value, STR("one,\ttwo")));
	assert_true(str_equal(lines[2].name, STR("x-b")) && lines[2].value.len == 0);
	/* Slices, not copies. */
	assert_true(lines[1].value.ptr > text && lines[1].value.ptr < text + sizeof(text));
}

/* ---------------------------------------------------------------------------------------------------- not fine */

static const struct bad {
	struct str text;
	const char *detail_z;
} bad[] = {
	/* bytes */
	{B("GET / HTTP/1.1\nHost: a\r\n\r\n"), "bare line feed"},
	{B("GET / HTTP/1.1\r\nHost: a\n\r\n"), "bare line feed"},
	{B(GET HOST "\n"), "bare line feed"},
	{B("\n" GET HOST "\r\n"), "bare line feed"},
	{B(GET HOST "X: a\rb\r\n\r\n"), "bare carriage return"},
	{B(GET HOST "X: a\r\r\n\r\n"), "bare carriage return"},
	{B(GET HOST "\r\r\n"), "bare carriage return"},
	{B(GET HOST "X: a\0b\r\n\r\n"), "control byte"},
	{B(GET HOST "X\0: a\r\n\r\n"), "control byte"},
	{B(GET HOST "\0: a\r\n\r\n"), "control byte"},
	{B(GET HOST "X: \x7f\r\n\r\n"), "control byte"},
	{B(GET HOST "X: \x1b[31m\r\n\r\n"), "control byte"},
	{B(GET HOST "X: 12345678901234567890\x01\r\n\r\n"), "control byte"},
	{B("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), "control byte"},
	{B("GET\0 / HTTP/1.1\r\n" HOST "\r\n"), "control byte"},
	{B("GET /\x7f HTTP/1.1\r\n" HOST "\r\n"), "control byte"},
	{B("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "control byte"},
	/* request line */
	{B("\r\n\r\n" GET HOST "\r\n"), "request line"},
	{B(" GET / HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET  / HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET /  HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET / HTTP/1.1 \r\n" HOST "\r\n"), "request line"},
	{B("GET / x HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET\t/ HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET /\tHTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET /\r\n" HOST "\r\n"), "request line"},
	{B("GET\r\n" HOST "\r\n"), "request line"},
	{B("GET / \r\n" HOST "\r\n"), "request line"},
	{B("G(T / HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("G\xc3T / HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET a HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET a:80 HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET :// HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET ** HTTP/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET / http/1.1\r\n" HOST "\r\n"), "request line"},
	{B("GET / HTTP/1.\r\n" HOST "\r\n"), "request line"},
	{B("GET / HTTP/1.10\r\n" HOST "\r\n"), "request line"},
	{B("GET / HTTP/11\r\n" HOST "\r\n"), "request line"},
	{B("GET / HTTP/1,1\r\n" HOST "\r\n"), "request line"},
	{B("GET / HTTPS/1.1\r\n" HOST "\r\n"), "request line"},
	{B("SSH-2.0-OpenSSH_9.2\r\n"), "request line"},
	{B("GET / HTTP/1.2\r\n" HOST "\r\n"), "speaks HTTP/1.1"},
	{B("GET / HTTP/0.9\r\n" HOST "\r\n"), "speaks HTTP/1.1"},
	{B("GET / HTTP/3.0\r\n" HOST "\r\n"), "speaks HTTP/1.1"},
	{B("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "speaks HTTP/1.1"},
	{B("CONNECT a:443 HTTP/1.1\r\n" HOST "\r\n"), "CONNECT"},
	{B("CONNECT / HTTP/1.1\r\n" HOST "\r\n"), "CONNECT"},
	/* field lines */
	{B(GET HOST " X: a\r\n\r\n"), "folded"},
	{B(GET HOST "\tX: a\r\n\r\n"), "folded"},
	{B(GET HOST "X: a\r\n b\r\n\r\n"), "folded"},
	{B(GET " Host: a\r\n\r\n"), "folded"},
	{B(GET HOST "X : a\r\n\r\n"), "no token"},
	{B(GET HOST "X\t: a\r\n\r\n"), "no token"},
	{B(GET HOST "X a: a\r\n\r\n"), "no token"},
	{B(GET HOST "X(a): a\r\n\r\n"), "no token"},
	{B(GET HOST "X\xff: a\r\n\r\n"), "no token"},
	{B(GET HOST ": a\r\n\r\n"), "no token"},
	{B(GET HOST "X\r\n\r\n"), "no token"},
	{B(GET HOST "@\r\n\r\n"), "no token"},
	{B(GET HOST "Content-Length : 5\r\n\r\n"), "no token"},
	/* where the body ends */
	{B(GET HOST "Content-Length:\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: +5\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: -5\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: 5, 5\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: 5 5\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: 0x5\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: 5.0\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: 99999999999999999999x\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: five\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n"), "Content-Length"},
	{B(GET HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"), "beside"},
	{B(GET HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"), "beside"},
	{B("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), "beside"},
	{B(GET HOST "Transfer-Encoding: gzip\r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding: chunked, chunked\r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding: chunked;a=b\r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding: chunked \r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding: \"chunked\"\r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding: identity\r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding:\r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), "chunked and nothing else"},
	{B(GET HOST "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n"), "chunked and nothing else"},
	/* whose it is */
	{B(GET "\r\n"), "Host"},
	{B(GET "X: a\r\n\r\n"), "Host"},
	{B(GET HOST HOST "\r\n"), "Host"},
	{B(GET HOST "host: b\r\n\r\n"), "Host"},
	{B("GET / HTTP/1.0\r\n" HOST HOST "\r\n"), "Host"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct http_head h;
		enum problem_code code;

		if (read_every_way(&h, bad[i].text) != HEAD_BAD)
			fail_msg("%s: %.*s", bad[i].detail_z, STR_ARG(bad[i].text));
		if (strstr(h.fault->detail_z, bad[i].detail_z) == NULL)
			fail_msg("%s: %s: %.*s", bad[i].detail_z, h.fault->detail_z, STR_ARG(bad[i].text));
		code = strstr(bad[i].detail_z, "speaks") != NULL ? PROBLEM_HTTP_VERSION_NOT_SUPPORTED
								 : PROBLEM_BAD_FRAMING;
		assert_int_equal(h.fault->code, code);
	}
}

/* Each byte there is, at each place of an otherwise good head where it would make a difference. */
static void test_every_byte(void **state)
{
	char text[] = GET HOST "X-A: b\r\n\r\n";
	const size_t in_name = sizeof(GET HOST) - 1, in_value = sizeof(GET HOST "X-A: ") - 1;
	struct http_head h;

	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		char c = (char)byte;
		bool is_control = byte < ' ' || byte == 0x7f;

		text[in_value] = c;
		assert_int_equal(read_all(&h, text, sizeof(text) - 1),
			is_control && c != '\t' ? HEAD_BAD : HEAD_DONE);
		text[in_value] = 'b';
		text[in_name] = c;
		assert_int_equal(read_all(&h, text, sizeof(text) - 1),
			str_is_token(str_make(&c, 1)) ? HEAD_DONE : HEAD_BAD);
		text[in_name] = 'X';
		text[0] = c;
		assert_int_equal(read_all(&h, text, sizeof(text) - 1),
			str_is_token(str_make(&c, 1)) ? HEAD_DONE : HEAD_BAD);
		text[0] = 'G';
	}
}

/* ---------------------------------------------------------------------------------------------------- limits */

static void test_size(void **state)
{
	static char text[MAX_BYTES + 64];
	struct http_head h;

	(void)state;
	for (size_t n = MAX_BYTES - 4; n <= MAX_BYTES + 4; n++) {
		size_t head = sizeof(GET HOST "X: ") - 1;

		memset(text, 'x', sizeof(text));
		memcpy(text, GET HOST "X: ", head);
		memcpy(text + n - 4, "\r\n\r\n", 4);
		if (n <= MAX_BYTES) {
			assert_int_equal(read_every_way(&h, str_make(text, n)), HEAD_DONE);
			assert_int_equal(h.n_bytes, n);
			continue;
		}
		assert_int_equal(read_every_way(&h, str_make(text, n)), HEAD_BAD);
		assert_int_equal(h.fault->code, PROBLEM_HEADERS_TOO_LARGE);
	}
	/* What is behind a head does not count. */
	memcpy(text, GET HOST "\r\n", sizeof(GET HOST "\r\n") - 1);
	assert_int_equal(read_every_way(&h, str_make(text, sizeof(text))), HEAD_DONE);
}

static void test_lines(void **state)
{
	static char text[16 * 1024];
	struct http_head h;

	(void)state;
	for (unsigned n = HTTP_LINES_MAX - 1; n <= HTTP_LINES_MAX + 1; n++) {
		size_t len = sizeof(GET HOST) - 1;

		memcpy(text, GET HOST, len);
		for (unsigned i = 1; i < n; i++, len += 4)
			memcpy(text + len, "X:\r\n", 4);
		memcpy(text + len, "\r\n", 2);
		http_head_init(&h, sizeof(text), lines);
		assert_int_equal(http_head_read(&h, text, len + 2), n <= HTTP_LINES_MAX ? HEAD_DONE : HEAD_BAD);
		if (n <= HTTP_LINES_MAX)
			assert_int_equal(h.n_lines, n);
		else
			assert_int_equal(h.fault->code, PROBLEM_HEADERS_TOO_LARGE);
	}
}

static void test_clean_values(void **state)
{
	(void)state;
	assert_true(http_value_is_clean(STR("")));
	assert_true(http_value_is_clean(STR("a\tb, c; \"d\" \x80\xff")));
	assert_true(http_value_is_clean((struct str){NULL, 0}));
	assert_false(http_value_is_clean(STR("12345678\n")));
	assert_false(http_value_is_clean(STR("1234567\r8")));
	assert_false(http_value_is_clean(STR("\0")));
	assert_false(http_value_is_clean(STR("\x7f")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_what_is_read),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_every_byte),
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_clean_values),
	};

	return cmocka_run_group_tests_name("http_parse", tests, NULL, NULL);
}
