/* SPDX-License-Identifier: MIT */
/*
 * Rules one by one, and the bytes of keys. Some keys are spelled out: they are shared by instances and outlive a
 * reload, so a change of their form must be noticed.
 */
#include "core/policy.h"

#include "base/digest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct identity identities[] = {{.name = {"edge", 4}}, {.name = {"agent", 5}}};

static _Alignas(16) char block[8192];
static struct arena arena;
static struct ruleset rules;
static struct client client;
static struct token_result token;
static struct request req;
static struct policy_view view;

static struct fact fact(const char *text_z)
{
	return (struct fact){str_from_z(text_z), text_z != NULL};
}

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, block, sizeof(block));
	rules = (struct ruleset){.client = {.ipv6_prefix = 64, .network_v4 = 24, .network_v6 = 48}};
	client = (struct client){.has_address = true,
		.decided = true,
		.reason = CLIENT_REASON_PEER,
		.address = ip_from_v4(0xc6336407)}; /* 198.51.100.7 */
	token = (struct token_result){.state = TOKEN_STATE_ABSENT};
	req = (struct request){.cost = 1};
	return 0;
}

static int setup_group(void **state)
{
	(void)state;
	return digest_init() == ERR_OK ? 0 : -1;
}

static void look(void)
{
	policy_view_make(&view, NULL, &req, &client, &token, &arena);
}

static void prove(uint16_t index)
{
	token = (struct token_result){
		.state = TOKEN_STATE_VALID, .identity = &identities[index], .index = index};
}

static enum rule_miss check(const struct rule_match *match)
{
	const struct rule rule = {.match = *match};

	look();
	return policy_rule_check(&rule, &view, false);
}

static void assert_str(struct str got, struct str want)
{
	assert_int_equal(got.len, want.len);
	if (want.len > 0)
		assert_memory_equal(got.ptr, want.ptr, want.len);
}

static void test_host(void **state)
{
	static const struct {
		const char *said_z, *host_z;
	} rows[] = {
		{"example.com", "example.com"},
		{"EXAMPLE.Com", "example.com"},
		{"example.com:8080", "example.com"},
		{"example.com:", "example.com"},
		{"example.com.", "example.com"},
		{"Example.com.:443", "example.com"},
		{"[2001:DB8::1]:443", "[2001:db8::1]"},
		{"[2001:db8::1]", "[2001:db8::1]"},
		{"192.0.2.1:80", "192.0.2.1"},
		{"192.0.2.1", "192.0.2.1"},
		{"host80", "host80"},
		{"", ""},
		{".", ""},
		{":80", ""},
		{"\xc3\x84.example", "\xc3\x84.example"},
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++) {
		req.host = fact(rows[i].said_z);
		look();
		print_message("%s\n", rows[i].said_z);
		assert_str(view.host, str_from_z(rows[i].host_z));
	}
}

static void test_match_host(void **state)
{
	static const struct str hosts[] = {{"a.example", 9}, {"b.example", 9}};
	const struct rule_match match = {.hosts = hosts, .n_hosts = 2};

	(void)state;
	assert_int_equal(check(&match), MISS_HOST);
	req.host = fact("B.example:443");
	assert_int_equal(check(&match), MISS_NONE);
	req.host = fact("c.example");
	assert_int_equal(check(&match), MISS_HOST);
	req.host = fact("");
	assert_int_equal(check(&match), MISS_HOST);
}

static void test_match_method(void **state)
{
	static const struct str methods[] = {{"POST", 4}, {"PUT", 3}};
	const struct rule_match match = {.methods = methods, .n_methods = 2};

	(void)state;
	assert_int_equal(check(&match), MISS_METHOD);
	req.method = fact("PUT");
	assert_int_equal(check(&match), MISS_NONE);
	req.method = fact("put");
	assert_int_equal(check(&match), MISS_METHOD);
	req.method = fact("PUTS");
	assert_int_equal(check(&match), MISS_METHOD);
}

