/* SPDX-License-Identifier: MIT */
/*
 * Envoy's door, byte for byte where bytes are known and read back with the library elsewhere: what a CheckRequest becomes,
 * and what an answer says to Envoy.
 */
#include "adapter/rpc.h"

#include "../support/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "envoy/service/auth/v3/external_auth.pb-c.h"

#define BYTES(literal) str_make("" literal, sizeof(literal) - 1)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct judge judge;
static struct request req;
static struct rpc_answer answer;

static int setup(void **state)
{
	(void)state;
	judge_open(&judge,
		"{'limits': {'few': {'rate': '2/hour'}}, 'token_headers': ['X-Internal-Token', 'Authorization'],"
		" 'identities': {'edge': {'token_sha256':"
		" '0de42cd1f43b59e3a9b6a06d0dcca4e4fb6c3b6b9c7f9e2bd01ef5e1b3e3f4a5'}},"
		" 'rules': [{'name': 'closed', 'match': {'path': '/closed'}, 'action': 'deny'},"
		" {'name': 'ours', 'match': {'path': '/ours'}, 'require': 'identity', 'limits': ['few']},"
		" {'name': 'rest', 'limits': ['few']}]}");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	judge_close(&judge);
	return 0;
}

/* ---- messages, put together by hand as any sender may do it */

static struct str join(struct str a, struct str b)
{
	char *bytes = arena_alloc(&judge.arena, a.len + b.len);

	assert_non_null(bytes);
	if (a.len > 0)
		memcpy(bytes, a.ptr, a.len);
	if (b.len > 0)
		memcpy(bytes + a.len, b.ptr, b.len);
	return str_make(bytes, a.len + b.len);
}

static struct str field(unsigned number, struct str inside)
{
	char head[4] = {(char)(number << 3 | 2), (char)(inside.len & 0x7f), 0, 0};
	size_t n = 2;

	assert_true(inside.len < 1 << 14);
	if (inside.len > 0x7f) {
		head[1] = (char)((inside.len & 0x7f) | 0x80);
		head[2] = (char)(inside.len >> 7);
		n = 3;
	}
	return join(str_make(head, n), inside);
}

static struct str pair(struct str name, struct str value, unsigned value_field)
{
	return join(field(1, name), field(value_field, value));
}

static struct str check_of(struct str source_address, struct str http)
{
	return field(1, join(field(1, field(1, source_address)), field(4, field(2, http))));
}

static struct str socket_address(const char *text_z)
{
	return field(1, join(field(2, str_from_z(text_z)), BYTES("\x18\xd2\x09")));
}

static void decode(struct str message)
{
	assert_true(ext_authz_grpc_decode(message, &judge.arena, &req, &answer));
}

static void assert_text(struct str got, const char *want_z)
{
	struct str want = str_from_z(want_z);

	if (!str_equal(got, want))
		fail_msg("\"%.*s\" instead of \"%s\"", STR_ARG(got), want_z);
}

/* ---- questions */

static void map_and_fields(void **state)
{
	struct str http = join(field(2, BYTES("POST")), field(4, BYTES("/login?x=1")));

	(void)state;
	http = join(http, field(5, BYTES("api.example.com")));
	http = join(http, field(3, pair(BYTES(":path"), BYTES("/login?x=1"), 2)));
	http = join(http, field(3, pair(BYTES("x-a"), BYTES("1,2"), 2)));
	http = join(http, field(3, pair(BYTES("x-forwarded-for"), BYTES("6.6.6.6, 203.0.113.9,192.0.2.1"), 2)));
	http = join(http, field(1, BYTES("4711")));
	decode(check_of(socket_address("192.0.2.1"), http));
	assert_int_equal(req.door, DOOR_EXT_AUTHZ_GRPC);
	assert_int_equal(req.fault, REASON_ALLOWED);
	assert_text(req.remote_addr, "192.0.2.1");
	assert_true(req.method.said && req.path.said && req.host.said && req.id.said);
	assert_text(req.method.text, "POST");
	assert_text(req.path.text, "/login?x=1");
	assert_text(req.host.text, "api.example.com");
	assert_text(req.id.text, "4711");
	assert_int_equal(req.n_headers, 2);
	assert_text(req.headers[0].name, "x-a");
	assert_text(req.headers[0].value, "1,2");
	assert_text(req.headers[1].value, "6.6.6.6, 203.0.113.9");
	assert_false(req.token.said);
	assert_int_equal(req.cost, 1);
}

