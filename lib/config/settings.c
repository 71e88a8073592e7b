/* SPDX-License-Identifier: MIT */
/*
 * The rows of settings.def at work: which names an object knows, and how scalars are read. A default is a text of the
 * table and goes through the same reading as a text of the file, so that table, program and schema cannot drift apart.
 * Values are stored by a switch that is made of the rows and assigns by name: an offset and a size in a table would have
 * to be right for every type, this the compiler checks.
 */
#include "config/load.h"

#include "base/must.h"

#include <stdio.h>

enum kind { COUNT, SIZE, DURATION, BOOL, WORD, TEXT, LIST, TEXTS, OBJECT, MAP, ITEMS, NOTHING };

struct row {
	struct str path;
	enum kind kind;
	struct str range, fallback;
	bool refused, has_field;
};

static const struct row rows[SETTING_COUNT] = {
#define SETTING(id, path, kind, range, fallback, help, field)                                                \
	[SETTING_##id] = {STR(path), kind, STR(range), STR(fallback), false, true},
#define MEMBER(id, path, kind, range, fallback, help)                                                        \
	[SETTING_##id] = {STR(path), kind, STR(range), STR(fallback), false, false},
#define REFUSED(id, path, help) [SETTING_##id] = {STR(path), NOTHING, {NULL, 0}, {NULL, 0}, true, false},
#include "settings.def"
};

static void setting_store(struct config *c, enum setting id, uint64_t v)
{
	switch (id) {
#define SETTING(id, path, kind, range, fallback, help, field)                                                \
	case SETTING_##id:                                                                                   \
		c->field = (__typeof__(c->field))v;                                                          \
		break;
#include "settings.def"
	default: break;
	}
}

/* The last part of the row's path if the rest of it is prefix, else empty. */
static struct str name_under(const struct row *row, struct str prefix)
{
	size_t dot = str_find_last(row->path, '.');
	bool top = dot == row->path.len;

	if (!str_equal(top ? STR("") : str_head(row->path, dot), prefix))
		return STR("");
	return top ? row->path : str_from(row->path, dot + 1);
}

static enum setting find(struct str prefix, struct str name)
{
	size_t i = 0;

	while (i < SETTING_COUNT && (name.len == 0 || !str_equal(name_under(&rows[i], prefix), name)))
		i++;
	return (enum setting)i;
}

static void report_unknown(struct load *l, struct str prefix, struct str name)
{
	struct str names[SETTING_COUNT];
	struct shown shown, hint;
	size_t n = 0;

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		struct str known = name_under(&rows[i], prefix);

		if (known.len != 0 && !rows[i].refused)
			names[n++] = known;
	}
	load_error_name(l, PROBLEM_UNKNOWN_MEMBER, "\"%s\" is not known here%s", load_show(&shown, name),
		load_hint(&hint, name, names, n));
}

/* ---- scalars as texts */

struct unit {
	struct str word;
	uint64_t factor;
};

static const struct unit size_units[] = {{{"KiB", 3}, 1 << 10}, {{"MiB", 3}, 1 << 20}, {{"GiB", 3}, 1 << 30}};
static const struct unit duration_units[] = {{{"ms", 2}, NS_PER_MS}, {{"s", 1}, NS_PER_S},
	{{"m", 1}, 60 * NS_PER_S}, {{"h", 1}, 3600 * NS_PER_S}, {{"d", 1}, 86400 * NS_PER_S}};

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static bool parse_units(struct str s, const struct unit *units, size_t n_units, uint64_t *ret)
{
	size_t digits = 0;
	uint64_t v;

	while (digits < s.len && str_is_digit(s.ptr[digits]))
		digits++;
	if (!str_to_u64(str_head(s, digits), UINT32_MAX, &v))
		return false;
	for (size_t i = 0; i < n_units; i++)
		if (str_equal(str_from(s, digits), units[i].word))
			return !__builtin_mul_overflow(v, units[i].factor, ret);
	return false;
}

static bool parse_word(struct str s, struct str words, uint64_t *ret)
{
	for (uint64_t i = 0; words.len != 0; i++) {
		size_t bar = str_find(words, '|');

		if (str_equal(str_head(words, bar), s)) {
			*ret = i;
			return true;
		}
		words = str_from(words, bar + 1);
	}
	return false;
}

static bool parse_scalar(const struct row *row, struct str s, uint64_t *ret)
{
	switch (row->kind) {
	case COUNT: return str_to_u64(s, UINT64_MAX, ret);
	case SIZE: return parse_units(s, size_units, N_OF(size_units), ret);
	case DURATION: return parse_units(s, duration_units, N_OF(duration_units), ret);
	case BOOL: return parse_word(s, STR("false|true"), ret);
	case WORD: return parse_word(s, row->range, ret);
	default: return false;
	}
}

static bool in_range(const struct row *row, uint64_t v)
{
	size_t dot = str_find(row->range, '.');
	uint64_t low = 0, high = 0;

	if (row->kind == BOOL || row->kind == WORD)
		return true;
	must(parse_scalar(row, str_head(row->range, dot), &low));
	if (dot == row->range.len)
		return v == low;
	must(parse_scalar(row, str_from(row->range, dot + 2), &high));
	return v >= low && v <= high;
}

void settings_set_defaults(struct config *c)
{
	for (size_t i = 0; i < SETTING_COUNT; i++) {
		uint64_t v;

		if (!rows[i].has_field)
			continue;
		must(parse_scalar(&rows[i], rows[i].fallback, &v) && in_range(&rows[i], v));
		setting_store(c, (enum setting)i, v);
	}
}

struct str setting_default(enum setting id)
{
	return rows[id].fallback;
}

/* ---- scalars in the file */

static const char *const kind_texts[] = {[COUNT] = "a whole number",
	[SIZE] = "a size such as \"16KiB\", or bytes",
	[DURATION] = "a duration such as \"10s\"",
	[BOOL] = "true or false",
	[WORD] = "a string"};

static const char *const syntax_hints[] = {
	[SIZE] = "a whole number and one of KiB, MiB, GiB, without a space",
	[DURATION] = "a whole number and one of ms, s, m, h, d, without a space"};

static void report_word(struct load *l, const struct row *row, struct str s)
{
	struct str names[16], words = row->range;
	struct shown shown, hint;
	size_t n = 0;

	while (words.len != 0 && n < N_OF(names)) {
		size_t bar = str_find(words, '|');

		names[n++] = str_head(words, bar);
		words = str_from(words, bar + 1);
	}
	load_error(l, PROBLEM_UNKNOWN_NAME, "\"%s\" is not one of %.*s%s", load_show(&shown, s),
		STR_ARG(row->range), load_hint(&hint, s, names, n));
}

static bool read_text(struct load *l, const struct row *row, struct str s, uint64_t *ret)
{
	struct shown shown;

	if (parse_scalar(row, s, ret))
		return true;
	if (row->kind == WORD)
		report_word(l, row, s);
	else
		load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" does not have the right form: %s",
			load_show(&shown, s), syntax_hints[row->kind]);
	return false;
}

