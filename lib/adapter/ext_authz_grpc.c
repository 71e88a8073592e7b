/* SPDX-License-Identifier: MIT */
/*
 * Envoy's external authorization over gRPC. source.address is Envoy's own peer, always, whatever X-Forwarded-For says; what
 * Envoy derives from that header is not told. Envoy may have written the same address as the header's last entry.
 * Only status.code decides an answer, and an empty message means "allow": every answer is made from a verdict, and where there
 * is none the call fails, so that the operator's own failure mode applies. Versions of Envoy differ in what a header without
 * "append" does; append false together with OVERWRITE means the same to all of them. A header that is listed to be set is
 * never listed to be removed too, since what comes last differs as well.
 * A map of headers that says a name twice is two lines here, not its last value: no gateway sends that, and both are judged.
 */
#include "adapter/rpc.h"

#include "adapter/denial.h"
#include "adapter/hop.h"
#include "adapter/proto.h"
#include "adapter/wire.h"

#include "base/text.h"
#include "core/headers.h"

#include "envoy/service/auth/v3/external_auth.pb-c.h"

#define ANSWER_BYTES ((size_t)8 * 1024) /* 16 limits in three header lines, and the rest several times over */

/* Numbers of fields, and of the one action, as the .proto files have them. */
enum { CHECK_STATUS = 1, CHECK_DENIED = 2, CHECK_OK = 3, CHECK_METADATA = 4 };
enum { STATUS_CODE = 1 };
enum { DENIED_STATUS = 1, DENIED_HEADERS = 2, DENIED_BODY = 3 };
enum { OK_HEADERS = 2, OK_REMOVE = 5, OK_RESPONSE_HEADERS = 6 };
enum { OPTION_HEADER = 1, OPTION_APPEND = 2, OPTION_ACTION = 3, ACTION_OVERWRITE = 2 };
enum { HEADER_KEY = 1, HEADER_VALUE = 2 };
enum { STRUCT_FIELDS = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2, VALUE_STRING = 3, VALUE_LIST = 6, LIST_VALUES = 1 };

/* ---- questions */

static struct str address_text(const Envoy__Config__Core__V3__Address *address, struct arena *a)
{
	struct text t;
	struct str path;

	switch (address != NULL ? address->address_case : ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS__NOT_SET) {
	case ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS:
		return proto_text(address->socket_address->address, a);
	case ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_PIPE:
		path = proto_text(address->pipe->path, a);
		text_init_arena(&t, a, path.len + 5);
		text_z(&t, "unix:");
		text_str(&t, path);
		return text_view(&t);
	case ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_ENVOY_INTERNAL_ADDRESS: return STR("envoy-internal");
	default: return STR("");
	}
}

/* Text of proto3 that was not sent is empty, and so is said to be neither. */
static struct fact fact_of(struct str text)
{
	return (struct fact){text, text.len > 0};
}

/* :method, :path and their like are no header lines; they have fields of their own. */
static size_t put_line(struct header_line *lines, size_t n, struct str name, struct str value)
{
	if (name.len > 0 && name.ptr[0] == ':')
		return n;
	lines[n] = (struct header_line){name, value};
	return n + 1;
}

static bool read_http(
	const Envoy__Service__Auth__V3__AttributeContext__HttpRequest *http, struct arena *a, struct request *req)
{
	size_t n = 0, n_map = http->header_map != NULL ? http->header_map->n_headers : 0;
	struct header_line *lines = arena_array(a, http->n_headers + n_map, sizeof(*lines));

	if (lines == NULL)
		return false;
	for (size_t i = 0; i < http->n_headers; i++)
		n = put_line(lines, n, proto_text(http->headers[i]->key, a),
			proto_text(http->headers[i]->value, a));
	for (size_t i = 0; i < n_map; i++) {
		const Envoy__Config__Core__V3__HeaderValue *h = http->header_map->headers[i];

		n = put_line(lines, n, proto_text(h->key, a),
			h->raw_value.len > 0 ? proto_bytes(&h->raw_value) : proto_text(h->value, a));
	}
	req->headers = lines;
	req->n_headers = hop_consume_equal(lines, n, req->remote_addr);
	req->id = fact_of(proto_text(http->id, a));
	req->method = fact_of(proto_text(http->method, a));
	req->host = fact_of(proto_text(http->host, a));
	req->path = fact_of(proto_text(http->path, a));
	return true;
}

