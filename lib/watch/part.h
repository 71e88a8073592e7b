/* SPDX-License-Identifier: MIT */
/*
 * part: what a watch is made of; private to watch.
 *
 * Model      A part a worker. Inside it tallies (touched by the worker alone), and what readers copy: a profile a rule, the
 *            ledger, the refusals of own services.
 * Units      counts are requests, corrected for sampling; ns on the loop's clock.
 * Ownership  The watch's.
 * Threads    busy guards what readers copy. The worker tries once and gives its sample up if a reader holds it; readers wait.
 *            Counters are single-writer atomics.
 * Limits     the constants below.
 */
#ifndef POSTERN_WATCH_PART_H
#define POSTERN_WATCH_PART_H

#include "base/digest.h"
#include "base/metric.h"
#include "watch/finding.h"
#include "watch/own.h"
#include "watch/profile.h"
#include "watch/watch.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* ---- own services */

struct ledger_address {
	struct ip ip; /* written under busy */
	metric_counter last_ns;
};

struct ledger {
	metric_counter requests, first_ns, last_ns;
	struct ledger_address addresses[OWN_ADDRESSES_MAX];
	size_t n_addresses, last_hit;
	uint64_t left_out;
};

#define OWN_HINT_BYTES 72

struct refusal {
	char remote_addr_z[64];
	bool has_peer, has_client;
	struct ip peer, client;
	enum token_state token;
	uint16_t identity; /* token VALID or hinted: the one proven */
	bool has_identity;
	char hint_z[OWN_HINT_BYTES]; /* a header that holds a token and is not looked at, or empty */
	enum reason reason;
	uint16_t rule; /* index, or UINT16_MAX */
	uint64_t count;
	ns first_ns, last_ns;
};

/* ---- the whole */

struct tally {
	uint64_t owed, owed_refused; /* passed over since the last sample: the next stands for them too */
};

/* What is counted since the start: of the watches that follow each other at reloads there are two at a time, and a worker that
 * still goes by the old one counts in the same place. */
struct totals {
	unsigned users;
	metric_counter own_refused[]; /* by part */
};

struct part {
	struct watch_worker worker; /* first: a worker is its part */
	struct watch *watch;
	atomic_bool busy;
	struct tally *tallies;
	struct profile *profiles;
	struct ledger *ledgers; /* [identity][slot] */
	struct refusal refusals[OWN_REFUSALS_MAX];
	size_t n_refusals, last_refusal;
	metric_counter *own_refused; /* in the totals */
	metric_counter dropped;
	uint64_t noise;
};

/* A finding that was there when last looked at. */
struct active {
	enum finding_code code;
	char rule_z[64], key_z[FINDING_KEY_BYTES];
	ns since; /* since 1970 */
	bool still;
};

/* A refused service of ours that was spoken of: its row's hash, and when, on the loop's clock (0: free). */
struct spoken {
	uint64_t hash;
	ns last_ns;
};

#define SCRATCH_BYTES (64u * 1024)

struct watch {
	const struct ruleset *rules;
	size_t n_rules;
	unsigned n_parts;
	struct part **parts;
	struct totals *totals;
	struct digest_key key;

	/* for readers, under lock */
	pthread_mutex_t lock;
	struct window *merged, *copy;
	struct examples *examples;
	void *scratch; /* for address sets of cures that are tried */
	struct active actives[FINDINGS_MAX];
	size_t n_actives;
	bool restarted; /* signals began anew at a reload, and nobody has been told */
	struct finding *findings; /* FINDINGS_MAX, for the tick and the metrics */
	struct own_refusal *refusals; /* OWN_REFUSALS_MAX, for the tick */
	struct refusal *rows; /* OWN_REFUSALS_MAX a part, being merged */
	struct spoken spoken[OWN_REFUSALS_MAX];
	ns own_minute_ns;
	unsigned own_lines;
	uint64_t own_suppressed;
	size_t bytes;
};

static inline bool part_try(struct part *p)
{
	return !atomic_exchange_explicit(&p->busy, true, memory_order_acquire);
}

static inline void part_enter(struct part *p)
{
	while (!part_try(p))
		(void)sched_yield();
}

static inline void part_leave(struct part *p)
{
	atomic_store_explicit(&p->busy, false, memory_order_release);
}

/* ---- between the files */

/* Counts in there from now on. Totals that nobody counts in any more are freed. */
void watch_totals_set(struct watch *w, struct totals *totals);

/* Merges a rule's windows of all parts into w->merged: the current ones, and those before them where the current ones are
 * short or both is asked for. Old ones do not count. Examples come into w->examples if asked for. Under lock. */
void watch_merge(struct watch *w, size_t rule, ns now, bool both, bool examples);

/* What is known of a finding whose cure is looked for. */
struct cure_case {
	const struct behind *behind;
	enum example_kind kind;
	const struct ip *
		chosen; /* addresses that are proxies if the finding is right; the finding's own among them */
	size_t n_chosen, n_more; /* n_more: that may be too, and are not among them */
	bool more_unseen; /* and others still: the list of keys is full */
};

/* Tries settings on w->examples and fills cure_z and cure_is_setting. Under lock. */
void cure_find(struct watch *w, const struct cure_case *c, struct finding *f);

/* Outside own_networks: it may be anybody, and nothing is asserted of it. */
static inline bool is_stranger(const struct watch *w, const struct behind *b)
{
	return b->has_address && range_set_find(&w->rules->own_networks, &b->address) == NULL &&
	       range_set_find(&w->rules->client.trusted, &b->address) == NULL;
}

/* text_z, and cure_z where no setting is tried. */
void words_key(const struct watch *w, const struct window *win, const struct behind *b, struct finding *f);
void words_undecided(const struct window *win, const struct behind *b, struct finding *f);
void words_caller(const struct watch *w, const struct caller *c, struct finding *f);
void words_no_cure(struct finding *f);

/* Under lock. */
size_t findings_compute(struct watch *w, ns now, ns wall_now, struct finding *ret, size_t max);
size_t refusals_compute(struct watch *w, ns now, ns wall_now, struct own_refusal *ret, size_t max);

/* What was there at the last tick, or NULL. */
struct active *active_find(struct watch *w, const struct finding *f);

/* Log lines of the tick. Under lock. */
void findings_tick(struct watch *w, ns now, ns wall_now);
void refusals_tick(struct watch *w, ns now, ns wall_now);

void own_refused(struct watch *w, struct part *p, const struct request *req, const struct verdict *v, ns now);
void ledger_use(struct part *p, const struct verdict *v, ns now);

/* Has this identity, with any token, come from there? */
bool ledger_has(struct watch *w, size_t identity, const struct ip *ip);
void ledger_carry(struct watch *to, struct watch *from, unsigned part);

static inline ns to_wall(ns then, ns now, ns wall_now)
{
	return then == 0 ? 0 : wall_now - (now > then ? now - then : 0);
}

#endif
