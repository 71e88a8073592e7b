/* SPDX-License-Identifier: MIT */
/*
 * The short cut for /check questions against jansson and check_read, which define what is right: many random and damaged
 * bodies, and whatever the scan takes they must take too, as an equal request. And the other way about: the usual bodies are
 * taken, or the short cut would be none; those it must not judge are left alone.
 */
#include "adapter/check_scan.h"

#include "adapter/check_read.h"

#include "base/json.h"

#include "../support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define BODY_MAX 4096
#define ARENA_BYTES ((size_t)64 * 1024)
#define ROUNDS 240000

static char scan_block[ARENA_BYTES], read_block[ARENA_BYTES];

static const struct request defaults = {.door = DOOR_CHECK, .fault = REASON_ALLOWED, .cost = 1};

static bool scan(struct str body, struct request *ret)
{
	struct arena a;

	arena_init(&a, scan_block, sizeof(scan_block));
	*ret = defaults;
	return check_scan(body, &a, ret);
}

static bool read_slowly(struct str body, struct request *ret)
{
	struct json_fault fault;
	struct problem problem;
	struct json *root;
	struct arena a;
	bool ok;

	arena_init(&a, read_block, sizeof(read_block));
	*ret = defaults;
	if (json_read(&root, body, &fault) != ERR_OK)
		return false;
	ok = check_read(root, body, &a, ret, &problem);
	json_free(root);
	return ok;
}

static bool facts_equal(const struct fact *a, const struct fact *b)
{
	return a->said == b->said && str_equal(a->text, b->text);
}

static bool requests_equal(const struct request *a, const struct request *b)
{
	if (a->door != b->door || a->fault != b->fault || a->cost != b->cost || a->peek != b->peek)
		return false;
	if (!str_equal(a->remote_addr, b->remote_addr) || !str_equal(a->fault_header, b->fault_header))
		return false;
	if (!facts_equal(&a->token, &b->token) || !facts_equal(&a->method, &b->method) ||
		!facts_equal(&a->host, &b->host) || !facts_equal(&a->path, &b->path) ||
		!facts_equal(&a->id, &b->id))
		return false;
	if (a->n_headers != b->n_headers)
		return false;
	for (size_t i = 0; i < a->n_headers; i++) {
		if (!str_equal(a->headers[i].name, b->headers[i].name) ||
			!str_equal(a->headers[i].value, b->headers[i].value))
			return false;
	}
	return true;
}

/* True if the scan took it. */
static bool compare(struct str body)
{
	struct request fast, slow;

	if (!scan(body, &fast)) {
		assert_true(requests_equal(&fast, &defaults));
		return false;
	}
	if (!read_slowly(body, &slow))
		fail_msg("taken by the scan alone: %.*s", STR_ARG(body));
	if (!requests_equal(&fast, &slow))
		fail_msg("read differently: %.*s", STR_ARG(body));
	return true;
}

/* ------------------------------------------------------------------------------------------------ by hand */

static const char *const usual[] = {
	("{\"remote_addr\": \"172.18.0.5:53122\", \"headers\": {\"X-Forwarded-For\": \"203.0.113.9\", "
	 "\"User-Agent\": \"Mozilla/5.0 (X11; Linux x86_64)\", \"Accept\": \"*/*\", \"Host\": "
	 "\"api.example.com\", "
	 "\"Cookie\": \"a=b; c=d\"}, \"method\": \"POST\", \"host\": \"api.example.com\", \"path\": "
	 "\"/login?x=1\"}"),
	"{\"remote_addr\":\"::1\",\"token\":\"postern_abcdefgh\",\"cost\":1000000,\"peek\":true,\"id\":"
	"\"1\"}",
	" \n{ \"peek\" : false , \"headers\" : { } ,\t\"remote_addr\"\r\n:\"\" , \"token\" : \"\" } \n",
	"{\"remote_addr\":\"x\",\"headers\":{\"X-A\":\"1\",\"x-a\":\"2\",\"\":\"3\"},\"cost\":1}",
};

