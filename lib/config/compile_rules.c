/* SPDX-License-Identifier: MIT */
/*
 * Rules. The first match wins and the last rule catches the rest, so an order that hides rules is refused, and so is a
 * pattern that could never match what requests are compared with: a path that is not in its normal form, a host with a
 * port, an empty list. Such a pattern would leave its requests to a wider rule without a word.
 * found[] holds one object a path, so a rule's members are read before its match is.
 */
#include "config/load.h"

#include "core/path.h"

#define MATCH_ITEMS_MAX 1024

/* ---- what a match is made of */

static bool read_host(struct load *l, struct str s, void *slot, const void *context)
{
	bool literal = str_starts_with(s, STR("[")) && str_ends_with(s, STR("]"));
	struct str host = str_ends_with(s, STR(".")) ? str_head(s, s.len - 1) : s;
	bool ok = host.len > 0;
	struct shown shown;
	char *lower;

	(void)context;
	for (size_t i = 0; ok && i < host.len; i++) {
		unsigned char c = (unsigned char)host.ptr[i];

		ok = c > 0x20 && c < 0x7f && strchr("/*?#@,;\"\\", c) == NULL && (c != ':' || literal);
	}
	lower = arena_alloc(l->arena, host.len);
	if (!ok || lower == NULL) {
		load_error(l, PROBLEM_BAD_SYNTAX,
			"\"%s\" is no host: a name without port, scheme, path or wildcard, or [v6]",
			load_show(&shown, s));
		return false;
	}
	for (size_t i = 0; i < host.len; i++)
		lower[i] = str_lower_char(host.ptr[i]);
	*(struct str *)slot = str_make(lower, host.len);
	return true;
}

static bool read_method(struct load *l, struct str s, void *slot, const void *context)
{
	static const struct str usual[] = {{"GET", 3}, {"HEAD", 4}, {"POST", 4}, {"PUT", 3}, {"DELETE", 6},
		{"CONNECT", 7}, {"OPTIONS", 7}, {"TRACE", 5}, {"PATCH", 5}};
	struct shown shown;

	(void)context;
	if (!str_is_token(s)) {
		load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" is no method", load_show(&shown, s));
		return false;
	}
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (str_equal_nocase(s, usual[i]) && !str_equal(s, usual[i]))
			load_warn(l, "methods compare exactly: \"%.*s\" is not \"%.*s\"", STR_ARG(s),
				STR_ARG(usual[i]));
	*(struct str *)slot = arena_copy(l->arena, s);
	return true;
}

static bool read_path(struct load *l, struct str s, void *slot, const void *context)
{
	const bool *ignore_case = context;
	bool is_prefix = str_ends_with(s, STR("/*"));
	struct str exact = is_prefix ? str_head(s, s.len - 2) : s;
	struct shown shown, better;
	struct str normal, text;

	if (!str_starts_with(s, STR("/")) || str_find(exact, '*') != exact.len) {
		load_error(l, PROBLEM_BAD_SYNTAX,
			"\"%s\" is no path: it must begin with / and may have /* at its end only",
			load_show(&shown, s));
		return false;
	}
	normal = exact.len > 0 ? path_normalise(exact, l->arena) : exact;
	if (is_prefix && str_equal(normal, STR("/")))
		normal = STR(""); /* the pattern for everything */
	if (!str_equal(normal, exact)) {
		load_error(l, PROBLEM_BAD_SYNTAX,
			"paths are compared in their normal form, which \"%s\" is not (did you mean "
			"\"%s%s\"?)",
			load_show(&shown, s), load_show(&better, normal), is_prefix ? "/*" : "");
		return false;
	}
	text = arena_copy(l->arena, is_prefix ? str_head(s, s.len - 1) : s);
	if (*ignore_case)
		text = path_fold_case(text, l->arena);
	memset(slot, 0, sizeof(struct path_pattern));
	*(struct path_pattern *)slot = (struct path_pattern){.text = text, .is_prefix = is_prefix};
	return true;
}

static const struct json *match_enter(struct load *l, enum setting member, size_t *ret_mark)
{
	return settings_enter(l, member, ret_mark) ? l->found[member].value : NULL;
}

