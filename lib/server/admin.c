/* SPDX-License-Identifier: MIT */
/*
 * Which page a question means, and whether it may ask at all. A browser on this machine is the one stranger that can reach a
 * loopback port: it sends what any web page wants, but never a Host that is not in that page's address, and always an Origin
 * where the page could do harm. So both are judged before anything else.
 * POST /explain is read by the decoder of /check and judged by the decision's own code against the live buckets, as a peek.
 */
#include "server/admin.h"

#include "server/facts.h"
#include "server/write.h"

#include "adapter/adapter.h"
#include "adapter/explain.h"

#include <stdlib.h>

#define ANSWER_BYTES_FIRST ((size_t)16 * 1024)
#define ANSWER_BYTES_MAX ((size_t)16 * 1024 * 1024)

void admin_problem(struct admin *a, struct exchange *x)
{
	metrics_count_problem(a->own, x->problem.code);
	exchange_answer_problem(x);
}

static void refuse(struct admin *a, struct exchange *x, enum problem_code code, const char *detail_z)
{
	problem_set(&x->problem, code, "%s", detail_z);
	admin_problem(a, x);
}

void admin_answer(struct admin *a, struct exchange *x, const struct admin_body *body)
{
	struct text t = {.overflow = true};
	char *buffer = NULL;

	for (size_t bytes = a->answer_bytes; t.overflow && bytes <= ANSWER_BYTES_MAX; bytes *= 2) {
		free(buffer);
		buffer = malloc(bytes);
		if (buffer == NULL)
			break;
		a->answer_bytes = bytes;
		text_init(&t, buffer, bytes);
		body->write(&t, body->what);
	}
	if (buffer == NULL || t.overflow || x->arena.overflow) {
		free(buffer);
		arena_reset(&x->arena);
		refuse(a, x, PROBLEM_CANNOT_DECIDE, "no memory for the answer");
		return;
	}
	/* Only now, since what was written may have been a view of the question's body. */
	exchange_body_own(x, buffer, t.cap);
	x->answer.status = 200;
	x->answer.n_headers = 0;
	x->answer.body = text_view(&t);
	http_answer_add(&x->answer, STR("Content-Type"), body->type);
	http_answer_add(&x->answer, STR("Cache-Control"), STR("no-store"));
	http_answer_add(&x->answer, STR("X-Content-Type-Options"), STR("nosniff"));
	x->answered = true;
}

/* ---------------------------------------------------------------------------------------------------- explain */

struct explain_form {
	const struct ruleset *rules;
	const struct request *req;
	const struct explanation *explanation;
	struct arena *arena;
};

static void write_explanation(struct text *t, const void *what)
{
	const struct explain_form *f = what;

	explain_json(t, f->rules, f->req, f->explanation, f->arena);
}

static void explain(struct admin *a, struct exchange *x)
{
	struct explanation *e = arena_alloc(&x->arena, sizeof(*e));
	struct request req;
	struct explain_form form = {engine_rules(a->engine), &req, e, &x->arena};
	const struct admin_body body = {STR("application/json"), write_explanation, &form};

	if (e == NULL) {
		arena_reset(&x->arena);
		refuse(a, x, PROBLEM_CANNOT_DECIDE, "the question needs more workspace than there is");
		return;
	}
	x->question.caller_allowed = true;
	if (!adapter_http_of(DOOR_CHECK)->decode(&x->question, &x->arena, &req, &x->problem)) {
		admin_problem(a, x);
		return;
	}
	engine_explain(engine_worker_at(a->engine, 0), &req, &x->arena, loop_now(a->loop), e);
	admin_answer(a, x, &body);
}

/* ---------------------------------------------------------------------------------------------------- probe */

struct probe_form {
	struct probe_board *board;
	struct str nonce;
	ns now;
};

static void write_probe(struct text *t, const void *what)
{
	const struct probe_form *f = what;

	probe_read(f->board, f->nonce, f->now, t);
}

