/* SPDX-License-Identifier: MIT */
/*
 * Keys, traces and reasons of the client's address on chains that occur in practice. The full table of cases is in
 * test_vectors.c, the properties that hold for any input in test_client_random.c.
 */
#include "core/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define XFF STR("X-Forwarded-For")

static struct range range_of(const char *text_z)
{
	const char *why = NULL;
	struct range r;

	if (!range_parse(&r, str_from_z(text_z), &why, NULL, NULL))
		fail_msg("%s: %s", text_z, why);
	return r;
}

/* Trusts 10.0.0.0/8, 192.0.2.0/24 and 2001:db8:10::/48. */
static struct client_rule rule_of(enum strategy strategy)
{
	static struct range_set ours;
	static char block[1024];
	struct arena a;
	struct range items[3] = {
		range_of("10.0.0.0/8"), range_of("192.0.2.0/24"), range_of("2001:db8:10::/48")};

	if (ours.n == 0) {
		arena_init(&a, block, sizeof(block));
		assert_true(range_set_build(&ours, &a, items, 3));
	}
	return (struct client_rule){.strategy = strategy,
		.trusted = ours,
		.header = XFF,
		.hops = strategy == STRATEGY_HOP_COUNT ? 2 : 0,
		.ipv6_prefix = 64,
		.network_v4 = 24,
		.network_v6 = 48};
}

static struct request request_of(const char *remote_addr_z, const struct header_line *lines, size_t n)
{
	return (struct request){.remote_addr = str_from_z(remote_addr_z), .headers = lines, .n_headers = n};
}

static void assert_ip(const struct ip *ip, const char *expected_z)
{
	char text[IP_TEXT_BYTES];

	ip_print(ip, text);
	assert_string_equal(text, expected_z);
}

static void assert_str(struct str s, const char *expected_z)
{
	if (!str_equal(s, str_from_z(expected_z)))
		fail_msg("\"%.*s\" is not \"%s\"", STR_ARG(s), expected_z);
}

static void test_strategy_words(void **state)
{
	(void)state;
	for (unsigned s = 0; s < STRATEGY_COUNT; s++)
		assert_int_equal(strategy_find(strategy_word((enum strategy)s)), s);
	assert_int_equal(strategy_find(STR("")), STRATEGY_COUNT);
	assert_int_equal(strategy_find(STR("Peer")), STRATEGY_COUNT);
	assert_int_equal(strategy_find(STR("trusted_range")), STRATEGY_COUNT);
	assert_str(strategy_word(STRATEGY_TRUSTED_RANGES), "trusted_ranges");
}

/* ---- keys ---- */

static const struct {
	const char *address_z;
	unsigned prefix;
	bool undecided;
	const char *key_z, *network_z;
} keys[] = {
	{"203.0.113.7", 64, false, "4:203.0.113.7", "4:203.0.113.0/24"},
	{"::ffff:203.0.113.7", 64, false, "4:203.0.113.7", "4:203.0.113.0/24"},
	{"64:ff9b::cb00:7107", 64, false, "4:203.0.113.7", "4:203.0.113.0/24"},
	{"203.0.113.7", 32, false, "4:203.0.113.7", "4:203.0.113.0/24"},
	{"64:ff9b::cb00:7107", 128, false, "4:203.0.113.7", "4:203.0.113.0/24"},
	{"2001:db8:1:2:3:4:5:6", 64, false, "6:2001:db8:1:2::/64", "6:2001:db8:1::/48"},
	{"2001:db8:1:2:ffff::9", 64, false, "6:2001:db8:1:2::/64", "6:2001:db8:1::/48"},
	{"2001:db8:1:1ff::1", 56, false, "6:2001:db8:1:100::/56", "6:2001:db8:1::/48"},
	{"2001:db8:1:2:3:4:5:6", 48, false, "6:2001:db8:1::/48", "6:2001:db8:1::/48"},
	{"2001:db8:1:2:3:4:5:6", 128, false, "6:2001:db8:1:2:3:4:5:6/128", "6:2001:db8:1::/48"},
	{"2002:cb00:7107::1", 64, false, "6:2002:cb00:7107::/48", "6:2002:cb00:7107::/48"},
	{"2002:cb00:7107:ffff::1", 128, false, "6:2002:cb00:7107::/48", "6:2002:cb00:7107::/48"},
	{"2002:cb00:7107::1", 32, false, "6:2002:cb00:7107::/48", "6:2002:cb00:7107::/48"},
	{"fd00:1:2:3::9", 64, false, "6:fd00:1:2:3::9/128", "6:fd00:1:2::/48"},
	{"fe80::1", 64, false, "6:fe80::1/128", "6:fe80::/48"},
	{"::1", 32, false, "6:::1/128", "6:::/48"},
	{"10.0.0.1", 64, true, "u:4:10.0.0.1", "u:4:10.0.0.0/24"},
	{"2001:db8:1:2:3:4:5:6", 64, true, "u:6:2001:db8:1:2::/64", "u:6:2001:db8:1::/48"},
	{NULL, 64, true, "none", "none"},
};

