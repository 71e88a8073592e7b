/* SPDX-License-Identifier: MIT */
/*
 * What one request tells about the key it got. All that is looked at here is hostile text, and none of it is kept but as
 * digests, counts and addresses (and as a few examples, see example.c). What differs behind a key is told by what people carry
 * and machines in between do not make up: a Cookie line, else Authorization, else the User-Agent. Ids of requests
 * differ for one person as for many and never count.
 * Of a forwarding header that is not read the right end is looked at, as everywhere: the first public address from the
 * right that is not the chosen one. Behind one of our own hops that writes no public address, the leftmost one stands in.
 */
#include "watch/profile.h"

#include "watch/part.h"

#include "core/client_parts.h"

#include <stdlib.h>

#define PERSON_BYTES_MAX 2048
#define WALK_MAX 16

/* What one pass over the header lines finds. */
struct seen {
	struct str cookie, authorization, agent;
	bool forwarded_for, rfc7239;
};

static void look(const struct request *req, struct seen *ret)
{
	*ret = (struct seen){.forwarded_for = false};
	for (size_t i = 0; i < req->n_headers; i++) {
		const struct header_line *h = &req->headers[i];

		switch (h->name.len) {
		case 6:
			if (ret->cookie.len == 0 && str_equal_nocase(h->name, STR("Cookie")))
				ret->cookie = h->value;
			break;
		case 9: ret->rfc7239 |= str_equal_nocase(h->name, STR("Forwarded")); break;
		case 10:
			if (str_equal_nocase(h->name, STR("User-Agent")))
				ret->agent = h->value;
			break;
		case 13:
			if (str_equal_nocase(h->name, STR("Authorization")))
				ret->authorization = h->value;
			break;
		case 15: ret->forwarded_for |= str_equal_nocase(h->name, STR("X-Forwarded-For")); break;
		default: break;
		}
	}
}

bool agent_is_browser(struct str agent)
{
	return str_starts_with(agent, STR("Mozilla/"));
}

static uint64_t hash_of(const struct watch *w, const void *bytes, size_t len)
{
	return digest_short(&w->key, bytes, len < PERSON_BYTES_MAX ? len : PERSON_BYTES_MAX);
}

static bool entry_read(const struct client_list *list, struct str entry, struct ip *ret)
{
	enum client_reason why;

	return list->is_forwarded ? client_forwarded_read(entry, ret, &why)
				  : client_entry_read(entry, ret, &why);
}

/* What the lists of addresses say about the chosen one. */
struct chain {
	bool has_unread, has_left;
	struct ip unread; /* in a header that is not read, and whose list does not hold the chosen address */
	struct ip left; /* public, and left of the chosen one */
	unsigned entries; /* of the configured header */
};

/* A header that is not read. If it holds the chosen address too, both agree, and what counts is what stands left of it. */
static void look_unread(
	const struct request *req, const struct client *c, enum forwarding which, struct chain *ret)
{
	bool from_header = c->header_read && c->decided, agrees = false;
	struct client_list list;
	struct str entry;
	struct ip ip;

	client_list_start(&list, forwarding_rule(which), req);
	for (unsigned n = 0; n < WALK_MAX && client_list_next(&list, &entry) == LIST_ENTRY; n++) {
		if (!entry_read(&list, entry, &ip))
			continue;
		if (c->has_address && ip_equal(&ip, &c->address)) {
			agrees = from_header;
			continue;
		}
		if (agrees && !ip_is_local(&ip)) {
			ret->left = ip;
			ret->has_left = true;
			break;
		}
		if (!agrees && (!ret->has_unread || ip_is_local(&ret->unread))) {
			ret->unread = ip;
			ret->has_unread = true;
		}
		if (!from_header && !ip_is_local(&ip))
			break;
	}
	if (agrees)
		ret->has_unread = false;
}

/* The configured header: counts its entries, and finds the one left of the chosen one. */
static void look_read(
	const struct client_rule *rule, const struct request *req, const struct client *c, struct chain *ret)
{
	bool is_list = c->decided && rule->strategy != STRATEGY_SINGLE_VALUE;
	unsigned chosen =
		rule->strategy == STRATEGY_HOP_COUNT ? rule->hops : rule->strategy == STRATEGY_RIGHTMOST;
	struct client_list list;
	struct str entry;
	struct ip ip;

	client_list_start(&list, rule, req);
	while (ret->entries < WALK_MAX && client_list_next(&list, &entry) == LIST_ENTRY) {
		bool usable = entry_read(&list, entry, &ip);

		ret->entries++;
		if (!is_list || !usable)
			continue;
		if (chosen == 0 && ip_equal(&ip, &c->address)) {
			chosen = ret->entries;
		} else if (chosen != 0 && ret->entries == chosen + 1 && !ip_is_local(&ip) &&
			   !ip_equal(&ip, &c->address)) {
			ret->left = ip;
			ret->has_left = true;
		}
	}
}

