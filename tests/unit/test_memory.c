/* SPDX-License-Identifier: MIT */
/*
 * The memory store: groups, peeks, lowered limits, time, the overflow table, floods and threads. The key of its hash is
 * new in every run, so where keys meet differs; what is asserted does not depend on it, but with odds of one in millions.
 * Time here is a number; where threads race, it stands still.
 */
#include "base/digest.h"
#include "core/bucket.h"
#include "store/store.h"

#include "../support/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#define NOW (1000 * NS_PER_S)
#define HOUR_NS (3600 * NS_PER_S)
#define MIB ((size_t)1024 * 1024)

static struct store *store_of(size_t max_bytes)
{
	struct store *s;

	assert_int_equal(store_open(&s, max_bytes), ERR_OK);
	return s;
}

static struct bucket_rule rule_of(uint64_t count, ns period_ns, uint64_t burst)
{
	struct bucket_rule r;

	assert_true(bucket_rule_make(&r, count, period_ns, burst));
	return r;
}

static struct charge charge_of(struct bucket_rule rule, const char *key_z, uint32_t cost)
{
	return (struct charge){
		.rule = rule, .cost = cost, .key = str_from_z(key_z), .wide = STR("some network")};
}

static struct taking take_one(struct store *s, struct charge c, ns now)
{
	struct taking t;

	store_take(s, &c, 1, now, &t);
	return t;
}

static struct taking peek_one(struct store *s, struct charge c, ns now)
{
	c.peek = true;
	return take_one(s, c, now);
}

static struct store_usage usage_of(struct store *s, ns now)
{
	struct store_usage u;

	store_usage_read(s, now, &u);
	return u;
}

/* ------------------------------------------------------------------------------------------------ size */

static void test_size(void **state)
{
	static const size_t sizes[] = {STORE_BYTES_MIN, 100003, MIB, 3 * MIB + 12345, 16 * MIB, 50 * MIB - 1};
	struct store *s = NULL;

	(void)state;
	assert_int_equal(store_open(&s, 0), ERR_RANGE);
	assert_int_equal(store_open(&s, STORE_BYTES_MIN - 1), ERR_RANGE);
	assert_int_equal(store_open(&s, ((size_t)64 << 30) + 1), ERR_RANGE);
	assert_null(s);
	store_close(NULL);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct store_usage u;

		s = store_of(sizes[i]);
		u = usage_of(s, NOW);
		assert_true(u.bytes <= sizes[i] && u.bytes >= sizes[i] - sizes[i] / 50);
		assert_true(u.capacity * 16 <= u.bytes && u.capacity * 16 >= u.bytes - u.bytes / 50);
		assert_int_equal(u.entries, 0);
		assert_int_equal(u.overflow_total, 0);
		store_close(s);
	}
}

/* ------------------------------------------------------------------------------------------------ groups */

static void test_all_or_none(void **state)
{
	struct store *s = store_of(MIB);
	struct bucket_rule ten = rule_of(10, HOUR_NS, 10);
	struct bucket_rule three = rule_of(3, HOUR_NS, 3);
	struct charge both[] = {charge_of(ten, "A", 1), charge_of(three, "B", 1)};
	struct taking t[2];

	(void)state;
	for (uint64_t i = 0; i < 5; i++) {
		store_take(s, both, 2, NOW, t);
		assert_false(t[0].refused);
		assert_int_equal(t[1].refused, i >= 3);
		assert_int_equal(t[0].remaining, i < 3 ? 9 - i : 7);
		assert_int_equal(t[1].remaining, i < 3 ? 2 - i : 0);
		assert_int_equal(t[0].wait_ns, 0);
		assert_int_equal(t[1].wait_ns, i < 3 ? 0 : 1200 * NS_PER_S);
	}
	/* What the second refused has not been spent on the first. */
	for (uint64_t i = 0; i < 7; i++)
		assert_false(take_one(s, both[0], NOW).refused);
	assert_true(take_one(s, both[0], NOW).refused);
	store_close(s);
}

