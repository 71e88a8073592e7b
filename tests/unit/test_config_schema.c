/* SPDX-License-Identifier: MIT */
/*
 * api/config.schema.json and api/settings.def in step: every row stands in the schema with its text, type, range and
 * default, every member of the schema is a row, and every object is closed. Run from the top of the tree.
 */
#include "base/file.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

struct row {
	const char *path_z, *kind_z, *range_z, *default_z, *help_z;
};

static const struct row rows[] = {
#define SETTING(id, path, kind, range, fallback, help, field) {path, #kind, range, fallback, help},
#define MEMBER(id, path, kind, range, fallback, help) {path, #kind, range, fallback, help},
#define REFUSED(id, path, help) {path, "REFUSED", "", "", help},
#include "settings.def"
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static struct str schema_text;
static struct json *schema;

static bool text_is(const struct json *v, const char *wanted_z)
{
	return v != NULL && json_kind(v) == JSON_KIND_STRING && str_equal(json_text(v), str_from_z(wanted_z));
}

static const struct json *pattern_of(const struct json *node)
{
	const struct json *patterns = json_member(node, "patternProperties");
	struct json_walk w;

	if (patterns == NULL)
		return NULL;
	w = json_walk_start(patterns);
	return json_walk_next(&w) ? w.value : NULL;
}

static const struct json *node_of(const char *path_z)
{
	const struct json *node = schema;
	char part_z[64];

	while (node != NULL && *path_z != '\0') {
		size_t len = strcspn(path_z, ".");

		(void)snprintf(part_z, sizeof(part_z), "%.*s", (int)len, path_z);
		if (strcmp(part_z, "*") == 0) {
			node = json_member(node, "items") != NULL ? json_member(node, "items")
								  : pattern_of(node);
		} else {
			node = json_member(node, "properties");
			node = node != NULL ? json_member(node, part_z) : NULL;
		}
		path_z += len + (path_z[len] == '.' ? 1 : 0);
	}
	return node;
}

/* "integer", or "integer|string" for a list of two. */
static bool type_is(const struct json *node, const char *wanted_z)
{
	const struct json *type = json_member(node, "type");
	char have_z[64] = "";

	if (type == NULL || json_kind(type) == JSON_KIND_STRING)
		return text_is(type, wanted_z);
	for (size_t i = 0; i < json_count(type); i++)
		(void)snprintf(have_z + strlen(have_z), sizeof(have_z) - strlen(have_z), "%s%.*s",
			i > 0 ? "|" : "", STR_ARG(json_text(json_item(type, i))));
	return strcmp(have_z, wanted_z) == 0;
}

static const char *type_of(const struct row *r)
{
	static const char *const types[][2] = {{"COUNT", "integer"}, {"SIZE", "integer|string"},
		{"DURATION", "string"}, {"BOOL", "boolean"}, {"WORD", "string"}, {"TEXT", "string"},
		{"LIST", "array"}, {"TEXTS", "string|array"}, {"OBJECT", "object"}, {"MAP", "object"},
		{"ITEMS", "array"}, {"REFUSED", "null"}};

	if (strcmp(r->kind_z, "TEXT") == 0 && strncmp(r->path_z, "listen.", 7) == 0)
		return "string|null";
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(r->kind_z, types[i][0]) == 0)
			return types[i][1];
	return "";
}

static long long number_of(const char *text_z)
{
	static const char *const units[] = {"KiB", "MiB", "GiB"};
	long long n = 0;
	char unit_z[4] = "";

	(void)sscanf(text_z, "%lld%3[A-Za-z]", &n, unit_z);
	for (unsigned i = 0; i < 3; i++)
		if (strcmp(unit_z, units[i]) == 0)
			n <<= 10 * (i + 1);
	return n;
}

static bool number_is(const struct json *node, const char *name_z, const char *wanted_z)
{
	const struct json *v = json_member(node, name_z);

	return v != NULL && json_kind(v) == JSON_KIND_INTEGER && json_integer_of(v) == number_of(wanted_z);
}

static bool words_are(const struct json *words, const char *range_z)
{
	char have_z[256] = "";

	for (size_t i = 0; words != NULL && i < json_count(words); i++)
		(void)snprintf(have_z + strlen(have_z), sizeof(have_z) - strlen(have_z), "%s%.*s",
			i > 0 ? "|" : "", STR_ARG(json_text(json_item(words, i))));
	return strcmp(have_z, range_z) == 0;
}

static bool range_is(const struct json *node, const struct row *r)
{
	const char *dots = strstr(r->range_z, "..");
	char low_z[32];

	if (strcmp(r->kind_z, "WORD") == 0)
		return words_are(json_member(node, "enum"), r->range_z);
	if (strcmp(r->kind_z, "DURATION") == 0)
		return json_member(node, "pattern") != NULL;
	if (r->range_z[0] == '\0')
		return json_member(node, "minimum") == NULL;
	if (dots == NULL)
		return number_is(node, "const", r->range_z);
	(void)snprintf(low_z, sizeof(low_z), "%.*s", (int)(dots - r->range_z), r->range_z);
	return number_is(node, "minimum", low_z) && number_is(node, "maximum", dots + 2);
}

