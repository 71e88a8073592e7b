/* SPDX-License-Identifier: MIT */
/*
 * The parts of watch that the table of topologies does not reach: sketches against what they estimate, workers merged, windows
 * that turn, what a reload keeps, ledger and refusals, log lines that come once, and readers beside a busy worker.
 */
#include "config/config.h"
#include "engine/engine.h"
#include "store/store.h"
#include "watch/finding.h"
#include "watch/own.h"
#include "watch/sketch.h"
#include "watch/slots.h"
#include "watch/top.h"
#include "watch/watch.h"

#include "base/json.h"
#include "base/log.h"

#include "../support/random.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#define WALL ((ns)1700000000 * NS_PER_S)
#define ARENA_BYTES 16384
#define EDGE_TOKEN "edge-token-0123456789"
#define EDGE_SHA256 "'dbe57c1d1c6dd5a6d6d0ab0cc4cb6ef1ad1bf4be3dd8a6b29d8b0b2a4cfdb9b3'"

/* ---- a program without a server */

struct bench {
	struct config *config;
	struct store *store;
	struct engine *engine;
	ns now;
	FILE *log;
};

static struct config *config_of(const char *text_z)
{
	const struct config_options options = {.without_secrets = false};
	struct config *config = NULL;
	struct fault_list faults;
	char text[2048];
	size_t len = strlen(text_z);

	assert_in_range(len, 1, sizeof(text) - 1);
	for (size_t i = 0; i < len; i++)
		text[i] = text_z[i] == '\'' ? '"' : text_z[i];
	fault_list_init(&faults);
	if (config_load_text(&config, str_make(text, len), ".", &options, &faults) != ERR_OK)
		fail_msg("%s: %s", faults.items[0].pointer_z, faults.items[0].text_z);
	fault_list_done(&faults);
	return config;
}

static void bench_open(struct bench *b, const char *config_z, unsigned workers)
{
	assert_int_equal(digest_init(), ERR_OK);
	*b = (struct bench){.config = config_of(config_z), .now = 1000 * NS_PER_S, .log = tmpfile()};
	assert_non_null(b->log);
	log_setup(LOG_INFO, LOG_TEXT, fileno(b->log));
	assert_int_equal(store_open(&b->store, (size_t)1 << 20), ERR_OK);
	assert_int_equal(engine_open(&b->engine, &b->config->rules, b->store, workers), ERR_OK);
}

static void bench_close(struct bench *b)
{
	engine_close(b->engine);
	store_close(b->store);
	config_free(b->config);
	fclose(b->log);
	log_setup(LOG_ERROR, LOG_TEXT, STDERR_FILENO);
}

/* How often the log holds this. */
static unsigned log_count(struct bench *b, const char *part_z)
{
	static char text[1 << 20];
	unsigned n = 0;
	size_t len;

	rewind(b->log);
	len = fread(text, 1, sizeof(text) - 1, b->log);
	text[len] = '\0';
	for (const char *at = strstr(text, part_z); at != NULL; at = strstr(at + 1, part_z))
		n++;
	return n;
}

/* One question: who connects, and up to three header lines (a NULL value leaves one out). */
struct question {
	const char *remote_z, *forwarded_z, *cookie_z, *agent_z, *token_z, *path_z;
};

static void ask(struct bench *b, unsigned worker, const struct question *q)
{
	struct header_line lines[4];
	char block[ARENA_BYTES];
	struct arena a;
	struct verdict v;
	struct request req = {
		.door = DOOR_CHECK, .headers = lines, .cost = 1, .remote_addr = str_from_z(q->remote_z)};

	arena_init(&a, block, sizeof(block));
	if (q->forwarded_z != NULL)
		lines[req.n_headers++] =
			(struct header_line){STR("X-Forwarded-For"), str_from_z(q->forwarded_z)};
	if (q->cookie_z != NULL)
		lines[req.n_headers++] = (struct header_line){STR("Cookie"), str_from_z(q->cookie_z)};
	if (q->agent_z != NULL)
		lines[req.n_headers++] = (struct header_line){STR("User-Agent"), str_from_z(q->agent_z)};
	if (q->token_z != NULL)
		lines[req.n_headers++] =
			(struct header_line){STR("X-Internal-Token"), str_from_z(q->token_z)};
	if (q->path_z != NULL)
		req.path = (struct fact){str_from_z(q->path_z), true};
	engine_decide(engine_worker_at(b->engine, worker), &req, &a, b->now, &v);
	b->now += 100 * NS_PER_MS;
}

