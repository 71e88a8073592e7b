/* SPDX-License-Identifier: MIT */
/*
 * Limits: a rate, a burst and a key. A rate of 0 is refused with a hint instead of being given one of the meanings that
 * it has elsewhere (no limit, nobody, one a second). A limit that is faulty keeps its place and name, so that what
 * refers to it is judged on its own.
 */
#include "config/load.h"

#define COUNT_MAX ((uint64_t)INT32_MAX)

static const struct {
	struct str word;
	ns period_ns;
} units[] = {
	{{"s", 1}, NS_PER_S},
	{{"second", 6}, NS_PER_S},
	{{"m", 1}, 60 * NS_PER_S},
	{{"minute", 6}, 60 * NS_PER_S},
	{{"h", 1}, 3600 * NS_PER_S},
	{{"hour", 4}, 3600 * NS_PER_S},
	{{"d", 1}, 86400 * NS_PER_S},
	{{"day", 3}, 86400 * NS_PER_S},
};

bool config_rate_parse(struct str s, uint64_t *ret_count, ns *ret_period_ns)
{
	size_t slash = str_find(s, '/'), digits = 0;
	struct str unit = str_from(s, slash + 1);
	uint64_t count, times = 1;
	ns period_ns = 0;

	if (!str_to_u64(str_head(s, slash), COUNT_MAX, &count) || count == 0)
		return false;
	while (digits < unit.len && str_is_digit(unit.ptr[digits]))
		digits++;
	if (digits > 0 && (!str_to_u64(str_head(unit, digits), COUNT_MAX, &times) || times == 0))
		return false;
	unit = str_from(unit, digits);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (str_equal(unit, units[i].word))
			period_ns = units[i].period_ns;
	if (period_ns == 0 || __builtin_mul_overflow(period_ns, times, &period_ns))
		return false;
	*ret_count = count;
	*ret_period_ns = period_ns;
	return true;
}

static const struct {
	struct str word;
	enum key_part part;
} key_words[] = {
	{{"client", 6}, KEY_CLIENT},
	{{"network", 7}, KEY_NETWORK},
	{{"identity", 8}, KEY_IDENTITY},
	{{"host", 4}, KEY_HOST},
	{{"path", 4}, KEY_PATH},
	{{"method", 6}, KEY_METHOD},
};

#define N_KEY_WORDS (sizeof(key_words) / sizeof(key_words[0]))

static bool read_key_part(struct load *l, struct str s, void *slot, const void *context)
{
	struct limit_key_part *part = slot;
	struct str names[N_KEY_WORDS + 1] = {STR("header:NAME")};
	struct shown shown, hint;

	(void)context;
	memset(part, 0, sizeof(*part));
	for (size_t i = 0; i < N_KEY_WORDS; i++) {
		names[i + 1] = key_words[i].word;
		if (str_equal(s, key_words[i].word)) {
			part->part = key_words[i].part;
			return true;
		}
	}
	if (!str_starts_with(s, STR("header:"))) {
		load_error(l, PROBLEM_UNKNOWN_NAME,
			"\"%s\" is not one of client, network, identity, host, path, method, "
			"header:NAME%s",
			load_show(&shown, s), load_hint(&hint, s, names, N_KEY_WORDS + 1));
		return false;
	}
	s = str_from(s, strlen("header:"));
	if (!str_is_token(s)) {
		load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" is no header name", load_show(&shown, s));
		return false;
	}
	part->part = KEY_HEADER;
	part->header = arena_copy(l->arena, s);
	return true;
}

static bool same_part(const struct limit_key_part *a, const struct limit_key_part *b)
{
	return a->part == b->part && (a->part != KEY_HEADER || str_equal_nocase(a->header, b->header));
}

