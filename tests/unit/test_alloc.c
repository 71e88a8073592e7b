/* SPDX-License-Identifier: MIT */
/*
 * Counts allocations between decode and encode: a decision must not depend on the heap, neither for its speed nor for its
 * success. malloc and its relatives are replaced at link time (see the Makefile), so this counts what our own code asks for.
 */
#include "adapter/adapter.h"
#include "adapter/rpc.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json.h"
#include "config/config.h"
#include "engine/engine.h"
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static volatile size_t calls; /* volatile: a compiler knows that malloc changes nothing of ours */

void *__wrap_malloc(size_t n)
{
	calls++;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	calls++;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	calls++;
	return __real_realloc(p, n);
}

void __wrap_free(void *p)
{
	calls++;
	__real_free(p);
}

static const char settings[] =
	"{\"client\": {\"strategy\": \"trusted_ranges\", \"trusted_proxies\": [\"10.0.0.0/8\"]},"
	" \"identities\": {\"edge\": {\"token_sha256\": \"0000000000000000000000000000000000000000000000000000000000000000\"}},"
	" \"limits\": {\"per-client\": {\"rate\": \"2/hour\"}, \"page\": {\"rate\": \"100/hour\", \"key\": [\"network\", \"path\"]}},"
	" \"rules\": [{\"name\": \"blocked\", \"match\": {\"path\": \"/secret/*\"}, \"action\": \"deny\"},"
	"            {\"name\": \"inner\", \"match\": {\"host\": \"inner.example\"}, \"require\": \"identity\", \"limits\": [\"page\"]},"
	"            {\"name\": \"rest\", \"limits\": [\"per-client\", \"page\"]}]}";

struct fixture {
	struct config *config;
	struct store *store;
	struct engine *engine;
	struct arena arena;
};

static int start(void **state)
{
	static struct fixture f;
	static char block[64 * 1024];
	const struct config_options options = {.without_secrets = false};
	struct fault_list faults;

	fault_list_init(&faults);
	assert_int_equal(digest_init(), ERR_OK);
	json_setup();
	assert_int_equal(config_load_text(&f.config, STR(settings), ".", &options, &faults), ERR_OK);
	fault_list_done(&faults);
	assert_int_equal(store_open(&f.store, STORE_BYTES_MIN), ERR_OK);
	assert_int_equal(engine_open(&f.engine, &f.config->rules, f.store, 1), ERR_OK);
	arena_init(&f.arena, block, sizeof(block));
	*state = &f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	engine_close(f->engine);
	store_close(f->store);
	config_free(f->config);
	return 0;
}

/* One question through decode, decision and encode; the number of heap calls it took. */
static size_t ask(struct fixture *f, const char *uri, const char *host, const char *token, unsigned *ret_status)
{
	const struct header_line headers[] = {
		{STR("X-Forwarded-For"), STR("6.6.6.6, 203.0.113.7, 10.1.1.1, 10.0.0.5")},
		{STR("X-Forwarded-Method"), STR("GET")},
		{STR("X-Forwarded-Uri"), str_from_z(uri)},
		{STR("X-Forwarded-Host"), str_from_z(host)},
		{STR("User-Agent"), STR("Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")},
		{STR("X-Internal-Token"), str_from_z(token)},
	};
	const struct http_question q = {.method = STR("GET"), .target = STR("/forward-auth"), .headers = headers,
		.n_headers = sizeof(headers) / sizeof(headers[0]), .caller_allowed = true};
	struct request req;
	struct verdict v;
	struct problem problem;
	struct http_answer answer;
	size_t before = calls;

	arena_reset(&f->arena);
	if (!forward_auth_decode(&q, &f->arena, &req, &problem))
		fail_msg("%s", problem.detail_z);
	engine_decide(engine_worker_at(f->engine, 0), &req, &f->arena, NS_PER_S, &v);
	forward_auth_encode(engine_rules(f->engine), &req, &v, &f->arena, &answer);
	*ret_status = answer.status;
	assert_false(f->arena.overflow);
	return calls - before;
}

/* source.address 203.0.113.7; GET / with one header; fields that are not read. */
static const char check_request[] = "\x0a\x38\x0a\x11\x0a\x0f\x0a\x0d\x12\x0b"
				    "203.0.113.7\x22\x23\x12\x21\x12\x03GET\x1a\x0b\x0a\x03x-a\x12\x04"
				    "some\x22\x01/R\x08HTTP/1.1Z\x00";

/* Unpacking takes everything from the arena, too. */
static void test_grpc_allocates_nothing(void **state)
{
	struct fixture *f = *state;
	struct request req;
	struct rpc_answer answer;
	struct verdict v;
	enum reason last = REASON_ALLOWED;

	for (int i = 0; i < 4; i++) {
		size_t before = calls;
		bool decoded;

		arena_reset(&f->arena);
		decoded = ext_authz_grpc_decode(STR(check_request), &f->arena, &req, &answer);
		engine_decide(engine_worker_at(f->engine, 0), &req, &f->arena, NS_PER_S, &v);
		ext_authz_grpc_encode(engine_rules(f->engine), &v, &f->arena, &answer);
		assert_int_equal(calls - before, 0);
		assert_true(decoded);
		assert_int_equal(answer.status, RPC_OK);
		last = v.reason;
	}
	assert_int_equal(req.n_headers, 1);
	assert_int_equal(last, REASON_RATE_LIMITED);
}

static void test_counter_counts(void **state)
{
	size_t before = calls;
	void *volatile p = malloc(1);

	(void)state;
	free(p);
	assert_int_equal(calls - before, 2);
}

static void test_decisions_allocate_nothing(void **state)
{
	static const struct {
		const char *uri, *host, *token;
		unsigned status;
	} rows[] = {
		{"/", "a.example", "", 200},
		{"/%2e%2e/A//b/./c;x=1?q", "A.Example:443", "", 200},
		{"/", "a.example", "", 429},
		{"/secret/x", "a.example", "", 403},
		{"/", "inner.example", "a guess of twenty bytes", 401},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned status;

		assert_int_equal(ask(*state, rows[i].uri, rows[i].host, rows[i].token, &status), 0);
		assert_int_equal(status, rows[i].status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counter_counts),
		cmocka_unit_test(test_decisions_allocate_nothing),
		cmocka_unit_test(test_grpc_allocates_nothing),
	};

	return cmocka_run_group_tests_name("alloc", tests, start, stop);
}
