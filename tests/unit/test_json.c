/* SPDX-License-Identifier: MIT */
/*
 * Reading JSON: what is taken, what is refused and where the fault is said to be, and the way from a pointer to a line.
 * free is replaced here in builds without a sanitizer, to look at what is in a block when it is given back.
 */
#include "base/json.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct json *read_ok(struct str text)
{
	struct json_fault fault;
	struct json *root;

	if (json_read(&root, text, &fault) != ERR_OK)
		fail_msg("refused: %s", fault.detail_z);
	return root;
}

static struct json *read_z(const char *text_z)
{
	return read_ok(str_from_z(text_z));
}

static bool text_is(const struct json *v, struct str expected)
{
	return v != NULL && json_kind(v) == JSON_KIND_STRING && str_equal(json_text(v), expected);
}

/* ------------------------------------------------------------------------------------------------ secrets */

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define FREE_IS_TAKEN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FREE_IS_TAKEN
#endif

#ifndef FREE_IS_TAKEN
#define SECRET "k3yOfTheSideGate"

static bool watching;
static unsigned secrets_freed;

void __libc_free(void *p);

void free(void *p)
{
	if (watching && p != NULL && memmem(p, malloc_usable_size(p), SECRET, sizeof(SECRET) - 1) != NULL)
		secrets_freed++;
	__libc_free(p);
}

static unsigned count_secrets_freed(const char *text_z)
{
	struct json_fault fault;
	struct json *root = NULL;
	enum err e;

	secrets_freed = 0;
	watching = true;
	e = json_read(&root, str_from_z(text_z), &fault);
	json_free(root);
	watching = false;
	(void)e;
	return secrets_freed;
}

