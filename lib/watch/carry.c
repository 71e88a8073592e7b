/* SPDX-License-Identifier: MIT */
/*
 * What a reload leaves standing. Evidence was gathered under one way of telling clients apart and says nothing about
 * another, so a new one starts from nothing, and that is also how a cure clears a warning without a restart. What is
 * known of tokens and refusals stays, found again by name, since rows of the new ruleset have other indices.
 */
#include "watch/part.h"

static bool same_ranges(const struct range_set *a, const struct range_set *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (a->items[i].bits != b->items[i].bits || !ip_equal(&a->items[i].base, &b->items[i].base))
			return false;
	}
	return true;
}

static bool same_client(const struct client_rule *a, const struct client_rule *b)
{
	return a->strategy == b->strategy && same_ranges(&a->trusted, &b->trusted) &&
	       a->trust_any == b->trust_any && a->trust_unix == b->trust_unix &&
	       a->none_on_undecided == b->none_on_undecided && str_equal_nocase(a->header, b->header) &&
	       a->header_is_forwarded == b->header_is_forwarded && a->hops == b->hops &&
	       a->ipv6_prefix == b->ipv6_prefix;
}

static bool same_identities(const struct identity_set *a, const struct identity_set *b)
{
	if (a->n != b->n || a->n_tokens != b->n_tokens)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (!str_equal(a->items[i].name, b->items[i].name))
			return false;
	}
	for (size_t i = 0; i < a->n_tokens; i++) {
		if (digest_equal(&a->tokens[i].digest, &b->tokens[i].digest) == 0 ||
			a->tokens[i].identity != b->tokens[i].identity ||
			a->tokens[i].slot != b->tokens[i].slot)
			return false;
	}
	return true;
}

static void carry_profiles(struct watch *to, struct watch *from, unsigned part)
{
	for (size_t i = 0; i < to->n_rules; i++) {
		for (size_t k = 0; k < from->n_rules; k++) {
			if (str_equal(to->rules->rules[i].name, from->rules->rules[k].name))
				to->parts[part]->profiles[i] = from->parts[part]->profiles[k];
		}
	}
}

/* The index of an old rule in the new ruleset. */
static uint16_t rule_again(const struct ruleset *to, const struct ruleset *from, uint16_t index)
{
	for (size_t i = 0; index < from->n_rules && i < to->n_rules; i++) {
		if (str_equal(to->rules[i].name, from->rules[index].name))
			return (uint16_t)i;
	}
	return UINT16_MAX;
}

static bool identity_again(const struct identity_set *to, const struct identity_set *from, uint16_t *index)
{
	for (size_t i = 0; *index < from->n && i < to->n; i++) {
		if (str_equal(to->items[i].name, from->items[*index].name)) {
			*index = (uint16_t)i;
			return true;
		}
	}
	return false;
}

/* A row of an identity that is no more says nothing to anybody. */
static void carry_refusals(struct watch *to, struct watch *from, unsigned part)
{
	struct part *a = to->parts[part], *b = from->parts[part];

	for (size_t i = 0; i < b->n_refusals; i++) {
		struct refusal r = b->refusals[i];

		if (r.has_identity &&
			!identity_again(&to->rules->identities, &from->rules->identities, &r.identity))
			continue;
		r.rule = rule_again(to->rules, from->rules, r.rule);
		a->refusals[a->n_refusals++] = r;
	}
	metric_set(&a->own_refused, metric_get(&b->own_refused));
	metric_set(&a->dropped, metric_get(&b->dropped));
}

void watch_carry(struct watch *to, struct watch *from)
{
	bool same = same_client(&to->rules->client, &from->rules->client) &&
		    same_ranges(&to->rules->own_networks, &from->rules->own_networks) &&
		    same_identities(&to->rules->identities, &from->rules->identities);

	pthread_mutex_lock(&from->lock);
	to->key = from->key;
	for (unsigned i = 0; i < to->n_parts && i < from->n_parts; i++) {
		part_enter(from->parts[i]);
		if (same)
			carry_profiles(to, from, i);
		ledger_carry(to, from, i);
		carry_refusals(to, from, i);
		part_leave(from->parts[i]);
	}
	memcpy(to->actives, from->actives, sizeof(to->actives));
	to->n_actives = from->n_actives;
	memcpy(to->spoken, from->spoken, sizeof(to->spoken));
	to->own_suppressed = from->own_suppressed;
	to->restarted = !same || from->restarted;
	pthread_mutex_unlock(&from->lock);
}
