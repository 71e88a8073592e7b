/* SPDX-License-Identifier: MIT */
/*
 * From text to config: one allocation holds the structure and the arena that everything in it points into, so freeing is
 * one call and nothing ever moves. The arena is sized from the text and the number of its rules, limits and identities:
 * the dearest thing a byte of text can buy is an item of a list, and an estimate that turns out too small is no memory,
 * never a cut configuration. Pages that are not used are never touched.
 * The parts are read in the order in which they refer to each other: limits, identities, rules. A default that is more
 * than a number is read from the table's text by the code that reads the file's.
 */
#include "config/config.h"

#include "base/file.h"
#include "config/load.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>

struct config_block {
	struct config config; /* first: what the world holds a pointer to */
	struct arena arena;
	alignas(16) char room[];
};

#define ROOM_FIXED_BYTES ((size_t)64 * 1024)
#define ROOM_BYTES_PER_BYTE 32 /* a list's item and its padded copy, for the three bytes of "", */
#define ROOM_BYTES_PER_ITEM 1024

struct str listen_name_word(enum listen_name n)
{
	static const struct str words[LISTEN_COUNT] = {
		[LISTEN_HTTP] = {"http", 4},
		[LISTEN_GRPC] = {"grpc", 4},
		[LISTEN_OPS] = {"ops", 3},
		[LISTEN_ADMIN] = {"admin", 5}};

	return words[n];
}

void config_free(struct config *c)
{
	free(c);
}

/* ---- parts that are short */

static void compile_listener(struct load *l, struct config_listen *listener, struct str s)
{
	const char *why = "";
	struct shown shown;

	listener->on = endpoint_parse(&listener->endpoint, s, &why);
	if (!listener->on)
		load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" is no address to listen on: %s",
			load_show(&shown, s), why);
}

static bool same_endpoint(const struct endpoint *a, const struct endpoint *b)
{
	if (a->is_unix || b->is_unix)
		return a->is_unix && b->is_unix && strcmp(a->path_z, b->path_z) == 0;
	return a->port != 0 && a->port == b->port && ip_equal(&a->ip, &b->ip);
}

static void compile_listeners(struct load *l)
{
	static const enum setting settings[LISTEN_COUNT] = {[LISTEN_HTTP] = SETTING_LISTEN_HTTP,
		[LISTEN_GRPC] = SETTING_LISTEN_GRPC,
		[LISTEN_OPS] = SETTING_LISTEN_OPS,
		[LISTEN_ADMIN] = SETTING_LISTEN_ADMIN};
	struct config_listen *listen = l->config->listen;
	size_t outer = load_enter(l, STR("listen")), mark;
	struct str s;

	for (size_t i = 0; i < LISTEN_COUNT; i++) {
		const struct json *v = l->found[settings[i]].value;

		if (!settings_enter(l, settings[i], &mark)) {
			compile_listener(l, &listen[i], setting_default(settings[i]));
			continue;
		}
		if (json_kind(v) != JSON_KIND_NULL && load_text(l, v, &s))
			compile_listener(l, &listen[i], s);
		for (size_t k = 0; k < i; k++)
			if (listen[i].on && listen[k].on &&
				same_endpoint(&listen[i].endpoint, &listen[k].endpoint))
				load_error(l, PROBLEM_CONFLICT, "%.*s listens there already",
					STR_ARG(listen_name_word((enum listen_name)k)));
		load_leave(l, mark);
	}
	load_leave(l, outer);
}

static void compile_request_id(struct load *l, const struct json *v)
{
	struct shown shown;
	struct str s;

	if (!load_text(l, v, &s))
		return;
	if (str_is_token(s))
		l->config->request_id_header = arena_copy(l->arena, s);
	else
		load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" is no header name", load_show(&shown, s));
}

static void compile_own_networks(struct load *l, const struct json *v)
{
	load_ranges(l, v, false, NULL, &l->config->rules.own_networks);
}

static void compile_doors(struct load *l, const struct json *v)
{
	size_t mark;

	if (!settings_read(l, "doors", v) || !settings_enter(l, SETTING_DOORS_EXT_AUTHZ, &mark))
		return;
	(void)settings_read(l, "doors.ext_authz", l->found[SETTING_DOORS_EXT_AUTHZ].value);
	load_leave(l, mark);
}

static void check_schema(struct load *l, const struct json *v)
{
	(void)load_is(l, v, JSON_KIND_STRING);
}

/* ---- the whole */

/* Objects that hold nothing but scalars, each stored by its row. */
static const struct {
	enum setting id;
	const char *path_z;
} groups[] = {
	{SETTING_LISTEN, "listen"},
	{SETTING_STORE, "store"},
	{SETTING_HEADERS, "headers"},
	{SETTING_HTTP, "http"},
	{SETTING_GRPC, "grpc"},
	{SETTING_DRAIN, "drain"},
	{SETTING_LOG, "log"},
	{SETTING_NETWORK_PREFIX, "network_prefix"},
};

