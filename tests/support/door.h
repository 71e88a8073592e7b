/* SPDX-License-Identifier: MIT */
/*
 * door: asks a header door and shows what it answers, for tests.
 *
 * Model      Header lines are given as one text, "Name: value\nName: value"; an answer becomes one text as well,
 *            "200 |Name: value|Name: value| body".
 * Ownership  What is returned lies in the judge's arena or is a view of what was given.
 * Errors     fail the test.
 */
#ifndef POSTERN_TESTS_DOOR_H
#define POSTERN_TESTS_DOOR_H

#include "adapter/adapter.h"

#include "../support/judge.h"

#define DOOR_LINES_MAX 16

/* A GET of target by an allowed caller; a value stands as it is behind the first ": ". */
struct http_question door_question(
	const char *target_z, const char *lines_z, struct header_line lines[DOOR_LINES_MAX]);

/* Decodes; the question must not be a problem, and the request must have nothing in it that no header door fills in. */
struct request door_decode(struct judge *j, enum door door, const struct http_question *q);

/* Decodes, decides and encodes. A body must be JSON and end in a newline, which is left out. */
struct str door_ask(struct judge *j, enum door door, const struct http_question *q);

/* The values of the request's lines of this name, each in brackets. */
struct str door_lines(struct judge *j, const struct request *req, struct str name);

void door_assert_text(struct str got, struct str wanted);

#endif