static void *match_list(struct load *l, enum setting member, struct load_list form, size_t *ret_n)
{
	void *items = NULL;
	const struct json *v;
	size_t mark;

	form.max = MATCH_ITEMS_MAX;
	form.string_ok = true;
	v = match_enter(l, member, &mark);
	if (v != NULL) {
		items = load_list(l, v, &form, ret_n);
		load_leave(l, mark);
	}
	return items;
}

static bool match_is_empty(const struct json *v)
{
	return json_count(v) - (json_member(v, "$comment") != NULL ? 1 : 0) == 0;
}

static void compile_match(struct load *l, const struct json *v, struct rule *rule)
{
	struct rule_match *m = &rule->match;
	size_t mark;

	if (!settings_read(l, "rules.*.match", v))
		return;
	if (match_is_empty(v))
		load_error(l, PROBLEM_MISSING_MEMBER,
			"an empty match would match everything; only the last rule does, by having "
			"none");
	m->hosts = match_list(l, SETTING_RULE_MATCH_HOST,
		(struct load_list){.read = read_host, .item_size = sizeof(struct str)}, &m->n_hosts);
	m->methods = match_list(l, SETTING_RULE_MATCH_METHOD,
		(struct load_list){.read = read_method, .item_size = sizeof(struct str)}, &m->n_methods);
	m->paths = match_list(l, SETTING_RULE_MATCH_PATH,
		(struct load_list){.read = read_path,
			.context = &rule->ignore_case,
			.item_size = sizeof(struct path_pattern)},
		&m->n_paths);
	v = match_enter(l, SETTING_RULE_MATCH_IDENTITY, &mark);
	if (v != NULL) {
		m->identities = load_identity_names(l, v, true, &m->n_identities);
		load_leave(l, mark);
	}
	v = match_enter(l, SETTING_RULE_MATCH_CLIENT, &mark);
	if (v != NULL) {
		load_ranges(l, v, true, NULL, &m->clients);
		load_leave(l, mark);
	}
}

/* ---- what a rule does */

static void compile_require(struct load *l, const struct json *v, struct rule *rule)
{
	struct shown shown;

	if (json_kind(v) != JSON_KIND_STRING) {
		rule->require = REQUIRE_LISTED;
		rule->required = load_identity_names(l, v, false, &rule->n_required);
	} else if (str_equal(json_text(v), STR("identity"))) {
		rule->require = REQUIRE_ANY;
	} else {
		load_error(l, PROBLEM_BAD_SYNTAX,
			"must be the word \"identity\" or a list of names of identities, not \"%s\"",
			load_show(&shown, json_text(v)));
	}
}

static void compile_effect(struct load *l, struct rule *rule)
{
	const struct found *action = &l->found[SETTING_RULE_ACTION], *limits = &l->found[SETTING_RULE_LIMITS];
	const struct found *require = &l->found[SETTING_RULE_REQUIRE];
	size_t mark;

	if (action->ok)
		rule->action = action->number == 0 ? ACTION_DENY : ACTION_ALLOW;
	if (settings_enter(l, SETTING_RULE_ACTION, &mark)) {
		if (limits->value != NULL || require->value != NULL)
			load_error_name(l, PROBLEM_CONFLICT,
				"an action decides at once and excludes \"limits\" and \"require\"");
		load_leave(l, mark);
	}
	if (settings_enter(l, SETTING_RULE_LIMITS, &mark)) {
		rule->limits = load_limit_names(l, limits->value, RULE_LIMITS_MAX, &rule->n_limits);
		load_leave(l, mark);
	}
	if (settings_enter(l, SETTING_RULE_REQUIRE, &mark)) {
		compile_require(l, require->value, rule);
		load_leave(l, mark);
	}
}

static void check_order(struct load *l, const struct json *match, bool is_last)
{
	size_t mark;

	if (match == NULL && !is_last) {
		load_error(l, PROBLEM_MISSING_MEMBER,
			"only the last rule may be without \"match\": the rules behind this one "
			"would never be reached");
	} else if (match != NULL && is_last) {
		(void)settings_enter(l, SETTING_RULE_MATCH, &mark);
		load_error_name(l, PROBLEM_CONFLICT,
			"the last rule must have no match, so that every request falls under a "
			"rule; to let the rest pass, end with {\"name\": \"rest\", \"action\": \"allow\"}");
		load_leave(l, mark);
	}
}

