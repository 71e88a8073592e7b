/* SPDX-License-Identifier: MIT */
/*
 * The table of cases for the client's address, through the configuration loader that the program uses: a case's strategy
 * becomes the member "client" of a configuration with one member renamed, so that what is refused at start is tested here
 * as well. Slices are handed on by length: some cases hold U+0000. Run from the root of the repository.
 */
#include "config/config.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define TABLE_PATH "tests/cases/client-address.json"
#define TABLE_MAX_BYTES ((size_t)16 << 20)
#define CONFIG_BYTES 16384
#define HEADERS_MAX 256

static struct str table;

/* A number with a fraction has no reader: its own text is taken over. */
static void write_real(struct text *t, const char *pointer_z)
{
	struct str at = table;
	unsigned line, column;
	size_t n = 0;

	assert_true(json_locate(table, pointer_z, false, &line, &column));
	while (--line != 0)
		at = str_from(at, str_find(at, '\n') + 1);
	at = str_from(at, column - 1);
	while (n < at.len && (str_is_digit(at.ptr[n]) || strchr("+-.eE", at.ptr[n]) != NULL))
		n++;
	text_str(t, str_head(at, n));
}

static void write_value(struct text *t, const struct json *v, const char *pointer_z)
{
	int64_t n;

	switch (json_kind(v)) {
	case JSON_KIND_NULL: text_z(t, "null"); break;
	case JSON_KIND_BOOL: text_z(t, json_bool(v) ? "true" : "false"); break;
	case JSON_KIND_INTEGER:
		n = json_integer_of(v);
		if (n < 0)
			text_char(t, '-');
		text_u64(t, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
		break;
	case JSON_KIND_REAL: write_real(t, pointer_z); break;
	case JSON_KIND_STRING:
		for (size_t i = 0; i < json_text(v).len; i++)
			assert_true((unsigned char)json_text(v).ptr[i] < 0x80);
		text_json(t, json_text(v));
		break;
	case JSON_KIND_ARRAY:
		text_char(t, '[');
		for (size_t i = 0; i < json_count(v); i++) {
			if (i != 0)
				text_char(t, ',');
			assert_int_not_equal(json_kind(json_item(v, i)), JSON_KIND_REAL);
			write_value(t, json_item(v, i), NULL);
		}
		text_char(t, ']');
		break;
	default: fail_msg("no strategy holds an object");
	}
}

/* {"version": 1, "client": {...}} with name spelt strategy. */
static struct str config_text(const struct json *strategy, size_t index, char *buffer)
{
	struct json_walk w = json_walk_start(strategy);
	struct text t;

	text_init(&t, buffer, CONFIG_BYTES);
	text_z(&t, "{\"version\":1,\"client\":{");
	for (size_t n = 0; json_walk_next(&w); n++) {
		char pointer_z[JSON_POINTER_BYTES] = "";

		json_pointer_push_index(pointer_z, index);
		json_pointer_push(pointer_z, STR("strategy"));
		json_pointer_push(pointer_z, w.name);
		if (n != 0)
			text_char(&t, ',');
		text_json(&t, str_equal(w.name, STR("name")) ? STR("strategy") : w.name);
		text_char(&t, ':');
		write_value(&t, w.value, pointer_z);
	}
	text_z(&t, "}}");
	assert_false(t.overflow);
	return text_view(&t);
}

struct answer {
	char address[IP_TEXT_BYTES]; /* "null" if there is none */
	struct str reason;
	unsigned n_errors;
};

static void derive(const struct config *config, const struct json *vector, struct answer *ret)
{
	const struct json *headers = json_member(vector, "headers");
	struct header_line lines[HEADERS_MAX];
	struct request req = {.remote_addr = json_text(json_member(vector, "peer")),
		.headers = lines,
		.n_headers = json_count(headers)};
	struct client client;

	assert_in_range(req.n_headers, 0, HEADERS_MAX);
	for (size_t i = 0; i < req.n_headers; i++) {
		const struct json *pair = json_item(headers, i);

		assert_int_equal(json_count(pair), 2);
		lines[i] = (struct header_line){json_text(json_item(pair, 0)), json_text(json_item(pair, 1))};
	}
	client_resolve(&config->rules.client, &req, NULL, &client);
	ret->reason = client_reason_word(client.reason);
	if (client.has_address)
		ip_print(&client.address, ret->address);
}

static struct answer answer_of(const struct json *vector, size_t index)
{
	static char buffer[CONFIG_BYTES];
	const struct config_options options = {.without_secrets = true};
	struct answer answer = {.address = "null", .reason = STR("config_error")};
	struct str text = config_text(json_member(vector, "strategy"), index, buffer);
	struct config *config = NULL;
	struct fault_list faults;

	fault_list_init(&faults);
	if (config_load_text(&config, text, ".", &options, &faults) == ERR_OK)
		derive(config, vector, &answer);
	else
		assert_null(config);
	answer.n_errors = (unsigned)faults.n_errors;
	config_free(config);
	fault_list_done(&faults);
	return answer;
}

/* A refusal must come with a fault of its own, and nothing else with one. */
static bool vector_passes(const struct json *vector, size_t index)
{
	const struct json *expect = json_member(vector, "expect");
	struct str reason = json_text(json_member(expect, "reason"));
	struct str address = STR("null");
	struct answer got = answer_of(vector, index);
	bool refused = str_equal(reason, STR("config_error"));

	if (json_kind(json_member(expect, "address")) == JSON_KIND_STRING)
		address = json_text(json_member(expect, "address"));
	if (str_equal(got.reason, reason) && str_equal(str_from_z(got.address), address) &&
		(got.n_errors != 0) == refused)
		return true;
	print_error("%.*s: expected %.*s %.*s, got %s %.*s with %u faults: %.*s\n",
		STR_ARG(json_text(json_member(vector, "id"))), STR_ARG(address), STR_ARG(reason), got.address,
		STR_ARG(got.reason), got.n_errors, STR_ARG(json_text(json_member(vector, "why"))));
	return false;
}

static void test_table(void **state)
{
	struct json_fault fault;
	struct json *root = NULL;
	size_t failed = 0;

	(void)state;
	assert_int_equal(file_read(&table, TABLE_PATH, TABLE_MAX_BYTES), ERR_OK);
	if (json_read(&root, table, &fault) != ERR_OK)
		fail_msg("%u:%u: %s", fault.line, fault.column, fault.detail_z);
	assert_int_equal(json_kind(root), JSON_KIND_ARRAY);
	assert_true(json_count(root) > 0);
	for (size_t i = 0; i < json_count(root); i++)
		failed += !vector_passes(json_item(root, i), i);
	print_message("%zu of %zu cases failed\n", failed, json_count(root));
	json_free(root);
	file_free(table);
	assert_int_equal(failed, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
	};

	json_setup();
	return cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
}
