/* SPDX-License-Identifier: MIT */
/*
 * Holds jansson and the scan against each other. What json_read takes, the scan goes through without a fault and
 * counts as many values in, and each value of the tree is found again by its pointer, at a byte that can start its kind.
 * What json_read refuses, the scan explains: a place inside the text, a pointer, an ASCII sentence.
 */
#include "fuzz.h"

#include "base/json.h"
#include "base/json_scan.h"
#include "base/must.h"

/* Finding a value takes time in proportion to the text; beyond this many the rest is only counted. */
#define LOCATED_MAX 200

static size_t values_seen;

static char byte_at(struct str text, unsigned line, unsigned column)
{
	for (; line > 1; line--)
		text = str_from(text, str_find(text, '\n') + 1);
	must(column >= 1 && column <= text.len);
	return text.ptr[column - 1];
}

static void check_place(struct str text, const struct json *v, const char *pointer_z)
{
	static const char *const starts[] = {
		[JSON_KIND_NULL] = "n",
		[JSON_KIND_BOOL] = "tf",
		[JSON_KIND_INTEGER] = "-0123456789",
		[JSON_KIND_REAL] = "-0123456789",
		[JSON_KIND_STRING] = "\"",
		[JSON_KIND_ARRAY] = "[",
		[JSON_KIND_OBJECT] = "{",
	};
	unsigned line, column;

	must(json_locate(text, pointer_z, false, &line, &column));
	must(strchr(starts[json_kind(v)], byte_at(text, line, column)) != NULL);
	must(json_locate(text, pointer_z, true, &line, &column));
}

/* A pointer that was cut may lead to another value. */
static bool pointer_is_whole(const char *pointer_z)
{
	return strlen(pointer_z) < JSON_POINTER_BYTES - 64 - 8;
}

static void walk(struct str text, const struct json *v, char pointer_z[JSON_POINTER_BYTES])
{
	struct json_walk w = json_walk_start(v);

	if (values_seen++ < LOCATED_MAX && pointer_is_whole(pointer_z))
		check_place(text, v, pointer_z);
	for (size_t i = 0; json_kind(v) == JSON_KIND_ARRAY && i < json_count(v); i++) {
		json_pointer_push_index(pointer_z, i);
		walk(text, json_item(v, i), pointer_z);
		json_pointer_pop(pointer_z);
	}
	while (json_walk_next(&w)) {
		json_pointer_push(pointer_z, w.name);
		walk(text, w.value, pointer_z);
		json_pointer_pop(pointer_z);
	}
}

static void check_accepted(struct str text, const struct json *root)
{
	char pointer_z[JSON_POINTER_BYTES] = "";
	size_t scanned = 0;
	struct json_scan s;

	values_seen = 0;
	walk(text, root, pointer_z);
	must(pointer_z[0] == '\0');
	json_scan_init(&s, text);
	while (json_scan_next(&s) == SCAN_VALUE)
		scanned++;
	must(json_scan_next(&s) == SCAN_END);
	must(scanned == values_seen);
}

static void check_refused(struct str text, const struct json_fault *f)
{
	unsigned last_line, last_column;

	json_scan_place(text, text.len, &last_line, &last_column);
	must(f->kind != JSON_FAULT_MEMORY);
	must(f->line >= 1 && f->line <= last_line && f->column >= 1);
	must(f->line < last_line || f->column <= last_column);
	must(f->detail_z[0] != '\0');
	for (const char *p = f->detail_z; *p != '\0'; p++)
		must(*p >= ' ' && *p <= '~');
	must(f->pointer_z[0] == '\0' || f->pointer_z[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	struct str text = str_make((const char *)data, size);
	struct json_fault fault;
	struct json *root = NULL;

	if (!ready)
		json_setup();
	ready = true;
	memset(&fault, 0xa5, sizeof(fault));
	if (json_read(&root, text, &fault) == ERR_OK)
		check_accepted(text, root);
	else
		check_refused(text, &fault);
	json_free(root);
	return 0;
}