static const char *const left_alone[] = {
	"",
	" ",
	"{}",
	"[]",
	"null",
	"\"remote_addr\"",
	"{\"headers\":{}}",
	"{\"remote_addr\":\"x\"",
	"{\"remote_addr\":\"x\"}}",
	"{\"remote_addr\":\"x\"} x",
	"{\"remote_addr\":\"x\",}",
	"{,\"remote_addr\":\"x\"}",
	"{\"remote_addr\" \"x\"}",
	"{\"remote_addr\":\"x\" \"token\":\"x\"}",
	"{\"remote_addr\":null}",
	"{\"remote_addr\":\"x\\n\"}",
	"{\"remote_addr\":\"x\x7f\"}",
	"{\"remote_addr\":\"\xc3\xbc\"}",
	"{\"remote_addr\":\"x\ty\"}",
	"{\"remote\\u005faddr\":\"x\"}",
	"{\"remote_addr\":\"x\",\"remote_addr\":\"x\"}",
	"{\"remote_addr\":\"x\",\"headers\":{},\"headers\":{}}",
	"{\"remote_addr\":\"x\",\"other\":1}",
	"{\"remote_addr\":\"x\",\"headers\":[[\"A\",\"b\"]]}",
	"{\"remote_addr\":\"x\",\"headers\":{\"A\":[\"b\"]}}",
	"{\"remote_addr\":\"x\",\"headers\":{\"A\":\"b\",\"B\":\"c\",\"A\":\"b\"}}",
	"{\"remote_addr\":\"x\",\"headers\":{\"A\":1}}",
	"{\"remote_addr\":\"x\",\"headers\":{\"A\":\"b\",}}",
	"{\"remote_addr\":\"x\",\"cost\":0}",
	"{\"remote_addr\":\"x\",\"cost\":01}",
	"{\"remote_addr\":\"x\",\"cost\":-1}",
	"{\"remote_addr\":\"x\",\"cost\":1.0}",
	"{\"remote_addr\":\"x\",\"cost\":1e3}",
	"{\"remote_addr\":\"x\",\"cost\":1000001}",
	"{\"remote_addr\":\"x\",\"cost\":18446744073709551617}",
	"{\"remote_addr\":\"x\",\"cost\":}",
	"{\"remote_addr\":\"x\",\"cost\":\"1\"}",
	"{\"remote_addr\":\"x\",\"peek\":True}",
	"{\"remote_addr\":\"x\",\"peek\":truefalse}",
	"{\"remote_addr\":\"x\",\"peek\":tru",
	"{\"remote_addr\":\"x\"\v}",
};

static void test_usual_bodies_are_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		if (!compare(str_from_z(usual[i])))
			fail_msg("not taken: %s", usual[i]);
	}
}

static void test_the_rest_is_left_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(left_alone) / sizeof(left_alone[0]); i++) {
		if (compare(str_from_z(left_alone[i])))
			fail_msg("taken: %s", left_alone[i]);
	}
	assert_false(compare(str_make(NULL, 0)));
	assert_false(compare(STR("{\"remote_addr\":\"a\0b\"}")));
	assert_false(compare(STR("{\"remote_addr\":\"a\"}\0")));
	assert_false(compare(STR("\xef\xbb\xbf{\"remote_addr\":\"a\"}")));
}

static void test_slices_lead_into_the_body(void **state)
{
	struct str body = str_from_z(usual[0]);
	struct request req;

	(void)state;
	assert_true(scan(body, &req));
	assert_true(req.remote_addr.ptr > body.ptr && req.remote_addr.ptr < body.ptr + body.len);
	assert_int_equal(req.n_headers, 5);
	assert_true(str_equal(req.headers[4].name, STR("Cookie")));
	assert_true(req.headers[4].value.ptr > body.ptr && req.headers[4].value.ptr < body.ptr + body.len);
	assert_true(req.path.said && str_equal(req.path.text, STR("/login?x=1")));
}

