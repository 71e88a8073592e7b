/* SPDX-License-Identifier: MIT */
/*
 * Reads the members of a /check question by a table. An unknown one is refused with the nearest known name: a misspelt
 * "cost" that is silently ignored is a limit that silently does not hold. Everything is copied into the arena, so nothing
 * of the tree outlives the reading. Characters U+0080..U+00FF stand for the bytes a caller could not put into JSON and are
 * folded back to one byte each.
 */
#include "adapter/check_read.h"

#include "base/text.h"

#include <stddef.h>

#define HEADER_LINES_MAX 256

struct reader {
	struct arena *arena;
	struct str body;
	struct request *req;
	struct header_line *lines; /* HEADER_LINES_MAX of them, taken when the first one comes */
	size_t n_lines;
	struct problem *problem;
	char pointer_z[JSON_POINTER_BYTES];
};

/* The problem's place is where the reader's pointer leads; a name too long for a pointer is told by what it stands in.
 * Returns false, for "return refuse(...)". */
static bool refuse_at(struct reader *r, bool at_name)
{
	struct problem *p = r->problem;

	memcpy(p->pointer_z, r->pointer_z, sizeof(p->pointer_z));
	while (!json_locate(r->body, p->pointer_z, at_name, &p->line, &p->column)) {
		json_pointer_pop(p->pointer_z);
		at_name = false;
	}
	return false;
}

#define REFUSE(r, code, ...) (problem_set((r)->problem, code, __VA_ARGS__), refuse_at(r, false))

static bool refuse_type(struct reader *r, const struct json *v, const char *wanted)
{
	return REFUSE(r, PROBLEM_WRONG_TYPE, "%s is wanted here, not %s", wanted, json_kind_name(json_kind(v)));
}

static bool refuse_lines(struct reader *r)
{
	return REFUSE(r, PROBLEM_HEADERS_TOO_LARGE, "at most %d header lines, and all of them must fit the workspace",
		HEADER_LINES_MAX);
}

/* Folds U+0080..U+00FF to one byte each and copies into the arena. Characters above, which a caller has no reason to send,
 * stay the bytes that they came as: whatever reads them treats all bytes from 0x80 up alike, and any value is to be judged. */
static bool fold(struct reader *r, struct str utf8, struct str *ret)
{
	char *out = arena_alloc(r->arena, utf8.len);
	size_t n = 0;

	if (out == NULL)
		return refuse_lines(r);
	for (size_t i = 0; i < utf8.len; i++) {
		unsigned char c = (unsigned char)utf8.ptr[i];

		/* The two-byte forms of U+0080..U+00FF, and nothing else, begin with C2 or C3. */
		if (c == 0xc2 || c == 0xc3)
			c = (unsigned char)((c & 3u) << 6 | ((unsigned char)utf8.ptr[++i] & 0x3fu));
		out[n++] = (char)c;
	}
	*ret = str_make(out, n);
	return true;
}

static bool read_text(struct reader *r, const struct json *v, struct str *ret)
{
	if (json_kind(v) != JSON_KIND_STRING)
		return refuse_type(r, v, "a string");
	return fold(r, json_text(v), ret);
}

static bool read_remote_addr(struct reader *r, const struct json *v)
{
	return read_text(r, v, &r->req->remote_addr);
}

static bool read_fact(struct reader *r, const struct json *v, struct fact *ret)
{
	ret->said = true;
	return read_text(r, v, &ret->text);
}

static bool read_token(struct reader *r, const struct json *v)
{
	return read_fact(r, v, &r->req->token);
}

static bool read_method(struct reader *r, const struct json *v)
{
	return read_fact(r, v, &r->req->method);
}

static bool read_host(struct reader *r, const struct json *v)
{
	return read_fact(r, v, &r->req->host);
}

static bool read_path(struct reader *r, const struct json *v)
{
	return read_fact(r, v, &r->req->path);
}

/* What is echoed must come back as it was said, so it may hold only characters that fold to one byte. */
static bool read_id(struct reader *r, const struct json *v)
{
	if (!read_fact(r, v, &r->req->id))
		return false;
	for (size_t i = 0; i < json_text(v).len; i++) {
		if ((unsigned char)json_text(v).ptr[i] > 0xc3)
			return REFUSE(r, PROBLEM_ILLEGAL_CHARACTER, "an id holds no character above U+00FF");
	}
	if (r->req->id.text.len <= CHECK_ID_BYTES_MAX)
		return true;
	return REFUSE(r, PROBLEM_OUT_OF_RANGE, "an id has at most %d bytes", CHECK_ID_BYTES_MAX);
}

static bool read_cost(struct reader *r, const struct json *v)
{
	if (json_kind(v) != JSON_KIND_INTEGER)
		return refuse_type(r, v, "a whole number, written as one,");
	if (json_integer_of(v) < 1 || json_integer_of(v) > (int64_t)REQUEST_COST_MAX)
		return REFUSE(r, PROBLEM_OUT_OF_RANGE, "a cost is 1 to %u", REQUEST_COST_MAX);
	r->req->cost = (uint32_t)json_integer_of(v);
	return true;
}

static bool read_peek(struct reader *r, const struct json *v)
{
	if (json_kind(v) != JSON_KIND_BOOL)
		return refuse_type(r, v, "true or false");
	r->req->peek = json_bool(v);
	return true;
}

