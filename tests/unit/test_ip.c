/* SPDX-License-Identifier: MIT */
/*
 * Address syntax. What both sides accept is held against the system's parser; what it would read wrongly is
 * listed.
 */
#include "base/ip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>

static struct ip parse(const char *text)
{
	struct ip ip;

	if (!ip_parse(&ip, str_from_z(text)))
		fail_msg("not parsed: %s", text);
	return ip;
}

static void test_round_trip(void **state)
{
	static const char *const rows[][2] = {
		{"1.2.3.4", "1.2.3.4"},
		{"0.0.0.0", "0.0.0.0"},
		{"255.255.255.255", "255.255.255.255"},
		{"100.10.1.0", "100.10.1.0"},
		{"::", "::"},
		{"::1", "::1"},
		{"1::", "1::"},
		{"0:0:0:0:0:0:0:0", "::"},
		{"2001:0DB8:0000:0000:0000:0000:0000:0001", "2001:db8::1"},
		{"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
		{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
		{"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
		{"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
		{"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
		{"1::3:4:5:6:7:8", "1:0:3:4:5:6:7:8"},
		{"1:2:3:4:5:6:0:0", "1:2:3:4:5:6::"},
		{"abcd:EF01:10:100:1000:f:0:9", "abcd:ef01:10:100:1000:f:0:9"},
		{"::ffff:1.2.3.4", "1.2.3.4"},
		{"::FFFF:203.0.113.7", "203.0.113.7"},
		{"0:0:0:0:0:ffff:1.2.3.4", "1.2.3.4"},
		{"::ffff:7f00:1", "127.0.0.1"},
		{"::1.2.3.4", "::102:304"},
		{"::ffff:0:1.2.3.4", "::ffff:0:102:304"},
		{"64:ff9b::1.2.3.4", "64:ff9b::102:304"},
		{"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
		{"2002:c000:204::1", "2002:c000:204::1"},
		{"fe80::1%eth0", "fe80::1"},
		{"fe80::1%25eth0", "fe80::1"},
		{"febf::1%a.b_c~d-9", "febf::1"},
		{"fe80::1%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "fe80::1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ip ip = parse(rows[i][0]);
		char out[IP_TEXT_BYTES];
		size_t len = ip_print(&ip, out);

		assert_int_equal(len, strlen(out));
		assert_string_equal(out, rows[i][1]);
	}
}

static void test_refused(void **state)
{
	static const struct str rows[] = {STR(""), STR("010.0.0.1"), STR("10.0.0.01"), STR("00.0.0.0"),
		STR("0x7f.0.0.1"), STR("2130706433"), STR("1.2.3"), STR("1.2.3.4.5"), STR("1.2.3.-4"),
		STR("1..3.4"), STR("1.2.3.4."), STR(".1.2.3.4"), STR("1.2.3.4/32"), STR("1.2.3.256"),
		STR("1.2.3.1000"), STR("1e1.2.3.4"), STR("1.2.3.4 foo"), STR(" 1.2.3.4"), STR("1.2.3.4 "),
		STR("1.2.3.4:80"), STR("1.2.3.4::"), STR("1.2.3.4%eth0"), STR("1.2.3.4\0"), STR("1.2.3.4\0x"),
		STR("1,2,3,4"), STR("localhost"), STR("-"), STR("%00"), STR("::ffff:256.0.0.1"),
		STR("00001::1"), STR("12345::"), STR("1:2:3:4:5:6:7"), STR("1:2:3:4:5:6:7:8:9"), STR(":::1"),
		STR("1:::2"), STR(":1"), STR("1:"), STR(":"), STR("1::2::3"), STR("1:2:3:4:5:6:7:8::"),
		STR("::1:2:3:4:5:6:7:8"), STR("1:2:3:4::5:6:7:8"), STR("[::1]"), STR("::1]"), STR("::g"),
		STR("::1\0"), STR("::1 "), STR(" ::1"), STR("::1.2.3.4:5"), STR("::1.2.3"),
		STR("1:2:3:4:5:6:7:1.2.3.4"), STR("::010.0.0.1"), STR("::1:1.2.3.4.5"), STR("fe80::1%"),
		STR("2001:db8::1%eth0"), STR("::ffff:1.2.3.4%eth0"), STR("fec0::1%eth0"), STR("fe80::1%a%b"),
		STR("fe80::1%a b"), STR("fe80::1%a/b"), STR("fe80::1%\x80"), STR("%eth0"),
		STR("fe80::1%aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), STR("\xd9\xa3.1.1.1"),
		STR("\xef\xbb\xbf"
		    "1.2.3.4")};
	struct ip ip = ip_from_v4(7), before = ip;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (ip_parse(&ip, rows[i]))
			fail_msg("accepted: %.*s", STR_ARG(rows[i]));
		assert_true(ip_equal(&ip, &before));
	}
	assert_false(ip_parse(&ip, (struct str){NULL, 0}));
	assert_false(ip_parse_v4(&ip, STR("::1")));
	assert_false(ip_parse_v6(&ip, STR("1.2.3.4")));
	assert_true(ip_parse_v6(&ip, STR("::ffff:1.2.3.4")));
	assert_true(ip_is_v4(&ip));
}

/* Each byte of a valid text replaced by every other: accepted exactly where the system's parser accepts. */
static void test_against_system(void **state)
{
	static const char *const seeds[] = {"192.168.10.7", "2001:db8:0:a:0:b::c", "::ffff:10.20.30.40",
		"1:2:3:4:5:6:7:8", "::", "a::b:1.2.3.4"};

	(void)state;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		size_t len = strlen(seeds[i]);

		for (size_t at = 0; at < len; at++) {
			for (unsigned c = 1; c < 256; c++) {
				char text[64], out[IP_TEXT_BYTES];
				uint8_t theirs[16], mapped[16] = {[10] = 0xff, [11] = 0xff};
				struct ip ip, again;
				bool expected;

				memcpy(text, seeds[i], len + 1);
				text[at] = (char)c;
				expected = inet_pton(AF_INET6, text, theirs) == 1;
				if (!expected && inet_pton(AF_INET, text, mapped + 12) == 1) {
					expected = true;
					memcpy(theirs, mapped, sizeof(theirs));
				}
				assert_int_equal(ip_parse(&ip, str_make(text, len)), expected);
				if (!expected)
					continue;
				assert_memory_equal(ip.bytes, theirs, 16);
				assert_true(ip_parse(&again, str_make(out, ip_print(&ip, out))));
				assert_true(ip_equal(&ip, &again));
			}
		}
	}
}

static void test_with_port(void **state)
{
	static const struct {
		struct str text;
		const char *ip, *port;
	} rows[] = {
		{STR("1.2.3.4"), "1.2.3.4", ""},
		{STR("1.2.3.4:65535"), "1.2.3.4", "65535"},
		{STR("1.2.3.4:0"), "1.2.3.4", "0"},
		{STR("1.2.3.4:00080"), "1.2.3.4", "00080"},
		{STR("255.255.255.255:65535"), "255.255.255.255", "65535"},
		{STR("[::1]"), "::1", ""},
		{STR("[::1]:80"), "::1", "80"},
		{STR("[::ffff:203.0.113.7]:5678"), "203.0.113.7", "5678"},
		{STR("[fe80::1%eth0]:9999"), "fe80::1", "9999"},
		{STR("[0000:0000:0000:0000:0000:ffff:255.255.255.255]:65535"), "255.255.255.255", "65535"},
		{STR("::1"), "::1", ""},
		{STR("2001:DB8:0:0:0:0:0:7"), "2001:db8::7", ""},
		{STR("fe80::1%eth0"), "fe80::1", ""},
	};
	static const struct str bad[] = {STR(""), STR("1.2.3.4:"), STR("1.2.3.4:65536"),
		STR("1.2.3.4:000080"), STR("1.2.3.4:80:90"), STR("1.2.3.4:-1"), STR("1.2.3.4:8a"),
		STR("1.2.3.4:80 "), STR(":80"), STR("[1.2.3.4]"), STR("[1.2.3.4]:80"), STR("[::1"),
		STR("::1]"), STR("[]"), STR("[]:80"), STR("[::1]80"), STR("[::1]:"), STR("[::1]:65536"),
		STR("[[::1]]"), STR("[::1]]"), STR("2001:db8:1:2:3:4:5:6:8080"), STR("1.2.3.4\0:80"),
		STR("1.2.3.4:8\0"), STR("["), STR("http://1.2.3.4"), STR("'1.2.3.4'"), STR("unknown"),
		STR("[2001:db8::7%eth0]")};
	struct ip ip;
	struct str port = STR("kept");

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (ip_parse_with_port(&ip, bad[i], &port))
			fail_msg("accepted: %.*s", STR_ARG(bad[i]));
		assert_true(str_equal(port, STR("kept")));
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ip expected = parse(rows[i].ip);

		assert_true(ip_parse_with_port(&ip, rows[i].text, &port));
		assert_true(ip_equal(&ip, &expected));
		assert_true(str_equal(port, str_from_z(rows[i].port)));
		assert_true(ip_parse_with_port(&ip, rows[i].text, NULL));
	}
}

static void test_kinds(void **state)
{
	static const struct {
		const char *text;
		bool is_v4, is_unspecified, is_multicast, is_local;
	} rows[] = {
		{"0.0.0.0", true, true, false, false},
		{"::", false, true, false, false},
		{"0.0.0.1", true, false, false, false},
		{"::1", false, false, false, true},
		{"::2", false, false, false, false},
		{"224.0.0.0", true, false, true, false},
		{"239.255.255.250", true, false, true, false},
		{"223.255.255.255", true, false, false, false},
		{"240.0.0.1", true, false, false, false},
		{"255.255.255.255", true, false, true, false},
		{"255.255.255.254", true, false, false, false},
		{"ff00::", false, false, true, false},
		{"fe00::", false, false, false, false},
		{"127.0.0.1", true, false, false, true},
		{"127.255.0.1", true, false, false, true},
		{"126.0.0.1", true, false, false, false},
		{"10.255.0.1", true, false, false, true},
		{"11.0.0.1", true, false, false, false},
		{"172.15.255.255", true, false, false, false},
		{"172.16.0.0", true, false, false, true},
		{"172.31.255.255", true, false, false, true},
		{"172.32.0.0", true, false, false, false},
		{"192.168.0.1", true, false, false, true},
		{"192.169.0.1", true, false, false, false},
		{"100.63.255.255", true, false, false, false},
		{"100.64.0.0", true, false, false, true},
		{"100.127.255.255", true, false, false, true},
		{"100.128.0.0", true, false, false, false},
		{"169.254.1.1", true, false, false, true},
		{"169.253.1.1", true, false, false, false},
		{"fc00::1", false, false, false, true},
		{"fdff::1", false, false, false, true},
		{"fe80::1", false, false, false, true},
		{"febf::1", false, false, false, true},
		{"fec0::1", false, false, false, false},
		{"::10.0.0.1", false, false, false, false},
		{"2001:db8::1", false, false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ip ip = parse(rows[i].text);

		assert_int_equal(ip_is_v4(&ip), rows[i].is_v4);
		assert_int_equal(ip_is_unspecified(&ip), rows[i].is_unspecified);
		assert_int_equal(ip_is_multicast(&ip), rows[i].is_multicast);
		assert_int_equal(ip_is_local(&ip), rows[i].is_local);
	}
}

static void test_order(void **state)
{
	struct ip low = parse("::2"), four = parse("1.2.3.4"), high = parse("2001:db8::1"),
		  built = ip_from_v4(0x01020304);
	struct ip copied = ip_from_bytes(high.bytes);

	(void)state;
	assert_true(ip_compare(&low, &four) < 0);
	assert_true(ip_compare(&high, &four) > 0);
	assert_int_equal(ip_compare(&four, &built), 0);
	assert_true(ip_equal(&four, &built));
	assert_true(ip_equal(&high, &copied));
	assert_false(ip_equal(&high, &low));
}

static void test_nat64(void **state)
{
	struct ip wrapped = parse("64:ff9b::203.0.113.7"), other = parse("64:ff9b:1::203.0.113.7"),
		  plain = parse("203.0.113.7");
	struct ip out;

	(void)state;
	assert_true(ip_unwrap_nat64(&wrapped, &out));
	assert_true(ip_equal(&out, &plain));
	assert_false(ip_unwrap_nat64(&other, &out));
	assert_false(ip_unwrap_nat64(&plain, &out));
	assert_true(ip_unwrap_nat64(&wrapped, &wrapped));
	assert_true(ip_equal(&wrapped, &plain));
}

static void test_mask(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits <= 128; bits++) {
		struct ip ip;

		memset(ip.bytes, 0xff, sizeof(ip.bytes));
		ip_mask(&ip, bits);
		for (unsigned i = 0; i < 128; i++)
			assert_int_equal(ip.bytes[i / 8] >> (7 - i % 8) & 1, i < bits);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_against_system),
		cmocka_unit_test(test_with_port),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_nat64),
		cmocka_unit_test(test_mask),
	};

	return cmocka_run_group_tests_name("ip", tests, NULL, NULL);
}