static void test_secrets_are_wiped(void **state)
{
	static const char *const texts[] = {
		"{\"token\": \"" SECRET "\", \"headers\": [[\"A\", \"x" SECRET "x\"]]}",
		"{\"" SECRET "\": 1}",
		"\"" SECRET SECRET SECRET SECRET SECRET "\"",
		"[\"" SECRET "\", \"" SECRET "\", oops]",
		"{\"" SECRET "\": 1, \"" SECRET "\": 2}",
		"[\"" SECRET "\\ud800\"]",
		"[\"" SECRET "",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(count_secrets_freed(texts[i]), 0);
}

/* Proves that the test above can see a secret at all; runs before json_setup. */
static void test_secrets_can_be_seen(void **state)
{
	(void)state;
	assert_true(count_secrets_freed("{\"token\": \"" SECRET "\"}") > 0);
}
#endif

static void test_setup(void **state)
{
	(void)state;
	json_setup();
}

/* ------------------------------------------------------------------------------------------------ trees */

static void test_kinds(void **state)
{
	static const struct {
		const char *text_z;
		enum json_kind kind;
	} rows[] = {
		{"null", JSON_KIND_NULL},
		{"true", JSON_KIND_BOOL},
		{" false\n", JSON_KIND_BOOL},
		{"0", JSON_KIND_INTEGER},
		{"-0", JSON_KIND_INTEGER},
		{"1.0", JSON_KIND_REAL},
		{"1e3", JSON_KIND_REAL},
		{"1E-400", JSON_KIND_REAL},
		{"\"\"", JSON_KIND_STRING},
		{"[]", JSON_KIND_ARRAY},
		{"\t{ }\r\n", JSON_KIND_OBJECT},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct json *v = read_z(rows[i].text_z);

		assert_int_equal(json_kind(v), rows[i].kind);
		assert_non_null(json_kind_name(rows[i].kind));
		json_free(v);
	}
	json_free(NULL);
}

static void test_values(void **state)
{
	struct json *root = read_z(
		"{\"t\": true, \"f\": false, \"least\": -9223372036854775808, \"most\": 9223372036854775807,"
		"\"list\": [10, [], {}], \"s\": \"\\u00fc\\ud83d\\ude00\\n\\\"\\\\\\/\", \"e\": \"\"}");
	const struct json *list = json_member(root, "list");

	(void)state;
	assert_true(json_bool(json_member(root, "t")));
	assert_false(json_bool(json_member(root, "f")));
	assert_true(json_integer_of(json_member(root, "least")) == INT64_MIN);
	assert_true(json_integer_of(json_member(root, "most")) == INT64_MAX);
	assert_int_equal(json_count(root), 7);
	assert_int_equal(json_count(list), 3);
	assert_int_equal(json_integer_of(json_item(list, 0)), 10);
	assert_int_equal(json_count(json_item(list, 1)), 0);
	assert_int_equal(json_kind(json_item(list, 2)), JSON_KIND_OBJECT);
	assert_null(json_item(list, 3));
	assert_null(json_member(root, "absent"));
	assert_null(json_member(list, "s"));
	assert_null(json_item(root, 0));
	assert_true(text_is(json_member(root, "s"), STR("\xc3\xbc\xf0\x9f\x98\x80\n\"\\/")));
	assert_true(text_is(json_member(root, "e"), STR("")));
	json_free(root);
}

static void test_nul_is_legal_inside_strings(void **state)
{
	struct json *root = read_z("[\"a\\u0000b\"]");

	(void)state;
	assert_true(text_is(json_item(root, 0), STR("a\0b")));
	json_free(root);
}

static void test_walk_goes_in_the_order_written(void **state)
{
	struct json *root = read_z("{\"z\": 0, \"a\": 1, \"\": 2, \"X-A\": 3, \"x-a\": 4, \"\\u0061b\": 5}");
	static const char *const names[] = {"z", "a", "", "X-A", "x-a", "ab"};
	struct json_walk w = json_walk_start(root);
	int64_t i = 0;

	(void)state;
	for (; json_walk_next(&w); i++) {
		assert_true(str_equal(w.name, str_from_z(names[i])));
		assert_true(json_integer_of(w.value) == i);
	}
	assert_int_equal(i, 6);
	assert_false(json_walk_next(&w));
	w = json_walk_start(json_member(root, "z"));
	assert_false(json_walk_next(&w));
	json_free(root);
}

/* ------------------------------------------------------------------------------------------------ faults */

static const struct {
	struct str text;
	enum json_fault_kind kind;
	unsigned line, column;
	const char *pointer_z, *detail_part_z;
} faults[] = {
	{STR(""), JSON_FAULT_SYNTAX, 1, 1, "", "empty"},
	{STR(" \n "), JSON_FAULT_SYNTAX, 2, 2, "", "empty"},
	{STR("{"), JSON_FAULT_SYNTAX, 1, 2, "", "ends inside an object"},
	{STR("[1,\n 2"), JSON_FAULT_SYNTAX, 2, 3, "", "ends inside an array"},
	{STR("{\"a\": [1, {\"b\": "), JSON_FAULT_SYNTAX, 1, 17, "/a/1", "ends inside an object"},
	{STR("1 2"), JSON_FAULT_SYNTAX, 1, 3, "", "goes on behind"},
	{STR("{}x"), JSON_FAULT_SYNTAX, 1, 3, "", "goes on behind"},
	{STR("{}\0"), JSON_FAULT_SYNTAX, 1, 3, "", "goes on behind"},
	{STR("\0{}"), JSON_FAULT_SYNTAX, 1, 1, "", "a value must stand here"},
	{STR("1\0"), JSON_FAULT_SYNTAX, 1, 2, "", "goes on behind"},
	{STR("{\"a\": [1\0]}"), JSON_FAULT_SYNTAX, 1, 9, "/a", "comma or a closing bracket"},
	{STR("\xef\xbb\xbf{}"), JSON_FAULT_SYNTAX, 1, 1, "", "byte order mark"},
	{STR("[1,]"), JSON_FAULT_SYNTAX, 1, 4, "", "comma stands in front"},
	{STR("{\"a\": 1,\n}"), JSON_FAULT_SYNTAX, 2, 1, "", "comma stands in front"},
	{STR("[1 2]"), JSON_FAULT_SYNTAX, 1, 4, "", "comma or a closing bracket"},
	{STR("[1}"), JSON_FAULT_SYNTAX, 1, 3, "", "comma or a closing bracket"},
	{STR("{\"a\": 1]"), JSON_FAULT_SYNTAX, 1, 8, "", "comma or a closing brace"},
	{STR("{\"a\" 1}"), JSON_FAULT_SYNTAX, 1, 6, "", "colon"},
	{STR("{a: 1}"), JSON_FAULT_SYNTAX, 1, 2, "", "name of a member"},
	{STR("{1: 1}"), JSON_FAULT_SYNTAX, 1, 2, "", "name of a member"},
	{STR("{'a': 1}"), JSON_FAULT_SYNTAX, 1, 2, "", "double quotes"},
	{STR("[,1]"), JSON_FAULT_SYNTAX, 1, 2, "", "a value must stand here"},
	{STR("[1, // one\n2]"), JSON_FAULT_SYNTAX, 1, 5, "", "no comments"},
	{STR("{\"rules\": [{\"limits\": [yes]}]}"), JSON_FAULT_SYNTAX, 1, 24, "/rules/0/limits",
		"without quotes"},
	{STR("nul"), JSON_FAULT_SYNTAX, 1, 1, "", "without quotes"},
	{STR("truex"), JSON_FAULT_SYNTAX, 1, 1, "", "without quotes"},
	{STR("True"), JSON_FAULT_SYNTAX, 1, 1, "", "without quotes"},
	{STR("NaN"), JSON_FAULT_SYNTAX, 1, 1, "", "without quotes"},
	{STR("+1"), JSON_FAULT_SYNTAX, 1, 1, "", "a value must stand here"},
	{STR(".5"), JSON_FAULT_SYNTAX, 1, 1, "", "a value must stand here"},
	{STR("[01]"), JSON_FAULT_SYNTAX, 1, 2, "", "needless 0"},
	{STR("[-]"), JSON_FAULT_SYNTAX, 1, 2, "", "minus sign"},
	{STR("[1.]"), JSON_FAULT_SYNTAX, 1, 2, "", "decimal point"},
	{STR("[1e+]"), JSON_FAULT_SYNTAX, 1, 2, "", "exponent"},
	{STR("[1e5, 9223372036854775808]"), JSON_FAULT_SYNTAX, 1, 7, "", "too large"},
	{STR("{\"a\":[-9223372036854775809]}"), JSON_FAULT_SYNTAX, 1, 7, "/a", "too large"},
	{STR("[1, 1e400]"), JSON_FAULT_SYNTAX, 1, 5, "", "too large"},
	{STR("[\"abc\n\"]"), JSON_FAULT_SYNTAX, 1, 6, "", "control character"},
	{STR("[\"abc\0\"]"), JSON_FAULT_SYNTAX, 1, 6, "", "control character"},
	{STR("[\"abc"), JSON_FAULT_SYNTAX, 1, 2, "", "never closed"},
	{STR("[\"abc\\\"]"), JSON_FAULT_SYNTAX, 1, 2, "", "never closed"},
	{STR("[\"abc\\"), JSON_FAULT_SYNTAX, 1, 6, "", "escape"},
	{STR("[\"a\\x41\"]"), JSON_FAULT_SYNTAX, 1, 4, "", "escape"},
	{STR("[\"a\\u12g4\"]"), JSON_FAULT_SYNTAX, 1, 4, "", "four hex digits"},
	{STR("[\"\\ud800\"]"), JSON_FAULT_SYNTAX, 1, 3, "", "surrogate"},
	{STR("[\"\\udc00\\ud800\"]"), JSON_FAULT_SYNTAX, 1, 3, "", "surrogate"},
	{STR("[\"\\ud800\\u0041\"]"), JSON_FAULT_SYNTAX, 1, 3, "", "surrogate"},
	{STR("{\"h\": {\"a\\u0000b\": 1}}"), JSON_FAULT_SYNTAX, 1, 10, "/h", "U+0000"},
	{STR("[\"ab\xff\"]"), JSON_FAULT_UTF8, 1, 5, "", "UTF-8"},
	{STR("[\"\xc0\x80\"]"), JSON_FAULT_UTF8, 1, 3, "", "UTF-8"},
	{STR("[\"\xe0\x9f\xbf\"]"), JSON_FAULT_UTF8, 1, 3, "", "UTF-8"},
	{STR("[\"\xed\xa0\x80\"]"), JSON_FAULT_UTF8, 1, 3, "", "UTF-8"},
	{STR("[\"\xf0\x8f\xbf\xbf\"]"), JSON_FAULT_UTF8, 1, 3, "", "UTF-8"},
	{STR("[\"\xf4\x90\x80\x80\"]"), JSON_FAULT_UTF8, 1, 3, "", "UTF-8"},
	{STR("[\"\xe2\x82\"]"), JSON_FAULT_UTF8, 1, 3, "", "UTF-8"},
	{STR("[\"\xe2\x82"), JSON_FAULT_UTF8, 1, 3, "", "UTF-8"},
	{STR("{\"h\": {\"\xfc\": 1}}"), JSON_FAULT_UTF8, 1, 9, "/h", "UTF-8"},
	{STR("[1, \xff]"), JSON_FAULT_UTF8, 1, 5, "", "UTF-8"},
	{STR("[1, \xc3\xbc]"), JSON_FAULT_SYNTAX, 1, 5, "", "a value must stand here"},
	/* Columns are bytes: two for the letter in front. */
	{STR("[\"\xc3\xbc\", x]"), JSON_FAULT_SYNTAX, 1, 8, "", "without quotes"},
	{STR("{\"a\": 1, \"a\": 2}"), JSON_FAULT_DUPLICATE, 1, 10, "/a", "the member \"a\" comes twice"},
	{STR("{\"a\": 1, \"\\u0061\": }"), JSON_FAULT_DUPLICATE, 1, 10, "/a", "the member \"a\" comes twice"},
	{STR("{\"x\": [0,\n{\"a~/\xc3\xbc\": {\"a\": 1},\n \"a~/\xc3\xbc\": 2}]}"), JSON_FAULT_DUPLICATE, 3,
		2, "/x/1/a~0~1\xc3\xbc", "the member \"a~/\\xc3\\xbc\" comes twice"},
	{STR("{\"\": 1, \"\": 2}"), JSON_FAULT_DUPLICATE, 1, 9, "/", "the member \"\" comes twice"},
	{STR("{\"0123456789012345678901234567890\\u001b\": 1, \"0123456789012345678901234567890\\u001b\": "
	     "2}"),
		JSON_FAULT_DUPLICATE, 1, 46, "/0123456789012345678901234567890\x1b",
		"the member \"012345678901234567890123...\" comes twice"},
	/* The first fault counts, not the worst. */
	{STR("[1 \xff]"), JSON_FAULT_UTF8, 1, 4, "", "UTF-8"},
	{STR("[oops, \"\xff\"]"), JSON_FAULT_SYNTAX, 1, 2, "", "without quotes"},
	{STR("{\"a\": 1, \"a\": \"\xff\"}"), JSON_FAULT_DUPLICATE, 1, 10, "/a", "twice"},
};

static void test_faults(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct json *root = NULL;
		struct json_fault f;

		print_message("fault %zu: %s\n", i, faults[i].detail_part_z);
		assert_int_equal(json_read(&root, faults[i].text, &f), ERR_SYNTAX);
		assert_null(root);
		assert_int_equal(f.kind, faults[i].kind);
		assert_int_equal(f.line, faults[i].line);
		assert_int_equal(f.column, faults[i].column);
		assert_string_equal(f.pointer_z, faults[i].pointer_z);
		assert_non_null(strstr(f.detail_z, faults[i].detail_part_z));
	}
}

