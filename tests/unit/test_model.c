/* SPDX-License-Identifier: MIT */
/*
 * The store against an exact token bucket that is written the other way round: a level that is filled and drained, in
 * 128-bit integers, instead of a moment in time. Level and time are counted in the same unit (a unit of the limit is worth
 * its interval in ns), so the model rounds nothing. A second level is kept in fractions of the rate as it was written,
 * before rounding: what the store allows must fit there too.
 * A table of the smallest size has one shard, so the shard's time is the latest now of all calls.
 */
#include "base/digest.h"
#include "core/bucket.h"
#include "store/store.h"

#include "../support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#define RUN_DECISIONS 16000
#define GROUP_DECISIONS 400000
#define START_NS NS_PER_S
#define PAUSE_MAX_NS ((ns)1 << 50)
#define DAY_NS (86400 * NS_PER_S)

typedef __int128 wide_int;

static const struct rate {
	uint64_t count;
	ns period_ns;
	uint64_t burst;
} rates[] = {
	{300, 60 * NS_PER_S, 300},
	{5, 60 * NS_PER_S, 5},
	{1, NS_PER_S, 1},
	{10, 13 * NS_PER_S, 10},
	{3, NS_PER_S, 7},
	{1, 3600 * NS_PER_S, 1},
	{20, 3600 * NS_PER_S, 20},
	{100, 900 * NS_PER_S, 250},
	{2000, NS_PER_S, 1},
	{1000000, NS_PER_S, 1},
	{7000000, NS_PER_S, 1000},
	{600000007, NS_PER_S, 12},
	{INT32_MAX, NS_PER_S, INT32_MAX},
	{1, DAY_NS, 3},
	{1, DAY_NS, 53375},
};
#define N_RATES (sizeof rates / sizeof rates[0])

/* ------------------------------------------------------------------------------------------------ the model */

struct model {
	struct bucket_rule rule;
	wide_int level; /* in ns; a full bucket holds burst x interval */
	ns at; /* the time that level is of */
};

static wide_int rule_room(const struct bucket_rule *r)
{
	return (wide_int)r->interval_ns * (wide_int)r->burst;
}

/* Brings the bucket to `now` and under this rule: what is owed stays owed, as far as the rule can owe it. */
static void model_touch(struct model *m, const struct bucket_rule *rule, ns now)
{
	wide_int owed;

	m->level += now - m->at;
	if (m->level > rule_room(&m->rule))
		m->level = rule_room(&m->rule);
	m->at = now;
	owed = rule_room(&m->rule) - m->level;
	m->rule = *rule;
	m->level = rule_room(rule) - owed;
	if (m->level < 0)
		m->level = 0;
}

static void model_init(struct model *m, const struct bucket_rule *rule)
{
	*m = (struct model){.rule = *rule, .level = rule_room(rule)};
}

/* Drains even below zero, so that a later charge of the same request waits for both. */
static bool model_drain(struct model *m, uint64_t cost, wide_int *ret_wait_ns)
{
	wide_int need = (wide_int)cost * (wide_int)m->rule.interval_ns;

	*ret_wait_ns = need > m->level ? need - m->level : 0;
	m->level -= need;
	return *ret_wait_ns == 0;
}

static uint64_t model_remaining(const struct model *m)
{
	return (uint64_t)(m->level / (wide_int)m->rule.interval_ns);
}

static ns model_next_ns(const struct model *m)
{
	wide_int interval = (wide_int)m->rule.interval_ns;

	return m->level == rule_room(&m->rule) ? 0 : (ns)(interval - m->level % interval);
}

/* The rate as written: one unit is worth period_ns parts, and each ns brings count of them. */
struct rational {
	const struct rate *rate;
	wide_int parts;
	ns at;
};

static wide_int rational_full(const struct rate *r)
{
	return (wide_int)r->burst * (wide_int)r->period_ns;
}

static void rational_take(struct rational *b, uint64_t cost, ns now)
{
	b->parts += (wide_int)(now - b->at) * (wide_int)b->rate->count;
	if (b->parts > rational_full(b->rate))
		b->parts = rational_full(b->rate);
	b->at = now;
	b->parts -= (wide_int)cost * (wide_int)b->rate->period_ns;
	assert_true(b->parts >= 0);
}

/* No window over what was allowed holds more than burst + rate x its length; all windows at once, from the lowest point
 * that one could have begun at. */
struct windows {
	const struct rate *rate;
	wide_int units;
	wide_int lowest;
	bool begun;
};

static void windows_take(struct windows *w, uint64_t cost, ns now)
{
	wide_int period = (wide_int)w->rate->period_ns;
	wide_int refilled = (wide_int)now * (wide_int)w->rate->count;
	wide_int start = w->units * period - refilled;

	if (!w->begun || start < w->lowest)
		w->lowest = start;
	w->begun = true;
	w->units += (wide_int)cost;
	assert_true(w->units * period - refilled - w->lowest <= rational_full(w->rate));
}

/* ------------------------------------------------------------------------------------------------ clocks */

