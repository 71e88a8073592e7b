/* SPDX-License-Identifier: MIT */
/*
 * Lines are found by the one byte that ends a run of text: a control byte other than the tab. If it is a CR with an LF behind
 * it the line is whole and clean, and anything else there is refused at once: a NUL, a bare CR, a bare LF, a TLS hello. So
 * looking for the end of a line and looking for forbidden bytes are one pass, eight bytes at a time.
 * Request smuggling lives on the differences between readers, so nothing is repaired: no folded lines, no blank before a colon,
 * no second length even if it is the same, no length beside a coding, no coding but chunked, written exactly so.
 */
#include "server/http_parse.h"

#include <endian.h>

/* Of eight bytes at once. */
#define ONES 0x0101010101010101u
#define HIGH_BITS 0x8080808080808080u

#define DEL 0x7f

static const struct head_fault faults[] = {
	{PROBLEM_HEADERS_TOO_LARGE, "too many header lines, or more bytes in them than http.header_bytes"},
	{PROBLEM_BAD_FRAMING, "a control byte, a bare line feed or a bare carriage return stands where none may be"},
	{PROBLEM_BAD_FRAMING, "the request line is not a method, a target and a version with one blank between them"},
	{PROBLEM_HTTP_VERSION_NOT_SUPPORTED, "this listener speaks HTTP/1.1 and HTTP/1.0"},
	{PROBLEM_BAD_FRAMING, "CONNECT asks for a tunnel, and there is none here"},
	{PROBLEM_BAD_FRAMING, "a header line is folded"},
	{PROBLEM_BAD_FRAMING, "a header's name is no token with a colon right behind it"},
	{PROBLEM_BAD_FRAMING, "Content-Length comes twice, or is no number"},
	{PROBLEM_BAD_FRAMING, "Transfer-Encoding stands beside Content-Length or in HTTP/1.0"},
	{PROBLEM_BAD_FRAMING, "Transfer-Encoding may be chunked and nothing else"},
	{PROBLEM_BAD_FRAMING, "Host is missing or comes twice"},
};

enum fault {
	TOO_LARGE,
	ODD_BYTE,
	ODD_REQUEST_LINE,
	ODD_VERSION,
	TUNNEL,
	FOLDED,
	ODD_NAME,
	ODD_LENGTH,
	CODING_AND_LENGTH,
	ODD_CODING,
	ODD_HOST
};

static bool ends_text(char c)
{
	return ((unsigned char)c < ' ' && c != '\t') || c == DEL;
}

/* The first byte that is no text, or end. Each term of odd is exact up to its first hit; what it borrows can only mark bytes
 * above that. */
static const char *text_end(const char *p, const char *end)
{
	while (end - p >= 8) {
		uint64_t word, not_del, odd;

		memcpy(&word, p, sizeof(word));
		word = le64toh(word);
		not_del = word ^ (ONES * DEL);
		odd = (((word - ONES * ' ') & ~word) | ((not_del - ONES) & ~not_del)) & HIGH_BITS;
		if (odd == 0) {
			p += 8;
			continue;
		}
		p += (unsigned)__builtin_ctzll(odd) / 8;
		if (*p != '\t')
			return p;
		p++;
	}
	while (p < end && !ends_text(*p))
		p++;
	return p;
}

bool http_value_is_clean(struct str value)
{
	return value.len == 0 || text_end(value.ptr, value.ptr + value.len) == value.ptr + value.len;
}

void http_head_init(struct http_head *h, size_t max_bytes, struct header_line *lines)
{
	*h = (struct http_head){.lines = lines, .max_bytes = max_bytes};
}

static enum head_state refuse(struct http_head *h, enum fault fault)
{
	h->fault = &faults[fault];
	return HEAD_BAD;
}

/* ---------------------------------------------------------------------------------------------------- request line */

/* Of the four forms of a target all but the tunnel's: "/path?query", "scheme://authority/path", "*". RFC 9112 3.2. */
static bool target_has_form(struct str target)
{
	size_t scheme;

	if (target.len == 0)
		return false;
	if (target.ptr[0] == '/')
		return true;
	scheme = str_find(target, ':');
	return str_equal(target, STR("*")) || (scheme > 0 && str_starts_with(str_from(target, scheme), STR("://")));
}

static enum head_state read_request_line(struct http_head *h, struct str line)
{
	size_t method_end = str_find(line, ' ');
	struct str rest = str_from(line, method_end + 1), version;

	h->method = str_head(line, method_end);
	h->target = str_head(rest, str_find(rest, ' '));
	version = str_from(rest, h->target.len + 1);
	h->has_request_line = true;
	if (!str_is_token(h->method))
		return refuse(h, ODD_REQUEST_LINE);
	if (version.len != 8 || memcmp(version.ptr, "HTTP/", 5) != 0 || !str_is_digit(version.ptr[5]) ||
		version.ptr[6] != '.' || !str_is_digit(version.ptr[7]))
		return refuse(h, ODD_REQUEST_LINE);
	if (version.ptr[5] != '1' || version.ptr[7] > '1')
		return refuse(h, ODD_VERSION);
	h->is_http_1_0 = version.ptr[7] == '0';
	if (str_equal(h->method, STR("CONNECT")))
		return refuse(h, TUNNEL);
	return target_has_form(h->target) ? HEAD_MORE : refuse(h, ODD_REQUEST_LINE);
}

/* ---------------------------------------------------------------------------------------------------- field lines */

