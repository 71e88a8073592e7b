/* SPDX-License-Identifier: MIT */
/*
 * What good configurations compile to: the built-in one, a full one member by member, and the rates and listeners.
 */
#include "config/config.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define SHA_A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SHA_B "0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDE0"
#define SHA_C "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void assert_str(struct str s, const char *wanted_z)
{
	if (!str_equal(s, str_from_z(wanted_z)))
		print_error("\"%.*s\" where \"%s\" was wanted\n", STR_ARG(s), wanted_z);
	assert_true(str_equal(s, str_from_z(wanted_z)));
}

/* Loads a text that holds no fault, not even a warning. */
static struct config *load_good(const char *text_z)
{
	static const struct config_options options;
	struct config *c = NULL;
	struct fault_list faults;

	fault_list_init(&faults);
	if (config_load_text(&c, str_from_z(text_z), NULL, &options, &faults) != ERR_OK || faults.n > 0)
		for (size_t i = 0; i < faults.n; i++) {
			char line_z[1024];

			(void)fault_print(&faults.items[i], line_z, sizeof(line_z));
			print_error("%s\n", line_z);
		}
	assert_int_equal(faults.n, 0);
	assert_non_null(c);
	fault_list_done(&faults);
	return c;
}

static bool set_has(const struct range_set *set, const char *ip_z)
{
	struct ip ip;

	assert_true(ip_parse(&ip, str_from_z(ip_z)));
	return range_set_find(set, &ip) != NULL;
}

static void test_builtin(void **state)
{
	struct config *c = load_good("{}");
	const struct ruleset *r = &c->rules;
	char text_z[ENDPOINT_TEXT_BYTES];

	(void)state;
	assert_true(c->is_builtin);
	assert_int_equal(r->n_rules, 1);
	assert_str(r->rules[0].name, "default");
	assert_int_equal(r->rules[0].action, ACTION_LIMIT);
	assert_int_equal(r->rules[0].n_limits, 1);
	assert_int_equal(r->n_limits, 1);
	assert_str(r->limits[0].name, "per-client");
	assert_int_equal(r->limits[0].bucket.burst, 300);
	assert_int_equal(r->limits[0].bucket.interval_ns, 200 * NS_PER_MS);
	assert_int_equal(r->limits[0].window_s, 60);
	assert_true(r->limits[0].headers);
	assert_int_equal(r->limits[0].n_key, 1);
	assert_int_equal(r->limits[0].key[0].part, KEY_CLIENT);

	assert_int_equal(r->client.strategy, STRATEGY_PEER);
	assert_str(r->client.header, "X-Forwarded-For");
	assert_int_equal(r->client.ipv6_prefix, 64);
	assert_int_equal(r->client.network_v4, 24);
	assert_int_equal(r->client.network_v6, 48);
	assert_int_equal(r->identities.n, 0);
	assert_int_equal(r->identities.n_headers, 2);
	assert_str(r->identities.headers[0], "X-Internal-Token");
	assert_str(r->identities.headers[1], "Authorization");
	assert_true(set_has(&r->own_networks, "127.0.0.1") && set_has(&r->own_networks, "10.1.2.3") &&
		    set_has(&r->own_networks, "172.31.0.1") && set_has(&r->own_networks, "192.168.1.1") &&
		    set_has(&r->own_networks, "::1") && set_has(&r->own_networks, "fd00::1"));
	assert_false(set_has(&r->own_networks, "203.0.113.1") || set_has(&r->own_networks, "2001:db8::1"));
	assert_true(r->headers.ratelimit && r->headers.retry_after && !r->headers.x_ratelimit);
	assert_int_equal(r->hash.len, 12);

	assert_true(c->listen[LISTEN_HTTP].on && c->listen[LISTEN_GRPC].on && c->listen[LISTEN_OPS].on);
	(void)endpoint_print(&c->listen[LISTEN_GRPC].endpoint, text_z);
	assert_string_equal(text_z, "127.0.0.1:9181");
	(void)endpoint_print(&c->listen[LISTEN_HTTP].endpoint, text_z);
	assert_string_equal(text_z, "127.0.0.1:9180");
	(void)endpoint_print(&c->listen[LISTEN_OPS].endpoint, text_z);
	assert_string_equal(text_z, "127.0.0.1:9182");
	assert_true(c->listen[LISTEN_ADMIN].on);
	(void)endpoint_print(&c->listen[LISTEN_ADMIN].endpoint, text_z);
	assert_string_equal(text_z, "127.0.0.1:9183");
	assert_true(!c->callers_named && c->callers_unix && !c->has_caller_key);
	assert_true(set_has(&c->callers, "127.9.9.9") && set_has(&c->callers, "::1") &&
		    !set_has(&c->callers, "10.0.0.1"));
	assert_int_equal(c->workers, 1);
	assert_int_equal(c->http_header_bytes, 16 * 1024);
	assert_int_equal(c->http_body_bytes, 64 * 1024);
	assert_int_equal(c->http_idle_timeout_ns, 130 * NS_PER_S);
	assert_int_equal(c->http_request_timeout_ns, 10 * NS_PER_S);
	assert_int_equal(c->rules.doors.ext_authz, REMOTE_ADDR_FROM_HEADER);
	assert_int_equal(c->grpc_max_connections, 1024);
	assert_int_equal(c->grpc_max_streams, 256);
	assert_int_equal(c->grpc_header_bytes, 16 * 1024);
	assert_int_equal(c->grpc_message_bytes, 256 * 1024);
	assert_int_equal(c->grpc_request_timeout_ns, 10 * NS_PER_S);
	assert_int_equal(c->grpc_idle_timeout_ns, 7200 * NS_PER_S);
	assert_int_equal(c->grpc_max_connection_age_ns, 0);
	assert_int_equal(c->drain_delay_ns, 0);
	assert_int_equal(c->drain_timeout_ns, 10 * NS_PER_S);
	assert_int_equal(c->log_level, LOG_INFO);
	assert_int_equal(c->log_format, LOG_AUTO);
	assert_int_equal(c->store_max_memory_bytes, (size_t)16 << 20);
	assert_int_equal(c->request_id_header.len, 0);
	assert_string_equal(c->file_z, "");
	config_free(c);
}