enum pattern { STEADY, BURSTS, ANY_STEP, BACKWARDS, TWO_CLOCKS, ON_THE_EDGE, PATTERN_COUNT };

struct clock {
	enum pattern pattern;
	ns time;
	ns lag_ns;
	ns edge; /* ON_THE_EDGE: the moment to be allowed at; 0: none */
	bool second;
};

static ns clock_step(struct clock *c, struct random *rnd, const struct bucket_rule *r)
{
	ns room_ns = bucket_room_ns(r);
	ns most = 2 * room_ns < PAUSE_MAX_NS ? 2 * room_ns : PAUSE_MAX_NS;

	switch (c->pattern) {
	case BURSTS: return random_below(rnd, 32) == 0 ? random_below(rnd, most) : random_below(rnd, 2);
	case ANY_STEP: return random_u64(rnd) >> (14 + random_below(rnd, 50));
	default: return random_below(rnd, 2 * r->interval_ns);
	}
}

static ns clock_next(struct clock *c, struct random *rnd, const struct bucket_rule *r)
{
	if (c->pattern == ON_THE_EDGE && c->edge != 0) {
		/* One ns too early, then in time. */
		c->second = !c->second;
		if (c->second)
			return c->time = c->edge - 1;
		c->time = c->edge;
		c->edge = 0;
		return c->time;
	}
	c->time += clock_step(c, rnd, r);
	if (c->pattern == BACKWARDS && random_below(rnd, 4) == 0)
		return c->time - random_below(rnd, c->time < bucket_room_ns(r) ? c->time : bucket_room_ns(r));
	c->second = !c->second;
	if (c->pattern == TWO_CLOCKS && c->second)
		return c->time - (c->time > c->lag_ns ? c->lag_ns : 0);
	return c->time;
}

/* ------------------------------------------------------------------------------------------------ one bucket */

static uint64_t decisions;

#define REQUEST_COST 1000000

static uint64_t cost_pick(struct random *rnd, const struct bucket_rule *r)
{
	uint64_t most = r->burst < REQUEST_COST ? r->burst : REQUEST_COST;

	return random_below(rnd, 4) != 0 ? 1 : 1 + random_below(rnd, most);
}

/* All the answers of one charge, against the model after the decision. */
static void taking_check(const struct taking *t, const struct model *m, wide_int wait_ns, ns lag_ns)
{
	ns next_ns = model_next_ns(m);

	assert_false(t->overflow);
	assert_int_equal(t->refused, wait_ns > 0);
	assert_int_equal(t->wait_ns, wait_ns > 0 ? (ns)wait_ns + lag_ns : 0);
	assert_int_equal(t->remaining, model_remaining(m));
	assert_int_equal(t->next_ns, next_ns > 0 ? next_ns + lag_ns : 0);
}

static void bucket_run(const struct rate *rate, enum pattern pattern, struct random *rnd)
{
	struct clock clock = {.pattern = pattern, .time = START_NS};
	struct rational rational = {.rate = rate, .parts = rational_full(rate)};
	struct windows windows = {.rate = rate};
	struct bucket_rule rule;
	struct store *s;
	struct model m;
	ns latest = 0;

	assert_int_equal(store_open(&s, STORE_BYTES_MIN), ERR_OK);
	assert_true(bucket_rule_make(&rule, rate->count, rate->period_ns, rate->burst));
	model_init(&m, &rule);
	clock.lag_ns = random_below(rnd, 2) == 0 ? 5 * NS_PER_MS : rule.interval_ns / 2 + 1;
	for (size_t i = 0; i < RUN_DECISIONS; i++) {
		bool on_edge = clock.edge != 0;
		ns now = clock_next(&clock, rnd, &rule);
		struct charge charge = {.rule = rule, .key = STR("one"), .wide = STR("wide")};
		struct model before;
		struct taking t;
		wide_int wait_ns;

		latest = now > latest ? now : latest;
		charge.cost = on_edge ? 1 : (uint32_t)cost_pick(rnd, &rule);
		charge.peek = !on_edge && random_below(rnd, 16) == 0;
		store_take(s, &charge, 1, now, &t);
		model_touch(&m, &rule, latest);
		before = m;
		if (!model_drain(&m, charge.cost, &wait_ns) || charge.peek)
			m = before;
		taking_check(&t, &m, wait_ns, latest - now);
		if (on_edge)
			assert_int_equal(t.wait_ns, clock.edge != 0);
		if (pattern == ON_THE_EDGE && t.refused && charge.cost == 1 && clock.edge == 0)
			clock.edge = now + t.wait_ns;
		if (!t.refused && !charge.peek) {
			rational_take(&rational, charge.cost, latest);
			windows_take(&windows, charge.cost, latest);
		}
		decisions++;
	}
	store_close(s);
}

static void test_one_bucket(void **state)
{
	struct random rnd = {20240229};

	(void)state;
	decisions = 0;
	for (size_t i = 0; i < N_RATES; i++)
		for (enum pattern p = 0; p < PATTERN_COUNT; p++)
			bucket_run(&rates[i], p, &rnd);
	assert_true(decisions >= 1000000);
}

