/* SPDX-License-Identifier: MIT */
/*
 * What one decision costs inside the process: plan, store, conclude; one thread, one limit, a request without a token, and
 * clients drawn evenly from a thousand or from a million; and the same with the watch looking on, in percent more. Prints
 * "name value" lines: medians over rounds that alternate between them, in ns of CPU time a decision.
 * Requests are made up outside the measured time, a batch at a time, since a real one lies in the cache when it is judged;
 * only the table is cold. Time advances by what a decision takes, as it would for a thread that does nothing else.
 */
#include "base/digest.h"
#include "base/ip.h"
#include "core/decide.h"
#include "store/store.h"
#include "watch/watch.h"

#include "../support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 31
#define BATCHES 32
#define BATCH 4096
#define STEP_NS 300
#define STORE_BYTES ((size_t)16 * 1024 * 1024)
#define ARENA_BYTES 4096

static const struct str token_headers[] = {STR("X-Internal-Token"), STR("Authorization")};
static const struct limit_key_part by_client[] = {{.part = KEY_CLIENT}};
static const uint16_t first_limit[] = {0};

static struct limit limits[] = {{.name = STR("default"), .key = by_client, .n_key = 1, .headers = true}};

static const struct rule rule_list[] = {
	{.name = STR("default"), .action = ACTION_LIMIT, .limits = first_limit, .n_limits = 1},
};

static struct ruleset rules = {
	.client = {.strategy = STRATEGY_PEER, .ipv6_prefix = 64, .network_v4 = 24, .network_v6 = 48},
	.identities = {.headers = token_headers, .n_headers = 2},
	.limits = limits,
	.n_limits = 1,
	.rules = rule_list,
	.n_rules = 1,
};

static const struct header_line headers[] = {
	{STR("Host"), STR("shop.example.com")},
	{STR("User-Agent"), STR("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")},
	{STR("Accept"), STR("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")},
	{STR("Accept-Language"), STR("en-US,en;q=0.5")},
	{STR("Accept-Encoding"), STR("gzip, deflate, br")},
	{STR("Cookie"), STR("session=4f9d8c27a1b3e5f60718293a4b5c6d7e")},
};

struct side {
	const char *name_z;
	uint32_t clients;
	struct store *store;
	struct watch *watch;
	ns now;
	unsigned rounds; /* run so far: in every other one the watch comes first */
	double plain_ns[ROUNDS], watched_ns[ROUNDS];
};

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void request_make(struct request *ret, uint32_t client, char address[IP_TEXT_BYTES])
{
	int len = snprintf(address, IP_TEXT_BYTES, "%u.%u.%u.%u", 20 + (client >> 24), client >> 16 & 255,
		client >> 8 & 255, client & 255);

	*ret = (struct request){
		.door = DOOR_CHECK,
		.fault = REASON_ALLOWED,
		.remote_addr = str_make(address, (size_t)len),
		.headers = headers,
		.n_headers = sizeof(headers) / sizeof(headers[0]),
		.method = {STR("GET"), true},
		.host = {STR("shop.example.com"), true},
		.path = {STR("/api/v1/orders/4711?page=2"), true},
		.cost = 1,
	};
}

/* The sum keeps the compiler from dropping what nobody reads, and reads what every verdict is counted by. */
static uint64_t batch_decide(struct side *side, struct watch_worker *watch, const struct request *requests)
{
	static struct plan plan;
	static struct verdict verdict;
	static char block[ARENA_BYTES];
	struct taking takings[CHARGES_MAX];
	struct arena arena;
	uint64_t sum = 0;

	arena_init(&arena, block, sizeof(block));
	for (size_t i = 0; i < BATCH; i++) {
		arena_reset(&arena);
		side->now += STEP_NS;
		decide_plan(&rules, &requests[i], &arena, NULL, &plan);
		if (!plan.is_final)
			store_take(side->store, plan.charges, plan.n_charges, side->now, takings);
		decide_conclude(&rules, &requests[i], &plan, takings, &verdict);
		if (watch != NULL)
			watch_verdict(watch, &requests[i], &verdict, side->now);
		sum += (uint64_t)verdict.reason + verdict.n_limits + verdict.client.reason +
		       verdict.token.state + verdict.warnings;
	}
	return sum;
}

/* A batch without the watch, a batch with it, in turns and on one table, so that nothing else differs. */
static void round_run(struct side *side, struct random *rnd, double *ret_plain_ns, double *ret_watched_ns)
{
	static struct request requests[BATCH];
	static char addresses[BATCH][IP_TEXT_BYTES];
	double spent_ns[2] = {0, 0};

	for (size_t b = 0; b < BATCHES; b++) {
		bool watched = (b + side->rounds) % 2 != 0;
		struct watch_worker *watch = watched ? watch_worker_at(side->watch, 0) : NULL;
		double start;

		for (size_t i = 0; i < BATCH; i++)
			request_make(&requests[i], (uint32_t)random_below(rnd, side->clients), addresses[i]);
		start = cpu_ns();
		if (batch_decide(side, watch, requests) < BATCH)
			abort(); /* not every decision had its limit */
		spent_ns[watched] += cpu_ns() - start;
	}
	side->rounds++;
	*ret_plain_ns = spent_ns[0] / (BATCHES / 2 * BATCH);
	*ret_watched_ns = spent_ns[1] / (BATCHES / 2 * BATCH);
}

static int cost_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), cost_compare);
	return values[ROUNDS / 2];
}

#define SIDES 2

static bool sides_open(struct side *sides, struct random *rnd)
{
	for (size_t s = 0; s < SIDES; s++) {
		if (store_open(&sides[s].store, STORE_BYTES) != ERR_OK ||
			watch_open(&sides[s].watch, &rules, 1) != ERR_OK)
			return false;
		/* Until the table is as full as it gets, and the watch looks as seldom. */
		for (size_t i = 0; i < 8; i++)
			round_run(&sides[s], rnd, &sides[s].plain_ns[0], &sides[s].watched_ns[0]);
	}
	return true;
}

static void side_print(struct side *side)
{
	double more[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++)
		more[i] = 100 * (side->watched_ns[i] / side->plain_ns[i] - 1);
	printf("decide_%s_ns %.1f\n", side->name_z, median(side->plain_ns));
	printf("watched_%s_percent %.2f\n", side->name_z, median(more));
}

int main(void)
{
	static struct side sides[SIDES] = {
		{.name_z = "1k", .clients = 1000, .now = NS_PER_S},
		{.name_z = "1m", .clients = 1000000, .now = NS_PER_S},
	};
	struct random rnd = {1};

	if (digest_init() != ERR_OK || !bucket_rule_make(&limits[0].bucket, 300, 60 * NS_PER_S, 300))
		return 1;
	policy_freeze(&rules);
	if (!sides_open(sides, &rnd))
		return 1;
	for (size_t i = 0; i < ROUNDS; i++)
		for (size_t s = 0; s < SIDES; s++)
			round_run(&sides[s], &rnd, &sides[s].plain_ns[i], &sides[s].watched_ns[i]);
	for (size_t s = 0; s < SIDES; s++) {
		side_print(&sides[s]);
		watch_close(sides[s].watch);
		store_close(sides[s].store);
	}
	return 0;
}
