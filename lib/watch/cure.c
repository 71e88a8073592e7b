/* SPDX-License-Identifier: MIT */
/*
 * The setting that cures is found by trying: candidates in order of caution are resolved on the requests that were kept as
 * examples, and the first one under which nearly all of them have a decided client, and different ones, is told. The
 * candidates only ever add addresses to what is trusted: those that connect, those that the finding names, and hops
 * of our own networks that stand in the chain; whatever of them lies outside own_networks is said under a condition, since
 * it may be an attacker's. "any" is never a cure. Where no setting helps, a hop hides its clients, and the words name it.
 * A pool may be larger than what was seen of it: then the words say so, lest a part of the cure be taken for the whole.
 */
#include "watch/part.h"

#include "core/client_parts.h"
#include "watch/notice.h"

#define SET_MAX 12

struct ip_set {
	struct ip items[SET_MAX];
	size_t n;
};

/* KEEP stands for what is configured. */
#define KEEP_STRATEGY STRATEGY_COUNT
#define KEEP_HEADER FORWARDING_COUNT

static const struct candidate {
	enum strategy strategy;
	enum forwarding header;
	bool inner; /* also the hops of our own that the chain names */
	bool narrow; /* instead of the ranges: those that connect, and hops that most examples name */
} candidates[] = {
	{KEEP_STRATEGY, KEEP_HEADER, false, false},
	{STRATEGY_HOP_COUNT, KEEP_HEADER, false, false},
	{STRATEGY_TRUSTED_RANGES, FORWARDING_FOR, false, false},
	{STRATEGY_TRUSTED_RANGES, FORWARDING_FOR, true, false},
	{STRATEGY_TRUSTED_RANGES, FORWARDING_RFC7239, true, false},
	{STRATEGY_TRUSTED_RANGES, FORWARDING_FOR, false, true},
	{STRATEGY_NAMED_HEADER, FORWARDING_REAL_IP, false, false},
	{STRATEGY_NAMED_HEADER, FORWARDING_CF, false, false},
	{STRATEGY_NAMED_HEADER, FORWARDING_TRUE, false, false},
};

static bool is_own(const struct watch *w, const struct ip *ip)
{
	return range_set_find(&w->rules->own_networks, ip) != NULL;
}

static void set_add(struct ip_set *set, const struct ip *ip)
{
	for (size_t i = 0; i < set->n; i++) {
		if (ip_equal(&set->items[i], ip))
			return;
	}
	if (set->n < SET_MAX)
		set->items[set->n++] = *ip;
}

static size_t examples_of(const struct watch *w, enum example_kind kind)
{
	return w->examples->n[kind] < EXAMPLES_MAX ? w->examples->n[kind] : EXAMPLES_MAX;
}

static bool entry_usable(const struct client_list *list, struct str entry, struct ip *ret)
{
	enum client_reason why;

	return list->is_forwarded ? client_forwarded_read(entry, ret, &why)
				  : client_entry_read(entry, ret, &why);
}

/* The hops of our own at the right end of a chain, if somebody else stands left of them. */
static void add_inner(
	const struct watch *w, const struct client_rule *rule, const struct request *req, struct ip_set *set)
{
	struct ip_set found = {.n = 0};
	struct client_list list;
	struct str entry;
	struct ip ip;

	client_list_start(&list, rule, req);
	while (client_list_next(&list, &entry) == LIST_ENTRY && entry_usable(&list, entry, &ip)) {
		if (is_own(w, &ip)) {
			set_add(&found, &ip);
			continue;
		}
		for (size_t i = 0; i < found.n; i++)
			set_add(set, &found.items[i]);
		return;
	}
}

/* The addresses that stand in the chain of most examples: hops, not clients. */
static void add_frequent(
	const struct watch *w, const struct client_rule *rule, enum example_kind kind, struct ip_set *set)
{
	struct slots slots = {.n = 0};
	struct ip ips[SLOTS_MAX];
	size_t total = examples_of(w, kind);
	struct example_request open;
	struct client_list list;
	struct str entry;
	struct ip ip;
	bool is_new;

	for (size_t i = 0; i < total; i++) {
		example_open(&w->rules->client, &w->examples->items[kind][i], &open);
		client_list_start(&list, rule, &open.req);
		while (client_list_next(&list, &entry) == LIST_ENTRY && entry_usable(&list, entry, &ip)) {
			uint64_t hash = digest_short(&w->key, ip.bytes, sizeof(ip.bytes));

			ips[slots_take(&slots, SLOTS_MAX, hash, 1, &is_new)] = ip;
		}
	}
	for (size_t i = 0; i < slots.n; i++) {
		if ((slots.counts[i] - slots.errors[i]) * 2 > total)
			set_add(set, &ips[i]);
	}
}

