/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the body of a /check question. What the scan takes the JSON reader must take too, as an equal request. Whatever
 * the door makes of a body, problem, answer or explanation, is a JSON text again, and told problems lie inside the body.
 */
#include "fuzz.h"

#include "adapter/adapter.h"
#include "adapter/check_read.h"
#include "adapter/check_scan.h"
#include "adapter/explain.h"
#include "base/json.h"
#include "base/must.h"
#include "config/config.h"
#include "store/store.h"

#include <stdlib.h>

#define ARENA_BYTES ((size_t)1 << 20)
#define BODY_BYTES_MAX ((size_t)16 * 1024)

static const struct request defaults = {.door = DOOR_CHECK, .fault = REASON_ALLOWED, .cost = 1};

static struct arena arena, other_arena;
static struct config *config;
static struct store *store;
static ns now = NS_PER_S;

static void start(void)
{
	const struct config_options options = {.without_secrets = true};
	struct fault_list faults;

	json_setup();
	must(digest_init() == ERR_OK);
	fault_list_init(&faults);
	must(config_load_text(&config, STR("{}"), ".", &options, &faults) == ERR_OK);
	fault_list_done(&faults);
	must(store_open(&store, STORE_BYTES_MIN) == ERR_OK);
	arena_init(&arena, malloc(ARENA_BYTES), ARENA_BYTES);
	arena_init(&other_arena, malloc(ARENA_BYTES), ARENA_BYTES);
}

static void must_be_json(struct str text)
{
	struct json_fault fault;
	struct json *root;

	must(json_read(&root, text, &fault) == ERR_OK);
	json_free(root);
}

static bool facts_equal(const struct fact *a, const struct fact *b)
{
	return a->said == b->said && str_equal(a->text, b->text);
}

static void must_be_equal(const struct request *a, const struct request *b)
{
	must(a->door == b->door && a->fault == b->fault && a->cost == b->cost && a->peek == b->peek);
	must(str_equal(a->remote_addr, b->remote_addr));
	must(facts_equal(&a->token, &b->token) && facts_equal(&a->method, &b->method));
	must(facts_equal(&a->host, &b->host) && facts_equal(&a->path, &b->path) &&
		facts_equal(&a->id, &b->id));
	must(a->n_headers == b->n_headers);
	for (size_t i = 0; i < a->n_headers; i++) {
		must(str_equal(a->headers[i].name, b->headers[i].name));
		must(str_equal(a->headers[i].value, b->headers[i].value));
	}
}

static void compare_readers(struct str body)
{
	struct request fast = defaults, slow = defaults;
	struct json_fault fault;
	struct problem problem;
	struct json *root;

	if (!check_scan(body, &arena, &fast))
		return;
	must(json_read(&root, body, &fault) == ERR_OK);
	must(check_read(root, body, &other_arena, &slow, &problem));
	json_free(root);
	must_be_equal(&fast, &slow);
}

static void judge(const struct request *req, struct trace *trace, struct plan *ret_plan, struct verdict *ret)
{
	struct taking takings[CHARGES_MAX];

	decide_plan(&config->rules, req, &arena, trace, ret_plan);
	if (!ret_plan->is_final)
		store_take(store, ret_plan->charges, ret_plan->n_charges, now++, takings);
	decide_conclude(&config->rules, req, ret_plan, takings, ret);
}

static void answer(const struct request *req)
{
	static struct explanation e;
	struct http_answer a;
	struct text t;

	judge(req, NULL, &e.plan, &e.verdict);
	check_encode(&config->rules, req, &e.verdict, &arena, &a);
	must(!arena.overflow && a.status == 200 && a.n_headers <= HTTP_ANSWER_HEADERS_MAX);
	must_be_json(a.body);
	judge(req, &e.trace, &e.plan, &e.verdict);
	text_init_arena(&t, &arena, ARENA_BYTES / 2);
	explain_json(&t, &config->rules, req, &e, &arena);
	must(!arena.overflow && !t.overflow);
	must_be_json(text_view(&t));
}

static void refuse(struct str body, const struct problem *problem)
{
	struct http_answer a;

	must(problem->line >= 1 && problem->column >= 1 && problem->column <= body.len + 1);
	problem_encode(problem, &arena, &a);
	must(!arena.overflow && a.status >= 400);
	must_be_json(a.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_question q = {.body = {(const char *)data, size}, .caller_allowed = true};
	struct problem problem;
	struct request req;

	if (config == NULL)
		start();
	if (size > BODY_BYTES_MAX)
		return 0;
	arena_reset(&arena);
	arena_reset(&other_arena);
	compare_readers(q.body);
	if (check_decode(&q, &arena, &req, &problem))
		answer(&req);
	else
		refuse(q.body, &problem);
	return 0;
}