/* Every cut of a usual body, in a block of its own so that a sanitizer sees a byte read too far. */
static void test_cut_bodies(void **state)
{
	size_t len = strlen(usual[0]);

	(void)state;
	for (size_t n = 0; n < len; n++) {
		char *block = malloc(n + (n == 0));

		assert_non_null(block);
		memcpy(block, usual[0], n);
		assert_false(compare(str_make(block, n)));
		free(block);
	}
}

static size_t append(char *out, size_t n, const char *text_z)
{
	size_t len = strlen(text_z);

	assert_true(n + len <= BODY_MAX);
	memcpy(out + n, text_z, len);
	return n + len;
}

/* A body with n header lines, or with an id of n bytes. */
static struct str body_of(char out[BODY_MAX], size_t n_lines, size_t id_bytes)
{
	size_t n = append(out, 0, "{\"remote_addr\":\"a\",\"headers\":{");
	char name[] = "\"X-A\":\"v\"";

	for (size_t i = 0; i < n_lines; i++) {
		name[3] = (char)('A' + i);
		n = append(out, n, i > 0 ? "," : "");
		n = append(out, n, name);
	}
	n = append(out, n, "},\"id\":\"");
	for (size_t i = 0; i < id_bytes; i++)
		n = append(out, n, "i");
	return str_make(out, append(out, n, "\"}"));
}

static void test_limits(void **state)
{
	char body[BODY_MAX];

	(void)state;
	assert_true(compare(body_of(body, 16, 0)));
	assert_false(compare(body_of(body, 17, 0)));
	assert_true(compare(body_of(body, 0, 256)));
	assert_false(compare(body_of(body, 0, 257)));
}

static void test_full_arena_is_left_alone(void **state)
{
	struct request req = defaults;
	char block[64];
	struct arena a;

	(void)state;
	arena_init(&a, block, sizeof(block));
	assert_false(check_scan(str_from_z(usual[0]), &a, &req));
	assert_true(a.overflow);
	assert_true(requests_equal(&req, &defaults));
}

/* ------------------------------------------------------------------------------------------------ at random */

static struct random dice = {1};

static uint32_t below(uint32_t n)
{
	return (uint32_t)random_below(&dice, n);
}

/* What a body is put together from and damaged with. */
static const char *const pieces[] = {"\"", "\\", "{", "}", "[", "]", ",", ":", " ", "\n", "\t", "\r", "\f",
	"\v", "\x7f", "\xc3\xbc", "\xff", "\\\"", "\\u0041", "\\u0000", "null", "true", "false", "True", "0",
	"1", ".", "e", "\"remote_addr\":\"a\"", ",\"remote_addr\":\"b\"", "\"headers\":{}",
	",\"headers\":{\"a\":\"b\"}", "\"token\":", ",\"token\":\"t\"", "\"cost\":5", "\"peek\":true",
	"\"id\":\"1\"", "\"path\"", "\"x\":[]", "\"A\":\"1\"", ",\"A\":\"1\"", "'", "/*x*/", "//"};

#define PIECES ((uint32_t)(sizeof(pieces) / sizeof(pieces[0])))

struct body {
	char bytes[BODY_MAX];
	size_t len;
};

static void insert(struct body *b, size_t at, const char *bytes, size_t n)
{
	char copy[BODY_MAX];

	if (n > sizeof(b->bytes) - b->len)
		return;
	memcpy(copy, bytes, n);
	memmove(b->bytes + at + n, b->bytes + at, b->len - at);
	memcpy(b->bytes + at, copy, n);
	b->len += n;
}

