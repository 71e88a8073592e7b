/* SPDX-License-Identifier: MIT */
/*
 * Rulesets that follow each other in one engine: counters go on by name, whatever becomes of the order and of other names,
 * and buckets are not touched. What is counted is read as a scrape reads it.
 */
#include "base/digest.h"
#include "base/json.h"
#include "config/config.h"
#include "engine/engine.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TOKEN "a token of the tests"
#define SHA256_OF_TOKEN "864c519db7f7a71adf8cd1ad238d9c3fc57e7e1f9fd6463afe1bd39e5617489f"
#define SHA256_OF_OTHERS "000000000000000000000000000000000000000000000000000000000000000"
#define WORKERS 2

static struct {
	struct config *config;
	struct store *store;
	struct engine *engine;
	ns now;
} f;

static char page[8 * 1024 * 1024];

static struct config *load(const char *text_z)
{
	const struct config_options options = {.without_secrets = false};
	struct fault_list faults;
	struct config *c = NULL;

	fault_list_init(&faults);
	if (config_load_text(&c, str_from_z(text_z), ".", &options, &faults) != ERR_OK)
		fail_msg("%s: %s", text_z, faults.n > 0 ? faults.items[0].text_z : "?");
	fault_list_done(&faults);
	return c;
}

static void start(const char *text_z)
{
	f.config = load(text_z);
	f.now = 1000 * NS_PER_S;
	assert_int_equal(store_open(&f.store, STORE_BYTES_MIN), ERR_OK);
	assert_int_equal(engine_open(&f.engine, &f.config->rules, f.store, WORKERS), ERR_OK);
}

static int stop(void **state)
{
	(void)state;
	engine_close(f.engine);
	store_close(f.store);
	config_free(f.config);
	return 0;
}

/* What a reload does, with nobody at work. */
static void change(const char *text_z)
{
	struct config *next = load(text_z);
	struct edition *ed, *before = engine_edition(f.engine);

	assert_int_equal(engine_edition_new(&ed, f.engine, &next->rules), ERR_OK);
	engine_edition_set(f.engine, ed);
	for (unsigned i = 0; i < WORKERS; i++)
		engine_edition_take(engine_worker_at(f.engine, i), ed);
	engine_edition_retire(f.engine, before);
	config_free(f.config);
	f.config = next;
}

static enum reason ask(unsigned worker, const char *path_z, const char *token_z)
{
	char block[16 * 1024];
	struct arena a;
	struct request req = {.door = DOOR_CHECK, .fault = REASON_ALLOWED, .remote_addr = STR("203.0.113.7"),
		.path = {str_from_z(path_z), true}, .cost = 1};
	struct verdict v;

	if (token_z != NULL)
		req.token = (struct fact){str_from_z(token_z), true};
	arena_init(&a, block, sizeof(block));
	engine_decide(engine_worker_at(f.engine, worker), &req, &a, f.now, &v);
	return v.reason;
}

static void scrape(void)
{
	struct text t;

	text_init(&t, page, sizeof(page) - 1);
	engine_metrics_write(f.engine, &t, f.now, f.now);
	assert_false(t.overflow);
	page[t.len] = '\0';
}

/* The sample's value; -1 if there is none. series_z: up to the space. */
static long long sample(const char *series_z)
{
	size_t len = strlen(series_z);

	scrape();
	for (const char *p = page; (p = strstr(p, series_z)) != NULL; p += len) {
		if (p[len] == ' ' && (p == page || p[-1] == '\n'))
			return strtoll(p + len, NULL, 10);
	}
	return -1;
}

static long long decided(const char *rule_z, const char *reason_z)
{
	char series[256];

	snprintf(series, sizeof(series), "postern_decisions_total{door=\"check\",decision=\"%s\",reason=\"%s\",rule=\"%s\"}",
		strcmp(reason_z, "allowed") == 0 ? "allow" : "deny", reason_z, rule_z);
	return sample(series);
}

#define LIMITS "\"limits\": {\"l\": {\"rate\": \"3/hour\", \"key\": [\"client\", \"host\"]}}"
#define RULE(name, path) "{\"name\": \"" name "\", \"match\": {\"path\": \"" path "\"}, \"limits\": [\"l\"]},"
#define LAST(name) "{\"name\": \"" name "\", \"limits\": [\"l\"]}"