/* ------------------------------------------------------------------------------------------------ groups */

#define GROUP_BUCKETS 9
#define GROUP_CHARGES_MAX 6

struct group_run {
	struct store *s;
	struct random rnd;
	struct model models[GROUP_BUCKETS];
	struct charge charges[GROUP_CHARGES_MAX];
	size_t buckets[GROUP_CHARGES_MAX]; /* which bucket each charge is of */
	size_t n;
	ns latest;
	size_t n_taken, n_shared, n_refused;
};

static const char *const group_keys[GROUP_BUCKETS] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};

/* Small rooms and near intervals, so that every group meets full, half-full and empty buckets. Now and then the limit of
 * a bucket is another one: a reload. */
static void group_pick(struct group_run *g, struct bucket_rule *rules)
{
	bool peek = random_below(&g->rnd, 8) == 0;

	if (random_below(&g->rnd, 64) == 0)
		rules[random_below(&g->rnd, GROUP_BUCKETS)] =
			(struct bucket_rule){.interval_ns = 1 + random_below(&g->rnd, 1000),
				.burst = 1 + random_below(&g->rnd, 12)};
	g->n = 1 + random_below(&g->rnd, GROUP_CHARGES_MAX);
	for (size_t i = 0; i < g->n; i++) {
		size_t at = random_below(&g->rnd, GROUP_BUCKETS);

		g->buckets[i] = at;
		g->charges[i] = (struct charge){
			.rule = rules[at],
			.cost = (uint32_t)(1 + random_below(&g->rnd, rules[at].burst)),
			.peek = peek || random_below(&g->rnd, 32) == 0,
			.shadow = random_below(&g->rnd, 4) == 0,
			.key = str_from_z(group_keys[at]),
			.wide = STR("wide"),
		};
		if (random_below(&g->rnd, 2) == 0)
			g->charges[i].cost = 1;
	}
}

/* One group by the book: drain copies of all its buckets in order; if all fit, drain the buckets themselves by what is
 * not only peeked at. Returns whether all fit. */
static bool group_model(struct group_run *g, bool shadow, bool may_take, wide_int *ret_waits)
{
	struct model copies[GROUP_BUCKETS];
	wide_int unused;
	bool fits = true;

	memcpy(copies, g->models, sizeof copies);
	for (size_t i = 0; i < g->n; i++)
		if (g->charges[i].shadow == shadow)
			fits &= model_drain(&copies[g->buckets[i]], g->charges[i].cost, &ret_waits[i]);
	for (size_t i = 0; fits && may_take && i < g->n; i++)
		if (g->charges[i].shadow == shadow && !g->charges[i].peek)
			assert_true(model_drain(&g->models[g->buckets[i]], g->charges[i].cost, &unused));
	return fits;
}

static void group_decide(struct group_run *g, ns now)
{
	struct taking takings[GROUP_CHARGES_MAX];
	wide_int waits[GROUP_CHARGES_MAX];
	bool taken;

	if (now > g->latest)
		g->latest = now;
	store_take(g->s, g->charges, g->n, now, takings);
	for (size_t i = 0; i < g->n; i++)
		model_touch(&g->models[g->buckets[i]], &g->charges[i].rule, g->latest);
	taken = group_model(g, false, true, waits);
	group_model(g, true, taken, waits);
	for (size_t i = 0; i < g->n; i++) {
		taking_check(&takings[i], &g->models[g->buckets[i]], waits[i], g->latest - now);
		for (size_t j = 0; j < i; j++)
			g->n_shared += g->buckets[i] == g->buckets[j];
	}
	g->n_taken += taken;
	g->n_refused += !taken;
}

static void test_groups(void **state)
{
	struct bucket_rule rules[GROUP_BUCKETS];
	struct group_run g = {.rnd = {7}};
	ns time = START_NS;

	(void)state;
	assert_int_equal(store_open(&g.s, STORE_BYTES_MIN), ERR_OK);
	for (size_t i = 0; i < GROUP_BUCKETS; i++) {
		rules[i] = (struct bucket_rule){.interval_ns = 100 * (i + 1), .burst = 1 + 2 * i};
		model_init(&g.models[i], &rules[i]);
	}
	for (size_t i = 0; i < GROUP_DECISIONS; i++) {
		time += random_below(&g.rnd, 256) == 0 ? random_below(&g.rnd, 20000)
						       : random_below(&g.rnd, 900);
		group_pick(&g, rules);
		group_decide(&g, random_below(&g.rnd, 4) == 0 ? time - random_below(&g.rnd, 500) : time);
	}
	/* The run has seen what it is for. */
	assert_true(g.n_taken > GROUP_DECISIONS / 10);
	assert_true(g.n_refused > GROUP_DECISIONS / 10);
	assert_true(g.n_shared > GROUP_DECISIONS / 10);
	store_close(g.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_bucket),
		cmocka_unit_test(test_groups),
	};

	if (digest_init() != ERR_OK)
		return 1;
	return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