static void read_connection(struct http_head *h, struct str value)
{
	while (value.len > 0) {
		size_t comma = str_find(value, ',');
		struct str option = str_trim(str_head(value, comma));

		h->says_close = h->says_close || str_equal_nocase(option, STR("close"));
		h->says_keep_alive = h->says_keep_alive || str_equal_nocase(option, STR("keep-alive"));
		value = str_from(value, comma + 1);
	}
}

/* Digits and nothing else; as many as one likes. False otherwise. */
static bool read_length(struct http_head *h, struct str value)
{
	uint64_t length = 0;

	for (size_t i = 0; i < value.len; i++) {
		uint64_t digit = (uint64_t)((unsigned char)value.ptr[i] - (unsigned)'0');

		if (!str_is_digit(value.ptr[i]))
			return false;
		length = length > (UINT64_MAX - digit) / 10 ? UINT64_MAX : length * 10 + digit;
	}
	h->length = length;
	h->n_lengths++;
	return value.len > 0;
}

/* The few fields that say how to read this request. as_sent: the value with what blanks stand behind it. */
static bool read_special(struct http_head *h, struct str name, struct str value, struct str as_sent)
{
	switch (name.len) {
	case sizeof("Host") - 1: h->n_hosts += str_equal_nocase(name, STR("Host")); break;
	case sizeof("Expect") - 1:
		if (str_equal_nocase(name, STR("Expect")) && str_equal_nocase(value, STR("100-continue")))
			h->expects_continue = true;
		break;
	case sizeof("Connection") - 1:
		if (str_equal_nocase(name, STR("Connection")))
			read_connection(h, value);
		break;
	case sizeof("Content-Length") - 1:
		return !str_equal_nocase(name, STR("Content-Length")) || read_length(h, value);
	case sizeof("Transfer-Encoding") - 1:
		if (!str_equal_nocase(name, STR("Transfer-Encoding")))
			break;
		h->n_codings++;
		/* "chunked " is chunked to some and unknown to others. */
		h->is_coding_odd = h->is_coding_odd || !str_equal_nocase(as_sent, STR("chunked"));
		break;
	default: break;
	}
	return true;
}

/* The byte behind the line is its CR, which is no part of a token, so the walk over the name stops there at the latest. */
static enum head_state read_field(struct http_head *h, struct str line)
{
	const char *end = line.ptr + line.len, *colon = line.ptr, *at;
	struct str name, value;

	while (str_is_token_byte(*colon))
		colon++;
	if (colon == line.ptr && (*colon == ' ' || *colon == '\t'))
		return refuse(h, FOLDED);
	if (colon == line.ptr || colon == end || *colon != ':')
		return refuse(h, ODD_NAME);
	if (h->n_lines == HTTP_LINES_MAX)
		return refuse(h, TOO_LARGE);
	at = colon + 1;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	name = str_make(line.ptr, (size_t)(colon - line.ptr));
	value = str_make(at, (size_t)(end - at));
	while (value.len > 0 && (value.ptr[value.len - 1] == ' ' || value.ptr[value.len - 1] == '\t'))
		value.len--;
	if (h->lines != NULL)
		h->lines[h->n_lines] = (struct header_line){name, value};
	h->n_lines++;
	return read_special(h, name, value, str_make(at, (size_t)(end - at))) ? HEAD_MORE : refuse(h, ODD_LENGTH);
}

/* RFC 9112 3.2 for Host, 6.1 to 6.3 for the rest. */
static enum head_state finish(struct http_head *h)
{
	if (h->n_lengths > 1)
		return refuse(h, ODD_LENGTH);
	if (h->n_codings > 0 && (h->n_lengths > 0 || h->is_http_1_0))
		return refuse(h, CODING_AND_LENGTH);
	if (h->n_codings > 1 || h->is_coding_odd)
		return refuse(h, ODD_CODING);
	if (h->n_hosts > 1 || (h->n_hosts == 0 && !h->is_http_1_0))
		return refuse(h, ODD_HOST);
	h->is_chunked = h->n_codings == 1;
	h->keeps_alive = !h->says_close && (h->says_keep_alive || !h->is_http_1_0);
	h->expects_continue = h->expects_continue && !h->is_http_1_0;
	h->n_bytes = h->scanned;
	return HEAD_DONE;
}

static enum head_state read_line(struct http_head *h, struct str line, bool is_first)
{
	if (h->has_request_line)
		return line.len == 0 ? finish(h) : read_field(h, line);
	/* Old clients send an empty line behind a body; one is let pass. RFC 9112 2.2. */
	if (line.len == 0 && is_first)
		return HEAD_MORE;
	return read_request_line(h, line);
}

enum head_state http_head_read(struct http_head *h, const char *bytes, size_t n)
{
	const char *end = bytes + (n < h->max_bytes ? n : h->max_bytes);

	for (;;) {
		const char *stop = text_end(bytes + h->scanned, end);
		size_t line_at = h->line_at;
		enum head_state state;

		h->scanned = (size_t)(stop - bytes);
		if (stop == end || (*stop == '\r' && stop + 1 == end))
			return n < h->max_bytes ? HEAD_MORE : refuse(h, TOO_LARGE);
		if (*stop != '\r' || stop[1] != '\n')
			return refuse(h, ODD_BYTE);
		h->scanned += 2;
		h->line_at = h->scanned;
		state = read_line(h, str_make(bytes + line_at, (size_t)(stop - bytes) - line_at), line_at == 0);
		if (state != HEAD_MORE)
			return state;
	}
}
