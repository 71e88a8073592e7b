/* SPDX-License-Identifier: MIT */
/*
 * A token gives something only if it is exactly right; everything else must look like no token at all, whatever the
 * header looks like.
 */
#include "core/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define EDGE "postern_edge-current-0123456789"
#define EDGE_OLD "postern_edge-previous-0123456789"
#define AGENT "agent-token-of-their-own"
#define SHORTEST "0123456789abcdef"

enum { IDENTITY_EDGE, IDENTITY_AGENT, IDENTITY_SHORT, IDENTITY_LONG, N_IDENTITIES };

static char longest[TOKEN_BYTES_MAX];
static struct identity_token tokens[5];
static const struct identity identities[N_IDENTITIES] = {
	[IDENTITY_EDGE] = {.name = {"edge", 4}},
	[IDENTITY_AGENT] = {.name = {"agent", 5}},
	[IDENTITY_SHORT] = {.name = {"short", 5}},
	[IDENTITY_LONG] = {.name = {"long", 4}},
};
static const struct str default_headers[] = {{"X-Internal-Token", 16}, {"Authorization", 13}};
static const struct str reversed_headers[] = {{"authorization", 13}, {"X-Internal-Token", 16}};

static struct identity_set set;

static void token_make(size_t i, struct str token, uint16_t identity, enum token_slot slot)
{
	digest_sha256(&tokens[i].digest, token);
	tokens[i].identity = identity;
	tokens[i].slot = (uint8_t)slot;
}

static int setup(void **state)
{
	(void)state;
	if (digest_init() != ERR_OK)
		return -1;
	memset(longest, 'x', sizeof(longest));
	token_make(0, STR(EDGE), IDENTITY_EDGE, TOKEN_SLOT_CURRENT);
	token_make(1, STR(EDGE_OLD), IDENTITY_EDGE, TOKEN_SLOT_PREVIOUS);
	token_make(2, STR(AGENT), IDENTITY_AGENT, TOKEN_SLOT_CURRENT);
	token_make(3, STR(SHORTEST), IDENTITY_SHORT, TOKEN_SLOT_CURRENT);
	token_make(4, str_make(longest, sizeof(longest)), IDENTITY_LONG, TOKEN_SLOT_CURRENT);
	set = (struct identity_set){identities, N_IDENTITIES, tokens, 5, default_headers, 2};
	return 0;
}

#define LINES_MAX 3
#define NOBODY N_IDENTITIES

struct row {
	const char *title_z;
	struct {
		const char *name_z, *value_z;
	} lines[LINES_MAX];
	enum token_state state;
	unsigned identity;
	enum token_slot slot;
	bool from_authorization;
	bool reversed;
};

#define X "X-Internal-Token"
#define A "Authorization"