static void test_shadow(void **state)
{
	struct store *s = store_of(MIB);
	struct bucket_rule one = rule_of(1, HOUR_NS, 1);
	struct bucket_rule two = rule_of(2, HOUR_NS, 2);
	struct bucket_rule ten = rule_of(10, HOUR_NS, 10);
	struct charge c[] = {charge_of(one, "S", 1), charge_of(two, "E", 1), charge_of(ten, "T", 1)};
	struct taking t[3];

	(void)state;
	c[0].shadow = true;
	c[2].shadow = true;
	store_take(s, c, 3, NOW, t);
	assert_true(!t[0].refused && !t[1].refused && !t[2].refused);
	assert_int_equal(t[2].remaining, 9);

	/* The shadow group is refused by S, so T is not charged either; E is. */
	store_take(s, c, 3, NOW, t);
	assert_true(t[0].refused && !t[1].refused && !t[2].refused);
	assert_int_equal(t[1].remaining, 0);
	assert_int_equal(t[2].remaining, 9);

	/* E refuses, so nothing of the shadow group is charged, though it would fit. */
	c[0] = charge_of(ten, "U", 1);
	c[0].shadow = true;
	store_take(s, c, 3, NOW, t);
	assert_true(!t[0].refused && t[1].refused && !t[2].refused);
	assert_int_equal(t[0].remaining, 10);
	assert_int_equal(t[2].remaining, 9);
	store_close(s);
}

static void test_one_key_twice(void **state)
{
	struct store *s = store_of(MIB);
	struct bucket_rule ten = rule_of(10, HOUR_NS, 10);
	struct charge c[] = {charge_of(ten, "K", 6), charge_of(ten, "K", 6), charge_of(ten, "L", 1)};
	struct taking t[3];

	(void)state;
	store_take(s, c, 3, NOW, t);
	assert_true(!t[0].refused && t[1].refused && !t[2].refused);
	assert_int_equal(t[1].wait_ns, 2 * 360 * NS_PER_S);
	assert_int_equal(t[0].remaining, 10);
	assert_int_equal(t[2].remaining, 10);
	assert_int_equal(usage_of(s, NOW).entries, 0);

	c[1].cost = 4;
	store_take(s, c, 3, NOW, t);
	assert_true(!t[0].refused && !t[1].refused);
	assert_int_equal(t[0].remaining, 0);
	assert_int_equal(usage_of(s, NOW).entries, 2);

	/* The wait is for both together, also where the first one is refused already. */
	store_take(s, c, 3, NOW, t);
	assert_true(t[0].refused && t[1].refused);
	assert_int_equal(t[0].wait_ns, 6 * 360 * NS_PER_S);
	assert_int_equal(t[1].wait_ns, 10 * 360 * NS_PER_S);
	store_take(s, c, 3, NOW + t[1].wait_ns, t);
	assert_true(!t[0].refused && !t[1].refused);
	store_close(s);
}

/* As many new keys at once as a call may hold never share an entry. */
static void test_many_new_keys(void **state)
{
	struct bucket_rule ten = rule_of(10, HOUR_NS, 10);
	struct charge c[CHARGES_MAX];
	struct taking t[CHARGES_MAX];
	char keys[CHARGES_MAX][8];

	(void)state;
	for (int round = 0; round < 200; round++) {
		struct store *s = store_of(STORE_BYTES_MIN);

		for (size_t i = 0; i < CHARGES_MAX; i++) {
			snprintf(keys[i], sizeof keys[i], "%zu", i);
			c[i] = charge_of(ten, keys[i], (uint32_t)(i % 10 + 1));
		}
		store_take(s, c, CHARGES_MAX, NOW, t);
		assert_int_equal(usage_of(s, NOW).entries, CHARGES_MAX);
		for (size_t i = 0; i < CHARGES_MAX; i++) {
			assert_int_equal(t[i].remaining, 9 - i % 10);
			assert_int_equal(peek_one(s, c[i], NOW).remaining, 9 - i % 10);
		}
		store_close(s);
	}
}

