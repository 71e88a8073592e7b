/* SPDX-License-Identifier: MIT */
/*
 * One way to read and one way to answer for every gateway that asks with header lines, so that a cure for one is a cure for
 * all. The last entry of X-Forwarded-For is the only one that nobody before the gateway can have written, provided the
 * gateway writes it: which door believes that is the door's own business, and no door tries a second header.
 * A denial goes to the client as it is behind most gateways: it tells the reason and the wait, and nothing of rule, identity
 * or client.
 */
#include "adapter/header_door.h"

#include "adapter/denial.h"
#include "adapter/hop.h"
#include "core/headers.h"

bool header_door_start(struct header_door *d, const struct http_question *q, enum door door, struct arena *a,
	struct request *ret, struct problem *ret_problem)
{
	struct header_line *lines = arena_array(a, q->n_headers, sizeof(*lines));

	if (lines == NULL) {
		problem_set(
			ret_problem, PROBLEM_HEADERS_TOO_LARGE, "more header lines than there is room for");
		return false;
	}
	if (q->n_headers > 0)
		memcpy(lines, q->headers, q->n_headers * sizeof(*lines));
	*ret = (struct request){.door = door,
		.fault = q->caller_allowed ? REASON_ALLOWED : REASON_CALLER_NOT_ALLOWED,
		.headers = lines,
		.n_headers = q->n_headers,
		.cost = 1};
	*d = (struct header_door){ret, lines};
	return true;
}

void header_door_refuse(struct header_door *d, enum door_header h)
{
	if (d->req->fault != REASON_ALLOWED)
		return;
	d->req->fault = REASON_DOOR_MISCONFIGURED;
	d->req->fault_header = door_header_name(h);
}

/* The index of the only line, or the number of lines where it is missing or comes twice. */
static size_t find_single(struct header_door *d, enum door_header h, bool required)
{
	const struct request *req = d->req;
	size_t count;
	const struct header_line *line =
		http_header_find(req->headers, req->n_headers, door_header_name(h), &count);

	if (count > 1 || (count == 0 && required))
		header_door_refuse(d, h);
	return count == 1 ? (size_t)(line - req->headers) : req->n_headers;
}

bool header_door_value(struct header_door *d, enum door_header h, bool required, struct str *ret)
{
	size_t i = find_single(d, h, required);

	if (i == d->req->n_headers)
		return false;
	*ret = d->lines[i].value;
	return true;
}

void header_door_fact(struct header_door *d, enum door_header h, bool required, struct fact *ret)
{
	ret->said = header_door_value(d, h, required, &ret->text);
}

void header_door_take_last_entry(struct header_door *d, enum door_header h)
{
	if (!hop_consume_last(d->lines, &d->req->n_headers, &d->req->remote_addr))
		header_door_refuse(d, h);
}

void header_door_take_remote_addr(struct header_door *d, enum door_header h)
{
	size_t n = d->req->n_headers, i = find_single(d, h, true);

	if (i == n)
		return;
	d->req->remote_addr = d->lines[i].value;
	memmove(&d->lines[i], &d->lines[i + 1], (n - i - 1) * sizeof(d->lines[0]));
	d->req->n_headers = hop_consume_equal(d->lines, n - 1, d->req->remote_addr);
}

void header_door_lines(
	const struct ruleset *rules, const struct verdict *v, struct arena *a, struct http_answer *ret)
{
	struct header_line lines[HEADERS_CLIENT_MAX + HEADERS_UPSTREAM];
	size_t n = headers_for_client(rules, v, a, lines);

	if (v->decision == DECISION_ALLOW) {
		headers_for_upstream(v, a, lines + n);
		n += HEADERS_UPSTREAM;
	}
	ret->status = reason_http(v->reason);
	ret->body = STR("");
	ret->n_headers = 0;
	http_answer_add(ret, STR("Cache-Control"), STR("no-store"));
	for (size_t i = 0; i < n; i++)
		http_answer_add(ret, lines[i].name, lines[i].value);
}

void header_door_answer(
	const struct ruleset *rules, const struct verdict *v, struct arena *a, struct http_answer *ret)
{
	header_door_lines(rules, v, a, ret);
	if (v->decision == DECISION_ALLOW)
		return;
	http_answer_add(ret, STR("Content-Type"), STR("application/json"));
	ret->body = denial_body(v, a);
}