static const char full_z[] =
	"{\"$schema\": \"config.schema.json\", \"version\": 1, \"$comment\": [\"any\", 1],\n"
	" \"listen\": {\"http\": \"unix:/run/postern/http.sock?mode=0666\", \"grpc\": null, \"ops\": null, "
	"\"admin\": null},\n"
	" \"callers\": [\"127.0.0.0/8\", \"::1\", \"unix\"],\n"
	" \"client\": {\"$comment\": \"\", \"strategy\": \"trusted_ranges\", \"trusted_proxies\": "
	"[\"172.18.0.0/16\", \"2001:db8::/32\"],\n"
	"   \"ipv6_prefix\": 56, \"trust_unix\": true, \"on_undecided\": \"none\", \"header\": "
	"\"forwarded\"},\n"
	" \"token_headers\": [\"X-T\"],\n"
	" \"identities\": {\"$comment\": \"our own\", \"edge\": {\"token_sha256\": \"" SHA_A
	"\", \"previous_token_sha256\": \"" SHA_B "\"},\n"
	"   \"agent\": {\"token_sha256\": \"" SHA_C "\", \"limits\": [\"agent\"]}},\n"
	" \"limits\": {\"per-client\": {\"rate\": \"300/minute\"}, \"$comment\": \"\",\n"
	"   \"login\": {\"rate\": \"10/15m\", \"key\": [\"client\", \"header:X-Tenant\"], \"headers\": "
	"false},\n"
	"   \"agent\": {\"rate\": \"6000/minute\", \"burst\": 1000, \"key\": [\"identity\", \"network\", "
	"\"host\", \"path\", \"method\"]}},\n"
	" \"rules\": [{\"name\": \"internal\", \"match\": {\"path\": \"/internal/*\"}, \"require\": "
	"\"identity\", \"limits\": [\"per-client\"]},\n"
	"   {\"name\": \"login\", \"match\": {\"method\": [\"POST\", \"PUT\"], \"path\": [\"/Login\", "
	"\"/*\"], \"host\": \"API.example.COM.\",\n"
	"     \"identity\": [\"agent\"], \"client\": [\"203.0.113.0/24\"]}, \"limits\": [\"per-client\", "
	"\"login\"], \"ignore_case\": true,\n"
	"     \"mode\": \"shadow\", \"require\": [\"agent\", \"edge\"]},\n"
	"   {\"name\": \"junk\", \"match\": {\"host\": \"[::1]\"}, \"action\": \"deny\"},\n"
	"   {\"name\": \"rest\", \"action\": \"allow\", \"$comment\": null}],\n"
	" \"own_networks\": [], \"network_prefix\": {\"ipv4\": 16, \"ipv6\": 40}, \"request_id_header\": "
	"\"X-Request-Id\",\n"
	" \"headers\": {\"ratelimit\": false, \"retry_after\": false, \"x_ratelimit\": true}, \"workers\": "
	"2,\n"
	" \"http\": {\"max_connections\": 7, \"header_bytes\": \"32KiB\", \"body_bytes\": 2048, "
	"\"idle_timeout\": \"2m\", \"request_timeout\": \"1500ms\"},\n"
	" \"doors\": {\"ext_authz\": {\"remote_addr\": \"xff_last\"}},\n"
	" \"drain\": {\"delay\": \"5s\", \"timeout\": \"1h\"}, \"log\": {\"level\": \"error\", \"format\": "
	"\"json\"},\n"
	" \"store\": {\"kind\": \"memory\", \"max_memory\": \"1GiB\"}}";

