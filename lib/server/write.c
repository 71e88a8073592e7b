/* SPDX-License-Identifier: MIT */
/*
 * Nearly all that these pieces write has been chosen by a client at some point: addresses, keys, header values. There is one
 * way into JSON and one into HTML, and both leave plain ASCII.
 */
#include "server/write.h"

#include <time.h>

#define TIME_BYTES 32

void write_name(struct text *t, const char *separator_z, const char *name_z)
{
	text_z(t, separator_z);
	text_char(t, '"');
	text_z(t, name_z);
	text_z(t, "\": ");
}

void write_word(struct text *t, const char *separator_z, const char *name_z, struct str value)
{
	write_name(t, separator_z, name_z);
	text_json(t, value);
}

void write_number(struct text *t, const char *separator_z, const char *name_z, uint64_t value)
{
	write_name(t, separator_z, name_z);
	text_u64(t, value);
}

void write_bool(struct text *t, const char *separator_z, const char *name_z, bool value)
{
	write_name(t, separator_z, name_z);
	text_z(t, value ? "true" : "false");
}

static void put_time(struct text *t, ns since_1970, const char *between_z, const char *after_z)
{
	time_t seconds = (time_t)(since_1970 / NS_PER_S);
	char buffer[TIME_BYTES];
	struct tm tm;

	if (gmtime_r(&seconds, &tm) == NULL)
		return;
	text_str(t, str_make(buffer, strftime(buffer, sizeof(buffer), "%Y-%m-%d", &tm)));
	text_z(t, between_z);
	text_str(t, str_make(buffer, strftime(buffer, sizeof(buffer), "%H:%M:%S", &tm)));
	text_z(t, after_z);
}

void write_time(struct text *t, const char *separator_z, const char *name_z, ns since_1970)
{
	write_name(t, separator_z, name_z);
	if (since_1970 == 0) {
		text_z(t, "null");
		return;
	}
	text_char(t, '"');
	put_time(t, since_1970, "T", "Z\"");
}

void write_time_words(struct text *t, ns since_1970)
{
	if (since_1970 == 0)
		text_z(t, "never");
	else
		put_time(t, since_1970, " ", " UTC");
}

void write_html(struct text *t, struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		switch (s.ptr[i]) {
		case '&': text_z(t, "&amp;"); break;
		case '<': text_z(t, "&lt;"); break;
		case '>': text_z(t, "&gt;"); break;
		case '"': text_z(t, "&quot;"); break;
		case '\'': text_z(t, "&#39;"); break;
		case '\\': text_char(t, '\\'); break;
		default: text_visible(t, str_make(s.ptr + i, 1), 1); break;
		}
	}
}
