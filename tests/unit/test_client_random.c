/* SPDX-License-Identifier: MIT */
/*
 * What must hold for any header at all, on seeded random input: entries are drawn from a pool of good, odd and hostile
 * ones. A failure prints the round; the seed is fixed, so the round is the case.
 */
#include "core/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#define ROUNDS 20000
#define ENTRIES_MAX 6
#define LINE_BYTES 1024
#define BIG_BYTES ((size_t)64 * 1024)

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 33) % n;
}

#define PICK(array) ((array)[random_below((unsigned)(sizeof(array) / sizeof((array)[0])))])

static const struct str plain_entries[] = {
	STR("203.0.113.7"),
	STR("198.51.100.9:4711"),
	STR("10.1.1.1"),
	STR("10.2.2.2:80"),
	STR("192.0.2.10"),
	STR("2001:db8::7"),
	STR("[2001:db8:10::9]:443"),
	STR("::ffff:10.3.3.3"),
	STR("fe80::1%eth0"),
	STR("unknown"),
	STR("unix:"),
	STR(""),
	STR("0.0.0.0"),
	STR("224.0.0.1"),
	STR("010.0.0.1"),
	STR("\"6.6.6.6"),
	STR("a\0b"),
	STR("\xe9"),
};

/* Elements as proxies write them: each is well formed, so a list may be cut into lines between them. */
static const struct str forwarded_entries[] = {
	STR("for=203.0.113.7"),
	STR("for=\"198.51.100.9:4711\";proto=https"),
	STR("for=10.1.1.1;host=\"a,b;for=6.6.6.6\""),
	STR("For=192.0.2.10;by=10.0.0.9"),
	STR("for=\"[2001:db8::7]\""),
	STR("for=\"[2001:db8:10::9]:443\";host=\"a\\\",for=6.6.6.6\""),
	STR("for=10.2.2.2;ext=\"\\\\\""),
	STR("for=unknown"),
	STR("for=_edge"),
	STR("proto=https"),
	STR(""),
	STR("for=10.1.1.1;for=6.6.6.6"),
	STR("for = 6.6.6.6"),
	STR("for=\"\xe9\""),
};

/* What a client may put in front. */
static const struct str prefixes[] = {
	STR(""),
	STR("6.6.6.6"),
	STR("for=6.6.6.6"),
	STR("for=\"evil"),
	STR("for=\"evil\\"),
	STR("for=\"evil\\\\\\\""),
	STR("\\\""),
	STR("\"\"\""),
	STR("for=6.6.6.6;x=\""),
	STR(",,,"),
	STR("\0\x01\x7f\xff"),
	STR("10.1.1.1, 10.2.2.2"),
	STR("for=10.1.1.1, for=192.0.2.10"),
	STR("a;b;;=;for"),
};

static const enum strategy strategies[] = {
	STRATEGY_SINGLE_VALUE, STRATEGY_RIGHTMOST, STRATEGY_HOP_COUNT, STRATEGY_TRUSTED_RANGES};

struct chain {
	struct str entries[ENTRIES_MAX];
	size_t n;
};

static struct range_set trusted_ranges;

static struct client_rule rule_random(void)
{
	struct client_rule rule = {.strategy = PICK(strategies),
		.trusted = trusted_ranges,
		.header = STR("X-Forwarded-For"),
		.none_on_undecided = random_below(4) == 0,
		.ipv6_prefix = 64,
		.network_v4 = 24,
		.network_v6 = 48};

	if (random_below(2) == 0) {
		rule.header = STR("Forwarded");
		rule.header_is_forwarded = true;
	}
	if (rule.strategy == STRATEGY_HOP_COUNT)
		rule.hops = 1 + random_below(4);
	return rule;
}

static struct chain chain_random(const struct client_rule *rule)
{
	struct chain chain = {.n = 1 + random_below(ENTRIES_MAX)};

	for (size_t i = 0; i < chain.n; i++)
		chain.entries[i] = rule->header_is_forwarded ? PICK(forwarded_entries) : PICK(plain_entries);
	return chain;
}

/* Lines with room behind them. */
struct lines {
	struct header_line items[ENTRIES_MAX + 4];
	size_t n;
	char bytes[ENTRIES_MAX + 4][LINE_BYTES];
};

