/* SPDX-License-Identifier: MIT */
/*
 * Refused services of ours, for people: whose they seem to be, and what to do. The guess goes from what is proven to
 * what is likely and stops before what is not: a stranger with a wrong token is nobody's service. A line in the log is
 * written once in ten minutes for each of them and only so many a minute for all, since whoever likes can be refused
 * with a made-up token.
 */
#include "watch/part.h"

#include "base/log.h"

#include <stdlib.h>

#define AGAIN_NS (600 * NS_PER_S)
#define MINUTE_NS (60 * NS_PER_S)

static bool rows_equal(const struct refusal *a, const struct refusal *b)
{
	return a->token == b->token && strcmp(a->remote_addr_z, b->remote_addr_z) == 0 &&
	       a->has_client == b->has_client && (!a->has_client || ip_equal(&a->client, &b->client)) &&
	       (a->token != TOKEN_STATE_VALID || a->identity == b->identity);
}

static void row_join(struct refusal *to, const struct refusal *from)
{
	uint64_t count = to->count + from->count;
	ns first = to->first_ns < from->first_ns ? to->first_ns : from->first_ns;

	if (from->last_ns > to->last_ns)
		*to = *from;
	to->count = count;
	to->first_ns = first;
}

static int later_first(const void *a, const void *b)
{
	const struct refusal *x = a, *y = b;

	return (x->last_ns < y->last_ns) - (x->last_ns > y->last_ns);
}

/* All parts' rows in one list, equal ones joined, the last refused first. */
static size_t rows_merge(struct watch *w)
{
	size_t n = 0;

	for (unsigned k = 0; k < w->n_parts; k++) {
		struct part *p = w->parts[k];

		part_enter(p);
		for (size_t i = 0; i < p->n_refusals; i++) {
			size_t at = 0;

			while (at < n && !rows_equal(&w->rows[at], &p->refusals[i]))
				at++;
			if (at < n)
				row_join(&w->rows[at], &p->refusals[i]);
			else
				w->rows[n++] = p->refusals[i];
		}
		part_leave(p);
	}
	qsort(w->rows, n, sizeof(w->rows[0]), later_first);
	return n;
}

static bool is_own(const struct watch *w, const struct refusal *r)
{
	const struct range_set *own = &w->rules->own_networks;

	return (r->has_peer && range_set_find(own, &r->peer) != NULL) ||
	       (r->has_client && range_set_find(own, &r->client) != NULL);
}

static const struct identity *guess(struct watch *w, const struct refusal *r, bool *ret_from_ledger)
{
	const struct identity_set *set = &w->rules->identities;
	const struct identity *found = NULL;

	*ret_from_ledger = false;
	if (r->has_identity)
		return &set->items[r->identity];
	for (size_t i = 0; i < set->n && r->has_peer; i++) {
		if (!ledger_has(w, i, &r->peer))
			continue;
		if (found != NULL)
			return NULL;
		found = &set->items[i];
	}
	*ret_from_ledger = found != NULL;
	if (found == NULL && set->n == 1 && is_own(w, r))
		found = &set->items[0];
	return found;
}

/* ---- the words */

static struct str token_header(const struct watch *w)
{
	const struct identity_set *set = &w->rules->identities;

	return set->n_headers > 0 ? set->headers[0] : STR("X-Internal-Token");
}

static void put_show_token(const struct watch *w, const struct own_refusal *o, struct text *t)
{
	text_z(t, "send the token");
	if (o->identity_guess != NULL && o->identity_guess->token_file.len != 0) {
		text_z(t, " of ");
		text_str(t, o->identity_guess->token_file);
	}
	text_z(t, " in ");
	text_str(t, token_header(w));
}

static void put_absent(
	const struct watch *w, const struct refusal *r, const struct own_refusal *o, struct text *t)
{
	if (r->hint_z[0] != '\0') {
		text_z(t, "It shows a token in ");
		text_z(t, r->hint_z);
		text_z(t, ", which is not looked at: ");
		put_show_token(w, o, t);
		text_z(t, ", or add that header to token_headers");
		return;
	}
	text_z(t, "It shows no token and is counted like any visitor: if it is a service of yours, ");
	put_show_token(w, o, t);
	if (w->rules->identities.n == 0)
		text_z(t, " (and give it an identity: postern token new)");
	text_z(t, "; if it is a health check, give its path a rule with \"action\": \"allow\"");
}

static void put_unknown(const struct watch *w, const struct refusal *r, const struct own_refusal *o,
	bool known_place, struct text *t)
{
	if (!is_own(w, r) && !known_place) {
		text_z(t, "It shows a token that nobody has, from outside own_networks: if it is a service "
			  "of yours, ");
		put_show_token(w, o, t);
		text_z(t, "; else somebody is guessing, and is limited like any stranger");
		return;
	}
	text_z(t, "It shows a token that nobody has (an old one after a rotation?): ");
	put_show_token(w, o, t);
	text_z(t, ", or keep the old one as previous_token_file until every service has changed");
}

static void put_valid(const struct refusal *r, struct text *t)
{
	if (r->reason == REASON_IDENTITY_REQUIRED)
		text_z(t, "Its token is right, but the rule requires another identity: add it to "
			  "\"require\", or call something else");
	else if (r->reason == REASON_BLOCKED)
		text_z(t, "Its token is right, but the rule denies everybody");
	else
		text_z(t, "Its token is right and a limit of its own is empty: raise that limit, or find out "
			  "why it asks so much");
}

