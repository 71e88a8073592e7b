/* SPDX-License-Identifier: MIT */
/*
 * The walk: where it stands, what it reports, and the values that every part reads. jansson keeps no positions, so a
 * fault's line and column are found afterwards from its pointer, by one scan each; that is paid for faults only. A
 * pointer too long for its buffer leads nowhere, and then the nearest place above it is named.
 * Nothing stops at the first fault: a list keeps the items that are right, so that what refers to it is judged too.
 */
#include "config/load.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const problem_words[PROBLEM_COUNT] = {
#define PROBLEM(id, code, http, title) [PROBLEM_##id] = code,
#include "problems.def"
#undef PROBLEM
};

const char *load_problem_word(enum problem p)
{
	return problem_words[p];
}

size_t load_enter(struct load *l, struct str name)
{
	size_t mark = strlen(l->pointer_z);

	json_pointer_push(l->pointer_z, name);
	return mark;
}

size_t load_enter_index(struct load *l, size_t index)
{
	size_t mark = strlen(l->pointer_z);

	json_pointer_push_index(l->pointer_z, index);
	return mark;
}

void load_leave(struct load *l, size_t mark)
{
	l->pointer_z[mark] = '\0';
}

static void fault_place(struct load *l, struct fault *f, bool at_name)
{
	char pointer_z[JSON_POINTER_BYTES];

	memcpy(pointer_z, l->pointer_z, sizeof(pointer_z));
	while (!json_locate(l->text, pointer_z, at_name && pointer_z[0] != '\0', &f->line, &f->column)) {
		if (pointer_z[0] == '\0')
			return;
		json_pointer_pop(pointer_z);
		at_name = false;
	}
}

__attribute__((format(printf, 4, 0))) static void report(
	struct load *l, enum problem problem, bool at_name, const char *format, va_list args)
{
	char text_z[sizeof(((struct fault *)0)->text_z)];
	enum fault_severity severity = problem == PROBLEM_RISKY ? FAULT_WARNING : FAULT_ERROR;
	const char *code = load_problem_word(problem);
	struct fault *f;

	if (severity == FAULT_ERROR)
		l->n_errors++;
	if (l->n_faults++ >= LOAD_FAULTS_MAX) {
		if (l->n_faults == LOAD_FAULTS_MAX + 1)
			(void)fault_add(
				l->faults, severity, code, "", "there are too many faults to list the rest");
		return;
	}
	(void)vsnprintf(text_z, sizeof(text_z), format, args);
	f = fault_add(l->faults, severity, code, l->pointer_z, "%s", text_z);
	if (f == NULL)
		return;
	memcpy(f->file_z, l->config->file_z, sizeof(f->file_z));
	fault_place(l, f, at_name);
}

void load_error(struct load *l, enum problem p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(l, p, false, format, args);
	va_end(args);
}

void load_error_name(struct load *l, enum problem p, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(l, p, true, format, args);
	va_end(args);
}

void load_warn(struct load *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	report(l, PROBLEM_RISKY, false, format, args);
	va_end(args);
}

const char *load_show(struct shown *ret, struct str s)
{
	struct text t;

	text_init(&t, ret->z, sizeof(ret->z) - 1);
	text_visible(&t, s, 32); /* four characters a byte at most, and three dots */
	ret->z[t.len] = '\0';
	return ret->z;
}

const char *load_hint(struct shown *ret, struct str s, const struct str *names, size_t n)
{
	size_t i = str_nearest(s, names, n);

	ret->z[0] = '\0';
	if (i < n)
		(void)snprintf(ret->z, sizeof(ret->z), " (did you mean \"%.*s\"?)", STR_ARG(names[i]));
	return ret->z;
}

bool load_is(struct load *l, const struct json *v, enum json_kind kind)
{
	if (json_kind(v) == kind)
		return true;
	load_error(l, PROBLEM_WRONG_TYPE, "must be %s, not %s", json_kind_name(kind),
		json_kind_name(json_kind(v)));
	return false;
}

bool load_text(struct load *l, const struct json *v, struct str *ret)
{
	if (!load_is(l, v, JSON_KIND_STRING))
		return false;
	*ret = json_text(v);
	return true;
}

bool load_name_ok(struct load *l, struct str name, bool is_member)
{
	static const char *const rule = "1 to 63 of a-z, 0-9, _ and -, beginning with a letter or digit";
	struct shown shown;
	bool ok = name.len >= 1 && name.len <= 63 && name.ptr[0] != '_' && name.ptr[0] != '-';

	for (size_t i = 0; ok && i < name.len; i++) {
		char c = name.ptr[i];

		ok = (c >= 'a' && c <= 'z') || str_is_digit(c) || c == '_' || c == '-';
	}
	if (!ok && is_member)
		load_error_name(
			l, PROBLEM_BAD_SYNTAX, "\"%s\" is no name: %s", load_show(&shown, name), rule);
	else if (!ok)
		load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" is no name: %s", load_show(&shown, name), rule);
	return ok;
}

/* ---- lists */

static bool seen_before(const char *items, size_t n, size_t item_size)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(items + i * item_size, items + n * item_size, item_size) == 0)
			return true;
	return false;
}

static bool list_item(
	struct load *l, const struct json *v, const struct load_list *form, char *items, size_t n)
{
	struct shown shown;
	struct str s;

