/* SPDX-License-Identifier: MIT */
/*
 * The two moments of a question. At the first one everything that shapes the answer is known but the body, so whether to wait
 * for that is settled there: on header doors never, since a length that leaked in from the client's request would swallow
 * the next client's question.
 * A refused caller learns only that. On a header door it is a verdict like any other, so that its gateway understands it; on
 * /check it is a problem, because the question was not read, and it is counted as a decision all the same.
 */
#include "server/doors.h"

#include "adapter/rpc.h"
#include "server/gate.h"

static void answer_problem(struct doors *d, struct exchange *x)
{
	metrics_count_problem(d->counters, x->problem.code);
	exchange_answer_problem(x);
}

/* Nothing may be made of an answer that is cut: whoever asked must not take it for an allow. */
static void answer_internal(struct doors *d, struct exchange *x)
{
	arena_reset(&x->arena);
	if (x->door->takes_body) {
		problem_set(&x->problem, PROBLEM_CANNOT_DECIDE,
			"the question needs more workspace than there is");
		answer_problem(d, x);
		return;
	}
	x->answer.status = reason_http(REASON_INTERNAL);
	x->answer.n_headers = 0;
	http_answer_add(&x->answer, STR("Content-Type"), STR("application/json"));
	http_answer_add(&x->answer, STR("Cache-Control"), STR("no-store"));
	x->answer.body = STR("{\"error\": \"internal\"}\n");
	x->answered = true;
}

/* A door that is not told an id by its protocol finds one in the header that the gateway writes, for the log. */
static void find_id(const struct doors *d, const struct exchange *x, struct request *req)
{
	const struct str name = d->config->request_id_header;
	const struct header_line *line;
	size_t count;

	if (name.len == 0 || req->id.said)
		return;
	line = http_header_find(x->question.headers, x->question.n_headers, name, &count);
	if (line != NULL)
		req->id = (struct fact){line->value, true};
}

static void decide(struct doors *d, struct exchange *x)
{
	struct request req = {.door = x->door->door,
		.fault = REASON_CALLER_NOT_ALLOWED,
		.remote_addr = x->peer->address,
		.cost = 1};
	struct verdict verdict;
	ns started = clock_monotonic_ns();

	if (x->question.caller_allowed && !x->door->decode(&x->question, &x->arena, &req, &x->problem)) {
		answer_problem(d, x);
		return;
	}
	find_id(d, x, &req);
	engine_decide(d->engine, &req, &x->arena, loop_now(d->loop), &verdict);
	probe_see(d->probes, &d->config->rules, &req, &verdict, loop_now(d->loop));
	if (req.fault == REASON_CALLER_NOT_ALLOWED && x->door->takes_body) {
		problem_set(&x->problem, PROBLEM_CALLER_NOT_ALLOWED,
			"the caller is not listed or showed no valid key");
		answer_problem(d, x);
	} else {
		x->door->encode(&d->config->rules, &req, &verdict, &x->arena, &x->answer);
		x->answered = true;
	}
	if (x->arena.overflow)
		answer_internal(d, x);
	metrics_observe_decision(d->counters, x->door->door, clock_monotonic_ns() - started);
}

static void finish(void *arg, struct exchange *x)
{
	struct doors *d = arg;

	if (x->body_no_memory) {
		problem_set(&x->problem, PROBLEM_CANNOT_DECIDE, "no memory for the body");
		x->has_problem = true;
	}
	if (x->has_problem)
		answer_problem(d, x);
	else
		decide(d, x);
}

static void hint_grpc(struct doors *d, const struct exchange *x)
{
	if (adapter_rpc_path_is_envoy(x->question.target) && log_limit_allows(&d->hints, loop_now(d->loop)))
		log_say(LOG_WARN, "grpc_over_http1",
			"a call of gRPC came over HTTP/1.1 to the http listener: point the cluster at the grpc listener and "
			"give it \"http2_protocol_options\"");
}

static bool begin(void *arg, struct exchange *x)
{
	struct doors *d = arg;
	bool waits, key_fits;

	key_fits = gate_key_take(d->config, x->lines, &x->question.n_headers);
	x->question.caller_allowed = gate_lists(d->config, x->peer) && key_fits;
	x->question.doors = d->config->rules.doors;
	x->door = adapter_http_find(x->question.method, x->question.target, &x->problem);
	x->has_problem = x->door == NULL;
	if (x->has_problem)
		hint_grpc(d, x);
	waits = !x->body_announced;
	if (!x->question.caller_allowed && x->door == NULL) {
		problem_set(&x->problem, PROBLEM_CALLER_NOT_ALLOWED,
			"the caller is not listed or showed no valid key");
		waits = false;
	} else if (x->door != NULL && x->door->takes_body) {
		if (x->question.caller_allowed && x->body_announced_bytes > x->pool->body_max_bytes)
			exchange_body_refuse(x);
		waits = x->question.caller_allowed && !x->has_problem;
	}
	if (waits)
		return false;
	finish(d, x);
	return true;
}

struct http_service doors_service(struct doors *d)
{
	return (struct http_service){begin, finish, d};
}
