/* SPDX-License-Identifier: MIT */
/*
 * The door of Caddy forward_auth, Traefik ForwardAuth, APISIX forward-auth and HAProxy's auth-request. These gateways write
 * X-Forwarded-For themselves, as its last entry over all lines, so that entry is remote_addr and the rest stays a header for
 * the client strategy to read. Only X-Forwarded-Method, -Uri, -Host and -Proto are believed besides: every other family
 * (X-Original-URL, X-Real-IP) arrives exactly as the client typed it.
 * Allow is 200 without a body, which every gateway of this family takes and none pays a connection for.
 */
#include "adapter/adapter.h"

#include "adapter/header_door.h"

bool forward_auth_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem)
{
	struct header_door d;
	struct str proto;

	if (!header_door_start(&d, q, DOOR_FORWARD_AUTH, a, ret, ret_problem))
		return false;
	header_door_take_last_entry(&d, DOOR_HEADER_FORWARD_AUTH_FOR);
	header_door_fact(&d, DOOR_HEADER_FORWARD_AUTH_METHOD, true, &ret->method);
	header_door_fact(&d, DOOR_HEADER_FORWARD_AUTH_URI, true, &ret->path);
	header_door_fact(&d, DOOR_HEADER_FORWARD_AUTH_HOST, false, &ret->host);
	/* Nothing depends on it; twice means that one of the two is not the gateway's. */
	(void)header_door_value(&d, DOOR_HEADER_FORWARD_AUTH_PROTO, false, &proto);
	return true;
}

void forward_auth_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret)
{
	(void)req;
	header_door_answer(rules, v, a, ret);
}