/* Later ones refer to earlier ones. An absent one is read from its default, if it has one. */
static const struct {
	enum setting id;
	void (*compile)(struct load *l, const struct json *v);
} lists[] = {
	{SETTING_SCHEMA, check_schema},
	{SETTING_CALLERS, callers_compile},
	{SETTING_OWN_NETWORKS, compile_own_networks},
	{SETTING_REQUEST_ID_HEADER, compile_request_id},
	{SETTING_TOKEN_HEADERS, token_headers_compile},
	{SETTING_DOORS, compile_doors},
	{SETTING_CLIENT, client_compile},
	{SETTING_LIMITS, limits_compile},
	{SETTING_IDENTITIES, identities_compile},
	{SETTING_CALLER_KEY_FILE, caller_key_compile},
	{SETTING_RULES, rules_compile},
};

/* A store of another kind has other members: only its kind is judged. */
static bool is_other_store(struct load *l, const struct json *v)
{
	const struct json *kind = json_kind(v) == JSON_KIND_OBJECT ? json_member(v, "kind") : NULL;
	size_t mark;

	if (kind == NULL || json_kind(kind) != JSON_KIND_STRING || !str_equal(json_text(kind), STR("redis")))
		return false;
	mark = load_enter(l, STR("kind"));
	load_error(l, PROBLEM_NOT_IN_THIS_VERSION,
		"this version cannot serve a store of the kind \"redis\" yet");
	load_leave(l, mark);
	return true;
}

static enum err read_default(
	struct load *l, enum setting id, void (*compile)(struct load *l, const struct json *v))
{
	struct json_fault fault;
	struct json *v;
	enum err e = json_read(&v, setting_default(id), &fault);

	if (e == ERR_OK) {
		compile(l, v);
		json_free(v);
	}
	return e;
}

static enum err read_root(struct load *l, const struct json *root)
{
	size_t mark;

	if (!settings_read(l, "", root))
		return ERR_OK;
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		if (settings_enter(l, groups[i].id, &mark)) {
			const struct json *v = l->found[groups[i].id].value;

			if (groups[i].id != SETTING_STORE || !is_other_store(l, v))
				(void)settings_read(l, groups[i].path_z, v);
			load_leave(l, mark);
		}
	compile_listeners(l);
	l->config->callers_named = l->found[SETTING_CALLERS].value != NULL;
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		enum err e;

		if (settings_enter(l, lists[i].id, &mark)) {
			lists[i].compile(l, l->found[lists[i].id].value);
			load_leave(l, mark);
			continue;
		}
		if (setting_default(lists[i].id).len == 0)
			continue;
		e = read_default(l, lists[i].id, lists[i].compile);
		if (e != ERR_OK)
			return e;
	}
	if (l->found[SETTING_RULES].value == NULL)
		rules_default(l);
	client_settle_network(l);
	policy_freeze(&l->config->rules);
	checks_run(l);
	return l->arena->overflow ? ERR_MEMORY : ERR_OK;
}

/* Over the text and the tokens that the files hold, each with whose it is, so that a rotated token is a new configuration. */
static enum err make_hash(struct load *l)
{
	struct part {
		struct digest digest;
		uint8_t owner[4];
	} *parts = arena_array(l->arena, l->n_tokens + 2, sizeof(*parts));
	char *hex = arena_alloc(l->arena, 13);
	struct digest whole;

	if (parts == NULL || hex == NULL)
		return ERR_MEMORY;
	memset(parts, 0, (l->n_tokens + 2) * sizeof(*parts));
	digest_sha256(&parts[0].digest, l->text);
	parts[1].digest = l->config->caller_key;
	parts[1].owner[3] = l->config->has_caller_key;
	for (size_t i = 0; i < l->n_tokens; i++) {
		const struct identity_token *token = &l->tokens[i];

		parts[i + 2].digest = token->digest;
		parts[i + 2].owner[0] = (uint8_t)(token->identity >> 8);
		parts[i + 2].owner[1] = (uint8_t)token->identity;
		parts[i + 2].owner[2] = token->slot;
	}
	digest_sha256(&whole, str_make((const char *)parts, (l->n_tokens + 2) * sizeof(*parts)));
	str_hex(whole.bytes, 6, hex);
	l->config->rules.hash = str_make(hex, 12);
	return ERR_OK;
}

static size_t count_items(const struct json *root)
{
	static const char *const names[] = {"limits", "identities", "rules"};
	size_t n = 0;

	for (size_t i = 0; json_kind(root) == JSON_KIND_OBJECT && i < sizeof(names) / sizeof(names[0]); i++) {
		const struct json *v = json_member(root, names[i]);

		if (v != NULL && (json_kind(v) == JSON_KIND_ARRAY || json_kind(v) == JSON_KIND_OBJECT))
			n += json_count(v) < LOAD_ITEMS_MAX ? json_count(v) : LOAD_ITEMS_MAX;
	}
	return n;
}