static void header_map_keeps_lines_and_bytes(void **state)
{
	struct str lines = field(1, pair(BYTES(":method"), BYTES("GET"), 3));

	(void)state;
	lines = join(lines, field(1, pair(BYTES("x-a"), BYTES("one"), 3)));
	lines = join(lines, field(1, pair(BYTES("x-a"), BYTES("t\xff\x00o"), 3)));
	lines = join(lines, field(1, pair(BYTES("x-text"), BYTES("plain"), 2)));
	lines = join(lines, field(1, field(1, BYTES("x-empty"))));
	decode(check_of(socket_address("2001:db8::1"), field(13, lines)));
	assert_text(req.remote_addr, "2001:db8::1");
	assert_int_equal(req.n_headers, 4);
	assert_text(req.headers[0].value, "one");
	assert_true(str_equal(req.headers[1].value, BYTES("t\xff\x00o")));
	assert_text(req.headers[2].value, "plain");
	assert_text(req.headers[3].name, "x-empty");
	assert_text(req.headers[3].value, "");
	assert_false(req.method.said || req.path.said || req.host.said || req.id.said);
}

static void a_zero_byte_does_not_cut(void **state)
{
	struct str http = join(field(4, BYTES("/a\0/../b")), field(3, pair(BYTES("x-\0a"), BYTES("v\0w"), 2)));

	(void)state;
	decode(check_of(socket_address("192.0.2.1\0x"), http));
	assert_int_equal(req.path.text.len, 8);
	assert_int_equal(req.headers[0].name.len, 4);
	assert_int_equal(req.headers[0].value.len, 3);
}