static void test_match_path(void **state)
{
	static const struct path_pattern patterns[] = {{{"/login", 6}, false}, {{"/api/", 5}, true}};
	static const struct {
		const char *path_z;
		bool normalised, raw, ignoring_case;
	} rows[] = {
		{"/login", true, true, true},
		{"/login?x", true, true, true},
		{"/login/", true, false, true},
		{"/login;v=1", true, false, true},
		{"/%6cogin", true, false, true},
		{"/x/../login", true, false, true},
		{"//login", true, false, true},
		{"/loginx", false, false, false},
		{"/logi", false, false, false},
		{"/LOGIN", false, false, true},
		{"/%4cOGIN", false, false, true},
		{"/api", true, true, true},
		{"/api/", true, true, true},
		{"/api/v1", true, true, true},
		{"/api/v1/../..", false, true, false},
		{"/Api/v1", false, false, true},
		{"/API", false, false, true},
		{"/apis", false, false, false},
		{"/ap", false, false, false},
		{"/", false, false, false},
		{"", false, false, false},
		{"http://h/login", true, true, true},
		{"/x\\..\\login", false, false, false},
		{"/login%00", false, false, false},
	};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(rows); i++) {
		const struct rule rule = {.match = {.paths = patterns, .n_paths = 2}};
		const struct rule folding = {.match = {.paths = patterns, .n_paths = 2}, .ignore_case = true};

		req.path = fact(rows[i].path_z);
		look();
		print_message("%s\n", rows[i].path_z);
		assert_int_equal(
			policy_rule_check(&rule, &view, false), rows[i].normalised ? MISS_NONE : MISS_PATH);
		assert_int_equal(policy_rule_check(&rule, &view, true), rows[i].raw ? MISS_NONE : MISS_PATH);
		assert_int_equal(policy_rule_check(&folding, &view, false),
			rows[i].ignoring_case ? MISS_NONE : MISS_PATH);
	}
	req.path = fact(NULL);
	assert_int_equal(check(&(struct rule_match){.paths = patterns, .n_paths = 2}), MISS_PATH);
}

static void test_match_everything_below(void **state)
{
	static const struct path_pattern patterns[] = {{{"/", 1}, true}};
	const struct rule_match match = {.paths = patterns, .n_paths = 1};

	(void)state;
	req.path = fact("/anything/at/all");
	assert_int_equal(check(&match), MISS_NONE);
	req.path = fact("/");
	assert_int_equal(check(&match), MISS_NONE);
	req.path = fact("*");
	assert_int_equal(check(&match), MISS_PATH);
}

static void test_match_identity(void **state)
{
	static const uint16_t listed[] = {1};
	const struct rule_match match = {.identities = listed, .n_identities = 1};

	(void)state;
	assert_int_equal(check(&match), MISS_IDENTITY);
	prove(0);
	assert_int_equal(check(&match), MISS_IDENTITY);
	prove(1);
	assert_int_equal(check(&match), MISS_NONE);
	token.state = TOKEN_STATE_UNKNOWN;
	assert_int_equal(check(&match), MISS_IDENTITY);
}

static void test_match_client(void **state)
{
	struct rule_match match = {.n_hosts = 0};
	struct range range;
	const char *why;

	(void)state;
	assert_true(range_parse(&range, STR("198.51.100.0/24"), &why, NULL, NULL));
	assert_true(range_set_build(&match.clients, &arena, &range, 1));
	assert_int_equal(check(&match), MISS_NONE);
	client.decided = false;
	assert_int_equal(check(&match), MISS_CLIENT);
	client.decided = true;
	client.has_address = false;
	assert_int_equal(check(&match), MISS_CLIENT);
	client.has_address = true;
	client.address = ip_from_v4(0xc6336507);
	assert_int_equal(check(&match), MISS_CLIENT);
}