static void damage(struct body *b)
{
	size_t at = below((uint32_t)b->len + 1), n = below(12);
	const char *piece = pieces[below(PIECES)];

	if (n > b->len - at)
		n = b->len - at;
	switch (below(6)) {
	case 0: insert(b, at, piece, strlen(piece)); break;
	case 1: insert(b, below((uint32_t)b->len + 1), b->bytes + at, n); break;
	case 2:
		if (at < b->len)
			b->bytes[at] = (char)below(256);
		break;
	case 3:
		if (at < b->len)
			b->bytes[at] = (char)(b->bytes[at] ^ 1 << below(8));
		break;
	case 4:
		memmove(b->bytes + at, b->bytes + at + n, b->len - at - n);
		b->len -= n;
		break;
	default:
		/* Stays as it is, so that some change once only. */
		break;
	}
}

static void add(struct body *b, const char *text_z)
{
	insert(b, b->len, text_z, strlen(text_z));
}

static void add_space(struct body *b)
{
	static const char *const spaces[] = {"", "", "", "", " ", "\n", "\t \r\n"};

	add(b, spaces[below(sizeof(spaces) / sizeof(spaces[0]))]);
}

static void add_text(struct body *b, const char *alphabet_z, uint32_t max)
{
	add(b, "\"");
	for (uint32_t n = below(max); n > 0; n--)
		insert(b, b->len, &alphabet_z[below((uint32_t)strlen(alphabet_z))], 1);
	add(b, "\"");
}

static void add_headers(struct body *b)
{
	add(b, "{");
	for (uint32_t n = below(below(8) == 0 ? 20 : 5), i = 0; i < n; i++) {
		add(b, i > 0 ? "," : "");
		add_space(b);
		add_text(b, "aAbBcCdDeEfFgGhHiIjJ-", 4);
		add_space(b);
		add(b, ":");
		add_space(b);
		add_text(b, "abc 123,;=/", 30);
		add_space(b);
	}
	add(b, "}");
}

/* Seldom one twice, seldom none. */
static void generate(struct body *b)
{
	static const char *const names[] = {"\"remote_addr\"", "\"token\"", "\"method\"", "\"host\"",
		"\"path\"", "\"id\"", "\"cost\"", "\"peek\"", "\"headers\""};
	static const char *const costs[] = {"0", "1", "7", "42", "999999", "1000000", "1000001", "1.0", "1e3",
		"-1", "0x1", "007", "12345678901234567890", "4294967297"};
	uint32_t n = 1 + below(5), first = below(9);

	b->len = 0;
	add_space(b);
	add(b, "{");
	for (uint32_t i = 0; i < n; i++) {
		uint32_t member = i == 0 ? 0 : below(40) == 0 ? 0 : (first + i * 2) % 9;

		add_space(b);
		add(b, i > 0 ? "," : "");
		add_space(b);
		add(b, names[member]);
		add_space(b);
		add(b, ":");
		add_space(b);
		switch (member) {
		case 6: add(b, costs[below(sizeof(costs) / sizeof(costs[0]))]); break;
		case 7: add(b, below(2) ? "true" : "false"); break;
		case 8: add_headers(b); break;
		default: add_text(b, "abcxyz0189./:-_ ~!", 40); break;
		}
	}
	add_space(b);
	add(b, "}");
	add_space(b);
}

static void test_random_bodies(void **state)
{
	static struct body b;
	unsigned taken = 0;

	(void)state;
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (below(3) > 0) {
			generate(&b);
		} else {
			const char *text_z = usual[below(sizeof(usual) / sizeof(usual[0]))];

			b.len = 0;
			add(&b, text_z);
		}
		for (uint32_t n = below(3); n > 0; n--)
			damage(&b);
		taken += compare(str_make(b.bytes, b.len));
	}
	print_message("%u of %u bodies taken\n", taken, ROUNDS);
	assert_true(taken > ROUNDS / 4 && taken < ROUNDS / 4 * 3);
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
		cmocka_unit_test(test_usual_bodies_are_taken),
		cmocka_unit_test(test_the_rest_is_left_alone),
		cmocka_unit_test(test_slices_lead_into_the_body),
		cmocka_unit_test(test_cut_bodies),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_full_arena_is_left_alone),
		cmocka_unit_test(test_random_bodies),
	};

	return cmocka_run_group_tests_name("check_scan", tests, setup, NULL);
}
