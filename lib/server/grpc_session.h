/* SPDX-License-Identifier: MIT */
/*
 * grpc_session: HTTP/2 on one connection, bytes in and bytes out. The only unit that sees nghttp2.
 *
 * Model      The owner feeds what the socket gave and sends what session_output gives; there is no socket in here. Streams are
 *            calls (grpc_call). A session is done when nothing more is to come or go.
 *            Going away has two steps: a notice that refuses nothing, with a PING behind it; and once that has come back (or
 *            time is up) the last stream that is served, after which nothing new is begun.
 * Ownership  The owner's session; service and peer outlive it.
 * Threads    confined.
 * Blocking   Never.
 * Errors     session_open: ERR_MEMORY. session_receive: false where the connection must end; what session_output
 *            still gives should be sent before.
 * Limits     grpc.max_streams calls at once; floods of frames that further nothing, of resets, of continuations end the
 *            connection with ENHANCE_YOUR_CALM.
 * Source     RFC 9113 (HTTP/2), RFC 7541 (HPACK).
 */
#ifndef POSTERN_SERVER_GRPC_SESSION_H
#define POSTERN_SERVER_GRPC_SESSION_H

#include "base/clock.h"
#include "base/err.h"
#include "server/exchange.h"
#include "server/grpc_call.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a connection of HTTP/2 begins with; RFC 9113 3.4. */
#define SESSION_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define SESSION_PREFACE_BYTES (sizeof(SESSION_PREFACE) - 1)

MUST_USE enum err session_open(struct session **ret, struct grpc_service *s, struct peer *peer);
void session_close(struct session *s); /* NULL is fine; cuts what is open */

bool session_receive(struct session *s, const void *bytes, size_t n);

/* The next piece that is to go out, valid until the next call; 0 at the end. */
size_t session_output(struct session *s, const uint8_t **ret);

bool session_is_done(const struct session *s);

/* When the first of the open calls must end; UINT64_MAX: none must. session_expire ends those whose time has come. */
ns session_due(const struct session *s);
void session_expire(struct session *s, ns now);

/* Tells watchers that the server has changed. */
void session_changed(struct session *s);

/* The two steps of going away. */
void session_notice(struct session *s);
bool session_was_heard(const struct session *s); /* the PING behind the notice has come back */
void session_leave(struct session *s);

/* ---- for grpc_call.c */

const struct peer *session_peer(const struct session *s);

/* Whether a message of that size may be kept beside those that are. */
bool session_may_hold(const struct session *s, size_t bytes);

/* There is something to send; or there is no use in sending any more. */
void session_send(struct session *s, struct call *c);
void session_reset(struct session *s, const struct call *c);

#endif
