/* SPDX-License-Identifier: MIT */
/*
 * fetch: one GET, for the verbs that ask something of a running server.
 *
 * Model      One connection a question, HTTP/1.1, "Connection: close". The answer ends with the connection or with its
 *            Content-Length, whichever comes first.
 * Ownership  The caller frees what was read with fetch_free; body is a view of it.
 * Blocking   at most FETCH_TIMEOUT_MS for the whole exchange.
 * Errors     those of listen_connect; ERR_TIMEOUT; ERR_SYNTAX: the answer is no HTTP; ERR_RANGE: longer than allowed;
 *            ERR_CLOSED: nothing came.
 */
#ifndef POSTERN_CMD_FETCH_H
#define POSTERN_CMD_FETCH_H

#include "base/endpoint.h"
#include "base/err.h"
#include "base/json.h"
#include "core/request.h"

#include <stdbool.h>
#include <stddef.h>

#define FETCH_TIMEOUT_MS 5000
#define ADMIN_DEFAULT "127.0.0.1:9183"

struct fetch_question {
	const struct endpoint *endpoint;
	const struct ip *from; /* local address; may be NULL */
	struct str host, target;
	const struct header_line *headers;
	size_t n_headers;
	bool head_only; /* whatever comes behind the header is not waited for */
};

struct fetch_answer {
	unsigned status;
	struct str body;
	char *bytes;
	bool has_local;
	struct ip local; /* our end of the connection, if it was TCP */
};

MUST_USE enum err fetch(struct fetch_answer *ret, const struct fetch_question *q);
void fetch_free(struct fetch_answer *a);

/* GET target of an admin listener, which must answer 200 with JSON. Says on stderr what went wrong and returns an exit code. */
int fetch_admin(const char *verb_z, const struct endpoint *admin, struct str target, struct json **ret);

/* The admin listener's address, or EXIT_USAGE. */
int fetch_admin_address(const char *verb_z, const char *text_z, struct endpoint *ret);

#endif
