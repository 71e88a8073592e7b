/* SPDX-License-Identifier: MIT */
/*
 * What a verdict costs here is one counter of its rule, unless the counter says that this one is to be looked at. While a
 * window is young that is every one, so that a small site is judged on all it has; later ever fewer, down to one of 1024,
 * at uneven distances lest a client that comes in step is always or never seen. A worker never waits: a reader that is copying
 * its part makes it give up one sample. Readers copy window by window and merge what they copied, so they hold a part for
 * some microseconds at a time.
 */
#include "watch/watch.h"

#include "watch/part.h"

#include <stdlib.h>

#define SHORT_REQUESTS 500u /* a window with less is read together with the one before it */
#define PART_ALIGN 64u /* parts of two workers never share a cache line */

static void *alloc(struct watch *w, size_t n, size_t size)
{
	size_t bytes = (n * size + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
	void *p = aligned_alloc(PART_ALIGN, bytes > 0 ? bytes : PART_ALIGN);

	if (p == NULL)
		return NULL;
	memset(p, 0, bytes);
	w->bytes += bytes;
	return p;
}

/* A range shorter than a byte has several first bytes. */
static void own_bytes_make(struct watch_worker *worker, const struct range_set *own)
{
	for (size_t i = 0; i < own->n; i++) {
		const struct range *r = &own->items[i];
		bool v4 = ip_is_v4(&r->base);
		unsigned bits = v4 ? r->bits - 96u : r->bits;
		unsigned first = r->base.bytes[v4 ? 12 : 0], n = bits < 8 ? 1u << (8 - bits) : 1;

		for (unsigned k = first; k < first + n; k++)
			worker->own_bytes[v4][k / 64] |= 1ull << k % 64;
	}
}

static bool part_new(struct watch *w, struct part **ret)
{
	struct part *p = alloc(w, 1, sizeof(*p));

	*ret = p;
	if (p == NULL)
		return false;
	p->watch = w;
	p->worker.rules = w->rules->rules;
	p->worker.n_rules = w->n_rules;
	p->worker.skips = alloc(w, w->n_rules, sizeof(*p->worker.skips));
	p->worker.skips_refused = alloc(w, w->n_rules, sizeof(*p->worker.skips_refused));
	own_bytes_make(&p->worker, &w->rules->own_networks);
	p->tallies = alloc(w, w->n_rules, sizeof(*p->tallies));
	p->profiles = alloc(w, w->n_rules, sizeof(*p->profiles));
	p->ledgers = alloc(w, w->rules->identities.n * TOKEN_SLOT_COUNT, sizeof(*p->ledgers));
	digest_random(&p->noise, sizeof(p->noise));
	p->noise |= 1;
	return p->worker.skips != NULL && p->worker.skips_refused != NULL && p->tallies != NULL &&
	       p->profiles != NULL && p->ledgers != NULL;
}

static bool parts_new(struct watch *w)
{
	struct totals *totals;

	w->parts = alloc(w, w->n_parts, sizeof(struct part *));
	if (w->parts == NULL)
		return false;
	for (unsigned i = 0; i < w->n_parts; i++) {
		if (!part_new(w, &w->parts[i]))
			return false;
	}
	totals = calloc(1, sizeof(*totals) + w->n_parts * sizeof(totals->own_refused[0]));
	if (totals == NULL)
		return false;
	w->bytes += sizeof(*totals) + w->n_parts * sizeof(totals->own_refused[0]);
	watch_totals_set(w, totals);
	return true;
}

void watch_totals_set(struct watch *w, struct totals *totals)
{
	if (w->totals != NULL && --w->totals->users == 0)
		free(w->totals);
	w->totals = totals;
	if (totals == NULL)
		return;
	totals->users++;
	for (unsigned i = 0; i < w->n_parts; i++)
		w->parts[i]->own_refused = &totals->own_refused[i];
}

enum err watch_open(struct watch **ret, const struct ruleset *rules, unsigned workers)
{
	struct watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return ERR_MEMORY;
	pthread_mutex_init(&w->lock, NULL);
	digest_random(&w->key, sizeof(w->key));
	w->bytes = sizeof(*w);
	w->rules = rules;
	w->n_rules = rules->n_rules < WATCH_RULES_MAX ? rules->n_rules : WATCH_RULES_MAX;
	w->n_parts = workers;
	w->merged = alloc(w, 1, sizeof(*w->merged));
	w->copy = alloc(w, 1, sizeof(*w->copy));
	w->examples = alloc(w, 1, sizeof(*w->examples));
	w->scratch = alloc(w, 1, SCRATCH_BYTES);
	w->findings = alloc(w, FINDINGS_MAX, sizeof(*w->findings));
	w->refusals = alloc(w, OWN_REFUSALS_MAX, sizeof(*w->refusals));
	w->rows = alloc(w, (size_t)OWN_REFUSALS_MAX * workers, sizeof(*w->rows));
	if (w->merged == NULL || w->copy == NULL || w->examples == NULL || w->scratch == NULL ||
		w->findings == NULL || w->refusals == NULL || w->rows == NULL || !parts_new(w)) {
		watch_close(w);
		return ERR_MEMORY;
	}
	*ret = w;
	return ERR_OK;
}

void watch_close(struct watch *w)
{
	if (w == NULL)
		return;
	watch_totals_set(w, NULL);
	for (unsigned i = 0; w->parts != NULL && i < w->n_parts && w->parts[i] != NULL; i++) {
		free(w->parts[i]->worker.skips);
		free(w->parts[i]->worker.skips_refused);
		free(w->parts[i]->tallies);
		free(w->parts[i]->profiles);
		free(w->parts[i]->ledgers);
		free(w->parts[i]);
	}
	free(w->parts);
	free(w->merged);
	free(w->copy);
	free(w->examples);
	free(w->scratch);
	free(w->findings);
	free(w->refusals);
	free(w->rows);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

size_t watch_bytes(const struct watch *w)
{
	return w->bytes;
}

/* ---- the decision path */

/* How many to pass over. A sample stands for at most a hundredth of what was seen before it, so that no single one tips a
 * share. The generator (xorshift, Marsaglia 2003) is no secret, only out of step with everybody. */
static uint32_t distance(struct part *p, uint32_t samples, uint64_t seen)
{
	uint64_t most = seen >> 7;

	if (samples < YOUNG_SAMPLES)
		return 0;
	p->noise ^= p->noise << 13;
	p->noise ^= p->noise >> 7;
	p->noise ^= p->noise << 17;
	return (uint32_t)(p->noise >> 32) %
	       ((most < SAMPLE_DISTANCE_MAX ? (uint32_t)most : SAMPLE_DISTANCE_MAX) + 1);
}

struct watch_worker *watch_worker_at(struct watch *w, unsigned index)
{
	return &w->parts[index]->worker;
}

/* This one is looked at, unless a reader is at the part: then the next one is, and stands for this one too. */
static void sample(
	struct part *p, size_t rule, const struct request *req, const struct verdict *v, struct weight weight)
{
	const struct window *win = &p->profiles[rule].now;
	struct tally *t = &p->tallies[rule];

	if (!part_try(p)) {
		metric_add(&p->dropped, 1);
		t->owed += weight.requests > 0;
		t->owed_refused += weight.refused > 0;
		return;
	}
	weight.requests += weight.requests > 0 ? t->owed : 0;
	weight.refused += weight.refused > 0 ? t->owed_refused : 0;
	profile_add(p->watch, &p->profiles[rule], req, v, &weight);
	if (weight.requests > 0)
		t->owed = p->worker.skips[rule] = distance(p, win->samples, win->requests);
	if (weight.refused > 0)
		t->owed_refused = p->worker.skips_refused[rule] =
			distance(p, win->refused_samples, win->refusals);
	part_leave(p);
}

/* True if it is this one's turn. */
static bool count_down(uint32_t *skip)
{
	if (*skip == 0)
		return true;
	--*skip;
	return false;
}

void watch_verdict_look(
	struct watch_worker *worker, const struct request *req, const struct verdict *v, ns now)
{
	struct part *p = (struct part *)worker;
	struct weight weight = {.now = now};
	size_t rule = (size_t)(v->rule - worker->rules);

	if (!v->has_client)
		return;
	if (v->decision == DECISION_DENY)
		own_refused(p->watch, p, req, v, now);
	if (v->token.state == TOKEN_STATE_VALID) {
		ledger_use(p, v, now);
		return;
	}
	if (v->rule == NULL || rule >= worker->n_rules)
		return;
	weight.requests = count_down(&worker->skips[rule]);
	weight.refused = v->decision == DECISION_DENY && count_down(&worker->skips_refused[rule]);
	if (weight.requests > 0 || weight.refused > 0)
		sample(p, rule, req, v, weight);
}

/* ---- reading */

static void merge_one(struct watch *w, struct part *p, const struct window *win, ns now)
{
	part_enter(p);
	memcpy(w->copy, win, sizeof(*w->copy));
	part_leave(p);
	if (w->copy->start_ns == 0 || now - w->copy->last_ns > WINDOW_OLD_NS)
		return;
	window_merge(w->merged, w->copy);
}

static void merge_examples(struct watch *w, struct part *p, const struct examples *from)
{
	uint32_t share = EXAMPLES_MAX / w->n_parts > 0 ? EXAMPLES_MAX / w->n_parts : 1;

	part_enter(p);
	for (size_t kind = 0; kind < EXAMPLE_KIND_COUNT; kind++) {
		uint32_t n = from->n[kind] < share ? from->n[kind] : share;

		for (uint32_t i = 1; i <= n && w->examples->n[kind] < EXAMPLES_MAX; i++) {
			const struct example *e = &from->items[kind][(from->n[kind] - i) % EXAMPLES_MAX];

			if (e->whole)
				w->examples->items[kind][w->examples->n[kind]++] = *e;
		}
	}
	part_leave(p);
}

void watch_merge(struct watch *w, size_t rule, ns now, bool both, bool examples)
{
	struct window *m = w->merged;

	memset(m, 0, sizeof(*m));
	memset(w->examples->n, 0, sizeof(w->examples->n));
	for (unsigned i = 0; i < w->n_parts; i++) {
		merge_one(w, w->parts[i], &w->parts[i]->profiles[rule].now, now);
		if (examples)
			merge_examples(w, w->parts[i], &w->parts[i]->profiles[rule].examples);
	}
	if (both || m->requests < SHORT_REQUESTS) {
		for (unsigned i = 0; i < w->n_parts; i++)
			merge_one(w, w->parts[i], &w->parts[i]->profiles[rule].before, now);
	}
	window_finish(m);
}

size_t watch_findings(struct watch *w, ns now, ns wall_now, struct finding *ret, size_t max)
{
	size_t n;

	pthread_mutex_lock(&w->lock);
	n = findings_compute(w, now, wall_now, ret, max);
	pthread_mutex_unlock(&w->lock);
	return n;
}

void watch_tick(struct watch *w, ns now, ns wall_now)
{
	pthread_mutex_lock(&w->lock);
	findings_tick(w, now, wall_now);
	refusals_tick(w, now, wall_now);
	pthread_mutex_unlock(&w->lock);
}

/* ---- for a scrape */

static void write_findings(struct watch *w, struct text *t, ns now, ns wall_now)
{
	size_t n = findings_compute(w, now, wall_now, w->findings, FINDINGS_MAX);

	metric_family(t, METRIC_FINDINGS);
	for (size_t code = 0; code < FINDING_CODE_COUNT; code++) {
		struct metric_label label = {"code", finding_word((enum finding_code)code)};
		uint64_t count = 0;

		for (size_t i = 0; i < n; i++)
			count += w->findings[i].code == code;
		metric_sample(t, METRIC_FINDINGS, &label, 1, count);
	}
}

void watch_metrics_write(struct watch *w, struct text *t, ns now, ns wall_now)
{
	pthread_mutex_lock(&w->lock);
	write_findings(w, t, now, wall_now);
	pthread_mutex_unlock(&w->lock);
	metric_family(t, METRIC_OWN_REFUSED);
	metric_sample(t, METRIC_OWN_REFUSED, NULL, 0, own_refused_total(w));
}

uint64_t watch_suppressed(struct watch *w)
{
	uint64_t suppressed;

	pthread_mutex_lock(&w->lock);
	suppressed = w->own_suppressed;
	pthread_mutex_unlock(&w->lock);
	return suppressed;
}
