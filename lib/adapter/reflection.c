/* SPDX-License-Identifier: MIT */
/*
 * Server reflection, so that grpcurl and its like need no .proto files. v1 and v1alpha are the same messages in two packages;
 * the types of v1 read both. What is served is the set of file descriptors that the compiler made of api/proto, in the form in
 * which it wrote it: it is searched where it lies, since nobody asks twice in a hurry.
 * A file goes out with all that it imports and that this call has not had yet; the call's memory is a bit for each file.
 */
#include "adapter/rpc.h"

#include "adapter/proto.h"
#include "adapter/wire.h"

#include "descriptors.h"
#include "grpc/reflection/v1/reflection.pb-c.h"

#define FILES_MAX 64 /* the bits of a call's memory */
#define ANSWER_EXTRA_BYTES 1024

enum { RESPONSE_REQUEST = 2, RESPONSE_FILES = 4, RESPONSE_EXTENSIONS = 5, RESPONSE_SERVICES = 6, RESPONSE_ERROR = 7 };
enum { FILES_FILE = 1, EXTENSIONS_TYPE = 1, SERVICES_SERVICE = 1, SERVICE_NAME = 1, ERROR_CODE = 1, ERROR_MESSAGE = 2 };
enum { SET_FILE = 1, FILE_NAME = 1, FILE_PACKAGE = 2, FILE_DEPENDENCY = 3, FILE_SERVICE = 6, ANY_NAME = 1 };

/* What may be named inside what, by field of descriptor.proto. */
enum scope { SCOPE_FILE, SCOPE_MESSAGE, SCOPE_SERVICE, SCOPE_LEAF };
static const struct {
	enum scope outer;
	unsigned field;
	enum scope inner;
} scopes[] = {
	{SCOPE_FILE, 4, SCOPE_MESSAGE},
	{SCOPE_FILE, 5, SCOPE_LEAF}, /* enum */
	{SCOPE_FILE, 6, SCOPE_SERVICE},
	{SCOPE_MESSAGE, 2, SCOPE_LEAF}, /* field */
	{SCOPE_MESSAGE, 3, SCOPE_MESSAGE},
	{SCOPE_MESSAGE, 4, SCOPE_LEAF}, /* enum */
	{SCOPE_MESSAGE, 8, SCOPE_LEAF}, /* oneof */
	{SCOPE_SERVICE, 2, SCOPE_LEAF}, /* method */
};

/* One answer while it is made. */
struct reply {
	struct wire w;
	uint64_t sent, sending; /* bits of files */
};

