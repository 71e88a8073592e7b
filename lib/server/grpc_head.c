/* SPDX-License-Identifier: MIT */
/*
 * The header of a call. Few of its lines matter, and those are judged as they come, so that nothing of a header is kept; its
 * X-Forwarded-For is the caller's own and is never looked at. What nghttp2 refuses (a repeated :path, "connection", "te" with
 * anything but trailers) does not come here.
 */
#include "server/grpc_call.h"

#include "server/gate.h"
#include "server/grpc_session.h"

#define FIELD_OVERHEAD_BYTES 32 /* RFC 9113 6.5.2: how a header list is measured */
#define HEADER_BYTES_TIMES_MAX 16

enum { HTTP_OK = 200, HTTP_BAD_REQUEST = 400, HTTP_METHOD_NOT_ALLOWED = 405, HTTP_UNSUPPORTED_MEDIA_TYPE = 415 };

static void hint_old(struct grpc_service *s)
{
	if (log_limit_allows(&s->hints, loop_now(s->loop)))
		log_say(LOG_WARN, "grpc_old_protocol",
			"a caller asks envoy.service.auth.v2, which Envoy has dropped; only v3 is served: set "
			"\"transport_api_version: V3\" in the ext_authz filter");
}

static void take_path(struct call *c, struct str path)
{
	struct rpc_answer refusal;
	bool is_old;

	arena_reset(&c->service->question);
	c->method = adapter_rpc_find(path, &c->service->question, &refusal, &is_old);
	if (c->method == NULL)
		call_refuse(c, refusal.status, refusal.detail);
	if (is_old)
		hint_old(c->service);
}

static void take_type(struct call *c, struct str type)
{
	static const struct str grpc = STR("application/grpc");

	c->has_type = str_starts_with(type, grpc) &&
		(type.len == grpc.len || type.ptr[grpc.len] == '+' || type.ptr[grpc.len] == ';');
	c->type_has_suffix = str_equal(type, STR("application/grpc+proto"));
}

static void take_timeout(struct call *c, struct str text)
{
	ns timeout, now = loop_now(c->service->loop);

	c->timeout_fits = call_timeout_parse(text, &timeout);
	if (c->timeout_fits && timeout < c->due - now)
		c->due = now + timeout;
}

static void take_key(struct call *c, struct str value)
{
	struct header_line line = {STR("x-postern-key"), value};
	size_t n = 1;

	c->key_fits = gate_key_take(c->service->config, &line, &n);
	c->n_keys++;
}

static void take_line(struct call *c, struct str name, struct str value)
{
	switch (name.len) {
	case 5:
		if (str_equal(name, STR(":path")))
			take_path(c, value);
		break;
	case 7:
		if (str_equal(name, STR(":method")))
			c->is_post = str_equal(value, STR("POST"));
		break;
	case 12:
		if (str_equal(name, STR("content-type")))
			take_type(c, value);
		else if (str_equal(name, STR("grpc-timeout")))
			take_timeout(c, value);
		break;
	case 13:
		if (str_equal(name, STR("grpc-encoding")))
			c->encoding_fits = str_equal(value, STR("identity"));
		else if (str_equal(name, STR("x-postern-key")))
			take_key(c, value);
		break;
	default: break;
	}
}

bool call_header(struct call *c, struct str name, struct str value)
{
	size_t max = c->service->config->grpc_header_bytes;

	c->header_bytes += name.len + value.len + FIELD_OVERHEAD_BYTES;
	if (c->header_bytes <= max)
		take_line(c, name, value);
	return c->header_bytes <= HEADER_BYTES_TIMES_MAX * max;
}

static void refuse_http(struct call *c, unsigned http_status, enum rpc_status status, struct str detail)
{
	/* Not a call of gRPC at all outweighs which method it would have been. */
	c->has_ended = false;
	c->http_status = http_status;
	call_refuse(c, status, detail);
}

void call_begin(struct call *c, bool is_listed)
{
	const struct config *config = c->service->config;

	c->http_status = HTTP_OK;
	c->is_allowed = is_listed && (!config->has_caller_key || (c->n_keys == 1 && c->key_fits));
	if (c->header_bytes > config->grpc_header_bytes) {
		c->has_ended = false;
		call_refuse(c, RPC_RESOURCE_EXHAUSTED, STR("the header is larger than grpc.header_bytes"));
	} else if (!c->has_type) {
		refuse_http(c, HTTP_UNSUPPORTED_MEDIA_TYPE, RPC_INVALID_ARGUMENT,
			STR("the content type must be application/grpc"));
	} else if (!c->is_post) {
		refuse_http(c, HTTP_METHOD_NOT_ALLOWED, RPC_INTERNAL, STR("the method must be POST"));
	} else if (!c->is_allowed && (c->method == NULL || !c->method->ungated)) {
		/* A decision is a denial, made at the end; everything else fails. */
		c->is_deaf = true;
		if (c->method == NULL || c->method->shape != RPC_DECISION) {
			c->has_ended = false;
			call_refuse(c, RPC_PERMISSION_DENIED, STR("the caller is not listed or showed no valid key"));
		}
	} else if (!c->timeout_fits) {
		refuse_http(c, HTTP_BAD_REQUEST, RPC_INTERNAL, STR("grpc-timeout is malformed"));
	} else if (!c->encoding_fits) {
		c->tells_encodings = true;
		call_refuse(c, RPC_UNIMPLEMENTED, STR("only identity is served as grpc-encoding"));
	}
}

/* ---------------------------------------------------------------------------------------------------- parts */

bool call_timeout_parse(struct str s, ns *ret)
{
	static const struct {
		char unit;
		ns length;
	} units[] = {{'H', 3600 * NS_PER_S}, {'M', 60 * NS_PER_S}, {'S', NS_PER_S}, {'m', NS_PER_MS},
		{'u', NS_PER_MS / 1000}, {'n', 1}};
	uint64_t n = 0;

	if (s.len < 2 || s.len > 9)
		return false;
	for (size_t i = 0; i + 1 < s.len; i++) {
		if (!str_is_digit(s.ptr[i]))
			return false;
		n = 10 * n + (uint64_t)(s.ptr[i] - '0');
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (s.ptr[s.len - 1] == units[i].unit) {
			if (__builtin_mul_overflow(n, units[i].length, ret))
				*ret = UINT64_MAX;
			return true;
		}
	}
	return false;
}

size_t call_detail_encode(struct str s, char *out, size_t size)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (size_t i = 0; i < s.len && n + 3 <= size; i++) {
		unsigned char byte = (unsigned char)s.ptr[i];

		if (byte >= 0x20 && byte <= 0x7e && byte != '%') {
			out[n++] = (char)byte;
		} else {
			out[n++] = '%';
			out[n++] = digits[byte >> 4];
			out[n++] = digits[byte & 15];
		}
	}
	return n;
}
