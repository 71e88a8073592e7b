/* SPDX-License-Identifier: MIT */
/*
 * explain: the reasoning behind one decision, as JSON and in words.
 *
 * Model      JSON is the /check answer with one more member "explain": address, reason, class (decided, undecided), key,
 *            steps (peer, hops from the right, fallback), what was not looked at, rule by rule, other_reading (of the path, where
 *            that blocks), bucket levels. Words say the same in sentences, one a line, beginning with the answer.
 *            Raw text is hostile: cut to 64 bytes and escaped.
 * Threads    Pure.
 * Errors     the text's overflow mark.
 */
#ifndef POSTERN_ADAPTER_EXPLAIN_H
#define POSTERN_ADAPTER_EXPLAIN_H

#include "base/arena.h"
#include "base/text.h"
#include "core/decide.h"

/* a: workspace for header values. */
void explain_json(struct text *t, const struct ruleset *rules, const struct request *req,
	const struct explanation *e, struct arena *a);
void explain_words(
	struct text *t, const struct ruleset *rules, const struct request *req, const struct explanation *e);

/* The members of "explain" that tell how the client was found, without braces. */
void explain_client_json(
	struct text *t, const struct ruleset *rules, const struct client *c, const struct client_trace *trace);

#endif