/* Visitor number i through the proxy at 172.18.0.5, whose header nobody reads under strategy peer. */
static void ask_visitor(struct bench *b, unsigned worker, unsigned i)
{
	char address[32], cookie[32], agent[32];

	(void)snprintf(address, sizeof(address), "198.18.%u.%u", i / 250, i % 250 + 1);
	(void)snprintf(cookie, sizeof(cookie), "sid=%u", i);
	(void)snprintf(agent, sizeof(agent), "Mozilla/5.0 %u", i % 20);
	ask(b, worker,
		&(struct question){.remote_z = "172.18.0.5",
			.forwarded_z = address,
			.cookie_z = cookie,
			.agent_z = agent});
}

static size_t look(struct bench *b, struct finding *ret)
{
	return watch_findings(engine_watch(b->engine), b->now, WALL + b->now, ret, FINDINGS_MAX);
}

static unsigned count_of(struct bench *b, enum finding_code code)
{
	static struct finding found[FINDINGS_MAX];
	size_t n = look(b, found);
	unsigned count = 0;

	for (size_t i = 0; i < n; i++)
		count += found[i].code == code;
	return count;
}

static void tick(struct bench *b)
{
	watch_tick(engine_watch(b->engine), b->now, WALL + b->now);
}

/* ---- sketches */

static void test_sketch(void **state)
{
	static const uint64_t sizes[] = {0, 1, 5, 12, 21, 50, 100, 150, 200, 1000, 100000};
	struct random r = {1};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct sketch a = {{0}}, half[2] = {{{0}}};
		uint64_t n;

		for (uint64_t k = 0; k < sizes[i]; k++) {
			uint64_t hash = random_u64(&r);

			for (unsigned again = 0; again < 3; again++)
				sketch_add(&a, hash);
			sketch_add(&half[k % 2], hash);
		}
		n = sketch_count(&a);
		assert_in_range(n * 10, sizes[i] * 6, sizes[i] * 14 + 9);
		sketch_merge(&half[0], &half[1]);
		assert_int_equal(sketch_count(&half[0]), n);
	}
}

/* Whoever makes up more than 1/32 is in the list, and no count is too low or too high by more than its error. */
static void test_slots(void **state)
{
	struct random r = {2};
	struct slots s = {.n = 0};
	uint64_t truth[1000] = {0};
	bool is_new;

	(void)state;
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t key = random_below(&r, 10) < 4 ? random_below(&r, 5) : random_below(&r, 1000);

		truth[key]++;
		assert_in_range(slots_take(&s, SLOTS_MAX, key, 1, &is_new), 0, SLOTS_MAX - 1);
	}
	assert_int_equal(s.n, SLOTS_MAX);
	for (uint64_t key = 0; key < 5; key++) {
		bool found = false;

		for (size_t i = 0; i < s.n; i++)
			found |= s.hashes[i] == key;
		assert_true(found);
	}
	for (size_t i = 0; i < s.n; i++) {
		struct slot slot = slots_at(&s, i);

		assert_true(slot.count >= truth[slot.hash]);
		assert_true(slot.count - slot.error <= truth[slot.hash]);
	}
}

/* ---- windows and workers */

#define ONE_RULE "'limits':{'all':{'rate':'100000/second'}},'rules':[{'name':'all','limits':['all']}]"

static void test_workers_are_merged(void **state)
{
	static struct finding found[FINDINGS_MAX];
	struct bench b;

	(void)state;
	bench_open(&b, "{'version':1," ONE_RULE "}", 3);
	for (unsigned i = 0; i < 149; i++)
		ask_visitor(&b, i % 3, i % 60);
	assert_int_equal(look(&b, found), 0); /* under the floor */
	for (unsigned i = 149; i < 300; i++)
		ask_visitor(&b, i % 3, i % 60);
	assert_int_equal(look(&b, found), 1);
	assert_int_equal(found[0].requests, 300);
	assert_string_equal(found[0].key_z, "172.18.0.5");
	assert_true(found[0].cure_is_setting);
	assert_int_equal(found[0].since, WALL + 1000 * NS_PER_S);
	bench_close(&b);
}