static void test_peek(void **state)
{
	struct store *s = store_of(MIB);
	struct bucket_rule two = rule_of(2, HOUR_NS, 2);
	struct charge c = charge_of(two, "P", 2);
	struct charge mixed[2];
	struct taking t[2];

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_false(peek_one(s, c, NOW).refused);
		assert_int_equal(peek_one(s, c, NOW).remaining, 2);
		assert_int_equal(usage_of(s, NOW).entries, 0);
	}
	assert_false(take_one(s, c, NOW).refused);
	assert_true(peek_one(s, c, NOW).refused);
	assert_int_equal(peek_one(s, c, NOW).wait_ns, HOUR_NS);
	assert_false(peek_one(s, c, NOW + HOUR_NS).refused);

	/* A peek that is refused refuses its group; one that fits lets the others be taken. */
	mixed[0] = c;
	mixed[0].peek = true;
	mixed[1] = charge_of(two, "Q", 1);
	store_take(s, mixed, 2, NOW + HOUR_NS - 1, t);
	assert_int_equal(t[0].wait_ns, 0); /* time has not gone back */
	assert_int_equal(t[1].remaining, 1);
	store_close(s);
}

/* ------------------------------------------------------------------------------------------------ limits and time */

static void exhaust_five_a_minute(struct store *s)
{
	struct charge c = charge_of(rule_of(5, 60 * NS_PER_S, 5), "K", 1);

	for (int i = 0; i < 5; i++)
		assert_false(take_one(s, c, NOW).refused);
	assert_true(take_one(s, c, NOW).refused);
}

/* Forgiving one key leaves every other as it was; a debt that is paid, or nobody's, is none. */
static void test_forgive(void **state)
{
	struct store *s = store_of(MIB);
	struct bucket_rule three = rule_of(3, HOUR_NS, 3);
	struct charge a = charge_of(three, "A", 3), b = charge_of(three, "B", 2);

	(void)state;
	assert_false(store_forgive(s, a.key, NOW));
	take_one(s, a, NOW);
	take_one(s, b, NOW);
	assert_true(peek_one(s, a, NOW).refused);
	assert_true(store_forgive(s, a.key, NOW));
	assert_false(store_forgive(s, a.key, NOW));
	assert_int_equal(peek_one(s, a, NOW).remaining, 3);
	assert_int_equal(peek_one(s, a, NOW).next_ns, 0);
	assert_int_equal(peek_one(s, b, NOW).remaining, 1);
	assert_int_equal(usage_of(s, NOW).entries, 1);
	assert_false(take_one(s, a, NOW).refused);
	assert_true(take_one(s, a, NOW).refused);
	assert_false(store_forgive(s, b.key, NOW + HOUR_NS));
	store_close(s);
}

/* A key without room of its own owes together with its network: that debt stays, whoever of it is forgiven. */
static void test_forgive_overflow(void **state)
{
	struct store *s = store_of(STORE_BYTES_MIN);
	struct bucket_rule one = rule_of(1, HOUR_NS, 1);
	char key_z[32];
	unsigned i = 0;

	(void)state;
	do {
		snprintf(key_z, sizeof key_z, "key %u", i++);
	} while (!take_one(s, charge_of(one, key_z, 1), NOW).overflow);
	assert_false(store_forgive(s, str_from_z(key_z), NOW));
	assert_true(peek_one(s, charge_of(one, key_z, 1), NOW).refused);
	store_close(s);
}

static void test_changed_limit(void **state)
{
	struct charge more_room = charge_of(rule_of(5, 60 * NS_PER_S, 8), "K", 1);
	struct charge faster = charge_of(rule_of(8, 60 * NS_PER_S, 8), "K", 1);
	struct store *s = store_of(MIB);

	(void)state;
	exhaust_five_a_minute(s);
	for (int i = 0; i < 3; i++)
		assert_false(take_one(s, more_room, NOW).refused);
	assert_true(take_one(s, more_room, NOW).refused);
	store_close(s);

	s = store_of(MIB);
	exhaust_five_a_minute(s);
	assert_int_equal(take_one(s, faster, NOW).wait_ns, 7500 * NS_PER_MS);
	assert_false(take_one(s, faster, NOW + 7500 * NS_PER_MS).refused);
	assert_true(take_one(s, faster, NOW + 7500 * NS_PER_MS).refused);
	store_close(s);
}