static void test_rules_go_on_by_name(void **state)
{
	(void)state;
	start("{" LIMITS ", \"rules\": [" RULE("a", "/a") RULE("b", "/b") LAST("rest") "]}");
	assert_int_equal(ask(0, "/a", NULL), REASON_ALLOWED);
	assert_int_equal(ask(1, "/b", NULL), REASON_ALLOWED);
	assert_int_equal(ask(1, "/b", NULL), REASON_ALLOWED);
	/* Another order, one gone, one new; the bucket is what it was. */
	change("{" LIMITS ", \"rules\": [" RULE("b", "/b") RULE("c", "/a") LAST("rest") "]}");
	assert_int_equal(decided("a", "allowed"), 1);
	assert_int_equal(decided("a", "rate_limited"), -1); /* gone, and never happened */
	assert_int_equal(decided("b", "allowed"), 2);
	assert_int_equal(decided("c", "allowed"), 0);
	assert_int_equal(ask(0, "/a", NULL), REASON_RATE_LIMITED);
	assert_int_equal(ask(0, "/b", NULL), REASON_RATE_LIMITED);
	assert_int_equal(decided("c", "rate_limited"), 1);
	assert_int_equal(decided("b", "rate_limited"), 1);
	assert_int_equal(decided("b", "allowed"), 2);
	/* Back again: goes on where it was. */
	change("{" LIMITS ", \"rules\": [" RULE("a", "/a") LAST("rest") "]}");
	assert_int_equal(decided("a", "allowed"), 1);
	assert_int_equal(decided("a", "rate_limited"), 0);
}

static void test_limits_go_on_by_name(void **state)
{
	(void)state;
	start("{\"limits\": {\"x\": {\"rate\": \"9/hour\"}, \"l\": {\"rate\": \"9/hour\", \"key\": [\"host\"]}},"
	      " \"rules\": [{\"name\": \"r\", \"limits\": [\"x\", \"l\"]}]}");
	(void)ask(0, "/", NULL); /* no host was said: the key falls back on the client */
	(void)ask(1, "/", NULL);
	assert_int_equal(sample("postern_key_fallback_total{limit=\"l\"}"), 2);
	change("{\"limits\": {\"l\": {\"rate\": \"5/hour\", \"key\": [\"host\"]}, \"y\": {\"rate\": \"9/hour\"}},"
	       " \"rules\": [{\"name\": \"r\", \"limits\": [\"l\", \"y\"]}]}");
	assert_int_equal(sample("postern_key_fallback_total{limit=\"l\"}"), 2);
	assert_int_equal(sample("postern_key_fallback_total{limit=\"x\"}"), -1);
	assert_int_equal(sample("postern_key_fallback_total{limit=\"y\"}"), 0);
	(void)ask(0, "/", NULL);
	assert_int_equal(sample("postern_key_fallback_total{limit=\"l\"}"), 3);
}

static void test_identities_go_on_by_name(void **state)
{
	(void)state;
	start("{\"identities\": {\"edge\": {\"token_sha256\": \"" SHA256_OF_TOKEN "\"}}}");
	assert_int_equal(ask(1, "/", TOKEN), REASON_EXEMPT);
	change("{\"identities\": {\"agent\": {\"token_sha256\": \"" SHA256_OF_OTHERS "0\"}, \"edge\":"
	       " {\"token_sha256\": \"" SHA256_OF_OTHERS "1\", \"previous_token_sha256\": \"" SHA256_OF_TOKEN "\"}}}");
	assert_int_equal(ask(0, "/", TOKEN), REASON_EXEMPT);
	assert_int_equal(sample("postern_identity_requests_total{identity=\"edge\",slot=\"current\"}"), 1);
	assert_int_equal(sample("postern_identity_requests_total{identity=\"edge\",slot=\"previous\"}"), 1);
	assert_int_equal(sample("postern_identity_requests_total{identity=\"agent\",slot=\"current\"}"), 0);
	change("{}");
	assert_int_equal(sample("postern_identity_requests_total{identity=\"edge\",slot=\"previous\"}"), 1);
	assert_int_equal(sample("postern_identity_requests_total{identity=\"agent\",slot=\"current\"}"), -1);
}

#define ONE_LIMIT(members) "{\"limits\": {\"l\": {" members "}}, \"rules\": [{\"name\": \"r\", \"limits\": [\"l\"]}]}"

