/* SPDX-License-Identifier: MIT */
/*
 * What a new configuration alters, as a table: two texts, and what is said of the step from one to the other. Each row steps
 * back as well, where the same members must be told of.
 */
#include "config/change.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define SHA_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHA_B "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct config *load(const char *text_z)
{
	static const struct config_options options;
	struct config *c = NULL;
	struct fault_list faults;

	fault_list_init(&faults);
	if (config_load_text(&c, str_from_z(text_z), NULL, &options, &faults) != ERR_OK)
		fail_msg("%s: %s", text_z, faults.n > 0 ? faults.items[0].text_z : "?");
	fault_list_done(&faults);
	return c;
}

/* Of what becomes of the step. next may be looked at; both are freed. */
static struct change step(const char *from_z, const char *to_z)
{
	struct config *running = load(from_z), *next = load(to_z);
	struct change change;

	change_settle(&change, next, running);
	assert_int_equal(next->serial, running->serial + 1);
	config_free(running);
	config_free(next);
	return change;
}

static void test_settings(void **state)
{
	static const struct {
		const char *from_z, *to_z, *settings_z, *restart_z;
	} rows[] = {
		{"{}", "{ \"version\": 1}", "", ""},
		{"{}", "{\"client\": {\"strategy\": \"trusted_ranges\", \"trusted_proxies\": [\"10.0.0.0/8\"]}}", "client", ""},
		{"{\"client\": {\"strategy\": \"trusted_ranges\", \"trusted_proxies\": [\"10.0.0.0/8\"]}}",
			"{\"client\": {\"strategy\": \"trusted_ranges\", \"trusted_proxies\": [\"10.0.0.0/9\"]}}", "client", ""},
		{"{}", "{\"client\": {\"ipv6_prefix\": 56}}", "client", ""},
		{"{}", "{\"network_prefix\": {\"ipv4\": 20}}", "client", ""},
		{"{}", "{\"callers\": [\"127.0.0.1\"]}", "callers", ""},
		{"{\"callers\": [\"127.0.0.1\", \"unix\"]}", "{\"callers\": [\"127.0.0.1\"]}", "callers", ""},
		{"{}", "{\"own_networks\": [\"10.0.0.0/8\"]}", "own_networks", ""},
		{"{}", "{\"token_headers\": [\"Authorization\", \"X-Internal-Token\"]}", "token_headers", ""},
		{"{}", "{\"request_id_header\": \"X-Request-Id\"}", "request_id_header", ""},
		{"{}", "{\"headers\": {\"x_ratelimit\": true}, \"log\": {\"level\": \"debug\"}, \"drain\": {\"delay\": \"1s\"}}",
			"headers.x_ratelimit, drain.delay, log.level", ""},
		{"{}", "{\"doors\": {\"ext_authz\": {\"remote_addr\": \"xff_last\"}}}", "doors.ext_authz.remote_addr", ""},
		{"{}", "{\"workers\": 2}", "", "workers"},
		{"{}", "{\"listen\": {\"http\": \"127.0.0.1:1\"}}", "", "listen.http"},
		{"{}", "{\"listen\": {\"ops\": null}}", "", "listen.ops"},
		{"{\"listen\": {\"ops\": \"unix:/a\"}}", "{\"listen\": {\"ops\": \"unix:/b\"}}", "", "listen.ops"},
		{"{\"listen\": {\"ops\": \"unix:/a\"}}", "{\"listen\": {\"ops\": \"unix:/a?mode=0600\"}}", "", "listen.ops"},
		{"{}", "{\"store\": {\"max_memory\": \"1MiB\"}, \"http\": {\"body_bytes\": \"1KiB\"}, \"callers\": [\"unix\"]}",
			"callers", "store.max_memory, http.body_bytes"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct change there = step(rows[i].from_z, rows[i].to_z), back = step(rows[i].to_z, rows[i].from_z);

		assert_string_equal(there.settings_z, rows[i].settings_z);
		assert_string_equal(there.restart_z, rows[i].restart_z);
		assert_string_equal(back.settings_z, rows[i].settings_z);
		assert_string_equal(back.restart_z, rows[i].restart_z);
		assert_string_equal(there.limits_z, "1 kept");
		assert_string_equal(there.rules_z, "1 kept");
		assert_string_equal(there.identities_z, "0 kept");
	}
}

/* What cannot change stays whole, and the next step is measured from that. */
static void test_what_is_fixed_is_kept(void **state)
{
	struct config *running = load("{\"workers\": 3, \"http\": {\"body_bytes\": \"2KiB\"}}");
	struct config *next = load("{\"workers\": 1, \"listen\": {\"http\": \"unix:/x\"}, \"log\": {\"level\": \"error\"}}");
	struct change change;

	(void)state;
	change_settle(&change, next, running);
	assert_string_equal(change.restart_z, "listen.http, workers, http.body_bytes");
	assert_int_equal(next->workers, 3);
	assert_int_equal(next->http_body_bytes, 2048);
	assert_false(next->listen[LISTEN_HTTP].endpoint.is_unix);
	assert_int_equal(next->log_level, LOG_ERROR);
	config_free(running);
	running = next;
	next = load("{\"workers\": 3, \"http\": {\"body_bytes\": \"2KiB\"}, \"log\": {\"level\": \"error\"}}");
	change_settle(&change, next, running);
	assert_string_equal(change.restart_z, "");
	assert_string_equal(change.settings_z, "");
	assert_int_equal(next->serial, 3);
	config_free(running);
	config_free(next);
}

#define LIMITS(text) "{\"limits\": {" text "}, \"rules\": [{\"name\": \"r\", \"limits\": [\"a\"]}]}"

static void test_limits(void **state)
{
	static const struct {
		const char *from_z, *to_z, *said_z;
	} rows[] = {
		{LIMITS("\"a\": {\"rate\": \"5/minute\"}"), LIMITS("\"a\": {\"rate\": \"5/60s\"}"), "1 kept"},
		{LIMITS("\"a\": {\"rate\": \"5/minute\"}"), LIMITS("\"a\": {\"rate\": \"8/minute\"}"), "0 kept; changed: a"},
		{LIMITS("\"a\": {\"rate\": \"5/minute\"}"), LIMITS("\"a\": {\"rate\": \"5/minute\", \"burst\": 8}"),
			"0 kept; changed: a"},
		{LIMITS("\"a\": {\"rate\": \"5/minute\"}"), LIMITS("\"a\": {\"rate\": \"5/minute\", \"key\": [\"host\"]}"),
			"0 kept; changed: a"},
		{LIMITS("\"a\": {\"rate\": \"5/minute\", \"key\": [\"header:A\"]}"),
			LIMITS("\"a\": {\"rate\": \"5/minute\", \"key\": [\"header:B\"]}"), "0 kept; changed: a"},
		{LIMITS("\"a\": {\"rate\": \"5/minute\"}"), LIMITS("\"a\": {\"rate\": \"5/minute\", \"headers\": false}"),
			"0 kept; changed: a"},
		{LIMITS("\"a\": {\"rate\": \"5/minute\"}, \"b\": {\"rate\": \"5/minute\"}, \"c\": {\"rate\": \"5/minute\"}"),
			LIMITS("\"d\": {\"rate\": \"5/minute\"}, \"b\": {\"rate\": \"6/minute\"}, \"a\": {\"rate\": \"5/minute\"}"),
			"1 kept; changed: b; new: d; dropped: c"},
		{LIMITS("\"a\": {\"rate\": \"5/m\"}"),
			LIMITS("\"a\": {\"rate\": \"5/m\"}, \"b\": {\"rate\": \"5/m\"}, \"c\": {\"rate\": \"5/m\"},"
			       " \"d\": {\"rate\": \"5/m\"}, \"e\": {\"rate\": \"5/m\"}, \"f\": {\"rate\": \"5/m\"}"),
			"1 kept; new: b, c, d, e and 1 more"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(step(rows[i].from_z, rows[i].to_z).limits_z, rows[i].said_z);
}

#define RULES(text) "{\"limits\": {\"a\": {\"rate\": \"5/m\"}, \"b\": {\"rate\": \"5/m\"}}, \"identities\": {\"i\":" \
		    " {\"token_sha256\": \"" SHA_A "\"}, \"k\": {\"token_sha256\": \"" SHA_B "\"}}, \"rules\": [" text \
		    " {\"name\": \"rest\", \"limits\": [\"a\", \"b\"]}]}"
#define RULE_R(members) RULES("{\"name\": \"r\", " members "},")

static void test_rules(void **state)
{
	/* Each differs from every other. */
	static const char *const rules[] = {
		RULE_R("\"match\": {\"path\": \"/x\"}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"path\": \"/x/*\"}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"path\": \"/y\"}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"path\": [\"/x\", \"/y\"]}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"limits\": [\"b\"]"),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"limits\": [\"a\", \"b\"]"),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"limits\": [\"a\"], \"ignore_case\": true"),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"limits\": [\"a\"], \"mode\": \"shadow\""),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"limits\": [\"a\"], \"require\": \"identity\""),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"limits\": [\"a\"], \"require\": [\"i\"]"),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"limits\": [\"a\"], \"require\": [\"k\"]"),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"action\": \"allow\""),
		RULE_R("\"match\": {\"path\": \"/x\"}, \"action\": \"deny\""),
		RULE_R("\"match\": {\"host\": \"x\"}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"method\": \"X\"}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"identity\": \"i\"}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"identity\": \"k\"}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"client\": \"192.0.2.0/24\"}, \"limits\": [\"a\"]"),
		RULE_R("\"match\": {\"client\": \"192.0.2.0/25\"}, \"limits\": [\"a\"]"),
	};
	const size_t n = sizeof(rules) / sizeof(rules[0]);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			assert_string_equal(step(rules[i], rules[k]).rules_z, i == k ? "2 kept" : "1 kept; changed: r");
	assert_string_equal(step(rules[0], RULES("")).rules_z, "1 kept; dropped: r");
	assert_string_equal(step(RULES("{\"name\": \"p\", \"match\": {\"path\": \"/p\"}, \"action\": \"deny\"},"
				       "{\"name\": \"q\", \"match\": {\"path\": \"/q\"}, \"action\": \"deny\"},"),
				    RULES("{\"name\": \"q\", \"match\": {\"path\": \"/q\"}, \"action\": \"deny\"},"
					  "{\"name\": \"p\", \"match\": {\"path\": \"/p\"}, \"action\": \"deny\"},"))
				    .rules_z,
		"3 kept, in another order");
}