/* 60 s are owed and the new limit has room for 24: the cut is kept, whether a refusal made it or a peek. */
static void test_lowered_limit(void **state)
{
	struct charge lower = charge_of(rule_of(5, 60 * NS_PER_S, 2), "K", 1);

	(void)state;
	for (int peek = 0; peek <= 1; peek++) {
		struct store *s = store_of(MIB);
		struct taking t;

		exhaust_five_a_minute(s);
		lower.peek = peek;
		t = take_one(s, lower, NOW);
		assert_true(t.refused);
		assert_int_equal(t.wait_ns, 12 * NS_PER_S);
		assert_int_equal(t.next_ns, 12 * NS_PER_S);
		assert_true(take_one(s, lower, NOW + 12 * NS_PER_S - 1).refused);
		assert_false(take_one(s, lower, NOW + 12 * NS_PER_S).refused);
		store_close(s);
	}
}

/* Two clocks, one of them 5 ms behind: without the shard's own time, each cut on the later one gives tokens away. */
static void test_lagging_clock(void **state)
{
	struct store *s = store_of(STORE_BYTES_MIN);
	struct charge c = charge_of(rule_of(1000, NS_PER_S, 2), "K", 1);
	ns now = NOW;
	uint64_t n_taken = 0;
	struct taking t;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		now += 10000; /* a second in all */
		n_taken += !take_one(s, c, i % 2 ? now : now - 5 * NS_PER_MS).refused;
	}
	assert_true(n_taken >= 1000 && n_taken <= 1002);

	/* A wait told to the one that is behind comes true on its own clock. */
	while (!take_one(s, c, now).refused)
		continue;
	t = take_one(s, c, now - 5 * NS_PER_MS);
	assert_int_equal(peek_one(s, c, now - 5 * NS_PER_MS + t.wait_ns - 1).wait_ns, 1);
	assert_false(take_one(s, c, now - 5 * NS_PER_MS + t.wait_ns).refused);
	store_close(s);
}

static void test_paid_entries_are_free(void **state)
{
	struct store *s = store_of(STORE_BYTES_MIN);
	struct bucket_rule rule = rule_of(60, 60 * NS_PER_S, 60);
	ns now = NOW;
	char key[16];

	(void)state;
	/* Many times more keys than entries, but never more than a quarter of them in debt at once. */
	for (unsigned i = 0; i < 100000; i++) {
		now += NS_PER_MS;
		snprintf(key, sizeof key, "%u", i);
		assert_false(take_one(s, charge_of(rule, key, 1), now).overflow);
	}
	assert_int_equal(usage_of(s, now).entries, 1000);
	assert_int_equal(usage_of(s, now + NS_PER_S / 2).entries, 500);
	assert_int_equal(usage_of(s, now + NS_PER_S).entries, 0);
	assert_int_equal(usage_of(s, now).overflow_total, 0);
	store_close(s);
}

/* ------------------------------------------------------------------------------------------------ overflow */

/* A charge of one of endlessly many clients in this network. */
static struct charge client_of(
	struct bucket_rule rule, uint64_t *client, const char *network_z, uint32_t cost)
{
	struct charge c = charge_of(rule, "", cost);

	c.key = str_make((const char *)client, sizeof *client);
	c.wide = str_from_z(network_z);
	return c;
}

/* Takes all room there is, for an hour. */
static void flood(struct store *s, struct random *rnd, const char *network_z, size_t n, ns now)
{
	struct bucket_rule rule = rule_of(20, HOUR_NS, 20);

	for (size_t i = 0; i < n; i++) {
		uint64_t client = random_u64(rnd);

		take_one(s, client_of(rule, &client, network_z, 20), now);
	}
}

static struct store *store_full(struct random *rnd)
{
	struct store *s = store_of(STORE_BYTES_MIN);
	struct store_usage u;