static void put_words(const struct watch *w, const struct refusal *r, bool known_place, struct own_refusal *o)
{
	struct text t;

	text_init(&t, o->text_z, sizeof(o->text_z) - 1);
	if (r->token != TOKEN_STATE_VALID && o->identity_guess != NULL) {
		text_z(&t, "This seems to be ");
		text_str(&t, o->identity_guess->name);
		text_z(&t, known_place ? ", which has come from there before. " : ". ");
	}
	switch (r->token) {
	case TOKEN_STATE_ABSENT: put_absent(w, r, o, &t); break;
	case TOKEN_STATE_UNKNOWN: put_unknown(w, r, o, known_place, &t); break;
	case TOKEN_STATE_VALID: put_valid(r, &t); break;
	default:
		text_z(&t, "Its token comes more than once or holds a comma, so it proves nothing: ");
		put_show_token(w, o, &t);
		text_z(&t, ", on one line");
		break;
	}
	o->text_z[t.len] = '\0';
}

size_t refusals_compute(struct watch *w, ns now, ns wall_now, struct own_refusal *ret, size_t max)
{
	size_t n = rows_merge(w);

	n = n < max ? n : max;
	for (size_t i = 0; i < n; i++) {
		const struct refusal *r = &w->rows[i];
		struct own_refusal *o = &ret[i];
		bool known_place;

		memset(o, 0, sizeof(*o));
		memcpy(o->remote_addr_z, r->remote_addr_z, sizeof(o->remote_addr_z));
		memcpy(o->client_z, "none", sizeof("none"));
		if (r->has_client)
			(void)ip_print(&r->client, o->client_z);
		o->token = r->token;
		o->reason = r->reason;
		o->rule = r->rule < w->rules->n_rules ? &w->rules->rules[r->rule] : NULL;
		o->identity_guess = guess(w, r, &known_place);
		o->count = r->count;
		o->first = to_wall(r->first_ns, now, wall_now);
		o->last = to_wall(r->last_ns, now, wall_now);
		put_words(w, r, known_place, o);
	}
	return n;
}

size_t own_refusals_read(struct watch *w, ns now, ns wall_now, struct own_refusal *ret, size_t max)
{
	size_t n;

	pthread_mutex_lock(&w->lock);
	n = refusals_compute(w, now, wall_now, ret, max);
	pthread_mutex_unlock(&w->lock);
	return n;
}

/* ---- the log */

static void log_refusal(const struct own_refusal *o)
{
	struct log_field fields[] = {
		LOG_Z("remote_addr", o->remote_addr_z),
		LOG_Z("client", o->client_z),
		LOG_STR("token", token_state_word(o->token)),
		LOG_STR("identity_guess", o->identity_guess != NULL ? o->identity_guess->name : STR("")),
		LOG_STR("reason", reason_word(o->reason)),
		LOG_STR("rule", o->rule != NULL ? o->rule->name : STR("")),
		LOG_NUM("count", o->count),
	};
	char line[OWN_TEXT_BYTES + 64];
	struct text t;

	text_init(&t, line, sizeof(line));
	text_z(&t, "what looks like a service of ours is refused. ");
	text_z(&t, o->text_z);
	log_write(LOG_WARN, "own_service_refused", text_view(&t), fields, sizeof(fields) / sizeof(fields[0]));
}

/* Where this row was last spoken of, or the place of the one longest ago. */
static struct spoken *spoken_find(struct watch *w, uint64_t hash)
{
	struct spoken *oldest = &w->spoken[0];

	for (size_t i = 0; i < OWN_REFUSALS_MAX; i++) {
		if (w->spoken[i].hash == hash && w->spoken[i].last_ns != 0)
			return &w->spoken[i];
		if (w->spoken[i].last_ns < oldest->last_ns)
			oldest = &w->spoken[i];
	}
	*oldest = (struct spoken){.hash = hash};
	return oldest;
}

void refusals_tick(struct watch *w, ns now, ns wall_now)
{
	size_t n = refusals_compute(w, now, wall_now, w->refusals, OWN_REFUSALS_MAX);

	if (now - w->own_minute_ns >= MINUTE_NS) {
		w->own_minute_ns = now;
		w->own_lines = 0;
	}
	for (size_t i = 0; i < n; i++) {
		const struct refusal *r = &w->rows[i];
		uint64_t name = digest_short(&w->key, r->remote_addr_z, strlen(r->remote_addr_z)) ^
				(uint64_t)r->token;
		struct spoken *s = spoken_find(
			w, name ^ (r->has_client ? digest_short(&w->key, r->client.bytes, 16) : 0));

		/* Nothing new since the line about it, or a line not long ago. */
		if (s->last_ns != 0 && (r->last_ns <= s->last_ns || now - s->last_ns < AGAIN_NS))
			continue;
		if (w->own_lines++ >= OWN_LINES_PER_MINUTE) {
			w->own_suppressed++;
			s->last_ns = now;
			continue;
		}
		s->last_ns = now;
		log_refusal(&w->refusals[i]);
	}
}
