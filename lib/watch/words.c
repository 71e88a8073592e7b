/* SPDX-License-Identifier: MIT */
/*
 * Findings in plain words: what was seen, in numbers, and since when. They name the address and the header, so that a
 * reader who has never heard of this program can draw the path of a request with them. Counts of different things come
 * from sketches, so they say "about".
 */
#include "watch/part.h"

#include "watch/notice.h"

#include <time.h>

static void put_time(struct text *t, ns wall)
{
	time_t seconds = (time_t)(wall / NS_PER_S);
	char buffer[40];
	struct tm utc;

	(void)gmtime_r(&seconds, &utc);
	text_str(t, str_make(buffer, strftime(buffer, sizeof(buffer), "%Y-%m-%dT%H:%M:%SZ", &utc)));
}

static void put_about(struct text *t, uint64_t n, const char *what_z)
{
	text_z(t, "about ");
	text_u64(t, n);
	text_char(t, ' ');
	text_z(t, what_z);
}

static void put_rule(struct text *t, const struct finding *f)
{
	text_z(t, "rule ");
	text_str(t, f->rule->name);
	text_z(t, ": ");
}

static void put_share(struct text *t, const struct window *win, const struct finding *f)
{
	text_u64(t, f->requests);
	text_z(t, " of ");
	text_u64(t, win->requests);
	text_z(t, " requests since ");
	put_time(t, f->since);
}

static void finish(struct text *t, char *line_z)
{
	line_z[t->len] = '\0';
}

static void put_people(struct text *t, const struct behind *b)
{
	put_about(t, sketch_count(&b->people), "different people can be told apart behind it");
	text_z(t, " (by Cookie, Authorization or User-Agent)");
}

static bool has(const struct finding *f, enum signal s)
{
	return f->signals & 1u << s;
}

static void put_proof(const struct watch *w, struct text *t, const struct behind *b, const struct finding *f)
{
	if (has(f, SIGNAL_FORWARDED_HEADER_IGNORED)) {
		text_z(t, ". A forwarding header that is not read names ");
		put_about(t, sketch_count(&b->unread_values), "different addresses");
		if (b->chosen_is_peer)
			text_z(t, w->rules->client.strategy == STRATEGY_PEER
					  ? ", because the strategy is peer"
					  : ", because this address is not trusted");
	}
	if (has(f, SIGNAL_UNDECIDED_SHARE)) {
		text_z(t, ". Their client cannot be decided: ");
		text_str(t, client_reason_text(b->reason));
	}
	if (has(f, SIGNAL_LEFT_NEIGHBOUR_VARIES)) {
		text_z(t, ". The entry left of it in the list holds ");
		put_about(t, sketch_count(&b->left_values),
			is_stranger(w, b) ? "different public addresses"
					  : "different public addresses: it is a proxy's");
	}
	if (has(f, SIGNAL_KEY_IS_OWN_PROXY))
		text_z(t, ". It is one of trusted_proxies");
	else if (has(f, SIGNAL_KEY_PRIVATE))
		text_z(t, ". It can be reached from inside only");
	if (has(f, SIGNAL_FEW_KEYS))
		text_z(t, ", and fewer than eight such addresses hold over 90 % of the rule");
}

void words_key(const struct watch *w, const struct window *win, const struct behind *b, struct finding *f)
{
	struct text t;

	text_init(&t, f->text_z, sizeof(f->text_z) - 1);
	put_rule(&t, f);
	put_share(&t, win, f);
	text_z(&t, b->decided ? " have the key " : " have no decided client and share the key ");
	text_z(&t, f->key_z);
	text_z(&t, ", and ");
	put_people(&t, b);
	put_proof(w, &t, b, f);
	if (f->code != FINDING_CODE_SHARED_BUCKET)
		text_z(&t, ". That may be right");
	else if (is_stranger(w, b))
		text_z(&t,
			". If it is a proxy of yours, they all share one bucket; if not, it is rightly one "
			"client, for anybody can make up such headers and cookies");
	else
		text_z(&t, ". They all share one bucket");
	finish(&t, f->text_z);
}

void words_no_cure(struct finding *f)
{
	static const char words[] = "nothing, if many people come from that address in truth (an office, a "
				    "school, a carrier, a farm of terminal "
				    "servers): raise the limit for them or add a part to its key. If it is a "
				    "proxy of yours, it must send "
				    "X-Forwarded-For and be listed in trusted_proxies";

	memcpy(f->cure_z, words, sizeof(words));
}

void words_undecided(const struct window *win, const struct behind *b, struct finding *f)
{
	struct text t;

	text_init(&t, f->text_z, sizeof(f->text_z) - 1);
	put_rule(&t, f);
	put_share(&t, win, f);
	text_z(&t, " have no decided client: ");
	text_str(&t, client_reason_text(b->reason));
	text_z(&t, " (");
	text_str(&t, client_reason_word(b->reason));
	text_z(&t, "). All of them that come from ");
	text_z(&t, f->key_z);
	text_z(&t, " share one bucket");
	finish(&t, f->text_z);
}

void words_caller(const struct watch *w, const struct caller *c, struct finding *f)
{
	const struct identity_set *set = &w->rules->identities;
	struct text t;

	text_init(&t, f->text_z, sizeof(f->text_z) - 1);
	put_rule(&t, f);
	text_z(&t, f->key_z);
	text_z(&t, ", of own_networks and with one User-Agent, was refused ");
	text_u64(&t, c->refused);
	text_z(&t, " times since ");
	put_time(&t, f->since);
	text_z(&t, " on behalf of ");
	put_about(&t, sketch_count(&c->clients),
		"different clients, without a token: pages that a server of ours makes, probably");
	finish(&t, f->text_z);
	text_init(&t, f->cure_z, sizeof(f->cure_z) - 1);
	text_z(&t, "if it is a service of yours, let it show a token in ");
	text_str(&t, set->n_headers > 0 ? set->headers[0] : STR("X-Internal-Token"));
	text_z(&t, set->n > 0 ? " (one identity a service: postern token new)"
			      : " and give it an identity (postern token new)");
	text_z(&t, ", so that it is not counted with anybody; limit its visitors where they come in");
	finish(&t, f->cure_z);
}
