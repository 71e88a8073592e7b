/* SPDX-License-Identifier: MIT */
/*
 * Who is believed about the client's address. Strict on purpose: a parameter that a strategy does not take, a spelling
 * that is nearly right or a range that holds everything would each mean that addresses are believed, or not, that the
 * operator did not have in mind, and nobody would notice before the wrong clients share a bucket.
 * Nothing about proxies is guessed, so parameters without a strategy are refused, with the line that is missing.
 */
#include "config/load.h"

#define FORWARDED_FOR "X-Forwarded-For"
#define FORWARDED "Forwarded"

static const enum setting parameters[] = {SETTING_CLIENT_TRUSTED_PROXIES, SETTING_CLIENT_TRUST_UNIX,
	SETTING_CLIENT_ON_UNDECIDED, SETTING_CLIENT_HEADER, SETTING_CLIENT_HOPS};

#define N_PARAMETERS (sizeof(parameters) / sizeof(parameters[0]))

static bool is_list_header(struct str name)
{
	return str_equal_nocase(name, STR(FORWARDED_FOR)) || str_equal_nocase(name, STR(FORWARDED));
}

/* The strategy that the other parameters were probably written for. */
static const char *likely_strategy(const struct load *l)
{
	const struct json *header = l->found[SETTING_CLIENT_HEADER].value;

	if (l->found[SETTING_CLIENT_HOPS].value != NULL)
		return "hop_count";
	if (header != NULL && json_kind(header) == JSON_KIND_STRING && !is_list_header(json_text(header)))
		return "named_header";
	return "trusted_ranges";
}

static void refuse_parameters(struct load *l, enum strategy strategy)
{
	for (size_t i = 0; i < N_PARAMETERS; i++) {
		size_t mark;

		if (strategy == STRATEGY_HOP_COUNT ||
			(strategy != STRATEGY_PEER && parameters[i] != SETTING_CLIENT_HOPS))
			continue;
		if (!settings_enter(l, parameters[i], &mark))
			continue;
		if (strategy == STRATEGY_PEER)
			load_error_name(l, PROBLEM_CONFLICT,
				"the strategy peer reads no header and takes no parameters");
		else
			load_error_name(l, PROBLEM_CONFLICT, "only the strategy hop_count takes hops");
		load_leave(l, mark);
	}
}

static void compile_proxies(struct load *l, const struct json *v, struct client_rule *rule, bool ranges_only)
{
	struct shown shown;

	if (json_kind(v) != JSON_KIND_STRING) {
		if (json_kind(v) == JSON_KIND_ARRAY)
			load_ranges(l, v, false, NULL, &rule->trusted);
		else
			load_error(l, PROBLEM_WRONG_TYPE,
				"must be a list of ranges or the word \"any\", not %s",
				json_kind_name(json_kind(v)));
	} else if (!str_equal(json_text(v), STR("any"))) {
		load_error(l, PROBLEM_BAD_SYNTAX, "must be a list of ranges or the word \"any\", not \"%s\"",
			load_show(&shown, json_text(v)));
	} else if (ranges_only) {
		load_error(l, PROBLEM_CONFLICT,
			"trusted_ranges needs ranges: with \"any\" no entry could be a client's");
	} else {
		rule->trust_any = true;
		load_warn(l, "with \"any\" whoever reaches the port chooses its own key; list the ranges of "
			     "your proxies");
	}
}

static void compile_header(struct load *l, const struct json *v, struct client_rule *rule)
{
	struct shown shown;
	struct str name;

	if (!load_text(l, v, &name))
		return;
	if (!str_is_token(name)) {
		load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" is no header name", load_show(&shown, name));
	} else if (rule->strategy == STRATEGY_NAMED_HEADER && is_list_header(name)) {
		load_error(l, PROBLEM_CONFLICT,
			"\"%s\" is a list that every hop appends to: use the strategy single_value "
			"or another one for lists",
			load_show(&shown, name));
	} else if (rule->strategy != STRATEGY_NAMED_HEADER && !is_list_header(name)) {
		load_error(l, PROBLEM_CONFLICT,
			"this strategy reads " FORWARDED_FOR " or " FORWARDED ", not \"%s\": use the "
			"strategy named_header for other headers",
			load_show(&shown, name));
	} else {
		rule->header = arena_copy(l->arena, name);
		rule->header_is_forwarded = str_equal_nocase(name, STR(FORWARDED));
	}
}

