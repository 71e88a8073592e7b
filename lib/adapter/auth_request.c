/* SPDX-License-Identifier: MIT */
/*
 * The door of nginx auth_request and of what is built on it (ingress-nginx, OpenResty, NGINX Gateway Fabric). nginx passes
 * X-Forwarded-For through as the client sent it unless told otherwise, so its own word about the client's end is X-Real-IP,
 * which proxy_set_header writes over every copy of the client's; an equal last X-Forwarded-For entry is the same hop.
 * nginx lets 2xx, 401 and 403 through and turns everything else into 500, closing the client's connection; and it keeps the
 * connection to us only if the answer has no body. So a denial is 401 or 403 with nothing in it, and its true status and
 * reason stand in headers that the gateway's configuration can read.
 */
#include "adapter/adapter.h"

#include "adapter/header_door.h"
#include "base/text.h"

#define UNAUTHORIZED 401u
#define FORBIDDEN 403u
#define REASON_BYTES 96

/* "$scheme://$host$request_uri", or "$request_uri" alone. The authority ends at the first slash and at nothing else: nginx
 * takes a Host with "?" or "#" in it, and reading that as the end of the host would let a client move its path into a query. */
static bool read_url(struct request *req, struct str url)
{
	struct str rest = url;
	size_t authority;

	if (str_starts_with_nocase(url, STR("http://")))
		rest = str_from(url, 7);
	else if (str_starts_with_nocase(url, STR("https://")))
		rest = str_from(url, 8);
	else if (!str_starts_with(url, STR("/")))
		return false;
	authority = str_find(rest, '/');
	if (authority == rest.len)
		return false;
	if (authority > 0)
		req->host = (struct fact){str_head(rest, authority), true};
	req->path = (struct fact){str_from(rest, authority), true};
	return true;
}

bool auth_request_decode(
	const struct http_question *q, struct arena *a, struct request *ret, struct problem *ret_problem)
{
	struct header_door d;
	struct str url;

	if (!header_door_start(&d, q, DOOR_AUTH_REQUEST, a, ret, ret_problem))
		return false;
	header_door_take_remote_addr(&d, DOOR_HEADER_AUTH_REQUEST_ADDR);
	header_door_fact(&d, DOOR_HEADER_AUTH_REQUEST_METHOD, true, &ret->method);
	if (header_door_value(&d, DOOR_HEADER_AUTH_REQUEST_URL, true, &url) && !read_url(ret, url))
		header_door_refuse(&d, DOOR_HEADER_AUTH_REQUEST_URL);
	return true;
}

/* "rate_limited", "door_misconfigured: X-Real-IP" */
static struct str reason_text_of(const struct verdict *v, struct arena *a)
{
	struct text t;

	if (v->reason != REASON_DOOR_MISCONFIGURED)
		return reason_word(v->reason);
	text_init_arena(&t, a, REASON_BYTES);
	text_str(&t, reason_word(v->reason));
	text_z(&t, ": ");
	text_str(&t, v->fault_header);
	a->overflow |= t.overflow;
	return text_view(&t);
}

static struct str status_text(unsigned status, struct arena *a)
{
	struct text t;

	text_init_arena(&t, a, 10);
	text_u64(&t, status);
	return text_view(&t);
}

void auth_request_encode(const struct ruleset *rules, const struct request *req, const struct verdict *v,
	struct arena *a, struct http_answer *ret)
{
	(void)req;
	header_door_lines(rules, v, a, ret);
	if (v->decision == DECISION_ALLOW)
		return;
	http_answer_add(ret, STR("X-Postern-Status"), status_text(ret->status, a));
	http_answer_add(ret, STR("X-Postern-Reason"), reason_text_of(v, a));
	if (v->decision == DECISION_DENY && ret->status != UNAUTHORIZED)
		ret->status = FORBIDDEN;
}