	flood(s, rnd, "flood", 40000, NOW);
	u = usage_of(s, NOW);
	assert_int_equal(u.entries, u.capacity);
	return s;
}

static void test_overflow_in_one_request(void **state)
{
	struct random rnd = {1};
	struct store *s = store_full(&rnd);
	struct bucket_rule ten = rule_of(10, HOUR_NS, 10);
	uint64_t clients[] = {random_u64(&rnd), random_u64(&rnd)};
	uint64_t before = usage_of(s, NOW).overflow_total;
	struct charge c[2];
	struct taking t[2];
	char network[16];

	(void)state;
	/* A network whose place nobody owes to. */
	for (unsigned i = 0;; i++) {
		snprintf(network, sizeof network, "%u", i);
		c[0] = client_of(ten, &clients[0], network, 6);
		t[0] = peek_one(s, c[0], NOW);
		assert_true(t[0].overflow);
		if (t[0].remaining == 10)
			break;
	}
	before = usage_of(s, NOW).overflow_total;
	c[1] = client_of(ten, &clients[1], network, 6);
	store_take(s, c, 2, NOW, t);
	assert_true(t[0].overflow && t[1].overflow && !t[0].refused && t[1].refused);
	assert_int_equal(t[1].wait_ns, 2 * 360 * NS_PER_S);
	assert_int_equal(t[0].remaining, 10);
	c[1].cost = 4;
	store_take(s, c, 2, NOW, t);
	assert_true(!t[0].refused && !t[1].refused);
	assert_int_equal(t[0].remaining, 0);
	assert_int_equal(usage_of(s, NOW).overflow_total, before + 4);
	store_close(s);
}

#define NETWORKS 200

/* More networks than places: some share. Theirs adds up, is cut for nobody, and nobody becomes its owner. */
static void test_overflow_shared(void **state)
{
	struct random rnd = {2};
	struct store *s = store_full(&rnd);
	struct bucket_rule hundred = rule_of(100, HOUR_NS, 100);
	struct bucket_rule lower = rule_of(100, HOUR_NS, 2);
	uint64_t client = random_u64(&rnd);
	uint64_t left[NETWORKS];
	char network[16];
	size_t n_alone = 0;

	(void)state;
	flood(s, &rnd, "flood", 1, NOW);
	for (unsigned i = 0; i < NETWORKS; i++) {
		snprintf(network, sizeof network, "%u", i);
		take_one(s, client_of(hundred, &client, network, 5), NOW);
	}
	for (unsigned i = 0; i < NETWORKS; i++) {
		snprintf(network, sizeof network, "%u", i);
		left[i] = peek_one(s, client_of(hundred, &client, network, 1), NOW).remaining;
		assert_true(left[i] % 5 == 0 && left[i] <= 95);
		n_alone += left[i] == 95;
	}
	assert_true(n_alone < NETWORKS - 100);
	for (unsigned i = 0; i < NETWORKS; i++) {
		struct taking t;

		snprintf(network, sizeof network, "%u", i);
		t = peek_one(s, client_of(lower, &client, network, 1), NOW);
		assert_true(t.refused && t.remaining == 0);
		/* The wait is true, cut or not. */
		assert_int_equal(t.wait_ns, left[i] == 95 ? 36 * NS_PER_S : (99 - left[i]) * 36 * NS_PER_S);
		assert_int_equal(t.next_ns, t.wait_ns);
		t = peek_one(s, client_of(hundred, &client, network, 1), NOW);
		assert_int_equal(t.remaining, left[i] == 95 ? 98 : left[i]);
	}
	store_close(s);
}

/* ------------------------------------------------------------------------------------------------ floods */

static long rss_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = -1;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*s %ld", &pages), 1);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

#define STRANGERS 50