static void line_append(struct lines *lines, struct str s)
{
	struct str *value = &lines->items[lines->n - 1].value;

	assert_true(value->len + s.len <= LINE_BYTES);
	memcpy(lines->bytes[lines->n - 1] + value->len, s.ptr, s.len);
	value->len += s.len;
}

static void line_new(struct lines *lines, struct str name)
{
	assert_true(lines->n < ENTRIES_MAX + 4);
	lines->items[lines->n] = (struct header_line){name, str_make(lines->bytes[lines->n], 0)};
	lines->n++;
}

/* Puts a comma between entries, or a new line with one chance in line_chance (0: never). */
static void lines_fill(struct lines *lines, struct str name, const struct chain *chain, unsigned line_chance)
{
	static const struct str commas[] = {STR(","), STR(", "), STR(" ,"), STR("\t, ")};

	for (size_t i = 0; i < chain->n; i++) {
		if (i == 0 || (line_chance != 0 && random_below(line_chance) == 0))
			line_new(lines, name);
		else
			line_append(lines, PICK(commas));
		line_append(lines, chain->entries[i]);
	}
}

static struct client resolve(
	const struct client_rule *rule, const char *remote_addr_z, const struct lines *lines)
{
	struct request req = {
		.remote_addr = str_from_z(remote_addr_z), .headers = lines->items, .n_headers = lines->n};
	struct client_trace trace;
	struct client c, traced;

	client_resolve(rule, &req, NULL, &c);
	client_resolve(rule, &req, &trace, &traced);
	assert_int_equal(c.reason, traced.reason);
	assert_int_equal(c.has_address, traced.has_address);
	assert_in_range(trace.n_steps, 1, CLIENT_STEPS_MAX);
	assert_in_range(trace.entries_unread, 0, BIG_BYTES + LINE_BYTES);
	return c;
}

static void assert_same(const struct client *a, const struct client *b, unsigned round)
{
	if (a->reason != b->reason || a->has_address != b->has_address || !ip_equal(&a->address, &b->address))
		fail_msg("round %u: %.*s, then %.*s", round, STR_ARG(client_reason_word(a->reason)),
			STR_ARG(client_reason_word(b->reason)));
}

static void test_prefix_changes_nothing(void **state)
{
	static struct lines plain, prefixed;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct client_rule rule = rule_random();
		struct chain chain = chain_random(&rule);
		struct client before, after;

		plain.n = prefixed.n = 0;
		lines_fill(&plain, rule.header, &chain, 0);
		line_new(&prefixed, rule.header);
		line_append(&prefixed, PICK(prefixes));
		if (random_below(2) == 0) {
			line_new(&prefixed, rule.header);
		} else {
			line_append(&prefixed, STR(", "));
		}
		line_append(&prefixed, plain.items[0].value);

		before = resolve(&rule, "10.0.0.5:4711", &plain);
		after = resolve(&rule, "10.0.0.5:4711", &prefixed);
		if (rule.strategy == STRATEGY_SINGLE_VALUE)
			assert_false(after.decided);
		else if (before.decided)
			assert_same(&before, &after, round);
	}
}

static void test_splitting_changes_nothing(void **state)
{
	static struct lines whole, split;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct client_rule rule = rule_random();
		struct chain chain = chain_random(&rule);
		struct client a, b;
		bool blank = true;

		for (size_t i = 0; i < chain.n; i++)
			blank = blank && chain.entries[i].len == 0;
		/* A blank header is told apart from a list of blank entries; both are undecided. */
		if (blank || rule.strategy == STRATEGY_SINGLE_VALUE)
			continue;
		whole.n = split.n = 0;
		lines_fill(&whole, rule.header, &chain, 0);
		lines_fill(&split, rule.header, &chain, 1 + random_below(3));
		a = resolve(&rule, "10.0.0.5:4711", &whole);
		b = resolve(&rule, "10.0.0.5:4711", &split);
		assert_same(&a, &b, round);
	}
}

