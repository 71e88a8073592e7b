/* SPDX-License-Identifier: MIT */
/*
 * GET and DELETE /keys/LIMIT/CLIENT: what is in a bucket, and forgiving what it owes. The bucket is named as a request would name
 * it: CLIENT as the lists show it ("4:203.0.113.7", "6:2001:db8:1:2::/64", "u:4:172.18.0.5", "none") or as a bare address,
 * and where the limit's key has other parts, these as a query (identity, host, path, method, header:NAME). A request is
 * made of that and goes through the code that makes a decision's keys, so no bucket can be missed by a letter. A part
 * that is not said is replaced by the client, as it would be in a decision.
 * "*" for the limit means each one whose key can be told from what was said.
 */
#include "server/admin.h"

#include "server/write.h"

#include "base/log.h"
#include "core/headers.h"

#include <stdio.h>

#define PREFIX "/keys/"
#define HEADERS_MAX 8
#define SHOWN_BYTES 64

/* What was asked. */
struct key_ask {
	struct str limit, client_text; /* decoded */
	bool has_client;
	struct client client;
	struct token_result token;
	struct request req;
	struct header_line headers[HEADERS_MAX];
};

/* One bucket of the answer. */
struct key_row {
	const struct limit *limit;
	struct taking taking;
	bool forgiven;
};

struct key_form {
	const struct ruleset *rules;
	const struct key_ask *ask;
	struct key_row *rows; /* one for each limit that there is */
	size_t n_rows;
	bool forgives;
};

/* ---------------------------------------------------------------------------------------------------- asking */

static bool fault(struct exchange *x, enum problem_code code, const char *what_z, struct str s)
{
	char shown[6 * SHOWN_BYTES];
	struct text t;

	text_init(&t, shown, sizeof(shown) - 1);
	text_visible(&t, s, SHOWN_BYTES);
	shown[t.len] = '\0';
	problem_set(&x->problem, code, "%s%s", what_z, shown);
	return false;
}

/* Percent signs decoded; "+" is a plus. */
static bool decode(struct exchange *x, struct str s, struct str *ret)
{
	char *out = arena_alloc(&x->arena, s.len);
	size_t n = 0;

	if (out == NULL)
		return fault(x, PROBLEM_CANNOT_DECIDE, "no memory for the question", STR(""));
	for (size_t i = 0; i < s.len; i++) {
		uint8_t byte = (uint8_t)s.ptr[i];

		if (byte == '%') {
			if (!str_unhex(str_make(s.ptr + i + 1, s.len - i < 3 ? 0 : 2), &byte, 1))
				return fault(x, PROBLEM_OUT_OF_RANGE, "behind a % stand two hex digits: ", s);
			i += 2;
		}
		out[n++] = (char)byte;
	}
	*ret = str_make(out, n);
	return true;
}

static bool cut_prefix(struct str *s, struct str prefix)
{
	if (!str_starts_with(*s, prefix))
		return false;
	*s = str_from(*s, prefix.len);
	return true;
}

static struct str key_text(const struct ruleset *rules, const struct client *c, char buffer[CLIENT_KEY_TEXT_BYTES])
{
	uint8_t key[CLIENT_KEY_BYTES];

	return str_make(buffer, client_key_text(key, client_key(&rules->client, c, key), buffer));
}

/* A key as the lists write it, or an address. */
static bool read_client(struct exchange *x, const struct ruleset *rules, struct str s, struct client *ret)
{
	char buffer[CLIENT_KEY_TEXT_BYTES];
	size_t slash = str_find(s, '/');
	struct str address = str_head(s, slash), canonical;

	*ret = (struct client){.decided = false};
	if (str_equal(s, STR("none")))
		return true;
	ret->decided = !cut_prefix(&address, STR("u:"));
	if (!cut_prefix(&address, STR("4:")))
		(void)cut_prefix(&address, STR("6:"));
	ret->has_address = ip_parse(&ret->address, address);
	if (!ret->has_address)
		return fault(x, PROBLEM_OUT_OF_RANGE, "a client is an address, or a key as /top shows it, not ", s);
	canonical = key_text(rules, ret, buffer);
	if (slash < s.len && !str_equal(str_from(s, slash), str_from(canonical, str_find(canonical, '/'))))
		return fault(x, PROBLEM_OUT_OF_RANGE, "the key of that client is ", canonical);
	return true;
}

static bool read_identity(struct exchange *x, const struct ruleset *rules, struct str name, struct token_result *ret)
{
	for (size_t i = 0; i < rules->identities.n; i++) {
		if (!str_equal(rules->identities.items[i].name, name))
			continue;
		*ret = (struct token_result){.state = TOKEN_STATE_VALID,
			.identity = &rules->identities.items[i],
			.index = (uint16_t)i};
		return true;
	}
	return fault(x, PROBLEM_NOT_FOUND, "there is no identity ", name);
}

