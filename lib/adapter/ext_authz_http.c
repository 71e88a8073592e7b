/* SPDX-License-Identifier: MIT */
/*
 * The door of Envoy's ext_authz over HTTP and of what is built on it (Istio, Emissary, Gateway API). Envoy asks with the
 * client's own method, its path behind a prefix, and its Host, so every path below the prefix is a check, whatever it is
 * called: the application may have a /livez and a /metrics of its own.
 * Envoy says nothing of the client's address unless it is configured to: either it adds X-Postern-Remote-Addr, which
 * overwrites a client's copy, or, where doors.ext_authz says so, the last X-Forwarded-For entry counts. Never one for want
 * of the other: the one that Envoy does not write is the client's to forge.
 * Only 200 is an allow to Envoy, and 5xx is a failure to it that its configuration may let pass.
 */
#include "adapter/adapter.h"

#include "adapter/header_door.h"
#include "base/text.h"
#include "core/headers.h"

bool ext_authz_http_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem)
{
	const struct str prefix = door_path(
		DOOR_EXT_AUTHZ_HTTP); /* ends in a slash, which is the path's own, and an asterisk */
	const struct header_line *host;
	struct header_door d;
	size_t n_hosts;

	if (!header_door_start(&d, q, DOOR_EXT_AUTHZ_HTTP, a, ret, ret_problem))
		return false;
	if (q->doors.ext_authz == REMOTE_ADDR_FROM_HEADER)
		header_door_take_remote_addr(&d, DOOR_HEADER_EXT_AUTHZ_ADDR);
	else
		header_door_take_last_entry(&d, DOOR_HEADER_EXT_AUTHZ_FOR);
	ret->method = (struct fact){q->method, true};
	ret->path = (struct fact){str_from(q->target, prefix.len - 2), true};
	host = http_header_find(q->headers, q->n_headers, STR("Host"), &n_hosts);
	if (n_hosts == 1)
		ret->host = (struct fact){host->value, true};
	return true;
}

/* "X-Internal-Token, Authorization", which Envoy strips from the request before it goes on. */
static struct str removed(const struct ruleset *rules, const struct verdict *v, struct arena *a)
{
	struct str names[TOKEN_HEADERS_MAX];
	size_t n = headers_to_remove(rules, v, names), bytes = 0;
	struct text t;

	for (size_t i = 0; i < n; i++)
		bytes += names[i].len + 2;
	text_init_arena(&t, a, bytes);
	for (size_t i = 0; i < n; i++) {
		text_z(&t, i == 0 ? "" : ", ");
		text_str(&t, names[i]);
	}
	return text_view(&t);
}

void ext_authz_http_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret)
{
	struct str names;

	(void)req;
	header_door_answer(rules, v, a, ret);
	if (v->decision != DECISION_ALLOW)
		return;
	names = removed(rules, v, a);
	if (names.len > 0)
		http_answer_add(ret, STR("X-Envoy-Auth-Headers-To-Remove"), names);
}
