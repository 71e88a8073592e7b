/* SPDX-License-Identifier: MIT */
/*
 * Faults of a configuration, a table of them: each text holds exactly one, and @ marks the place that must be named. In the
 * texts ' stands for ". What good configurations compile to is in test_config_good.c.
 */
#include "config/config.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#define REST "{'name': 'rest', 'action': 'allow'}"
#define LIMIT_A "'limits': {'a': {'rate': '5/hour'}}"
#define RULE_A(members) "{" LIMIT_A ", 'rules': [{'name': 'x', " members "}, " REST "]}"
#define MATCH(members) "{'rules': [{'name': 'x', 'action': 'deny', 'match': {" members "}}, " REST "]}"
#define LIMIT(members) "{'limits': {'a': {" members "}}, 'rules': [" REST "]}"
#define SHA_X "'0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'"

struct fault_case {
	const char *text_z;
	const char *code_z, *pointer_z;
	const char *words_z; /* stands in the message */
};

static const struct fault_case cases[] = {
	/* the text itself */
	{ "{'workers': 1}@}", "body_not_json", "", "" },
	{ "@", "body_not_json", "", "" },
	{ "{'workers': 1,\n @'workers': 2}", "duplicate_member", "/workers", "" },
	{ "@[1]", "wrong_type", "", "must be an object, not an array" },

	/* names */
	{ "{'version': 1,\n  @'limts': {}}", "unknown_member", "/limts", "did you mean \"limits\"?" },
	{ "{@'zzzzzzzz': {}}", "unknown_member", "/zzzzzzzz", "is not known here" },
	{ LIMIT("'rate': '1/s', @'burts': 5"), "unknown_member", "/limits/a/burts", "did you mean \"burst\"?" },
	{ RULE_A("'limits': ['a'], 'match': {@'paths': '/x'}, 'mode': 'shadow'"), "unknown_member", "/rules/0/match/paths",
		"did you mean \"path\"?" },
	{ "{'http': {@'body_size': 1}}", "unknown_member", "/http/body_size", "is not known here" },
	{ "{'grpc': {@'streams': 1}}", "unknown_member", "/grpc/streams", "" },
	{ "{'grpc': {'max_streams': @0}}", "out_of_range", "/grpc/max_streams", "" },
	{ "{'listen': {'http': '[::1]:1', 'grpc': @'[::1]:1'}}", "conflict", "/listen/grpc", "http listens there already" },
	{ "{'client': {'strategy': 'rightmost', @'trusted_proxy': ['10.0.0.0/8']}}", "unknown_member", "/client/trusted_proxy",
		"did you mean \"trusted_proxies\"?" },
	{ "{'identities': {'a': {'token_sha256': " SHA_X ", @'limit': ['a']}}}", "unknown_member", "/identities/a/limit",
		"did you mean \"limits\"?" },
	{ "{'doors': {'ext_authz': {@'remote_address': 'header'}}}", "unknown_member", "/doors/ext_authz/remote_address",
		"did you mean \"remote_addr\"?" },
	{ "{'doors': {@'forward_auth': {}}}", "unknown_member", "/doors/forward_auth", "" },
	{ "{@'a/b~c': 1}", "unknown_member", "/a~1b~0c", "" },
	{ "{@'client.hops': 1}", "unknown_member", "/client.hops", "" },

	/* what this version cannot serve */
	{ "{@'domains': {'edge': {}}}", "not_in_this_version", "/domains", "domains" },
	{ "{'store': {'address': '127.0.0.1:6379', 'kind': @'redis'}}", "not_in_this_version", "/store/kind", "redis" },
	{ "{'log': {@'decisions': {}}}", "not_in_this_version", "/log/decisions", "" },

	/* scalars */
	{ "{'version': @2}", "out_of_range", "/version", "must be 1, not 2" },
	{ "{'workers': @0}", "out_of_range", "/workers", "1..64" },
	{ "{'workers': @-1}", "out_of_range", "/workers", "not -1" },
	{ "{'workers': @'2'}", "wrong_type", "/workers", "must be a whole number, not a string" },
	{ "{'workers': @2.0}", "wrong_type", "/workers", "must be a whole number" },
	{ "{'workers': @null}", "wrong_type", "/workers", "" },
	{ "{'$schema': @7}", "wrong_type", "/$schema", "" },
	{ "{'http': @[]}", "wrong_type", "/http", "must be an object" },
	{ "{'http': {'header_bytes': @'16KB'}}", "bad_syntax", "/http/header_bytes", "KiB, MiB, GiB" },
	{ "{'http': {'header_bytes': @'16 KiB'}}", "bad_syntax", "/http/header_bytes", "without a space" },
	{ "{'http': {'body_bytes': @'1GiB'}}", "out_of_range", "/http/body_bytes", "1KiB..16MiB" },
	{ "{'http': {'body_bytes': @true}}", "wrong_type", "/http/body_bytes", "a size" },
	{ "{'http': {'idle_timeout': @130}}", "wrong_type", "/http/idle_timeout", "a duration such as \"10s\"" },
	{ "{'http': {'idle_timeout': @'130'}}", "bad_syntax", "/http/idle_timeout", "ms, s, m, h, d" },
	{ "{'http': {'request_timeout': @'50ms'}}", "out_of_range", "/http/request_timeout", "100ms..1h" },
	{ "{'drain': {'delay': @'-1s'}}", "bad_syntax", "/drain/delay", "" },
	{ "{'log': {'level': @'wran'}}", "unknown_name", "/log/level", "did you mean \"warn\"?" },
	{ "{'headers': {'ratelimit': @1}}", "wrong_type", "/headers/ratelimit", "true or false" },
	{ "{'store': {'max_memory': @0}}", "out_of_range", "/store/max_memory", "64KiB..64GiB" },
	{ "{'store': {'max_memory': @'1KiB'}}", "out_of_range", "/store/max_memory", "not 1KiB" },
	{ "{'doors': {'ext_authz': {'remote_addr': @'xff_first'}}}", "unknown_name", "/doors/ext_authz/remote_addr",
		"did you mean \"xff_last\"?" },
	{ "{'store': {'kind': @'memry'}}", "unknown_name", "/store/kind", "did you mean \"memory\"?" },
	{ "{'network_prefix': {'ipv4': @33}}", "out_of_range", "/network_prefix/ipv4", "" },
	{ "{'network_prefix': {'ipv6': @72}}", "conflict", "/network_prefix/ipv6", "narrower than a client of 64" },
	{ "{'request_id_header': @'X Id'}", "bad_syntax", "/request_id_header", "" },

	/* listeners, callers, networks */
	{ "{'listen': {'http': @'0.0.0.0'}}", "bad_syntax", "/listen/http", "port" },
	{ "{'listen': {'http': @9180}}", "wrong_type", "/listen/http", "" },
	{ "{'listen': {'http': '[::1]:1', 'ops': @'[::1]:1'}}", "conflict", "/listen/ops", "http listens there already" },
	{ "{'callers': @'127.0.0.1'}", "wrong_type", "/callers", "must be a list of strings" },
	{ "{'callers': @[]}", "out_of_range", "/callers", "nobody could ask" },
	{ "{'callers': ['unix', @'10.1.0.0/8']}", "bad_syntax", "/callers/1", "did you mean \"10.0.0.0/8\"?" },
	{ "{'own_networks': [@'unix']}", "bad_syntax", "/own_networks/0", "is no address range" },

	{ "{'token_headers': ['Authorization', @'x-postern-key']}", "conflict", "/token_headers/1", "key that callers show" },

	/* client: the rest is in the vectors */
	{ "{'client': @{'trusted_proxies': ['10.0.0.0/8']}}", "missing_member", "/client", "\"strategy\": \"trusted_ranges\"" },
	{ "{'client': @{'hops': 2}}", "missing_member", "/client", "\"strategy\": \"hop_count\"" },
	{ "{'client': @{'header': 'X-Real-IP'}}", "missing_member", "/client", "\"strategy\": \"named_header\"" },
	{ "{'client': {'strategy': @'rigthmost'}}", "unknown_name", "/client/strategy", "did you mean \"rightmost\"?" },
	{ "{'client': {'strategy': @3}}", "wrong_type", "/client/strategy", "" },
	{ "{'client': {'strategy': 'peer', @'trust_unix': true}}", "conflict", "/client/trust_unix", "takes no parameters" },
	{ "{'client': {'strategy': 'rightmost', @'hops': 2}}", "conflict", "/client/hops", "hop_count" },
	{ "{'client': @{'strategy': 'hop_count'}}", "missing_member", "/client", "hops" },
	{ "{'client': {'strategy': 'hop_count', 'hops': @33}}", "out_of_range", "/client/hops", "1..32" },
	{ "{'client': @{'strategy': 'named_header'}}", "missing_member", "/client", "header" },
	{ "{'client': {'strategy': 'named_header', 'header': @'x-forwarded-FOR'}}", "conflict", "/client/header",
		"single_value" },
	{ "{'client': {'strategy': 'rightmost', 'header': @'X-Real-IP'}}", "conflict", "/client/header", "named_header" },
	{ "{'client': {'strategy': 'rightmost', 'header': @'X Real'}}", "bad_syntax", "/client/header", "" },
	{ "{'client': {'strategy': 'trusted_ranges', 'trusted_proxies': @'any'}}", "conflict", "/client/trusted_proxies", "" },
	{ "{'client': {'strategy': 'rightmost', 'trusted_proxies': @'*'}}", "bad_syntax", "/client/trusted_proxies",
		"the word \"any\"" },
	{ "{'client': {'strategy': 'rightmost', 'trusted_proxies': @'any'}}", "risky", "/client/trusted_proxies",
		"chooses its own key" },
	{ "{'client': {'strategy': @'rightmost'}}", "risky", "/client/strategy", "this is the strategy peer" },
	{ "{'client': {'strategy': @'trusted_ranges', 'trusted_proxies': []}}", "risky", "/client/strategy", "nobody is trusted" },
	{ "{'client': {'strategy': 'rightmost', 'trusted_proxies': [@'0.0.0.0/0']}}", "bad_syntax",
		"/client/trusted_proxies/0", "every" },
	{ "{'client': {'strategy': 'rightmost', 'on_undecided': @'deny'}}", "unknown_name", "/client/on_undecided",
		"peer|none" },
	{ "{'client': {'ipv6_prefix': @24}}", "out_of_range", "/client/ipv6_prefix", "32..128" },

	/* limits */
	{ "{'limits': {@'a': {}}, 'rules': [" REST "]}", "missing_member", "/limits/a", "rate" },
	{ LIMIT("'rate': @'0/minute'"), "out_of_range", "/limits/a/rate", "\"action\": \"deny\"" },
	{ LIMIT("'rate': @'5'"), "bad_syntax", "/limits/a/rate", "300/minute" },
	{ LIMIT("'rate': @'5 / minute'"), "bad_syntax", "/limits/a/rate", "without spaces" },
	{ LIMIT("'rate': @'5/fortnight'"), "bad_syntax", "/limits/a/rate", "" },
	{ LIMIT("'rate': @'5/0m'"), "bad_syntax", "/limits/a/rate", "" },
	{ LIMIT("'rate': @'05/m'"), "bad_syntax", "/limits/a/rate", "" },
	{ LIMIT("'rate': @5"), "wrong_type", "/limits/a/rate", "" },
	{ LIMIT("'rate': @'1/day', 'burst': 1000000"), "out_of_range", "/limits/a/rate", "146 years" },
	{ LIMIT("'rate': '1/s', 'burst': @0"), "out_of_range", "/limits/a/burst", "1..2147483647" },
	{ LIMIT("'rate': '1/s', 'key': @'client'"), "wrong_type", "/limits/a/key", "must be a list of strings" },
	{ LIMIT("'rate': '1/s', 'key': @[]"), "out_of_range", "/limits/a/key", "1 to 8 items" },
	{ LIMIT("'rate': '1/s', 'key': ['path', @'clinet']"), "unknown_name", "/limits/a/key/1", "did you mean \"client\"?" },
	{ LIMIT("'rate': '1/s', 'key': [@'header:']"), "bad_syntax", "/limits/a/key/0", "" },
	{ LIMIT("'rate': '1/s', 'key': @['header:A', 'header:a']"), "duplicate_name", "/limits/a/key", "twice" },
	{ LIMIT("'rate': '1/s', 'headers': @'no'"), "wrong_type", "/limits/a/headers", "" },
	{ "{'limits': {@'A': {'rate': '1/s'}}, 'rules': [" REST "]}", "bad_syntax", "/limits/A", "is no name" },
	{ "{'limits': @[], 'rules': [" REST "]}", "wrong_type", "/limits", "" },
	{ "{@'limits': {'a': {'rate': '1/s'}}}", "missing_member", "/limits", "\"limits\": [\"a\"]" },

	/* identities */
	{ "{'identities': {@'a': {}}}", "missing_member", "/identities/a", "token_file" },
	{ "{'identities': {@'a': {'previous_token_sha256': " SHA_X "}}}", "missing_member", "/identities/a", "" },
	{ "{'identities': {@'-a': {'token_sha256': " SHA_X "}}}", "bad_syntax", "/identities/-a", "is no name" },
	{ "{'identities': {'a': {'token_sha256': @'12'}}}", "bad_syntax", "/identities/a/token_sha256", "64 hex" },
	{ "{'identities': {'a': {'token_sha256': @'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'}}}",
		"bad_token", "/identities/a/token_sha256", "empty token" },
	{ "{'identities': {'a': {'token_sha256': " SHA_X "}, 'b': {'token_sha256': @" SHA_X "}}}", "bad_token",
		"/identities/b/token_sha256", "\"a\" has the same" },
	{ "{'identities': {'a': {'token_file': @''}}}", "bad_syntax", "/identities/a/token_file", "path" },
	{ "{'identities': {'a': {'token_file': @'no/such/file'}}}", "unreadable_file", "/identities/a/token_file",
		"no/such/file" },
	{ "{'identities': {'a': {'token_file': @'/'}}}", "bad_token", "/identities/a/token_file", "regular file" },
	{ "{'caller_key_file': @'no/such/key'}", "unreadable_file", "/caller_key_file", "" },
	{ "{" LIMIT_A ", 'rules': [" REST "], 'identities': {'a': {'token_sha256': " SHA_X ", 'limits': @['a']}}}", "conflict",
		"/identities/a/limits", "identity in its key" },
	{ "{'identities': {'a': {'token_sha256': " SHA_X ", 'limits': [@'x']}}}", "unknown_name", "/identities/a/limits/0",
		"no limit is named \"x\"" },
	{ "{'token_headers': [@'X Y']}", "bad_syntax", "/token_headers/0", "" },
	{ "{'token_headers': @['X-A', 'x-a']}", "duplicate_name", "/token_headers", "" },

	/* rules */
	{ "{'rules': @[]}", "out_of_range", "/rules", "1 to 1000" },
	{ "{'rules': @{}}", "wrong_type", "/rules", "" },
	{ "{'rules': [@{'action': 'allow'}]}", "missing_member", "/rules/0", "name" },
	{ "{'rules': [{'name': @'Rest', 'action': 'allow'}]}", "bad_syntax", "/rules/0/name", "" },
	{ "{'rules': [@{'name': 'x', 'action': 'deny'}, " REST "]}", "missing_member", "/rules/0", "never be reached" },
	{ "{'rules': [{'name': 'x', 'action': 'deny', @'match': {'path': '/a'}}]}", "conflict", "/rules/0/match",
		"\"action\": \"allow\"" },
	{ "{'rules': [{'name': 'rest', 'action': 'deny', 'match': {'path': '/a'}}, {'name': @'rest', 'action': 'allow'}]}",
		"duplicate_name", "/rules/1/name", "rule 1 has" },
	{ "{" LIMIT_A ", 'rules': [{'name': 'x', 'limits': [@'b', 'a']}]}", "unknown_name", "/rules/0/limits/0", "no limit" },
	{ "{'limits': {'per-client': {'rate': '1/s'}}, 'rules': [{'name': 'x', 'limits': [@'per-clinet']}]}", "unknown_name",
		"/rules/0/limits/0", "did you mean \"per-client\"?" },
	{ "{" LIMIT_A ", 'rules': [{'name': 'x', 'limits': ['a', @'a']}]}", "duplicate_name", "/rules/0/limits/1", "" },
	{ "{" LIMIT_A ", 'rules': [{'name': 'x', 'limits': @'a'}]}", "wrong_type", "/rules/0/limits", "" },
	{ RULE_A("'match': {'path': '/'}, 'limits': ['a'], @'action': 'deny'"), "conflict", "/rules/0/action", "excludes" },
	{ RULE_A("'match': {'path': '/'}, 'require': 'identity', @'action': 'allow'"), "conflict", "/rules/0/action", "" },
	{ RULE_A("'match': {'path': '/'}, 'action': @'refuse'"), "unknown_name", "/rules/0/action", "deny|allow" },
	{ RULE_A("'match': {'path': '/'}, 'mode': @'shadwo'"), "unknown_name", "/rules/0/mode", "did you mean \"shadow\"?" },
	{ RULE_A("'match': {'path': '/'}, 'require': @'edge'"), "bad_syntax", "/rules/0/require", "the word \"identity\"" },
	{ RULE_A("'match': {'path': '/'}, 'require': [@'edge']"), "unknown_name", "/rules/0/require/0", "no identity" },
	{ RULE_A("'match': @{}"), "missing_member", "/rules/0/match", "match everything" },
	{ RULE_A("'match': @{'$comment': 'none'}"), "missing_member", "/rules/0/match", "" },
	{ MATCH("'host': @[]"), "out_of_range", "/rules/0/match/host", "" },
	{ MATCH("'host': ['a', @'a:80']"), "bad_syntax", "/rules/0/match/host/1", "without port" },
	{ MATCH("'host': @'*.example.com'"), "bad_syntax", "/rules/0/match/host", "wildcard" },
	{ MATCH("'method': @'G ET'"), "bad_syntax", "/rules/0/match/method", "" },
	{ MATCH("'method': [@'post']"), "risky", "/rules/0/match/method/0", "is not \"POST\"" },
	{ MATCH("'path': @'login'"), "bad_syntax", "/rules/0/match/path", "begin with /" },
	{ MATCH("'path': ['/a', @'/api*']"), "bad_syntax", "/rules/0/match/path/1", "at its end only" },
	{ MATCH("'path': @'/a/*/b'"), "bad_syntax", "/rules/0/match/path", "" },
	{ MATCH("'path': @'/api/'"), "bad_syntax", "/rules/0/match/path", "did you mean \"/api\"?" },
	{ MATCH("'path': @'//a/../b%2F/*'"), "bad_syntax", "/rules/0/match/path", "did you mean \"/b/*\"?" },
	{ MATCH("'path': @'//*'"), "bad_syntax", "/rules/0/match/path", "did you mean \"/*\"?" },
	{ MATCH("'path': @'/a?x=1'"), "bad_syntax", "/rules/0/match/path", "did you mean \"/a\"?" },
	{ MATCH("'path': @7"), "wrong_type", "/rules/0/match/path", "a string or a list of strings" },
	{ MATCH("'identity': @'edge'"), "unknown_name", "/rules/0/match/identity", "no identity is named" },
	{ MATCH("'client': @'10.0.0.1/8'"), "bad_syntax", "/rules/0/match/client", "did you mean \"10.0.0.0/8\"?" },
	{ "{'rules': [{'name': 'x', 'action': 'allow', 'match': {'client': @'10.0.0.0/30'}}, {'name': 'rest'}]}", "risky",
		"/rules/0/match/client", "prove an identity" },
	{ "{'own_networks': [], 'client': {'strategy': 'rightmost', 'trusted_proxies': ['192.0.2.0/24']}, 'rules': [{'name': "
	  "'x', 'action': 'allow', 'match': {'client': @'192.0.2.7'}}, {'name': 'rest'}]}", "risky", "/rules/0/match/client",
		"" },
	{ "{'limits': {'a': {'rate': '1/s', 'key': ['header:X']}}, 'rules': [{'name': 'x', 'limits': @['a']}]}", "risky",
		"/rules/0/limits", "new bucket" },
	{ "{'limits': {'a': {'rate': '1/s', 'key': ['client', 'path']}}, 'rules': [{'name': 'x', 'match': {'path': '/a/*'}, "
	  "'limits': @['a']}, " REST "]}", "risky", "/rules/0/limits", "" },
};