static void test_faults_repeat_no_value(void **state)
{
	static const char *const texts[] = {"{\"token\": \"s3cret\" x}", "{\"token\": s3cret}",
		"{\"token\": \"s3cret}", "[\"s3cret\\q\"]", "s3cret",
		"{\"token\": \"s3cret\", \"b\": 1, \"b\": 2}", "\"s3cret\" s3cret", "[\"s3cret\xff\"]"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json_fault f;
		struct json *root;

		assert_int_equal(json_read(&root, str_from_z(texts[i]), &f), ERR_SYNTAX);
		assert_null(strstr(f.detail_z, "s3cret"));
		assert_null(strstr(f.pointer_z, "s3cret"));
	}
}

/* depth opening brackets around nothing. */
static struct str nest(char *out, size_t depth, bool objects)
{
	size_t len = 0;

	for (size_t i = 0; i < depth; i++)
		len += (size_t)sprintf(out + len, "%s", objects && i > 0 ? "{\"a\":" : "[");
	if (objects)
		len += (size_t)sprintf(out + len, "1");
	for (size_t i = depth; i-- > 0;)
		out[len++] = objects && i > 0 ? '}' : ']';
	return str_make(out, len);
}

static void test_depth(void **state)
{
	char text[1000];
	struct json_fault f;
	struct json *root;

	(void)state;
	json_free(read_ok(nest(text, 64, false)));
	json_free(read_ok(nest(text, 64, true)));
	assert_int_equal(json_read(&root, nest(text, 65, false), &f), ERR_SYNTAX);
	assert_int_equal(f.kind, JSON_FAULT_DEPTH);
	assert_int_equal(f.column, 65);
	assert_int_equal(strlen(f.pointer_z), 2 * 63);
	assert_int_equal(json_read(&root, nest(text, 65, true), &f), ERR_SYNTAX);
	assert_int_equal(f.kind, JSON_FAULT_DEPTH);
	assert_int_equal(f.column, 1 + 63 * 5 + 1);
}