static bool read_scalar(struct load *l, const struct row *row, const struct json *v, uint64_t *ret)
{
	enum json_kind kind = json_kind(v);
	char number_z[24] = "";
	struct shown shown;
	uint64_t n;

	if (kind == JSON_KIND_INTEGER && (row->kind == COUNT || row->kind == SIZE)) {
		int64_t i = json_integer_of(v);

		n = i < 0 ? UINT64_MAX : (uint64_t)i; /* no range goes that far */
		(void)snprintf(number_z, sizeof(number_z), "%lld", (long long)i);
	} else if (kind == JSON_KIND_STRING &&
		   (row->kind == SIZE || row->kind == DURATION || row->kind == WORD)) {
		if (!read_text(l, row, json_text(v), &n))
			return false;
	} else if (kind == JSON_KIND_BOOL && row->kind == BOOL) {
		n = json_bool(v) ? 1 : 0;
	} else {
		load_error(l, PROBLEM_WRONG_TYPE, "must be %s, not %s", kind_texts[row->kind],
			json_kind_name(kind));
		return false;
	}
	if (!in_range(row, n)) {
		load_error(l, PROBLEM_OUT_OF_RANGE, "must be %.*s, not %s", STR_ARG(row->range),
			number_z[0] != '\0' ? number_z : load_show(&shown, json_text(v)));
		return false;
	}
	*ret = n;
	return true;
}

static void read_member(struct load *l, struct str prefix, struct str name, const struct json *v)
{
	enum setting id = find(prefix, name);
	struct found *f;

	if (id == SETTING_COUNT) {
		report_unknown(l, prefix, name);
		return;
	}
	f = &l->found[id];
	f->value = v;
	if (rows[id].refused) {
		/* A listener that is turned off is off in this version, too. */
		if (!(str_equal(prefix, STR("listen")) && json_kind(v) == JSON_KIND_NULL))
			load_error_name(l, PROBLEM_NOT_IN_THIS_VERSION,
				"this version cannot serve \"%.*s\" yet", STR_ARG(rows[id].path));
	} else if (rows[id].kind <= WORD) {
		f->ok = read_scalar(l, &rows[id], v, &f->number);
		if (f->ok)
			setting_store(l->config, id, f->number);
	}
}

bool settings_read(struct load *l, const char *path_z, const struct json *v)
{
	struct str prefix = str_from_z(path_z);
	struct json_walk w;

	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (name_under(&rows[i], prefix).len != 0)
			l->found[i] = (struct found){0};
	if (!load_is(l, v, JSON_KIND_OBJECT))
		return false;
	w = json_walk_start(v);
	while (json_walk_next(&w)) {
		size_t mark;

		if (str_equal(w.name, STR("$comment")))
			continue;
		mark = load_enter(l, w.name);
		read_member(l, prefix, w.name, w.value);
		load_leave(l, mark);
	}
	return true;
}

bool settings_enter(struct load *l, enum setting object, size_t *ret_mark)
{
	const struct row *row = &rows[object];
	const struct json *v = l->found[object].value;
	size_t dot = str_find_last(row->path, '.');

	if (v == NULL)
		return false;
	*ret_mark = load_enter(l, dot < row->path.len ? str_from(row->path, dot + 1) : row->path);
	return true;
}