static void test_match_all_of(void **state)
{
	static const struct str methods[] = {{"POST", 4}}, hosts[] = {{"a.example", 9}};
	static const struct path_pattern patterns[] = {{{"/login", 6}, false}};
	const struct rule_match match = {.hosts = hosts,
		.methods = methods,
		.paths = patterns,
		.n_hosts = 1,
		.n_methods = 1,
		.n_paths = 1};

	(void)state;
	req.host = fact("a.example");
	req.method = fact("POST");
	req.path = fact("/login");
	assert_int_equal(check(&match), MISS_NONE);
	req.method = fact("GET");
	assert_int_equal(check(&match), MISS_METHOD);
	req.method = fact("POST");
	req.path = fact("/");
	assert_int_equal(check(&match), MISS_PATH);
	assert_int_equal(check(&(struct rule_match){.n_hosts = 0}), MISS_NONE);
}

static void test_find(void **state)
{
	static const struct path_pattern login[] = {{{"/login", 6}, false}}, api[] = {{{"/api/", 5}, true}},
					 admin[] = {{{"/api/admin", 10}, false}};
	static const struct rule list[] = {
		{.match = {.paths = login, .n_paths = 1}},
		{.match = {.paths = api, .n_paths = 1}},
		{.match = {.paths = admin, .n_paths = 1}},
		{.n_limits = 0},
	};
	static const struct {
		const char *path_z;
		size_t normalised, raw;
	} rows[] = {
		{"/login", 0, 0},
		{"/api/admin", 1, 1},
		{"/x", 3, 3},
		{NULL, 3, 3},
		{"/api/../login", 0, 1},
		{"/login/", 0, 3},
		{"/API/x", 3, 3},
	};
	size_t i;

	(void)state;
	rules.rules = list;
	rules.n_rules = COUNT(list);
	for (i = 0; i < COUNT(rows); i++) {
		req.path = fact(rows[i].path_z);
		look();
		assert_ptr_equal(policy_find(&rules, &view, false), &list[rows[i].normalised]);
		if (req.path.said)
			assert_ptr_equal(policy_find(&rules, &view, true), &list[rows[i].raw]);
	}
	rules.n_rules = 1;
	assert_ptr_equal(policy_find(&rules, &view, false), &list[0]);
}

static void test_requirement(void **state)
{
	static const uint16_t listed[] = {1};
	const struct rule nothing = {.require = REQUIRE_NOTHING}, any = {.require = REQUIRE_ANY},
			  one = {.require = REQUIRE_LISTED, .required = listed, .n_required = 1};
	static const enum token_state states[] = {
		TOKEN_STATE_ABSENT, TOKEN_STATE_UNKNOWN, TOKEN_STATE_AMBIGUOUS};
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(states); i++) {
		token = (struct token_result){.state = states[i], .index = 1};
		assert_true(policy_requirement_met(&rules, &nothing, &token));
		assert_false(policy_requirement_met(&rules, &any, &token));
		assert_false(policy_requirement_met(&rules, &one, &token));
	}
	prove(0);
	assert_true(policy_requirement_met(&rules, &any, &token));
	assert_false(policy_requirement_met(&rules, &one, &token));
	prove(1);
	assert_true(policy_requirement_met(&rules, &one, &token));
}

/* ------------------------------------------------------------------------------------------------ keys */

static struct str bucket_of(const struct limit *limit, bool *ret_fallback)
{
	struct policy_keys keys = {.fallback = false};

	if (!policy_keys_make(&keys, &rules, limit, &view, &arena))
		return (struct str){NULL, 0};
	*ret_fallback = keys.fallback;
	return keys.bucket;
}

static struct str wide_of(const struct limit *limit)
{
	struct policy_keys keys;

	assert_true(policy_keys_make(&keys, &rules, limit, &view, &arena));
	return keys.wide;
}

