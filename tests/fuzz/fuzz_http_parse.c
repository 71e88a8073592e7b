/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the head of a request: whole, and in two pieces cut where the first byte says. Both must come to the same end.
 * What is read lies inside the input, and read by a slow and simple reader it is the same: lines cut at CR LF and at the first
 * colon, names of tokens, no control byte anywhere.
 */
#include "fuzz.h"

#include "base/must.h"
#include "server/http_parse.h"

#include <stdlib.h>

#define MAX_BYTES 4096

static struct header_line lines[HTTP_LINES_MAX];

static void must_lie_inside(struct str s, struct str input)
{
	must(s.ptr >= input.ptr && s.ptr + s.len <= input.ptr + input.len);
}

static void must_be_clean(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		must((c >= ' ' || c == '\t') && c != 0x7f);
	}
}

/* The line at *at without its CR LF. */
static struct str next_line(struct str input, size_t *at)
{
	struct str rest = str_from(input, *at), line = str_head(rest, str_find(rest, '\n'));

	must(line.len > 0 && line.len < rest.len && line.ptr[line.len - 1] == '\r');
	*at += line.len + 1;
	return str_head(line, line.len - 1);
}

static void must_be_right(const struct http_head *h, struct str input)
{
	size_t at = 0;
	struct str line = next_line(input, &at);

	if (line.len == 0)
		line = next_line(input, &at);
	must_be_clean(line);
	must_lie_inside(h->method, input);
	must_lie_inside(h->target, input);
	must(str_is_token(h->method) && h->target.len > 0 && str_find(h->target, ' ') == h->target.len);
	must(h->n_lines <= HTTP_LINES_MAX && h->n_bytes <= MAX_BYTES);
	for (size_t i = 0; i < h->n_lines; i++) {
		size_t colon;

		line = next_line(input, &at);
		colon = str_find(line, ':');
		must_be_clean(line);
		must_lie_inside(lines[i].value, input);
		must(str_is_token(lines[i].name) && str_equal(lines[i].name, str_head(line, colon)));
		must(str_equal(lines[i].value, str_trim(str_from(line, colon + 1))));
	}
	must(next_line(input, &at).len == 0 && at == h->n_bytes);
	must(!h->is_chunked || h->length == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = str_make((const char *)data + 1, size > 0 ? size - 1 : 0);
	struct http_head whole, cut;
	enum head_state state, cut_state;
	size_t first;

	if (size == 0)
		return 0;
	first = data[0] < input.len ? data[0] : input.len;
	http_head_init(&cut, MAX_BYTES, lines);
	cut_state = http_head_read(&cut, input.ptr, first);
	cut.lines = NULL;
	if (cut_state == HEAD_MORE)
		cut_state = http_head_read(&cut, input.ptr, input.len);
	http_head_init(&whole, MAX_BYTES, lines);
	state = http_head_read(&whole, input.ptr, input.len);
	must(state == cut_state && whole.fault == cut.fault && whole.n_bytes == cut.n_bytes);
	must(state == HEAD_BAD || whole.fault == NULL);
	if (state == HEAD_DONE)
		must_be_right(&whole, input);
	return 0;
}
