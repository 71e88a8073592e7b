/* SPDX-License-Identifier: MIT */
/*
 * Scalars are compared where the table of settings says that they are kept, so a new row is told of without a line here. What
 * cannot change is told by its path: everything under it was given to sockets, threads and tables when they were made.
 * It is kept and not only left unread, so that the configuration in force always is what runs, and the next reload
 * compares with that.
 */
#include "config/change.h"

#include "base/text.h"
#include "core/same.h"

#include <stdint.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NAMES_SHOWN 4

static const struct scalar {
	const char *path_z;
	size_t offset, size;
} scalars[] = {
#define SETTING(id, path, kind, range, fallback, help, field) \
	{path, offsetof(struct config, field), sizeof(((struct config *)0)->field)},
#include "settings.def"
};

/* Paths, or with a point at the end what paths begin with. */
static const char *const fixed[] = {"workers", "store.", "http.", "grpc."};

static bool is_fixed(const char *path_z)
{
	struct str path = str_from_z(path_z);

	for (size_t i = 0; i < COUNT(fixed); i++) {
		struct str f = str_from_z(fixed[i]);

		if (f.ptr[f.len - 1] == '.' ? str_starts_with(path, f) : str_equal(path, f))
			return true;
	}
	return false;
}

/* These are members of the rule about clients, which is compared as a whole. */
static bool is_about_clients(const struct scalar *s)
{
	size_t begin = offsetof(struct config, rules.client);

	return s->offset >= begin && s->offset < begin + sizeof(struct client_rule);
}

static void list_add(struct text *t, const char *name_z)
{
	text_z(t, t->len > 0 ? ", " : "");
	text_z(t, name_z);
}

static void text_end(struct text *t)
{
	t->ptr[t->len] = '\0';
}

static void text_begin(struct text *t, char buffer[CHANGE_TEXT_BYTES])
{
	text_init(t, buffer, CHANGE_TEXT_BYTES - 1);
}

/* ---------------------------------------------------------------------------------------------------- settings */

static bool same_callers(const struct config *a, const struct config *b)
{
	return same_ranges(&a->callers, &b->callers) && a->callers_unix == b->callers_unix;
}

static bool same_caller_key(const struct config *a, const struct config *b)
{
	return a->has_caller_key == b->has_caller_key && digest_equal(&a->caller_key, &b->caller_key) == 1;
}

static bool same_clients(const struct config *a, const struct config *b)
{
	return same_client(&a->rules.client, &b->rules.client);
}

static bool same_own_networks(const struct config *a, const struct config *b)
{
	return same_ranges(&a->rules.own_networks, &b->rules.own_networks);
}

static bool same_token_headers(const struct config *a, const struct config *b)
{
	const struct identity_set *x = &a->rules.identities, *y = &b->rules.identities;
	bool same = x->n_headers == y->n_headers;

	for (size_t i = 0; i < x->n_headers && same; i++)
		same = str_equal_nocase(x->headers[i], y->headers[i]);
	return same;
}

static bool same_request_id(const struct config *a, const struct config *b)
{
	return str_equal_nocase(a->request_id_header, b->request_id_header);
}

static const struct {
	const char *name_z;
	bool (*same)(const struct config *a, const struct config *b);
} parts[] = {
	{"client", same_clients},
	{"callers", same_callers},
	{"caller_key_file", same_caller_key},
	{"own_networks", same_own_networks},
	{"token_headers", same_token_headers},
	{"request_id_header", same_request_id},
};

static void settle_scalars(struct config *next, const struct config *running, struct text *settings, struct text *restart)
{
	for (size_t i = 0; i < COUNT(scalars); i++) {
		const struct scalar *s = &scalars[i];
		char *to = (char *)next + s->offset;
		const char *from = (const char *)running + s->offset;

		if (memcmp(to, from, s->size) == 0 || is_about_clients(s))
			continue;
		if (is_fixed(s->path_z)) {
			memcpy(to, from, s->size);
			list_add(restart, s->path_z);
		} else {
			list_add(settings, s->path_z);
		}
	}
}

static bool same_listen(const struct config_listen *a, const struct config_listen *b)
{
	const struct endpoint *x = &a->endpoint, *y = &b->endpoint;

	if (a->on != b->on || !a->on)
		return a->on == b->on;
	if (x->is_unix || y->is_unix)
		return x->is_unix == y->is_unix && strcmp(x->path_z, y->path_z) == 0 && x->mode == y->mode;
	return x->port == y->port && ip_equal(&x->ip, &y->ip);
}