/* ' becomes ", @ goes and is where line and column point. */
static size_t unmark(const char *text_z, char *out, unsigned *ret_line, unsigned *ret_column)
{
	unsigned line = 1, column = 1;
	size_t n = 0;

	*ret_line = *ret_column = 0;
	for (; *text_z != '\0'; text_z++) {
		if (*text_z == '@') {
			*ret_line = line;
			*ret_column = column;
			continue;
		}
		out[n++] = *text_z == '\'' ? '"' : *text_z;
		column++;
		if (*text_z == '\n') {
			line++;
			column = 1;
		}
	}
	return n;
}

/* Prints what is wrong and returns false. */
static bool check_case(const struct fault_case *c)
{
	static const struct config_options options;
	struct config *config = NULL;
	struct fault_list faults;
	const struct fault *f;
	unsigned line, column;
	char text[2048];
	bool is_warning = strcmp(c->code_z, "risky") == 0, ok = false;
	size_t len;
	enum err e;

	len = unmark(c->text_z, text, &line, &column);
	fault_list_init(&faults);
	e = config_load_text(&config, str_make(text, len), NULL, &options, &faults);
	if (faults.n == 1) {
		f = &faults.items[0];
		ok = strcmp(f->code, c->code_z) == 0 && strcmp(f->pointer_z, c->pointer_z) == 0 && f->line == line &&
			f->column == column && strstr(f->text_z, c->words_z) != NULL &&
			f->severity == (is_warning ? FAULT_WARNING : FAULT_ERROR) &&
			e == (is_warning ? ERR_OK : ERR_SYNTAX) && (config != NULL) == is_warning;
	}
	if (!ok)
		print_error("%.*s\n  wanted %u:%u: %s [%s] %s\n", (int)len, text, line, column, c->pointer_z, c->code_z,
			c->words_z);
	for (size_t i = 0; !ok && i < faults.n; i++) {
		char line_z[1024];

		(void)fault_print(&faults.items[i], line_z, sizeof(line_z));
		print_error("  got %s\n", line_z);
	}
	config_free(config);
	fault_list_done(&faults);
	return ok;
}