static void check_full_rules(const struct ruleset *r)
{
	const struct rule *login = &r->rules[1];

	assert_int_equal(r->n_rules, 4);
	assert_int_equal(r->rules[0].require, REQUIRE_ANY);
	assert_int_equal(r->rules[0].match.n_paths, 1);
	assert_true(r->rules[0].match.paths[0].is_prefix);
	assert_str(r->rules[0].match.paths[0].text, "/internal/");

	assert_true(login->shadow && login->ignore_case);
	assert_int_equal(login->match.n_methods, 2);
	assert_str(login->match.methods[1], "PUT");
	assert_int_equal(login->match.n_paths, 2);
	assert_str(login->match.paths[0].text, "/login");
	assert_false(login->match.paths[0].is_prefix);
	assert_str(login->match.paths[1].text, "/");
	assert_true(login->match.paths[1].is_prefix);
	assert_int_equal(login->match.n_hosts, 1);
	assert_str(login->match.hosts[0], "api.example.com");
	assert_int_equal(login->match.n_identities, 1);
	assert_int_equal(login->match.identities[0], 1);
	assert_true(set_has(&login->match.clients, "203.0.113.5"));
	assert_int_equal(login->require, REQUIRE_LISTED);
	assert_int_equal(login->n_required, 2);
	assert_int_equal(login->required[0], 1);
	assert_int_equal(login->required[1], 0);
	assert_int_equal(login->n_limits, 2);
	assert_str(r->limits[login->limits[1]].name, "login");

	assert_int_equal(r->rules[2].action, ACTION_DENY);
	assert_str(r->rules[2].match.hosts[0], "[::1]");
	assert_int_equal(r->rules[3].action, ACTION_ALLOW);
	assert_int_equal(r->rules[3].match.n_paths, 0);
}

static void check_full_limits(const struct ruleset *r)
{
	const struct limit *login = &r->limits[1], *agent = &r->limits[2];

	assert_int_equal(r->n_limits, 3);
	assert_int_equal(login->window_s, 900);
	assert_int_equal(login->bucket.interval_ns, 90 * NS_PER_S);
	assert_false(login->headers);
	assert_int_equal(login->n_key, 2);
	assert_int_equal(login->key[1].part, KEY_HEADER);
	assert_str(login->key[1].header, "X-Tenant");
	assert_int_equal(agent->bucket.burst, 1000);
	assert_int_equal(agent->window_s, 10);
	assert_int_equal(agent->n_key, 5);
	assert_int_equal(agent->key[0].part, KEY_IDENTITY);
	assert_int_equal(agent->key[1].part, KEY_NETWORK);
	assert_int_equal(agent->key[4].part, KEY_METHOD);
}