/* Fills the rule that a candidate makes of the one in force. adds: what it trusts besides. False: it says nothing new. */
static bool rule_make(struct watch *w, const struct candidate *candidate, const struct cure_case *c,
	struct client_rule *ret, struct ip_set *ret_adds)
{
	struct ip_set *adds = ret_adds;
	size_t n = examples_of(w, c->kind);
	struct example_request open;

	*ret = w->rules->client;
	ret->trust_any = false;
	adds->n = 0;
	if (candidate->strategy != KEEP_STRATEGY)
		ret->strategy = candidate->strategy;
	if (candidate->header != KEEP_HEADER) {
		ret->header = forwarding_rule(candidate->header)->header;
		ret->header_is_forwarded = forwarding_rule(candidate->header)->header_is_forwarded;
	}
	for (size_t i = 0; i < c->n_chosen && candidate->strategy != STRATEGY_HOP_COUNT; i++)
		set_add(adds, &c->chosen[i]);
	if (c->behind->has_peer)
		set_add(adds, &c->behind->peer);
	ret->trust_unix |= c->behind->peer_is_unix;
	for (size_t i = 0; i < n && candidate->inner; i++) {
		example_open(&w->rules->client, &w->examples->items[c->kind][i], &open);
		add_inner(w, ret, &open.req, adds);
	}
	if (candidate->narrow) {
		add_frequent(w, ret, c->kind, adds);
		ret->trusted.n = 0;
		ret->trusted.n_v4 = 0;
	}
	if (candidate->strategy == STRATEGY_HOP_COUNT) {
		size_t mode = 1;

		for (size_t i = 2; i < ENTRIES_COUNTED - 1; i++)
			mode = w->merged->entries[i] > w->merged->entries[mode] ? i : mode;
		ret->hops = (unsigned)mode;
		return w->rules->client.strategy == STRATEGY_HOP_COUNT && w->merged->entries[mode] > 0;
	}
	return ret->strategy != STRATEGY_PEER;
}

/* Puts the ranges in force and the additions, those that are none of them yet, into one set. */
static bool ranges_join(struct watch *w, const struct ip_set *adds, struct client_rule *rule)
{
	struct range_set old = rule->trusted;
	struct arena a;
	struct range *items;
	size_t n = old.n;

	arena_init(&a, w->scratch, SCRATCH_BYTES);
	items = arena_array(&a, old.n + adds->n, sizeof(*items));
	if (items == NULL)
		return false;
	if (n != 0)
		memcpy(items, old.items, n * sizeof(*items));
	for (size_t i = 0; i < adds->n; i++) {
		if (range_set_find(&old, &adds->items[i]) == NULL)
			items[n++] = (struct range){adds->items[i], 128};
	}
	return range_set_build(&rule->trusted, &a, items, n);
}

/* Does nearly every example have a client of its own under this rule? */
static bool rule_cures(const struct watch *w, const struct cure_case *c, const struct client_rule *rule)
{
	struct ip_set clients = {.n = 0};
	size_t n = examples_of(w, c->kind), tried = 0, decided = 0;
	struct example_request open;
	struct client client;

	for (size_t i = 0; i < n; i++) {
		const struct example *e = &w->examples->items[c->kind][i];

		example_open(&w->rules->client, e, &open);
		client_resolve(rule, &open.req, NULL, &client);
		if (!client.header_read) /* another hop's finding */
			continue;
		tried++;
		if (!client.decided || range_set_find(&rule->trusted, &client.address) != NULL)
			continue;
		decided++;
		set_add(&clients, &client.address);
	}
	return tried >= 3 && decided * 10 >= tried * 9 && clients.n >= 3;
}

/* ---- the words */

static void put_ip(struct text *t, const struct ip *ip)
{
	char buffer[IP_TEXT_BYTES];

	text_str(t, str_make(buffer, ip_print(ip, buffer)));
}

/* "if 198.51.100.7 and 198.51.100.8 are proxies of yours: ", for those outside our own networks. */
static void put_condition(
	const struct watch *w, const struct ip_set *adds, const struct candidate *candidate, struct text *t)
{
	size_t strangers = 0;

	for (size_t i = 0; i < adds->n; i++) {
		if (is_own(w, &adds->items[i]))
			continue;
		text_z(t, strangers++ == 0 ? "if " : " and ");
		put_ip(t, &adds->items[i]);
	}
	if (strangers > 0)
		text_z(t, strangers == 1 ? " is a proxy of yours: " : " are proxies of yours: ");
	if (candidate->strategy != STRATEGY_NAMED_HEADER ||
		w->rules->client.strategy == STRATEGY_NAMED_HEADER)
		return;
	text_z(t, "if that hop writes ");
	text_str(t, forwarding_rule(candidate->header)->header);
	text_z(t, " itself and lets no client's through: ");
}

static void put_hop(struct text *t, const struct behind *b)
{
	if (b->has_peer)
		put_ip(t, &b->peer);
	else
		text_z(t, b->peer_is_unix ? "the other end of the Unix socket" : "the end of the connection");
}

