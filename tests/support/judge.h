/* SPDX-License-Identifier: MIT */
/*
 * judge: decisions without server, engine or clock, for tests of what stands around them.
 *
 * Model      A configuration given as text (single quotes stand for double ones), an empty store, and a time that the
 *            test sets.
 * Ownership  judge_open and judge_close; everything else lies in the judge's arena until judge_forget.
 * Errors     fail the test.
 */
#ifndef POSTERN_TESTS_JUDGE_H
#define POSTERN_TESTS_JUDGE_H

#include "base/arena.h"
#include "config/config.h"
#include "core/decide.h"
#include "store/store.h"

struct judge {
	struct config *config;
	const struct ruleset *rules;
	struct store *store;
	ns now;
	struct arena arena;
	char *block;
};

void judge_open(struct judge *j, const char *config_z);
void judge_close(struct judge *j);

/* Empties the arena. */
void judge_forget(struct judge *j);

/* A copy in the arena with double quotes for single ones. */
struct str judge_quotes(struct judge *j, const char *text_z);

void judge_decide(struct judge *j, const struct request *req, struct verdict *ret);

/* The same with its reasoning, taking nothing. */
void judge_explain(struct judge *j, const struct request *req, struct explanation *ret);

#endif
