/* SPDX-License-Identifier: MIT */
/*
 * Problem documents. They are rare and small, so vsnprintf is good enough here; the document itself is written like every
 * other answer.
 */
#include "adapter/problem.h"

#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

/* Type, title and code; a detail whose every byte is escaped by one more; a pointer escaped by five more. */
#define PROBLEM_BYTES (512 + 2 * 256 + 6 * JSON_POINTER_BYTES)

static const struct {
	struct str word, title;
	unsigned http;
} problems[PROBLEM_COUNT] = {
#define PROBLEM(id, code, http, title)                                                                       \
	[PROBLEM_##id] = {{code, sizeof(code) - 1}, {title, sizeof(title) - 1}, http},
#include "problems.def"
#undef PROBLEM
};

void problem_set(struct problem *p, enum problem_code code, const char *format, ...)
{
	va_list args;

	p->code = code;
	p->pointer_z[0] = '\0';
	p->line = 0;
	p->column = 0;
	p->allow = STR("");
	va_start(args, format);
	vsnprintf(p->detail_z, sizeof(p->detail_z), format, args);
	va_end(args);
}

struct str problem_word(enum problem_code code)
{
	return problems[code].word;
}

unsigned problem_http(enum problem_code code)
{
	return problems[code].http;
}

/* "urn:postern:problem:body-not-json" for body_not_json. */
static void write_type(struct text *t, struct str word)
{
	text_z(t, "\"urn:postern:problem:");
	for (size_t i = 0; i < word.len; i++)
		text_char(t, word.ptr[i] == '_' ? '-' : word.ptr[i]);
	text_char(t, '"');
}

/* A pointer names members as they are, so its characters are written and not, as everywhere else, its bytes. They are
 * whole: it was read from a text that is UTF-8, and is never cut inside one. */
static void write_pointer(struct text *t, const char *pointer_z)
{
	char hex_z[3];

	text_char(t, '"');
	for (; *pointer_z != '\0'; pointer_z++) {
		uint8_t c = (uint8_t)*pointer_z;

		if (c >= ' ' && c != '"' && c != '\\') {
			text_char(t, *pointer_z);
			continue;
		}
		str_hex(&c, 1, hex_z);
		text_z(t, "\\u00");
		text_z(t, hex_z);
	}
	text_char(t, '"');
}

void problem_encode(const struct problem *p, struct arena *a, struct http_answer *ret)
{
	struct text t;

	text_init_arena(&t, a, PROBLEM_BYTES);
	text_z(&t, "{\"type\": ");
	write_type(&t, problems[p->code].word);
	text_z(&t, ", \"title\": ");
	text_json(&t, problems[p->code].title);
	text_z(&t, ", \"status\": ");
	text_u64(&t, problems[p->code].http);
	text_z(&t, ", \"detail\": ");
	text_json(&t, str_from_z(p->detail_z));
	text_z(&t, ", \"code\": ");
	text_json(&t, problems[p->code].word);
	if (p->line != 0) {
		text_z(&t, ", \"pointer\": ");
		write_pointer(&t, p->pointer_z);
		text_z(&t, ", \"line\": ");
		text_u64(&t, p->line);
		text_z(&t, ", \"column\": ");
		text_u64(&t, p->column);
	}
	text_z(&t, "}\n");
	a->overflow |= t.overflow;
	ret->status = problems[p->code].http;
	ret->n_headers = 0;
	ret->body = text_view(&t);
	http_answer_add(ret, STR("Content-Type"), STR("application/problem+json"));
	http_answer_add(ret, STR("Cache-Control"), STR("no-store"));
	if (p->allow.len > 0)
		http_answer_add(ret, STR("Allow"), p->allow);
}