static bool read_part(struct exchange *x, const struct ruleset *rules, struct str name, struct str value, struct key_ask *ask)
{
	const struct fact fact = {value, true};

	if (str_equal(name, STR("identity")))
		return read_identity(x, rules, value, &ask->token);
	if (str_equal(name, STR("host")))
		ask->req.host = fact;
	else if (str_equal(name, STR("path")))
		ask->req.path = fact;
	else if (str_equal(name, STR("method")))
		ask->req.method = fact;
	else if (cut_prefix(&name, STR("header:")) && str_is_token(name) && ask->req.n_headers < HEADERS_MAX)
		ask->headers[ask->req.n_headers++] = (struct header_line){name, value};
	else
		return fault(x, PROBLEM_UNKNOWN_MEMBER,
			"parts of a key are identity, host, path, method and header:NAME, not ", name);
	return true;
}

static bool read_query(struct exchange *x, const struct ruleset *rules, struct str query, struct key_ask *ask)
{
	while (query.len > 0) {
		struct str pair = str_head(query, str_find(query, '&')), name, value;
		size_t equals = str_find(pair, '=');

		query = str_from(query, pair.len + 1);
		if (!decode(x, str_head(pair, equals), &name) || !decode(x, str_from(pair, equals + 1), &value) ||
			!read_part(x, rules, name, value, ask))
			return false;
	}
	return true;
}

/* /keys/LIMIT[/CLIENT][?NAME=VALUE&...]. The client is the rest of the path: a prefix length in it has a slash. */
static bool read_ask(struct exchange *x, const struct ruleset *rules, struct key_ask *ret)
{
	struct str target = x->question.target, path = str_from(http_target_path(target), sizeof(PREFIX) - 1);
	size_t slash = str_find(path, '/');

	*ret = (struct key_ask){.token = {.state = TOKEN_STATE_ABSENT}};
	ret->req.headers = ret->headers;
	ret->has_client = slash + 1 < path.len;
	if (!decode(x, str_head(path, slash), &ret->limit) ||
		!decode(x, str_from(path, slash + 1), &ret->client_text) ||
		!read_query(x, rules, str_from(target, http_target_path(target).len + 1), ret))
		return false;
	return !ret->has_client || read_client(x, rules, ret->client_text, &ret->client);
}

/* ---------------------------------------------------------------------------------------------------- finding */

static bool has_client_part(const struct limit *limit)
{
	for (size_t i = 0; i < limit->n_key; i++)
		if (limit->key[i].part == KEY_CLIENT || limit->key[i].part == KEY_NETWORK)
			return true;
	return false;
}

/* Whether what was said tells the key of this limit. */
static bool is_told(const struct key_ask *ask, const struct limit *limit, const struct policy_keys *keys)
{
	if (ask->has_client)
		return !str_equal(ask->limit, STR("*")) || (has_client_part(limit) && !keys->fallback);
	return !has_client_part(limit) && !keys->fallback;
}

static void log_forgiven(const struct exchange *x, const struct ruleset *rules, const struct key_ask *ask,
	const struct key_row *row)
{
	char buffer[CLIENT_KEY_TEXT_BYTES];
	const struct log_field fields[] = {
		LOG_STR("limit", row->limit->name),
		LOG_STR("client", ask->has_client ? key_text(rules, &ask->client, buffer) : STR("")),
		LOG_STR("identity", ask->token.identity != NULL ? ask->token.identity->name : STR("")),
		LOG_NUM("remaining", row->taking.remaining),
		LOG_STR("by", x->peer->address),
	};

	log_write(LOG_WARN, "key_forgiven", STR("a bucket was filled again, as asked of the admin listener"), fields,
		sizeof(fields) / sizeof(fields[0]));
}

/* False, and the problem set, where there is no room for the keys. */
static bool read_row(struct admin *a, struct exchange *x, const struct key_ask *ask, const struct limit *limit,
	struct key_form *form)
{
	const struct ruleset *rules = form->rules;
	struct key_row *row = &form->rows[form->n_rows];
	size_t mark = x->arena.used;
	struct policy_view view;
	struct policy_keys keys;
	ns now = loop_now(a->loop);

	policy_view_make(&view, NULL, &ask->req, &ask->client, &ask->token, &x->arena);
	if (x->arena.overflow || !policy_keys_make(&keys, rules, limit, &view, &x->arena))
		return fault(x, PROBLEM_CANNOT_DECIDE, "no memory for the key", STR(""));
	if (is_told(ask, limit, &keys)) {
		*row = (struct key_row){.limit = limit};
		engine_bucket_read(a->engine, limit, &keys, now, &row->taking);
		if (form->forgives && engine_bucket_forgive(a->engine, &keys, now)) {
			row->forgiven = true;
			log_forgiven(x, rules, ask, row);
			engine_bucket_read(a->engine, limit, &keys, now, &row->taking);
		}
		form->n_rows++;
	}
	x->arena.used = mark; /* the next one's key may stand there */
	return true;
}

/* ---------------------------------------------------------------------------------------------------- answering */

