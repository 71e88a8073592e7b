/* SPDX-License-Identifier: MIT */
/*
 * load: what the files of config share while one configuration is being read. Private to config.
 *
 * Model      A walk over the JSON tree with the JSON pointer of where it stands, which every fault takes over and finds
 *            its line and column by. Reading goes on after a fault, with whatever stands in for the faulty value, so
 *            that one pass names them all; the config is thrown away in the end if there was an error.
 * Ownership  Everything that outlives the walk is copied into the arena.
 * Threads    confined.
 * Limits     LOAD_FAULTS_MAX faults are kept; each costs a scan of the text.
 */
#ifndef POSTERN_CONFIG_LOAD_H
#define POSTERN_CONFIG_LOAD_H

#include "base/json.h"
#include "config/config.h"

#define LOAD_FAULTS_MAX 1000
#define LOAD_ITEMS_MAX 1000 /* rules, limits, identities */
#define LOAD_RANGES_MAX 1024
#define LOAD_FILE_BYTES_MAX ((size_t)4 << 20)

enum problem {
#define PROBLEM(id, code, http, title) PROBLEM_##id,
#include "problems.def"
#undef PROBLEM
	PROBLEM_COUNT
};

enum setting {
#define SETTING(id, path, kind, range, fallback, help, field) SETTING_##id,
#define MEMBER(id, path, kind, range, fallback, help) SETTING_##id,
#define REFUSED(id, path, help) SETTING_##id,
#include "settings.def"
	SETTING_COUNT
};

/* A member of the object read last under its path. */
struct found {
	const struct json *value; /* NULL: not there */
	bool ok; /* number holds a scalar that is right */
	uint64_t number; /* count, bytes, ns, 0 or 1, or which word of the range */
};

struct load {
	struct config *config;
	struct arena *arena;
	struct str text;
	const char *base_dir_z; /* NULL: the current folder */
	bool without_secrets;
	struct fault_list *faults;
	size_t n_faults, n_errors; /* of this load */
	char pointer_z[JSON_POINTER_BYTES];
	struct found found[SETTING_COUNT];

	struct limit *limits;
	size_t n_limits;
	struct identity *identities;
	size_t n_identities;
	struct identity_token *tokens;
	size_t n_tokens;
};

/* Hostile or operator's text made fit for a message. */
struct shown {
	char z[160];
};

/* ---- where the walk stands: leave takes what enter gave */
size_t load_enter(struct load *l, struct str name);
size_t load_enter_index(struct load *l, size_t index);
void load_leave(struct load *l, size_t mark);

/* ---- faults at that place; _name: at the member's name instead of its value */
void load_error(struct load *l, enum problem p, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void load_error_name(struct load *l, enum problem p, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void load_warn(struct load *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *load_problem_word(enum problem p);

/* Cut and escaped. Returns ret->z. */
const char *load_show(struct shown *ret, struct str s);

/* ` (did you mean "..."?)`, or nothing. Returns ret->z. */
const char *load_hint(struct shown *ret, struct str s, const struct str *names, size_t n);

/* ---- values; each reports a wrong type itself */
bool load_is(struct load *l, const struct json *v, enum json_kind kind);
bool load_text(struct load *l, const struct json *v, struct str *ret);

/* [a-z0-9][a-z0-9_-]{0,62}. is_member: it is the member's name, else its value. */
bool load_name_ok(struct load *l, struct str name, bool is_member);

/* Reads one string of a list into a slot. False after reporting why not. */
typedef bool load_item_reader(struct load *l, struct str s, void *slot, const void *context);

struct load_list {
	load_item_reader *read;
	const void *context;
	size_t item_size, max;
	bool string_ok; /* a single string is a list of one */
	bool empty_ok;
	bool unique; /* an item whose bytes come twice is a fault */
};

/* The items in the arena, and how many were right. NULL if there are none. */
void *load_list(struct load *l, const struct json *v, const struct load_list *form, size_t *ret_n);

/* Room for the members of a map, cleared; NULL if v is no object or too large. */
void *load_map(struct load *l, const struct json *v, size_t item_size);

/* A list of ranges. with_unix (may be NULL): "unix" is accepted too, and sets it. */
void load_ranges(
	struct load *l, const struct json *v, bool string_ok, bool *with_unix, struct range_set *ret);

/* Indices (uint16_t) of limits or identities by their names. */
uint16_t *load_limit_names(struct load *l, const struct json *v, size_t max, size_t *ret_n);
uint16_t *load_identity_names(struct load *l, const struct json *v, bool string_ok, size_t *ret_n);

/* ---- settings: rows of settings.def */
void settings_set_defaults(struct config *c);

/* The default as it would stand in a file. */
struct str setting_default(enum setting id);

/* Reads an object whose members are the rows under path ("" is the top): unknown names, members that this version cannot
 * serve and faulty scalars are reported, scalars with a field are stored, and found[] is filled. False if v is no
 * object. */
bool settings_read(struct load *l, const char *path_z, const struct json *v);

/* Enters a member of the object that was read last under its path. False if it is not there. */
bool settings_enter(struct load *l, enum setting object, size_t *ret_mark);

/* ---- the parts, at the place of v, which is never NULL */
void client_compile(struct load *l, const struct json *v);
void limits_compile(struct load *l, const struct json *v);
void identities_compile(struct load *l, const struct json *v);
void rules_compile(struct load *l, const struct json *v);
void callers_compile(struct load *l, const struct json *v);
void caller_key_compile(struct load *l, const struct json *v);
void token_headers_compile(struct load *l, const struct json *v);

/* ---- what needs several parts, at the top */
void rules_default(struct load *l); /* where the file has no rules */
void client_settle_network(struct load *l);
void checks_run(struct load *l); /* warnings of what works but is dangerous */

#endif