static void check_full_identities(const struct identity_set *set)
{
	char hex_z[65];

	assert_int_equal(set->n, 2);
	assert_str(set->items[0].name, "edge");
	assert_int_equal(set->items[0].n_limits, 0);
	assert_int_equal(set->items[1].n_limits, 1);
	assert_int_equal(set->items[1].limits[0], 2);
	assert_int_equal(set->n_tokens, 3);
	assert_int_equal(set->tokens[1].identity, 0);
	assert_int_equal(set->tokens[1].slot, TOKEN_SLOT_PREVIOUS);
	assert_int_equal(set->tokens[2].identity, 1);
	assert_int_equal(set->tokens[2].slot, TOKEN_SLOT_CURRENT);
	str_hex(set->tokens[0].digest.bytes, DIGEST_BYTES, hex_z);
	assert_string_equal(hex_z, SHA_A);
	assert_int_equal(set->n_headers, 1);
	assert_str(set->headers[0], "X-T");
}

static void test_full(void **state)
{
	struct config *c = load_good(full_z);
	const struct client_rule *client = &c->rules.client;

	(void)state;
	assert_false(c->is_builtin);
	check_full_rules(&c->rules);
	check_full_limits(&c->rules);
	check_full_identities(&c->rules.identities);
	assert_int_equal(client->strategy, STRATEGY_TRUSTED_RANGES);
	assert_int_equal(client->trusted.n, 2);
	assert_true(client->trust_unix && client->none_on_undecided && client->header_is_forwarded &&
		    !client->trust_any);
	assert_int_equal(client->ipv6_prefix, 56);
	assert_int_equal(client->network_v4, 16);
	assert_int_equal(client->network_v6, 40);
	assert_int_equal(c->rules.own_networks.n, 0);
	assert_true(
		!c->rules.headers.ratelimit && !c->rules.headers.retry_after && c->rules.headers.x_ratelimit);
	assert_true(c->listen[LISTEN_HTTP].on && c->listen[LISTEN_HTTP].endpoint.is_unix &&
		    !c->listen[LISTEN_OPS].on);
	assert_int_equal(c->listen[LISTEN_HTTP].endpoint.mode, 0666);
	assert_true(c->callers_named && c->callers_unix);
	assert_int_equal(c->callers.n, 2);
	assert_str(c->request_id_header, "X-Request-Id");
	assert_int_equal(c->workers, 2);
	assert_int_equal(c->http_max_connections, 7);
	assert_int_equal(c->http_header_bytes, 32 * 1024);
	assert_int_equal(c->http_body_bytes, 2048);
	assert_int_equal(c->http_idle_timeout_ns, 120 * NS_PER_S);
	assert_int_equal(c->http_request_timeout_ns, 1500 * NS_PER_MS);
	assert_int_equal(c->rules.doors.ext_authz, REMOTE_ADDR_FROM_XFF_LAST);
	assert_int_equal(c->drain_delay_ns, 5 * NS_PER_S);
	assert_int_equal(c->drain_timeout_ns, 3600 * NS_PER_S);
	assert_int_equal(c->log_level, LOG_ERROR);
	assert_int_equal(c->log_format, LOG_JSON);
	assert_int_equal(c->store_max_memory_bytes, (size_t)1 << 30);
	config_free(c);
}