static void test_keys(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct client_rule rule = rule_of(STRATEGY_PEER);
		struct client c = {.decided = !keys[i].undecided, .has_address = keys[i].address_z != NULL};
		uint8_t key[CLIENT_KEY_BYTES];
		char text[CLIENT_KEY_TEXT_BYTES];
		size_t len;

		rule.ipv6_prefix = keys[i].prefix;
		if (c.has_address)
			assert_true(ip_parse(&c.address, str_from_z(keys[i].address_z)));
		len = client_key(&rule, &c, key);
		assert_in_range(len, 1, CLIENT_KEY_BYTES);
		assert_str(str_make(text, client_key_text(key, len, text)), keys[i].key_z);
		len = client_network_key(&rule, &c, key);
		assert_str(str_make(text, client_key_text(key, len, text)), keys[i].network_z);
	}
}

static void test_keys_other_networks(void **state)
{
	struct client_rule rule = rule_of(STRATEGY_PEER);
	struct client c = {.decided = true, .has_address = true};
	uint8_t key[CLIENT_KEY_BYTES];
	char text[CLIENT_KEY_TEXT_BYTES];

	(void)state;
	rule.network_v4 = 32;
	rule.network_v6 = 40;
	assert_true(ip_parse(&c.address, STR("203.0.113.7")));
	assert_str(str_make(text, client_key_text(key, client_network_key(&rule, &c, key), text)),
		"4:203.0.113.7");
	assert_true(ip_parse(&c.address, STR("2002:cb00:7107::1")));
	assert_str(str_make(text, client_key_text(key, client_network_key(&rule, &c, key), text)),
		"6:2002:cb00:7100::/40");
}

static void test_key_text_of_other_bytes(void **state)
{
	const uint8_t odd[] = {9, 9, 9, 9, 9, 9};
	const uint8_t cut[] = {4, 32, 10};
	char text[CLIENT_KEY_TEXT_BYTES];

	(void)state;
	assert_str(str_make(text, client_key_text(odd, sizeof(odd), text)), "none");
	assert_str(str_make(text, client_key_text(cut, sizeof(cut), text)), "none");
	assert_str(str_make(text, client_key_text(cut, 0, text)), "none");
}

/* ---- what is told beside the address ---- */

