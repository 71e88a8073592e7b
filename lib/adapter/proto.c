/* SPDX-License-Identifier: MIT */
/*
 * protobuf-c frees what it had allocated when a message turns out broken, and the room of its own bookkeeping in any case;
 * on an arena that is nothing to do. Its messages hold pointers and 64-bit numbers at most, so eight bytes in front of a
 * piece leave it aligned as it needs.
 */
#include "adapter/proto.h"

#include <stdint.h>

#define SIZE_BYTES sizeof(size_t)

_Static_assert(_Alignof(ProtobufCMessage) <= SIZE_BYTES, "pieces are aligned to the size in front of them");

static void *proto_alloc(void *arena, size_t size)
{
	char *p = size <= SIZE_MAX - SIZE_BYTES ? arena_alloc(arena, size + SIZE_BYTES) : NULL;

	if (p == NULL)
		return NULL;
	memcpy(p, &size, SIZE_BYTES);
	return p + SIZE_BYTES;
}

static void proto_free(void *arena, void *pointer)
{
	(void)arena;
	(void)pointer;
}

void *proto_unpack(const ProtobufCMessageDescriptor *type, struct str bytes, struct arena *a)
{
	ProtobufCAllocator allocator = {.alloc = proto_alloc, .free = proto_free, .allocator_data = a};

	return protobuf_c_message_unpack(type, &allocator, bytes.len, (const uint8_t *)bytes.ptr);
}

struct str proto_text(const char *text, const struct arena *a)
{
	size_t size;

	/* What was not sent is a constant of the generated code. */
	if ((uintptr_t)text < (uintptr_t)a->base || (uintptr_t)text >= (uintptr_t)a->base + a->used)
		return STR("");
	memcpy(&size, text - SIZE_BYTES, SIZE_BYTES);
	return str_make(text, size - 1);
}
