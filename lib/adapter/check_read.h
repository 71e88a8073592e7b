/* SPDX-License-Identifier: MIT */
/*
 * check_read: from the JSON tree of a /check question to a request.
 *
 * Ownership  The request's slices lie in the arena; the tree may be freed afterwards.
 * Threads    confined.
 * Errors     false and a problem with its place in body.
 * Limits     256 header lines, an id of 256 bytes, a cost of 1 to 1000000.
 */
#ifndef POSTERN_ADAPTER_CHECK_READ_H
#define POSTERN_ADAPTER_CHECK_READ_H

#include "adapter/problem.h"
#include "base/arena.h"
#include "base/json.h"
#include "core/request.h"

enum check_member {
	CHECK_REMOTE_ADDR,
	CHECK_HEADERS,
	CHECK_TOKEN,
	CHECK_METHOD,
	CHECK_HOST,
	CHECK_PATH,
	CHECK_COST,
	CHECK_PEEK,
	CHECK_ID,
	CHECK_MEMBER_COUNT
};

#define CHECK_ID_BYTES_MAX 256

/* The member of this name, or CHECK_MEMBER_COUNT. */
enum check_member check_member_find(struct str name);

/* ret holds defaults already and is completed. */
bool check_read(const struct json *root, struct str body, struct arena *a, struct request *ret,
	struct problem *ret_problem);

#endif