static struct str key_of(const struct limit_key_part *parts, size_t n, bool *ret_fallback)
{
	const struct limit limit = {.name = STR("lim"), .key = parts, .n_key = n};

	look();
	return bucket_of(&limit, ret_fallback);
}

static struct str key_of_one(enum key_part part, const char *header_z, bool *ret_fallback)
{
	const struct limit_key_part parts[] = {{part, str_from_z(header_z)}};

	return key_of(parts, 1, ret_fallback);
}

/* "l" 3 "lim", then one part: kind, length, bytes. */
static void assert_part(struct str key, char kind, const void *bytes, size_t n)
{
	assert_int_equal(key.len, 7 + n);
	assert_memory_equal(key.ptr, "l\3lim", 5);
	assert_int_equal(key.ptr[5], kind);
	assert_int_equal(key.ptr[6], n);
	assert_memory_equal(key.ptr + 7, bytes, n);
}

static void assert_client_part(struct str key)
{
	uint8_t bytes[CLIENT_KEY_BYTES];

	assert_part(key, 'c', bytes, client_key(&rules.client, &client, bytes));
}

static void test_key_parts(void **state)
{
	uint8_t bytes[CLIENT_KEY_BYTES];
	bool fallback = true;

	(void)state;
	assert_client_part(key_of_one(KEY_CLIENT, NULL, &fallback));
	assert_false(fallback);
	assert_part(key_of_one(KEY_NETWORK, NULL, &fallback), 'n', bytes,
		client_network_key(&rules.client, &client, bytes));
	prove(1);
	assert_part(key_of_one(KEY_IDENTITY, NULL, &fallback), 'i', "agent", 5);
	req.host = fact("A.example:80");
	assert_part(key_of_one(KEY_HOST, NULL, &fallback), 'h', "a.example", 9);
	req.path = fact("/x/../login;v?q");
	assert_part(key_of_one(KEY_PATH, NULL, &fallback), 'p', "/login", 6);
	req.method = fact("GET");
	assert_part(key_of_one(KEY_METHOD, NULL, &fallback), 'm', "GET", 3);
	assert_false(fallback);
}

static void test_key_fallback(void **state)
{
	static const enum key_part parts[] = {KEY_IDENTITY, KEY_HOST, KEY_PATH, KEY_METHOD, KEY_HEADER};
	bool fallback;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(parts); i++) {
		fallback = false;
		assert_client_part(key_of_one(parts[i], "X-Api-Key", &fallback));
		assert_true(fallback);
	}
	token.state = TOKEN_STATE_UNKNOWN;
	assert_client_part(key_of_one(KEY_IDENTITY, NULL, &fallback));
}

static void test_key_undecided(void **state)
{
	bool fallback;
	struct str decided = key_of_one(KEY_CLIENT, NULL, &fallback), undecided;

	(void)state;
	client.decided = false;
	undecided = key_of_one(KEY_CLIENT, NULL, &fallback);
	assert_false(str_equal(decided, undecided));
	assert_false(fallback);
}

static void test_key_header(void **state)
{
	const struct header_line lines[] = {
		{STR("x-api-key"), STR(" one ")},
		{STR("Other"), STR("two")},
		{STR("X-API-KEY"), STR("two")},
	};
	const struct header_line swapped[] = {{STR("X-Api-Key"), STR("two")}, {STR("X-Api-Key"), STR("one")}};
	const struct header_line joined[] = {{STR("X-Api-Key"), STR("onetwo")}};
	struct digest pair[2], d;
	struct str one, two, back, flat;
	bool fallback = true;

	(void)state;
	req.headers = lines;
	req.n_headers = 1;
	one = key_of_one(KEY_HEADER, "X-Api-Key", &fallback);
	digest_sha256(&d, STR("one"));
	assert_part(one, 'X', d.bytes, DIGEST_BYTES);
	assert_false(fallback);
	req.n_headers = 3;
	two = key_of_one(KEY_HEADER, "X-Api-Key", &fallback);
	digest_sha256(&pair[0], STR("one"));
	digest_sha256(&pair[1], STR("two"));
	digest_sha256(&d, str_make((const char *)pair, sizeof(pair)));
	assert_part(two, 'Y', d.bytes, DIGEST_BYTES);
	req.headers = swapped;
	req.n_headers = 2;
	back = key_of_one(KEY_HEADER, "X-Api-Key", &fallback);
	req.headers = joined;
	req.n_headers = 1;
	flat = key_of_one(KEY_HEADER, "X-Api-Key", &fallback);
	assert_false(
		str_equal(one, two) || str_equal(two, back) || str_equal(two, flat) || str_equal(back, flat));
}