static void compile_name(struct load *l, struct rule *rules, size_t i)
{
	struct str name;
	size_t mark;

	if (!settings_enter(l, SETTING_RULE_NAME, &mark)) {
		load_error(l, PROBLEM_MISSING_MEMBER, "\"name\" is missing");
		return;
	}
	if (load_text(l, l->found[SETTING_RULE_NAME].value, &name) && load_name_ok(l, name, false)) {
		rules[i].name = arena_copy(l->arena, name);
		for (size_t k = 0; k < i; k++)
			if (str_equal(rules[k].name, name)) {
				load_error(l, PROBLEM_DUPLICATE_NAME,
					"rule %zu has the name \"%.*s\" already", k + 1, STR_ARG(name));
				break;
			}
	}
	load_leave(l, mark);
}

static void compile_rule(struct load *l, const struct json *v, struct rule *rules, size_t i, bool is_last)
{
	struct rule *rule = &rules[i];
	size_t mark;

	if (!settings_read(l, "rules.*", v))
		return;
	compile_name(l, rules, i);
	rule->shadow = l->found[SETTING_RULE_MODE].number != 0;
	rule->ignore_case = l->found[SETTING_RULE_IGNORE_CASE].number != 0;
	check_order(l, l->found[SETTING_RULE_MATCH].value, is_last);
	compile_effect(l, rule);
	if (settings_enter(l, SETTING_RULE_MATCH, &mark)) {
		compile_match(l, l->found[SETTING_RULE_MATCH].value, rule);
		load_leave(l, mark);
	}
}

/* Without rules of its own a configuration gets one, and without limits the limit for it. */
static void build_default(struct load *l)
{
	static const struct limit_key_part key[] = {{.part = KEY_CLIENT}};
	static const uint16_t limits[] = {0};
	struct ruleset *r = &l->config->rules;
	struct limit *limit = arena_alloc(l->arena, sizeof(*limit));
	struct rule *rule = arena_alloc(l->arena, sizeof(*rule));

	if (limit == NULL || rule == NULL)
		return;
	*limit = (struct limit){
		.name = STR("per-client"), .window_s = 60, .key = key, .n_key = 1, .headers = true};
	(void)bucket_rule_make(&limit->bucket, 300, 60 * NS_PER_S, 300);
	*rule = (struct rule){.name = STR("default"), .limits = limits, .n_limits = 1};
	r->limits = limit;
	r->rules = rule;
	r->n_limits = r->n_rules = 1;
}

static void compile_list(struct load *l, const struct json *v)
{
	size_t n = json_count(v);
	struct rule *rules;

	if (n == 0 || n > LOAD_ITEMS_MAX) {
		load_error(l, PROBLEM_OUT_OF_RANGE, "must hold 1 to %d rules, not %zu", LOAD_ITEMS_MAX, n);
		return;
	}
	rules = arena_array(l->arena, n, sizeof(*rules));
	if (rules == NULL)
		return;
	memset(rules, 0, n * sizeof(*rules));
	for (size_t i = 0; i < n; i++) {
		size_t mark = load_enter_index(l, i);

		compile_rule(l, json_item(v, i), rules, i, i + 1 == n);
		load_leave(l, mark);
	}
	l->config->rules.rules = rules;
	l->config->rules.n_rules = n;
}

void rules_compile(struct load *l, const struct json *v)
{
	if (load_is(l, v, JSON_KIND_ARRAY))
		compile_list(l, v);
}

void rules_default(struct load *l)
{
	size_t mark;

	if (l->n_limits == 0) {
		build_default(l);
		return;
	}
	mark = load_enter(l, STR("limits"));
	load_error_name(l, PROBLEM_MISSING_MEMBER,
		"limits without \"rules\" would limit nothing; add for instance \"rules\": "
		"[{\"name\": \"rest\", \"limits\": [\"%.*s\"]}]",
		STR_ARG(l->limits[0].name));
	load_leave(l, mark);
}