#define IDENTITIES(text) "{\"limits\": {\"a\": {\"rate\": \"5/m\", \"key\": [\"identity\"]}}, \"identities\": {" text "}," \
			 " \"rules\": [{\"name\": \"rest\", \"limits\": [\"a\"]}]}"

static void test_identities(void **state)
{
	static const char one[] = IDENTITIES("\"i\": {\"token_sha256\": \"" SHA_A "\"}");

	(void)state;
	assert_string_equal(step(one, one).identities_z, "1 kept");
	assert_string_equal(step(one, IDENTITIES("\"i\": {\"token_sha256\": \"" SHA_B "\"}")).identities_z,
		"0 kept; changed: i");
	assert_string_equal(step(one, IDENTITIES("\"i\": {\"token_sha256\": \"" SHA_B "\", \"previous_token_sha256\": \"" SHA_A
						 "\"}"))
				    .identities_z,
		"0 kept; changed: i");
	assert_string_equal(
		step(one, IDENTITIES("\"i\": {\"token_sha256\": \"" SHA_A "\", \"limits\": [\"a\"]}")).identities_z,
		"0 kept; changed: i");
	assert_string_equal(step(one, IDENTITIES("\"k\": {\"token_sha256\": \"" SHA_B "\"},"
						 " \"i\": {\"token_sha256\": \"" SHA_A "\"}"))
				    .identities_z,
		"1 kept; new: k");
	assert_string_equal(step(one, IDENTITIES("\"k\": {\"token_sha256\": \"" SHA_A "\"}")).identities_z,
		"0 kept; new: k; dropped: i");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_what_is_fixed_is_kept),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_identities),
	};

	json_setup();
	return cmocka_run_group_tests_name("change", tests, NULL, NULL);
}
