/* SPDX-License-Identifier: MIT */
/*
 * headers: the header lines that a verdict carries to the client and to the upstream. One place for all doors.
 *
 * Model      Client: Retry-After (whole seconds, rounded up, never 0), RateLimit-Policy and RateLimit, the older
 *            X-RateLimit-* where asked for, WWW-Authenticate on 401. Upstream: X-Postern-Client (exactly one believed
 *            address, empty when undecided) and X-Postern-Identity (empty when unknown), so that a client's forgery
 *            never survives. Removed: every dedicated token header, and Authorization only if it proved an identity.
 *            Limits with headers off, and those of shadow rules, never show.
 * Units      seconds at the edge, ns inside.
 * Ownership  Values lie in the arena.
 * Threads    Pure.
 * Errors     a full arena shows as its overflow mark.
 * Source     draft-ietf-httpapi-ratelimit-headers-10 (q, w, r, t); RFC 9110 10.2.3 (Retry-After); RFC 9651 (structured fields).
 */
#ifndef POSTERN_CORE_HEADERS_H
#define POSTERN_CORE_HEADERS_H

#include "base/arena.h"
#include "core/policy.h"
#include "core/verdict.h"

#define HEADERS_CLIENT_MAX 8
#define HEADERS_UPSTREAM 2

/* Whole seconds, rounded up, at least 1; 0 if the verdict has no wait. */
uint64_t headers_retry_after_s(const struct verdict *v);

/* The wait in ms, rounded up, at least 1; 0 if the verdict has none. */
uint64_t headers_retry_after_ms(const struct verdict *v);

/* Seconds, rounded up: the "reset" of one limit. 0 only when the bucket is full. */
uint64_t headers_reset_s(const struct taking *t);

/* For the client's answer. Returns how many lines were written. */
size_t headers_for_client(const struct ruleset *rules, const struct verdict *v, struct arena *a,
	struct header_line out[HEADERS_CLIENT_MAX]);

/* For the upstream: always HEADERS_UPSTREAM lines, client then identity. */
void headers_for_upstream(const struct verdict *v, struct arena *a, struct header_line out[HEADERS_UPSTREAM]);

/* Names to strip before the upstream. Returns how many (at most TOKEN_HEADERS_MAX). */
size_t headers_to_remove(const struct ruleset *rules, const struct verdict *v, struct str out[TOKEN_HEADERS_MAX]);

#endif
