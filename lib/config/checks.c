/* SPDX-License-Identifier: MIT */
/*
 * What works but is dangerous. Warnings stand beside the line that they are about and never stop a start; two of the
 * checks need the listeners as they will really be opened and are therefore made after the command line has been read.
 * A key that holds a header, a path or a host is escaped by sending another one, except where the rule's match leaves
 * only so many: an exact path, a named host.
 */
#include "config/load.h"

static bool path_is_open(const struct rule_match *m)
{
	for (size_t i = 0; i < m->n_paths; i++)
		if (m->paths[i].is_prefix)
			return true;
	return m->n_paths == 0;
}

static bool limit_escapable(const struct limit *limit, const struct rule *rule)
{
	for (size_t i = 0; i < limit->n_key; i++)
		switch (limit->key[i].part) {
		case KEY_HEADER: return true;
		case KEY_PATH:
			if (path_is_open(&rule->match))
				return true;
			break;
		case KEY_HOST:
			if (rule->match.n_hosts == 0)
				return true;
			break;
		default: break;
		}
	return false;
}

static void check_escape(struct load *l, const struct rule *rule)
{
	const struct limit *limits = l->config->rules.limits;
	size_t mark;

	if (rule->n_limits == 0)
		return;
	for (size_t i = 0; i < rule->n_limits; i++)
		if (!limit_escapable(&limits[rule->limits[i]], rule))
			return;
	mark = load_enter(l, STR("limits"));
	load_warn(l, "whoever changes a header, path or host gets a new bucket from every limit of this "
		     "rule; add one whose "
		     "key is client or network alone");
	load_leave(l, mark);
}

static void check_allow(struct load *l, const struct rule *rule)
{
	const struct ruleset *r = &l->config->rules;
	size_t outer, inner;

	if (rule->action != ACTION_ALLOW || rule->match.clients.n == 0)
		return;
	if (!range_set_overlaps(&rule->match.clients, &r->own_networks) &&
		!range_set_overlaps(&rule->match.clients, &r->client.trusted))
		return;
	outer = load_enter(l, STR("match"));
	inner = load_enter(l, STR("client"));
	load_warn(l, "these addresses are our own proxies' or machines', and whoever is mistaken for one of "
		     "them passes "
		     "uncounted; let services prove an identity instead");
	load_leave(l, inner);
	load_leave(l, outer);
}

void checks_run(struct load *l)
{
	const struct ruleset *r = &l->config->rules;
	size_t outer, mark;

	outer = load_enter(l, STR("rules"));
	for (size_t i = 0; i < r->n_rules; i++) {
		mark = load_enter_index(l, i);
		check_escape(l, &r->rules[i]);
		check_allow(l, &r->rules[i]);
		load_leave(l, mark);
	}
	load_leave(l, outer);
}

static bool callers_are_local(const struct config *c)
{
	for (size_t i = 0; i < c->callers.n; i++) {
		const struct range *range = &c->callers.items[i];
		const struct endpoint base = {.ip = range->base};
		unsigned loopback_bits = ip_is_v4(&range->base) ? 96 + 8 : 128;

		if (range->bits < loopback_bits || !endpoint_is_local(&base))
			return false;
	}
	return true;
}

static void report(const struct config *c, struct fault_list *faults, enum fault_severity severity,
	enum problem problem, const char *pointer_z, const char *text_z)
{
	struct fault *f = fault_add(faults, severity, load_problem_word(problem), pointer_z, "%s", text_z);

	if (f != NULL)
		memcpy(f->file_z, c->file_z, sizeof(f->file_z));
}

void config_check_listeners(const struct config *c, struct fault_list *faults)
{
	static const struct {
		enum listen_name name;
		const char *pointer_z;
	} asked[] = {{LISTEN_HTTP, "/listen/http"}, {LISTEN_GRPC, "/listen/grpc"}};
	const struct config_listen *admin = &c->listen[LISTEN_ADMIN];

	if (!c->listen[LISTEN_HTTP].on && !c->listen[LISTEN_GRPC].on)
		report(c, faults, FAULT_ERROR, PROBLEM_CONFLICT, "/listen/http",
			"without this listener or grpc nobody can ask");
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		const struct config_listen *listen = &c->listen[asked[i].name];

		if (listen->on && !c->callers_named && !endpoint_is_local(&listen->endpoint))
			report(c, faults, FAULT_ERROR, PROBLEM_MISSING_MEMBER, asked[i].pointer_z,
				"this address is reachable from other machines: say in \"callers\" who may ask");
	}
	if (admin->on && !endpoint_is_local(&admin->endpoint))
		report(c, faults, FAULT_ERROR, PROBLEM_NOT_LOCAL, "/listen/admin",
			"this address is reachable from other machines, and whoever reaches admin sees and forgives "
			"everybody: loopback or a Unix socket only");
	if (c->callers_named && !c->has_caller_key && !callers_are_local(c))
		report(c, faults, FAULT_WARNING, PROBLEM_RISKY, "/callers",
			"any of these callers can empty anybody's bucket; \"caller_key_file\" makes them "
			"show a key");
}
