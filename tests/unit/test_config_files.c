/* SPDX-License-Identifier: MIT */
/*
 * Configurations and secrets in files: what a token file may hold, where relative paths lead, and that no message ever
 * holds a byte of a token.
 */
#include "config/config.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN "postern_abcdefghijklmnopqrstuvwxyz0123456789"

static char dir_z[] = "/tmp/postern-config-XXXXXX";

static void write_file(const char *name_z, const char *bytes, size_t len, mode_t mode)
{
	char path_z[256];
	FILE *f;

	(void)snprintf(path_z, sizeof(path_z), "%s/%s", dir_z, name_z);
	(void)unlink(path_z);
	f = fopen(path_z, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path_z, mode), 0);
}

static enum err load_text(
	struct config **ret, const char *text_z, bool without_secrets, struct fault_list *faults)
{
	struct config_options options = {.without_secrets = without_secrets};

	fault_list_init(faults);
	return config_load_text(ret, str_from_z(text_z), dir_z, &options, faults);
}

static const char *const edge_z = "{\"identities\": {\"edge\": {\"token_file\": \"edge\"}}}";

static void test_token_files(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *words_z; /* NULL: accepted */
	} rows[] = {
#define ROW(literal, words_z) {literal, sizeof(literal) - 1, words_z}
		ROW(TOKEN, NULL),
		ROW(TOKEN "\n", NULL),
		ROW(TOKEN "\r\n", NULL),
		ROW(TOKEN "\n\n", "line break"),
		ROW(TOKEN "\r", "line break"),
		ROW(" " TOKEN, "white space"),
		ROW(TOKEN "\t\n", "white space"),
		ROW("secret-words,of-mine,all-of-them", "comma"),
		ROW(TOKEN "\0", "not visible ASCII"),
		ROW(TOKEN "\xc3\xa4", "not visible ASCII"),
		ROW("", "empty"),
		ROW("\n", "empty"),
		ROW("0123456789abcde", "shorter than 16"),
		ROW("/run/secrets/edge-token", "looks like a path"),
		ROW("./secrets/edge-token", "looks like a path"),
		ROW("{{ .Values.edge.token }}", "template"),
		ROW("${EDGE_TOKEN_FROM_VAULT}", "template"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config *c = NULL;
		struct fault_list faults;
		enum err e;

		write_file("edge", rows[i].bytes, rows[i].len, 0600);
		e = load_text(&c, edge_z, false, &faults);
		assert_int_equal(e, rows[i].words_z == NULL ? ERR_OK : ERR_SYNTAX);
		assert_int_equal(faults.n, rows[i].words_z == NULL ? 0 : 1);
		if (rows[i].words_z != NULL) {
			const char *text_z = faults.items[0].text_z;

			assert_string_equal(faults.items[0].code, "bad_token");
			assert_string_equal(faults.items[0].pointer_z, "/identities/edge/token_file");
			assert_non_null(strstr(text_z, dir_z)); /* which file */
			assert_non_null(strstr(text_z, rows[i].words_z));
			if (rows[i].len > 8)
				assert_null(strstr(text_z, "abcde"));
			assert_null(strstr(text_z, "secret-words"));
			assert_null(strstr(text_z, "EDGE_TOKEN"));
		} else {
			struct digest wanted;

			digest_sha256(&wanted, STR(TOKEN));
			assert_int_equal(c->rules.identities.n_tokens, 1);
			assert_int_equal(digest_equal(&c->rules.identities.tokens[0].digest, &wanted), 1);
		}
		config_free(c);
		fault_list_done(&faults);
	}
}

static void test_lengths(void **state)
{
	static const struct {
		size_t len;
		enum err e;
		const char *code_z; /* NULL: no fault */
	} rows[] = {
		{15, ERR_SYNTAX, "bad_token"},
		{16, ERR_OK, "risky"},
		{31, ERR_OK, "risky"},
		{32, ERR_OK, NULL},
		{512, ERR_OK, NULL},
		{513, ERR_SYNTAX, "bad_token"},
		{5000, ERR_SYNTAX, "bad_token"},
	};
	char bytes[5000];

	(void)state;
	memset(bytes, 'k', sizeof(bytes));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct config *c = NULL;
		struct fault_list faults;

		write_file("edge", bytes, rows[i].len, 0600);
		assert_int_equal(load_text(&c, edge_z, false, &faults), rows[i].e);
		assert_int_equal(faults.n, rows[i].code_z != NULL ? 1 : 0);
		if (rows[i].code_z != NULL)
			assert_string_equal(faults.items[0].code, rows[i].code_z);
		config_free(c);
		fault_list_done(&faults);
	}
}

