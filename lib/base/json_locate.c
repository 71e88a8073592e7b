/* SPDX-License-Identifier: MIT */
/*
 * JSON pointers (RFC 6901), and the way back from one to a line. Nothing of this is kept while reading: the decision
 * path never needs a place, and a configuration needs it once per fault, so the text is gone through again instead.
 * A pointer always leaves room for a slash of each of the 64 levels, so that however long the names are, every push
 * has its pop.
 */
#include "base/json_scan.h"

#include <stdio.h>

/* How many bytes the reference tokens behind the present ones may still use. */
static size_t pointer_room(const char *pointer_z, size_t len)
{
	size_t reserved = JSON_DEPTH_MAX;

	for (size_t i = 0; i < len && reserved > 0; i++)
		reserved -= pointer_z[i] == '/';
	return len + reserved < JSON_POINTER_BYTES - 1 ? JSON_POINTER_BYTES - 1 - len - reserved : 0;
}

void json_pointer_push(char pointer_z[JSON_POINTER_BYTES], struct str name)
{
	size_t len = strlen(pointer_z), room;

	if (len + 1 >= JSON_POINTER_BYTES)
		return;
	pointer_z[len++] = '/';
	room = pointer_room(pointer_z, len);
	for (size_t i = 0; i < name.len && name.ptr[i] != '\0'; i++) {
		char c = name.ptr[i];
		bool escaped = c == '~' || c == '/';

		if (room < (escaped ? 2 : 1)) {
			/* Not in the middle of a character. */
			for (; i > 0 && ((unsigned char)name.ptr[i] & 0xc0) == 0x80; i--)
				len--;
			break;
		}
		if (escaped)
			pointer_z[len++] = '~';
		pointer_z[len++] = c == '~' ? '0' : c == '/' ? '1' : c;
		room -= escaped ? 2 : 1;
	}
	pointer_z[len] = '\0';
}

void json_pointer_push_index(char pointer_z[JSON_POINTER_BYTES], size_t index)
{
	char digits_z[24];

	(void)snprintf(digits_z, sizeof(digits_z), "%zu", index);
	json_pointer_push(pointer_z, str_from_z(digits_z));
}

void json_pointer_pop(char pointer_z[JSON_POINTER_BYTES])
{
	char *slash = strrchr(pointer_z, '/');

	if (slash != NULL)
		*slash = '\0';
}

/* Takes the first reference token off the pointer, with ~1 and ~0 decoded into out. */
static struct str take_token(const char **pointer_z, char out[JSON_POINTER_BYTES])
{
	const char *p = *pointer_z + 1;
	size_t len = 0;

	for (; *p != '\0' && *p != '/' && len < JSON_POINTER_BYTES; p++) {
		if (*p == '~' && (p[1] == '0' || p[1] == '1'))
			out[len++] = *++p == '0' ? '~' : '/';
		else
			out[len++] = *p;
	}
	*pointer_z = p;
	return str_make(out, len);
}

/* True if the token leads to the member or item that this level is reading. */
static bool level_is(const struct json_level *level, struct str token)
{
	char name[JSON_POINTER_BYTES];
	uint64_t index;
	bool whole;

	if (!level->is_object)
		return str_to_u64(token, UINT64_MAX, &index) && index == level->index;
	return str_equal(json_scan_name(level->name, name, sizeof(name), &whole), token) && whole;
}

bool json_locate(
	struct str text, const char *pointer_z, bool at_name, unsigned *ret_line, unsigned *ret_column)
{
	char buffer[JSON_POINTER_BYTES];
	struct str token = {NULL, 0};
	struct json_scan s;
	size_t matched = 0;

	if (*pointer_z != '\0' && *pointer_z != '/')
		return false;
	json_scan_init(&s, text);
	while (json_scan_next(&s) == SCAN_VALUE) {
		/* A value outside the container that holds what we look for: it was not in there. */
		if (s.value_depth < matched)
			return false;
		if (s.value_depth > matched)
			continue;
		if (matched > 0 && !level_is(&s.levels[matched - 1], token))
			continue;
		if (*pointer_z == '\0') {
			json_scan_place(text, at_name ? s.name_at : s.value_at, ret_line, ret_column);
			return true;
		}
		token = take_token(&pointer_z, buffer);
		matched++;
	}
	return false;
}
