/* SPDX-License-Identifier: MIT */
/*
 * The form is that of a compiler's messages, because editors and CI systems know how to jump to it. Sentences are ours
 * but repeat names from the file, and pointers and file names come from outside whole: so what is stored is forced to
 * printable ASCII, and what is printed is escaped, before it can reach a terminal.
 */
#include "base/fault.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fault_list_init(struct fault_list *list)
{
	*list = (struct fault_list){0};
}

void fault_list_done(struct fault_list *list)
{
	free(list->items);
	fault_list_init(list);
}

static struct fault *grow(struct fault_list *list)
{
	if (list->n == list->cap) {
		size_t cap = list->cap > 0 ? list->cap * 2 : 8;
		struct fault *items = reallocarray(list->items, cap, sizeof(*items));

		if (items == NULL)
			return NULL;
		list->items = items;
		list->cap = cap;
	}
	return &list->items[list->n++];
}

struct fault *fault_add(struct fault_list *list, enum fault_severity severity, const char *code,
	const char *pointer_z, const char *format, ...)
{
	struct fault *f = grow(list);
	va_list args;

	if (severity == FAULT_ERROR)
		list->n_errors++;
	else
		list->n_warnings++;
	if (f == NULL)
		return NULL;
	*f = (struct fault){.severity = severity, .code = code};
	(void)snprintf(f->pointer_z, sizeof(f->pointer_z), "%s", pointer_z);
	va_start(args, format);
	(void)vsnprintf(f->text_z, sizeof(f->text_z), format, args);
	va_end(args);
	for (char *p = f->text_z; *p != '\0'; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	return f;
}

size_t fault_print(const struct fault *f, char *out, size_t size)
{
	/* Room for file and pointer with each byte written as \xNN, the sentence, and what stands between. */
	char buffer[4 * (sizeof(f->file_z) + sizeof(f->pointer_z)) + sizeof(f->text_z) + 128];
	struct text t;
	struct str line;

	if (size == 0)
		return 0;
	text_init(&t, buffer, sizeof(buffer));
	text_visible(&t, str_from_z(f->file_z), sizeof(f->file_z));
	if (f->line > 0) {
		text_z(&t, t.len > 0 ? ":" : "");
		text_u64(&t, f->line);
	}
	if (f->line > 0 && f->column > 0) {
		text_char(&t, ':');
		text_u64(&t, f->column);
	}
	text_z(&t, t.len > 0 ? ": " : "");
	if (f->pointer_z[0] != '\0') {
		text_visible(&t, str_from_z(f->pointer_z), sizeof(f->pointer_z));
		text_z(&t, ": ");
	}
	text_z(&t, f->severity == FAULT_ERROR ? "error: " : "warning: ");
	text_z(&t, f->text_z);
	text_z(&t, " [");
	text_z(&t, f->code);
	text_char(&t, ']');

	line = str_head(text_view(&t), size - 1);
	memcpy(out, line.ptr, line.len);
	out[line.len] = '\0';
	return line.len;
}