static void test_many_brackets_that_are_not_deep(void **state)
{
	char text[2000];
	size_t len = 0;

	(void)state;
	text[len++] = '[';
	for (size_t i = 0; i < 100; i++)
		len += (size_t)sprintf(text + len, "[{}],\"\\\"[[{{\",");
	len += (size_t)sprintf(text + len, "1]");
	json_free(read_ok(str_make(text, len)));
}

static void test_hostile_depth(void **state)
{
	const size_t len = 1000000;
	char *text = malloc(len);
	struct json_fault f;
	struct json *root;

	(void)state;
	memset(text, '[', len);
	assert_int_equal(json_read(&root, str_make(text, len), &f), ERR_SYNTAX);
	assert_int_equal(f.kind, JSON_FAULT_DEPTH);
	/* Wrong before it is deep. */
	text[3] = '}';
	assert_int_equal(json_read(&root, str_make(text, len), &f), ERR_SYNTAX);
	assert_int_equal(f.kind, JSON_FAULT_SYNTAX);
	assert_int_equal(f.column, 4);
	free(text);
}

static const char sample_z[] =
	"{\"a\": [1, -2.5e3, {\"b\\u00fc\\n\": null}],\n \"c/d\": \"x\\ud83d\\ude00\xc3\xbc\",\n\n\t\"\": {},"
	" \"e~\": [[], true, [false]]}";