static void test_flood(void **state)
{
	struct random rnd = {3};
	struct store *s = store_of(MIB);
	struct bucket_rule rule = rule_of(20, HOUR_NS, 20);
	size_t bytes = usage_of(s, NOW).bytes;
	struct charge victim = charge_of(rule, "exhausted", 20);
	uint64_t client;
	struct taking t;
	size_t n_passed = 0;
	long rss;

	(void)state;
	assert_false(take_one(s, victim, NOW).refused);
	victim.cost = 1;
	flood(s, &rnd, "flood", 200000, NOW);
	rss = rss_bytes();
	flood(s, &rnd, "flood", 800000, NOW);
	assert_true(rss_bytes() - rss < (long)MIB / 4);
	assert_int_equal(usage_of(s, NOW).bytes, bytes);
	assert_int_equal(usage_of(s, NOW).entries, usage_of(s, NOW).capacity);

	t = take_one(s, victim, NOW);
	assert_true(t.refused && !t.overflow);
	assert_int_equal(t.wait_ns, 180 * NS_PER_S);

	client = random_u64(&rnd);
	t = take_one(s, client_of(rule, &client, "flood", 1), NOW);
	assert_true(t.refused && t.overflow);

	/* Of 1024 places the flood owes to one: hardly a stranger meets it. */
	for (unsigned i = 0; i < STRANGERS; i++) {
		char network[16];

		client = random_u64(&rnd);
		snprintf(network, sizeof network, "stranger %u", i);
		t = take_one(s, client_of(rule, &client, network, 1), NOW);
		assert_true(t.overflow);
		n_passed += !t.refused;
	}
	assert_true(n_passed >= STRANGERS - 4);
	store_close(s);
}

#define LIVE_KEYS 600000

static void test_load(void **state)
{
	struct random rnd = {4};
	struct store *s = store_of(16 * MIB);
	struct store_usage u;

	(void)state;
	flood(s, &rnd, "everybody", LIVE_KEYS, NOW);
	u = usage_of(s, NOW);
	assert_int_equal(u.entries + u.overflow_total, LIVE_KEYS);
	assert_true(u.overflow_total <= LIVE_KEYS / 1000);
	assert_true(u.bytes <= (size_t)LIVE_KEYS * 28);
	store_close(s);
}

/* Opening and counting touch nothing: what lies idle costs no memory. The sanitizers keep books on what is read. */
static void test_idle_table(void **state)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	long before = rss_bytes();
	struct store *s = store_of(64 * MIB);

	(void)state;
	assert_int_equal(usage_of(s, NOW).entries, 0);
	assert_true(rss_bytes() - before < (long)MIB);
	store_close(s);
#else
	(void)state;
	skip();
#endif
}

/* ------------------------------------------------------------------------------------------------ threads */

#define TAKES 200
#define THREADS_MAX 4
#define STEP_NS 1000

struct taker {
	struct store *s;
	pthread_barrier_t *start;
	struct charge charges[2];
	size_t n_charges;
	size_t n_takes;
	ns step_ns; /* time that passes between two takes */
	size_t n_taken;
};

static void *taker_run(void *arg)
{
	struct taker *taker = arg;
	struct store_usage u;

	pthread_barrier_wait(taker->start);
	for (size_t i = 0; i < taker->n_takes; i++) {
		struct taking t[2] = {{.refused = false}};

		store_take(taker->s, taker->charges, taker->n_charges, NOW + i * taker->step_ns, t);
		taker->n_taken += !t[0].refused && !t[1].refused;
	}
	store_usage_read(taker->s, NOW, &u);
	return NULL;
}

/* Every thread asks for the same; where there are two charges, every other thread names them in the opposite order.
 * Returns how many were taken in all. */
