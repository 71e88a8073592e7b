/* SPDX-License-Identifier: MIT */
/*
 * Rules are looked at one after another and each test compares text that was worked out once, so that the cost of a
 * rule is one length comparison in most cases. A rule that ignores case compares without case on the spot: its
 * patterns are lower case already, and folding every path for it would make all other requests pay.
 * Nothing here knows of the stricter of two paths: the caller asks once for each spelling.
 */
#include "core/policy.h"

#include "core/path.h"

/* RFC 3986 3.2.3: the port is digits and may be empty. A name may end in the root's dot. */
static struct str host_bare(struct str host)
{
	size_t n = host.len;

	while (n > 0 && str_is_digit(host.ptr[n - 1]))
		n--;
	if (n > 0 && host.ptr[n - 1] == ':')
		host.len = n - 1;
	if (host.len > 0 && host.ptr[host.len - 1] == '.')
		host.len--;
	return host;
}

void policy_freeze(struct ruleset *rules)
{
	rules->ignores_path = true;
	rules->ignores_host = true;
	for (size_t i = 0; i < rules->n_rules; i++) {
		rules->ignores_path &= rules->rules[i].match.n_paths == 0;
		rules->ignores_host &= rules->rules[i].match.n_hosts == 0;
	}
	for (size_t i = 0; i < rules->n_limits; i++) {
		for (size_t k = 0; k < rules->limits[i].n_key; k++) {
			rules->ignores_path &= rules->limits[i].key[k].part != KEY_PATH;
			rules->ignores_host &= rules->limits[i].key[k].part != KEY_HOST;
		}
	}
}

void policy_view_make(struct policy_view *ret, const struct ruleset *rules, const struct request *req,
	const struct client *client, const struct token_result *token, struct arena *a)
{
	bool path = req->path.said && (rules == NULL || !rules->ignores_path);
	bool host = req->host.said && (rules == NULL || !rules->ignores_host);

	ret->client = client;
	ret->token = token;
	ret->req = req;
	ret->path_raw = ret->path_normalised = ret->host = STR("");
	ret->path_doubtful = false;
	if (path) {
		struct path_views paths = path_look(req->path.text, a);

		ret->path_raw = paths.raw;
		ret->path_normalised = paths.normalised;
		ret->path_doubtful = paths.doubtful;
	}
	if (host)
		ret->host = path_fold_case(host_bare(req->host.text), a);
}

static bool list_has(const struct str *items, size_t n, struct str s)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (str_equal(items[i], s))
			return true;
	}
	return false;
}

static bool index_listed(const uint16_t *items, size_t n, uint16_t index)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (items[i] == index)
			return true;
	}
	return false;
}

static bool text_equal(struct str a, struct str b, bool ignore_case)
{
	return a.len == b.len && (ignore_case ? str_equal_nocase(a, b) : str_equal(a, b));
}

/* "/api/" as a prefix takes "/api/" with anything behind it, and "/api". */
static bool pattern_matches(const struct path_pattern *p, struct str path, bool ignore_case)
{
	if (!p->is_prefix)
		return text_equal(path, p->text, ignore_case);
	if (path.len >= p->text.len)
		return text_equal(str_head(path, p->text.len), p->text, ignore_case);
	return text_equal(path, str_head(p->text, p->text.len - 1), ignore_case);
}

static bool path_matches(const struct rule *rule, struct str path)
{
	size_t i;

	for (i = 0; i < rule->match.n_paths; i++) {
		if (pattern_matches(&rule->match.paths[i], path, rule->ignore_case))
			return true;
	}
	return false;
}

/* An address that is only a fallback may be anybody's: it satisfies no range. */
static bool client_matches(const struct range_set *clients, const struct client *c)
{
	return c->decided && c->has_address && range_set_find(clients, &c->address) != NULL;
}

enum rule_miss policy_rule_check(const struct rule *rule, const struct policy_view *view, bool raw_path)
{
	const struct rule_match *m = &rule->match;
	const struct request *req = view->req;

	if (m->n_hosts > 0 && (!req->host.said || !list_has(m->hosts, m->n_hosts, view->host)))
		return MISS_HOST;
	if (m->n_methods > 0 && (!req->method.said || !list_has(m->methods, m->n_methods, req->method.text)))
		return MISS_METHOD;
	if (m->n_paths > 0 &&
		(!req->path.said || !path_matches(rule, raw_path ? view->path_raw : view->path_normalised)))
		return MISS_PATH;
	if (m->n_identities > 0 && (view->token->state != TOKEN_STATE_VALID ||
					   !index_listed(m->identities, m->n_identities, view->token->index)))
		return MISS_IDENTITY;
	if (m->clients.n > 0 && !client_matches(&m->clients, view->client))
		return MISS_CLIENT;
	return MISS_NONE;
}

const struct rule *policy_find(const struct ruleset *rules, const struct policy_view *view, bool raw_path)
{
	size_t i;

	for (i = 0; i + 1 < rules->n_rules; i++) {
		if (policy_rule_check(&rules->rules[i], view, raw_path) == MISS_NONE)
			break;
	}
	return &rules->rules[i];
}

bool policy_requirement_met(
	const struct ruleset *rules, const struct rule *rule, const struct token_result *token)
{
	(void)rules;
	if (rule->require == REQUIRE_NOTHING)
		return true;
	if (token->state != TOKEN_STATE_VALID)
		return false;
	return rule->require == REQUIRE_ANY || index_listed(rule->required, rule->n_required, token->index);
}