/* Each prefix and each changed byte: read to the end or refused with a place inside the text, and never anything worse. */
static void test_damaged_texts(void **state)
{
	char text[sizeof(sample_z)];
	const size_t len = sizeof(sample_z) - 1;

	(void)state;
	json_free(read_z(sample_z));
	for (size_t cut = 0; cut < len; cut++) {
		/* A block of its own, so that asan sees a read behind the end. */
		char *copy = malloc(cut);
		struct json_fault f;
		struct json *root;

		memcpy(copy, sample_z, cut);
		assert_int_equal(json_read(&root, str_make(copy, cut), &f), ERR_SYNTAX);
		assert_true(f.line >= 1 && f.line <= 4 && f.column >= 1 && f.column <= cut + 1);
		free(copy);
	}
	for (size_t i = 0; i < len * 256; i++) {
		struct json_fault f;
		struct json *root = NULL;

		memcpy(text, sample_z, len);
		text[i / 256] = (char)(i % 256);
		if (json_read(&root, str_make(text, len), &f) != ERR_OK)
			assert_true(f.kind != JSON_FAULT_MEMORY && f.line >= 1 && f.line <= 5 &&
				    f.column <= len + 1);
		json_free(root);
	}
}

/* ------------------------------------------------------------------------------------------------ pointers and places */

static void test_locate(void **state)
{
	static const struct {
		const char *pointer_z;
		unsigned line, column, name_line, name_column;
	} rows[] = {
		{"", 1, 1, 1, 1},
		{"/a", 1, 7, 1, 2},
		{"/a/0", 1, 8, 1, 8},
		{"/a/1", 1, 11, 1, 11},
		{"/a/2", 1, 19, 1, 19},
		{"/a/2/b\xc3\xbc\n", 1, 33, 1, 20},
		{"/c~1d", 2, 9, 2, 2},
		{"/", 4, 6, 4, 2},
		{"/e~0", 4, 16, 4, 10},
		{"/e~0/2/0", 4, 28, 4, 28},
	};
	static const char *const nowhere[] = {"a", "/b", "/a/3", "/a/00", "/a/-", "/a/", "/a/0/0", "/c/d",
		"/c~1d/x", "//x", "/e", "/e~0/0/0", "/A", "/a/18446744073709551616", "/a/2/b"};
	struct str text = STR(sample_z);
	unsigned line, column;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		print_message("pointer %s\n", rows[i].pointer_z);
		assert_true(json_locate(text, rows[i].pointer_z, false, &line, &column));
		assert_int_equal(line, rows[i].line);
		assert_int_equal(column, rows[i].column);
		assert_true(json_locate(text, rows[i].pointer_z, true, &line, &column));
		assert_int_equal(line, rows[i].name_line);
		assert_int_equal(column, rows[i].name_column);
	}
	line = column = 77;
	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++)
		assert_false(json_locate(text, nowhere[i], false, &line, &column));
	assert_int_equal(line, 77);
	assert_int_equal(column, 77);
	assert_false(json_locate(STR(""), "", false, &line, &column));
}