/* Small good ones, each for a thing that might be refused by mistake. */
static void test_accepted(void **state)
{
	static const char *const texts[] = {
		"{\"client\": {\"ipv6_prefix\": 64}}",
		"{\"client\": {}}",
		"{\"limits\": {}, \"identities\": {}}",
		"{\"limits\": {}, \"rules\": [{\"name\": \"rest\", \"action\": \"deny\"}]}",
		"{\"rules\": [{\"name\": \"rest\"}]}",
		"{\"token_headers\": []}",
		"{\"listen\": {\"http\": \"127.0.0.1:0\", \"ops\": \"127.0.0.1:0\"}}",
		"{\"network_prefix\": {\"ipv6\": 128}, \"client\": {\"ipv6_prefix\": 128}}",
		/* a key of the path is no escape where the match leaves one path only */
		"{\"limits\": {\"a\": {\"rate\": \"1/s\", \"key\": [\"client\", \"path\", \"host\"]}}, "
		"\"rules\": [{\"name\": \"x\", "
		"\"match\": {\"path\": \"/a\", \"host\": \"h\"}, \"limits\": [\"a\"]}, {\"name\": "
		"\"rest\"}]}",
		/* nor where another limit of the rule holds */
		"{\"limits\": {\"a\": {\"rate\": \"1/s\", \"key\": [\"path\"]}, \"b\": {\"rate\": \"9/s\", "
		"\"key\": [\"network\"]}}, "
		"\"rules\": [{\"name\": \"x\", \"limits\": [\"a\", \"b\"]}]}",
		/* between two steps of a rotation both tokens are the same */
		"{\"identities\": {\"a\": {\"token_sha256\": \"" SHA_A
		"\", \"previous_token_sha256\": \"" SHA_A "\"}}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		config_free(load_good(texts[i]));
}

/* Where only the client's prefix is set, the network is never narrower than the client. */
static void test_network_follows_client(void **state)
{
	struct config *c = load_good("{\"client\": {\"ipv6_prefix\": 40}}");

	(void)state;
	assert_int_equal(c->rules.client.network_v6, 40);
	config_free(c);
}

static void test_hash(void **state)
{
	struct config *a = load_good("{\"identities\": {\"a\": {\"token_sha256\": \"" SHA_A "\"}}}");
	struct config *same = load_good("{\"identities\": {\"a\": {\"token_sha256\": \"" SHA_A "\"}}}");
	struct config *other = load_good("{\"identities\": {\"a\": {\"token_sha256\": \"" SHA_C "\"}}}");

	(void)state;
	assert_true(str_equal(a->rules.hash, same->rules.hash));
	assert_false(str_equal(a->rules.hash, other->rules.hash));
	config_free(a);
	config_free(same);
	config_free(other);
}

static void test_rates(void **state)
{
	static const struct {
		const char *text_z;
		uint64_t count; /* 0: refused */
		ns period_ns;
	} rates[] = {
		{"300/minute", 300, 60 * NS_PER_S},
		{"10/second", 10, NS_PER_S},
		{"5000/hour", 5000, 3600 * NS_PER_S},
		{"100/15m", 100, 900 * NS_PER_S},
		{"1/day", 1, 86400 * NS_PER_S},
		{"1/2d", 1, 172800 * NS_PER_S},
		{"7/1s", 7, NS_PER_S},
		{"7/h", 7, 3600 * NS_PER_S},
		{"10/13second", 10, 13 * NS_PER_S},
		{"2147483647/s", 2147483647, NS_PER_S},
		{"2147483648/s", 0, 0},
		{"1/2147483647d", 0, 0},
		{"", 0, 0},
		{"5", 0, 0},
		{"/s", 0, 0},
		{"5/", 0, 0},
		{"5/ms", 0, 0},
		{"0/s", 0, 0},
		{"5/0s", 0, 0},
		{"5/015m", 0, 0},
		{"05/m", 0, 0},
		{"+5/m", 0, 0},
		{"5/M", 0, 0},
		{"5/minutes", 0, 0},
		{"5 /m", 0, 0},
		{"5/m ", 0, 0},
		{"5/1/m", 0, 0},
		{"5.5/m", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		uint64_t count = 0;
		ns period_ns = 0;

		if (config_rate_parse(str_from_z(rates[i].text_z), &count, &period_ns) !=
				(rates[i].count > 0) ||
			count != rates[i].count || period_ns != rates[i].period_ns)
			fail_msg("%s", rates[i].text_z);
	}
}

static void test_listeners(void **state)
{
	static const struct {
		const char *text_z;
		const char *code_z, *pointer_z; /* NULL: nothing to say */
	} rows[] = {
		{"{}", NULL, NULL},
		{"{\"listen\": {\"http\": \"unix:/tmp/x\"}}", NULL, NULL},
		{"{\"listen\": {\"http\": \"[::1]:9180\"}}", NULL, NULL},
		{"{\"listen\": {\"ops\": \"0.0.0.0:9182\"}}", NULL, NULL},
		{"{\"listen\": {\"http\": \"0.0.0.0:9180\"}}", "missing_member", "/listen/http"},
		{"{\"listen\": {\"http\": \"10.0.0.1:9180\"}, \"callers\": [\"10.0.0.0/8\"]}", "risky",
			"/callers"},
		{"{\"listen\": {\"admin\": null}}", NULL, NULL},
		{"{\"listen\": {\"admin\": \"unix:/tmp/x\"}}", NULL, NULL},
		{"{\"listen\": {\"admin\": \"[::1]:0\"}}", NULL, NULL},
		{"{\"listen\": {\"admin\": \"0.0.0.0:9183\"}}", "not_local", "/listen/admin"},
		{"{\"listen\": {\"admin\": \"10.0.0.1:9183\"}, \"callers\": [\"127.0.0.1\"]}", "not_local",
			"/listen/admin"},
		{"{\"listen\": {\"grpc\": \"0.0.0.0:9181\"}}", "missing_member", "/listen/grpc"},
		{"{\"listen\": {\"http\": null}}", NULL, NULL},
		{"{\"listen\": {\"grpc\": null}}", NULL, NULL},
		{"{\"listen\": {\"http\": null, \"grpc\": null}}", "conflict", "/listen/http"},
		{"{\"callers\": [\"::1\", \"127.0.0.2\", \"unix\"]}", NULL, NULL},
		{"{\"callers\": [\"127.0.0.1\", \"fd00::/64\"]}", "risky", "/callers"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config *c = load_good(rows[i].text_z);
		struct fault_list faults;

		fault_list_init(&faults);
		config_check_listeners(c, &faults);
		assert_int_equal(faults.n, rows[i].code_z != NULL ? 1 : 0);
		if (faults.n == 1) {
			assert_string_equal(faults.items[0].code, rows[i].code_z);
			assert_string_equal(faults.items[0].pointer_z, rows[i].pointer_z);
		}
		fault_list_done(&faults);
		config_free(c);
	}
}

/* The most that the room of a configuration must hold for its text. */
static void test_dense(void **state)
{
	static char text[256 * 1024];
	size_t n = (size_t)snprintf(text, sizeof(text), "{\"rules\": [");
	struct config *c;

	(void)state;
	for (size_t i = 0; i + 1 < 1000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
			"{\"name\": \"r%zu\", \"match\": {\"path\": [\"/\", \"/a\"], \"method\": [\"A\"], "
			"\"client\": \"::1\"}},",
			i);
	(void)snprintf(text + n, sizeof(text) - n, "{\"name\": \"rest\"}]}");
	c = load_good(text);
	assert_int_equal(c->rules.n_rules, 1000);
	config_free(c);
	n = (size_t)snprintf(text, sizeof(text), "{\"rules\": [{\"name\": \"x\", \"match\": {");
	for (size_t i = 0; i < 1024; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"/\"", i > 0 ? "," : "\"path\":[");
	for (size_t i = 0; i < 1024; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"a\"", i > 0 ? "," : "],\"host\":[");
	for (size_t i = 0; i < 1024; i++)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%s\"::1\"", i > 0 ? "," : "],\"client\":[");
	(void)snprintf(text + n, sizeof(text) - n, "]}}, {\"name\": \"rest\"}]}");
	c = load_good(text);
	assert_int_equal(c->rules.rules[0].match.n_paths, 1024);
	config_free(c);
}

static int setup(void **state)
{
	(void)state;
	json_setup();
	return digest_init() == ERR_OK ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_builtin),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_network_follows_client),
		cmocka_unit_test(test_hash),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_listeners),
		cmocka_unit_test(test_dense),
	};

	return cmocka_run_group_tests_name("config_good", tests, setup, NULL);
}
