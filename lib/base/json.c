/* SPDX-License-Identifier: MIT */
/*
 * jansson behind a face of our own: it decides what is JSON, holds the tree and knows its members. On success a text is
 * read once, besides a glance at its brackets and for NUL bytes. Of jansson's complaint only the code and the place
 * where it stopped are used, never its sentence, which quotes the input; json_scan finds the words. jansson allows 2048
 * levels, which its own stack bears; 64 keep everything small that walks a tree.
 */
#include "base/json.h"

#include "base/json_scan.h"

#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

/* jansson frees strings, keys, buffers it outgrew and tables alike through this. */
static void free_wiped(void *p)
{
	if (p != NULL)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

void json_setup(void)
{
	json_set_alloc_funcs(malloc, free_wiped);
	/* Else the first object made would read the random source, and in whichever thread that is. */
	json_object_seed(0);
}

static enum err explain_memory(struct json_fault *ret_fault)
{
	*ret_fault = (struct json_fault){.kind = JSON_FAULT_MEMORY};
	(void)snprintf(ret_fault->detail_z, sizeof(ret_fault->detail_z),
		"there is not enough memory to read the text");
	return ERR_MEMORY;
}

/* Finds what is wrong with a text that was refused; error is jansson's, or NULL if jansson did not see the text. */
static enum err explain(struct str text, const json_error_t *error, struct json_fault *ret_fault)
{
	enum json_scan_step step;
	struct json_scan s;

	json_scan_init(&s, text);
	if (error != NULL && json_error_code(error) == json_error_duplicate_key)
		s.duplicate_end = (size_t)error->position;
	if (error != NULL && json_error_code(error) == json_error_numeric_overflow)
		s.overflow_end = (size_t)error->position;
	do
		step = json_scan_next(&s);
	while (step == SCAN_VALUE);
	/* jansson stops without a word where an allocation fails. */
	if (step == SCAN_END)
		return explain_memory(ret_fault);
	json_scan_explain(&s, ret_fault);
	return ERR_SYNTAX;
}

/* True if the text holds more than JSON_DEPTH_MAX opening brackets, in strings or not. */
static bool has_many_brackets(struct str text)
{
	const char *end = text.ptr + text.len;
	size_t n = 0;

	for (const char *bracket = "[{"; *bracket != '\0'; bracket++)
		for (const char *p = text.ptr;
			p < end && (p = memchr(p, *bracket, (size_t)(end - p))) != NULL; p++)
			if (++n > JSON_DEPTH_MAX)
				return true;
	return false;
}

/* True if more than JSON_DEPTH_MAX brackets are open at once anywhere. Cheap: most texts hold fewer at all. */
static bool is_deep(struct str text)
{
	size_t depth = 0;
	bool in_string = false;

	if (text.len == 0 || !has_many_brackets(text))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '"') {
			in_string = !in_string;
		} else if (in_string) {
			i += c == '\\';
		} else if (c == '[' || c == '{') {
			if (++depth > JSON_DEPTH_MAX)
				return true;
		} else if ((c == ']' || c == '}') && depth > 0) {
			depth--;
		}
	}
	return false;
}

enum err json_read(struct json **ret_root, struct str text, struct json_fault *ret_fault)
{
	json_error_t error;
	json_t *root;

	/* No JSON text holds a NUL byte, but jansson 2.14 passes over one behind a number. */
	if ((text.len > 0 && memchr(text.ptr, '\0', text.len) != NULL) || is_deep(text))
		return explain(text, NULL, ret_fault);
	root = json_loadb(text.len > 0 ? text.ptr : "", text.len,
		JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
	if (root == NULL)
		return explain(text, &error, ret_fault);
	*ret_root = (struct json *)root;
	return ERR_OK;
}

void json_free(struct json *root)
{
	json_decref((json_t *)root);
}

/* struct json is never completed: a pointer to one is a json_t of jansson's. */
static json_t *tree(const struct json *v)
{
	return (json_t *)v;
}

enum json_kind json_kind(const struct json *v)
{
	static const enum json_kind kinds[] = {
		[JSON_OBJECT] = JSON_KIND_OBJECT,
		[JSON_ARRAY] = JSON_KIND_ARRAY,
		[JSON_STRING] = JSON_KIND_STRING,
		[JSON_INTEGER] = JSON_KIND_INTEGER,
		[JSON_REAL] = JSON_KIND_REAL,
		[JSON_TRUE] = JSON_KIND_BOOL,
		[JSON_FALSE] = JSON_KIND_BOOL,
		[JSON_NULL] = JSON_KIND_NULL,
	};

	return kinds[json_typeof(tree(v))];
}

const char *json_kind_name(enum json_kind k)
{
	static const char *const names[] = {
		[JSON_KIND_NULL] = "null",
		[JSON_KIND_BOOL] = "true or false",
		[JSON_KIND_INTEGER] = "a whole number",
		[JSON_KIND_REAL] = "a number with a point or exponent",
		[JSON_KIND_STRING] = "a string",
		[JSON_KIND_ARRAY] = "an array",
		[JSON_KIND_OBJECT] = "an object",
	};

	return names[k];
}

bool json_bool(const struct json *v)
{
	return json_is_true(tree(v));
}

int64_t json_integer_of(const struct json *v)
{
	return json_integer_value(tree(v));
}

struct str json_text(const struct json *v)
{
	return str_make(json_string_value(tree(v)), json_string_length(tree(v)));
}

size_t json_count(const struct json *v)
{
	return json_is_array(tree(v)) ? json_array_size(tree(v)) : json_object_size(tree(v));
}

const struct json *json_item(const struct json *array, size_t i)
{
	return (const struct json *)json_array_get(tree(array), i);
}

const struct json *json_member(const struct json *object, const char *name_z)
{
	return (const struct json *)json_object_get(tree(object), name_z);
}

struct json_walk json_walk_start(const struct json *object)
{
	return (struct json_walk){object, json_object_iter(tree(object)), {NULL, 0}, NULL};
}

bool json_walk_next(struct json_walk *w)
{
	if (w->cursor == NULL)
		return false;
	w->name = str_make(json_object_iter_key(w->cursor), json_object_iter_key_len(w->cursor));
	w->value = (const struct json *)json_object_iter_value(w->cursor);
	w->cursor = json_object_iter_next(tree(w->object), w->cursor);
	return true;
}

const char *json_library_z(void)
{
	return jansson_version_str();
}
