/* SPDX-License-Identifier: MIT */
/*
 * reason: the closed lists of words that explain a verdict. Rows of api/reasons.def.
 *
 * Model      An enum a list; one row holds the word for people and programs and what it maps to. Words are stable.
 * Threads    Pure.
 */
#ifndef POSTERN_CORE_REASON_H
#define POSTERN_CORE_REASON_H

#include "base/str.h"

#include <stdbool.h>

enum decision { DECISION_ALLOW, DECISION_DENY, DECISION_ERROR, DECISION_COUNT };

enum reason {
#define REASON(id, word, decision, http, grpc, text) REASON_##id,
#include "reasons.def"
#undef REASON
	REASON_COUNT
};

enum client_reason {
#define CLIENT_REASON(id, word, decided, text) CLIENT_REASON_##id,
#include "reasons.def"
#undef CLIENT_REASON
	CLIENT_REASON_COUNT
};

enum token_state {
#define TOKEN_STATE(id, word) TOKEN_STATE_##id,
#include "reasons.def"
#undef TOKEN_STATE
	TOKEN_STATE_COUNT
};

enum warning {
#define WARNING(id, word, text) WARNING_##id,
#include "reasons.def"
#undef WARNING
	WARNING_COUNT
};

enum door {
#define DOOR(id, word, path) DOOR_##id,
#include "reasons.def"
#undef DOOR
	DOOR_COUNT
};

enum door_header {
#define DOOR_HEADER(id, door, name) DOOR_HEADER_##id,
#include "reasons.def"
#undef DOOR_HEADER
	DOOR_HEADER_COUNT
};

struct str decision_word(enum decision d); /* "allow", "deny", "error" */

struct str reason_word(enum reason r);
struct str reason_text(enum reason r);
enum decision reason_decision(enum reason r);
unsigned reason_http(enum reason r);
unsigned reason_grpc(enum reason r); /* google.rpc.Code */

struct str client_reason_word(enum client_reason r);
struct str client_reason_text(enum client_reason r);
bool client_reason_decided(enum client_reason r);

struct str token_state_word(enum token_state s);

struct str warning_word(enum warning w);

struct str door_word(enum door d);
struct str door_path(enum door d);
bool door_is_prefix(enum door d); /* its path ends in an asterisk */

struct str door_header_name(enum door_header h);
enum door door_header_door(enum door_header h);

/* The row of this door and name, or DOOR_HEADER_COUNT. */
enum door_header door_header_find(enum door d, struct str name);

/* The door of this word ("forward_auth"), or DOOR_COUNT. */
enum door door_find(struct str word);

#endif