static const struct row rows[] = {
	{"nothing", {{NULL, NULL}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"current", {{X, EDGE}}, TOKEN_STATE_VALID, IDENTITY_EDGE, TOKEN_SLOT_CURRENT, false, false},
	{"previous", {{X, EDGE_OLD}}, TOKEN_STATE_VALID, IDENTITY_EDGE, TOKEN_SLOT_PREVIOUS, false, false},
	{"second identity", {{X, AGENT}}, TOKEN_STATE_VALID, IDENTITY_AGENT, TOKEN_SLOT_CURRENT, false,
		false},
	{"shortest", {{X, SHORTEST}}, TOKEN_STATE_VALID, IDENTITY_SHORT, TOKEN_SLOT_CURRENT, false, false},
	{"name in any case", {{"x-INTERNAL-token", AGENT}}, TOKEN_STATE_VALID, IDENTITY_AGENT, 0, false,
		false},
	{"other lines around", {{"Host", "h"}, {X, AGENT}, {"Cookie", EDGE}}, TOKEN_STATE_VALID,
		IDENTITY_AGENT, 0, false, false},
	{"white space around", {{X, " \t" AGENT "\t "}}, TOKEN_STATE_VALID, IDENTITY_AGENT, 0, false, false},
	{"wrong", {{X, "postern_wrong-wrong-wrong"}}, TOKEN_STATE_UNKNOWN, NOBODY, 0, false, false},
	{"wrong case", {{X, "AGENT-token-of-their-own"}}, TOKEN_STATE_UNKNOWN, NOBODY, 0, false, false},
	{"one byte short", {{X, "agent-token-of-their-ow"}}, TOKEN_STATE_UNKNOWN, NOBODY, 0, false, false},
	{"one byte more", {{X, AGENT "x"}}, TOKEN_STATE_UNKNOWN, NOBODY, 0, false, false},
	{"too short for a token", {{X, "x"}}, TOKEN_STATE_UNKNOWN, NOBODY, 0, false, false},
	{"empty", {{X, ""}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"blank", {{X, " \t "}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"twice", {{X, AGENT}, {X, AGENT}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0, false, false},
	{"right and wrong", {{X, AGENT}, {X, "x"}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0, false, false},
	{"wrong and right", {{X, "x"}, {"x-internal-token", AGENT}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0, false,
		false},
	{"right and empty", {{X, AGENT}, {X, ""}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0, false, false},
	{"joined", {{X, AGENT "," AGENT}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0, false, false},
	{"comma behind", {{X, AGENT ","}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0, false, false},
	{"bearer word in the wrong header", {{X, "Bearer " AGENT}}, TOKEN_STATE_UNKNOWN, NOBODY, 0, false,
		false},
	{"underscore twin", {{"X_Internal_Token", AGENT}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},

	{"bearer", {{A, "Bearer " EDGE}}, TOKEN_STATE_VALID, IDENTITY_EDGE, TOKEN_SLOT_CURRENT, true, false},
	{"bearer without our prefix", {{A, "Bearer " AGENT}}, TOKEN_STATE_VALID, IDENTITY_AGENT, 0, true,
		false},
	{"bearer in any case", {{"authorization", "bEaReR   " EDGE}}, TOKEN_STATE_VALID, IDENTITY_EDGE, 0,
		true, false},
	{"a user's login", {{A, "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x"}}, TOKEN_STATE_ABSENT, NOBODY, 0, false,
		false},
	{"forged bearer", {{A, "Bearer postern_forged-forged-forged"}}, TOKEN_STATE_UNKNOWN, NOBODY, 0, true,
		false},
	{"forged short bearer", {{A, "Bearer postern_"}}, TOKEN_STATE_UNKNOWN, NOBODY, 0, true, false},
	{"basic", {{A, "Basic " EDGE}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"digest with commas", {{A, "Digest username=\"a\", realm=\"b\""}}, TOKEN_STATE_ABSENT, NOBODY, 0,
		false, false},
	{"no scheme", {{A, EDGE}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"scheme run together", {{A, "Bearer" EDGE}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"empty bearer", {{A, "Bearer"}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"blank bearer", {{A, "Bearer  "}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"empty authorization", {{A, ""}}, TOKEN_STATE_ABSENT, NOBODY, 0, false, false},
	{"two bearers", {{A, "Bearer " EDGE}, {A, "Bearer " EDGE}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0, true,
		false},
	{"basic and bearer", {{A, "Basic eDp5"}, {A, "Bearer " EDGE}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0,
		true, false},
	{"joined bearers", {{A, "Bearer " EDGE ",Bearer " EDGE}}, TOKEN_STATE_AMBIGUOUS, NOBODY, 0, true,
		false},

	{"first header wins", {{A, "Bearer " EDGE}, {X, AGENT}}, TOKEN_STATE_VALID, IDENTITY_AGENT, 0, true,
		false},
	{"first header wrong: no second try", {{A, "Bearer " EDGE}, {X, "wrong-wrong-wrong-wrong"}},
		TOKEN_STATE_UNKNOWN, NOBODY, 0, true, false},
	{"first header empty: no second try", {{A, "Bearer " EDGE}, {X, ""}}, TOKEN_STATE_ABSENT, NOBODY, 0,
		true, false},
	{"a user's login beside ours", {{A, "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x"}, {X, AGENT}}, TOKEN_STATE_VALID,
		IDENTITY_AGENT, 0, false, false},
	{"order is configured", {{A, "Bearer " EDGE}, {X, AGENT}}, TOKEN_STATE_VALID, IDENTITY_EDGE, 0, true,
		true},
	{"basic is not present", {{A, "Basic eDp5"}, {X, AGENT}}, TOKEN_STATE_VALID, IDENTITY_AGENT, 0, false,
		true},
};

static void test_headers(void **state)
{
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct header_line lines[LINES_MAX];
		struct request req = {.headers = lines};
		struct token_result got;
		const struct row *row = &rows[i];

		print_message("%s\n", row->title_z);
		for (k = 0; k < LINES_MAX && row->lines[k].name_z != NULL; k++) {
			lines[k].name = str_from_z(row->lines[k].name_z);
			lines[k].value = str_from_z(row->lines[k].value_z);
			req.n_headers++;
		}
		set.headers = row->reversed ? reversed_headers : default_headers;
		memset(&got, 0x5a, sizeof(got));
		identity_find(&set, &req, &got);
		assert_int_equal(got.state, row->state);
		assert_int_equal(got.from_authorization, row->from_authorization);
		if (row->identity == NOBODY) {
			assert_null(got.identity);
			continue;
		}
		assert_ptr_equal(got.identity, &identities[row->identity]);
		assert_int_equal(got.index, row->identity);
		assert_int_equal(got.slot, row->slot);
	}
	set.headers = default_headers;
}

static void find_said(struct str token, struct token_result *ret)
{
	const struct header_line line = {STR(X), STR(EDGE)};
	const struct request req = {.headers = &line, .n_headers = 1, .token = {token, true}};

	identity_find(&set, &req, ret);
}

static void test_said(void **state)
{
	struct token_result got;

	(void)state;
	find_said(STR(AGENT), &got);
	assert_int_equal(got.state, TOKEN_STATE_VALID);
	assert_ptr_equal(got.identity, &identities[IDENTITY_AGENT]);
	find_said(STR(""), &got);
	assert_int_equal(got.state, TOKEN_STATE_ABSENT);
	assert_null(got.identity);
	find_said(STR("anything"), &got);
	assert_int_equal(got.state, TOKEN_STATE_UNKNOWN);
	find_said(STR("a,b"), &got);
	assert_int_equal(got.state, TOKEN_STATE_AMBIGUOUS);
	find_said(STR(AGENT "\0"), &got);
	assert_int_equal(got.state, TOKEN_STATE_UNKNOWN);
	find_said(STR("\0\xff"), &got);
	assert_int_equal(got.state, TOKEN_STATE_UNKNOWN);
}

static void test_lengths(void **state)
{
	struct token_result got;
	static char longer[TOKEN_BYTES_MAX + 1];

	(void)state;
	find_said(str_make(longest, sizeof(longest)), &got);
	assert_int_equal(got.state, TOKEN_STATE_VALID);
	assert_ptr_equal(got.identity, &identities[IDENTITY_LONG]);
	memset(longer, 'x', sizeof(longer));
	find_said(str_make(longer, sizeof(longer)), &got);
	assert_int_equal(got.state, TOKEN_STATE_UNKNOWN);
}

static void test_nobody_configured(void **state)
{
	const struct identity_set none = {.headers = default_headers, .n_headers = 2};
	const struct header_line lines[] = {{STR(X), STR(EDGE)}};
	const struct request req = {.headers = lines, .n_headers = 1}, bare = {.n_headers = 0};
	struct token_result got;

	(void)state;
	identity_find(&none, &req, &got);
	assert_int_equal(got.state, TOKEN_STATE_UNKNOWN);
	assert_null(got.identity);
	identity_find(&none, &bare, &got);
	assert_int_equal(got.state, TOKEN_STATE_ABSENT);
}

static void test_slot_words(void **state)
{
	(void)state;
	assert_true(str_equal(token_slot_word(TOKEN_SLOT_CURRENT), STR("current")));
	assert_true(str_equal(token_slot_word(TOKEN_SLOT_PREVIOUS), STR("previous")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_said),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_nobody_configured),
		cmocka_unit_test(test_slot_words),
	};

	return cmocka_run_group_tests_name("identity", tests, setup, NULL);
}