static size_t takers_race(const struct taker *like, size_t n_threads)
{
	struct taker takers[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	pthread_barrier_t start;
	size_t n_taken = 0;

	assert_int_equal(pthread_barrier_init(&start, NULL, (unsigned)n_threads), 0);
	for (size_t i = 0; i < n_threads; i++) {
		takers[i] = *like;
		takers[i].start = &start;
		takers[i].n_takes = like->n_takes / n_threads;
		takers[i].charges[0] = like->charges[i % like->n_charges];
		takers[i].charges[1] = like->charges[(i + 1) % like->n_charges];
		assert_int_equal(pthread_create(&threads[i], NULL, taker_run, &takers[i]), 0);
	}
	for (size_t i = 0; i < n_threads; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		n_taken += takers[i].n_taken;
	}
	pthread_barrier_destroy(&start);
	return n_taken;
}

static void test_threads(void **state)
{
	static const size_t threads[] = {1, 2, 4};
	struct bucket_rule twenty = rule_of(20, HOUR_NS, 20);
	struct bucket_rule thirty = rule_of(30, HOUR_NS, 30);

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct store *s = store_of(STORE_BYTES_MIN * 64);
		struct taker one = {
			.s = s, .charges = {charge_of(twenty, "one", 1)}, .n_charges = 1, .n_takes = TAKES};
		struct taker two = {.s = s, .n_charges = 2, .n_takes = 20 * TAKES};
		char keys[2][16];

		assert_int_equal(takers_race(&one, threads[i]), 20);
		for (unsigned pair = 0; pair < 50; pair++) {
			snprintf(keys[0], sizeof keys[0], "a%u", pair);
			snprintf(keys[1], sizeof keys[1], "b%u", pair);
			two.charges[0] = charge_of(twenty, keys[0], 1);
			two.charges[1] = charge_of(thirty, keys[1], 1);
			assert_int_equal(takers_race(&two, threads[i]), 20);
			assert_int_equal(peek_one(s, two.charges[1], NOW).remaining, 10);
		}
		store_close(s);
	}
}

/* Threads whose clocks run apart, on one bucket: no more than the burst and what the time between brought. */
static void test_threads_time(void **state)
{
	struct store *s = store_of(MIB);
	struct bucket_rule rule = rule_of(100000, NS_PER_S, 50);
	struct taker taker = {.s = s,
		.charges = {charge_of(rule, "K", 1)},
		.n_charges = 1,
		.n_takes = 80000,
		.step_ns = STEP_NS};
	size_t n_taken = takers_race(&taker, 4);

	(void)state;
	assert_true(n_taken <= 50 + 20000 * STEP_NS / rule.interval_ns);
	assert_true(n_taken >= 20000 * STEP_NS / rule.interval_ns);
	store_close(s);
}

/* The same in the overflow table: locks of both tables are held at once. */
static void test_threads_overflow(void **state)
{
	struct random rnd = {5};
	struct store *s = store_full(&rnd);
	struct bucket_rule twenty = rule_of(20, HOUR_NS, 20);
	uint64_t clients[] = {random_u64(&rnd), random_u64(&rnd)};
	struct taker taker = {.s = s, .n_charges = 2, .n_takes = 20 * TAKES};
	char networks[2][16];
	unsigned i = 0;

	(void)state;
	/* Two networks with a place of their own. */
	do {
		for (size_t j = 0; j < 2; j++) {
			snprintf(networks[j], sizeof networks[j], "%u", i++);
			taker.charges[j] = client_of(twenty, &clients[j], networks[j], 1);
		}
		take_one(s, taker.charges[0], NOW);
	} while (peek_one(s, taker.charges[0], NOW).remaining != 19 ||
		 peek_one(s, taker.charges[1], NOW).remaining != 20);
	assert_int_equal(takers_race(&taker, 4), 19);
	assert_int_equal(peek_one(s, taker.charges[1], NOW).remaining, 1);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_all_or_none),
		cmocka_unit_test(test_shadow),
		cmocka_unit_test(test_one_key_twice),
		cmocka_unit_test(test_many_new_keys),
		cmocka_unit_test(test_peek),
		cmocka_unit_test(test_forgive),
		cmocka_unit_test(test_forgive_overflow),
		cmocka_unit_test(test_changed_limit),
		cmocka_unit_test(test_lowered_limit),
		cmocka_unit_test(test_lagging_clock),
		cmocka_unit_test(test_paid_entries_are_free),
		cmocka_unit_test(test_overflow_in_one_request),
		cmocka_unit_test(test_overflow_shared),
		cmocka_unit_test(test_flood),
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_idle_table),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_threads_time),
		cmocka_unit_test(test_threads_overflow),
	};

	if (digest_init() != ERR_OK)
		return 1;
	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
