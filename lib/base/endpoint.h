/* SPDX-License-Identifier: MIT */
/*
 * endpoint: where to listen or connect: "127.0.0.1:9180", "[::1]:9180", "unix:/run/postern/http.sock?mode=0666".
 *
 * Model      A TCP address (literal, no names are resolved) and port, or a Unix path with a mode (default 0660).
 * Ownership  The path is copied into the struct.
 * Threads    Pure.
 * Errors     endpoint_parse returns false and says why in words.
 * Limits     port 0 (any free port) to 65535; a path fits sun_path (107 bytes); mode is octal, at most 0777.
 */
#ifndef POSTERN_BASE_ENDPOINT_H
#define POSTERN_BASE_ENDPOINT_H

#include "base/ip.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct endpoint {
	bool is_unix;
	struct ip ip;
	uint16_t port;
	char path_z[108];
	mode_t mode;
};

#define ENDPOINT_TEXT_BYTES 160

bool endpoint_parse(struct endpoint *ret, struct str s, const char **ret_why);

/* "127.0.0.1:9180", "[::1]:9180", "unix:/path". Returns the length. */
size_t endpoint_print(const struct endpoint *e, char out[ENDPOINT_TEXT_BYTES]);

/* Loopback TCP or Unix: reachable from this machine only. */
bool endpoint_is_local(const struct endpoint *e);

/* For bind and connect. IPv4 becomes AF_INET. Returns the address's length. */
socklen_t endpoint_sockaddr(const struct endpoint *e, struct sockaddr_storage *ret);

/* From a peer's address; false for a family that is neither (Unix peers have no ip: see is_unix). */
bool endpoint_from_sockaddr(struct endpoint *ret, const struct sockaddr *sa, socklen_t len);

#endif
