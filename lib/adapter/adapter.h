/* SPDX-License-Identifier: MIT */
/*
 * adapter: the HTTP doors. One file a door; a door translates and never judges.
 *
 * Model      decode turns a question into a request (or a problem), encode turns a verdict into an answer. A door reads only
 *            its own header family and settles what remote_addr is; the configured client header, the token headers and
 *            header keys are read by the core from all lines.
 * Ownership  Everything lies in the arena or is a view of the question.
 * Threads    Pure, but for what decode of /check allocates and frees inside one call.
 * Errors     decode: false and a problem. encode cannot fail; what does not fit leaves the arena overflown, which
 *            is the caller's to see (reason internal).
 */
#ifndef POSTERN_ADAPTER_ADAPTER_H
#define POSTERN_ADAPTER_ADAPTER_H

#include "adapter/http.h"
#include "adapter/problem.h"
#include "base/arena.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

struct adapter_http {
	enum door door;
	bool any_method; /* else POST only */
	bool takes_body; /* else a body that is announced is never waited for, and the connection is closed after it */
	bool (*decode)(const struct http_question *q, struct arena *a, struct request *ret,
		struct problem *ret_problem);
	void (*encode)(const struct ruleset *rules, const struct request *req, const struct verdict *v,
		struct arena *a, struct http_answer *ret);
};

/* The door of this method and target (for a prefix door any path below it), or NULL and a problem (404 that names the doors and the nearest, 405). */
const struct adapter_http *adapter_http_find(
	struct str method, struct str target, struct problem *ret_problem);

/* The adapter of a door (explain's --door), or NULL if the door does not speak HTTP. */
const struct adapter_http *adapter_http_of(enum door door);

/* The doors' own functions, for the table. */
bool check_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem);
void check_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret);
bool forward_auth_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem);
void forward_auth_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret);
bool auth_request_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem);
void auth_request_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret);
bool ext_authz_http_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem);
void ext_authz_http_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret);

#endif