static void test_case_and_other_headers_change_nothing(void **state)
{
	static const struct str others[] = {STR("X-Real-IP"), STR("X_Forwarded_For"), STR("X-Forwarded-For "),
		STR("X-Forwarded-Fo"), STR("Forwarde"), STR("Forwarded-For"), STR(""),
		STR("CF-Connecting-IP")};
	static struct lines plain, odd;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct client_rule rule = rule_random();
		struct chain chain = chain_random(&rule);
		char name[16];
		struct client a, b;

		for (size_t i = 0; i < rule.header.len; i++) {
			char c = str_lower_char(rule.header.ptr[i]);

			name[i] = c >= 'a' && random_below(2) == 0 ? (char)(c - 32) : c;
		}
		plain.n = odd.n = 0;
		lines_fill(&plain, rule.header, &chain, 0);
		line_new(&odd, PICK(others));
		line_append(&odd, STR("6.6.6.6"));
		lines_fill(&odd, str_make(name, rule.header.len), &chain, 0);
		line_new(&odd, PICK(others));
		line_append(&odd, STR("6.6.6.6"));
		a = resolve(&rule, "10.0.0.5:4711", &plain);
		b = resolve(&rule, "10.0.0.5:4711", &odd);
		assert_same(&a, &b, round);
	}
}

static void test_untrusted_peer_is_the_answer(void **state)
{
	static struct lines lines;
	struct ip peer;

	(void)state;
	assert_true(ip_parse(&peer, STR("198.51.100.99")));
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct client_rule rule = rule_random();
		struct chain chain = chain_random(&rule);
		struct client c;

		lines.n = 0;
		lines_fill(&lines, rule.header, &chain, 2);
		c = resolve(&rule, "198.51.100.99:4711", &lines);
		assert_int_equal(c.reason, CLIENT_REASON_PEER_UNTRUSTED);
		assert_true(c.has_address && c.decided && !c.header_read && ip_equal(&c.address, &peer));
	}
}

static void test_result_reads_back_as_itself(void **state)
{
	static struct lines lines, again;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct client_rule rule = rule_random();
		struct client_rule single = rule;
		struct chain chain = chain_random(&rule);
		char text[IP_TEXT_BYTES];
		struct client c, back;

		lines.n = again.n = 0;
		lines_fill(&lines, rule.header, &chain, 2);
		c = resolve(&rule, "[2001:db8:10::5]:9", &lines);
		assert_int_equal(c.decided, client_reason_decided(c.reason));
		if (!c.has_address) {
			assert_true(rule.none_on_undecided);
			continue;
		}
		if (!c.decided)
			assert_true(!rule.none_on_undecided && ip_equal(&c.address, &c.peer));
		single.strategy = STRATEGY_SINGLE_VALUE;
		single.header = STR("X-Forwarded-For");
		single.header_is_forwarded = false;
		line_new(&again, single.header);
		line_append(&again, str_make(text, ip_print(&c.address, text)));
		back = resolve(&single, "10.0.0.5", &again);
		assert_int_equal(back.reason, CLIENT_REASON_SINGLE_VALUE);
		assert_true(ip_equal(&back.address, &c.address));
	}
}

/* 64 KiB of one pattern, on one line and as the second of two. */
/* The thread sanitizer alone takes 13 s for it. */
#ifdef __SANITIZE_THREAD__
#define SCANS_S 60
#else
#define SCANS_S 10
#endif

