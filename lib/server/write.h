/* SPDX-License-Identifier: MIT */
/*
 * write: small pieces that the answers of the admin listener are made of.
 *
 * Threads    Pure.
 * Errors     the text's overflow mark.
 */
#ifndef POSTERN_SERVER_WRITE_H
#define POSTERN_SERVER_WRITE_H

#include "base/clock.h"
#include "base/text.h"

#include <stdbool.h>

/* separator, then "name": */
void write_name(struct text *t, const char *separator_z, const char *name_z);

/* The same with a value behind it; a JSON string, number, truth value, or time ("2026-01-02T03:04:05Z"; 0: null). */
void write_word(struct text *t, const char *separator_z, const char *name_z, struct str value);
void write_number(struct text *t, const char *separator_z, const char *name_z, uint64_t value);
void write_bool(struct text *t, const char *separator_z, const char *name_z, bool value);
void write_time(struct text *t, const char *separator_z, const char *name_z, ns since_1970);

/* "2026-01-02 03:04:05 UTC", or "never" for 0. */
void write_time_words(struct text *t, ns since_1970);

/* s in plain ASCII as HTML: markup and quotes as entities, bytes outside 0x20..0x7e as \xNN, so that nothing a client sends
 * is more than text, wherever in an element or in a quoted attribute it stands. */
void write_html(struct text *t, struct str s);

#endif
