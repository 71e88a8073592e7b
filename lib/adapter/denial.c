/* SPDX-License-Identifier: MIT */
/*
 * The body is meant for programs of the refused client. What it does not say is meant, too: a client that learns which rule
 * or which address refused it learns how to get around that.
 */
#include "adapter/denial.h"

#include "base/text.h"
#include "core/headers.h"

#define DENIAL_BYTES 512

struct str denial_body(const struct verdict *v, struct arena *a)
{
	uint64_t retry_after_s = headers_retry_after_s(v);
	struct text t;

	text_init_arena(&t, a, DENIAL_BYTES);
	text_z(&t, "{\"error\": ");
	text_json(&t, reason_word(v->reason));
	if (retry_after_s > 0) {
		text_z(&t, ", \"retry_after\": ");
		text_u64(&t, retry_after_s);
	}
	if (v->reason == REASON_DOOR_MISCONFIGURED) {
		text_z(&t, ", \"detail\": \"the header ");
		text_str(&t, v->fault_header);
		text_z(&t, " is missing or comes twice\"");
	}
	text_z(&t, "}\n");
	a->overflow |= t.overflow;
	return text_view(&t);
}