static void test_facts(void **state)
{
	static const struct {
		enum strategy strategy;
		bool any, unix_trusted;
		const char *remote_addr_z, *header_z;
		bool has_peer, is_unix, header_read, forwarding;
		enum client_reason reason;
	} cases[] = {
		{STRATEGY_PEER, false, false, "10.0.0.5:1", NULL, true, false, false, false,
			CLIENT_REASON_PEER},
		{STRATEGY_PEER, false, false, "10.0.0.5:1", "x-forwarded-FOR", true, false, false, true,
			CLIENT_REASON_PEER},
		{STRATEGY_PEER, false, false, "10.0.0.5:1", "forwarded", true, false, false, true,
			CLIENT_REASON_PEER},
		{STRATEGY_PEER, false, false, "10.0.0.5:1", "X-Forwarded_For", true, false, false, false,
			CLIENT_REASON_PEER},
		{STRATEGY_PEER, false, false, "@", "X-Real-IP", false, true, false, false,
			CLIENT_REASON_PEER_UNUSABLE},
		{STRATEGY_RIGHTMOST, false, false, "198.51.100.9", "X-Forwarded-For", true, false, false,
			true, CLIENT_REASON_PEER_UNTRUSTED},
		{STRATEGY_RIGHTMOST, false, false, "10.0.0.5", "X-Forwarded-For", true, false, true, true,
			CLIENT_REASON_RIGHTMOST},
		{STRATEGY_RIGHTMOST, false, false, "10.0.0.5", "Forwarded", true, false, true, true,
			CLIENT_REASON_HEADER_MISSING},
		{STRATEGY_RIGHTMOST, false, true, "unix:/p", "X-Forwarded-For", false, true, true, true,
			CLIENT_REASON_RIGHTMOST},
		{STRATEGY_RIGHTMOST, false, false, "/p", "X-Forwarded-For", false, true, false, true,
			CLIENT_REASON_PEER_UNUSABLE},
		{STRATEGY_RIGHTMOST, true, false, "junk", "X-Forwarded-For", false, false, true, true,
			CLIENT_REASON_RIGHTMOST},
		{STRATEGY_RIGHTMOST, false, true, "0.0.0.0", "X-Forwarded-For", false, false, false, true,
			CLIENT_REASON_PEER_UNUSABLE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_rule rule = rule_of(cases[i].strategy);
		struct header_line line = {str_from_z(cases[i].header_z), STR("203.0.113.7")};
		struct request req = request_of(cases[i].remote_addr_z, &line, cases[i].header_z != NULL);
		struct client c;

		rule.trust_any = cases[i].any;
		rule.trust_unix = cases[i].unix_trusted;
		client_resolve(&rule, &req, NULL, &c);
		assert_str(client_reason_word(c.reason), client_reason_word(cases[i].reason).ptr);
		assert_int_equal(c.has_peer, cases[i].has_peer);
		assert_int_equal(c.peer_is_unix, cases[i].is_unix);
		assert_int_equal(c.header_read, cases[i].header_read);
		assert_int_equal(c.forwarding_present, cases[i].forwarding);
		assert_int_equal(c.decided, client_reason_decided(cases[i].reason));
	}
}

/* Syntax of Forwarded around escapes, where the table of cases ends. */
static void test_forwarded_escapes(void **state)
{
	static const struct {
		const char *value_z;
		enum client_reason reason;
	} cases[] = {
		{"for=\"\\2\\0\\3.0.113.7\"", CLIENT_REASON_RIGHTMOST},
		{"for=\"\\[2001:db8::7\\]:80\"", CLIENT_REASON_RIGHTMOST},
		{"for=\"\\_name\"", CLIENT_REASON_OBFUSCATED},
		{"for=\"\"", CLIENT_REASON_INVALID_ADDRESS},
		{"for=\"203.0.113.7\"\"x\"", CLIENT_REASON_MALFORMED_HEADER},
		{"for=\"203.0.113.7\"x", CLIENT_REASON_MALFORMED_HEADER},
		{"for=\t203.0.113.7", CLIENT_REASON_MALFORMED_HEADER},
		{"for\t=203.0.113.7", CLIENT_REASON_MALFORMED_HEADER},
		{"for=203.0.113.7;proto", CLIENT_REASON_RIGHTMOST},
		{"for=203.0.113.7;host=\"a;for=6.6.6.6\"", CLIENT_REASON_RIGHTMOST},
		{"for=203.0.113.7;host=a\x7f", CLIENT_REASON_ILLEGAL_BYTES},
		{"for=203.0.113.7;host=\"a\tb\"", CLIENT_REASON_RIGHTMOST},
		{"for=\"unknown:_p\"", CLIENT_REASON_UNKNOWN},
		{"for=\"unknown:99999\"", CLIENT_REASON_INVALID_ADDRESS},
		{"for=\"_a:\"", CLIENT_REASON_INVALID_ADDRESS},
		{"for=\"[203.0.113.7]\"", CLIENT_REASON_INVALID_ADDRESS},
		/* A proxy that quotes Host and does not escape it: the string seems to end where the client says. */
		{"for=6.6.6.6;x=\", for=203.0.113.7;host=\"a\\\"", CLIENT_REASON_MALFORMED_HEADER},
		{"for=203.0.113.7;host=\\\"", CLIENT_REASON_MALFORMED_HEADER},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_rule rule = rule_of(STRATEGY_RIGHTMOST);
		struct header_line line = {STR("Forwarded"), str_from_z(cases[i].value_z)};
		struct request req = request_of("10.0.0.5", &line, 1);
		struct client c;

		rule.header = STR("Forwarded");
		rule.header_is_forwarded = true;
		client_resolve(&rule, &req, NULL, &c);
		if (c.reason != cases[i].reason)
			fail_msg("%s: %.*s", cases[i].value_z, STR_ARG(client_reason_word(c.reason)));
	}
}

/* ---- traces ---- */

static void test_trace_walk(void **state)
{
	const struct client_rule rule = rule_of(STRATEGY_TRUSTED_RANGES);
	const struct header_line lines[] = {{STR("Connection"), STR("close, x-forwarded-for")},
		{XFF, STR("6.6.6.6, 1.1.1.1, 203.0.113.7:99")}, {STR("X-Real-IP"), STR("6.6.6.6")},
		{XFF, STR("192.0.2.10 ,10.1.1.1")}};
	struct request req = request_of("10.0.0.5:4711", lines, 4);
	struct client_trace t;
	struct client c;
	char text[RANGE_TEXT_BYTES];

	(void)state;
	client_resolve(&rule, &req, &t, &c);
	assert_ip(&c.address, "203.0.113.7");
	assert_int_equal(t.n_steps, 4);
	assert_int_equal(t.steps_left_out, 0);
	assert_int_equal(t.lines, 2);
	assert_int_equal(t.entries_unread, 2);
	assert_true(t.other_forwarding);
	assert_true(t.connection_names_header);

	assert_int_equal(t.steps[0].verdict, STEP_TRUSTED);
	assert_true(t.steps[0].is_peer);
	assert_str(t.steps[0].raw, "10.0.0.5:4711");
	assert_ip(&t.steps[0].address, "10.0.0.5");
	range_print(t.steps[0].by, text);
	assert_string_equal(text, "10.0.0.0/8");

	assert_int_equal(t.steps[1].verdict, STEP_TRUSTED);
	assert_int_equal(t.steps[1].position, -1);
	assert_int_equal(t.steps[1].line, 2);
	assert_str(t.steps[1].raw, "10.1.1.1");
	assert_int_equal(t.steps[2].position, -2);
	assert_int_equal(t.steps[2].line, 2);
	range_print(t.steps[2].by, text);
	assert_string_equal(text, "192.0.2.0/24");

	assert_int_equal(t.steps[3].verdict, STEP_CHOSEN);
	assert_int_equal(t.steps[3].position, -3);
	assert_int_equal(t.steps[3].line, 1);
	assert_str(t.steps[3].raw, "203.0.113.7:99");
	assert_true(t.steps[3].has_address);
	assert_null(t.steps[3].by);
}

static void test_trace_refused(void **state)
{
	const struct client_rule rule = rule_of(STRATEGY_HOP_COUNT);
	const struct header_line lines[] = {{XFF, STR("6.6.6.6, unknown, unix:")}};
	struct request req = request_of("10.0.0.5", lines, 1);
	struct client_trace t;
	struct client c;

	(void)state;
	client_resolve(&rule, &req, &t, &c);
	assert_int_equal(c.reason, CLIENT_REASON_UNKNOWN);
	assert_int_equal(t.n_steps, 4);
	assert_int_equal(t.entries_unread, 1);
	assert_int_equal(t.steps[1].verdict, STEP_COUNTED);
	assert_false(t.steps[1].has_address);
	assert_int_equal(t.steps[2].verdict, STEP_REFUSED);
	assert_int_equal(t.steps[2].reason, CLIENT_REASON_UNKNOWN);
	assert_str(t.steps[2].raw, "unknown");
	assert_int_equal(t.steps[3].verdict, STEP_FALLBACK);
	assert_false(t.steps[3].is_peer);
	assert_int_equal(t.steps[3].position, 0);
	assert_int_equal(t.steps[3].reason, CLIENT_REASON_UNKNOWN);
	assert_ip(&t.steps[3].address, "10.0.0.5");
}

static void test_trace_gate(void **state)
{
	struct client_rule rule = rule_of(STRATEGY_RIGHTMOST);
	const struct header_line lines[] = {{XFF, STR("6.6.6.6, 7.7.7.7")}, {XFF, STR("")}};
	struct request req = request_of("198.51.100.9:1", lines, 2);
	struct client_trace t;
	struct client c;

	(void)state;
	client_resolve(&rule, &req, &t, &c);
	assert_int_equal(t.n_steps, 1);
	assert_int_equal(t.steps[0].verdict, STEP_UNTRUSTED);
	assert_int_equal(t.entries_unread, 3);

	req.remote_addr = STR("@");
	client_resolve(&rule, &req, &t, &c);
	assert_int_equal(t.n_steps, 2);
	assert_int_equal(t.steps[0].verdict, STEP_REFUSED);
	assert_int_equal(t.steps[1].verdict, STEP_FALLBACK);
	assert_false(t.steps[1].has_address);

	rule.trust_unix = true;
	client_resolve(&rule, &req, &t, &c);
	assert_int_equal(t.steps[0].verdict, STEP_TRUSTED);
	assert_null(t.steps[0].by);
	assert_int_equal(t.steps[1].reason, CLIENT_REASON_EMPTY_ENTRY);

	rule.strategy = STRATEGY_PEER;
	req.remote_addr = STR("198.51.100.9:1");
	client_resolve(&rule, &req, &t, &c);
	assert_int_equal(t.n_steps, 1);
	assert_int_equal(t.steps[0].verdict, STEP_CHOSEN);
	assert_int_equal(t.lines, 0);
	assert_true(t.other_forwarding);
}

/* More entries than a trace keeps: the nearest and the one that ended the walk. */
static void test_trace_long(void **state)
{
	const struct client_rule rule = rule_of(STRATEGY_TRUSTED_RANGES);
	struct header_line lines[80] = {{XFF, STR("6.6.6.6, 203.0.113.7")}};
	struct request req = request_of("10.0.0.5", lines, 21);
	struct client_trace t;
	struct client c;

	(void)state;
	for (size_t i = 1; i < 80; i++)
		lines[i] = (struct header_line){XFF, STR("10.9.9.9")};
	client_resolve(&rule, &req, &t, &c);
	assert_ip(&c.address, "203.0.113.7");
	assert_int_equal(t.n_steps, 9);
	assert_int_equal(t.steps_left_out, 13);
	assert_int_equal(t.steps[7].position, -7);
	assert_int_equal(t.steps[8].position, -21);
	assert_int_equal(t.steps[8].line, 1);
	assert_int_equal(t.steps[8].verdict, STEP_CHOSEN);
	assert_int_equal(t.entries_unread, 1);

	req.n_headers = 80;
	client_resolve(&rule, &req, &t, &c);
	assert_int_equal(c.reason, CLIENT_REASON_TOO_MANY_HOPS);
	assert_int_equal(t.n_steps, CLIENT_STEPS_MAX);
	assert_int_equal(t.steps_left_out, 56);
	assert_int_equal(t.entries_unread, 81 - 64);
	assert_int_equal(t.steps[9].verdict, STEP_FALLBACK);
}

static void test_trace_single(void **state)
{
	const struct client_rule rule = rule_of(STRATEGY_SINGLE_VALUE);
	const struct header_line lines[] = {{XFF, STR(" 203.0.113.7 ")}, {XFF, STR("203.0.113.7")}};
	struct request req = request_of("10.0.0.5", lines, 1);
	struct client_trace t;
	struct client c;

	(void)state;
	client_resolve(&rule, &req, &t, &c);
	assert_int_equal(t.n_steps, 2);
	assert_int_equal(t.steps[1].verdict, STEP_CHOSEN);
	assert_int_equal(t.steps[1].line, 1);
	assert_str(t.steps[1].raw, "203.0.113.7");
	assert_int_equal(t.entries_unread, 0);
	assert_false(t.other_forwarding);
	assert_false(t.connection_names_header);

	req.n_headers = 2;
	client_resolve(&rule, &req, &t, &c);
	assert_int_equal(t.n_steps, 2);
	assert_int_equal(t.steps[1].verdict, STEP_FALLBACK);
	assert_int_equal(t.steps[1].reason, CLIENT_REASON_MULTIPLE_LINES);
	assert_int_equal(t.entries_unread, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strategy_words),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_keys_other_networks),
		cmocka_unit_test(test_key_text_of_other_bytes),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_forwarded_escapes),
		cmocka_unit_test(test_trace_walk),
		cmocka_unit_test(test_trace_refused),
		cmocka_unit_test(test_trace_gate),
		cmocka_unit_test(test_trace_long),
		cmocka_unit_test(test_trace_single),
	};

	return cmocka_run_group_tests_name("client", tests, NULL, NULL);
}