static void test_one_fault_each(void **state)
{
	size_t failed = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		failed += check_case(&cases[i]) ? 0 : 1;
	assert_int_equal(failed, 0);
}

static void test_all_faults_in_one_pass(void **state)
{
	static const char text_z[] = "{\n"
		"  \"workers\": 0,\n"
		"  \"limts\": {},\n"
		"  \"limits\": {\"a\": {\"rate\": \"0/s\", \"key\": [\"x\"]}, \"b\": {\"burst\": -1}},\n"
		"  \"identities\": {\"edge\": {\"token_sha256\": \"12\", \"limits\": [\"c\"]}},\n"
		"  \"client\": {\"strategy\": \"rightmost\", \"trusted_proxies\": [\"10.0.0.1/8\", \"x\"], \"hops\": 2},\n"
		"  \"rules\": [{\"name\": \"x\", \"match\": {\"path\": [\"a\", \"/b/\"], \"identity\": \"egde\"}, \"limits\": [\"q\"]},\n"
		"            {\"name\": \"x\", \"match\": {\"path\": \"/\"}}]}";
	static const struct {
		const char *pointer_z;
		unsigned line;
	} wanted[] = {
		{ "/workers", 2 }, { "/limts", 3 }, { "/client/hops", 6 }, { "/client/trusted_proxies/0", 6 },
		{ "/client/trusted_proxies/1", 6 }, { "/limits/a/rate", 4 }, { "/limits/a/key/0", 4 }, { "/limits/b/burst", 4 },
		{ "/limits/b", 4 }, { "/identities/edge/token_sha256", 5 }, { "/identities/edge/limits/0", 5 },
		{ "/rules/0/limits/0", 7 }, { "/rules/0/match/path/0", 7 }, { "/rules/0/match/path/1", 7 },
		{ "/rules/0/match/identity", 7 }, { "/rules/1/name", 8 }, { "/rules/1/match", 8 },
	};
	static const struct config_options options;
	struct config *config = NULL;
	struct fault_list faults;

	(void)state;
	fault_list_init(&faults);
	assert_int_equal(config_load_text(&config, str_from_z(text_z), NULL, &options, &faults), ERR_SYNTAX);
	assert_null(config);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		size_t found = 0;

		for (size_t k = 0; k < faults.n; k++)
			if (strcmp(faults.items[k].pointer_z, wanted[i].pointer_z) == 0 && faults.items[k].line == wanted[i].line)
				found++;
		if (found != 1)
			print_error("%s at line %u: found %zu times\n", wanted[i].pointer_z, wanted[i].line, found);
		assert_int_equal(found, 1);
	}
	assert_int_equal(faults.n_errors, sizeof(wanted) / sizeof(wanted[0]));
	fault_list_done(&faults);
}