/* The hop begins to name its clients in another way: without a reload the warning goes when its window has passed. */
static void test_warning_comes_and_clears_by_itself(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, "{'version':1," ONE_RULE "}", 1);
	for (unsigned i = 0; i < 2000; i++) {
		ask_visitor(&b, 0, i % 60);
		if (i % 10 == 0)
			tick(&b);
	}
	assert_int_equal(log_count(&b, "warn shared_bucket: "), 1);
	assert_int_equal(log_count(&b, "Cure: \"client\": {\"strategy\": \"trusted_ranges\", "
				       "\"trusted_proxies\": [\"172.18.0.5\"]}"),
		1);
	for (unsigned i = 0; i < 12000; i++) {
		char address[32], cookie[32];

		(void)snprintf(address, sizeof(address), "198.18.0.%u", i % 60 + 1);
		(void)snprintf(cookie, sizeof(cookie), "sid=%u", i % 60);
		ask(&b, 0, &(struct question){.remote_z = address, .cookie_z = cookie});
		if (i % 10 == 0)
			tick(&b);
	}
	assert_int_equal(count_of(&b, FINDING_CODE_SHARED_BUCKET), 0);
	assert_int_equal(log_count(&b, "shared_bucket: "), 1);
	assert_int_equal(log_count(&b, "shared_bucket_cleared: no longer seen"), 1);
	bench_close(&b);
}

/* What was seen a day ago and not since is no evidence. */
static void test_old_evidence_is_none(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, "{'version':1," ONE_RULE "}", 1);
	for (unsigned i = 0; i < 300; i++)
		ask_visitor(&b, 0, i % 60);
	b.now += 23 * 3600 * NS_PER_S;
	assert_int_equal(count_of(&b, FINDING_CODE_SHARED_BUCKET), 1);
	b.now += 2 * 3600 * NS_PER_S;
	assert_int_equal(count_of(&b, FINDING_CODE_SHARED_BUCKET), 0);
	bench_close(&b);
}

/* A slow rule keeps its window until there is something to see: one request a minute. */
static void test_a_slow_rule_is_judged_too(void **state)
{
	struct bench b;

	(void)state;
	bench_open(&b, "{'version':1," ONE_RULE "}", 1);
	for (unsigned i = 0; i < 200; i++) {
		ask_visitor(&b, 0, i % 60);
		b.now += 60 * NS_PER_S;
	}
	assert_int_equal(count_of(&b, FINDING_CODE_SHARED_BUCKET), 1);
	bench_close(&b);
}

/* "any" is never advice, not even where it is what is configured. */
static void test_cure_never_says_any(void **state)
{
	static struct finding found[FINDINGS_MAX];
	struct bench b;

	(void)state;
	bench_open(&b,
		"{'version':1,'client':{'strategy':'single_value','trusted_proxies':'any'}," ONE_RULE "}", 1);
	for (unsigned i = 0; i < 300; i++) {
		char forwarded[64], cookie[32];

		(void)snprintf(forwarded, sizeof(forwarded), "198.18.0.%u, 172.18.0.3", i % 60 + 1);
		(void)snprintf(cookie, sizeof(cookie), "sid=%u", i % 60);
		ask(&b, 0,
			&(struct question){
				.remote_z = "172.18.0.5", .forwarded_z = forwarded, .cookie_z = cookie});
	}
	assert_int_equal(look(&b, found), 1);
	assert_int_equal(found[0].code, FINDING_CODE_SHARED_BUCKET);
	assert_true(found[0].cure_is_setting);
	assert_null(strstr(found[0].cure_z, "any"));
	assert_non_null(strstr(found[0].cure_z, "[\"172.18.0.3\", \"172.18.0.5\"]"));
	bench_close(&b);
}

/* ---- reload */