/* A bucket keeps the time it owes, whatever its limit becomes; only what a smaller one cannot hold is cut. */
static void test_buckets_keep_the_time_they_owe(void **state)
{
	static const struct {
		const char *text_z;
		unsigned passing; /* at once */
		ns wait_ns;       /* until one more passes */
	} rows[] = {
		{ONE_LIMIT("\"rate\": \"5/minute\""), 0, 12 * NS_PER_S},
		{ONE_LIMIT("\"rate\": \"5/minute\", \"burst\": 8"), 3, 12 * NS_PER_S},
		{ONE_LIMIT("\"rate\": \"8/minute\""), 0, 7500 * NS_PER_MS},
		{ONE_LIMIT("\"rate\": \"5/minute\", \"burst\": 2"), 0, 12 * NS_PER_S},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		start(ONE_LIMIT("\"rate\": \"5/minute\""));
		for (unsigned k = 0; k < 5; k++)
			assert_int_equal(ask(0, "/", NULL), REASON_ALLOWED);
		assert_int_equal(ask(0, "/", NULL), REASON_RATE_LIMITED);
		change(rows[i].text_z);
		for (unsigned k = 0; k < rows[i].passing; k++)
			assert_int_equal(ask(1, "/", NULL), REASON_ALLOWED);
		assert_int_equal(ask(0, "/", NULL), REASON_RATE_LIMITED);
		f.now += rows[i].wait_ns - 1;
		assert_int_equal(ask(0, "/", NULL), REASON_RATE_LIMITED);
		f.now++;
		assert_int_equal(ask(1, "/", NULL), REASON_ALLOWED);
		assert_int_equal(ask(1, "/", NULL), REASON_RATE_LIMITED);
		(void)stop(NULL);
		memset(&f, 0, sizeof(f));
	}
}

/* n rules with names that begin with a letter of this turn; the last one is "rest". */
static void many_rules(char *out, size_t size, char letter, unsigned n)
{
	int len = snprintf(out, size, "{" LIMITS ", \"rules\": [");

	for (unsigned i = 0; i < n; i++)
		len += snprintf(out + len, size - (size_t)len,
			"{\"name\": \"%c%u\", \"match\": {\"path\": \"/%u\"}, \"action\": \"allow\"},", letter, i, i);
	snprintf(out + len, size - (size_t)len, LAST("rest") "]}");
}

static void test_names_without_end(void **state)
{
	static char text[64 * 1024];

	(void)state;
	many_rules(text, sizeof(text), 'a', 199);
	start(text);
	assert_int_equal(ask(0, "/nowhere", NULL), REASON_ALLOWED);
	for (char letter = 'b'; letter <= 'h'; letter++) {
		char series[160];

		(void)ask(1, "/7", NULL);
		snprintf(series, sizeof(series),
			"postern_decisions_total{door=\"check\",decision=\"allow\",reason=\"rule_allow\",rule=\"%c7\"}",
			letter - 1);
		assert_int_equal(sample(series), 1);
		many_rules(text, sizeof(text), letter, 199);
		change(text);
		assert_int_equal(sample(series), 1); /* its place is not needed yet */
		series[strlen(series) - 4] = letter;
		assert_int_equal(sample(series), 0); /* and never holds another's count */
		assert_int_equal(decided("rest", "allowed"), 1);
	}
	assert_int_equal(sample("postern_label_overflow_total{family=\"postern_decisions_total\"}"), 0);
}

static void test_rules_beyond_the_cap(void **state)
{
	static char text[64 * 1024];

	(void)state;
	many_rules(text, sizeof(text), 'a', 250);
	start(text);
	(void)ask(0, "/199", NULL);
	(void)ask(0, "/200", NULL);
	(void)ask(1, "/249", NULL);
	assert_int_equal(
		sample("postern_decisions_total{door=\"check\",decision=\"allow\",reason=\"rule_allow\",rule=\"a199\"}"), 1);
	assert_int_equal(
		sample("postern_decisions_total{door=\"check\",decision=\"allow\",reason=\"rule_allow\",rule=\"_other\"}"), 2);
	assert_int_equal(sample("postern_label_overflow_total{family=\"postern_decisions_total\"}"), 2);
	many_rules(text, sizeof(text), 'a', 190);
	change(text);
	assert_int_equal(ask(0, "/200", NULL), REASON_ALLOWED);
	assert_int_equal(decided("rest", "allowed"), 1);
}

#define TEST(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rules_go_on_by_name),
		TEST(test_limits_go_on_by_name),
		TEST(test_identities_go_on_by_name),
		TEST(test_buckets_keep_the_time_they_owe),
		TEST(test_names_without_end),
		TEST(test_rules_beyond_the_cap),
	};

	if (digest_init() != ERR_OK)
		return 1;
	json_setup();
	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
