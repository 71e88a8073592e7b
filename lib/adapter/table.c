/* SPDX-License-Identifier: MIT */
/*
 * The doors that speak HTTP, and the way from a request line to one of them. A path that is no door is told so and told the
 * nearest one; it is never an answer that a gateway could take for an allow.
 */
#include "adapter/adapter.h"

#include "adapter/rpc.h"

#include "base/text.h"

static const struct adapter_http doors[] = {
	{DOOR_CHECK, .any_method = false, .takes_body = true, check_decode, check_encode},
	{DOOR_FORWARD_AUTH, .any_method = true, .takes_body = false, forward_auth_decode,
		forward_auth_encode},
	{DOOR_AUTH_REQUEST, .any_method = true, .takes_body = false, auth_request_decode,
		auth_request_encode},
	{DOOR_EXT_AUTHZ_HTTP, .any_method = true, .takes_body = false, ext_authz_http_decode,
		ext_authz_http_encode},
};

#define N_DOORS (sizeof(doors) / sizeof(doors[0]))

const struct adapter_http *adapter_http_of(enum door door)
{
	for (size_t i = 0; i < N_DOORS; i++) {
		if (doors[i].door == door)
			return &doors[i];
	}
	return NULL;
}

static void set_not_found(struct str path, struct problem *ret_problem)
{
	struct str paths[N_DOORS];
	char buffer[160];
	struct text t;
	size_t nearest;

	text_init(&t, buffer, sizeof(buffer) - 1);
	text_z(&t, "the doors are");
	for (size_t i = 0; i < N_DOORS; i++) {
		paths[i] = door_path(doors[i].door);
		text_z(&t, i == 0 ? " " : ", ");
		text_str(&t, paths[i]);
	}
	nearest = str_nearest(path, paths, N_DOORS);
	if (nearest < N_DOORS) {
		text_z(&t, "; did you mean ");
		text_str(&t, paths[nearest]);
		text_z(&t, "?");
	}
	problem_set(ret_problem, PROBLEM_NOT_FOUND, "%.*s", STR_ARG(text_view(&t)));
}

/* Below a prefix even a "?" is part of what is asked about. */
static bool is_at(enum door door, struct str target)
{
	struct str path = door_path(door);

	return door_is_prefix(door) ? str_starts_with(target, str_head(path, path.len - 1))
				    : str_equal(http_target_path(target), path);
}

const struct adapter_http *adapter_http_find(
	struct str method, struct str target, struct problem *ret_problem)
{
	struct str path = http_target_path(target);

	for (size_t i = 0; i < N_DOORS; i++) {
		if (!is_at(doors[i].door, target))
			continue;
		if (doors[i].any_method || str_equal(method, STR("POST")))
			return &doors[i];
		problem_set(ret_problem, PROBLEM_METHOD_NOT_ALLOWED, "%.*s takes POST only", STR_ARG(path));
		ret_problem->allow = STR("POST");
		return NULL;
	}
	if (adapter_rpc_path_is_envoy(path))
		problem_set(ret_problem, PROBLEM_UNSUPPORTED_MEDIA_TYPE,
			"this is a call of gRPC over HTTP/1.1: the grpc listener is its place, and http2_protocol_options "
			"must be set for the cluster");
	else
		set_not_found(path, ret_problem);
	return NULL;
}