static void test_hostile_bytes(void **state)
{
	static const struct str patterns[] = {STR("\0"), STR(","), STR("\""), STR("\\"), STR(" "),
		STR("\xff"), STR("1"), STR(";"), STR("="), STR(":"), STR("["), STR("for=;"), STR("\\\""),
		STR("\"\\"), STR("\","), STR("\\,"), STR("\"\\\","), STR("for=\"\","), STR("10.1.1.1,"),
		STR("for=10.1.1.1,"), STR("_")};
	char *big = malloc(BIG_BYTES);
	clock_t start = clock();
	struct ip listed;

	(void)state;
	assert_non_null(big);
	assert_true(ip_parse(&listed, STR("10.1.1.1")));
	for (size_t p = 0; p < sizeof(patterns) / sizeof(patterns[0]); p++) {
		for (size_t i = 0; i < BIG_BYTES; i++)
			big[i] = patterns[p].ptr[i % patterns[p].len];
		for (unsigned form = 0; form < sizeof(strategies) / sizeof(strategies[0]) * 4; form++) {
			static struct lines lines;
			struct client_rule rule = rule_random();
			struct client c;

			rule.strategy = strategies[form / 4];
			rule.hops = rule.strategy == STRATEGY_HOP_COUNT ? CLIENT_HOPS_MAX : 0;
			rule.header_is_forwarded = form % 2 != 0;
			rule.header = form % 2 != 0 ? STR("Forwarded") : STR("X-Forwarded-For");
			lines.n = 0;
			line_new(&lines, rule.header);
			if (form % 4 >= 2)
				line_new(&lines, rule.header);
			lines.items[lines.n - 1].value = str_make(big, BIG_BYTES);
			c = resolve(&rule, "10.0.0.5:4711", &lines);
			assert_true(!c.decided || ip_equal(&c.address, &listed));
		}
	}
	free(big);
	/* A quadratic scan would take minutes. */
	assert_in_range((clock() - start) / CLOCKS_PER_SEC, 0, SCANS_S);
}

/* The reasons that such lines end with. */
static void test_hostile_reasons(void **state)
{
	static const struct {
		const char *pattern_z;
		bool forwarded;
		enum client_reason reason;
	} cases[] = {
		{",", false, CLIENT_REASON_EMPTY_ENTRY},
		{"\"", false, CLIENT_REASON_INVALID_ADDRESS},
		{"\\", false, CLIENT_REASON_INVALID_ADDRESS},
		{" ", false, CLIENT_REASON_HEADER_EMPTY},
		{"\x01", false, CLIENT_REASON_ILLEGAL_BYTES},
		{",", true, CLIENT_REASON_EMPTY_ENTRY},
		{"\"", true, CLIENT_REASON_FOR_MISSING},
		{"\\", true, CLIENT_REASON_FOR_MISSING},
		{"\t", true, CLIENT_REASON_HEADER_EMPTY},
		{"\x01", true, CLIENT_REASON_ILLEGAL_BYTES},
	};
	static struct lines lines;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct client_rule rule = rule_random();
		struct client c;

		rule.strategy = STRATEGY_RIGHTMOST;
		rule.header_is_forwarded = cases[i].forwarded;
		rule.header = STR("X-Forwarded-For");
		lines.n = 0;
		line_new(&lines, rule.header);
		for (unsigned n = 0; n < 64; n++)
			line_append(&lines, str_from_z(cases[i].pattern_z));
		c = resolve(&rule, "10.0.0.5:4711", &lines);
		if (c.reason != cases[i].reason)
			fail_msg("%zu: %.*s", i, STR_ARG(client_reason_word(c.reason)));
		if (cases[i].forwarded && cases[i].pattern_z[0] == '"') {
			line_append(&lines, STR("\""));
			c = resolve(&rule, "10.0.0.5:4711", &lines);
			assert_int_equal(c.reason, CLIENT_REASON_MALFORMED_HEADER);
		}
	}
}

static int set_up(void **state)
{
	static char block[1024];
	static const struct str texts[] = {STR("10.0.0.0/8"), STR("192.0.2.0/24"), STR("2001:db8:10::/48")};
	struct range items[3];
	struct arena a;
	const char *why;

	(void)state;
	random_state = 0x706f737465726e21;
	for (size_t i = 0; i < 3; i++)
		if (!range_parse(&items[i], texts[i], &why, NULL, NULL))
			return -1;
	arena_init(&a, block, sizeof(block));
	return range_set_build(&trusted_ranges, &a, items, 3) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_prefix_changes_nothing, set_up),
		cmocka_unit_test_setup(test_splitting_changes_nothing, set_up),
		cmocka_unit_test_setup(test_case_and_other_headers_change_nothing, set_up),
		cmocka_unit_test_setup(test_untrusted_peer_is_the_answer, set_up),
		cmocka_unit_test_setup(test_result_reads_back_as_itself, set_up),
		cmocka_unit_test_setup(test_hostile_bytes, set_up),
		cmocka_unit_test_setup(test_hostile_reasons, set_up),
	};

	return cmocka_run_group_tests_name("client_random", tests, NULL, NULL);
}