static void compile_key(struct load *l, const struct json *v, struct limit *limit)
{
	static const struct limit_key_part client_only[] = {{.part = KEY_CLIENT}};
	const struct load_list form = {.read = read_key_part,
		.item_size = sizeof(struct limit_key_part),
		.max = LIMIT_KEY_PARTS_MAX};
	struct limit_key_part *parts;

	limit->key = client_only;
	limit->n_key = 1;
	if (v == NULL)
		return;
	parts = load_list(l, v, &form, &limit->n_key);
	limit->key = parts;
	for (size_t i = 0; i < limit->n_key; i++)
		for (size_t k = 0; k < i; k++)
			if (same_part(&parts[i], &parts[k]))
				load_error(l, PROBLEM_DUPLICATE_NAME, "one of its parts comes twice");
}

static bool read_rate(struct load *l, const struct json *v, uint64_t *ret_count, ns *ret_period_ns)
{
	struct shown shown;
	struct str s;

	if (!load_text(l, v, &s))
		return false;
	if (config_rate_parse(s, ret_count, ret_period_ns))
		return true;
	if (str_starts_with(s, STR("0/")))
		load_error(l, PROBLEM_OUT_OF_RANGE,
			"a rate of 0 would let nobody pass; use a rule with \"action\": \"deny\", "
			"or one without limits to let everybody pass");
	else
		load_error(l, PROBLEM_BAD_SYNTAX,
			"\"%s\" is no rate: a number, a slash and s, m, h, d, second, minute, hour, "
			"day, or several of them, without spaces, as in 300/minute or 100/15m",
			load_show(&shown, s));
	return false;
}

static void compile_rate(struct load *l, struct limit *limit)
{
	const struct found *burst = &l->found[SETTING_LIMIT_BURST];
	uint64_t count;
	ns period_ns;
	size_t mark;
	bool ok;

	if (!settings_enter(l, SETTING_LIMIT_RATE, &mark)) {
		load_error_name(
			l, PROBLEM_MISSING_MEMBER, "\"rate\" is missing, as in \"rate\": \"300/minute\"");
		return;
	}
	ok = read_rate(l, l->found[SETTING_LIMIT_RATE].value, &count, &period_ns);
	if (ok && !bucket_rule_make(&limit->bucket, count, period_ns, burst->ok ? burst->number : count)) {
		load_error(l, PROBLEM_OUT_OF_RANGE,
			"the time that refills this limit (rate and burst) is over 146 years, or the "
			"rate is too large");
		ok = false;
	}
	if (ok)
		limit->window_s = (bucket_room_ns(&limit->bucket) + NS_PER_S - 1) / NS_PER_S;
	load_leave(l, mark);
}

static void compile_limit(struct load *l, const struct json *v, struct limit *limit)
{
	size_t mark;

	if (!settings_read(l, "limits.*", v))
		return;
	compile_rate(l, limit);
	limit->headers = !l->found[SETTING_LIMIT_HEADERS].ok || l->found[SETTING_LIMIT_HEADERS].number != 0;
	if (settings_enter(l, SETTING_LIMIT_KEY, &mark)) {
		compile_key(l, l->found[SETTING_LIMIT_KEY].value, limit);
		load_leave(l, mark);
	} else {
		compile_key(l, NULL, limit);
	}
}

void limits_compile(struct load *l, const struct json *v)
{
	struct json_walk w;

	l->limits = load_map(l, v, sizeof(*l->limits));
	if (l->limits == NULL)
		return;
	w = json_walk_start(v);
	while (json_walk_next(&w)) {
		size_t mark;

		if (str_equal(w.name, STR("$comment")))
			continue;
		mark = load_enter(l, w.name);
		(void)load_name_ok(l, w.name, true);
		l->limits[l->n_limits].name = arena_copy(l->arena, w.name);
		compile_limit(l, w.value, &l->limits[l->n_limits++]);
		load_leave(l, mark);
	}
	l->config->rules.limits = l->limits;
	l->config->rules.n_limits = l->n_limits;
}
