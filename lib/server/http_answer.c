/* SPDX-License-Identifier: MIT */
/*
 * The length is known before the first byte is written, so there is one allocation and no check behind it. A body of usual
 * size is copied behind its header: one piece costs the kernel less than two.
 * Values were made here, but of what visitors sent: one with a line break in it would let a visitor write header lines of
 * ours, so they are looked at once more on their way out. Leaving such a line out instead would let a forged one live on.
 */
#include "server/http_answer.h"

#include "server/http_parse.h"

#include "base/must.h"

#include <time.h>

#define COPIED_BODY_BYTES ((size_t)4096)
#define LENGTH_DIGITS 20

static const struct {
	unsigned status;
	struct str line;
} status_lines[] = {
#define STATUS(status, phrase)                                                                               \
	{                                                                                                    \
		status, { "HTTP/1.1 " #status " " phrase "\r\n", sizeof("HTTP/1.1 " #status " " phrase "\r\n") - 1 } \
	}
	STATUS(200, "OK"),
	STATUS(429, "Too Many Requests"),
	STATUS(403, "Forbidden"),
	STATUS(401, "Unauthorized"),
	STATUS(400, "Bad Request"),
	STATUS(404, "Not Found"),
	STATUS(405, "Method Not Allowed"),
	STATUS(413, "Content Too Large"),
	STATUS(415, "Unsupported Media Type"),
	STATUS(431, "Request Header Fields Too Large"),
	STATUS(503, "Service Unavailable"),
	STATUS(505, "HTTP Version Not Supported"),
#undef STATUS
};

#define N_STATUS_LINES (sizeof(status_lines) / sizeof(status_lines[0]))

/* A status without a phrase of its own, which may be empty: RFC 9112 4. */
static struct str status_line_other(unsigned status, char ret[sizeof("HTTP/1.1 000 \r\n")])
{
	memcpy(ret, "HTTP/1.1 000 \r\n", sizeof("HTTP/1.1 000 \r\n"));
	must(status >= 100 && status <= 999);
	ret[9] = (char)('0' + status / 100);
	ret[10] = (char)('0' + status / 10 % 10);
	ret[11] = (char)('0' + status % 10);
	return str_make(ret, sizeof("HTTP/1.1 000 \r\n") - 1);
}

static struct str status_line(unsigned status, char spare[sizeof("HTTP/1.1 000 \r\n")])
{
	for (size_t i = 0; i < N_STATUS_LINES; i++) {
		if (status_lines[i].status == status)
			return status_lines[i].line;
	}
	return status_line_other(status, spare);
}

static char *put(char *at, struct str s)
{
	if (s.len > 0)
		memcpy(at, s.ptr, s.len);
	return at + s.len;
}

/* Into the end of digits. */
static struct str decimal(size_t v, char digits[LENGTH_DIGITS])
{
	size_t at = LENGTH_DIGITS;

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	return str_make(digits + at, LENGTH_DIGITS - at);
}

static struct str connection_line(const struct http_answer_form *form)
{
	if (form->is_last)
		return STR("Connection: close\r\n");
	return form->to_http_1_0 ? STR("Connection: keep-alive\r\n") : STR("");
}

bool http_answer_write(struct exchange *x, const struct http_answer_form *form, struct str ret[2])
{
	const struct http_answer *a = &x->answer;
	char spare[sizeof("HTTP/1.1 000 \r\n")], digits[LENGTH_DIGITS];
	struct str status = status_line(a->status, spare), length = decimal(a->body.len, digits);
	struct str connection = connection_line(form), body = form->without_body ? STR("") : a->body;
	struct str copied = body.len <= COPIED_BODY_BYTES ? body : STR("");
	size_t n = status.len + HTTP_DATE_BYTES + connection.len + sizeof("Content-Length: \r\n\r\n") - 1 + length.len +
		   2 + copied.len;
	char *bytes, *at;

	for (size_t i = 0; i < a->n_headers; i++) {
		const struct header_line *line = &a->headers[i];

		if (!http_value_is_clean(line->value))
			return false;
		n += line->name.len + line->value.len + sizeof(": \r\n") - 1;
	}
	bytes = arena_alloc(&x->arena, n);
	if (bytes == NULL)
		return false;
	at = put(bytes, status);
	at = put(at, str_make(form->date->line, HTTP_DATE_BYTES));
	at = put(at, connection);
	for (size_t i = 0; i < a->n_headers; i++) {
		at = put(at, a->headers[i].name);
		*at++ = ':';
		*at++ = ' ';
		at = put(at, a->headers[i].value);
		*at++ = '\r';
		*at++ = '\n';
	}
	at = put(at, STR("Content-Length: "));
	at = put(at, length);
	at = put(at, STR("\r\n\r\n"));
	at = put(at, copied);
	ret[0] = str_make(bytes, (size_t)(at - bytes));
	ret[1] = copied.len == body.len ? STR("") : body;
	return true;
}

struct str http_answer_failure(void)
{
	return STR("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
		   "Connection: close\r\nContent-Length: 22\r\n\r\n{\"error\": \"internal\"}\n");
}

/* ---------------------------------------------------------------------------------------------------- date */

static void put_number(char *at, unsigned v, unsigned digits)
{
	while (digits-- > 0) {
		at[digits] = (char)('0' + v % 10);
		v /= 10;
	}
}

void http_date_write(struct http_date *d, uint64_t unix_s)
{
	static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t when = (time_t)unix_s;
	struct tm tm;

	must(gmtime_r(&when, &tm) != NULL);
	memcpy(d->line, "Date: Sun, 00 Jan 0000 00:00:00 GMT\r\n", HTTP_DATE_BYTES);
	memcpy(d->line + 6, days + 3 * tm.tm_wday, 3);
	put_number(d->line + 11, (unsigned)tm.tm_mday, 2);
	memcpy(d->line + 14, months + 3 * tm.tm_mon, 3);
	put_number(d->line + 18, (unsigned)tm.tm_year + 1900, 4);
	put_number(d->line + 23, (unsigned)tm.tm_hour, 2);
	put_number(d->line + 26, (unsigned)tm.tm_min, 2);
	put_number(d->line + 29, (unsigned)tm.tm_sec, 2);
}

void http_date_refresh(struct http_date *d, ns now)
{
	ns wall;

	if (now < d->due)
		return;
	wall = clock_wall_ns();
	http_date_write(d, wall / NS_PER_S);
	d->due = now + (NS_PER_S - wall % NS_PER_S);
}