static void look_chain(const struct client_rule *rule, const struct request *req, const struct client *c,
	const struct seen *seen, struct chain *ret)
{
	struct str read = c->header_read ? rule->header : STR("");

	*ret = (struct chain){.entries = 0};
	if (c->header_read && rule->strategy != STRATEGY_NAMED_HEADER)
		look_read(rule, req, c, ret);
	if (seen->forwarded_for && !str_equal_nocase(read, forwarding_rule(FORWARDING_FOR)->header))
		look_unread(req, c, FORWARDING_FOR, ret);
	if (seen->rfc7239 && !ret->has_unread &&
		!str_equal_nocase(read, forwarding_rule(FORWARDING_RFC7239)->header))
		look_unread(req, c, FORWARDING_RFC7239, ret);
}

/* ---- adding */

static struct behind *busiest_take(struct window *win, uint64_t hash, uint64_t weight, bool *ret_is_new)
{
	struct behind *b =
		&win->busiest[slots_take(&win->busiest_slots, TOP_KEYS_MAX, hash, weight, ret_is_new)];

	if (*ret_is_new)
		memset(b, 0, sizeof(*b));
	return b;
}

static struct refused_key *refused_take(struct window *win, uint64_t hash, uint64_t weight, bool *ret_is_new)
{
	return &win->refused[slots_take(&win->refused_slots, TOP_KEYS_MAX, hash, weight, ret_is_new)];
}

static struct caller *caller_take(struct window *win, uint64_t hash, uint64_t weight, bool *ret_is_new)
{
	struct caller *c =
		&win->callers[slots_take(&win->caller_slots, CALLERS_MAX, hash, weight, ret_is_new)];

	if (*ret_is_new)
		memset(c, 0, sizeof(*c));
	return c;
}

/* Everything known of the request that is being added. */
struct sample {
	const struct watch *w;
	const struct request *req;
	const struct client *c;
	const struct weight *weight;
	struct seen seen;
	uint8_t key[CLIENT_KEY_BYTES];
	uint8_t key_len;
	uint64_t key_hash;
	uint64_t person, agent; /* 0: nothing to go by */
	struct chain chain;
};

static void sample_make(struct sample *s)
{
	const struct client_rule *rule = &s->w->rules->client;
	struct str person;

	look(s->req, &s->seen);
	s->key_len = (uint8_t)client_key(rule, s->c, s->key);
	s->key_hash = hash_of(s->w, s->key, s->key_len);
	look_chain(rule, s->req, s->c, &s->seen, &s->chain);
	person = s->seen.cookie.len != 0 ? s->seen.cookie : s->seen.authorization;
	if (s->seen.agent.len != 0)
		s->agent = hash_of(s->w, s->seen.agent.ptr, s->seen.agent.len);
	if (person.len != 0)
		s->person = hash_of(s->w, person.ptr, person.len);
	else if (s->agent != 0)
		s->person = s->agent;
	else if (s->chain.has_unread)
		s->person = hash_of(s->w, s->chain.unread.bytes, sizeof(s->chain.unread.bytes));
}

static bool chosen_is_peer(const struct client *c)
{
	return c->reason == CLIENT_REASON_PEER || c->reason == CLIENT_REASON_PEER_UNTRUSTED;
}

/* A stranger's inner addresses tell of a place behind a proxy of its own: only our own hop names inner clients. */
static bool unread_counts(const struct sample *s)
{
	return !ip_is_local(&s->chain.unread) || s->c->peer_is_unix ||
	       (s->c->has_peer && range_set_find(&s->w->rules->own_networks, &s->c->peer) != NULL);
}

