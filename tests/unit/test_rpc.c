/* SPDX-License-Identifier: MIT */
/*
 * Which path is which method, and what the methods answer that decide nothing: health and reflection, the latter read with the
 * generated types and its files with the reader for wire fields.
 */
#include "adapter/rpc.h"
#include "adapter/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "grpc/reflection/v1/reflection.pb-c.h"

#define BYTES(literal) str_make("" literal, sizeof(literal) - 1)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static _Alignas(16) char block[1 << 16];
static struct arena arena;
static struct rpc_answer answer;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena, block, sizeof(block));
	return 0;
}

static void assert_text(struct str got, const char *want_z)
{
	if (!str_equal(got, str_from_z(want_z)))
		fail_msg("\"%.*s\" instead of \"%s\"", STR_ARG(got), want_z);
}

static const struct adapter_rpc *method(const char *path_z)
{
	bool is_old;
	const struct adapter_rpc *m = adapter_rpc_find(str_from_z(path_z), &arena, &answer, &is_old);

	assert_non_null(m);
	return m;
}

/* ---- paths */

static void served(void **state)
{
	(void)state;
	assert_int_equal(method("/envoy.service.auth.v3.Authorization/Check")->door, DOOR_EXT_AUTHZ_GRPC);
	assert_false(method("/envoy.service.auth.v3.Authorization/Check")->ungated);
	assert_int_equal(method("/grpc.health.v1.Health/Check")->shape, RPC_UNARY);
	assert_true(method("/grpc.health.v1.Health/Check")->ungated);
	assert_int_equal(method("/grpc.health.v1.Health/Watch")->shape, RPC_WATCH);
	assert_int_equal(method("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")->shape, RPC_CHAT);
	assert_false(method("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")->ungated);
	for (size_t i = 0; i < adapter_rpc_count(); i++)
		assert_true(adapter_rpc_at(i)->shape == RPC_DECISION || adapter_rpc_at(i)->answer != NULL);
}

