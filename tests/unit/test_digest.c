/* SPDX-License-Identifier: MIT */
/*
 * Digests against the published examples: FIPS 180-4, the SipHash paper, RFC 4648.
 */
#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static int start(void **state)
{
	(void)state;
	return digest_init() == ERR_OK && digest_init() == ERR_OK ? 0 : -1;
}

static void assert_sha256(struct str s, const char *expected)
{
	struct digest d;
	char hex[2 * DIGEST_BYTES + 1];

	digest_sha256(&d, s);
	str_hex(d.bytes, sizeof(d.bytes), hex);
	assert_string_equal(hex, expected);
}

static void test_sha256(void **state)
{
	(void)state;
	assert_sha256(STR("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_sha256(STR(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_sha256(
		(struct str){NULL, 0}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_sha256(STR("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void test_equal(void **state)
{
	struct digest a, b;

	(void)state;
	digest_sha256(&a, STR("one"));
	b = a;
	assert_int_equal(digest_equal(&a, &b), 1);
	for (unsigned bit = 0; bit < 8 * DIGEST_BYTES; bit++) {
		b = a;
		b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_int_equal(digest_equal(&a, &b), 0);
	}
}

static void test_short(void **state)
{
	/* SipHash-2-4 of the paper's appendix: key 00..0f, input 00..0e; the result is little-endian. */
	static const uint8_t expected[8] = {0xe5, 0x45, 0xbe, 0x49, 0x61, 0xca, 0x29, 0xa1};
	struct digest_key key, other;
	uint8_t input[15];
	uint64_t hash;

	(void)state;
	for (uint8_t i = 0; i < 16; i++)
		key.bytes[i] = i;
	for (uint8_t i = 0; i < 15; i++)
		input[i] = i;
	hash = digest_short(&key, input, sizeof(input));
	assert_memory_equal(&hash, expected, sizeof(expected));
	other = key;
	other.bytes[15] ^= 1;
	assert_true(digest_short(&other, input, sizeof(input)) != hash);
	assert_true(digest_short(&key, NULL, 0) == digest_short(&key, input, 0));
}

static void test_random(void **state)
{
	uint8_t a[32] = {0}, b[32] = {0};

	(void)state;
	digest_random(a, sizeof(a));
	digest_random(b, sizeof(b));
	assert_memory_not_equal(a, b, sizeof(a));
	digest_random(a, 0);
}

static void test_wipe(void **state)
{
	uint8_t a[32], zero[32] = {0};

	(void)state;
	memset(a, 0xaa, sizeof(a));
	digest_wipe(a, 31);
	assert_memory_equal(a, zero, 31);
	assert_int_equal(a[31], 0xaa);
}

static void test_base64url(void **state)
{
	static const char *const rows[][2] = {{"", ""}, {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"},
		{"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "-_-_"}};
	uint8_t secret[32];
	char out[44];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i][0]);

		memset(out, '#', sizeof(out));
		digest_base64url((const uint8_t *)rows[i][0], n, out);
		assert_string_equal(out, rows[i][1]);
		assert_int_equal(out[(n * 4 + 2) / 3 + 1], '#');
	}
	memset(secret, 0xff, sizeof(secret));
	digest_base64url(secret, sizeof(secret), out);
	assert_int_equal(strlen(out), 43);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sha256),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_wipe),
		cmocka_unit_test(test_base64url),
	};

	return cmocka_run_group_tests_name("digest", tests, start, NULL);
}
