/* SPDX-License-Identifier: MIT */
/*
 * The door of Caddy forward_auth, Traefik ForwardAuth, APISIX forward-auth and HAProxy's auth-request. These gateways write
 * X-Forwarded-For themselves, as its last entry over all lines, so that entry is remote_addr and the rest stays a header for
 * the client strategy to read. Only X-Forwarded-Method, -Uri, -Host and -Proto are believed besides: every other family
 * (X-Original-URL, X-Real-IP) arrives exactly as the client typed it.
 * Allow is 200 without a body, which every gateway of this family takes and none pays a connection for.
 */
#include "adapter/adapter.h"

#include "adapter/denial.h"

#include "core/headers.h"

#include <stddef.h>

/* Headers of this door that hold one value. */
static const struct {
	struct str name;
	bool required;
	bool has_fact;
	size_t fact; /* offset in struct request */
} single_headers[] = {
	{{"X-Forwarded-Method", 18}, true, true, offsetof(struct request, method)},
	{{"X-Forwarded-Uri", 15}, true, true, offsetof(struct request, path)},
	{{"X-Forwarded-Host", 16}, false, true, offsetof(struct request, host)},
	{{"X-Forwarded-Proto", 17}, false, false, 0},
};

static void refuse(struct request *req, struct str header)
{
	if (req->fault != REASON_ALLOWED)
		return;
	req->fault = REASON_DOOR_MISCONFIGURED;
	req->fault_header = header;
}

static void read_single_headers(const struct http_question *q, struct request *req)
{
	for (size_t i = 0; i < sizeof(single_headers) / sizeof(single_headers[0]); i++) {
		size_t count;
		const struct header_line *line =
			http_header_find(q->headers, q->n_headers, single_headers[i].name, &count);

		if (count > 1 || (count == 0 && single_headers[i].required))
			refuse(req, single_headers[i].name);
		else if (count == 1 && single_headers[i].has_fact)
			*(struct fact *)((char *)req + single_headers[i].fact) =
				(struct fact){line->value, true};
	}
}

/* Takes the last entry of the last X-Forwarded-For line as remote_addr; a line left without entries disappears. */
static void consume_own_entry(const struct http_question *q, struct header_line *lines, struct request *req)
{
	static const struct str name = {"X-Forwarded-For", 15};
	size_t last = q->n_headers, comma, n = 0;
	struct str value, rest = STR("");

	for (size_t i = 0; i < q->n_headers; i++) {
		if (str_equal_nocase(q->headers[i].name, name))
			last = i;
	}
	if (last == q->n_headers) {
		refuse(req, name);
		return;
	}
	value = q->headers[last].value;
	comma = str_find_last(value, ',');
	if (comma < value.len)
		rest = str_trim(str_head(value, comma));
	req->remote_addr = str_trim(comma < value.len ? str_from(value, comma + 1) : value);
	for (size_t i = 0; i < q->n_headers; i++) {
		if (i != last)
			lines[n++] = q->headers[i];
		else if (rest.len > 0)
			lines[n++] = (struct header_line){q->headers[i].name, rest};
	}
	req->headers = lines;
	req->n_headers = n;
}

bool forward_auth_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem)
{
	struct header_line *lines = arena_array(a, q->n_headers, sizeof(*lines));

	*ret = (struct request){.door = DOOR_FORWARD_AUTH, .fault = REASON_ALLOWED, .cost = 1};
	if (lines == NULL) {
		problem_set(
			ret_problem, PROBLEM_HEADERS_TOO_LARGE, "more header lines than there is room for");
		return false;
	}
	if (!q->caller_allowed)
		ret->fault = REASON_CALLER_NOT_ALLOWED;
	consume_own_entry(q, lines, ret);
	read_single_headers(q, ret);
	return true;
}

void forward_auth_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret)
{
	struct header_line lines[HEADERS_CLIENT_MAX + HEADERS_UPSTREAM];
	size_t n = headers_for_client(rules, v, a, lines);

	(void)req;
	ret->status = reason_http(v->reason);
	ret->n_headers = 0;
	ret->body = STR("");
	http_answer_add(ret, STR("Cache-Control"), STR("no-store"));
	if (v->decision == DECISION_ALLOW) {
		headers_for_upstream(v, a, lines + n);
		n += HEADERS_UPSTREAM;
	} else {
		http_answer_add(ret, STR("Content-Type"), STR("application/json"));
		ret->body = denial_body(v, a);
	}
	for (size_t i = 0; i < n; i++)
		http_answer_add(ret, lines[i].name, lines[i].value);
}
