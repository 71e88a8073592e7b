/* SPDX-License-Identifier: MIT */
/*
 * Our own services and where their tokens are looked for. Tokens come from files or as digests, never as text in the
 * configuration; a file is read, judged, hashed and wiped, and no message ever holds a byte of it. What people get
 * wrong with such files is refused by name: a path or an unfilled template where the secret should be, white space
 * inside, the same token for two services. One line end behind the token is what editors write and is taken away.
 */
#include "config/load.h"

#include "base/file.h"

#include <stdio.h>
#include <sys/stat.h>

#define SECRET_FILE_BYTES_MAX 4096
#define TOKEN_BYTES_ADVISED 32

/* ---- secrets in files */

static bool holds(struct str s, const char *needle_z)
{
	return s.len > 0 && memmem(s.ptr, s.len, needle_z, strlen(needle_z)) != NULL;
}

static bool looks_like_path(struct str s)
{
	return str_starts_with(s, STR("/")) || str_starts_with(s, STR("./")) ||
	       str_starts_with(s, STR("../")) || str_starts_with(s, STR("~/")) ||
	       str_starts_with(s, STR("file:"));
}

const char *config_token_fault(struct str s)
{
	if (s.len == 0)
		return "it is empty";
	if (looks_like_path(s))
		return "it looks like a path: the file must hold the token itself";
	if (holds(s, "{{") || holds(s, "${"))
		return "it looks like a template that was never filled in";
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (c == ',')
			return "it holds a comma, at which header lines are split";
		if (c == '\n' || c == '\r')
			return "it holds a line break besides the one at its end";
		if (c == ' ' || c == '\t')
			return "it holds white space";
		if (c < 0x21 || c > 0x7e)
			return "it holds a byte that is not visible ASCII";
	}
	if (s.len < TOKEN_BYTES_MIN)
		return "it is shorter than 16 characters; \"postern token new\" makes a good one";
	if (s.len > TOKEN_BYTES_MAX)
		return "it is longer than 512 characters";
	return NULL;
}

struct str config_token_text(struct str s)
{
	if (str_ends_with(s, STR("\r\n")))
		return str_head(s, s.len - 2);
	return str_ends_with(s, STR("\n")) ? str_head(s, s.len - 1) : s;
}

/* The whole path in the arena, NUL-terminated; NULL after a fault. */
static const char *secret_path(struct load *l, const struct json *v)
{
	bool relative;
	size_t base_len;
	struct str s;
	char *path_z;

	if (!load_text(l, v, &s))
		return NULL;
	if (s.len == 0 || str_find(s, '\0') != s.len) {
		load_error(l, PROBLEM_BAD_SYNTAX, "must be the path of a file");
		return NULL;
	}
	relative = s.ptr[0] != '/' && l->base_dir_z != NULL && l->base_dir_z[0] != '\0';
	base_len = relative ? strlen(l->base_dir_z) : 0;
	path_z = arena_alloc(l->arena, base_len + s.len + 2);
	if (path_z == NULL)
		return NULL;
	if (relative)
		(void)snprintf(path_z, base_len + s.len + 2, "%s/%.*s", l->base_dir_z, STR_ARG(s));
	else
		(void)snprintf(path_z, s.len + 1, "%.*s", STR_ARG(s));
	return path_z;
}

/* Kubernetes shows a Secret as a folder with a link "..data"; its files are 0644 by default and seen by one pod only. */
static bool in_secret_volume(const char *path_z)
{
	size_t dir_len = str_find_last(str_from_z(path_z), '/');
	char link_z[4096];
	struct stat st;

	if (path_z[dir_len] == '\0')
		return lstat("..data", &st) == 0;
	return snprintf(link_z, sizeof(link_z), "%.*s/..data", (int)dir_len, path_z) < (int)sizeof(link_z) &&
	       lstat(link_z, &st) == 0;
}

static void judge_secret(struct load *l, const char *path_z, struct str secret, const char **ret_fault)
{
	struct shown shown;
	struct stat st;

	*ret_fault = config_token_fault(secret);
	if (*ret_fault != NULL) {
		load_error(l, PROBLEM_BAD_TOKEN, "the token in \"%s\" cannot be used: %s",
			load_show(&shown, str_from_z(path_z)), *ret_fault);
		return;
	}
	if (secret.len < TOKEN_BYTES_ADVISED)
		load_warn(l,
			"the token in \"%s\" is short: %zu characters, where %d or more are hard to guess",
			load_show(&shown, str_from_z(path_z)), secret.len, TOKEN_BYTES_ADVISED);
	if (stat(path_z, &st) == 0 && (st.st_mode & S_IROTH) != 0 && !in_secret_volume(path_z))
		load_warn(l,
			"everybody on this machine can read \"%s\"; chmod 640 would keep it to its owner and "
			"group",
			load_show(&shown, str_from_z(path_z)));
}

