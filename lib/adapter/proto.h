/* SPDX-License-Identifier: MIT */
/*
 * proto: protobuf-c on an arena.
 *
 * Model      Everything that is unpacked comes from the arena and is never given back; the arena's size is the bound of what
 *            a message may cost. In front of every piece stands its size, because protobuf-c gives text as a pointer only
 *            and a byte 0 inside would cut it short without a word: proto_text has the true length.
 * Ownership  as the arena.
 * Threads    confined.
 * Errors     proto_unpack: NULL, and the arena's overflow mark says whether it was for want of room.
 */
#ifndef POSTERN_ADAPTER_PROTO_H
#define POSTERN_ADAPTER_PROTO_H

#include "base/arena.h"
#include "base/str.h"

#include <protobuf-c/protobuf-c.h>

/* A message of that type, or NULL. */
void *proto_unpack(const ProtobufCMessageDescriptor *type, struct str bytes, struct arena *a);

/* A text of an unpacked message; empty where it was not sent. */
struct str proto_text(const char *text, const struct arena *a);

static inline struct str proto_bytes(const ProtobufCBinaryData *bytes)
{
	return str_make((const char *)bytes->data, bytes->len);
}

#endif
