/* SPDX-License-Identifier: MIT */
/*
 * request: what the asker told us, uninterpreted. Every door reduces its protocol to this.
 *
 * Model      Facts that were not said are absent, never an empty default: they match no rule. The door has settled
 *            remote_addr and removed the header entry that it took it from; everything after is the same code.
 * Ownership  Views into the door's buffers; valid until the verdict has been encoded.
 * Threads    confined.
 * Limits     any byte may stand in any slice.
 */
#ifndef POSTERN_CORE_REQUEST_H
#define POSTERN_CORE_REQUEST_H

#include "core/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct header_line {
	struct str name, value; /* the value without its outer white space where the transport has cut it */
};

struct fact {
	struct str text;
	bool said;
};

#define REQUEST_COST_MAX 1000000u

struct request {
	enum door door;

	/* REASON_ALLOWED: the question may be judged. Else the door or the callers gate has already refused it:
	 * REASON_CALLER_NOT_ALLOWED, or REASON_DOOR_MISCONFIGURED with the header that is missing or doubled. */
	enum reason fault;
	struct str fault_header;

	struct str remote_addr; /* raw text; empty or odd is for the core to judge */
	const struct header_line *headers;
	size_t n_headers;

	struct fact token; /* said: the token headers are not looked at */
	struct fact method, host;
	struct fact path; /* as sent, with its query */

	uint32_t cost; /* 1 to REQUEST_COST_MAX */
	bool peek;     /* decide without taking */
	struct fact id;
};

#endif