static void test_previous(void **state)
{
	static const char *const text_z =
		"{\"identities\": {\"edge\": {\"token_file\": \"edge\", \"previous_token_file\": \"old\"}}}";
	struct config *c = NULL;
	struct fault_list faults;

	(void)state;
	write_file("edge", TOKEN, strlen(TOKEN), 0600);
	assert_int_equal(load_text(&c, text_z, false, &faults), ERR_OK); /* may be missing */
	assert_int_equal(faults.n, 0);
	assert_int_equal(c->rules.identities.n_tokens, 1);
	config_free(c);

	write_file("old", TOKEN "_old", strlen(TOKEN "_old"), 0600);
	assert_int_equal(load_text(&c, text_z, false, &faults), ERR_OK);
	assert_int_equal(c->rules.identities.n_tokens, 2);
	assert_int_equal(c->rules.identities.tokens[1].slot, TOKEN_SLOT_PREVIOUS);
	config_free(c);

	write_file("old", "short", 5, 0600);
	c = NULL;
	assert_int_equal(load_text(&c, text_z, false, &faults), ERR_SYNTAX);
	assert_string_equal(faults.items[0].pointer_z, "/identities/edge/previous_token_file");
	fault_list_done(&faults);
}

/* The same tokens in another service's files are another configuration, though their order is the same. */
static void test_hash_knows_whose_token_it_is(void **state)
{
	static const char text_z[] = "{\"identities\": {\"a\": {\"token_file\": \"a\", \"previous_token_file\": \"a.old\"},"
				     " \"b\": {\"token_file\": \"b\", \"previous_token_file\": \"b.old\"}}}";
	struct config *before, *after;
	struct fault_list faults;
	char old_z[256];

	(void)state;
	write_file("a", TOKEN "1", sizeof(TOKEN), 0600);
	write_file("a.old", TOKEN "2", sizeof(TOKEN), 0600);
	write_file("b", TOKEN "3", sizeof(TOKEN), 0600);
	assert_int_equal(load_text(&before, text_z, false, &faults), ERR_OK);
	fault_list_done(&faults);
	(void)snprintf(old_z, sizeof(old_z), "%s/a.old", dir_z);
	assert_int_equal(unlink(old_z), 0);
	write_file("b", TOKEN "2", sizeof(TOKEN), 0600);
	write_file("b.old", TOKEN "3", sizeof(TOKEN), 0600);
	assert_int_equal(load_text(&after, text_z, false, &faults), ERR_OK);
	fault_list_done(&faults);
	assert_false(str_equal(before->rules.hash, after->rules.hash));
	config_free(before);
	config_free(after);
}

static void test_same_token(void **state)
{
	struct config *c = NULL;
	struct fault_list faults;

	(void)state;
	write_file("edge", TOKEN "\n", strlen(TOKEN "\n"), 0600);
	write_file("agent", TOKEN, strlen(TOKEN), 0600);
	assert_int_equal(
		load_text(&c,
			"{\"identities\": {\"edge\": {\"token_file\": \"edge\"}, \"agent\": {\"token_file\": "
			"\"agent\"}}}",
			false, &faults),
		ERR_SYNTAX);
	assert_int_equal(faults.n, 1);
	assert_string_equal(faults.items[0].code, "bad_token");
	assert_string_equal(faults.items[0].pointer_z, "/identities/agent/token_file");
	fault_list_done(&faults);
	assert_int_equal(load_text(&c,
				 "{\"identities\": {\"edge\": {\"token_file\": \"edge\"}}, "
				 "\"caller_key_file\": \"agent\"}",
				 false, &faults),
		ERR_SYNTAX);
	assert_int_equal(faults.n, 1);
	assert_string_equal(faults.items[0].pointer_z, "/caller_key_file");
	fault_list_done(&faults);
	assert_int_equal(
		load_text(&c,
			"{\"identities\": {\"edge\": {\"token_file\": \"edge\", \"token_sha256\": \"\"}}}",
			false, &faults),
		ERR_SYNTAX);
	assert_int_equal(faults.n, 1);
	assert_string_equal(faults.items[0].code, "conflict");
	fault_list_done(&faults);
}

