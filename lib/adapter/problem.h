/* SPDX-License-Identifier: MIT */
/*
 * problem: a malformed question, told as RFC 9457 application/problem+json. Rows of api/problems.def.
 *
 * Model      code is stable; pointer, line and column say where; detail is one sentence in plain ASCII that never repeats a
 *            value of the input. Whoever gets a problem has no decision and must deny or apply its own failure mode.
 * Threads    confined.
 */
#ifndef POSTERN_ADAPTER_PROBLEM_H
#define POSTERN_ADAPTER_PROBLEM_H

#include "adapter/http.h"
#include "base/arena.h"
#include "base/json.h"

enum problem_code {
#define PROBLEM(id, code, http, title) PROBLEM_##id,
#include "problems.def"
#undef PROBLEM
	PROBLEM_COUNT
};

struct problem {
	enum problem_code code;
	char pointer_z[JSON_POINTER_BYTES]; /* "" where there is no place in a body */
	unsigned line, column; /* 0: unknown */
	char detail_z[256];
	struct str allow; /* 405: the methods; else empty */
};

/* Fills the fields that matter; the rest is set to "nothing". detail is printf's format. */
void problem_set(struct problem *p, enum problem_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

struct str problem_word(enum problem_code code);
unsigned problem_http(enum problem_code code);

/* The answer, body included. What does not fit leaves the arena overflown. */
void problem_encode(const struct problem *p, struct arena *a, struct http_answer *ret);

#endif
