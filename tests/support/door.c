/* SPDX-License-Identifier: MIT */
/*
 * The answer as one text shows order, repetitions and what is not there in one comparison.
 */
#include "door.h"

#include "base/json.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define ANSWER_TEXT_BYTES 2048

struct http_question door_question(
	const char *target_z, const char *lines_z, struct header_line lines[DOOR_LINES_MAX])
{
	struct http_question q = {.method = STR("GET"),
		.target = str_from_z(target_z),
		.headers = lines,
		.caller_allowed = true};
	struct str rest = str_from_z(lines_z);

	while (rest.len > 0) {
		struct str line = str_head(rest, str_find(rest, '\n'));
		size_t colon = str_find(line, ':');

		assert_true(q.n_headers < DOOR_LINES_MAX);
		lines[q.n_headers++] = (struct header_line){str_head(line, colon), str_from(line, colon + 2)};
		rest = str_from(rest, line.len + 1);
	}
	return q;
}

struct request door_decode(struct judge *j, enum door door, const struct http_question *q)
{
	struct problem problem;
	struct request req;

	assert_true(adapter_http_of(door)->decode(q, &j->arena, &req, &problem));
	assert_int_equal(req.door, door);
	assert_int_equal(req.cost, 1);
	assert_false(req.peek || req.id.said || req.token.said);
	return req;
}

static void assert_json(struct str body)
{
	struct json_fault fault;
	struct json *root;

	if (json_read(&root, body, &fault) != ERR_OK)
		fail_msg("%s: %.*s", fault.detail_z, STR_ARG(body));
	json_free(root);
	assert_true(str_ends_with(body, STR("}\n")));
}

struct str door_ask(struct judge *j, enum door door, const struct http_question *q)
{
	const struct request req = door_decode(j, door, q);
	struct http_answer answer;
	struct verdict v;
	struct text t;

	judge_decide(j, &req, &v);
	adapter_http_of(door)->encode(j->rules, &req, &v, &j->arena, &answer);
	text_init_arena(&t, &j->arena, ANSWER_TEXT_BYTES);
	text_u64(&t, answer.status);
	text_z(&t, " |");
	for (size_t i = 0; i < answer.n_headers; i++) {
		text_str(&t, answer.headers[i].name);
		text_z(&t, ": ");
		text_str(&t, answer.headers[i].value);
		text_char(&t, '|');
	}
	if (answer.body.len > 0) {
		assert_json(answer.body);
		text_char(&t, ' ');
		text_str(&t, str_head(answer.body, answer.body.len - 1));
	}
	assert_false(t.overflow || j->arena.overflow);
	return text_view(&t);
}

struct str door_lines(struct judge *j, const struct request *req, struct str name)
{
	struct text t;

	text_init_arena(&t, &j->arena, ANSWER_TEXT_BYTES);
	for (size_t i = 0; i < req->n_headers; i++) {
		if (!str_equal_nocase(req->headers[i].name, name))
			continue;
		text_char(&t, '[');
		text_str(&t, req->headers[i].value);
		text_char(&t, ']');
	}
	return text_view(&t);
}

void door_assert_text(struct str got, struct str wanted)
{
	if (!str_equal(got, wanted))
		fail_msg("\ngot    %.*s\nwanted %.*s", STR_ARG(got), STR_ARG(wanted));
}