static void add_behind(struct window *win, const struct sample *s)
{
	uint64_t weight = s->weight->requests;
	bool is_new;
	struct behind *b = busiest_take(win, s->key_hash, weight, &is_new);

	if (is_new) {
		memcpy(b->key, s->key, sizeof(b->key));
		b->key_len = s->key_len;
		b->has_address = s->c->has_address;
		b->decided = s->c->decided;
		b->address = s->c->address;
		b->first_ns = s->weight->now;
	}
	b->chosen_is_peer = chosen_is_peer(s->c);
	b->reason = s->c->reason;
	b->has_peer = s->c->has_peer;
	b->peer_is_unix = s->c->peer_is_unix;
	if (s->c->has_peer)
		b->peer = s->c->peer;
	if (s->person != 0)
		sketch_add(&b->people, s->person);
	if (s->agent != 0)
		sketch_add(&b->agents, s->agent);
	if (s->chain.has_unread && unread_counts(s)) {
		b->unread += weight;
		sketch_add(&b->unread_values,
			hash_of(s->w, s->chain.unread.bytes, sizeof(s->chain.unread.bytes)));
	}
	if (s->chain.has_left) {
		b->left += weight;
		sketch_add(&b->left_values, hash_of(s->w, s->chain.left.bytes, sizeof(struct ip)));
	}
}

static void add_counts(struct window *win, const struct sample *s)
{
	uint64_t weight = s->weight->requests;
	unsigned entries = s->chain.entries < ENTRIES_COUNTED ? s->chain.entries : ENTRIES_COUNTED - 1;

	win->requests += weight;
	win->reasons[s->c->reason] += weight;
	win->undecided += s->c->decided ? 0 : weight;
	win->unread += s->chain.has_unread ? weight : 0;
	if (s->c->header_read)
		win->entries[entries] += weight;
	sketch_add(&win->keys, s->key_hash);
	if (s->chain.has_left) {
		win->left += weight;
		sketch_add(&win->left_values, hash_of(s->w, s->chain.left.bytes, sizeof(struct ip)));
	}
	if (chosen_is_peer(s->c) && !ip_is_local(&s->c->address) && !s->c->forwarding_present) {
		win->strangers += weight;
		sketch_add(&win->stranger_keys, s->key_hash);
	}
	if (s->c->header_read && s->c->decided && !s->chain.has_left && !ip_is_local(&s->c->address)) {
		win->ends += weight;
		sketch_add(&win->end_keys, s->key_hash);
	}
}

static void add_caller(struct window *win, const struct sample *s)
{
	uint64_t hash = s->c->has_peer ? hash_of(s->w, s->c->peer.bytes, sizeof(s->c->peer.bytes))
				       : s->c->peer_is_unix;
	bool is_new;
	struct caller *caller = caller_take(win, hash, s->weight->requests, &is_new);

	if (is_new) {
		caller->has_ip = s->c->has_peer;
		caller->is_unix = s->c->peer_is_unix;
		caller->ip = s->c->peer;
		caller->first_ns = s->weight->now;
	}
	caller->browser |= agent_is_browser(s->seen.agent);
	if (s->agent != 0)
		sketch_add(&caller->agents, s->agent);
	if (s->weight->refused > 0) {
		caller->refused += s->weight->refused;
		sketch_add(&caller->clients, s->key_hash ^ (s->person == s->agent ? 0 : s->person));
	}
}

/* One person's burst is one example. */
static void add_example(struct examples *e, const struct sample *s)
{
	enum example_kind kind = !s->c->decided         ? EXAMPLE_UNDECIDED
				 : chosen_is_peer(s->c) ? EXAMPLE_PEER
							: EXAMPLE_DECIDED;

	/* One program's users look like one person; what their hop says of them tells them apart. */
	uint64_t who = s->person;

	if (s->chain.has_unread)
		who ^= hash_of(s->w, s->chain.unread.bytes, sizeof(s->chain.unread.bytes));
	if (who != 0 && who == e->last_person[kind])
		return;
	e->last_person[kind] = who;
	example_keep(e, kind, &s->w->rules->client, s->req, s->c, s->key_hash);
}

static void add_refused(struct window *win, const struct sample *s)
{
	bool is_new;
	struct refused_key *r = refused_take(win, s->key_hash, s->weight->refused, &is_new);

	win->refused_samples++;
	win->refusals += s->weight->refused;
	if (is_new) {
		memcpy(r->key, s->key, sizeof(r->key));
		r->key_len = s->key_len;
	}
}

/* A rule that is hardly used keeps its window until there is something to see in it. */
static void turn(struct profile *p, ns now)
{
	ns age = now - p->now.start_ns;

	if (p->now.start_ns != 0 &&
		(age < WINDOW_NS || (p->now.requests < WINDOW_REQUESTS_MIN && age < WINDOW_OLD_NS)))
		return;
	if (p->now.start_ns != 0)
		p->before = p->now;
	memset(&p->now, 0, sizeof(p->now));
	p->now.start_ns = now;
}

