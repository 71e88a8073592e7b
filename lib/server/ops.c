/* SPDX-License-Identifier: MIT */
/*
 * A scrape is written into one buffer, twice as large each time it did not fit; the size that did is remembered, so that
 * this happens once. Neither probe depends on the store or on anything outside: a probe that fails with something that all
 * instances share restarts all of them at once.
 */
#include "server/ops.h"

#include "base/text.h"

#include <stdbool.h>

#define SCRAPE_BYTES_FIRST ((size_t)32 * 1024)
#define SCRAPE_BYTES_MAX ((size_t)16 * 1024 * 1024)

static void answer_text(struct exchange *x, unsigned status, struct str type, struct str body)
{
	x->answer.status = status;
	x->answer.n_headers = 0;
	x->answer.body = body;
	http_answer_add(&x->answer, STR("Content-Type"), type);
	http_answer_add(&x->answer, STR("Cache-Control"), STR("no-store"));
	x->answered = true;
}

static void answer_plain(struct exchange *x, unsigned status, struct str body)
{
	answer_text(x, status, STR("text/plain; charset=utf-8"), body);
}

static void livez(struct ops *o, struct exchange *x)
{
	(void)o;
	answer_plain(x, 200, STR("ok\n"));
}

static void readyz(struct ops *o, struct exchange *x)
{
	if (atomic_load(o->draining))
		answer_plain(x, 503, STR("draining\n"));
	else
		answer_plain(x, 200, STR("ok\n"));
}

static void scrape(struct ops *o, struct exchange *x)
{
	struct text t = {.overflow = true};

	for (size_t bytes = o->scrape_bytes; t.overflow && bytes <= SCRAPE_BYTES_MAX; bytes *= 2) {
		char *buffer = exchange_body_heap(x, bytes);

		if (buffer == NULL)
			break;
		o->scrape_bytes = bytes;
		text_init(&t, buffer, bytes);
		metrics_write(&t, o->counters, o->n_counters, o->connections);
		reload_metrics_write(o->reload, &t);
		engine_metrics_write(o->engine, &t, loop_now(o->loop), clock_wall_ns());
	}
	if (t.overflow)
		answer_plain(x, 503, STR("no memory\n"));
	else
		answer_text(x, 200, STR("text/plain; version=0.0.4; charset=utf-8"), text_view(&t));
}

static const struct {
	struct str path;
	void (*answer)(struct ops *o, struct exchange *x);
} pages[] = {
	{{"/livez", 6}, livez},
	{{"/readyz", 7}, readyz},
	{{"/metrics", 8}, scrape},
};

static void answer_problem(struct ops *o, struct exchange *x)
{
	metrics_count_problem(o->own, x->problem.code);
	exchange_answer_problem(x);
}

static void finish(void *arg, struct exchange *x)
{
	struct ops *o = arg;
	const struct http_question *q = &x->question;
	struct str path = http_target_path(q->target);

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		if (!str_equal(path, pages[i].path))
			continue;
		if (str_equal(q->method, STR("GET")) || str_equal(q->method, STR("HEAD"))) {
			pages[i].answer(o, x);
			return;
		}
		problem_set(&x->problem, PROBLEM_METHOD_NOT_ALLOWED, "%.*s takes GET and HEAD only",
			STR_ARG(path));
		x->problem.allow = STR("GET, HEAD");
		answer_problem(o, x);
		return;
	}
	problem_set(&x->problem, PROBLEM_NOT_FOUND, "this listener has /livez, /readyz and /metrics");
	answer_problem(o, x);
}

static bool begin(void *arg, struct exchange *x)
{
	struct ops *o = arg;

	if (!x->body_announced)
		return false;
	finish(o, x);
	return true;
}

struct http_service ops_service(struct ops *o)
{
	o->scrape_bytes = SCRAPE_BYTES_FIRST;
	return (struct http_service){begin, finish, o};
}
