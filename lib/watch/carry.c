/* SPDX-License-Identifier: MIT */
/*
 * What a reload leaves standing. Evidence was gathered under one way of telling clients apart and says nothing about
 * another, so a new one starts from nothing, and that is also how a cure clears a warning without a restart. What is
 * known of tokens and refusals stays, found again by name, since rows of the new ruleset have other indices.
 */
#include "watch/part.h"

#include "core/same.h"

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
	metric_set(&a->dropped, metric_get(&b->dropped));
}

void watch_carry(struct watch *to, struct watch *from)
{
	bool same = same_people(to->rules, from->rules);

	pthread_mutex_lock(&from->lock);
	to->key = from->key;
	watch_totals_set(to, from->totals);
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
