/* SPDX-License-Identifier: MIT */
/*
 * grpc_call: one call of a gRPC method, from its header to its trailers; free of nghttp2.
 *
 * Model      The session tells what arrives (call_header, call_begin, call_data, call_end) and is told when there is
 *            something to send: bytes in out, and at the end a status. A call that is refused is not read any further; the
 *            answer waits for the caller's end, because some callers throw away an answer that comes before it. Only what
 *            would have to be swallowed without end (too long a message, or one that does not come) is answered before.
 *            Messages are assembled across frames; a frame of one message is a byte, its length in four, and the message.
 * Units      bytes; ns on the loop's clock.
 * Ownership  Calls come from the service's pool and go back to it. Everything the service points at outlives it.
 * Threads    confined.
 * Blocking   only on the store.
 * Errors     every call ends with exactly one status.
 * Limits     grpc.message_bytes a message, grpc.header_bytes a header list; four messages of that size a connection.
 * Source     https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
 */
#ifndef POSTERN_SERVER_GRPC_CALL_H
#define POSTERN_SERVER_GRPC_CALL_H

#include "adapter/rpc.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "config/config.h"
#include "engine/engine.h"
#include "io/loop.h"
#include "server/exchange.h"
#include "server/metrics.h"
#include "server/probe.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;

#define CALL_PREFIX_BYTES 5
#define CALL_IN_BYTES 2048 /* the usual CheckRequest and then some */
#define CALL_OUT_BYTES 1024
#define CALL_DETAIL_BYTES 320

/* What all calls of one worker share. */
struct grpc_service {
	const struct config *config;
	const struct loop *loop;
	struct engine_worker *engine;
	struct server_counters *counters;
	const atomic_bool *draining;
	struct probe_board *probes;

	struct arena question, answer; /* of the call that is just being answered */
	char *question_block, *answer_block;
	struct call *spare;
	size_t n_spare;
	struct log_limit hints; /* lines that say what to mend at the caller */
};

/* Bytes that begin inside the call and move to the heap where they do not fit. */
struct call_bytes {
	char *ptr;
	size_t len, cap;
};

struct call {
	struct call *next, *prev; /* in its session, or in the pool */
	struct grpc_service *service;
	struct session *session;
	int32_t id;

	/* The header. */
	const struct adapter_rpc *method; /* NULL: none of ours */
	size_t header_bytes;
	bool is_post, has_type, type_has_suffix, encoding_fits, timeout_fits;
	bool key_fits;
	unsigned n_keys;
	bool is_allowed; /* the callers gate has let it in */
	ns due;          /* when it must have come to its end; UINT64_MAX: never */

	/* What comes in. */
	bool is_deaf; /* refused: data is not looked at */
	bool is_whole; /* the caller has said all it has to say */
	uint8_t prefix[CALL_PREFIX_BYTES];
	size_t prefix_len;
	uint32_t message_bytes; /* announced, if prefix_len is whole */
	bool has_message;       /* of a call that takes one: it is in */
	struct call_bytes in;

	/* What goes out. */
	bool has_begun; /* the answer's header was handed to the session */
	bool has_ended; /* status stands */
	bool is_counted;
	enum rpc_status status;
	unsigned http_status;
	bool tells_encodings;
	size_t out_sent; /* of out */
	struct call_bytes out;
	struct rpc_context context;

	size_t detail_len;
	char detail[CALL_DETAIL_BYTES]; /* percent-encoded */
	char in_room[CALL_IN_BYTES], out_room[CALL_OUT_BYTES];
};

MUST_USE enum err grpc_service_init(struct grpc_service *s);
void grpc_service_done(struct grpc_service *s);

struct call *call_take(struct grpc_service *s, struct session *session, int32_t id); /* NULL: no memory */
void call_put(struct call *c);

/* One line of the header, in the order in which they come; then the whole is judged. False: the header list is so far
 * above its limit that the connection should end. */
bool call_header(struct call *c, struct str name, struct str value);
void call_begin(struct call *c, bool is_listed);

void call_data(struct call *c, struct str bytes);
void call_end(struct call *c); /* the caller has said all it has to say */

/* Ends the call with that status, if it has none. */
void call_refuse(struct call *c, enum rpc_status status, struct str detail);

/* The time is up, or the server is going away: ends what has not ended; what has, and is not taken, is reset. */
void call_expire(struct call *c);
void call_leave(struct call *c);

/* WATCH: the server has changed. */
void call_changed(struct call *c);

/* The caller is gone, or everything is sent. */
void call_count(struct call *c, bool is_cancelled);

/* ---- parts */

/* grpc-timeout: 1 to 8 digits and a unit. False where it is malformed. */
bool call_timeout_parse(struct str s, ns *ret);

/* s as grpc-message: bytes outside 0x20..0x7e and "%" as %XX, cut where room ends. Returns the length. */
size_t call_detail_encode(struct str s, char *out, size_t size);

#endif