/* The pointer leads to the value here. */
static bool add_line(struct reader *r, struct str name, const struct json *value)
{
	struct header_line *line;

	if (r->lines == NULL)
		r->lines = arena_array(r->arena, HEADER_LINES_MAX, sizeof(*r->lines));
	if (r->lines == NULL || r->n_lines == HEADER_LINES_MAX)
		return refuse_lines(r);
	line = &r->lines[r->n_lines++];
	line->name = name;
	return read_text(r, value, &line->value);
}

static bool read_header_values(struct reader *r, struct str name, const struct json *value)
{
	if (json_kind(value) != JSON_KIND_ARRAY)
		return add_line(r, name, value);
	for (size_t i = 0; i < json_count(value); i++) {
		json_pointer_push_index(r->pointer_z, i);
		if (!add_line(r, name, json_item(value, i)))
			return false;
		json_pointer_pop(r->pointer_z);
	}
	return true;
}

static bool read_header_object(struct reader *r, const struct json *v)
{
	struct json_walk w = json_walk_start(v);
	struct str name;

	while (json_walk_next(&w)) {
		json_pointer_push(r->pointer_z, w.name);
		if (!fold(r, w.name, &name) || !read_header_values(r, name, w.value))
			return false;
		json_pointer_pop(r->pointer_z);
	}
	return true;
}

static bool read_header_pair(struct reader *r, const struct json *pair)
{
	struct str name;

	if (json_kind(pair) != JSON_KIND_ARRAY)
		return refuse_type(r, pair, "a pair [name, value]");
	if (json_count(pair) != 2)
		return REFUSE(r, PROBLEM_WRONG_TYPE, "a pair [name, value] is wanted here, not a list of %zu",
			json_count(pair));
	json_pointer_push_index(r->pointer_z, 0);
	if (!read_text(r, json_item(pair, 0), &name))
		return false;
	json_pointer_pop(r->pointer_z);
	json_pointer_push_index(r->pointer_z, 1);
	if (!add_line(r, name, json_item(pair, 1)))
		return false;
	json_pointer_pop(r->pointer_z);
	return true;
}

static bool read_headers(struct reader *r, const struct json *v)
{
	if (json_kind(v) == JSON_KIND_OBJECT)
		return read_header_object(r, v);
	if (json_kind(v) != JSON_KIND_ARRAY)
		return refuse_type(r, v, "an object, or a list of [name, value] pairs,");
	for (size_t i = 0; i < json_count(v); i++) {
		json_pointer_push_index(r->pointer_z, i);
		if (!read_header_pair(r, json_item(v, i)))
			return false;
		json_pointer_pop(r->pointer_z);
	}
	return true;
}

static const struct {
	struct str name;
	bool (*read)(struct reader *r, const struct json *v);
} members[CHECK_MEMBER_COUNT] = {
	[CHECK_REMOTE_ADDR] = {{"remote_addr", 11}, read_remote_addr},
	[CHECK_HEADERS] = {{"headers", 7}, read_headers},
	[CHECK_TOKEN] = {{"token", 5}, read_token},
	[CHECK_METHOD] = {{"method", 6}, read_method},
	[CHECK_HOST] = {{"host", 4}, read_host},
	[CHECK_PATH] = {{"path", 4}, read_path},
	[CHECK_COST] = {{"cost", 4}, read_cost},
	[CHECK_PEEK] = {{"peek", 4}, read_peek},
	[CHECK_ID] = {{"id", 2}, read_id},
};

enum check_member check_member_find(struct str name)
{
	size_t i = 0;

	while (i < CHECK_MEMBER_COUNT && !str_equal(name, members[i].name))
		i++;
	return (enum check_member)i;
}

static bool refuse_member(struct reader *r, struct str name)
{
	struct str names[CHECK_MEMBER_COUNT];
	size_t nearest;

	for (size_t i = 0; i < CHECK_MEMBER_COUNT; i++)
		names[i] = members[i].name;
	nearest = str_nearest(name, names, CHECK_MEMBER_COUNT);
	if (nearest < CHECK_MEMBER_COUNT)
		problem_set(r->problem, PROBLEM_UNKNOWN_MEMBER, "unknown member; did you mean \"%.*s\"?",
			STR_ARG(names[nearest]));
	else
		problem_set(r->problem, PROBLEM_UNKNOWN_MEMBER, "unknown member");
	return refuse_at(r, true);
}

static bool read_member(struct reader *r, struct str name, const struct json *value)
{
	enum check_member member = check_member_find(name);

	return member < CHECK_MEMBER_COUNT ? members[member].read(r, value) : refuse_member(r, name);
}

static bool read_root(struct reader *r, const struct json *root)
{
	struct json_walk w;

	if (json_kind(root) != JSON_KIND_OBJECT)
		return refuse_type(r, root, "an object");
	w = json_walk_start(root);
	while (json_walk_next(&w)) {
		json_pointer_push(r->pointer_z, w.name);
		if (!read_member(r, w.name, w.value))
			return false;
		json_pointer_pop(r->pointer_z);
	}
	r->req->headers = r->lines;
	r->req->n_headers = r->n_lines;
	if (r->req->remote_addr.ptr != NULL)
		return true;
	return REFUSE(r, PROBLEM_MISSING_MEMBER, "remote_addr is required: the client's end of your connection");
}

bool check_read(const struct json *root, struct str body, struct arena *a, struct request *ret,
	struct problem *ret_problem)
{
	struct reader r = {.arena = a, .body = body, .req = ret, .problem = ret_problem};

	return read_root(&r, root);
}