bool ext_authz_grpc_decode(struct str message, struct arena *a, struct request *ret, struct rpc_answer *ret_refusal)
{
	const Envoy__Service__Auth__V3__CheckRequest *check =
		proto_unpack(&envoy__service__auth__v3__check_request__descriptor, message, a);
	const Envoy__Service__Auth__V3__AttributeContext *attributes;

	*ret = (struct request){.door = DOOR_EXT_AUTHZ_GRPC, .fault = REASON_ALLOWED, .cost = 1};
	if (check == NULL) {
		rpc_refuse(ret_refusal, a->overflow ? RPC_RESOURCE_EXHAUSTED : RPC_INTERNAL,
			a->overflow ? STR("the CheckRequest needs more room than there is")
				    : STR("the CheckRequest does not parse"));
		return false;
	}
	attributes = check->attributes;
	if (attributes != NULL && attributes->source != NULL)
		ret->remote_addr = address_text(attributes->source->address, a);
	/* A check of a TCP connection has no request. */
	if (attributes != NULL && attributes->request != NULL && attributes->request->http != NULL)
		(void)read_http(attributes->request->http, a, ret);
	if (!a->overflow)
		return true;
	rpc_refuse(ret_refusal, RPC_RESOURCE_EXHAUSTED, STR("the CheckRequest needs more room than there is"));
	return false;
}

/* ---- answers */

static void write_header(struct wire *w, unsigned field, struct str name, struct str value)
{
	size_t option = wire_mark(w), header;

	wire_varint(w, OPTION_ACTION, ACTION_OVERWRITE);
	wire_bytes(w, OPTION_APPEND, STR("")); /* a BoolValue that is there and false */
	header = wire_mark(w);
	wire_bytes(w, HEADER_VALUE, value);
	wire_lower(w, HEADER_KEY, name);
	wire_close(w, OPTION_HEADER, header);
	wire_close(w, field, option);
}

/* Back to front, so that they stand in their order. */
static void write_headers(struct wire *w, unsigned field, const struct header_line *lines, size_t n)
{
	while (n-- > 0)
		write_header(w, field, lines[n].name, lines[n].value);
}

static void write_metadata(struct wire *w, const char *name_z, struct str text)
{
	size_t entry = wire_mark(w), value = entry;

	if (text.len == 0)
		return;
	wire_bytes(w, VALUE_STRING, text);
	wire_close(w, ENTRY_VALUE, value);
	wire_bytes(w, ENTRY_KEY, str_from_z(name_z));
	wire_close(w, STRUCT_FIELDS, entry);
}

static void write_warnings(struct wire *w, unsigned warnings)
{
	size_t entry = wire_mark(w), list, value;

	if (warnings == 0)
		return;
	list = wire_mark(w);
	for (unsigned i = WARNING_COUNT; i-- > 0;) {
		value = wire_mark(w);
		if ((warnings & 1u << i) == 0)
			continue;
		wire_bytes(w, VALUE_STRING, warning_word((enum warning)i));
		wire_close(w, LIST_VALUES, value);
	}
	wire_close(w, VALUE_LIST, list);
	wire_close(w, ENTRY_VALUE, list);
	wire_bytes(w, ENTRY_KEY, STR("warnings"));
	wire_close(w, STRUCT_FIELDS, entry);
}