static void probe(struct admin *a, struct exchange *x)
{
	struct str path = http_target_path(x->question.target);
	struct probe_form form = {a->probes, str_from(path, sizeof("/probe/") - 1), loop_now(a->loop)};
	const struct admin_body body = {STR("application/json"), write_probe, &form};

	if (probe_nonce_valid(form.nonce))
		admin_answer(a, x, &body);
	else
		refuse(a, x, PROBLEM_OUT_OF_RANGE, "a nonce is 32 lower-case hex digits");
}

/* ---------------------------------------------------------------------------------------------------- facts */

static struct facts_source source(const struct admin *a)
{
	return (struct facts_source){a->config, a->reload, a->engine, loop_now(a->loop), a->started};
}

static void answer_facts(struct admin *a, struct exchange *x, struct facts *f, const struct admin_body *form)
{
	struct admin_body body = *form;

	body.what = f;
	if (f == NULL)
		refuse(a, x, PROBLEM_CANNOT_DECIDE, "no memory for the answer");
	else
		admin_answer(a, x, &body);
	facts_free(f);
}

static void status(struct admin *a, struct exchange *x)
{
	const struct admin_body body = {STR("application/json"), admin_write_status, NULL};
	const struct facts_source s = source(a);

	answer_facts(a, x, facts_new(&s), &body);
}

/* GET /top, or /top?rule=NAME. */
static void top(struct admin *a, struct exchange *x)
{
	const struct admin_body body = {STR("application/json"), admin_write_top, NULL};
	const struct ruleset *rules = engine_rules(a->engine);
	const struct facts_source s = source(a);
	struct str target = x->question.target;
	struct str query = str_from(target, http_target_path(target).len + 1), prefix = STR("rule=");
	size_t i = 0;

	if (query.len > 0 && !str_starts_with(query, prefix)) {
		refuse(a, x, PROBLEM_UNKNOWN_MEMBER, "the one parameter is rule=NAME");
		return;
	}
	while (i < rules->n_rules && !str_equal(rules->rules[i].name, str_from(query, prefix.len)))
		i++;
	if (query.len > 0 && i == rules->n_rules)
		refuse(a, x, PROBLEM_NOT_FOUND, "there is no rule of that name");
	else
		answer_facts(a, x, facts_new_top(&s, i), &body);
}

static void overview(struct admin *a, struct exchange *x)
{
	const struct admin_body body = {STR("text/html; charset=utf-8"), admin_write_page, NULL};
	const struct facts_source s = source(a);

	answer_facts(a, x, facts_new(&s), &body);
	/* Even a hole in the escaping would run nothing. */
	http_answer_add(&x->answer, STR("Content-Security-Policy"),
		STR("default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; "
		    "frame-ancestors 'none'"));
	http_answer_add(&x->answer, STR("Referrer-Policy"), STR("no-referrer"));
}

static void style(struct admin *a, struct exchange *x)
{
	const struct admin_body body = {STR("text/css; charset=utf-8"), admin_write_style, NULL};

	admin_answer(a, x, &body);
}

/* ---------------------------------------------------------------------------------------------------- pages */

enum { GET = 1, POST = 2, DELETE = 4 };

static const struct page {
	struct str path; /* with "/" at its end: and all that goes on from there */
	unsigned methods;
	struct str allow;
	bool takes_body;
	void (*answer)(struct admin *a, struct exchange *x);
} pages[] = {
	{{"/", 1}, GET, {"GET, HEAD", 9}, false, overview},
	{{"/style.css", 10}, GET, {"GET, HEAD", 9}, false, style},
	{{"/status", 7}, GET, {"GET, HEAD", 9}, false, status},
	{{"/top", 4}, GET, {"GET, HEAD", 9}, false, top},
	{{"/explain", 8}, POST, {"POST", 4}, true, explain},
	{{"/keys/", 6}, GET | DELETE, {"GET, HEAD, DELETE", 17}, false, admin_keys},
	{{"/probe/", 7}, GET, {"GET, HEAD", 9}, false, probe},
};