static void write_rules(struct text *t, const struct ruleset *rules, const struct limit *limit)
{
	bool first = true;

	write_name(t, ", ", "rules");
	text_char(t, '[');
	for (size_t i = 0; i < rules->n_rules; i++)
		for (size_t k = 0; k < rules->rules[i].n_limits; k++) {
			if (&rules->limits[rules->rules[i].limits[k]] != limit)
				continue;
			text_z(t, first ? "" : ", ");
			text_json(t, rules->rules[i].name);
			first = false;
		}
	text_char(t, ']');
}

/* Whether the request that was made up says this part of a key. */
static bool part_is_said(const struct key_ask *ask, const struct limit_key_part *part)
{
	switch (part->part) {
	case KEY_IDENTITY: return ask->token.identity != NULL;
	case KEY_HOST: return ask->req.host.said;
	case KEY_PATH: return ask->req.path.said;
	case KEY_METHOD: return ask->req.method.said;
	case KEY_HEADER:
		for (size_t i = 0; i < ask->req.n_headers; i++)
			if (str_equal_nocase(ask->headers[i].name, part->header))
				return true;
		return false;
	default: return true;
	}
}

/* Which parts the client stands in for, as it does for a request that does not say them either. */
static void write_replaced(struct text *t, const struct key_ask *ask, const struct limit *limit)
{
	static const char *const words[KEY_PART_COUNT] = {[KEY_IDENTITY] = "identity",
		[KEY_HOST] = "host",
		[KEY_PATH] = "path",
		[KEY_METHOD] = "method",
		[KEY_HEADER] = "header"};
	bool first = true;

	for (size_t i = 0; i < limit->n_key; i++) {
		if (part_is_said(ask, &limit->key[i]))
			continue;
		text_z(t, first ? ", \"replaced_by_client\": [\"" : ", \"");
		text_z(t, words[limit->key[i].part]);
		text_char(t, '"');
		first = false;
	}
	text_z(t, first ? "" : "]");
}

static void write_row(struct text *t, const struct key_form *f, const struct key_row *r)
{
	write_word(t, "{", "name", r->limit->name);
	write_number(t, ", ", "quota", r->limit->bucket.burst);
	write_number(t, ", ", "window", r->limit->window_s);
	write_number(t, ", ", "remaining", r->taking.remaining);
	write_number(t, ", ", "reset", headers_reset_s(&r->taking));
	if (r->taking.overflow)
		write_bool(t, ", ", "overflow", true);
	if (f->forgives)
		write_bool(t, ", ", "forgiven", r->forgiven);
	write_replaced(t, f->ask, r->limit);
	write_rules(t, f->rules, r->limit);
	text_char(t, '}');
}

static void write_keys(struct text *t, const void *what)
{
	const struct key_form *f = what;
	char buffer[CLIENT_KEY_TEXT_BYTES];

	write_name(t, "{", "key");
	if (f->ask->has_client)
		text_json(t, key_text(f->rules, &f->ask->client, buffer));
	else
		text_z(t, "null");
	write_name(t, ", ", "limits");
	text_char(t, '[');
	for (size_t i = 0; i < f->n_rows; i++) {
		text_z(t, i == 0 ? "" : ", ");
		write_row(t, f, &f->rows[i]);
	}
	text_z(t, "]}\n");
}

static const struct limit *limit_find(struct exchange *x, const struct ruleset *rules, struct str name)
{
	for (size_t i = 0; i < rules->n_limits; i++)
		if (str_equal(rules->limits[i].name, name))
			return &rules->limits[i];
	(void)fault(x, PROBLEM_NOT_FOUND, "there is no limit ", name);
	return NULL;
}

static bool read_rows(struct admin *a, struct exchange *x, const struct key_ask *ask, struct key_form *form)
{
	const struct ruleset *rules = form->rules;
	const struct limit *only;

	if (str_equal(ask->limit, STR("*"))) {
		for (size_t i = 0; i < rules->n_limits; i++)
			if (!read_row(a, x, ask, &rules->limits[i], form))
				return false;
		return true;
	}
	only = limit_find(x, rules, ask->limit);
	if (only == NULL || !read_row(a, x, ask, only, form))
		return false;
	if (form->n_rows > 0)
		return true;
	return fault(x, PROBLEM_MISSING_MEMBER,
		"the key of this limit has more parts: a client as in /keys/LIMIT/CLIENT, or identity, host, path, method "
		"or header:NAME as a query", STR(""));
}

void admin_keys(struct admin *a, struct exchange *x)
{
	struct key_form form = {.rules = engine_rules(a->engine),
		.forgives = str_equal(x->question.method, STR("DELETE"))};
	const struct admin_body body = {STR("application/json"), write_keys, &form};
	struct key_ask ask;

	form.rows = arena_array(&x->arena, form.rules->n_limits, sizeof(*form.rows));
	form.ask = &ask;
	if (form.rows == NULL)
		(void)fault(x, PROBLEM_CANNOT_DECIDE, "no memory for the answer", STR(""));
	if (form.rows == NULL || !read_ask(x, form.rules, &ask) || !read_rows(a, x, &ask, &form)) {
		arena_reset(&x->arena);
		admin_problem(a, x);
	} else {
		admin_answer(a, x, &body);
	}
}