static void not_served(void **state)
{
	static const struct {
		const char *path_z, *detail_z;
		bool is_old;
	} cases[] = {
		{"", "malformed method name", false},
		{"/", "malformed method name", false},
		{"Check", "malformed method name", false},
		{"grpc.health.v1.Health/Check", "malformed method name", false},
		{"/x/y", "unknown service x", false},
		{"/grpc.health.v1.Health/", "unknown method  for service grpc.health.v1.Health", false},
		{"/grpc.health.v1.Health/check", "unknown method check for service grpc.health.v1.Health", false},
		{"/grpc.health.v1.health/Check", "unknown service grpc.health.v1.health", false},
		{"/a/grpc.health.v1.Health/Check", "unknown service a/grpc.health.v1.Health", false},
		{"/envoy.service.auth.v2.Authorization/Check",
			"only envoy.service.auth.v3 is served: set transport_api_version: V3", true},
		{"/envoy.service.auth.v2alpha.Authorization/Check",
			"only envoy.service.auth.v3 is served: set transport_api_version: V3", true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		bool is_old = false;

		assert_null(adapter_rpc_find(str_from_z(cases[i].path_z), &arena, &answer, &is_old));
		assert_int_equal(answer.status, RPC_UNIMPLEMENTED);
		assert_text(answer.detail, cases[i].detail_z);
		assert_int_equal(is_old, cases[i].is_old);
	}
}

static void long_paths_are_cut(void **state)
{
	char path[4096] = "/";
	bool is_old;

	(void)state;
	memset(path + 1, 'a', sizeof(path) - 3);
	path[sizeof(path) - 2] = '/';
	assert_null(adapter_rpc_find(str_from_z(path), &arena, &answer, &is_old));
	assert_true(answer.detail.len < 200);
}

/* ---- health */

static void ask(const char *path_z, struct str message, struct rpc_context *c)
{
	arena_reset(&arena);
	method(path_z)->answer(message, c, &arena, &answer);
}

static void health(void **state)
{
	static const struct {
		struct str request;
		enum rpc_status status;
	} cases[] = {
		{STR(""), RPC_OK},
		{STR("\x0a\x00"), RPC_OK},
		{STR("\x0a\x23" "envoy.service.auth.v3.Authorization"), RPC_OK},
		{STR("\x0a\x01x"), RPC_NOT_FOUND},
		{STR("\x0a"), RPC_INTERNAL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (unsigned serving = 0; serving < 2; serving++) {
			struct rpc_context c = {.serving = serving};

			ask("/grpc.health.v1.Health/Check", cases[i].request, &c);
			assert_int_equal(answer.status, cases[i].status);
			if (answer.status == RPC_OK)
				assert_true(str_equal(answer.message, serving ? BYTES("\x08\x01") : BYTES("\x08\x02")));
		}
	}
}

static void watch(void **state)
{
	struct rpc_context c = {.serving = true};

	(void)state;
	ask("/grpc.health.v1.Health/Watch", BYTES(""), &c);
	assert_true(str_equal(answer.message, BYTES("\x08\x01")));
	c.serving = false;
	health_watch_changed(&c, &arena, &answer);
	assert_true(str_equal(answer.message, BYTES("\x08\x02")));
	c = (struct rpc_context){.serving = true};
	ask("/grpc.health.v1.Health/Watch", BYTES("\x0a\x01x"), &c);
	assert_int_equal(answer.status, RPC_OK);
	assert_true(str_equal(answer.message, BYTES("\x08\x03")));
	c.serving = false;
	health_watch_changed(&c, &arena, &answer);
	assert_true(str_equal(answer.message, BYTES("\x08\x03")));
}

/* ---- reflection */

static Grpc__Reflection__V1__ServerReflectionResponse *response;

/* Asks by field number of the request; the answer is in response. */
static void reflect(char number, const char *text_z, struct rpc_context *c)
{
	char bytes[256] = {(char)(number << 3 | 2), (char)strlen(text_z)};
	struct str request = str_make(bytes, 2 + strlen(text_z));

	memcpy(bytes + 2, text_z, strlen(text_z));
	ask("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", request, c);
	assert_int_equal(answer.status, RPC_OK);
	response = grpc__reflection__v1__server_reflection_response__unpack(
		NULL, answer.message.len, (const uint8_t *)answer.message.ptr);
	assert_non_null(response);
	assert_non_null(response->original_request);
}

static void forget(void)
{
	grpc__reflection__v1__server_reflection_response__free_unpacked(response, NULL);
}

static void assert_file_name(size_t index, const char *want_z)
{
	const Grpc__Reflection__V1__FileDescriptorResponse *files = response->file_descriptor_response;
	struct str file, name;
	unsigned field;

	assert_true(index < files->n_file_descriptor_proto);
	file = str_make((const char *)files->file_descriptor_proto[index].data, files->file_descriptor_proto[index].len);
	assert_true(wire_next(&file, &field, &name));
	assert_int_equal(field, 1);
	assert_text(name, want_z);
	while (wire_next(&file, &field, &name))
		;
	assert_int_equal(file.len, 0);
}

static void list_services(void **state)
{
	static const char *const want[] = {"envoy.service.auth.v3.Authorization", "grpc.health.v1.Health",
		"grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"};
	struct rpc_context c = {.serving = true};

	(void)state;
	reflect(7, "*", &c);
	assert_int_equal(response->list_services_response->n_service, COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++) {
		size_t found = 0;

		for (size_t k = 0; k < COUNT(want); k++)
			found += strcmp(response->list_services_response->service[k]->name, want[i]) == 0;
		assert_int_equal(found, 1);
	}
	assert_string_equal(response->original_request->list_services, "*");
	forget();
}

static void symbols(void **state)
{
	static const struct {
		const char *symbol_z, *file_z;
	} cases[] = {
		{"envoy.service.auth.v3.Authorization", "envoy/service/auth/v3/external_auth.proto"},
		{"envoy.service.auth.v3.Authorization.Check", "envoy/service/auth/v3/external_auth.proto"},
		{"envoy.service.auth.v3.CheckResponse.ok_response", "envoy/service/auth/v3/external_auth.proto"},
		{"envoy.service.auth.v3.AttributeContext.HttpRequest.HeadersEntry.key",
			"envoy/service/auth/v3/attribute_context.proto"},
		{"envoy.config.core.v3.HeaderValueOption.HeaderAppendAction", "envoy/config/core/v3/base.proto"},
		{"envoy.type.v3.StatusCode", "envoy/type/v3/http_status.proto"},
		{"google.protobuf.Struct", "google/protobuf/struct.proto"},
		{"grpc.reflection.v1alpha.ErrorResponse", "grpc/reflection/v1alpha/reflection.proto"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rpc_context c = {.serving = true};

		reflect(4, cases[i].symbol_z, &c);
		assert_file_name(0, cases[i].file_z);
		forget();
		reflect(3, cases[i].file_z, &c);
		assert_int_equal(response->file_descriptor_response->n_file_descriptor_proto, 1);
		assert_file_name(0, cases[i].file_z);
		forget();
	}
}

/* A file comes with all that it imports, and what a call has had is not sent to it again. */
static void imports(void **state)
{
	struct rpc_context c = {.serving = true};

	(void)state;
	reflect(4, "envoy.config.core.v3.HeaderMap", &c);
	assert_int_equal(response->file_descriptor_response->n_file_descriptor_proto, 2);
	assert_file_name(1, "google/protobuf/wrappers.proto");
	forget();
	reflect(4, "envoy.service.auth.v3.Authorization", &c);
	assert_int_equal(response->file_descriptor_response->n_file_descriptor_proto, 7);
	assert_file_name(0, "envoy/service/auth/v3/external_auth.proto");
	forget();
}

static void no_such_thing(void **state)
{
	static const struct {
		char field;
		const char *text_z;
	} cases[] = {{3, "a.proto"}, {3, ""}, {4, "envoy.service.auth.v3"}, {4, "envoy.service.auth.v3."}, {4, ""},
		{4, "envoy.service.auth.v3.CheckRequest.attributes.source"}, {6, "no.such.Type"}};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rpc_context c = {.serving = true};

		reflect(cases[i].field, cases[i].text_z, &c);
		assert_int_equal(response->message_response_case,
			GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE);
		assert_int_equal(response->error_response->error_code, 5);
		forget();
	}
}

static void extensions(void **state)
{
	struct rpc_context c = {.serving = true};

	(void)state;
	reflect(6, "google.protobuf.Any", &c);
	assert_string_equal(response->all_extension_numbers_response->base_type_name, "google.protobuf.Any");
	assert_int_equal(response->all_extension_numbers_response->n_extension_number, 0);
	forget();
	reflect(5, "\x0a\x01x\x10\x01", &c);
	assert_int_equal(response->error_response->error_code, 5);
	forget();
}

static void bad_requests(void **state)
{
	struct rpc_context c = {.serving = true};

	(void)state;
	ask("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", BYTES(""), &c);
	assert_int_equal(answer.status, RPC_INVALID_ARGUMENT);
	ask("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", BYTES("\x3a\x05"), &c);
	assert_int_equal(answer.status, RPC_INTERNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(served),
		cmocka_unit_test(not_served),
		cmocka_unit_test(long_paths_are_cut),
		cmocka_unit_test(health),
		cmocka_unit_test(watch),
		cmocka_unit_test(list_services),
		cmocka_unit_test(symbols),
		cmocka_unit_test(imports),
		cmocka_unit_test(no_such_thing),
		cmocka_unit_test(extensions),
		cmocka_unit_test(bad_requests),
	};

	return cmocka_run_group_tests_name("rpc", tests, setup, NULL);
}
