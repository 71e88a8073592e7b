/* SPDX-License-Identifier: MIT */
/*
 * Loads any text as a configuration, without secrets. What is refused has an error, each with a place inside the text, a
 * sentence in ASCII and a code. What is accepted holds what the decision relies on without looking: a last rule that
 * catches everything, indices that lead somewhere, limits that can be charged, patterns in the form requests have.
 */
#include "fuzz.h"

#include "base/json.h"
#include "base/must.h"
#include "config/config.h"

static bool has_match(const struct rule_match *m)
{
	return m->n_hosts + m->n_methods + m->n_paths + m->n_identities + m->clients.n > 0;
}

static void check_indices(const uint16_t *items, size_t n, size_t end)
{
	for (size_t i = 0; i < n; i++)
		must(items[i] < end);
}

static void check_limit(const struct limit *l)
{
	must(l->name.len >= 1 && l->name.len <= 63);
	must(l->bucket.interval_ns >= 1 && l->bucket.burst >= 1 && bucket_room_ns(&l->bucket) < (ns)1 << 62);
	must(l->window_s >= 1);
	must(l->n_key >= 1 && l->n_key <= LIMIT_KEY_PARTS_MAX);
	for (size_t i = 0; i < l->n_key; i++)
		must((l->key[i].part == KEY_HEADER) == (l->key[i].header.len > 0));
}

static void check_rule(const struct ruleset *r, const struct rule *rule)
{
	must(rule->name.len >= 1 && rule->name.len <= 63);
	must(rule->n_limits <= RULE_LIMITS_MAX);
	check_indices(rule->limits, rule->n_limits, r->n_limits);
	check_indices(rule->required, rule->n_required, r->identities.n);
	check_indices(rule->match.identities, rule->match.n_identities, r->identities.n);
	must(has_match(&rule->match) == (rule != &r->rules[r->n_rules - 1]));
	must((rule->require == REQUIRE_LISTED) == (rule->n_required > 0));
	must(rule->action == ACTION_LIMIT || (rule->n_limits == 0 && rule->require == REQUIRE_NOTHING));
	for (size_t i = 0; i < rule->match.n_paths; i++) {
		const struct path_pattern *p = &rule->match.paths[i];

		must(str_starts_with(p->text, STR("/")));
		must(!p->is_prefix || str_ends_with(p->text, STR("/")));
		must(p->is_prefix || p->text.len == 1 || !str_ends_with(p->text, STR("/")));
	}
}

static void check_accepted(const struct config *c)
{
	const struct ruleset *r = &c->rules;

	must(r->n_rules >= 1 && r->n_rules <= 1000 && r->n_limits <= 1000 && r->identities.n <= 1000);
	must(r->hash.len == 12);
	must(r->client.network_v6 <= r->client.ipv6_prefix);
	must((r->client.strategy == STRATEGY_HOP_COUNT) == (r->client.hops > 0));
	must(str_is_token(r->client.header));
	must(c->store_max_memory_bytes >= 64 * 1024);
	for (size_t i = 0; i < r->n_limits; i++)
		check_limit(&r->limits[i]);
	for (size_t i = 0; i < r->identities.n; i++)
		check_indices(r->identities.items[i].limits, r->identities.items[i].n_limits, r->n_limits);
	for (size_t i = 0; i < r->identities.n_tokens; i++)
		must(r->identities.tokens[i].identity < r->identities.n);
	for (size_t i = 0; i < r->n_rules; i++)
		check_rule(r, &r->rules[i]);
}

static void check_faults(struct str text, const struct fault_list *faults)
{
	unsigned lines = 1;

	for (size_t i = 0; i < text.len; i++)
		lines += text.ptr[i] == '\n' ? 1 : 0;
	for (size_t i = 0; i < faults->n; i++) {
		const struct fault *f = &faults->items[i];

		must(f->code[0] != '\0' && f->text_z[0] != '\0');
		must(f->pointer_z[0] == '\0' || f->pointer_z[0] == '/');
		must(f->line <= lines);
		must((f->line == 0) == (f->column == 0));
		for (const char *p = f->text_z; *p != '\0'; p++)
			must(*p >= ' ' && *p <= '~');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct config_options options = {.without_secrets = true};
	static bool ready;
	struct str text = str_make((const char *)data, size);
	struct config *c = NULL;
	struct fault_list faults;
	enum err e;

	if (!ready) {
		json_setup();
		must(digest_init() == ERR_OK);
	}
	ready = true;
	fault_list_init(&faults);
	e = config_load_text(&c, text, NULL, &options, &faults);
	must((e == ERR_SYNTAX) == (faults.n_errors > 0));
	must((e == ERR_OK) == (c != NULL));
	check_faults(text, &faults);
	if (c != NULL) {
		check_accepted(c);
		config_check_listeners(c, &faults);
	}
	config_free(c);
	fault_list_done(&faults);
	return 0;
}
