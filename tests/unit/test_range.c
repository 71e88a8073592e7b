/* SPDX-License-Identifier: MIT */
/*
 * Ranges and sets. The search is held against a plain loop over sets of nested and neighbouring ranges.
 */
#include "base/range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct range parse(const char *text)
{
	struct range r;
	const char *why = "";

	if (!range_parse(&r, str_from_z(text), &why, NULL, NULL))
		fail_msg("%s: %s", text, why);
	return r;
}

static struct ip parse_ip(const char *text)
{
	struct ip ip;

	assert_true(ip_parse(&ip, str_from_z(text)));
	return ip;
}

static void test_accepted(void **state)
{
	static const struct {
		const char *text, *printed;
		unsigned bits;
	} rows[] = {
		{"10.0.0.0/8", "10.0.0.0/8", 104},
		{"10.0.0.5", "10.0.0.5", 128},
		{"10.0.0.5/32", "10.0.0.5", 128},
		{"128.0.0.0/1", "128.0.0.0/1", 97},
		{"0.0.0.0/1", "0.0.0.0/1", 97},
		{"2001:db8::/32", "2001:db8::/32", 32},
		{"::/1", "::/1", 1},
		{"::1", "::1", 128},
		{"::1/128", "::1", 128},
		{"2001:DB8::/127", "2001:db8::/127", 127},
		{"::ffff:10.0.0.0/104", "10.0.0.0/8", 104},
		{"::ffff:10.0.0.5", "10.0.0.5", 128},
		{"::fffe:0:0/95", "::fffe:0:0/95", 95},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct range r = parse(rows[i].text);
		char out[RANGE_TEXT_BYTES];

		assert_int_equal(r.bits, rows[i].bits);
		assert_int_equal(range_print(&r, out), strlen(rows[i].printed));
		assert_string_equal(out, rows[i].printed);
	}
}