/* False if there is no digest: a fault, or a file that may be absent and is. */
static bool read_secret(struct load *l, const struct json *v, bool may_be_absent, struct digest *ret)
{
	const char *path_z = secret_path(l, v), *fault = NULL;
	struct shown shown;
	struct str bytes;
	enum err e;

	if (path_z == NULL || l->without_secrets)
		return false;
	e = file_read(&bytes, path_z, SECRET_FILE_BYTES_MAX);
	if (e == ERR_ABSENT && may_be_absent)
		return false;
	if (e == ERR_RANGE) {
		load_error(l, PROBLEM_BAD_TOKEN, "\"%s\" is not a regular file of at most %d bytes",
			load_show(&shown, str_from_z(path_z)), SECRET_FILE_BYTES_MAX);
		return false;
	}
	if (e != ERR_OK) {
		load_error(l, PROBLEM_UNREADABLE_FILE, "\"%s\" cannot be read: %s",
			load_show(&shown, str_from_z(path_z)), err_text(e));
		return false;
	}
	judge_secret(l, path_z, config_token_text(bytes), &fault);
	if (fault == NULL)
		digest_sha256(ret, config_token_text(bytes));
	file_free(bytes);
	return fault == NULL;
}

static bool read_digest(struct load *l, const struct json *v, struct digest *ret)
{
	struct digest empty;
	struct str s;

	if (!load_text(l, v, &s))
		return false;
	if (!str_unhex(s, ret->bytes, sizeof(ret->bytes))) {
		load_error(l, PROBLEM_BAD_SYNTAX,
			"must be 64 hex digits, as \"postern token hash\" prints them");
		return false;
	}
	digest_sha256(&empty, STR(""));
	if (digest_equal(ret, &empty) != 0) {
		load_error(l, PROBLEM_BAD_TOKEN, "this is the digest of an empty token");
		return false;
	}
	return true;
}

/* ---- identities */

static bool is_taken(struct load *l, const struct digest *digest, uint16_t identity)
{
	for (size_t i = 0; i < l->n_tokens; i++) {
		const struct identity_token *t = &l->tokens[i];

		if (digest_equal(&t->digest, digest) == 0)
			continue;
		/* A service whose new and previous token are the same is between two steps of a rotation. */
		if (t->identity != identity)
			load_error(l, PROBLEM_BAD_TOKEN, "the identity \"%.*s\" has the same token",
				STR_ARG(l->identities[t->identity].name));
		return true;
	}
	return false;
}

static void compile_slot(struct load *l, enum setting file, enum setting sha256, enum token_slot slot)
{
	uint16_t identity = (uint16_t)(l->n_identities - 1);
	bool by_file = l->found[file].value != NULL, ok;
	struct digest digest;
	size_t mark;

	if (!settings_enter(l, by_file ? file : sha256, &mark))
		return;
	if (by_file && l->found[sha256].value != NULL)
		load_error_name(l, PROBLEM_CONFLICT,
			"the same token is given as a file and as a digest: leave one out");
	if (by_file)
		ok = read_secret(l, l->found[file].value, slot == TOKEN_SLOT_PREVIOUS, &digest);
	else
		ok = read_digest(l, l->found[sha256].value, &digest);
	if (ok && !is_taken(l, &digest, identity))
		l->tokens[l->n_tokens++] = (struct identity_token){digest, identity, (uint8_t)slot};
	load_leave(l, mark);
}

static bool keyed_by_identity(const struct limit *limit)
{
	for (size_t i = 0; i < limit->n_key; i++)
		if (limit->key[i].part == KEY_IDENTITY)
			return true;
	return limit->n_key == 0; /* its key is faulty and has been reported */
}

static void compile_own_limits(struct load *l, struct identity *identity)
{
	uint16_t *limits = load_limit_names(
		l, l->found[SETTING_IDENTITY_LIMITS].value, RULE_LIMITS_MAX, &identity->n_limits);

	identity->limits = limits;
	for (size_t i = 0; i < identity->n_limits; i++)
		if (!keyed_by_identity(&l->limits[limits[i]]))
			load_error(l, PROBLEM_CONFLICT,
				"the limit \"%.*s\" of an identity must have identity in its key",
				STR_ARG(l->limits[limits[i]].name));
}