static void settle_listeners(struct config *next, const struct config *running, struct text *restart)
{
	for (size_t i = 0; i < LISTEN_COUNT; i++) {
		if (same_listen(&next->listen[i], &running->listen[i]))
			continue;
		list_add(restart, "listen.");
		text_str(restart, listen_name_word((enum listen_name)i));
		next->listen[i] = running->listen[i];
	}
}

/* ---------------------------------------------------------------------------------------------------- lists by name */

struct names {
	struct text text;
	size_t n;
};

struct list {
	size_t (*count)(const struct ruleset *r);
	struct str (*name)(const struct ruleset *r, size_t i);
	size_t (*find)(const struct ruleset *r, struct str name);
	bool (*same)(const struct ruleset *a, size_t i, const struct ruleset *b, size_t k);
	bool is_ordered;
};

static void names_add(struct names *names, const char *what_z, struct str name)
{
	names->n++;
	if (names->n > NAMES_SHOWN)
		return;
	if (names->n == 1)
		text_z(&names->text, what_z);
	text_z(&names->text, names->n == 1 ? "" : ", ");
	text_str(&names->text, name);
}

static void names_write(struct text *t, const struct names *names)
{
	if (names->n == 0)
		return;
	text_z(t, t->len > 0 ? "; " : "");
	text_str(t, text_view(&names->text));
	if (names->n <= NAMES_SHOWN)
		return;
	text_z(t, " and ");
	text_u64(t, names->n - NAMES_SHOWN);
	text_z(t, " more");
}

static void describe(char ret[CHANGE_TEXT_BYTES], const struct list *l, const struct ruleset *to, const struct ruleset *from)
{
	char buffers[3][CHANGE_TEXT_BYTES];
	struct names changed = {.n = 0}, fresh = {.n = 0}, dropped = {.n = 0};
	size_t kept = 0, last = 0;
	bool moved = false;
	struct text t;

	text_begin(&t, ret);
	text_begin(&changed.text, buffers[0]);
	text_begin(&fresh.text, buffers[1]);
	text_begin(&dropped.text, buffers[2]);
	for (size_t i = 0; i < l->count(to); i++) {
		size_t was = l->find(from, l->name(to, i));

		if (was == SIZE_MAX) {
			names_add(&fresh, "new: ", l->name(to, i));
			continue;
		}
		if (l->same(to, i, from, was))
			kept++;
		else
			names_add(&changed, "changed: ", l->name(to, i));
		moved = moved || was < last;
		last = was;
	}
	for (size_t i = 0; i < l->count(from); i++) {
		if (l->find(to, l->name(from, i)) == SIZE_MAX)
			names_add(&dropped, "dropped: ", l->name(from, i));
	}
	text_u64(&t, kept);
	text_z(&t, " kept");
	if (moved && l->is_ordered)
		text_z(&t, ", in another order");
	names_write(&t, &changed);
	names_write(&t, &fresh);
	names_write(&t, &dropped);
	text_end(&t);
}

static size_t limit_count(const struct ruleset *r)
{
	return r->n_limits;
}

static struct str limit_name(const struct ruleset *r, size_t i)
{
	return r->limits[i].name;
}

static bool limit_same(const struct ruleset *a, size_t i, const struct ruleset *b, size_t k)
{
	return same_limit(&a->limits[i], &b->limits[k]);
}

static size_t rule_count(const struct ruleset *r)
{
	return r->n_rules;
}

static struct str rule_name(const struct ruleset *r, size_t i)
{
	return r->rules[i].name;
}

static size_t identity_count(const struct ruleset *r)
{
	return r->identities.n;
}

static struct str identity_name(const struct ruleset *r, size_t i)
{
	return r->identities.items[i].name;
}

static const struct list of_limits = {limit_count, limit_name, same_limit_find, limit_same, false};
static const struct list of_rules = {rule_count, rule_name, same_rule_find, same_rule, true};
static const struct list of_identities = {identity_count, identity_name, same_identity_find, same_identity, false};

/* ---------------------------------------------------------------------------------------------------- the whole */

void change_settle(struct change *ret, struct config *next, const struct config *running)
{
	struct text settings, restart;

	text_begin(&settings, ret->settings_z);
	text_begin(&restart, ret->restart_z);
	for (size_t i = 0; i < COUNT(parts); i++) {
		if (!parts[i].same(next, running))
			list_add(&settings, parts[i].name_z);
	}
	settle_listeners(next, running, &restart);
	settle_scalars(next, running, &settings, &restart);
	text_end(&settings);
	text_end(&restart);
	describe(ret->limits_z, &of_limits, &next->rules, &running->rules);
	describe(ret->rules_z, &of_rules, &next->rules, &running->rules);
	describe(ret->identities_z, &of_identities, &next->rules, &running->rules);
	next->serial = running->serial + 1;
}
