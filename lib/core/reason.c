/* SPDX-License-Identifier: MIT */
/*
 * Every list becomes one table of rows, expanded from api/reasons.def, and every accessor is an index into it. An enum
 * value outside its list can only be our own fault, so the accessors do not check: the enums and the tables come from
 * the same rows and cannot disagree.
 */
#include "core/reason.h"

#include <stdint.h>

static const struct str decision_words[DECISION_COUNT] = {
	[DECISION_ALLOW] = {"allow", 5},
	[DECISION_DENY] = {"deny", 4},
	[DECISION_ERROR] = {"error", 5},
};

static const struct {
	struct str word, text;
	enum decision decision;
	uint16_t http, grpc;
} reasons[REASON_COUNT] = {
#define REASON(id, word, decision, http, grpc, text)                                                         \
	[REASON_##id] = {{word, sizeof(word) - 1}, {text, sizeof(text) - 1}, DECISION_##decision, http, grpc},
#include "reasons.def"
#undef REASON
};

static const struct {
	struct str word, text;
	bool decided;
} client_reasons[CLIENT_REASON_COUNT] = {
#define CLIENT_REASON(id, word, decided, text)                                                               \
	[CLIENT_REASON_##id] = {{word, sizeof(word) - 1}, {text, sizeof(text) - 1}, decided},
#include "reasons.def"
#undef CLIENT_REASON
};

static const struct str token_states[TOKEN_STATE_COUNT] = {
#define TOKEN_STATE(id, word) [TOKEN_STATE_##id] = {word, sizeof(word) - 1},
#include "reasons.def"
#undef TOKEN_STATE
};

static const struct str warnings[WARNING_COUNT] = {
#define WARNING(id, word, text) [WARNING_##id] = {word, sizeof(word) - 1},
#include "reasons.def"
#undef WARNING
};

static const struct {
	struct str word, path;
} doors[DOOR_COUNT] = {
#define DOOR(id, word, path) [DOOR_##id] = {{word, sizeof(word) - 1}, {path, sizeof(path) - 1}},
#include "reasons.def"
#undef DOOR
};

static const struct {
	struct str name;
	enum door door;
} door_headers[DOOR_HEADER_COUNT] = {
#define DOOR_HEADER(id, door, name) [DOOR_HEADER_##id] = {{name, sizeof(name) - 1}, DOOR_##door},
#include "reasons.def"
#undef DOOR_HEADER
};

struct str decision_word(enum decision d)
{
	return decision_words[d];
}

struct str reason_word(enum reason r)
{
	return reasons[r].word;
}

struct str reason_text(enum reason r)
{
	return reasons[r].text;
}

enum decision reason_decision(enum reason r)
{
	return reasons[r].decision;
}

unsigned reason_http(enum reason r)
{
	return reasons[r].http;
}

unsigned reason_grpc(enum reason r)
{
	return reasons[r].grpc;
}

struct str client_reason_word(enum client_reason r)
{
	return client_reasons[r].word;
}

struct str client_reason_text(enum client_reason r)
{
	return client_reasons[r].text;
}

bool client_reason_decided(enum client_reason r)
{
	return client_reasons[r].decided;
}

struct str token_state_word(enum token_state s)
{
	return token_states[s];
}

struct str warning_word(enum warning w)
{
	return warnings[w];
}

struct str door_word(enum door d)
{
	return doors[d].word;
}

struct str door_path(enum door d)
{
	return doors[d].path;
}

bool door_is_prefix(enum door d)
{
	return str_ends_with(doors[d].path, STR("*"));
}

struct str door_header_name(enum door_header h)
{
	return door_headers[h].name;
}

enum door door_header_door(enum door_header h)
{
	return door_headers[h].door;
}

enum door_header door_header_find(enum door d, struct str name)
{
	unsigned h;

	for (h = 0; h < DOOR_HEADER_COUNT; h++) {
		if (door_headers[h].door == d && str_equal(name, door_headers[h].name))
			break;
	}
	return (enum door_header)h;
}

enum door door_find(struct str word)
{
	unsigned d;

	for (d = 0; d < DOOR_COUNT; d++) {
		if (str_equal(word, doors[d].word))
			break;
	}
	return (enum door)d;
}
