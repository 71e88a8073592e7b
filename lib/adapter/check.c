/* SPDX-License-Identifier: MIT */
/*
 * POST /check: JSON in, JSON out, for programs of our own. Status 200 for both decisions: the question was fine, the answer
 * is in the body. A scan takes the usual question; what it does not take jansson reads, which defines the grammar. Its tree
 * is wiped and freed before decode returns.
 */
#include "adapter/adapter.h"

#include "adapter/answer.h"
#include "adapter/check_read.h"
#include "adapter/check_scan.h"

#include "base/json.h"
#include "base/text.h"

/* Absent is accepted and parameters are ignored; anything but JSON is refused. */
static bool content_type_fits(const struct http_question *q, struct problem *ret_problem)
{
	size_t count;
	const struct header_line *line =
		http_header_find(q->headers, q->n_headers, STR("Content-Type"), &count);

	if (count == 0 ||
		(count == 1 && str_equal_nocase(str_trim(str_head(line->value, str_find(line->value, ';'))),
				       STR("application/json"))))
		return true;
	problem_set(ret_problem, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
		"send application/json (with curl: --json '{...}' instead of --data)");
	return false;
}

static const enum problem_code problem_of_fault[] = {
	[JSON_FAULT_SYNTAX] = PROBLEM_BODY_NOT_JSON,
	[JSON_FAULT_UTF8] = PROBLEM_BODY_NOT_UTF8,
	[JSON_FAULT_DUPLICATE] = PROBLEM_DUPLICATE_MEMBER,
	[JSON_FAULT_DEPTH] = PROBLEM_BODY_TOO_DEEP,
	[JSON_FAULT_MEMORY] = PROBLEM_CANNOT_DECIDE,
};

bool check_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem)
{
	struct json_fault fault;
	struct json *root;
	bool ok;

	*ret = (struct request){.door = DOOR_CHECK, .fault = REASON_ALLOWED, .cost = 1};
	if (!q->caller_allowed) {
		ret->fault = REASON_CALLER_NOT_ALLOWED;
		return true;
	}
	if (!content_type_fits(q, ret_problem))
		return false;
	if (check_scan(q->body, a, ret))
		return true;
	if (json_read(&root, q->body, &fault) != ERR_OK) {
		problem_set(ret_problem, problem_of_fault[fault.kind], "%s", fault.detail_z);
		memcpy(ret_problem->pointer_z, fault.pointer_z, sizeof(ret_problem->pointer_z));
		ret_problem->line = fault.line;
		ret_problem->column = fault.column;
		return false;
	}
	ok = check_read(root, q->body, a, ret, ret_problem);
	json_free(root);
	return ok;
}

/* Not an answer: a caller that takes any 200 for one must not find one here. */
static void refuse_caller(struct arena *a, struct http_answer *ret)
{
	struct problem p;

	problem_set(&p, PROBLEM_CALLER_NOT_ALLOWED,
		"this caller is not listed in callers, or showed no valid key in X-Postern-Key");
	problem_encode(&p, a, ret);
}

void check_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret)
{
	struct text t;

	if (v->reason == REASON_CALLER_NOT_ALLOWED) {
		refuse_caller(a, ret);
		return;
	}
	text_init_arena(&t, a, ANSWER_BYTES);
	text_char(&t, '{');
	answer_members(&t, rules, req, v, a);
	text_z(&t, "}\n");
	a->overflow |= t.overflow;
	/* "Cannot decide" is the one verdict that is no answer. */
	ret->status = v->decision == DECISION_ERROR ? reason_http(v->reason) : 200;
	ret->n_headers = 0;
	ret->body = text_view(&t);
	http_answer_add(ret, STR("Content-Type"), STR("application/json"));
	http_answer_add(ret, STR("Cache-Control"), STR("no-store"));
}
