/* SPDX-License-Identifier: MIT */
/*
 * One of our own services that is refused is a fault report about the limits, or about the token that the service fails to
 * show; nobody reads it off a count of refusals. Rows are found on the refusals' path with a few compares, and what it
 * takes to guess whose they are is done by whoever asks. Where a row begins, headers that nobody looks at are searched
 * once for a token: a token in the wrong header is the commonest way not to be known.
 */
#include "watch/own.h"

#include "watch/part.h"

#define HINT_TRIES_MAX 4

static struct str agent_find(const struct request *req)
{
	for (size_t i = 0; i < req->n_headers; i++) {
		if (req->headers[i].name.len == 10 &&
			str_equal_nocase(req->headers[i].name, STR("User-Agent")))
			return req->headers[i].value;
	}
	return STR("");
}

static bool looks_ours(const struct watch *w, const struct request *req, const struct verdict *v)
{
	if (v->token.state != TOKEN_STATE_ABSENT)
		return true;
	if (!v->client.has_address || v->warnings & 1u << WARNING_FORWARDED_HEADER_IGNORED)
		return false;
	return range_set_find(&w->rules->own_networks, &v->client.address) != NULL &&
	       !agent_is_browser(agent_find(req));
}

/* ---- a token where nobody looks */

static bool contains(struct str s, const char *part_z)
{
	struct str part = str_from_z(part_z);

	for (size_t i = 0; i + part.len <= s.len; i++) {
		if (str_equal_nocase(str_make(s.ptr + i, part.len), part))
			return true;
	}
	return false;
}

static bool is_token_header(const struct identity_set *set, struct str name)
{
	for (size_t i = 0; i < set->n_headers; i++) {
		if (str_equal_nocase(set->headers[i], name))
			return true;
	}
	return false;
}

static void hint_find(const struct watch *w, const struct request *req, struct refusal *r)
{
	const struct identity_set *set = &w->rules->identities;
	unsigned tries = 0;

	for (size_t i = 0; i < req->n_headers && tries < HINT_TRIES_MAX; i++) {
		const struct header_line *h = &req->headers[i];
		struct str value = str_trim(h->value), token = value;
		struct token_result found;
		struct request shown = {.token = {.said = true}};
		size_t space = str_find_last(value, ' ');
		struct text t;

		if (space < value.len)
			token = str_from(value, space + 1);
		if (is_token_header(set, h->name) && space >= value.len)
			continue;
		if (!str_starts_with(token, STR(TOKEN_PREFIX)) && !contains(h->name, "token") &&
			!contains(h->name, "key") && !contains(h->name, "auth"))
			continue;
		tries++;
		shown.token.text = token;
		identity_find(set, &shown, &found);
		if (found.state != TOKEN_STATE_VALID && !str_starts_with(token, STR(TOKEN_PREFIX)))
			continue;
		text_init(&t, r->hint_z, sizeof(r->hint_z) - 1);
		text_visible(&t, h->name, sizeof(r->hint_z) - 8);
		r->has_identity = found.state == TOKEN_STATE_VALID;
		r->identity = found.index;
		return;
	}
}

/* ---- rows */

static bool is_row(const struct refusal *r, const struct verdict *v)
{
	return r->token == v->token.state && r->has_peer == v->client.has_peer &&
	       r->has_client == v->client.has_address &&
	       (!r->has_peer || ip_equal(&r->peer, &v->client.peer)) &&
	       (!r->has_client || ip_equal(&r->client, &v->client.address)) &&
	       (r->token != TOKEN_STATE_VALID || r->identity == v->token.index);
}

static void row_start(const struct watch *w, const struct request *req, const struct verdict *v, ns now,
	struct refusal *ret)
{
	struct text t;

	*ret = (struct refusal){.has_peer = v->client.has_peer,
		.has_client = v->client.has_address,
		.peer = v->client.peer,
		.client = v->client.address,
		.token = v->token.state,
		.identity = v->token.index,
		.has_identity = v->token.state == TOKEN_STATE_VALID,
		.first_ns = now};
	if (ret->has_peer) {
		(void)ip_print(&ret->peer, ret->remote_addr_z);
	} else {
		text_init(&t, ret->remote_addr_z, sizeof(ret->remote_addr_z) - 1);
		text_visible(&t, req->remote_addr, (sizeof(ret->remote_addr_z) - 4) / 4);
	}
	if (ret->token == TOKEN_STATE_ABSENT)
		hint_find(w, req, ret);
}

static struct refusal *row_find(struct part *p, const struct verdict *v, bool *ret_is_new)
{
	size_t oldest = 0;

	*ret_is_new = false;
	if (p->n_refusals > 0 && is_row(&p->refusals[p->last_refusal], v))
		return &p->refusals[p->last_refusal];
	for (size_t i = 0; i < p->n_refusals; i++) {
		if (p->refusals[i].last_ns < p->refusals[oldest].last_ns)
			oldest = i;
		if (!is_row(&p->refusals[i], v))
			continue;
		p->last_refusal = i;
		return &p->refusals[i];
	}
	*ret_is_new = true;
	p->last_refusal = p->n_refusals < OWN_REFUSALS_MAX ? p->n_refusals++ : oldest;
	return &p->refusals[p->last_refusal];
}

void own_refused(struct watch *w, struct part *p, const struct request *req, const struct verdict *v, ns now)
{
	struct refusal *r;
	bool is_new;

	if (!looks_ours(w, req, v))
		return;
	metric_add(p->own_refused, 1);
	if (!part_try(p))
		return;
	r = row_find(p, v, &is_new);
	if (is_new)
		row_start(w, req, v, now, r);
	r->count++;
	r->last_ns = now;
	r->reason = v->reason;
	r->rule = v->rule != NULL ? (uint16_t)(v->rule - w->rules->rules) : UINT16_MAX;
	part_leave(p);
}

uint64_t own_refused_total(struct watch *w)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < w->n_parts; i++)
		sum += metric_get(w->parts[i]->own_refused);
	return sum;
}