static struct str refusing_limit(const struct verdict *v)
{
	for (size_t i = 0; i < v->n_limits; i++) {
		if (v->limits[i].taking.refused && !v->limits[i].shadow)
			return v->limits[i].limit->name;
	}
	return STR("");
}

/* What access logs and other filters of the operator may see, and the client never does. */
static void write_dynamic_metadata(struct wire *w, const struct verdict *v)
{
	size_t mark = wire_mark(w);
	char address[IP_TEXT_BYTES];

	write_warnings(w, v->warnings);
	write_metadata(w, "limit", refusing_limit(v));
	if (v->has_client && v->client.has_address)
		write_metadata(w, "client", str_make(address, ip_print(&v->client.address, address)));
	if (v->has_client && v->token.identity != NULL)
		write_metadata(w, "identity", v->token.identity->name);
	write_metadata(w, "rule", v->rule != NULL ? v->rule->name : STR(""));
	if (v->reason == REASON_SHADOW)
		write_metadata(w, "would", reason_word(v->would));
	write_metadata(w, "reason", reason_word(v->reason));
	wire_close(w, CHECK_METADATA, mark);
}

static void write_ok(struct wire *w, const struct ruleset *rules, const struct verdict *v, struct arena *a)
{
	struct header_line lines[HEADERS_CLIENT_MAX], upstream[HEADERS_UPSTREAM];
	struct str names[TOKEN_HEADERS_MAX];
	size_t mark = wire_mark(w), n_names = headers_to_remove(rules, v, names);

	write_headers(w, OK_RESPONSE_HEADERS, lines, headers_for_client(rules, v, a, lines));
	headers_for_upstream(v, a, upstream);
	while (n_names-- > 0)
		wire_lower(w, OK_REMOVE, names[n_names]);
	for (size_t i = HEADERS_UPSTREAM; i-- > 0;) {
		if (upstream[i].value.len == 0)
			wire_lower(w, OK_REMOVE, upstream[i].name);
	}
	for (size_t i = HEADERS_UPSTREAM; i-- > 0;) {
		if (upstream[i].value.len > 0)
			write_header(w, OK_HEADERS, upstream[i].name, upstream[i].value);
	}
	wire_close(w, CHECK_OK, mark);
}

static void write_denied(struct wire *w, const struct ruleset *rules, const struct verdict *v, struct arena *a)
{
	struct header_line lines[HEADERS_CLIENT_MAX];
	size_t mark = wire_mark(w), status;

	wire_bytes(w, DENIED_BODY, denial_body(v, a));
	write_headers(w, DENIED_HEADERS, lines, headers_for_client(rules, v, a, lines));
	write_header(w, DENIED_HEADERS, STR("cache-control"), STR("no-store"));
	write_header(w, DENIED_HEADERS, STR("content-type"), STR("application/json"));
	status = wire_mark(w);
	wire_varint(w, 1, reason_http(v->reason));
	wire_close(w, DENIED_STATUS, status);
	wire_close(w, CHECK_DENIED, mark);
}

void ext_authz_grpc_encode(
	const struct ruleset *rules, const struct verdict *v, struct arena *a, struct rpc_answer *ret)
{
	struct wire w;
	size_t status;

	wire_init(&w, a, ANSWER_BYTES);
	write_dynamic_metadata(&w, v);
	if (v->decision == DECISION_ALLOW)
		write_ok(&w, rules, v, a);
	else
		write_denied(&w, rules, v, a);
	status = wire_mark(&w);
	if (v->decision != DECISION_ALLOW)
		wire_varint(&w, STATUS_CODE, reason_grpc(v->reason));
	wire_close(&w, CHECK_STATUS, status);
	if (v->decision == DECISION_ERROR || a->overflow)
		rpc_refuse(ret, RPC_UNAVAILABLE, STR("no decision can be made now"));
	else
		*ret = (struct rpc_answer){.status = RPC_OK, .message = wire_view(&w)};
}
