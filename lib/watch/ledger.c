/* SPDX-License-Identifier: MIT */
/*
 * What each token was good for: how often, when, and from where. A token that nobody uses any more, or that is suddenly
 * used from a new place, shows here and nowhere else. Exempt traffic may be most of the traffic, so the usual case,
 * the address of last time, takes two compares; only a new address takes the busy mark.
 */
#include "watch/part.h"

#include <stdlib.h>

static struct ledger_address *address_find(struct ledger *l, const struct ip *ip)
{
	if (l->n_addresses > 0 && ip_equal(&l->addresses[l->last_hit].ip, ip))
		return &l->addresses[l->last_hit];
	for (size_t i = 0; i < l->n_addresses; i++) {
		if (ip_equal(&l->addresses[i].ip, ip)) {
			l->last_hit = i;
			return &l->addresses[i];
		}
	}
	return NULL;
}

/* Where all places are taken the one longest unused is given up. */
static void address_add(struct ledger *l, const struct ip *ip, ns now)
{
	size_t at = 0;

	if (l->n_addresses < OWN_ADDRESSES_MAX) {
		at = l->n_addresses++;
	} else {
		for (size_t i = 1; i < l->n_addresses; i++) {
			if (metric_get(&l->addresses[i].last_ns) < metric_get(&l->addresses[at].last_ns))
				at = i;
		}
		l->left_out++;
	}
	l->addresses[at].ip = *ip;
	metric_set(&l->addresses[at].last_ns, now);
	l->last_hit = at;
}

void ledger_use(struct part *p, const struct verdict *v, ns now)
{
	struct ledger *l = &p->ledgers[v->token.index * TOKEN_SLOT_COUNT + v->token.slot];
	struct ledger_address *address;

	if (metric_get(&l->requests) == 0)
		metric_set(&l->first_ns, now);
	metric_add(&l->requests, 1);
	metric_set(&l->last_ns, now);
	if (!v->client.has_peer)
		return;
	address = address_find(l, &v->client.peer);
	if (address != NULL) {
		metric_set(&address->last_ns, now);
	} else if (part_try(p)) {
		address_add(l, &v->client.peer, now);
		part_leave(p);
	}
}

bool ledger_has(struct watch *w, size_t identity, const struct ip *ip)
{
	bool found = false;

	for (unsigned k = 0; k < w->n_parts && !found; k++) {
		struct part *p = w->parts[k];

		part_enter(p);
		for (size_t slot = 0; slot < TOKEN_SLOT_COUNT; slot++) {
			const struct ledger *l = &p->ledgers[identity * TOKEN_SLOT_COUNT + slot];

			for (size_t i = 0; i < l->n_addresses && !found; i++)
				found = ip_equal(&l->addresses[i].ip, ip);
		}
		part_leave(p);
	}
	return found;
}

/* ---- reading */

/* All addresses of all parts, each once, with the last use of each. */
struct address_list {
	size_t n;
	struct {
		struct ip ip;
		ns last_ns;
	} items[OWN_ADDRESSES_MAX];
	uint64_t left_out;
};

static void list_add(struct address_list *list, const struct ip *ip, ns last_ns)
{
	size_t at;

	for (at = 0; at < list->n; at++) {
		if (!ip_equal(&list->items[at].ip, ip))
			continue;
		if (last_ns <= list->items[at].last_ns)
			return;
		list->n--;
		memmove(&list->items[at], &list->items[at + 1], (list->n - at) * sizeof(list->items[0]));
		break;
	}
	for (at = list->n; at > 0 && list->items[at - 1].last_ns < last_ns; at--)
		;
	if (list->n == OWN_ADDRESSES_MAX) {
		list->left_out++;
		if (at == list->n--)
			return;
	}
	memmove(&list->items[at + 1], &list->items[at], (list->n - at) * sizeof(list->items[0]));
	list->items[at].ip = *ip;
	list->items[at].last_ns = last_ns;
	list->n++;
}

static void row_read(
	struct watch *w, const struct identity_token *token, ns now, ns wall_now, struct own_ledger *ret)
{
	struct address_list list = {.n = 0};
	ns first = 0, last = 0;

	*ret = (struct own_ledger){.identity = &w->rules->identities.items[token->identity],
		.slot = (enum token_slot)token->slot};
	for (unsigned k = 0; k < w->n_parts; k++) {
		struct part *p = w->parts[k];
		struct ledger *l = &p->ledgers[token->identity * TOKEN_SLOT_COUNT + token->slot];
		ns used = metric_get(&l->first_ns), used_last = metric_get(&l->last_ns);

		ret->requests += metric_get(&l->requests);
		first = used != 0 && (first == 0 || used < first) ? used : first;
		last = used_last > last ? used_last : last;
		part_enter(p);
		for (size_t i = 0; i < l->n_addresses; i++)
			list_add(&list, &l->addresses[i].ip, metric_get(&l->addresses[i].last_ns));
		list.left_out += l->left_out;
		part_leave(p);
	}
	ret->first_used = to_wall(first, now, wall_now);
	ret->last_used = to_wall(last, now, wall_now);
	ret->n_addresses = list.n;
	ret->addresses_left_out = list.left_out;
	for (size_t i = 0; i < list.n; i++)
		ret->addresses[i] = list.items[i].ip;
}

size_t own_ledger_read(struct watch *w, ns now, ns wall_now, struct own_ledger *ret, size_t max)
{
	const struct identity_set *set = &w->rules->identities;
	size_t n = 0;

	for (size_t i = 0; i < set->n_tokens && n < max; i++)
		row_read(w, &set->tokens[i], now, wall_now, &ret[n++]);
	return n;
}

/* ---- at a reload */

static void copy_ledger(struct ledger *to, struct ledger *from)
{
	metric_set(&to->requests, metric_get(&from->requests));
	metric_set(&to->first_ns, metric_get(&from->first_ns));
	metric_set(&to->last_ns, metric_get(&from->last_ns));
	for (size_t i = 0; i < from->n_addresses; i++) {
		to->addresses[i].ip = from->addresses[i].ip;
		metric_set(&to->addresses[i].last_ns, metric_get(&from->addresses[i].last_ns));
	}
	to->n_addresses = from->n_addresses;
	to->left_out = from->left_out;
}

/* A token keeps its past when it moves from current to previous; a new one has none. */
void ledger_carry(struct watch *to, struct watch *from, unsigned part)
{
	const struct identity_set *a = &to->rules->identities, *b = &from->rules->identities;

	for (size_t i = 0; i < a->n_tokens; i++) {
		for (size_t k = 0; k < b->n_tokens; k++) {
			if (digest_equal(&a->tokens[i].digest, &b->tokens[k].digest) == 0 ||
				!str_equal(a->items[a->tokens[i].identity].name,
					b->items[b->tokens[k].identity].name))
				continue;
			copy_ledger(&to->parts[part]->ledgers[a->tokens[i].identity * TOKEN_SLOT_COUNT +
							      a->tokens[i].slot],
				&from->parts[part]->ledgers[b->tokens[k].identity * TOKEN_SLOT_COUNT +
							    b->tokens[k].slot]);
		}
	}
}