static void test_refused(void **state)
{
	static const struct {
		struct str text;
		const char *why; /* a part of the reason */
		const char *better; /* NULL: nothing is suggested */
	} rows[] = {
		{STR(""), "empty", NULL},
		{STR("/8"), "missing", NULL},
		{STR("10.0.0.0/"), "missing", NULL},
		{STR("10.0.0.1/8"), "host bits", "10.0.0.0/8"},
		{STR("2001:db8::1/32"), "host bits", "2001:db8::/32"},
		{STR("::ffff:10.0.0.1/104"), "host bits", "10.0.0.0/8"},
		{STR("10.0.0.0/33"), "over 32", NULL},
		{STR("2001:db8::/129"), "over 128", NULL},
		{STR("10.0.0.0/104"), "over 32", NULL},
		{STR("10.0.0.0/99999999999999999999"), "not a prefix length", NULL},
		{STR("10.0.0.0/-8"), "not a prefix length", NULL},
		{STR("10.0.0.0/8/8"), "not a prefix length", NULL},
		{STR("10.0.0.0/8\0"), "not a prefix length", NULL},
		{STR("10.0.0.0/08"), "leading zeros", "10.0.0.0/8"},
		{STR("10.0.0.1/08"), "leading zeros", "10.0.0.0/8"},
		{STR("10.0.0.0/00"), "every address", NULL},
		{STR("10.0.0.0/255.0.0.0"), "netmask", "10.0.0.0/8"},
		{STR("10.0.0.0/255.0.255.0"), "not a prefix length", NULL},
		{STR("10.0.0.0/0.0.0.0"), "netmask", NULL},
		{STR("2001:db8::/ffff:ffff::"), "netmask", "2001:db8::/32"},
		{STR("2001:db8::/255.0.0.0"), "not a prefix length", NULL},
		{STR("0.0.0.0/0"), "every address", NULL},
		{STR("::/0"), "every address", NULL},
		{STR("::ffff:0.0.0.0/96"), "every IPv4 address", NULL},
		{STR("::ffff:10.0.0.0/95"), "over 96", NULL},
		{STR("::ffff:10.0.0.0/08"), "leading zeros", NULL},
		{STR("010.0.0.0/8"), "leading zeros", NULL},
		{STR("fe80::1%eth0/64"), "zone", NULL},
		{STR("fe80::1%eth0"), "zone", NULL},
		{STR("10.0.0.5:80"), "port", "10.0.0.5"},
		{STR("[::1]:80"), "port", "::1"},
		{STR("[::1]"), "brackets", "::1"},
		{STR("[2001:db8::]/32"), "brackets", NULL},
		{STR(" 10.0.0.0/8"), "white space", "10.0.0.0/8"},
		{STR("10.0.0.0/8\t"), "white space", "10.0.0.0/8"},
		{STR(" 10.0.0.1/8"), "white space", "10.0.0.0/8"},
		{STR("private"), "names are not resolved", NULL},
		{STR("proxy.example"), "names are not resolved", NULL},
		{STR("*"), "names are not resolved", NULL},
		{STR("10.0/8"), "does not start with", NULL},
		{STR("10.0.0.0\0/8"), "does not start with", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct range r = {.bits = 7}, better;
		const char *why = NULL;
		bool has_better = rows[i].better == NULL;
		char out[RANGE_TEXT_BYTES];

		if (range_parse(&r, rows[i].text, &why, &better, &has_better))
			fail_msg("accepted: %.*s", STR_ARG(rows[i].text));
		assert_int_equal(r.bits, 7);
		if (strstr(why, rows[i].why) == NULL)
			fail_msg("%.*s: %s", STR_ARG(rows[i].text), why);
		if (has_better != (rows[i].better != NULL))
			fail_msg("%.*s: suggestion is %d", STR_ARG(rows[i].text), has_better);
		if (has_better) {
			range_print(&better, out);
			assert_string_equal(out, rows[i].better);
		}
	}
}

static void test_contains(void **state)
{
	struct range ten = parse("10.0.0.0/8"), half = parse("::/1"), one = parse("192.0.2.1"),
		     link = parse("fe80::/10");
	struct ip inside = parse_ip("10.255.255.255"), outside = parse_ip("11.0.0.0"),
		  six = parse_ip("::a00:1");
	struct ip single = parse_ip("192.0.2.1"), beside = parse_ip("192.0.2.0"), febf = parse_ip("febf::1");
	struct ip fec0 = parse_ip("fec0::1");

	(void)state;
	assert_true(range_contains(&ten, &inside));
	assert_false(range_contains(&ten, &outside));
	assert_false(range_contains(&ten, &six));
	assert_true(range_contains(&half, &six));
	/* Families never cross, though the bytes of 10.255.255.255 begin with 80 zero bits. */
	assert_false(range_contains(&half, &inside));
	assert_true(range_contains(&one, &single));
	assert_false(range_contains(&one, &beside));
	assert_true(range_contains(&link, &febf));
	assert_false(range_contains(&link, &fec0));
}

static const struct range *find_plainly(const struct range_set *set, const struct ip *ip)
{
	const struct range *best = NULL;

	for (size_t i = 0; i < set->n; i++)
		if (range_contains(&set->items[i], ip) && (best == NULL || set->items[i].bits > best->bits))
			best = &set->items[i];
	return best;
}

static void assert_find(const struct range_set *set, const struct ip *ip)
{
	const struct range *found = range_set_find(set, ip), *expected = find_plainly(set, ip);

	assert_int_equal(found != NULL, expected != NULL);
	if (found != NULL) {
		assert_true(ip_equal(&found->base, &expected->base));
		assert_int_equal(found->bits, expected->bits);
	}
}

static void test_find(void **state)
{
	static const char *const texts[] = {"2001:db8::/32", "10.1.0.0/16", "10.0.0.0/8", "192.168.0.0/16",
		"10.1.2.0/24", "::/1", "2001:db8:10::/48", "10.1.2.3", "10.0.0.0/24", "127.0.0.0/8"};
	static const struct {
		const char *ip, *range;
	} rows[] = {
		{"10.1.2.3", "10.1.2.3"},
		{"10.1.2.4", "10.1.2.0/24"},
		{"10.1.3.1", "10.1.0.0/16"},
		{"10.2.0.0", "10.0.0.0/8"},
		{"10.0.0.7", "10.0.0.0/24"},
		{"10.0.1.7", "10.0.0.0/8"},
		{"9.255.255.255", NULL},
		{"11.0.0.0", NULL},
		{"192.169.0.0", NULL},
		{"255.255.255.255", NULL},
		{"0.0.0.0", NULL},
		{"2001:db8:10::1", "2001:db8:10::/48"},
		{"2001:db8:11::1", "2001:db8::/32"},
		{"2001:db9::1", "::/1"},
		{"::", "::/1"},
		{"8000::", NULL},
	};
	struct range items[10];
	_Alignas(16) char block[512];
	struct arena a;
	struct range_set set;

	(void)state;
	for (size_t i = 0; i < 10; i++)
		items[i] = parse(texts[i]);
	arena_init(&a, block, sizeof(block));
	assert_true(range_set_build(&set, &a, items, 10));
	assert_int_equal(set.n, 10);
	assert_int_equal(set.n_v4, 7);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ip ip = parse_ip(rows[i].ip);
		const struct range *found = range_set_find(&set, &ip);
		char out[RANGE_TEXT_BYTES] = "";

		if (found != NULL)
			range_print(found, out);
		assert_string_equal(out, rows[i].range != NULL ? rows[i].range : "");
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* Few distinct bits, so that ranges nest and meet often. */
static struct ip random_ip(uint32_t *seed)
{
	struct ip ip;

	for (size_t i = 0; i < sizeof(ip.bytes); i++)
		ip.bytes[i] = next_random(seed) % 4 == 0 ? (uint8_t)(next_random(seed) & 0x81) : 0;
	return next_random(seed) % 2 == 0 ? ip : ip_from_v4(next_random(seed) & 0x81018181);
}

static void test_find_any_set(void **state)
{
	_Alignas(16) static char block[4096];
	uint32_t seed = 2463534242;

	(void)state;
	for (int round = 0; round < 300; round++) {
		size_t n = next_random(&seed) % 100;
		struct range items[100];
		struct range_set set;
		struct arena a;

		for (size_t i = 0; i < n; i++) {
			items[i].base = random_ip(&seed);
			items[i].bits = (uint8_t)(ip_is_v4(&items[i].base) ? 97 + next_random(&seed) % 32
									   : 1 + next_random(&seed) % 128);
			ip_mask(&items[i].base, items[i].bits);
			/* A masked IPv6 base may turn out mapped only if it was all along. */
			if (ip_is_v4(&items[i].base) && items[i].bits < 97)
				items[i].bits = 128;
		}
		arena_init(&a, block, sizeof(block));
		assert_true(range_set_build(&set, &a, items, n));
		for (int i = 0; i < 200; i++) {
			struct ip ip = random_ip(&seed);

			assert_find(&set, &ip);
		}
		for (size_t i = 0; i < n; i++)
			assert_find(&set, &items[i].base);
	}
}

static void test_empty_and_full(void **state)
{
	_Alignas(16) char block[64];
	struct range items[4] = {parse("10.0.0.0/8"), parse("::1"), parse("10.0.0.0/8"), parse("1.2.3.4")};
	struct ip ip = parse_ip("10.0.0.1");
	struct range_set set;
	struct arena a;

	(void)state;
	arena_init(&a, block, sizeof(block));
	assert_true(range_set_build(&set, &a, NULL, 0));
	assert_null(range_set_find(&set, &ip));
	assert_true(range_set_build(&set, &a, items, 3));
	assert_non_null(range_set_find(&set, &ip));
	arena_reset(&a);
	assert_false(range_set_build(&set, &a, items, 4));
	assert_true(a.overflow);
}

static void test_overlaps(void **state)
{
	static const struct {
		const char *a[2], *b[2];
		bool expected;
	} rows[] = {
		{{"10.0.0.0/8", "::1"}, {"192.168.0.0/16", "10.200.0.0/16"}, true},
		{{"10.200.0.0/16", "::1"}, {"192.168.0.0/16", "10.0.0.0/8"}, true},
		{{"10.0.0.0/8", "::1"}, {"11.0.0.0/8", "::2"}, false},
		{{"10.0.0.0/8", "::/1"}, {"11.0.0.0/8", "8000::/1"}, false},
		{{"10.0.0.0/9", "172.16.0.0/12"}, {"10.128.0.0/9", "::/1"}, false},
		{{"2001:db8::/32", "10.0.0.1"}, {"2001:db8:1::1", "10.0.0.2"}, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct range a_items[2] = {parse(rows[i].a[0]), parse(rows[i].a[1])};
		struct range b_items[2] = {parse(rows[i].b[0]), parse(rows[i].b[1])};
		_Alignas(16) char block[128];
		struct range_set a, b;
		struct arena arena;

		arena_init(&arena, block, sizeof(block));
		assert_true(range_set_build(&a, &arena, a_items, 2));
		assert_true(range_set_build(&b, &arena, b_items, 2));
		assert_int_equal(range_set_overlaps(&a, &b), rows[i].expected);
		assert_int_equal(range_set_overlaps(&b, &a), rows[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_contains),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_find_any_set),
		cmocka_unit_test(test_empty_and_full),
		cmocka_unit_test(test_overlaps),
	};

	return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