static void own_hop(void **state)
{
	static const struct {
		const char *peer_z, *header_z, *left_z; /* NULL: the line is gone */
	} cases[] = {
		{"192.0.2.1", "192.0.2.1", NULL},
		{"192.0.2.1", "  192.0.2.1 \t", NULL},
		{"192.0.2.1", "203.0.113.9,192.0.2.1", "203.0.113.9"},
		{"192.0.2.1", "203.0.113.9 ,\t::ffff:192.0.2.1", "203.0.113.9"},
		{"::ffff:192.0.2.1", "192.0.2.1", NULL},
		{"2001:db8::1", "1.1.1.1, 2001:DB8:0::1", "1.1.1.1"},
		{"192.0.2.1", "192.0.2.1, 203.0.113.9", "192.0.2.1, 203.0.113.9"},
		{"192.0.2.1", "192.0.2.1:80", "192.0.2.1:80"},
		{"192.0.2.1", "192.0.2.1,", "192.0.2.1,"},
		{"192.0.2.1", ",192.0.2.1", NULL},
		{"192.0.2.1", "", ""},
		{"", "", ""},
		{"", "1.1.1.1,", "1.1.1.1,"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str line;

		judge_forget(&judge);
		line = pair(BYTES("X-Forwarded-For"), str_from_z(cases[i].header_z), 2);
		decode(check_of(socket_address(cases[i].peer_z), field(3, line)));
		assert_int_equal(req.n_headers, cases[i].left_z != NULL);
		if (cases[i].left_z != NULL)
			assert_text(req.headers[0].value, cases[i].left_z);
	}
}

static void other_peers(void **state)
{
	(void)state;
	decode(check_of(field(2, field(1, BYTES("/run/envoy.sock"))), BYTES("")));
	assert_text(req.remote_addr, "unix:/run/envoy.sock");
	decode(check_of(field(2, field(1, BYTES("@abstract"))), BYTES("")));
	assert_text(req.remote_addr, "unix:@abstract");
	decode(check_of(field(3, field(1, BYTES("listener"))), BYTES("")));
	assert_text(req.remote_addr, "envoy-internal");
	decode(check_of(BYTES(""), BYTES("")));
	assert_text(req.remote_addr, "");
	decode(BYTES(""));
	assert_text(req.remote_addr, "");
	assert_int_equal(req.n_headers, 0);
	/* A connection: no request at all. */
	decode(field(1, field(1, field(1, socket_address("192.0.2.1")))));
	assert_text(req.remote_addr, "192.0.2.1");
	assert_false(req.path.said || req.method.said);
}

/* Fields that we do not read, in any order; a message given twice is merged, the later value wins. */
static void the_rest_of_a_message(void **state)
{
	struct str http = join(BYTES("\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), field(12, BYTES("\0\xff")));
	struct str message;

	(void)state;
	http = join(http, field(6, BYTES("https")));
	message = field(1, join(field(11, BYTES("")), field(4, field(2, join(http, field(2, BYTES("GET")))))));
	message = join(message, field(1, field(4, join(field(1, BYTES("\x08\x01")), field(2, field(4, BYTES("/p")))))));
	message = join(message, field(1, field(1, field(1, socket_address("192.0.2.1")))));
	message = join(message, field(1, field(1, field(1, socket_address("192.0.2.2")))));
	decode(message);
	assert_text(req.method.text, "GET");
	assert_text(req.path.text, "/p");
	assert_text(req.remote_addr, "192.0.2.2");
}

static void broken(void **state)
{
	struct str whole = check_of(socket_address("192.0.2.1"), field(4, BYTES("/path")));
	struct arena small;
	char room[200];

	(void)state;
	for (size_t n = 1; n < whole.len; n++) {
		assert_false(ext_authz_grpc_decode(str_head(whole, n), &judge.arena, &req, &answer));
		assert_int_equal(answer.status, RPC_INTERNAL);
		assert_int_equal(answer.message.len, 0);
	}
	assert_false(ext_authz_grpc_decode(BYTES("\x0f"), &judge.arena, &req, &answer));
	arena_init(&small, room, sizeof(room));
	assert_false(ext_authz_grpc_decode(whole, &small, &req, &answer));
	assert_int_equal(answer.status, RPC_RESOURCE_EXHAUSTED);
}

/* ---- answers */

static struct str judged(const char *path_z, const char *address_z)
{
	struct verdict v;

	decode(check_of(socket_address(address_z), field(4, str_from_z(path_z))));
	judge_decide(&judge, &req, &v);
	ext_authz_grpc_encode(judge.rules, &v, &judge.arena, &answer);
	assert_int_equal(answer.status, RPC_OK);
	return answer.message;
}

static Envoy__Service__Auth__V3__CheckResponse *unpack(struct str message)
{
	Envoy__Service__Auth__V3__CheckResponse *r = envoy__service__auth__v3__check_response__unpack(
		NULL, message.len, (const uint8_t *)message.ptr);

	assert_non_null(r);
	assert_non_null(r->status);
	return r;
}

static void release(Envoy__Service__Auth__V3__CheckResponse *r)
{
	envoy__service__auth__v3__check_response__free_unpacked(r, NULL);
}

/* Each line's value, and that every version of Envoy takes it as "set this, once". */
static const char *line(Envoy__Config__Core__V3__HeaderValueOption *const *lines, size_t n, const char *name_z)
{
	const char *found_z = NULL;

	for (size_t i = 0; i < n; i++) {
		assert_non_null(lines[i]->append);
		assert_false(lines[i]->append->value);
		assert_int_equal(lines[i]->append_action,
			ENVOY__CONFIG__CORE__V3__HEADER_VALUE_OPTION__HEADER_APPEND_ACTION__OVERWRITE_IF_EXISTS_OR_ADD);
		assert_int_equal(lines[i]->header->raw_value.len, 0);
		if (strcmp(lines[i]->header->key, name_z) == 0) {
			assert_null(found_z);
			found_z = lines[i]->header->value;
		}
	}
	return found_z;
}

static const char *metadata(const Envoy__Service__Auth__V3__CheckResponse *r, const char *name_z)
{
	for (size_t i = 0; i < r->dynamic_metadata->n_fields; i++) {
		if (strcmp(r->dynamic_metadata->fields[i]->key, name_z) == 0)
			return r->dynamic_metadata->fields[i]->value->string_value;
	}
	return NULL;
}

static void allow(void **state)
{
	Envoy__Service__Auth__V3__CheckResponse *r = unpack(judged("/x", "192.0.2.1"));
	const Envoy__Service__Auth__V3__OkHttpResponse *ok = r->ok_response;

	(void)state;
	assert_int_equal(r->status->code, 0);
	assert_int_equal(r->http_response_case, ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__HTTP_RESPONSE_OK_RESPONSE);
	assert_string_equal(line(ok->headers, ok->n_headers, "x-postern-client"), "192.0.2.1");
	assert_null(line(ok->headers, ok->n_headers, "x-postern-identity"));
	assert_int_equal(ok->n_headers_to_remove, 2);
	assert_string_equal(ok->headers_to_remove[0], "x-postern-identity");
	assert_string_equal(ok->headers_to_remove[1], "x-internal-token");
	assert_string_equal(line(ok->response_headers_to_add, ok->n_response_headers_to_add, "ratelimit"),
		"\"few\";r=1;t=1800");
	assert_string_equal(line(ok->response_headers_to_add, ok->n_response_headers_to_add, "ratelimit-policy"),
		"\"few\";q=2;w=3600");
	assert_string_equal(metadata(r, "reason"), "allowed");
	assert_string_equal(metadata(r, "rule"), "rest");
	assert_string_equal(metadata(r, "client"), "192.0.2.1");
	assert_null(metadata(r, "limit"));
	release(r);
}

static void deny_empty_limit(void **state)
{
	Envoy__Service__Auth__V3__CheckResponse *r;
	const Envoy__Service__Auth__V3__DeniedHttpResponse *denied;

	(void)state;
	judged("/x", "192.0.2.2");
	judged("/x", "192.0.2.2");
	r = unpack(judged("/x", "192.0.2.2"));
	denied = r->denied_response;
	assert_int_equal(r->status->code, 8);
	assert_int_equal(r->http_response_case,
		ENVOY__SERVICE__AUTH__V3__CHECK_RESPONSE__HTTP_RESPONSE_DENIED_RESPONSE);
	assert_int_equal(denied->status->code, 429);
	assert_string_equal(denied->body, "{\"error\": \"rate_limited\", \"retry_after\": 1800}\n");
	assert_string_equal(line(denied->headers, denied->n_headers, "retry-after"), "1800");
	assert_string_equal(line(denied->headers, denied->n_headers, "content-type"), "application/json");
	assert_non_null(line(denied->headers, denied->n_headers, "ratelimit"));
	assert_null(line(denied->headers, denied->n_headers, "x-postern-client"));
	assert_string_equal(metadata(r, "limit"), "few");
	assert_string_equal(metadata(r, "reason"), "rate_limited");
	release(r);
}

static void deny_otherwise(void **state)
{
	static const struct {
		const char *path_z;
		int code, http;
		const char *reason_z;
	} cases[] = {{"/closed", 7, 403, "blocked"}, {"/ours", 16, 401, "identity_required"}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		Envoy__Service__Auth__V3__CheckResponse *r = unpack(judged(cases[i].path_z, "192.0.2.3"));

		assert_int_equal(r->status->code, cases[i].code);
		assert_int_equal(r->denied_response->status->code, cases[i].http);
		assert_string_equal(metadata(r, "reason"), cases[i].reason_z);
		assert_int_equal(line(r->denied_response->headers, r->denied_response->n_headers,
					 "www-authenticate") != NULL,
			cases[i].http == 401);
		release(r);
	}
}

static struct str encoded(const struct verdict *v)
{
	ext_authz_grpc_encode(judge.rules, v, &judge.arena, &answer);
	return answer.message;
}

/* Two answers to the byte. */
static void golden(void **state)
{
	struct verdict v = {.decision = DECISION_DENY, .reason = REASON_BLOCKED};
	struct str want = BYTES("\x0a\x02\x08\x07" /* status */
				"\x12\x65\x0a\x03\x08\x93\x03" /* denied: status */
				"\x12\x26\x0a\x20\x0a\x0c" "content-type\x12\x10" "application/json\x12\x00\x18\x02"
				"\x12\x1f\x0a\x19\x0a\x0d" "cache-control\x12\x08no-store\x12\x00\x18\x02"
				"\x1a\x15{\"error\": \"blocked\"}\n"
				"\x22\x15\x0a\x13\x0a\x06reason\x12\x09\x1a\x07" "blocked");

	(void)state;
	assert_int_equal(encoded(&v).len, want.len);
	assert_memory_equal(answer.message.ptr, want.ptr, want.len);
	v.decision = DECISION_ALLOW;
	v.reason = REASON_ALLOWED;
	want = BYTES("\x0a\x00" /* status */
		     "\x1a\x38\x2a\x10x-postern-client\x2a\x12x-postern-identity\x2a\x10x-internal-token"
		     "\x22\x15\x0a\x13\x0a\x06reason\x12\x09\x1a\x07" "allowed");
	assert_int_equal(encoded(&v).len, want.len);
	assert_memory_equal(answer.message.ptr, want.ptr, want.len);
}

/* "Cannot decide", and an answer without room, are no messages at all: an empty one would mean allow. */
static void no_decision(void **state)
{
	struct verdict v = {.decision = DECISION_ERROR, .reason = REASON_INTERNAL};
	struct arena small;
	char room[400];

	(void)state;
	assert_int_equal(encoded(&v).len, 0);
	assert_int_equal(answer.status, RPC_UNAVAILABLE);
	v = (struct verdict){.decision = DECISION_ALLOW, .reason = REASON_ALLOWED};
	arena_init(&small, room, sizeof(room));
	ext_authz_grpc_encode(judge.rules, &v, &small, &answer);
	assert_int_equal(answer.status, RPC_UNAVAILABLE);
	assert_int_equal(answer.message.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_and_fields),
		cmocka_unit_test(header_map_keeps_lines_and_bytes),
		cmocka_unit_test(a_zero_byte_does_not_cut),
		cmocka_unit_test(own_hop),
		cmocka_unit_test(other_peers),
		cmocka_unit_test(the_rest_of_a_message),
		cmocka_unit_test(broken),
		cmocka_unit_test(allow),
		cmocka_unit_test(deny_empty_limit),
		cmocka_unit_test(deny_otherwise),
		cmocka_unit_test(golden),
		cmocka_unit_test(no_decision),
	};

	return cmocka_run_group_tests_name("ext_authz_grpc", tests, setup, teardown);
}