static void compile_required(struct load *l, const struct client_rule *rule)
{
	if (rule->strategy == STRATEGY_HOP_COUNT && l->found[SETTING_CLIENT_HOPS].value == NULL)
		load_error(l, PROBLEM_MISSING_MEMBER,
			"the strategy hop_count needs \"hops\": which entry from the right is "
			"the client");
	if (rule->strategy == STRATEGY_NAMED_HEADER && l->found[SETTING_CLIENT_HEADER].value == NULL)
		load_error(l, PROBLEM_MISSING_MEMBER,
			"the strategy named_header needs \"header\": the name of the header");
}

/* Legal, since it is a first step, but hardly what somebody means who names a strategy. */
static void check_trust(struct load *l, const struct client_rule *rule)
{
	size_t mark;

	if (rule->trust_any || rule->trust_unix || rule->trusted.n > 0 ||
		!settings_enter(l, SETTING_CLIENT_STRATEGY, &mark))
		return;
	load_warn(l, "nobody is trusted, so no header is ever read and this is the strategy peer; name your "
		     "proxies in \"trusted_proxies\"");
	load_leave(l, mark);
}

static void compile_parameters(struct load *l, struct client_rule *rule)
{
	size_t mark;

	refuse_parameters(l, rule->strategy);
	if (rule->strategy == STRATEGY_PEER)
		return;
	compile_required(l, rule);
	if (settings_enter(l, SETTING_CLIENT_TRUSTED_PROXIES, &mark)) {
		compile_proxies(l, l->found[SETTING_CLIENT_TRUSTED_PROXIES].value, rule,
			rule->strategy == STRATEGY_TRUSTED_RANGES);
		load_leave(l, mark);
	}
	if (settings_enter(l, SETTING_CLIENT_HEADER, &mark)) {
		compile_header(l, l->found[SETTING_CLIENT_HEADER].value, rule);
		load_leave(l, mark);
	}
	rule->trust_unix = l->found[SETTING_CLIENT_TRUST_UNIX].number != 0;
	rule->none_on_undecided = l->found[SETTING_CLIENT_ON_UNDECIDED].number != 0;
	if (rule->strategy == STRATEGY_HOP_COUNT)
		rule->hops = (unsigned)l->found[SETTING_CLIENT_HOPS].number;
}

static void compile_strategy(struct load *l, struct client_rule *rule)
{
	const struct found *f = &l->found[SETTING_CLIENT_STRATEGY];
	const struct json *proxies = l->found[SETTING_CLIENT_TRUSTED_PROXIES].value;
	bool has_parameter = false;
	size_t mark;

	for (size_t i = 0; i < N_PARAMETERS; i++)
		has_parameter = has_parameter || l->found[parameters[i]].value != NULL;
	if (f->ok) {
		rule->strategy = (enum strategy)f->number;
		compile_parameters(l, rule);
	} else if (f->value == NULL && has_parameter) {
		load_error(l, PROBLEM_MISSING_MEMBER,
			"the strategy is missing; add for instance \"strategy\": \"%s\"", likely_strategy(l));
	}
	if (!f->ok && settings_enter(l, SETTING_CLIENT_TRUSTED_PROXIES, &mark)) {
		compile_proxies(l, proxies, rule, false);
		load_leave(l, mark);
	}
}

void client_compile(struct load *l, const struct json *v)
{
	struct client_rule *rule = &l->config->rules.client;
	size_t errors_before = l->n_errors;

	rule->strategy = STRATEGY_PEER;
	rule->header = setting_default(SETTING_CLIENT_HEADER);
	if (settings_read(l, "client", v))
		compile_strategy(l, rule);
	if (rule->strategy != STRATEGY_PEER && l->n_errors == errors_before)
		check_trust(l, rule);
}

/* The wide network must not be narrower than the client, or a flood would find an overflow bucket for each key. */
void client_settle_network(struct load *l)
{
	struct client_rule *rule = &l->config->rules.client;
	size_t outer, mark;

	if (rule->network_v6 <= rule->ipv6_prefix)
		return;
	if (!l->found[SETTING_NETWORK_PREFIX_IPV6].ok) {
		rule->network_v6 = rule->ipv6_prefix;
		return;
	}
	outer = load_enter(l, STR("network_prefix"));
	mark = load_enter(l, STR("ipv6"));
	load_error(l, PROBLEM_CONFLICT,
		"a network of %u bits would be narrower than a client of %u (client.ipv6_prefix)",
		rule->network_v6, rule->ipv6_prefix);
	load_leave(l, mark);
	load_leave(l, outer);
}