static void test_key_header_empty_is_a_value(void **state)
{
	const struct header_line empty = {STR("X-Api-Key"), STR("")};
	struct digest d;
	bool fallback = true;

	(void)state;
	req.headers = &empty;
	req.n_headers = 1;
	digest_sha256(&d, STR(""));
	assert_part(key_of_one(KEY_HEADER, "X-Api-Key", &fallback), 'X', d.bytes, DIGEST_BYTES);
	assert_false(fallback);
}

static void test_key_long_parts(void **state)
{
	char path[66];
	struct digest d;
	bool fallback;

	(void)state;
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	req.path = (struct fact){{path, 64}, true};
	assert_part(key_of_one(KEY_PATH, NULL, &fallback), 'p', path, 64);
	req.path.text.len = 65;
	digest_sha256(&d, req.path.text);
	assert_part(key_of_one(KEY_PATH, NULL, &fallback), 'P', d.bytes, DIGEST_BYTES);
	/* A path of exactly these bytes is another key. */
	req.path.text = str_make((const char *)d.bytes, DIGEST_BYTES);
	look();
	assert_int_equal(key_of_one(KEY_PATH, NULL, &fallback).ptr[5], 'p');
}

static void test_key_is_not_ambiguous(void **state)
{
	static const struct limit_key_part parts[] = {{.part = KEY_HOST}, {.part = KEY_METHOD}};
	struct str a, b;
	bool fallback;

	(void)state;
	req.host = fact("ab");
	req.method = fact("c");
	a = key_of(parts, 2, &fallback);
	req.host = fact("a");
	req.method = fact("bc");
	b = key_of(parts, 2, &fallback);
	assert_int_equal(a.len, b.len);
	assert_false(str_equal(a, b));
	assert_str(a, STR("l\3limh\2abm\1c"));
}

static void test_key_names_the_limit(void **state)
{
	static const struct limit_key_part parts[] = {{.part = KEY_CLIENT}};
	const struct limit one = {.name = STR("one"), .key = parts, .n_key = 1},
			   two = {.name = STR("two"), .key = parts, .n_key = 1};
	bool fallback;

	(void)state;
	look();
	assert_false(str_equal(bucket_of(&one, &fallback), bucket_of(&two, &fallback)));
	assert_false(str_equal(wide_of(&one), wide_of(&two)));
}

static void test_wide_key(void **state)
{
	static const struct limit_key_part parts[] = {{.part = KEY_PATH}};
	const struct limit limit = {.name = STR("lim"), .key = parts, .n_key = 1};
	uint8_t bytes[CLIENT_KEY_BYTES];
	struct str here, neighbour, elsewhere, undecided;
	size_t n;

	(void)state;
	look();
	here = wide_of(&limit);
	n = client_network_key(&rules.client, &client, bytes);
	assert_int_equal(here.len, 2 + n + 5);
	assert_int_equal(here.ptr[0], 'n');
	assert_int_equal(here.ptr[1], n);
	assert_memory_equal(here.ptr + 2, bytes, n);
	assert_memory_equal(here.ptr + 2 + n, "l\3lim", 5);
	client.address = ip_from_v4(0xc63364ff);
	neighbour = wide_of(&limit);
	client.address = ip_from_v4(0xc6336507);
	elsewhere = wide_of(&limit);
	client.decided = false;
	undecided = wide_of(&limit);
	assert_str(neighbour, here);
	assert_false(str_equal(here, elsewhere) || str_equal(elsewhere, undecided));
}