void profile_add(struct watch *w, struct profile *p, const struct request *req, const struct verdict *v,
	const struct weight *weight)
{
	struct sample s = {.w = w, .req = req, .c = &v->client, .weight = weight};
	struct window *win = &p->now;

	turn(p, weight->now);
	win->last_ns = weight->now;
	sample_make(&s);
	if (weight->requests > 0) {
		win->samples++;
		add_counts(win, &s);
		add_behind(win, &s);
		add_example(&p->examples, &s);
	}
	add_caller(win, &s);
	if (weight->refused > 0)
		add_refused(win, &s);
}

/* ---- merging */

static void merge_behind(struct window *to, const struct behind *from, const struct slot *slot)
{
	bool is_new;
	size_t i = slots_merge(&to->busiest_slots, TOP_KEYS_MAX, slot, &is_new);
	struct behind *b = &to->busiest[i];

	if (i == SLOTS_NONE)
		return;
	if (is_new) {
		*b = *from;
		return;
	}
	b->first_ns = from->first_ns < b->first_ns ? from->first_ns : b->first_ns;
	b->unread += from->unread;
	b->left += from->left;
	sketch_merge(&b->people, &from->people);
	sketch_merge(&b->agents, &from->agents);
	sketch_merge(&b->unread_values, &from->unread_values);
	sketch_merge(&b->left_values, &from->left_values);
}

static void merge_caller(struct window *to, const struct caller *from, const struct slot *slot)
{
	bool is_new;
	size_t i = slots_merge(&to->caller_slots, CALLERS_MAX, slot, &is_new);
	struct caller *c = &to->callers[i];

	if (i == SLOTS_NONE)
		return;
	if (is_new) {
		*c = *from;
		return;
	}
	c->browser |= from->browser;
	c->first_ns = from->first_ns < c->first_ns ? from->first_ns : c->first_ns;
	c->refused += from->refused;
	sketch_merge(&c->agents, &from->agents);
	sketch_merge(&c->clients, &from->clients);
}

static void merge_counts(struct window *to, const struct window *from)
{
	if (to->start_ns == 0 || from->start_ns < to->start_ns)
		to->start_ns = from->start_ns;
	to->last_ns = from->last_ns > to->last_ns ? from->last_ns : to->last_ns;
	to->samples += from->samples;
	to->refused_samples += from->refused_samples;
	to->requests += from->requests;
	to->refusals += from->refusals;
	to->undecided += from->undecided;
	to->unread += from->unread;
	to->left += from->left;
	to->strangers += from->strangers;
	to->ends += from->ends;
	for (size_t i = 0; i < CLIENT_REASON_COUNT; i++)
		to->reasons[i] += from->reasons[i];
	for (size_t i = 0; i < ENTRIES_COUNTED; i++)
		to->entries[i] += from->entries[i];
	sketch_merge(&to->keys, &from->keys);
	sketch_merge(&to->left_values, &from->left_values);
	sketch_merge(&to->stranger_keys, &from->stranger_keys);
	sketch_merge(&to->end_keys, &from->end_keys);
}

void window_merge(struct window *to, const struct window *from)
{
	struct slot slot;
	bool is_new;
	size_t place;

	if (from->start_ns == 0)
		return;
	merge_counts(to, from);
	for (size_t i = 0; i < from->busiest_slots.n; i++) {
		slot = slots_at(&from->busiest_slots, i);
		merge_behind(to, &from->busiest[i], &slot);
	}
	for (size_t i = 0; i < from->caller_slots.n; i++) {
		slot = slots_at(&from->caller_slots, i);
		merge_caller(to, &from->callers[i], &slot);
	}
	for (size_t i = 0; i < from->refused_slots.n; i++) {
		slot = slots_at(&from->refused_slots, i);
		place = slots_merge(&to->refused_slots, TOP_KEYS_MAX, &slot, &is_new);
		if (place != SLOTS_NONE && is_new)
			to->refused[place] = from->refused[i];
	}
}

static int more_first(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->count < y->count) - (x->count > y->count);
}

void window_finish(struct window *win)
{
	for (size_t i = 0; i < win->busiest_slots.n; i++)
		win->busiest[i].slot = slots_at(&win->busiest_slots, i);
	for (size_t i = 0; i < win->refused_slots.n; i++)
		win->refused[i].slot = slots_at(&win->refused_slots, i);
	for (size_t i = 0; i < win->caller_slots.n; i++)
		win->callers[i].slot = slots_at(&win->caller_slots, i);
	qsort(win->busiest, win->busiest_slots.n, sizeof(win->busiest[0]), more_first);
	qsort(win->refused, win->refused_slots.n, sizeof(win->refused[0]), more_first);
}
