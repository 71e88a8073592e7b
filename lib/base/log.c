/* SPDX-License-Identifier: MIT */
/*
 * A line is composed on the stack and leaves in one write(2) of at most PIPE_BUF bytes: that much a pipe takes whole,
 * so lines of several threads, or of several processes that share a stderr, never mix. A client that sends values which
 * grow sixfold when escaped must not push the fields behind them out of the line: if it does not fit, it is composed
 * again with all values cut shorter. The escaping is done here, not by a JSON library: those refuse bytes that are not
 * UTF-8, or pass on U+009B and U+202E, which drive terminals.
 */
#include "base/log.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Atomic, since level and form may change while other threads write. */
static struct {
	atomic_uint level;
	atomic_bool is_json;
	int fd;
} sink = {LOG_INFO, false, STDERR_FILENO};

struct line {
	const char *ts_z;
	enum log_level level;
	const char *event;
	struct str message;
	const struct log_field *fields;
	size_t n;
	size_t value_max_bytes;
};

static const char *const level_names[] = {
	[LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};

void log_setup(enum log_level level, enum log_format format, int fd)
{
	sink.fd = fd;
	log_change(level, format);
}

void log_change(enum log_level level, enum log_format format)
{
	bool is_json = format == LOG_JSON || (format == LOG_AUTO && !isatty(sink.fd));

	atomic_store_explicit(&sink.level, level, memory_order_relaxed);
	atomic_store_explicit(&sink.is_json, is_json, memory_order_relaxed);
}

bool log_wants(enum log_level level)
{
	return level >= atomic_load_explicit(&sink.level, memory_order_relaxed);
}

/* Behind a value that was cut: how long it is in truth. */
static void put_cut_mark(struct text *t, size_t len)
{
	text_z(t, "...(");
	text_u64(t, len);
	text_z(t, " bytes)");
}

static void put_json(struct text *t, struct str s, size_t max_bytes)
{
	text_json(t, str_head(s, max_bytes));
	if (s.len > max_bytes && !t->overflow) {
		t->len--;
		put_cut_mark(t, s.len);
		text_char(t, '"');
	}
}

/* Visible bytes as they are, but those in escaped behind a backslash; all others as \xNN. */
static void put_plain(struct text *t, struct str s, size_t max_bytes, const char *escaped_z)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < s.len && i < max_bytes; i++) {
		unsigned char c = (unsigned char)s.ptr[i];

		if (c < ' ' || c > '~') {
			char hex[4] = {'\\', 'x', digits[c >> 4], digits[c & 15]};

			text_str(t, str_make(hex, sizeof(hex)));
			continue;
		}
		if (strchr(escaped_z, c) != NULL)
			text_char(t, '\\');
		text_char(t, (char)c);
	}
	if (s.len > max_bytes)
		put_cut_mark(t, s.len);
}

/* A word stands bare; what could be taken for something else stands in quotes. */
static void put_value(struct text *t, struct str s, size_t max_bytes)
{
	bool bare = s.len > 0 && s.len <= max_bytes;

	for (size_t i = 0; bare && i < s.len; i++)
		bare = s.ptr[i] > ' ' && s.ptr[i] <= '~' && strchr("\"\\=", s.ptr[i]) == NULL;
	text_z(t, bare ? "" : "\"");
	put_plain(t, s, max_bytes, "\"\\");
	text_z(t, bare ? "" : "\"");
}

static void compose_json(struct text *t, const struct line *l)
{
	text_z(t, "{\"ts\":\"");
	text_z(t, l->ts_z);
	text_z(t, "\",\"level\":\"");
	text_z(t, level_names[l->level]);
	text_z(t, "\",\"event\":");
	text_json(t, str_from_z(l->event));
	text_z(t, ",\"msg\":");
	put_json(t, l->message, 4 * l->value_max_bytes);
	for (size_t i = 0; i < l->n; i++) {
		text_char(t, ',');
		text_json(t, str_from_z(l->fields[i].name));
		text_char(t, ':');
		if (l->fields[i].is_number)
			text_u64(t, l->fields[i].number);
		else
			put_json(t, l->fields[i].text, l->value_max_bytes);
	}
	text_z(t, "}\n");
}

static void compose_text(struct text *t, const struct line *l)
{
	text_z(t, l->ts_z);
	text_char(t, ' ');
	text_z(t, level_names[l->level]);
	text_char(t, ' ');
	text_z(t, l->event);
	text_z(t, ": ");
	/* The backslashes of a message are those of text_visible: escaped once is enough. */
	put_plain(t, l->message, 4 * l->value_max_bytes, "");
	for (size_t i = 0; i < l->n; i++) {
		text_char(t, ' ');
		text_z(t, l->fields[i].name);
		text_char(t, '=');
		if (l->fields[i].is_number)
			text_u64(t, l->fields[i].number);
		else
			put_value(t, l->fields[i].text, l->value_max_bytes);
	}
	text_char(t, '\n');
}

/* "2026-01-02T03:04:05.678901Z" (RFC 3339). */
static void print_time(char out[40])
{
	ns now = clock_wall_ns();
	time_t seconds = (time_t)(now / NS_PER_S);
	struct tm utc;
	size_t len;

	(void)gmtime_r(&seconds, &utc);
	len = strftime(out, 40, "%Y-%m-%dT%H:%M:%S", &utc);
	(void)snprintf(out + len, 40 - len, ".%06uZ", (unsigned)(now % NS_PER_S / 1000));
}

void log_write(
	enum log_level level, const char *event, struct str message, const struct log_field *fields, size_t n)
{
	/* Tried in turn until the line fits. The last one always does: it has no fields. */
	static const struct {
		size_t value_max_bytes;
		bool fields;
	} sizes[] = {{256, true}, {64, true}, {16, true}, {16, false}};
	char buffer[PIPE_BUF], ts_z[40];
	int saved_errno = errno;
	bool is_json = atomic_load_explicit(&sink.is_json, memory_order_relaxed);
	ssize_t written;
	struct text t;

	if (!log_wants(level))
		return;
	print_time(ts_z);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct line l = {ts_z, level, event, message, fields, sizes[i].fields ? n : 0,
			sizes[i].value_max_bytes};

		text_init(&t, buffer, sizeof(buffer));
		if (is_json)
			compose_json(&t, &l);
		else
			compose_text(&t, &l);
		if (!t.overflow)
			break;
	}
	/* Nobody is left to be told if this fails. */
	written = write(sink.fd, t.ptr, t.len);
	(void)written;
	errno = saved_errno;
}

void log_say(enum log_level level, const char *event, const char *format, ...)
{
	char message_z[1024];
	va_list args;

	if (!log_wants(level))
		return;
	va_start(args, format);
	(void)vsnprintf(message_z, sizeof(message_z), format, args);
	va_end(args);
	log_write(level, event, str_from_z(message_z), NULL, 0);
}

bool log_limit_allows(struct log_limit *l, uint64_t now_ns)
{
	if (now_ns - l->period_start_ns >= l->period_ns) {
		l->period_start_ns = now_ns;
		l->used = 0;
	}
	if (l->used < l->burst) {
		l->used++;
		return true;
	}
	l->suppressed++;
	return false;
}