/* Sizes and durations are texts in the file, so their range is told in words. */
static bool description_is(const struct json *node, const struct row *r)
{
	const char *dots = strstr(r->range_z, "..");
	char wanted_z[512];

	if (dots != NULL && strcmp(r->kind_z, "COUNT") != 0)
		(void)snprintf(wanted_z, sizeof(wanted_z), "%s From %.*s to %s.", r->help_z,
			(int)(dots - r->range_z), r->range_z, dots + 2);
	else
		(void)snprintf(wanted_z, sizeof(wanted_z), "%s", r->help_z);
	return text_is(json_member(node, "description"), wanted_z);
}

static bool same_texts(const struct json *a, const struct json *b)
{
	if (json_kind(a) != json_kind(b))
		return false;
	switch (json_kind(a)) {
	case JSON_KIND_BOOL: return json_bool(a) == json_bool(b);
	case JSON_KIND_INTEGER: return json_integer_of(a) == json_integer_of(b);
	case JSON_KIND_STRING: return str_equal(json_text(a), json_text(b));
	case JSON_KIND_OBJECT: return json_count(a) == 0 && json_count(b) == 0;
	case JSON_KIND_ARRAY:
		for (size_t i = 0; i < json_count(a); i++)
			if (i >= json_count(b) || !same_texts(json_item(a, i), json_item(b, i)))
				return false;
		return json_count(a) == json_count(b);
	default: return false;
	}
}

static bool default_is(const struct json *node, const struct row *r)
{
	static const char *const as_texts[] = {"SIZE", "DURATION", "WORD", "TEXT"};
	const struct json *have = json_member(node, "default");
	struct json_fault fault;
	struct json *wanted;
	bool same;

	if (r->default_z[0] == '\0')
		return have == NULL;
	for (size_t i = 0; i < sizeof(as_texts) / sizeof(as_texts[0]); i++)
		if (strcmp(r->kind_z, as_texts[i]) == 0)
			return text_is(have, r->default_z);
	if (have == NULL || json_read(&wanted, str_from_z(r->default_z), &fault) != ERR_OK)
		return false;
	same = same_texts(have, wanted);
	json_free(wanted);
	return same;
}

static void test_rows_in_schema(void **state)
{
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *r = &rows[i];
		const struct json *node = node_of(r->path_z);
		const char *what_z = NULL;

		/* Of what this version refuses, the schema has only the listeners that may be turned off. */
		if (strcmp(r->kind_z, "REFUSED") == 0 && strncmp(r->path_z, "listen.", 7) != 0)
			what_z = node != NULL ? "is refused, but there" : NULL;
		else if (node == NULL)
			what_z = "is not there";
		else if (!description_is(node, r))
			what_z = "has another description";
		else if (!type_is(node, type_of(r)))
			what_z = "has another type";
		else if (!range_is(node, r))
			what_z = "has another range";
		else if (!default_is(node, r))
			what_z = "has another default";
		if (what_z != NULL) {
			print_error("%s %s in the schema\n", r->path_z, what_z);
			failed++;
		}
	}
	assert_int_equal(failed, 0);
}

static bool is_row(const char *path_z)
{
	for (size_t i = 0; i < N_ROWS; i++)
		if (strcmp(rows[i].path_z, path_z) == 0)
			return true;
	return false;
}

/* Counts members that are no rows, and objects that let unknown members in or do not take a comment. */
static size_t count_strays(const struct json *node, const char *path_z)
{
	const struct json *properties = json_member(node, "properties"), *items = json_member(node, "items");
	const struct json *closed = json_member(node, "additionalProperties"), *inner = pattern_of(node);
	char below_z[256];
	size_t n = 0;
	struct json_walk w;

	(void)snprintf(below_z, sizeof(below_z), "%s.*", path_z);
	if (inner != NULL)
		n += count_strays(inner, below_z);
	if (items != NULL && json_member(items, "properties") != NULL)
		n += count_strays(items, below_z);
	if (properties == NULL)
		return n;
	if (closed == NULL || json_kind(closed) != JSON_KIND_BOOL || json_bool(closed) ||
		json_member(properties, "$comment") == NULL) {
		print_error("\"%s\" is open, or takes no comment\n", path_z);
		n++;
	}
	w = json_walk_start(properties);
	while (json_walk_next(&w)) {
		if (str_equal(w.name, STR("$comment")))
			continue;
		(void)snprintf(below_z, sizeof(below_z), "%s%s%.*s", path_z, path_z[0] != '\0' ? "." : "",
			STR_ARG(w.name));
		if (!is_row(below_z)) {
			print_error("%s is in the schema only\n", below_z);
			n++;
		}
		n += count_strays(w.value, below_z);
	}
	return n;
}

static void test_schema_in_rows(void **state)
{
	(void)state;
	assert_int_equal(count_strays(schema, ""), 0);
}

static int setup(void **state)
{
	struct json_fault fault;

	(void)state;
	json_setup();
	if (file_read(&schema_text, "api/config.schema.json", 1 << 20) != ERR_OK)
		return -1;
	return json_read(&schema, schema_text, &fault) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	json_free(schema);
	file_free(schema_text);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_in_schema),
		cmocka_unit_test(test_schema_in_rows),
	};

	return cmocka_run_group_tests_name("config_schema", tests, setup, teardown);
}