static void test_key_is_bounded(void **state)
{
	static const struct limit_key_part parts[LIMIT_KEY_PARTS_MAX] = {{.part = KEY_HOST},
		{.part = KEY_METHOD}, {.part = KEY_HOST}, {.part = KEY_METHOD}, {.part = KEY_HOST},
		{.part = KEY_METHOD}, {.part = KEY_HOST}, {.part = KEY_METHOD}};
	static char name[63], text[64], huge[40000];
	const struct limit limit = {
		.name = str_make(name, sizeof(name)), .key = parts, .n_key = COUNT(parts)};
	bool fallback;

	(void)state;
	memset(name, 'n', sizeof(name));
	memset(text, 't', sizeof(text));
	memset(huge, 'h', sizeof(huge));
	req.host = (struct fact){str_make(text, sizeof(text)), true};
	req.method = req.host;
	look();
	assert_int_equal(bucket_of(&limit, &fallback).len, 65 + LIMIT_KEY_PARTS_MAX * 66);
	req.method.text = str_make(huge, sizeof(huge));
	arena_init(&arena, block, POLICY_KEYS_BYTES_MAX + 16);
	assert_non_null(bucket_of(&limit, &fallback).ptr);
	arena_init(&arena, block, 16);
	assert_null(bucket_of(&limit, &fallback).ptr);
	assert_true(arena.overflow);
}

/* However many lines a client sends, a header key takes the room of one digest. */
static void test_header_lines_take_no_room(void **state)
{
	static struct header_line lines[500];
	static const struct limit_key_part parts[] = {{KEY_HEADER, {"X-Api-Key", 9}}};
	const struct limit limit = {.name = STR("lim"), .key = parts, .n_key = 1};
	bool fallback;
	size_t i;

	(void)state;
	for (i = 0; i < COUNT(lines); i++)
		lines[i] = (struct header_line){STR("X-Api-Key"), STR("some value or other")};
	req.headers = lines;
	req.n_headers = COUNT(lines);
	look();
	arena_init(&arena, block, 256);
	assert_int_equal(bucket_of(&limit, &fallback).len, 7 + DIGEST_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_host, setup),
		cmocka_unit_test_setup(test_match_host, setup),
		cmocka_unit_test_setup(test_match_method, setup),
		cmocka_unit_test_setup(test_match_path, setup),
		cmocka_unit_test_setup(test_match_everything_below, setup),
		cmocka_unit_test_setup(test_match_identity, setup),
		cmocka_unit_test_setup(test_match_client, setup),
		cmocka_unit_test_setup(test_match_all_of, setup),
		cmocka_unit_test_setup(test_find, setup),
		cmocka_unit_test_setup(test_requirement, setup),
		cmocka_unit_test_setup(test_key_parts, setup),
		cmocka_unit_test_setup(test_key_fallback, setup),
		cmocka_unit_test_setup(test_key_undecided, setup),
		cmocka_unit_test_setup(test_key_header, setup),
		cmocka_unit_test_setup(test_key_header_empty_is_a_value, setup),
		cmocka_unit_test_setup(test_key_long_parts, setup),
		cmocka_unit_test_setup(test_key_is_not_ambiguous, setup),
		cmocka_unit_test_setup(test_key_names_the_limit, setup),
		cmocka_unit_test_setup(test_wide_key, setup),
		cmocka_unit_test_setup(test_key_is_bounded, setup),
		cmocka_unit_test_setup(test_header_lines_take_no_room, setup),
	};

	return cmocka_run_group_tests_name("policy", tests, setup_group, NULL);
}
