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

/* ret holds defaults already and is completed. */
bool check_read(const struct json *root, struct str body, struct arena *a, struct request *ret,
	struct problem *ret_problem);

#endif