static void test_locate_takes_the_right_one_of_equal_names(void **state)
{
	struct str text = STR("{\"x\": {\"a\": 1}, \"a\": {\"x\": 2}, \"y\": {\"a\": {\"a\": 3}}}");
	unsigned line, column;

	(void)state;
	assert_true(json_locate(text, "/a/x", false, &line, &column));
	assert_int_equal(column, 28);
	assert_true(json_locate(text, "/y/a/a", false, &line, &column));
	assert_int_equal(column, 49);
	assert_false(json_locate(text, "/x/x", false, &line, &column));
}

static void test_pointer(void **state)
{
	char p[JSON_POINTER_BYTES] = "";

	(void)state;
	json_pointer_push(p, STR("rules"));
	json_pointer_push_index(p, 12);
	json_pointer_push(p, STR("a/b~c"));
	assert_string_equal(p, "/rules/12/a~1b~0c");
	json_pointer_pop(p);
	assert_string_equal(p, "/rules/12");
	json_pointer_push(p, STR(""));
	assert_string_equal(p, "/rules/12/");
	json_pointer_pop(p);
	json_pointer_pop(p);
	json_pointer_pop(p);
	assert_string_equal(p, "");
	json_pointer_pop(p);
	assert_string_equal(p, "");
}

static void test_pointer_is_cut_but_keeps_its_levels(void **state)
{
	char p[JSON_POINTER_BYTES + 8], name[600], before[65][JSON_POINTER_BYTES];
	const char *const fills[] = {"x", "~", "\xc3\xbc", "\xf0\x9f\x98\x80"};

	(void)state;
	for (size_t fill = 0; fill < 4; fill++) {
		memset(p, 'P', sizeof(p));
		p[0] = '\0';
		for (size_t i = 0; i < sizeof(name); i++)
			name[i] = fills[fill][i % strlen(fills[fill])];
		for (size_t depth = 0; depth < 64; depth++) {
			strcpy(before[depth], p);
			json_pointer_push(p, str_make(name, sizeof(name)));
			assert_true(strlen(p) > strlen(before[depth]) && strlen(p) < JSON_POINTER_BYTES);
			assert_int_equal(p[JSON_POINTER_BYTES], 'P');
		}
		/* Nothing was cut inside an escape or a character. */
		assert_null(strstr(p, "~/"));
		for (const char *slash = strchr(p + 1, '/'); fill >= 2 && slash != NULL;
			slash = strchr(slash + 1, '/'))
			assert_true(slash[-1] == '/' || slash[-1] == fills[fill][strlen(fills[fill]) - 1]);
		for (size_t depth = 64; depth-- > 0;) {
			json_pointer_pop(p);
			assert_string_equal(p, before[depth]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifndef FREE_IS_TAKEN
		cmocka_unit_test(test_secrets_can_be_seen),
#endif
		cmocka_unit_test(test_setup),
#ifndef FREE_IS_TAKEN
		cmocka_unit_test(test_secrets_are_wiped),
#endif
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_nul_is_legal_inside_strings),
		cmocka_unit_test(test_walk_goes_in_the_order_written),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_faults_repeat_no_value),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_many_brackets_that_are_not_deep),
		cmocka_unit_test(test_hostile_depth),
		cmocka_unit_test(test_damaged_texts),
		cmocka_unit_test(test_locate),
		cmocka_unit_test(test_locate_takes_the_right_one_of_equal_names),
		cmocka_unit_test(test_pointer),
		cmocka_unit_test(test_pointer_is_cut_but_keeps_its_levels),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
