/* SPDX-License-Identifier: MIT */
/*
 * log: lines for the operator, on stderr.
 *
 * Model      One call, one line: time (UTC, microseconds), level, event (a word of a closed list), a sentence, then
 *            named fields. Text or JSON form. All bytes outside 0x20..0x7e are escaped and every value is cut to 256
 *            bytes, so nothing a client sends can forge a line or drive a terminal. Lines under the level are dropped.
 * Threads    shared: one write(2) a line. log_setup before threads start, log_change at any time.
 * Blocking   as stderr does.
 * Errors     none; a failed write is forgotten.
 */
#ifndef POSTERN_BASE_LOG_H
#define POSTERN_BASE_LOG_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_format { LOG_AUTO /* text on a terminal, else JSON */, LOG_TEXT, LOG_JSON };

struct log_field {
	const char *name;
	struct str text;
	uint64_t number;
	bool is_number;
};

#define LOG_STR(name, s) ((struct log_field){(name), (s), 0, false})
#define LOG_Z(name, z) ((struct log_field){(name), str_from_z(z), 0, false})
#define LOG_NUM(name, n) ((struct log_field){(name), {0}, (uint64_t)(n), true})

/* fd: where lines go (2 in the daemon; a pipe or file in tests). */
void log_setup(enum log_level level, enum log_format format, int fd);

/* Lines from now on, to the same place. */
void log_change(enum log_level level, enum log_format format);
bool log_wants(enum log_level level);

/* event: closed list, see api and README; message: a sentence of ours, may hold printed values made by text_visible. */
void log_write(enum log_level level, const char *event, struct str message, const struct log_field *fields, size_t n);

/* The same without fields, for one-off lines; printf's format. */
void log_say(enum log_level level, const char *event, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* At most burst lines of one kind a period; says in the next line how many were left out. Caller's struct, confined or
 * guarded by the caller. */
struct log_limit {
	uint64_t period_ns, period_start_ns;
	unsigned burst, used;
	uint64_t suppressed;
};
bool log_limit_allows(struct log_limit *l, uint64_t now_ns);

#endif
