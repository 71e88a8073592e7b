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

size_t hop_consume_equal(struct header_line *lines, size_t n, struct str remote_addr)
{
	static const struct str name = STR("X-Forwarded-For");
	size_t last = n, comma;
	struct str value, rest;

	for (size_t i = 0; i < n; i++) {
		if (lines[i].name.len == name.len && str_equal_nocase(lines[i].name, name))
			last = i;
	}
	if (last == n)
		return n;
	value = lines[last].value;
	comma = str_find_last(value, ',');
	if (!is_same_address(str_trim(comma < value.len ? str_from(value, comma + 1) : value), remote_addr))
		return n;
	rest = comma < value.len ? str_trim(str_head(value, comma)) : STR("");
	if (rest.len > 0) {
		lines[last].value = rest;
		return n;
	}
	memmove(&lines[last], &lines[last + 1], (n - last - 1) * sizeof(*lines));
	return n - 1;
}
