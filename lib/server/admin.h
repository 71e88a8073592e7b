/* SPDX-License-Identifier: MIT */
/*
 * admin: the service of the admin listener: what a running instance knows, for its operator, on this machine only.
 *
 * Model      Reads; the one thing that changes anything is forgiving a bucket. On TCP a question must name this machine in
 *            Host (localhost or a loopback literal) and come from no web page (no Origin), or a page that a browser here
 *            shows could ask through a name that it points at 127.0.0.1. A Unix socket is guarded by its mode.
 *            The size of an answer depends on the configuration and on fixed bounds, never on how many clients there are.
 * Ownership  Everything struct admin points at outlives it.
 * Threads    confined to worker 0; reads what others write.
 * Blocking   on the locks of store, watch and probe board; counts the store's entries for a status.
 * Errors     an answer without memory is 503.
 */
#ifndef POSTERN_SERVER_ADMIN_H
#define POSTERN_SERVER_ADMIN_H

#include "config/config.h"
#include "engine/engine.h"
#include "io/loop.h"
#include "server/http.h"
#include "server/metrics.h"
#include "server/probe.h"
#include "server/reload.h"

#include <stdbool.h>
#include <stddef.h>

struct admin {
	const struct config *config; /* in force */
	const struct reload_status *reload;
	const struct loop *loop;
	struct engine *engine;
	struct server_counters *own;
	struct probe_board *probes;
	bool is_unix;
	ns started; /* on the loop's clock */
	size_t answer_bytes; /* that the last long answer fitted into */
};

struct http_service admin_service(struct admin *a);

/* For the files of admin only. */

/* Writes what into t; called again with twice the room until it fits. */
struct admin_body {
	struct str type; /* Content-Type */
	void (*write)(struct text *t, const void *what);
	const void *what;
};

void admin_answer(struct admin *a, struct exchange *x, const struct admin_body *body);

/* Answers with the problem that has been set in x. */
void admin_problem(struct admin *a, struct exchange *x);

void admin_keys(struct admin *a, struct exchange *x);

/* What struct facts holds: as JSON, as the lists alone, and as a page with its style. */
void admin_write_status(struct text *t, const void *facts);
void admin_write_top(struct text *t, const void *facts);
void admin_write_page(struct text *t, const void *facts);
void admin_write_style(struct text *t, const void *nothing);

#endif
