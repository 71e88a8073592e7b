/* SPDX-License-Identifier: MIT */
/*
 * Equal means the same address, however it is written: a gateway may spell IPv4 as a mapped address in one place and not in
 * the other. Only a bare address can be equal; an entry with a port was written by somebody else.
 */
#include "adapter/hop.h"

#include "base/ip.h"

static bool is_same_address(struct str a, struct str b)
{
	struct ip x, y;

	return str_equal(a, b) ? a.len > 0 : ip_parse(&x, a) && ip_parse(&y, b) && ip_equal(&x, &y);
}

/* The index of the last line, or n. */
static size_t find_last(const struct header_line *lines, size_t n, struct str *ret_entry)
{
	static const struct str name = STR("X-Forwarded-For");
	size_t i = n, comma;

	while (i > 0 && !(lines[i - 1].name.len == name.len && str_equal_nocase(lines[i - 1].name, name)))
		i--;
	if (i == 0)
		return n;
	comma = str_find_last(lines[i - 1].value, ',');
	*ret_entry = str_trim(comma < lines[i - 1].value.len ? str_from(lines[i - 1].value, comma + 1) :
							      lines[i - 1].value);
	return i - 1;
}

/* How many lines are left. */
static size_t drop_last(struct header_line *lines, size_t n, size_t line)
{
	struct str value = lines[line].value;
	size_t comma = str_find_last(value, ',');
	struct str rest = comma < value.len ? str_trim(str_head(value, comma)) : STR("");

	if (rest.len > 0) {
		lines[line].value = rest;
		return n;
	}
	memmove(&lines[line], &lines[line + 1], (n - line - 1) * sizeof(*lines));
	return n - 1;
}

bool hop_consume_last(struct header_line *lines, size_t *n, struct str *ret_entry)
{
	struct str entry;
	size_t line = find_last(lines, *n, &entry);

	if (line == *n)
		return false;
	*n = drop_last(lines, *n, line);
	*ret_entry = entry;
	return true;
}

size_t hop_consume_equal(struct header_line *lines, size_t n, struct str remote_addr)
{
	struct str entry;
	size_t line = find_last(lines, n, &entry);

	return line < n && is_same_address(entry, remote_addr) ? drop_last(lines, n, line) : n;
}
