/* SPDX-License-Identifier: MIT */
/*
 * grpc.health.v1. The empty name is the whole server, the others are services that can be asked; all of them are served or
 * none is. Check refuses a name that is not known, Watch says so and goes on watching, as the protocol wants it.
 */
#include "adapter/rpc.h"

#include "adapter/proto.h"
#include "adapter/wire.h"

#include "grpc/health/v1/health.pb-c.h"

#define ANSWER_BYTES 16

enum { RESPONSE_STATUS = 1 };
enum { WATCHING_NOTHING, WATCHING_KNOWN, WATCHING_UNKNOWN }; /* a call's memory */

static bool is_known(struct str service)
{
	return service.len == 0 || str_equal(service, STR("envoy.service.auth.v3.Authorization"));
}

static void say(unsigned status, struct arena *a, struct rpc_answer *ret)
{
	struct wire w;

	wire_init(&w, a, ANSWER_BYTES);
	wire_varint(&w, RESPONSE_STATUS, status);
	if (w.overflow)
		rpc_refuse(ret, RPC_UNAVAILABLE, STR("out of room"));
	else
		*ret = (struct rpc_answer){.status = RPC_OK, .message = wire_view(&w)};
}

static unsigned status_of(const struct rpc_context *c)
{
	return c->serving ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
			  : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING;
}

/* The service asked for; false and a refusal if the message is none. */
static bool read_service(struct str message, struct arena *a, struct str *ret, struct rpc_answer *ret_refusal)
{
	const Grpc__Health__V1__HealthCheckRequest *request =
		proto_unpack(&grpc__health__v1__health_check_request__descriptor, message, a);

	if (request == NULL) {
		rpc_refuse(ret_refusal, a->overflow ? RPC_RESOURCE_EXHAUSTED : RPC_INTERNAL,
			STR("the HealthCheckRequest does not parse"));
		return false;
	}
	*ret = proto_text(request->service, a);
	return true;
}

void health_check_answer(struct str message, struct rpc_context *c, struct arena *a, struct rpc_answer *ret)
{
	struct str service;

	if (!read_service(message, a, &service, ret))
		return;
	if (is_known(service))
		say(status_of(c), a, ret);
	else
		rpc_refuse(ret, RPC_NOT_FOUND, STR("unknown service"));
}

void health_watch_answer(struct str message, struct rpc_context *c, struct arena *a, struct rpc_answer *ret)
{
	struct str service;

	if (!read_service(message, a, &service, ret))
		return;
	c->memory = is_known(service) ? WATCHING_KNOWN : WATCHING_UNKNOWN;
	health_watch_changed(c, a, ret);
}

void health_watch_changed(const struct rpc_context *c, struct arena *a, struct rpc_answer *ret)
{
	say(c->memory == WATCHING_KNOWN
			? status_of(c)
			: GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN,
		a, ret);
}