static struct config *config_new(
	struct str text, size_t n_items, const char *file_z, struct arena **ret_arena)
{
	size_t room = ROOM_FIXED_BYTES + text.len * ROOM_BYTES_PER_BYTE + n_items * ROOM_BYTES_PER_ITEM;
	struct config_block *block = malloc(sizeof(*block) + room);

	if (block == NULL)
		return NULL;
	memset(block, 0, sizeof(*block));
	arena_init(&block->arena, block->room, room);
	(void)snprintf(block->config.file_z, sizeof(block->config.file_z), "%s", file_z);
	block->config.serial = 1;
	settings_set_defaults(&block->config);
	*ret_arena = &block->arena;
	return &block->config;
}

static void report_json(const struct json_fault *fault, const char *file_z, struct fault_list *faults)
{
	static const enum problem problems[] = {[JSON_FAULT_SYNTAX] = PROBLEM_BODY_NOT_JSON,
		[JSON_FAULT_UTF8] = PROBLEM_BODY_NOT_UTF8,
		[JSON_FAULT_DUPLICATE] = PROBLEM_DUPLICATE_MEMBER,
		[JSON_FAULT_DEPTH] = PROBLEM_BODY_TOO_DEEP};
	struct fault *f = fault_add(faults, FAULT_ERROR, load_problem_word(problems[fault->kind]),
		fault->pointer_z, "%s", fault->detail_z);

	if (f == NULL)
		return;
	f->line = fault->line;
	f->column = fault->column;
	(void)snprintf(f->file_z, sizeof(f->file_z), "%s", file_z);
}

static enum err load(struct config **ret, struct load *l, const char *file_z)
{
	struct json_fault fault;
	struct json *root;
	enum err e;

	if (l->text.len > LOAD_FILE_BYTES_MAX)
		return ERR_RANGE;
	e = json_read(&root, l->text, &fault);
	if (e != ERR_OK) {
		if (fault.kind == JSON_FAULT_MEMORY)
			return ERR_MEMORY;
		report_json(&fault, file_z, l->faults);
		return ERR_SYNTAX;
	}
	l->config = config_new(l->text, count_items(root), file_z, &l->arena);
	if (l->config == NULL) {
		json_free(root);
		return ERR_MEMORY;
	}
	l->config->is_builtin =
		file_z[0] == '\0' && json_kind(root) == JSON_KIND_OBJECT && json_count(root) == 0;
	e = read_root(l, root);
	if (e == ERR_OK)
		e = make_hash(l);
	if (e == ERR_OK && l->n_errors > 0)
		e = ERR_SYNTAX;
	json_free(root);
	if (e == ERR_OK)
		*ret = l->config;
	else
		config_free(l->config);
	return e;
}

enum err config_load_text(struct config **ret, struct str text, const char *base_dir_z,
	const struct config_options *options, struct fault_list *faults)
{
	struct load l = {.text = text,
		.base_dir_z = base_dir_z,
		.without_secrets = options->without_secrets,
		.faults = faults};

	return load(ret, &l, "");
}

/* One fault that says so. ERR_RANGE is the file's size or kind, which a caller sees as unreadable, too. */
static enum err report_unreadable(enum err e, const char *path_z, struct fault_list *faults)
{
	struct fault *f = fault_add(faults, FAULT_ERROR, load_problem_word(PROBLEM_UNREADABLE_FILE), "",
		"the configuration cannot be read: %s",
		e == ERR_RANGE ? "it is not a regular file of at most 4 MiB" : err_text(e));

	if (f != NULL)
		(void)snprintf(f->file_z, sizeof(f->file_z), "%s", path_z);
	return e == ERR_RANGE ? ERR_IO : e;
}

enum err config_load_file(struct config **ret, const char *path_z, const struct config_options *options,
	struct fault_list *faults)
{
	struct load l = {.without_secrets = options->without_secrets, .faults = faults};
	size_t dir_len = str_find_last(str_from_z(path_z), '/');
	char *dir_z = NULL;
	enum err e = file_read(&l.text, path_z, LOAD_FILE_BYTES_MAX);

	if (e == ERR_MEMORY)
		return e;
	if (e != ERR_OK)
		return report_unreadable(e, path_z, faults);
	if (path_z[dir_len] == '/') {
		dir_z = strndup(path_z, dir_len > 0 ? dir_len : 1);
		if (dir_z == NULL)
			e = ERR_MEMORY;
	}
	l.base_dir_z = dir_z;
	if (e == ERR_OK)
		e = load(ret, &l, path_z);
	free(dir_z);
	file_free(l.text);
	return e;
}