static void compile_identity(struct load *l, const struct json *v, struct str name)
{
	struct identity *identity = &l->identities[l->n_identities++];
	const struct json *file;
	size_t mark;

	(void)load_name_ok(l, name, true);
	identity->name = arena_copy(l->arena, name);
	if (!settings_read(l, "identities.*", v))
		return;
	file = l->found[SETTING_IDENTITY_TOKEN_FILE].value;
	if (file == NULL &&
		l->found[SETTING_IDENTITY_TOKEN_SHA256].value == NULL)
		load_error_name(
			l, PROBLEM_MISSING_MEMBER, "an identity needs \"token_file\" or \"token_sha256\"");
	if (file != NULL && json_kind(file) == JSON_KIND_STRING)
		identity->token_file = arena_copy(l->arena, json_text(file));
	compile_slot(l, SETTING_IDENTITY_TOKEN_FILE, SETTING_IDENTITY_TOKEN_SHA256, TOKEN_SLOT_CURRENT);
	compile_slot(
		l, SETTING_IDENTITY_PREVIOUS_FILE, SETTING_IDENTITY_PREVIOUS_SHA256, TOKEN_SLOT_PREVIOUS);
	if (settings_enter(l, SETTING_IDENTITY_LIMITS, &mark)) {
		compile_own_limits(l, identity);
		load_leave(l, mark);
	}
}

void identities_compile(struct load *l, const struct json *v)
{
	struct identity_set *set = &l->config->rules.identities;
	struct json_walk w;

	l->identities = load_map(l, v, sizeof(*l->identities));
	if (l->identities == NULL)
		return;
	l->tokens = arena_array(l->arena, json_count(v), TOKEN_SLOT_COUNT * sizeof(*l->tokens));
	if (l->tokens == NULL)
		return;
	w = json_walk_start(v);
	while (json_walk_next(&w)) {
		size_t mark;

		if (str_equal(w.name, STR("$comment")))
			continue;
		mark = load_enter(l, w.name);
		compile_identity(l, w.value, w.name);
		load_leave(l, mark);
	}
	set->items = l->identities;
	set->n = l->n_identities;
	set->tokens = l->tokens;
	set->n_tokens = l->n_tokens;
}

/* ---- where tokens are looked for */

static bool read_header_name(struct load *l, struct str s, void *slot, const void *context)
{
	struct shown shown;

	(void)context;
	if (!str_is_token(s)) {
		load_error(l, PROBLEM_BAD_SYNTAX, "\"%s\" is no header name", load_show(&shown, s));
		return false;
	}
	*(struct str *)slot = arena_copy(l->arena, s);
	return true;
}

void token_headers_compile(struct load *l, const struct json *v)
{
	const struct load_list form = {.read = read_header_name,
		.item_size = sizeof(struct str),
		.max = TOKEN_HEADERS_MAX,
		.empty_ok = true};
	struct identity_set *set = &l->config->rules.identities;

	set->headers = load_list(l, v, &form, &set->n_headers);
	for (size_t i = 0; i < set->n_headers; i++) {
		size_t mark = load_enter_index(l, i);

		if (str_equal_nocase(set->headers[i], STR("X-Postern-Key")))
			load_error(l, PROBLEM_CONFLICT, "X-Postern-Key is for the key that callers show, and nothing "
							"behind the gate sees it");
		load_leave(l, mark);
		for (size_t k = 0; k < i; k++)
			if (str_equal_nocase(set->headers[i], set->headers[k]))
				load_error(l, PROBLEM_DUPLICATE_NAME, "\"%.*s\" comes twice",
					STR_ARG(set->headers[i]));
	}
}

/* ---- callers: ranges, and the key that they show */

void caller_key_compile(struct load *l, const struct json *v)
{
	struct config *c = l->config;

	c->has_caller_key =
		true; /* also where the file is left alone: an unread key, all zero, is nobody's digest */
	if (read_secret(l, v, false, &c->caller_key))
		(void)is_taken(l, &c->caller_key, UINT16_MAX);
}

void callers_compile(struct load *l, const struct json *v)
{
	struct config *c = l->config;

	load_ranges(l, v, false, &c->callers_unix, &c->callers);
	if (json_kind(v) == JSON_KIND_ARRAY && json_count(v) == 0)
		load_error(l, PROBLEM_OUT_OF_RANGE, "with no callers nobody could ask");
}
