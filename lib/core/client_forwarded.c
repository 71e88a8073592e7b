/* SPDX-License-Identifier: MIT */
/*
 * Forwarded (RFC 7239), from the right. Read from the left, as a grammar suggests, one quote that the client leaves open
 * swallows the element that our own proxy appended. The last element was written by that proxy and is well formed, so its
 * own quotes pair up whatever stands left of it; for a well-formed header both directions agree. Going left a quote
 * closes (or opens) if the run of backslashes before it is even; an odd run makes it a quoted pair, which has
 * no business outside a string: there it means that the proxy copied client text into a string without escaping
 * it, and a string that seems to end further left may be the client's.
 * Parameters other than "for" are not judged: host= is often the client's own text, and odd bytes in it must not be a
 * way to make every request undecided. Space beside the "=" of for is outside the grammar (section 4) and refused.
 */
#include "core/client_parts.h"

/* A node with quoted pairs is copied to be read; the longest address with zone and port has 86 bytes. */
#define NODE_COPY_BYTES 128

/* Backslashes are counted once each: the run before one quote ends where another quote stands. */
static bool quote_is_escaped(struct str s, size_t at)
{
	size_t run = 0;

	while (run < at && s.ptr[at - run - 1] == '\\')
		run++;
	return run % 2 != 0;
}

bool client_forwarded_split(struct str line, struct str *ret_element, struct str *ret_rest, bool *ret_more)
{
	bool quoted = false;

	for (size_t i = line.len; i-- != 0;) {
		char c = line.ptr[i];

		if (c == '"') {
			if (!quote_is_escaped(line, i)) {
				quoted = !quoted;
			} else if (!quoted) {
				quoted = true;
				break;
			}
		} else if (c == ',' && !quoted) {
			*ret_element = str_from(line, i + 1);
			*ret_rest = str_head(line, i);
			*ret_more = true;
			return true;
		}
	}
	*ret_element = line;
	*ret_more = false;
	return !quoted;
}

/* Index behind the quoted string that starts at from, or s.len if it is not closed. */
static size_t skip_quoted(struct str s, size_t from)
{
	for (size_t i = from + 1; i < s.len; i++) {
		if (s.ptr[i] == '\\')
			i++;
		else if (s.ptr[i] == '"')
			return i + 1;
	}
	return s.len;
}

/* Splits the first pair off *rest. Quotes of the element are known to pair. */
static struct str take_pair(struct str *rest)
{
	size_t i = 0;
	struct str pair;

	while (i < rest->len && rest->ptr[i] != ';')
		i = rest->ptr[i] == '"' ? skip_quoted(*rest, i) : i + 1;
	pair = str_head(*rest, i);
	*rest = str_from(*rest, i + 1);
	return str_trim(pair);
}

static bool is_quoted_string(struct str s)
{
	return s.len >= 2 && s.ptr[0] == '"' && s.ptr[s.len - 1] == '"' && skip_quoted(s, 0) == s.len &&
	       !quote_is_escaped(s, s.len - 1);
}

/* Finds the value of for= in an element. */
static bool find_for(struct str element, struct str *ret_value, enum client_reason *ret_reason)
{
	bool found = false;

	while (element.len != 0) {
		struct str pair = take_pair(&element);
		size_t equals = str_find(pair, '=');
		struct str name = str_head(pair, equals);
		struct str value = str_from(pair, equals + 1);

		if (equals == pair.len || !str_equal_nocase(str_trim(name), STR("for")))
			continue;
		/* The pair has been trimmed, so white space behind the name stands beside the "=". */
		if (found || name.len != 3 || !(str_is_token(value) || is_quoted_string(value))) {
			*ret_reason = CLIENT_REASON_MALFORMED_HEADER;
			return false;
		}
		*ret_value = value;
		found = true;
	}
	if (!found)
		*ret_reason = CLIENT_REASON_FOR_MISSING;
	return found;
}

/* What stands inside the quotes, its quoted pairs resolved. Without any it stays where it is, however long. */
static bool unquote(struct str s, char copy[NODE_COPY_BYTES], struct str *ret)
{
	size_t n = 0;

	if (s.ptr[0] != '"') {
		*ret = s;
		return true;
	}
	s = str_make(s.ptr + 1, s.len - 2);
	if (str_find(s, '\\') == s.len) {
		*ret = s;
		return true;
	}
	for (size_t i = 0; i < s.len; i++) {
		if (n == NODE_COPY_BYTES)
			return false;
		if (s.ptr[i] == '\\')
			i++;
		copy[n++] = s.ptr[i];
	}
	*ret = str_make(copy, n);
	return true;
}

/* "_name" (RFC 7239 6.3): at least one byte behind the underscore. */
static bool is_obfuscated(struct str s)
{
	if (s.len < 2 || s.ptr[0] != '_')
		return false;
	for (size_t i = 1; i < s.len; i++) {
		char c = str_lower_char(s.ptr[i]);

		if (!(str_is_digit(c) || (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-'))
			return false;
	}
	return true;
}

static bool is_node_port(struct str s)
{
	unsigned port = 0;

	if (is_obfuscated(s))
		return true;
	if (s.len < 1 || s.len > 5)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (!str_is_digit(s.ptr[i]))
			return false;
		port = port * 10 + (unsigned)(s.ptr[i] - '0');
	}
	return port <= 65535;
}

/* node = nodename [ ":" node-port ] (RFC 7239 6); IPv6 only in brackets. */
static bool read_node(struct str node, struct ip *ret_ip, enum client_reason *ret_reason)
{
	bool is_v6 = node.len != 0 && node.ptr[0] == '[';
	size_t end = is_v6 ? str_find(node, ']') + 1 : str_find(node, ':');
	struct str name = str_head(node, end);
	struct str port = str_from(node, end);

	*ret_reason = CLIENT_REASON_INVALID_ADDRESS;
	if (is_v6 && end > node.len)
		return false;
	if (port.len != 0 && (port.ptr[0] != ':' || !is_node_port(str_from(port, 1))))
		return false;
	if (is_v6)
		return ip_parse_v6(ret_ip, str_make(name.ptr + 1, name.len - 2));
	if (ip_parse_v4(ret_ip, name))
		return true;
	if (str_equal_nocase(name, STR("unknown")))
		*ret_reason = CLIENT_REASON_UNKNOWN;
	else if (is_obfuscated(name))
		*ret_reason = CLIENT_REASON_OBFUSCATED;
	return false;
}

static bool has_control(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (client_byte_is_control(s.ptr[i]) && s.ptr[i] != '\t')
			return true;
	return false;
}

static bool has_high(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (client_byte_is_high(s.ptr[i]))
			return true;
	return false;
}

bool client_forwarded_read(struct str element, struct ip *ret_ip, enum client_reason *ret_reason)
{
	char copy[NODE_COPY_BYTES];
	struct str value, node;
	struct ip ip;

	if (element.len == 0) {
		*ret_reason = CLIENT_REASON_EMPTY_ENTRY;
		return false;
	}
	if (has_control(element)) {
		*ret_reason = CLIENT_REASON_ILLEGAL_BYTES;
		return false;
	}
	if (!find_for(element, &value, ret_reason))
		return false;
	if (has_high(value)) {
		*ret_reason = CLIENT_REASON_ILLEGAL_BYTES;
		return false;
	}
	if (!unquote(value, copy, &node)) {
		*ret_reason = CLIENT_REASON_INVALID_ADDRESS;
		return false;
	}
	if (!read_node(node, &ip, ret_reason) || !client_address_usable(&ip, ret_reason))
		return false;
	*ret_ip = ip;
	return true;
}