static void test_reload_restarts_signals(void **state)
{
	static const struct {
		const char *config_z;
		bool keeps;
	} cases[] = {
		{"{'version':1," ONE_RULE "}", true},
		{"{'version':1,'limits':{'all':{'rate':'5000/"
		 "second'}},'rules':[{'name':'more','match':{'path':'/x'},'limits':['all']},"
		 "{'name':'all','limits':['all']}]}",
			true},
		{"{'version':1,'client':{'strategy':'trusted_ranges','trusted_proxies':['172.18.0.5']}"
		 "," ONE_RULE "}",
			false},
		{"{'version':1,'own_networks':['10.0.0.0/8']," ONE_RULE "}", false},
		{"{'version':1,'identities':{'a':{'token_sha256':" EDGE_SHA256 "}}," ONE_RULE "}", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct finding *found = test_calloc(FINDINGS_MAX, sizeof(*found));
		struct config *config = config_of(cases[i].config_z);
		struct watch *next;
		struct bench b;

		bench_open(&b, "{'version':1," ONE_RULE "}", 2);
		for (unsigned k = 0; k < 400; k++)
			ask_visitor(&b, k % 2, k % 60);
		tick(&b);
		assert_int_equal(log_count(&b, "warn shared_bucket: "), 1);
		assert_int_equal(watch_open(&next, &config->rules, 2), ERR_OK);
		watch_carry(next, engine_watch(b.engine));
		assert_int_equal(
			watch_findings(next, b.now, WALL + b.now, found, FINDINGS_MAX), cases[i].keeps);
		watch_tick(next, b.now, WALL + b.now);
		assert_int_equal(log_count(&b, "warn shared_bucket: "), 1); /* not said twice */
		assert_int_equal(log_count(&b, "changed by a reload"), !cases[i].keeps);
		if (cases[i].keeps)
			assert_ptr_equal(found[0].rule, &config->rules.rules[config->rules.n_rules - 1]);
		watch_close(next);
		config_free(config);
		bench_close(&b);
		test_free(found);
	}
}

/* ---- own services */

#define WITH_EDGE                                                                                            \
	"{'version':1,'identities':{'edge':{'token_sha256':'%s'%s}},'limits':{'all':{'rate':'5/hour'}},"     \
	"'rules':[{'name':'all','limits':['all']}]}"

static const char *with_edge(const char *current_z, const char *previous_z)
{
	static char text[1024];
	char hex[2][2 * DIGEST_BYTES + 1], member[160] = "";
	struct digest d;

	digest_sha256(&d, str_from_z(current_z));
	str_hex(d.bytes, DIGEST_BYTES, hex[0]);
	if (previous_z != NULL) {
		digest_sha256(&d, str_from_z(previous_z));
		str_hex(d.bytes, DIGEST_BYTES, hex[1]);
		(void)snprintf(member, sizeof(member), ",'previous_token_sha256':'%s'", hex[1]);
	}
	(void)snprintf(text, sizeof(text), WITH_EDGE, hex[0], member);
	return text;
}

static void ask_edge(struct bench *b, unsigned worker, const char *remote_z, const char *token_z)
{
	ask(b, worker, &(struct question){.remote_z = remote_z, .agent_z = "edge/1", .token_z = token_z});
}

static void test_ledger(void **state)
{
	struct own_ledger rows[4];
	struct bench b;

	(void)state;
	bench_open(&b, with_edge(EDGE_TOKEN, NULL), 2);
	assert_int_equal(own_ledger_read(engine_watch(b.engine), b.now, WALL + b.now, rows, 4), 1);
	assert_int_equal(rows[0].requests, 0);
	assert_int_equal(rows[0].first_used, 0);
	assert_int_equal(rows[0].n_addresses, 0);
	for (unsigned i = 0; i < 30; i++) {
		char address[32];

		(void)snprintf(address, sizeof(address), "10.0.0.%u:4%u", 1 + i / 10, 1000 + i);
		ask_edge(&b, i % 2, address, EDGE_TOKEN);
	}
	assert_int_equal(own_ledger_read(engine_watch(b.engine), b.now, WALL + b.now, rows, 4), 1);
	assert_true(str_equal(rows[0].identity->name, STR("edge")));
	assert_int_equal(rows[0].slot, TOKEN_SLOT_CURRENT);
	assert_int_equal(rows[0].requests, 30);
	assert_int_equal(rows[0].first_used, WALL + 1000 * NS_PER_S);
	assert_int_equal(rows[0].last_used, WALL + b.now - 100 * NS_PER_MS);
	assert_int_equal(rows[0].n_addresses, 3);
	assert_true(ip_equal(&rows[0].addresses[0], &(struct ip){.bytes = {[10] = 255, 255, 10, 0, 0, 3}}));
	assert_int_equal(rows[0].addresses_left_out, 0);
	for (unsigned i = 0; i < 40; i++) {
		char address[32];

		(void)snprintf(address, sizeof(address), "10.0.1.%u", i);
		ask_edge(&b, 0, address, EDGE_TOKEN);
	}
	assert_int_equal(own_ledger_read(engine_watch(b.engine), b.now, WALL + b.now, rows, 4), 1);
	assert_int_equal(rows[0].n_addresses, OWN_ADDRESSES_MAX);
	assert_true(rows[0].addresses_left_out > 0);
	assert_true(ip_equal(&rows[0].addresses[0], &(struct ip){.bytes = {[10] = 255, 255, 10, 0, 1, 39}}));
	assert_int_equal(count_of(&b, FINDING_CODE_SHARED_BUCKET), 0);
	assert_int_equal(own_refused_total(engine_watch(b.engine)), 0);
	bench_close(&b);
}

/* A token that moves to the previous slot takes its past with it; the new one has none. */
static void test_ledger_follows_the_token(void **state)
{
	struct own_ledger rows[4];
	struct config *config;
	struct watch *next;
	struct bench b;

	(void)state;
	bench_open(&b, with_edge(EDGE_TOKEN, NULL), 1);
	for (unsigned i = 0; i < 7; i++)
		ask_edge(&b, 0, "10.0.0.8", EDGE_TOKEN);
	config = config_of(with_edge("edge-token-next-012345", EDGE_TOKEN));
	assert_int_equal(watch_open(&next, &config->rules, 1), ERR_OK);
	watch_carry(next, engine_watch(b.engine));
	for (unsigned i = 0; i < 6; i++) /* by a worker that goes by the old one still; five pass */
		ask_edge(&b, 0, "10.0.0.8", "edge-token-wrong-01234");
	assert_int_equal(own_refused_total(next), 1);
	assert_int_equal(own_ledger_read(next, b.now, WALL + b.now, rows, 4), 2);
	assert_int_equal(rows[0].slot, TOKEN_SLOT_CURRENT);
	assert_int_equal(rows[0].requests, 0);
	assert_int_equal(rows[0].n_addresses, 0);
	assert_int_equal(rows[1].slot, TOKEN_SLOT_PREVIOUS);
	assert_int_equal(rows[1].requests, 7);
	assert_int_equal(rows[1].n_addresses, 1);
	watch_close(next);
	config_free(config);
	bench_close(&b);
}

static void test_own_refused(void **state)
{
	static struct own_refusal rows[OWN_REFUSALS_MAX];
	struct bench b;
	struct watch *w;

	(void)state;
	bench_open(&b, with_edge(EDGE_TOKEN, NULL), 2);
	w = engine_watch(b.engine);
	for (unsigned i = 0; i < 20; i++) {
		ask_edge(&b, i % 2, "10.0.0.8:4000", "edge-token-old-0123456");
		ask(&b, 0,
			&(struct question){.remote_z = "203.0.113.9", .agent_z = "curl/8"}); /* a stranger */
		ask(&b, 0,
			&(struct question){
				.remote_z = "10.0.0.9", .agent_z = "Mozilla/5.0 Firefox"}); /* a person */
		tick(&b);
	}
	assert_int_equal(own_refusals_read(w, b.now, WALL + b.now, rows, OWN_REFUSALS_MAX), 1);
	assert_string_equal(rows[0].remote_addr_z, "10.0.0.8");
	assert_string_equal(rows[0].client_z, "10.0.0.8");
	assert_int_equal(rows[0].token, TOKEN_STATE_UNKNOWN);
	assert_int_equal(rows[0].reason, REASON_RATE_LIMITED);
	assert_int_equal(rows[0].count, 15);
	assert_true(str_equal(rows[0].rule->name, STR("all")));
	assert_true(str_equal(rows[0].identity_guess->name, STR("edge")));
	assert_int_equal(own_refused_total(w), 15);
	assert_int_equal(log_count(&b, "own_service_refused: "), 1);
	assert_int_equal(
		log_count(&b, "remote_addr=10.0.0.8 client=10.0.0.8 token=unknown identity_guess=edge"), 1);
	b.now += 700 * NS_PER_S;
	ask_edge(&b, 0, "10.0.0.8", "edge-token-old-0123456");
	tick(&b);
	assert_int_equal(log_count(&b, "own_service_refused: "), 2);
	bench_close(&b);
}

/* Whoever makes tokens up fills neither the log nor the list, and is nobody's service. */
static void test_made_up_tokens(void **state)
{
	static struct own_refusal rows[OWN_REFUSALS_MAX];
	struct bench b;

	(void)state;
	bench_open(&b, with_edge(EDGE_TOKEN, NULL), 1);
	for (unsigned i = 0; i < 500; i++) {
		char address[32], token[64];

		(void)snprintf(address, sizeof(address), "203.0.113.%u", i % 50);
		(void)snprintf(token, sizeof(token), "made-up-token-%u", i);
		ask_edge(&b, 0, address, token);
		tick(&b);
	}
	assert_int_equal(
		own_refusals_read(engine_watch(b.engine), b.now, WALL + b.now, rows, OWN_REFUSALS_MAX),
		OWN_REFUSALS_MAX);
	assert_null(rows[0].identity_guess);
	assert_non_null(strstr(rows[0].text_z, "from outside own_networks"));
	assert_int_equal(log_count(&b, "own_service_refused: "), OWN_LINES_PER_MINUTE);
	assert_true(watch_suppressed(engine_watch(b.engine)) > 0);
	assert_int_equal(log_count(&b, "made-up-token"), 0);
	bench_close(&b);
}

/* ---- top */

static void test_top(void **state)
{
	struct top_row rows[TOP_KEYS_MAX];
	char text[CLIENT_KEY_TEXT_BYTES];
	struct bench b;
	struct random r = {3};
	size_t n;

	(void)state;
	bench_open(&b,
		"{'version':1,'limits':{'all':{'rate':'60/minute'},'x':{'rate':'100000/second'}},"
		"'rules':[{'name':'x','match':{'path':'/"
		"x'},'limits':['x']},{'name':'all','limits':['all']}]}",
		1);
	for (unsigned i = 0; i < 40000; i++) {
		char address[32];
		uint64_t host = random_below(&r, 10) < 3 ? 1 : 10 + random_below(&r, 200);

		(void)snprintf(address, sizeof(address), "203.0.113.%u", (unsigned)host);
		ask(&b, 0,
			&(struct question){.remote_z = address,
				.agent_z = "Mozilla/5.0",
				.path_z = i % 4 == 0 ? "/x" : "/"});
		b.now -= 95 * NS_PER_MS; /* two hundred a second */
	}
	n = top_read(engine_watch(b.engine), 1, TOP_BUSIEST, b.now, rows, TOP_KEYS_MAX);
	assert_int_equal(n, TOP_KEYS_MAX);
	text[client_key_text(rows[0].key, rows[0].key_len, text)] = '\0';
	assert_string_equal(text, "4:203.0.113.1");
	assert_in_range(rows[0].requests, 9000 * 8 / 10, 9000 * 12 / 10);
	for (size_t i = 1; i < n; i++)
		assert_true(rows[i].requests <= rows[i - 1].requests);
	n = top_read(engine_watch(b.engine), 1, TOP_REFUSED, b.now, rows, TOP_KEYS_MAX);
	assert_true(n >= 1);
	text[client_key_text(rows[0].key, rows[0].key_len, text)] = '\0';
	assert_string_equal(text, "4:203.0.113.1");
	assert_in_range(rows[0].requests, 8700 * 8 / 10, 8900 * 12 / 10);
	assert_int_equal(top_read(engine_watch(b.engine), 0, TOP_REFUSED, b.now, rows, TOP_KEYS_MAX), 0);
	assert_int_equal(top_read(engine_watch(b.engine), 99, TOP_BUSIEST, b.now, rows, TOP_KEYS_MAX), 0);
	assert_int_equal(top_read_all(engine_watch(b.engine), TOP_BUSIEST, b.now, rows, 5), 5);
	assert_true(str_equal(rows[0].rule->name, STR("all")));
	bench_close(&b);
}

/* ---- bounds */

static void test_memory_is_fixed_and_stated(void **state)
{
	struct bench b;
	size_t bytes;

	(void)state;
	bench_open(&b, with_edge(EDGE_TOKEN, NULL), 1);
	bytes = watch_bytes(engine_watch(b.engine));
	assert_in_range(bytes, 1,
		WATCH_BYTES_BASE + WATCH_BYTES_A_WORKER + WATCH_BYTES_A_RULE + WATCH_BYTES_AN_IDENTITY);
	for (unsigned i = 0; i < 5000; i++)
		ask_visitor(&b, 0, i);
	assert_int_equal(watch_bytes(engine_watch(b.engine)), bytes);
	bench_close(&b);
}

struct reader {
	struct bench *b;
	atomic_bool stop;
	atomic_uint rounds;
};

static void *read_on(void *arg)
{
	static struct finding found[FINDINGS_MAX];
	static struct own_refusal refusals[OWN_REFUSALS_MAX];
	static struct top_row rows[TOP_KEYS_MAX];
	static struct own_ledger ledger[4];
	struct reader *r = arg;
	struct watch *w = engine_watch(r->b->engine);
	ns now = 5000 * NS_PER_S;

	while (!atomic_load(&r->stop)) {
		(void)watch_findings(w, now, WALL, found, FINDINGS_MAX);
		(void)own_refusals_read(w, now, WALL, refusals, OWN_REFUSALS_MAX);
		(void)own_ledger_read(w, now, WALL, ledger, 4);
		(void)top_read(w, 0, TOP_BUSIEST, now, rows, TOP_KEYS_MAX);
		watch_tick(w, now, WALL);
		atomic_fetch_add(&r->rounds, 1);
	}
	return NULL;
}

/* Nobody waits for a reader, and what a sample could not say the next one says for it. */
static void test_readers_beside_a_worker(void **state)
{
	struct finding found[1];
	struct reader reader;
	pthread_t thread;
	struct bench b;

	(void)state;
	bench_open(&b, with_edge(EDGE_TOKEN, NULL), 1);
	log_setup(LOG_ERROR, LOG_TEXT, STDERR_FILENO);
	reader = (struct reader){.b = &b};
	assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
	for (unsigned i = 0; i < 3000 || atomic_load(&reader.rounds) < 3; i++) {
		ask_visitor(&b, 0, i % 100);
		ask_edge(&b, 0, i % 2 == 0 ? "10.0.0.8" : "10.0.0.7",
			i % 3 == 0 ? EDGE_TOKEN : "not-a-token-0123456789");
		b.now = 1000 * NS_PER_S + i * NS_PER_MS / 100;
	}
	atomic_store(&reader.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (unsigned i = 0; i < 300;
		i++) /* a reader that was put to sleep may have had nearly all samples dropped */
		ask_visitor(&b, 0, i % 100);
	assert_int_equal(watch_findings(engine_watch(b.engine), b.now, WALL, found, 1), 1);
	assert_string_equal(found[0].key_z, "172.18.0.5");
	bench_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sketch),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_workers_are_merged),
		cmocka_unit_test(test_warning_comes_and_clears_by_itself),
		cmocka_unit_test(test_old_evidence_is_none),
		cmocka_unit_test(test_a_slow_rule_is_judged_too),
		cmocka_unit_test(test_cure_never_says_any),
		cmocka_unit_test(test_reload_restarts_signals),
		cmocka_unit_test(test_ledger),
		cmocka_unit_test(test_ledger_follows_the_token),
		cmocka_unit_test(test_own_refused),
		cmocka_unit_test(test_made_up_tokens),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_memory_is_fixed_and_stated),
		cmocka_unit_test(test_readers_beside_a_worker),
	};

	log_setup(LOG_ERROR, LOG_TEXT, STDERR_FILENO);
	json_setup();
	return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