static void test_caller_key(void **state)
{
	struct config *c = NULL;
	struct fault_list faults;
	struct digest wanted;

	(void)state;
	write_file("key", TOKEN "\n", strlen(TOKEN "\n"), 0600);
	assert_int_equal(load_text(&c, "{\"caller_key_file\": \"key\"}", false, &faults), ERR_OK);
	digest_sha256(&wanted, STR(TOKEN));
	assert_true(c->has_caller_key);
	assert_int_equal(digest_equal(&c->caller_key, &wanted), 1);
	config_free(c);
	fault_list_done(&faults);
}

static void test_without_secrets(void **state)
{
	struct config *c = NULL;
	struct fault_list faults;

	(void)state;
	assert_int_equal(load_text(&c,
				 "{\"identities\": {\"edge\": {\"token_file\": \"none\"}}, "
				 "\"caller_key_file\": \"none\"}",
				 true, &faults),
		ERR_OK);
	assert_int_equal(faults.n, 0);
	assert_int_equal(c->rules.identities.n, 1);
	assert_int_equal(c->rules.identities.n_tokens, 0);
	assert_true(c->has_caller_key);
	config_free(c);
	fault_list_done(&faults);
}

static void test_world_readable(void **state)
{
	struct config *c = NULL;
	struct fault_list faults;
	char path_z[256];

	(void)state;
	write_file("edge", TOKEN, strlen(TOKEN), 0644);
	assert_int_equal(load_text(&c, edge_z, false, &faults), ERR_OK);
	assert_int_equal(faults.n_warnings, 1);
	assert_string_equal(faults.items[0].code, "risky");
	fault_list_done(&faults);
	config_free(c);

	/* the mark of a Kubernetes Secret volume */
	(void)snprintf(path_z, sizeof(path_z), "%s/..data", dir_z);
	assert_int_equal(symlink("..2026", path_z), 0);
	assert_int_equal(load_text(&c, edge_z, false, &faults), ERR_OK);
	assert_int_equal(faults.n, 0);
	fault_list_done(&faults);
	config_free(c);
	assert_int_equal(unlink(path_z), 0);
}

static void test_file(void **state)
{
	static const char good_z[] =
		"{\"identities\": {\"edge\": {\"token_file\": \"edge\"}}, \"workers\": 2}";
	static const struct config_options options;
	struct config *c = NULL;
	struct fault_list faults;
	char path_z[256];

	(void)state;
	(void)snprintf(path_z, sizeof(path_z), "%s/postern.json", dir_z);
	write_file("edge", TOKEN, strlen(TOKEN), 0600);
	write_file("postern.json", good_z, strlen(good_z), 0644);
	fault_list_init(&faults);
	assert_int_equal(config_load_file(&c, path_z, &options, &faults), ERR_OK);
	assert_int_equal(faults.n, 0);
	assert_int_equal(c->workers, 2);
	assert_int_equal(c->rules.identities.n_tokens, 1);
	assert_string_equal(c->file_z, path_z);
	config_free(c);

	write_file("postern.json", "{\n\"wrkers\": 2}", strlen("{\n\"wrkers\": 2}"), 0644);
	assert_int_equal(config_load_file(&c, path_z, &options, &faults), ERR_SYNTAX);
	assert_int_equal(faults.n, 1);
	assert_string_equal(faults.items[0].file_z, path_z);
	assert_int_equal(faults.items[0].line, 2);
	fault_list_done(&faults);

	fault_list_init(&faults);
	(void)snprintf(path_z, sizeof(path_z), "%s/absent.json", dir_z);
	assert_int_equal(config_load_file(&c, path_z, &options, &faults), ERR_ABSENT);
	assert_int_equal(faults.n, 1);
	assert_string_equal(faults.items[0].code, "unreadable_file");
	assert_string_equal(faults.items[0].file_z, path_z);
	fault_list_done(&faults);

	fault_list_init(&faults);
	assert_int_equal(config_load_file(&c, dir_z, &options, &faults), ERR_IO);
	assert_int_equal(faults.n, 1);
	fault_list_done(&faults);
}

static int setup(void **state)
{
	(void)state;
	json_setup();
	return mkdtemp(dir_z) != NULL && digest_init() == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = {"edge", "agent", "old", "key", "a", "b", "b.old", "postern.json"};
	char path_z[256];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path_z, sizeof(path_z), "%s/%s", dir_z, names[i]);
		(void)unlink(path_z);
	}
	return rmdir(dir_z);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_token_files),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_previous),
		cmocka_unit_test(test_hash_knows_whose_token_it_is),
		cmocka_unit_test(test_same_token),
		cmocka_unit_test(test_caller_key),
		cmocka_unit_test(test_without_secrets),
		cmocka_unit_test(test_world_readable),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests_name("config_files", tests, setup, teardown);
}
