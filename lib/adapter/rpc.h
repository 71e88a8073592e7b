/* SPDX-License-Identifier: MIT */
/*
 * rpc: a call of a gRPC method and its answer, free of any library. What server and the gRPC doors exchange.
 *
 * Model      A method has one of four shapes. DECISION: one message in, a decision, one message out. UNARY: one message in,
 *            one out. WATCH: one message in, one out at once and another after each change of what the server is. CHAT: one
 *            message out for each message in. Messages come and go without their five bytes of frame.
 *            An answer whose status is not RPC_OK ends the call and has no message: an empty one would mean "allow".
 * Ownership  Everything lies in the arena, in static text, or is a view of the message.
 * Threads    Pure.
 * Errors     An answer that found no room in the arena has status UNAVAILABLE: the asker must use its own failure mode.
 */
#ifndef POSTERN_ADAPTER_RPC_H
#define POSTERN_ADAPTER_RPC_H

#include "base/arena.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

#include <stdbool.h>
#include <stdint.h>

/* The codes of gRPC that this program sends. */
enum rpc_status {
	RPC_OK = 0,
	RPC_INVALID_ARGUMENT = 3,
	RPC_DEADLINE_EXCEEDED = 4,
	RPC_NOT_FOUND = 5,
	RPC_PERMISSION_DENIED = 7,
	RPC_RESOURCE_EXHAUSTED = 8,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14
};

struct rpc_answer {
	enum rpc_status status;
	struct str message; /* if status is RPC_OK */
	struct str detail;  /* else: one sentence, any bytes; the transport escapes them */
};

static inline void rpc_refuse(struct rpc_answer *ret, enum rpc_status status, struct str detail)
{
	*ret = (struct rpc_answer){.status = status, .detail = detail};
}

/* What a method other than a decision may look at and keep. */
struct rpc_context {
	bool serving;    /* the server takes new work */
	uint64_t memory; /* what the method keeps for itself as long as the call lasts; 0 at its beginning */
};

enum rpc_shape { RPC_DECISION, RPC_UNARY, RPC_WATCH, RPC_CHAT };

struct adapter_rpc {
	struct str service, method;
	enum rpc_shape shape;
	bool ungated; /* also for who is no caller */

	/* DECISION. A caller that is refused is not decoded: decide on a request with that fault, and encode. */
	enum door door;
	bool (*decode)(struct str message, struct arena *a, struct request *ret, struct rpc_answer *ret_refusal);
	void (*encode)(const struct ruleset *rules, const struct verdict *v, struct arena *a, struct rpc_answer *ret);

	/* The others: answers one message. */
	void (*answer)(struct str message, struct rpc_context *c, struct arena *a, struct rpc_answer *ret);
	/* WATCH: what is to be said after a change. */
	void (*changed)(const struct rpc_context *c, struct arena *a, struct rpc_answer *ret);
};

/* The method of this :path, or NULL and the refusal; *ret_is_old: its path is one of Envoy's before version 3. */
const struct adapter_rpc *adapter_rpc_find(
	struct str path, struct arena *a, struct rpc_answer *ret_refusal, bool *ret_is_old);

/* All methods, for counting: index below adapter_rpc_count(). */
size_t adapter_rpc_count(void);
const struct adapter_rpc *adapter_rpc_at(size_t i);

/* Whether a path looks like one of gRPC that Envoy calls; for questions that came over HTTP/1.1. */
bool adapter_rpc_path_is_envoy(struct str path);

/* The methods' own functions, for the table. */
bool ext_authz_grpc_decode(
	struct str message, struct arena *a, struct request *ret, struct rpc_answer *ret_refusal);
void ext_authz_grpc_encode(
	const struct ruleset *rules, const struct verdict *v, struct arena *a, struct rpc_answer *ret);
void health_check_answer(
	struct str message, struct rpc_context *c, struct arena *a, struct rpc_answer *ret);
void health_watch_answer(
	struct str message, struct rpc_context *c, struct arena *a, struct rpc_answer *ret);
void health_watch_changed(const struct rpc_context *c, struct arena *a, struct rpc_answer *ret);
void reflection_answer(struct str message, struct rpc_context *c, struct arena *a, struct rpc_answer *ret);

#endif
