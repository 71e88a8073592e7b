/* SPDX-License-Identifier: MIT */
/*
 * The planted entry is what makes this conclusive across hops that translate addresses: whoever appends to X-Forwarded-For writes
 * behind it, so the entry right of it is how the first hop saw us. Where it is gone, somebody has replaced the header, and
 * the leftmost entry is the first that one of our hops has written.
 */
#include "sighting.h"

#include "base/endpoint.h"

#define ENTRIES_MAX 64

static struct str text_member(const struct json *object, const char *name_z)
{
	const struct json *v = json_kind(object) == JSON_KIND_OBJECT ? json_member(object, name_z) : NULL;

	return v != NULL && json_kind(v) == JSON_KIND_STRING ? json_text(v) : STR("");
}

static const struct json *list_member(const struct json *object, const char *name_z)
{
	const struct json *v = json_member(object, name_z);

	return v != NULL && json_kind(v) == JSON_KIND_ARRAY ? v : NULL;
}

bool sighting_read(struct sighting *ret, const struct json *v)
{
	const struct json *client;

	if (json_kind(v) != JSON_KIND_OBJECT)
		return false;
	client = json_member(v, "client");
	*ret = (struct sighting){.door = text_member(v, "door"),
		.reason = text_member(v, "reason"),
		.remote_addr = text_member(v, "remote_addr"),
		.cure = text_member(v, "cure"),
		.headers = list_member(v, "headers"),
		.has_client = client != NULL && json_kind(client) == JSON_KIND_OBJECT};
	if (!ret->has_client)
		return true;
	ret->client = text_member(client, "address");
	ret->client_reason = text_member(client, "reason");
	ret->key = text_member(client, "key");
	ret->strategy = text_member(client, "strategy");
	ret->decided = str_equal(text_member(client, "class"), STR("decided"));
	ret->steps = list_member(client, "steps");
	return true;
}

/* ---------------------------------------------------------------------------------------------------- the chain */

/* X-Forwarded-For over all lines, and remote_addr behind it: from the client's side to ours. */
struct chain {
	struct str entries[ENTRIES_MAX + 1];
	size_t n;
};

static void add_entries(struct chain *c, struct str value)
{
	for (bool more = true; more && c->n < ENTRIES_MAX;) {
		size_t comma = str_find(value, ',');

		c->entries[c->n++] = str_trim(str_head(value, comma));
		more = comma < value.len;
		value = str_from(value, comma + 1);
	}
}

static void chain_read(struct chain *c, const struct sighting *s)
{
	c->n = 0;
	for (size_t i = 0; s->headers != NULL && i < json_count(s->headers); i++) {
		const struct json *line = json_item(s->headers, i);

		if (json_kind(line) == JSON_KIND_ARRAY && json_count(line) == 2 &&
			json_kind(json_item(line, 0)) == JSON_KIND_STRING &&
			json_kind(json_item(line, 1)) == JSON_KIND_STRING &&
			str_equal_nocase(json_text(json_item(line, 0)), STR("X-Forwarded-For")))
			add_entries(c, json_text(json_item(line, 1)));
	}
	c->entries[c->n++] = s->remote_addr;
}

static bool is_address(struct str text, const struct ip *ip)
{
	struct ip found;

	return ip_parse_with_port(&found, text, NULL) && ip_equal(&found, ip);
}

/* How the first of our hops saw us: false if nothing tells. */
static bool seen_as(const struct sighting *plain, const struct sighting *forged, const struct ip *planted, struct ip *ret)
{
	struct chain c;

	if (forged != NULL) {
		chain_read(&c, forged);
		for (size_t i = 0; i + 1 < c.n; i++)
			if (is_address(c.entries[i], planted))
				return ip_parse_with_port(ret, c.entries[i + 1], NULL);
	}
	chain_read(&c, plain);
	return c.n > 1 && ip_parse_with_port(ret, c.entries[0], NULL);
}

/* ---------------------------------------------------------------------------------------------------- judging */

static bool is_loopback(const struct ip *ip)
{
	const struct endpoint e = {.ip = *ip};

	return endpoint_is_local(&e);
}

enum sighting_verdict sighting_judge(const struct sighting *plain, const struct sighting *forged,
	const struct ip *planted, const struct sighting_place *place)
{
	struct ip chosen, seen;

	if (!plain->decided || !ip_parse(&chosen, plain->client))
		return SIGHTING_UNDECIDED;
	if (place->has_local && ip_equal(&chosen, &place->local))
		return SIGHTING_APART;
	/* Inside loopback nothing translates addresses: another one than ours is a hop's. */
	if (place->is_loopback && is_loopback(&chosen))
		return SIGHTING_SHARED;
	if (seen_as(plain, forged, planted, &seen))
		return ip_equal(&chosen, &seen) ? SIGHTING_APART : SIGHTING_SHARED;
	return ip_is_local(&chosen) ? SIGHTING_SHARED : SIGHTING_PUBLIC;
}

enum forgery sighting_forgery(const struct sighting *plain, const struct sighting *forged, const struct ip *planted)
{
	if (is_address(forged->client, planted))
		return FORGERY_CHOOSES;
	return str_equal(plain->key, forged->key) ? FORGERY_IGNORED : FORGERY_LEAVES;
}