/* More faults than anybody reads are counted, not listed. */
static void test_too_many_faults(void **state)
{
	static const struct config_options options;
	static char text[32 * 1024];
	struct config *config = NULL;
	struct fault_list faults;
	size_t n = 0;

	(void)state;
	n += (size_t)snprintf(text, sizeof(text), "{");
	for (size_t i = 0; i < 1500; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\"zz%zu\": 1", i > 0 ? ", " : "", i);
	n += (size_t)snprintf(text + n, sizeof(text) - n, "}");
	fault_list_init(&faults);
	assert_int_equal(config_load_text(&config, str_make(text, n), NULL, &options, &faults), ERR_SYNTAX);
	assert_int_equal(faults.n, 1001);
	assert_non_null(strstr(faults.items[1000].text_z, "too many faults"));
	fault_list_done(&faults);
}

/* A member whose pointer does not fit is still found, by what it lies in. */
static void test_long_name(void **state)
{
	static const struct config_options options;
	struct config *config = NULL;
	struct fault_list faults;
	char text[512];
	int n;

	(void)state;
	n = snprintf(text, sizeof(text), "{\n \"limits\": {\"%0400d\": {\"rate\": \"1/s\"}}, \"rules\": [{\"name\": \"x\"}]}", 0);
	fault_list_init(&faults);
	assert_int_equal(config_load_text(&config, str_make(text, (size_t)n), NULL, &options, &faults), ERR_SYNTAX);
	assert_int_equal(faults.n, 1);
	assert_string_equal(faults.items[0].code, "bad_syntax");
	assert_int_equal(faults.items[0].line, 2);
	fault_list_done(&faults);
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
		cmocka_unit_test(test_one_fault_each),
		cmocka_unit_test(test_all_faults_in_one_pass),
		cmocka_unit_test(test_too_many_faults),
		cmocka_unit_test(test_long_name),
	};

	return cmocka_run_group_tests_name("config", tests, setup, NULL);
}
