/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a CheckRequest: either a refusal without a message, or a request that is judged and whose answer the library
 * reads back, with a status whose code fits the verdict. The same bytes as the messages of health and reflection.
 */
#include "fuzz.h"

#include "adapter/rpc.h"
#include "base/must.h"
#include "core/decide.h"

#include "envoy/service/auth/v3/external_auth.pb-c.h"

#define ARENA_BYTES ((size_t)1 << 20)

static const struct limit few = {.name = {"few", 3}, .bucket = {NS_PER_S, 5}, .window_s = 5, .headers = true};
static const uint16_t few_index = 0;
static const struct rule rest = {.name = {"rest", 4}, .limits = &few_index, .n_limits = 1};
static const struct str token_header = {"X-Internal-Token", 16};
static const struct ruleset rules = {.client = {.header = {"X-Forwarded-For", 15},
					     .ipv6_prefix = 64,
					     .network_v4 = 24,
					     .network_v6 = 48},
	.identities = {.headers = &token_header, .n_headers = 1},
	.limits = &few,
	.n_limits = 1,
	.rules = &rest,
	.n_rules = 1,
	.headers = {true, true, true}};

static void judge(const struct request *req, struct arena *a, bool refused)
{
	struct taking taking = {.refused = refused, .wait_ns = refused, .next_ns = 1};
	struct verdict v;
	struct plan plan;
	struct rpc_answer answer;
	Envoy__Service__Auth__V3__CheckResponse *r;

	decide_plan(&rules, req, a, NULL, &plan);
	decide_conclude(&rules, req, &plan, &taking, &v);
	ext_authz_grpc_encode(&rules, &v, a, &answer);
	must((answer.status == RPC_OK) == (answer.message.len > 0));
	must(answer.status == RPC_OK || answer.status == RPC_UNAVAILABLE);
	if (answer.status != RPC_OK)
		return;
	r = envoy__service__auth__v3__check_response__unpack(
		NULL, answer.message.len, (const uint8_t *)answer.message.ptr);
	must(r != NULL && r->status != NULL);
	must((r->status->code == 0) == (v.decision == DECISION_ALLOW));
	must(r->http_response_case == (v.decision == DECISION_ALLOW
		? ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__HTTP_RESPONSE_OK_RESPONSE
		: ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__HTTP_RESPONSE_DENIED_RESPONSE));
	envoy__service__auth__v3__check_response__free_unpacked(r, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(16) char block[ARENA_BYTES];
	struct str message = str_make((const char *)data, size);
	struct request req;
	struct rpc_answer answer;
	struct arena a;

	arena_init(&a, block, sizeof(block));
	if (ext_authz_grpc_decode(message, &a, &req, &answer))
		judge(&req, &a, size % 2 == 1);
	else
		must(answer.status != RPC_OK && answer.message.len == 0);
	for (size_t i = 0; i < adapter_rpc_count(); i++) {
		struct rpc_context c = {.serving = size % 2 == 1};

		arena_reset(&a);
		if (adapter_rpc_at(i)->answer == NULL)
			continue;
		adapter_rpc_at(i)->answer(message, &c, &a, &answer);
		must((answer.status == RPC_OK) == (answer.message.len > 0));
	}
	return 0;
}
