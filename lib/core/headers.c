/* SPDX-License-Identifier: MIT */
/*
 * Clients obey these lines to the second, so every time is rounded up and no wait is ever 0: a client that comes back
 * exactly then must find that it passes. Names of limits are words of letters, digits, "-" and "_", so they stand in a
 * structured field's string without escapes.
 * Answers that no limit gave (401, 403, 503) carry no RateLimit lines: there is nothing to wait for, and whoever is
 * guessing tokens learns nothing. On the way to the upstream both lines are always there, because a line that is missing
 * would leave a client's own in its place.
 */
#include "core/headers.h"

#include "base/text.h"

#define UNAUTHORIZED 401u
/* What one policy needs besides its name: quotes, two numbers of 20 digits, separators. */
#define POLICY_TEXT_BYTES 64

static uint64_t seconds_up(ns t)
{
	return (t + NS_PER_S - 1) / NS_PER_S;
}

uint64_t headers_retry_after_s(const struct verdict *v)
{
	uint64_t s = v->has_wait ? seconds_up(v->wait_ns) : 0;

	return v->has_wait && s == 0 ? 1 : s;
}

uint64_t headers_retry_after_ms(const struct verdict *v)
{
	uint64_t ms = v->has_wait ? (v->wait_ns + NS_PER_MS - 1) / NS_PER_MS : 0;

	return v->has_wait && ms == 0 ? 1 : ms;
}

uint64_t headers_reset_s(const struct taking *t)
{
	return seconds_up(t->next_ns);
}

static bool is_shown(const struct verdict_limit *l)
{
	return !l->shadow && l->limit->headers;
}

/* a leaves a client less than b: it refuses, for longer; else it has less left, for longer. */
static bool is_tighter(const struct taking *a, const struct taking *b)
{
	if (a->refused != b->refused)
		return a->refused;
	if (a->refused)
		return a->wait_ns > b->wait_ns;
	if (a->remaining != b->remaining)
		return a->remaining < b->remaining;
	return a->next_ns > b->next_ns;
}

/* What the limits have to say: NULL if nobody may be shown any. */
static const struct verdict_limit *tightest_shown(const struct verdict *v, size_t *ret_text_bytes)
{
	const struct verdict_limit *best = NULL;
	size_t i, bytes = 0;

	for (i = 0; i < v->n_limits; i++) {
		const struct verdict_limit *l = &v->limits[i];

		if (!is_shown(l))
			continue;
		bytes += l->limit->name.len + POLICY_TEXT_BYTES;
		if (best == NULL || is_tighter(&l->taking, &best->taking))
			best = l;
	}
	*ret_text_bytes = bytes;
	return best;
}

/* One list member: "name";q=300;w=60 */
static void write_item(struct text *t, struct str name, const char *first_z, uint64_t first,
	const char *second_z, uint64_t second)
{
	if (t->len > 0)
		text_z(t, ", ");
	text_char(t, '"');
	text_str(t, name);
	text_char(t, '"');
	text_z(t, first_z);
	text_u64(t, first);
	text_z(t, second_z);
	text_u64(t, second);
}

static size_t put(struct header_line *out, struct str name, struct str value)
{
	out->name = name;
	out->value = value;
	return 1;
}

static struct str number(struct arena *a, uint64_t v)
{
	struct text t;

	text_init_arena(&t, a, 20);
	text_u64(&t, v);
	return text_view(&t);
}

static size_t put_ratelimit(
	const struct verdict *v, size_t text_bytes, struct arena *a, struct header_line *out)
{
	struct text policy, state;
	size_t i;

	text_init_arena(&policy, a, text_bytes);
	text_init_arena(&state, a, text_bytes);
	for (i = 0; i < v->n_limits; i++) {
		const struct verdict_limit *l = &v->limits[i];

		if (!is_shown(l))
			continue;
		write_item(&policy, l->limit->name, ";q=", l->limit->bucket.burst, ";w=", l->limit->window_s);
		write_item(&state, l->limit->name, ";r=", l->taking.remaining,
			";t=", headers_reset_s(&l->taking));
	}
	put(&out[0], STR("RateLimit-Policy"), text_view(&policy));
	put(&out[1], STR("RateLimit"), text_view(&state));
	return 2;
}

static size_t put_x_ratelimit(const struct verdict_limit *l, struct arena *a, struct header_line *out)
{
	put(&out[0], STR("X-RateLimit-Limit"), number(a, l->limit->bucket.burst));
	put(&out[1], STR("X-RateLimit-Remaining"), number(a, l->taking.remaining));
	put(&out[2], STR("X-RateLimit-Reset"), number(a, headers_reset_s(&l->taking)));
	return 3;
}

/* Only what the limits decided is theirs to explain. */
static bool speaks_of_limits(const struct verdict *v)
{
	return v->decision == DECISION_ALLOW || v->has_wait;
}

size_t headers_for_client(const struct ruleset *rules, const struct verdict *v, struct arena *a,
	struct header_line out[HEADERS_CLIENT_MAX])
{
	const struct header_options *options = &rules->headers;
	const struct verdict_limit *tightest = NULL;
	size_t n = 0, text_bytes;

	if (options->retry_after && v->has_wait)
		n += put(&out[n], STR("Retry-After"), number(a, headers_retry_after_s(v)));
	if ((options->ratelimit || options->x_ratelimit) && speaks_of_limits(v))
		tightest = tightest_shown(v, &text_bytes);
	if (tightest != NULL && options->ratelimit)
		n += put_ratelimit(v, text_bytes, a, &out[n]);
	if (tightest != NULL && options->x_ratelimit)
		n += put_x_ratelimit(tightest, a, &out[n]);
	if (reason_http(v->reason) == UNAUTHORIZED)
		n += put(&out[n], STR("WWW-Authenticate"), STR("Bearer"));
	return n;
}

static struct str address_text(const struct client *c, struct arena *a)
{
	char *out = arena_alloc(a, IP_TEXT_BYTES);

	return out != NULL ? str_make(out, ip_print(&c->address, out)) : (struct str){NULL, 0};
}

void headers_for_upstream(const struct verdict *v, struct arena *a, struct header_line out[HEADERS_UPSTREAM])
{
	bool believed = v->has_client && v->client.decided && v->client.has_address;

	put(&out[0], STR("X-Postern-Client"), believed ? address_text(&v->client, a) : STR(""));
	put(&out[1], STR("X-Postern-Identity"),
		v->token.identity != NULL ? v->token.identity->name : STR(""));
}

size_t headers_to_remove(
	const struct ruleset *rules, const struct verdict *v, struct str out[TOKEN_HEADERS_MAX])
{
	const struct identity_set *set = &rules->identities;
	size_t i, n = 0;

	for (i = 0; i < set->n_headers; i++) {
		if (v->token.from_authorization || !str_equal_nocase(set->headers[i], STR("Authorization")))
			out[n++] = set->headers[i];
	}
	return n;
}
