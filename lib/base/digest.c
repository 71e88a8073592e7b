/* SPDX-License-Identifier: MIT */
/*
 * All of libsodium that postern uses, in one file, so that another library could take its place by an
 * afternoon's work. Slices may be {NULL, 0}; the library's pointers are declared non-null in places, hence
 * bytes_or_empty.
 */
#include "base/digest.h"

#include <sodium.h>
#include <string.h>

_Static_assert(DIGEST_BYTES == crypto_hash_sha256_BYTES && DIGEST_BYTES == crypto_verify_32_BYTES,
	"one digest size");
_Static_assert(sizeof(struct digest_key) == crypto_shorthash_KEYBYTES, "the key of SipHash");
_Static_assert(sizeof(uint64_t) == crypto_shorthash_BYTES, "the result of SipHash");

static const unsigned char *bytes_or_empty(const void *bytes)
{
	return bytes != NULL ? bytes : (const unsigned char *)"";
}

enum err digest_init(void)
{
	return sodium_init() >= 0 ? ERR_OK : ERR_ABSENT;
}

void digest_sha256(struct digest *ret, struct str s)
{
	crypto_hash_sha256(ret->bytes, bytes_or_empty(s.ptr), s.len);
}

unsigned digest_equal(const struct digest *a, const struct digest *b)
{
	/* 0 if equal, -1 if not. */
	return (unsigned)(crypto_verify_32(a->bytes, b->bytes) + 1);
}

uint64_t digest_short(const struct digest_key *key, const void *bytes, size_t len)
{
	uint8_t out[crypto_shorthash_BYTES];
	uint64_t hash;

	crypto_shorthash(out, bytes_or_empty(bytes), len, key->bytes);
	memcpy(&hash, out, sizeof(hash));
	return hash;
}

void digest_random(void *bytes, size_t len)
{
	randombytes_buf(bytes, len);
}

void digest_wipe(void *bytes, size_t len)
{
	sodium_memzero(bytes, len);
}

void digest_base64url(const uint8_t *bytes, size_t n, char *out)
{
	sodium_bin2base64(out, (n * 4 + 2) / 3 + 1, bytes, n, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

const char *digest_library_z(void)
{
	return sodium_version_string();
}
