/* SPDX-License-Identifier: MIT */
/*
 * The methods that are served, and the way from a :path to one of them. The path is case-sensitive and is split at its last
 * slash. Whoever calls the second version of Envoy's protocol is told the one setting that is missing, because "unknown
 * service" sends people looking for a server that is down.
 */
#include "adapter/rpc.h"

#include "base/text.h"

#define SHOWN_BYTES 80
#define DETAIL_BYTES 512

#define REFLECTION(version)                                                                                  \
	{                                                                                                    \
		.service = STR("grpc.reflection." version ".ServerReflection"),                              \
		.method = STR("ServerReflectionInfo"), .shape = RPC_CHAT, .answer = reflection_answer        \
	}

static const struct adapter_rpc methods[] = {
	{.service = STR("envoy.service.auth.v3.Authorization"),
		.method = STR("Check"),
		.shape = RPC_DECISION,
		.door = DOOR_EXT_AUTHZ_GRPC,
		.decode = ext_authz_grpc_decode,
		.encode = ext_authz_grpc_encode},
	{.service = STR("grpc.health.v1.Health"),
		.method = STR("Check"),
		.shape = RPC_UNARY,
		.ungated = true,
		.answer = health_check_answer},
	{.service = STR("grpc.health.v1.Health"),
		.method = STR("Watch"),
		.shape = RPC_WATCH,
		.ungated = true,
		.answer = health_watch_answer,
		.changed = health_watch_changed},
	REFLECTION("v1"),
	REFLECTION("v1alpha"),
};

#define N_METHODS (sizeof(methods) / sizeof(methods[0]))

static const struct str old_services[] = {
	STR("envoy.service.auth.v2.Authorization"),
	STR("envoy.service.auth.v2alpha.Authorization"),
};

#define N_OLD (sizeof(old_services) / sizeof(old_services[0]))

static bool is_old(struct str service)
{
	for (size_t i = 0; i < N_OLD; i++) {
		if (str_equal(service, old_services[i]))
			return true;
	}
	return false;
}

static struct str unknown_text(struct str service, struct str method, bool has_service, struct arena *a)
{
	struct text t;

	text_init_arena(&t, a, DETAIL_BYTES);
	if (has_service) {
		text_z(&t, "unknown method ");
		text_str(&t, str_head(method, SHOWN_BYTES));
		text_z(&t, " for service ");
	} else {
		text_z(&t, "unknown service ");
	}
	text_str(&t, str_head(service, SHOWN_BYTES));
	return text_view(&t);
}

const struct adapter_rpc *adapter_rpc_find(
	struct str path, struct arena *a, struct rpc_answer *ret_refusal, bool *ret_is_old)
{
	size_t slash = str_find_last(path, '/');
	struct str service, method;
	bool has_service = false;

	*ret_is_old = false;
	if (slash == 0 || slash == path.len || path.ptr[0] != '/') {
		rpc_refuse(ret_refusal, RPC_UNIMPLEMENTED, STR("malformed method name"));
		return NULL;
	}
	service = str_make(path.ptr + 1, slash - 1);
	method = str_from(path, slash + 1);
	for (size_t i = 0; i < N_METHODS; i++) {
		if (!str_equal(service, methods[i].service))
			continue;
		if (str_equal(method, methods[i].method))
			return &methods[i];
		has_service = true;
	}
	*ret_is_old = is_old(service);
	rpc_refuse(ret_refusal, RPC_UNIMPLEMENTED,
		*ret_is_old ? STR("only envoy.service.auth.v3 is served: set transport_api_version: V3")
			    : unknown_text(service, method, has_service, a));
	return NULL;
}

size_t adapter_rpc_count(void)
{
	return N_METHODS;
}

const struct adapter_rpc *adapter_rpc_at(size_t i)
{
	return &methods[i];
}

bool adapter_rpc_path_is_envoy(struct str path)
{
	return str_starts_with(path, STR("/envoy.service."));
}