/* No setting helps while the hop says nothing: first it must speak, then it must be believed. */
static void say_silent_peer(const struct watch *w, const struct behind *b, struct text *t)
{
	put_hop(t, b);
	text_z(t, " hides its clients. If it is a proxy of yours, it must send X-Forwarded-For with the "
		  "address that it sees, and "
		  "whoever asks postern must pass that header on; then set ");
	notice_cure(t, &w->rules->client, b->has_peer ? &b->peer : NULL);
	text_z(t, ". If it rewrites addresses without speaking HTTP (a container bridge, a balancer with "
		  "source NAT), "
		  "let it keep the client's address instead. If people work on it (a terminal server), leave "
		  "it out of "
		  "own_networks");
}

/* "at least 24 more addresses are like it: ... ", where those that are named are not all. */
static void put_more(const struct cure_case *c, size_t n, struct text *t)
{
	text_z(t, c->more_unseen ? "at least " : "");
	text_u64(t, n);
	text_z(t, n == 1 ? " more address is" : " more addresses are");
	text_z(t, " like it: what of them is a proxy of yours must be listed too, best as ranges: ");
}

/* It speaks, but too few of its requests were kept to try a setting on. */
static void say_unread_peer(const struct watch *w, const struct cure_case *c, struct text *t)
{
	text_z(t, "if ");
	put_hop(t, c->behind);
	text_z(t, " is a proxy of yours, list it in trusted_proxies: it sends a forwarding header, which is "
		  "not read; ");
	if (c->n_chosen + c->n_more > 1)
		put_more(c, c->n_chosen + c->n_more - 1, t);
	notice_cure(t, &w->rules->client, c->behind->has_peer ? &c->behind->peer : NULL);
}

static const char *undecided_words(enum client_reason reason)
{
	switch (reason) {
	case CLIENT_REASON_HEADER_MISSING:
	case CLIENT_REASON_HEADER_EMPTY:
		return "with every request, and whoever asks postern must pass it on";
	case CLIENT_REASON_MULTIPLE_LINES:
	case CLIENT_REASON_MULTIPLE_VALUES:
		return "with exactly one value: it must replace what it was sent, not add to it";
	case CLIENT_REASON_TOO_FEW_HOPS: return "with as many entries as hops says, or hops must be less";
	case CLIENT_REASON_ALL_TRUSTED:
		return "that ends in its client, or trusted_proxies must not hold clients";
	default: return "that is the address of its client and nothing else";
	}
}

static void say_undecided(const struct watch *w, const struct behind *b, struct text *t)
{
	if (b->reason == CLIENT_REASON_PEER_UNUSABLE) {
		text_z(t, "whoever asks postern must send the address of the client's end of its connection "
			  "as remote_addr");
		return;
	}
	text_z(t, "the hop at ");
	put_hop(t, b);
	text_z(t, " must send ");
	text_str(t, w->rules->client.header);
	text_char(t, ' ');
	text_z(t, undecided_words(b->reason));
	text_z(t, " (now: ");
	text_str(t, client_reason_word(b->reason));
	text_z(t, "). Health checks of your own belong under a rule of their own or show a token");
}

static void say_chosen(const struct watch *w, const struct cure_case *c, struct text *t)
{
	if (is_stranger(w, c->behind))
		text_z(t, "if that address is a proxy of yours: ");
	text_z(t, "the hop that writes ");
	put_ip(t, &c->behind->address);
	text_z(t, " into ");
	text_str(t, w->rules->client.header);
	text_z(t, " must write the address of its client there instead of a proxy's");
}

void cure_find(struct watch *w, const struct cure_case *c, struct finding *f)
{
	struct client_rule rule;
	struct ip_set adds;
	struct text t;

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		if (!rule_make(w, &candidates[i], c, &rule, &adds) || !ranges_join(w, &adds, &rule) ||
			!rule_cures(w, c, &rule))
			continue;
		text_init(&t, f->cure_z, sizeof(f->cure_z) - 1);
		if (c->n_more > 0)
			put_more(c, c->n_more, &t);
		put_condition(w, &adds, &candidates[i], &t);
		notice_cure(&t, &rule, rule.trusted.n > 0 ? &rule.trusted.items[0].base : NULL);
		if (t.overflow)
			continue;
		f->cure_z[t.len] = '\0';
		f->cure_is_setting = c->n_more == 0;
		return;
	}
	text_init(&t, f->cure_z, sizeof(f->cure_z) - 1);
	f->cure_is_setting = false;
	if (c->kind == EXAMPLE_PEER && c->behind->unread * 2 > c->behind->slot.count - c->behind->slot.error)
		say_unread_peer(w, c, &t);
	else if (c->kind == EXAMPLE_PEER)
		say_silent_peer(w, c->behind, &t);
	else if (c->kind == EXAMPLE_UNDECIDED)
		say_undecided(w, c->behind, &t);
	else
		say_chosen(w, c, &t);
	f->cure_z[t.len] = '\0';
}