#define N_PAGES (sizeof(pages) / sizeof(pages[0]))

static unsigned method_bit(struct str method)
{
	if (str_equal(method, STR("GET")) || str_equal(method, STR("HEAD")))
		return GET;
	if (str_equal(method, STR("POST")))
		return POST;
	return str_equal(method, STR("DELETE")) ? DELETE : 0;
}

/* NULL, and the problem set, if there is none. */
static const struct page *page_find(struct exchange *x)
{
	struct str path = http_target_path(x->question.target);

	for (size_t i = 0; i < N_PAGES; i++) {
		const struct page *p = &pages[i];
		bool is_prefix = p->path.len > 1 && p->path.ptr[p->path.len - 1] == '/';

		if (is_prefix ? !str_starts_with(path, p->path) : !str_equal(path, p->path))
			continue;
		if (p->methods & method_bit(x->question.method))
			return p;
		problem_set(&x->problem, PROBLEM_METHOD_NOT_ALLOWED, "%.*s takes %.*s only", STR_ARG(p->path),
			STR_ARG(p->allow));
		x->problem.allow = p->allow;
		return NULL;
	}
	problem_set(&x->problem, PROBLEM_NOT_FOUND,
		"this listener has /, /status, /top, POST /explain, /keys/LIMIT/CLIENT and /probe/NONCE");
	return NULL;
}

/* "localhost" or a loopback literal, with or without a port. */
static bool host_is_local(struct str host)
{
	size_t colon = str_find(host, ':');
	struct endpoint e = {.is_unix = false};
	uint64_t port;

	if (str_equal_nocase(str_head(host, colon), STR("localhost")))
		return colon == host.len || str_to_u64(str_from(host, colon + 1), UINT16_MAX, &port);
	return ip_parse_with_port(&e.ip, host, NULL) && endpoint_is_local(&e);
}

/* False, and the problem set, where a web page may stand behind the question. */
static bool may_ask(const struct admin *a, struct exchange *x)
{
	const struct http_question *q = &x->question;
	const struct header_line *host;
	size_t count;

	if (a->is_unix)
		return true;
	host = http_header_find(q->headers, q->n_headers, STR("Host"), &count);
	if (host == NULL || !host_is_local(host->value)) {
		problem_set(&x->problem, PROBLEM_HOST_NOT_LOCAL,
			"Host must be localhost, 127.0.0.1 or [::1]: ask by the address itself");
		return false;
	}
	if (http_header_find(q->headers, q->n_headers, STR("Origin"), &count) != NULL) {
		problem_set(&x->problem, PROBLEM_ORIGIN_NOT_ALLOWED,
			"a question with an Origin comes from a web page, and none may ask here");
		return false;
	}
	return true;
}

static void finish(void *arg, struct exchange *x)
{
	struct admin *a = arg;
	const struct page *p;

	if (x->body_no_memory) {
		refuse(a, x, PROBLEM_CANNOT_DECIDE, "no memory for the body");
		return;
	}
	p = x->has_problem ? NULL : page_find(x);
	if (p == NULL)
		admin_problem(a, x);
	else
		p->answer(a, x);
}

static bool begin(void *arg, struct exchange *x)
{
	struct admin *a = arg;
	const struct page *p;

	p = may_ask(a, x) ? page_find(x) : NULL;
	x->has_problem = p == NULL;
	if (!x->body_announced)
		return false;
	if (p != NULL && p->takes_body && x->body_announced_bytes > x->pool->body_max_bytes)
		exchange_body_refuse(x);
	if (p != NULL && p->takes_body && !x->has_problem)
		return false;
	finish(a, x);
	return true;
}

struct http_service admin_service(struct admin *a)
{
	a->answer_bytes = ANSWER_BYTES_FIRST;
	return (struct http_service){begin, finish, a};
}