static bool file_at(unsigned index, struct str *ret)
{
	struct str rest = str_make((const char *)descriptors, sizeof(descriptors)), value;
	unsigned field;

	while (wire_next(&rest, &field, &value)) {
		if (field == SET_FILE && index-- == 0) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* The first text of that field. */
static struct str text_of(struct str message, unsigned wanted)
{
	struct str value;
	unsigned field;

	while (wire_next(&message, &field, &value)) {
		if (field == wanted)
			return value;
	}
	return STR("");
}

/* symbol without "name.", or false if it does not begin with that. */
static bool step_into(struct str symbol, struct str name, struct str *ret)
{
	if (symbol.len <= name.len || !str_starts_with(symbol, name) || symbol.ptr[name.len] != '.')
		return false;
	*ret = str_from(symbol, name.len + 1);
	return true;
}

static bool scope_has(struct str descriptor, enum scope scope, struct str symbol)
{
	struct str value, rest;
	unsigned field;

	while (wire_next(&descriptor, &field, &value)) {
		for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
			struct str name;

			if (scopes[i].outer != scope || scopes[i].field != field)
				continue;
			name = text_of(value, ANY_NAME);
			if (str_equal(symbol, name) ||
				(step_into(symbol, name, &rest) && scope_has(value, scopes[i].inner, rest)))
				return true;
		}
	}
	return false;
}

/* The index of the file that has the symbol (or that name, if by_name), or FILES_MAX. */
static unsigned file_find(struct str wanted, bool by_name)
{
	struct str file, rest;

	for (unsigned i = 0; i < FILES_MAX && file_at(i, &file); i++) {
		if (by_name ? str_equal(text_of(file, FILE_NAME), wanted)
			    : step_into(wanted, text_of(file, FILE_PACKAGE), &rest) &&
				      scope_has(file, SCOPE_FILE, rest))
			return i;
	}
	return FILES_MAX;
}

/* Imports are written before what imports them, so that back to front the file itself comes first. */
static void write_file(struct reply *r, unsigned index)
{
	struct str file, rest, value;
	unsigned field;

	if (!file_at(index, &file))
		return;
	r->sending |= UINT64_C(1) << index;
	rest = file;
	while (wire_next(&rest, &field, &value)) {
		unsigned i = field == FILE_DEPENDENCY ? file_find(value, true) : FILES_MAX;

		if (i < FILES_MAX && ((r->sent | r->sending) >> i & 1) == 0)
			write_file(r, i);
	}
	wire_bytes(&r->w, FILES_FILE, file);
}

static void write_not_found(struct reply *r)
{
	size_t mark = wire_mark(&r->w);

	wire_bytes(&r->w, ERROR_MESSAGE, STR("not found"));
	wire_varint(&r->w, ERROR_CODE, RPC_NOT_FOUND);
	wire_close(&r->w, RESPONSE_ERROR, mark);
}

static void write_file_or_error(struct reply *r, unsigned index)
{
	size_t mark = wire_mark(&r->w);

	if (index == FILES_MAX) {
		write_not_found(r);
		return;
	}
	write_file(r, index);
	wire_close(&r->w, RESPONSE_FILES, mark);
}

static void write_services(struct reply *r)
{
	size_t mark = wire_mark(&r->w);
	struct str file, value;
	unsigned field;

	for (unsigned i = 0; i < FILES_MAX && file_at(i, &file); i++) {
		struct str package = text_of(file, FILE_PACKAGE);

		while (wire_next(&file, &field, &value)) {
			size_t service = wire_mark(&r->w);

			if (field != FILE_SERVICE)
				continue;
			wire_joined(&r->w, SERVICE_NAME, package, text_of(value, ANY_NAME));
			wire_close(&r->w, SERVICES_SERVICE, service);
		}
	}
	wire_close(&r->w, RESPONSE_SERVICES, mark);
}

/* No type of ours has extensions. */
static void write_extensions(struct reply *r, struct str type)
{
	size_t mark = wire_mark(&r->w);

	if (file_find(type, false) == FILES_MAX) {
		write_not_found(r);
		return;
	}
	wire_bytes(&r->w, EXTENSIONS_TYPE, type);
	wire_close(&r->w, RESPONSE_EXTENSIONS, mark);
}

static bool write_reply(struct reply *r, const Grpc__Reflection__V1__ServerReflectionRequest *request, struct arena *a)
{
	switch (request->message_request_case) {
	case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
		write_file_or_error(r, file_find(proto_text(request->file_by_filename, a), true));
		return true;
	case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
		write_file_or_error(r, file_find(proto_text(request->file_containing_symbol, a), false));
		return true;
	case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
		write_not_found(r);
		return true;
	case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
		write_extensions(r, proto_text(request->all_extension_numbers_of_type, a));
		return true;
	case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
		write_services(r);
		return true;
	default: return false;
	}
}

void reflection_answer(struct str message, struct rpc_context *c, struct arena *a, struct rpc_answer *ret)
{
	const Grpc__Reflection__V1__ServerReflectionRequest *request =
		proto_unpack(&grpc__reflection__v1__server_reflection_request__descriptor, message, a);
	struct reply r = {.sent = c->memory};

	if (request == NULL) {
		rpc_refuse(ret, a->overflow ? RPC_RESOURCE_EXHAUSTED : RPC_INTERNAL,
			STR("the ServerReflectionRequest does not parse"));
		return;
	}
	wire_init(&r.w, a, sizeof(descriptors) + 2 * message.len + ANSWER_EXTRA_BYTES);
	if (!write_reply(&r, request, a)) {
		rpc_refuse(ret, RPC_INVALID_ARGUMENT, STR("the request asks for nothing"));
		return;
	}
	wire_bytes(&r.w, RESPONSE_REQUEST, message);
	if (a->overflow) {
		rpc_refuse(ret, RPC_RESOURCE_EXHAUSTED, STR("the answer needs more room than there is"));
		return;
	}
	c->memory |= r.sending;
	*ret = (struct rpc_answer){.status = RPC_OK, .message = wire_view(&r.w)};
}
