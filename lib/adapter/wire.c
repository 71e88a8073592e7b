/* SPDX-License-Identifier: MIT */
/*
 * Few fields, all of them ours: a tree of structures for the library's packer would have to be allocated, filled, measured
 * and walked again, for the same bytes. Tests read everything that is written here with the library.
 */
#include "adapter/wire.h"

enum { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LENGTH = 2, WIRE_I32 = 5 };

#define VARINT_BYTES_MAX 10

void wire_init(struct wire *w, struct arena *a, size_t size)
{
	char *base = arena_alloc(a, size);

	*w = (struct wire){
		.base = base, .at = size, .size = size, .arena = a, .overflow = base == NULL};
}

/* Room for n bytes in front, or NULL. */
static char *take(struct wire *w, size_t n)
{
	if (w->overflow || n > w->at) {
		w->overflow = true;
		w->arena->overflow = true;
		return NULL;
	}
	w->at -= n;
	return w->base + w->at;
}

static void put_number(struct wire *w, uint64_t value)
{
	char bytes[VARINT_BYTES_MAX], *to;
	size_t n = 0;

	do {
		bytes[n++] = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
		value >>= 7;
	} while (value > 0);
	to = take(w, n);
	if (to != NULL)
		memcpy(to, bytes, n);
}

void wire_varint(struct wire *w, unsigned field, uint64_t value)
{
	put_number(w, value);
	put_number(w, field << 3 | WIRE_VARINT);
}

static void put_text(struct wire *w, struct str value)
{
	char *to = take(w, value.len);

	if (to != NULL && value.len > 0)
		memcpy(to, value.ptr, value.len);
}

void wire_bytes(struct wire *w, unsigned field, struct str value)
{
	size_t mark = w->at;

	put_text(w, value);
	wire_close(w, field, mark);
}

void wire_joined(struct wire *w, unsigned field, struct str first, struct str second)
{
	size_t mark = w->at;

	put_text(w, second);
	put_text(w, STR("."));
	put_text(w, first);
	wire_close(w, field, mark);
}

void wire_lower(struct wire *w, unsigned field, struct str value)
{
	size_t mark = w->at;
	char *to = take(w, value.len);

	for (size_t i = 0; to != NULL && i < value.len; i++)
		to[i] = str_lower_char(value.ptr[i]);
	wire_close(w, field, mark);
}

void wire_close(struct wire *w, unsigned field, size_t mark)
{
	if (w->overflow)
		return;
	put_number(w, mark - w->at);
	put_number(w, field << 3 | WIRE_LENGTH);
}

struct str wire_view(const struct wire *w)
{
	return w->overflow ? STR("") : str_make(w->base + w->at, w->size - w->at);
}

static bool take_number(struct str *rest, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < rest->len && i < VARINT_BYTES_MAX; i++) {
		value |= (uint64_t)(rest->ptr[i] & 0x7f) << (7 * i);
		if ((rest->ptr[i] & 0x80) == 0) {
			*ret = value;
			*rest = str_from(*rest, i + 1);
			return true;
		}
	}
	return false;
}

bool wire_next(struct str *rest, unsigned *ret_field, struct str *ret_value)
{
	uint64_t key, n = 0;

	if (!take_number(rest, &key))
		return false;
	*ret_field = (unsigned)(key >> 3);
	*ret_value = STR("");
	switch (key & 7) {
	case WIRE_VARINT: return take_number(rest, &n);
	case WIRE_I64: n = 8; break;
	case WIRE_I32: n = 4; break;
	case WIRE_LENGTH:
		if (!take_number(rest, &n))
			return false;
		*ret_value = str_head(*rest, (size_t)n);
		break;
	default: return false;
	}
	if (n > rest->len)
		return false;
	*rest = str_from(*rest, (size_t)n);
	return true;
}