	if (!load_text(l, v, &s) || !form->read(l, s, items + n * form->item_size, form->context))
		return false;
	if (form->unique && seen_before(items, n, form->item_size)) {
		load_error(l, PROBLEM_DUPLICATE_NAME, "\"%s\" comes twice", load_show(&shown, s));
		return false;
	}
	return true;
}

void *load_list(struct load *l, const struct json *v, const struct load_list *form, size_t *ret_n)
{
	enum json_kind kind = json_kind(v);
	size_t n = 0, count;
	char *items;

	*ret_n = 0;
	if (kind != JSON_KIND_ARRAY && !(form->string_ok && kind == JSON_KIND_STRING)) {
		load_error(l, PROBLEM_WRONG_TYPE,
			form->string_ok ? "must be a string or a list of strings, not %s"
					: "must be a list of strings, not %s",
			json_kind_name(kind));
		return NULL;
	}
	count = kind == JSON_KIND_ARRAY ? json_count(v) : 1;
	if ((count == 0 && !form->empty_ok) || count > form->max) {
		load_error(l, PROBLEM_OUT_OF_RANGE, "must hold %s%zu items, not %zu",
			form->empty_ok ? "at most " : "1 to ", form->max, count);
		return NULL;
	}
	items = arena_array(l->arena, count, form->item_size);
	if (items == NULL)
		return NULL;
	if (kind == JSON_KIND_STRING)
		n = list_item(l, v, form, items, 0) ? 1 : 0;
	for (size_t i = 0; kind == JSON_KIND_ARRAY && i < count; i++) {
		size_t mark = load_enter_index(l, i);

		if (list_item(l, json_item(v, i), form, items, n))
			n++;
		load_leave(l, mark);
	}
	*ret_n = n;
	return n > 0 ? items : NULL;
}

void *load_map(struct load *l, const struct json *v, size_t item_size)
{
	void *items;

	if (!load_is(l, v, JSON_KIND_OBJECT))
		return NULL;
	if (json_count(v) > LOAD_ITEMS_MAX) {
		load_error(l, PROBLEM_OUT_OF_RANGE, "must hold at most %d members, not %zu", LOAD_ITEMS_MAX,
			json_count(v));
		return NULL;
	}
	items = arena_array(l->arena, json_count(v), item_size);
	if (items != NULL)
		memset(items, 0, json_count(v) * item_size);
	return items;
}

static bool read_range(struct load *l, struct str s, void *slot, const void *context)
{
	bool *const *with_unix = context;
	const char *why = "";
	struct range better;
	bool has_better = false;
	char better_z[RANGE_TEXT_BYTES];
	struct shown shown;

	if (range_parse(slot, s, &why, &better, &has_better))
		return true;
	if (*with_unix != NULL && str_equal(s, STR("unix"))) {
		**with_unix = true;
		return false;
	}
	if (has_better)
		(void)range_print(&better, better_z);
	load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" is no address range: %s%s%s%s", load_show(&shown, s), why,
		has_better ? " (did you mean \"" : "", has_better ? better_z : "", has_better ? "\"?)" : "");
	return false;
}

void load_ranges(struct load *l, const struct json *v, bool string_ok, bool *with_unix, struct range_set *ret)
{
	const struct load_list form = {.read = read_range,
		.context = &with_unix,
		.item_size = sizeof(struct range),
		.max = LOAD_RANGES_MAX,
		.string_ok = string_ok,
		.empty_ok = !string_ok};
	size_t n;
	struct range *items = load_list(l, v, &form, &n);

	if (items != NULL)
		(void)range_set_build(ret, l->arena, items, n);
}

/* ---- references */

struct name_table {
	const char *what_z;
	const void *items; /* whose first member is the name */
	size_t n, item_size;
};

static struct str name_at(const struct name_table *t, size_t i)
{
	return *(const struct str *)(const void *)((const char *)t->items + i * t->item_size);
}

static bool read_reference(struct load *l, struct str s, void *slot, const void *context)
{
	const struct name_table *t = context;
	struct str names[LOAD_ITEMS_MAX];
	struct shown shown, hint;

	for (size_t i = 0; i < t->n; i++) {
		names[i] = name_at(t, i);
		if (str_equal(names[i], s)) {
			*(uint16_t *)slot = (uint16_t)i;
			return true;
		}
	}
	load_error(l, PROBLEM_UNKNOWN_NAME, "no %s is named \"%s\"%s", t->what_z, load_show(&shown, s),
		load_hint(&hint, s, names, t->n));
	return false;
}

uint16_t *load_limit_names(struct load *l, const struct json *v, size_t max, size_t *ret_n)
{
	const struct name_table table = {"limit", l->limits, l->n_limits, sizeof(*l->limits)};
	const struct load_list form = {.read = read_reference,
		.context = &table,
		.item_size = sizeof(uint16_t),
		.max = max,
		.empty_ok = false,
		.unique = true};

	return load_list(l, v, &form, ret_n);
}

uint16_t *load_identity_names(struct load *l, const struct json *v, bool string_ok, size_t *ret_n)
{
	const struct name_table table = {"identity", l->identities, l->n_identities, sizeof(*l->identities)};
	const struct load_list form = {.read = read_reference,
		.context = &table,
		.item_size = sizeof(uint16_t),
		.max = LOAD_ITEMS_MAX,
		.string_ok = string_ok,
		.unique = true};

	return load_list(l, v, &form, ret_n);
}
