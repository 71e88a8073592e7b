/* SPDX-License-Identifier: MIT */
/*
 * Member by member, since structures that the arena laid out have padding and pointers. A member that is added to one of
 * them and forgotten here makes a change go unnoticed in what is said about a reload, never in what is decided.
 * Only for people who change their configuration: nothing here is fast.
 */
#include "core/same.h"

#include <stdint.h>

bool same_ranges(const struct range_set *a, const struct range_set *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (a->items[i].bits != b->items[i].bits || !ip_equal(&a->items[i].base, &b->items[i].base))
			return false;
	}
	return true;
}

bool same_client(const struct client_rule *a, const struct client_rule *b)
{
	return a->strategy == b->strategy && same_ranges(&a->trusted, &b->trusted) && a->trust_any == b->trust_any &&
		a->trust_unix == b->trust_unix && a->none_on_undecided == b->none_on_undecided &&
		str_equal_nocase(a->header, b->header) && a->header_is_forwarded == b->header_is_forwarded &&
		a->hops == b->hops && a->ipv6_prefix == b->ipv6_prefix && a->network_v4 == b->network_v4 &&
		a->network_v6 == b->network_v6;
}

bool same_limit(const struct limit *a, const struct limit *b)
{
	if (!str_equal(a->name, b->name) || a->bucket.interval_ns != b->bucket.interval_ns ||
		a->bucket.burst != b->bucket.burst || a->n_key != b->n_key || a->headers != b->headers)
		return false;
	for (size_t i = 0; i < a->n_key; i++) {
		if (a->key[i].part != b->key[i].part || !str_equal_nocase(a->key[i].header, b->key[i].header))
			return false;
	}
	return true;
}

static bool same_strings(const struct str *a, size_t n, const struct str *b, size_t n_b)
{
	bool same = n == n_b;

	for (size_t i = 0; i < n && same; i++)
		same = str_equal(a[i], b[i]);
	return same;
}

/* Lists of indices, compared by the names they stand for. */
static bool same_limits_listed(
	const struct ruleset *a, const uint16_t *la, size_t n, const struct ruleset *b, const uint16_t *lb)
{
	bool same = true;

	for (size_t i = 0; i < n && same; i++)
		same = str_equal(a->limits[la[i]].name, b->limits[lb[i]].name);
	return same;
}

static bool same_identities_listed(
	const struct ruleset *a, const uint16_t *la, size_t n, const struct ruleset *b, const uint16_t *lb)
{
	bool same = true;

	for (size_t i = 0; i < n && same; i++)
		same = str_equal(a->identities.items[la[i]].name, b->identities.items[lb[i]].name);
	return same;
}

/* NULL if the identity has no token in this slot. */
static const struct digest *token_of(const struct identity_set *set, size_t identity, unsigned slot)
{
	for (size_t i = 0; i < set->n_tokens; i++) {
		if (set->tokens[i].identity == identity && set->tokens[i].slot == slot)
			return &set->tokens[i].digest;
	}
	return NULL;
}

bool same_identity(const struct ruleset *a, size_t i, const struct ruleset *b, size_t k)
{
	const struct identity *x = &a->identities.items[i], *y = &b->identities.items[k];

	for (unsigned slot = 0; slot < TOKEN_SLOT_COUNT; slot++) {
		const struct digest *one = token_of(&a->identities, i, slot), *other = token_of(&b->identities, k, slot);

		if ((one == NULL) != (other == NULL) || (one != NULL && digest_equal(one, other) == 0))
			return false;
	}
	return str_equal(x->name, y->name) && x->n_limits == y->n_limits &&
		same_limits_listed(a, x->limits, x->n_limits, b, y->limits);
}

static bool same_match(
	const struct ruleset *a, const struct rule_match *x, const struct ruleset *b, const struct rule_match *y)
{
	bool same = same_strings(x->hosts, x->n_hosts, y->hosts, y->n_hosts) &&
		same_strings(x->methods, x->n_methods, y->methods, y->n_methods) && x->n_paths == y->n_paths &&
		x->n_identities == y->n_identities &&
		same_identities_listed(a, x->identities, x->n_identities, b, y->identities) &&
		same_ranges(&x->clients, &y->clients);

	for (size_t i = 0; i < x->n_paths && same; i++)
		same = x->paths[i].is_prefix == y->paths[i].is_prefix && str_equal(x->paths[i].text, y->paths[i].text);
	return same;
}

bool same_rule(const struct ruleset *a, size_t i, const struct ruleset *b, size_t k)
{
	const struct rule *x = &a->rules[i], *y = &b->rules[k];

	return str_equal(x->name, y->name) && x->ignore_case == y->ignore_case && x->action == y->action &&
		x->require == y->require && x->shadow == y->shadow && x->n_required == y->n_required &&
		x->n_limits == y->n_limits && same_match(a, &x->match, b, &y->match) &&
		same_identities_listed(a, x->required, x->n_required, b, y->required) &&
		same_limits_listed(a, x->limits, x->n_limits, b, y->limits);
}

bool same_people(const struct ruleset *a, const struct ruleset *b)
{
	bool same = same_client(&a->client, &b->client) && same_ranges(&a->own_networks, &b->own_networks) &&
		a->identities.n == b->identities.n &&
		same_strings(a->identities.headers, a->identities.n_headers, b->identities.headers,
			b->identities.n_headers);

	for (size_t i = 0; i < a->identities.n && same; i++) {
		size_t k = same_identity_find(b, a->identities.items[i].name);

		same = k != SIZE_MAX && same_identity(a, i, b, k);
	}
	return same;
}

size_t same_limit_find(const struct ruleset *r, struct str name)
{
	for (size_t i = 0; i < r->n_limits; i++) {
		if (str_equal(r->limits[i].name, name))
			return i;
	}
	return SIZE_MAX;
}

size_t same_identity_find(const struct ruleset *r, struct str name)
{
	for (size_t i = 0; i < r->identities.n; i++) {
		if (str_equal(r->identities.items[i].name, name))
			return i;
	}
	return SIZE_MAX;
}

size_t same_rule_find(const struct ruleset *r, struct str name)
{
	for (size_t i = 0; i < r->n_rules; i++) {
		if (str_equal(r->rules[i].name, name))
			return i;
	}
	return SIZE_MAX;
}
