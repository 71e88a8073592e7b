/* SPDX-License-Identifier: MIT */
/*
 * Addresses, read by hand from a slice and written by hand into a buffer. The system's parsers are no use
 * here: they want a terminated copy (a NUL inside header text would cut it), and the lenient ones take octal
 * and short forms, so that two programs in a row see two clients in one text.
 * Each reader looks at a bounded number of bytes, however long the text. The first colon tells the families
 * apart: a group of IPv6 has at most four digits, so it stands within the first five bytes, while the
 * shortest dotted decimal has seven.
 */
#include "base/ip.h"

#include "base/must.h"

#include <endian.h>

#define V6_COLON_WITHIN 5
#define V6_TEXT_MAX 45
#define ZONE_MAX 32
#define PORT_DIGITS_MAX 5
#define WITH_PORT_TEXT_MAX (1 + V6_TEXT_MAX + 1 + ZONE_MAX + 2 + PORT_DIGITS_MAX)
#define NO_GAP 99

static const uint8_t mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
static const uint8_t nat64_prefix[12] = {0x00, 0x64, 0xff, 0x9b};

/* Reads four numbers from p on, however the text goes on; NULL if they are not there. */
static const char *read_v4(uint32_t *ret_address, const char *p, const char *end)
{
	uint32_t address = 0;

	for (int i = 0; i < 4; i++) {
		unsigned v;

		if (i != 0 && (p == end || *p++ != '.'))
			return NULL;
		if (p == end || !str_is_digit(*p))
			return NULL;
		v = (unsigned)(*p++ - '0');
		/* A digit behind a leading zero stays unread, and fails as the dot or end that it is not. */
		while (v != 0 && p != end && str_is_digit(*p)) {
			v = v * 10 + (unsigned)(*p++ - '0');
			if (v > 255)
				return NULL;
		}
		address = address << 8 | v;
	}
	*ret_address = address;
	return p;
}

struct ip ip_from_v4(uint32_t address_host_order)
{
	/* Written in the two halves in which range.c reads it. */
	const uint64_t halves[2] = {0, htobe64((uint64_t)0xffff << 32 | address_host_order)};
	struct ip ip;

	memcpy(ip.bytes, halves, sizeof(halves));
	return ip;
}

static const char *read_group(const char *p, const char *end, unsigned *ret_value)
{
	const char *limit = end - p > 4 ? p + 4 : end;
	unsigned v = 0;

	for (; p != limit; p++) {
		unsigned digit = (unsigned char)*p - (unsigned)'0';
		unsigned letter = ((unsigned char)*p | 0x20u) - (unsigned)'a';

		if (digit < 10)
			v = v << 4 | digit;
		else if (letter < 6)
			v = v << 4 | (letter + 10);
		else
			break;
	}
	*ret_value = v;
	return p;
}

/* RFC 4291 2.2, forms 1 to 3, without a zone. */
static bool read_v6(uint8_t out[16], const char *p, const char *end)
{
	size_t n = 0, gap = NO_GAP;

	if (end - p >= 2 && p[0] == ':' && p[1] == ':') {
		gap = 0;
		p += 2;
	}
	while (p != end) {
		unsigned v;
		const char *next = read_group(p, end, &v);

		if (next == p || n == 16)
			return false;
		if (next != end && *next == '.') {
			uint32_t address;

			if (n > 12 || read_v4(&address, p, end) != end)
				return false;
			for (int shift = 24; shift >= 0; shift -= 8)
				out[n++] = (uint8_t)(address >> shift);
			break;
		}
		out[n++] = (uint8_t)(v >> 8);
		out[n++] = (uint8_t)v;
		if (next == end)
			break;
		if (*next != ':' || next + 1 == end)
			return false;
		p = next + 1;
		if (*p == ':') {
			if (gap != NO_GAP)
				return false;
			gap = n;
			p++;
		}
	}
	if (gap == NO_GAP)
		return n == 16;
	/* "::" stands for at least one group. */
	if (n > 14)
		return false;
	memmove(out + 16 - (n - gap), out + gap, n - gap);
	memset(out + gap, 0, 16 - n);
	return true;
}

static bool zone_is_valid(struct str zone)
{
	if (zone.len == 0 || zone.len > ZONE_MAX)
		return false;
	for (size_t i = 0; i < zone.len; i++) {
		char c = str_lower_char(zone.ptr[i]);

		if (!(c >= 'a' && c <= 'z') && !str_is_digit(c) && c != '.' && c != '_' && c != '~' &&
			c != '-')
			return false;
	}
	return true;
}

static bool is_link_local_v6(const struct ip *ip)
{
	return ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
}

bool ip_parse_v4(struct ip *ret_ip, struct str s)
{
	uint32_t address;

	if (s.len == 0 || read_v4(&address, s.ptr, s.ptr + s.len) != s.ptr + s.len)
		return false;
	*ret_ip = ip_from_v4(address);
	return true;
}

bool ip_parse_v6(struct ip *ret_ip, struct str s)
{
	struct ip ip;
	size_t len;

	if (s.len < 2 || s.len > V6_TEXT_MAX + 1 + ZONE_MAX)
		return false;
	len = str_find(s, '%');
	if (!read_v6(ip.bytes, s.ptr, s.ptr + len))
		return false;
	if (len != s.len && (!is_link_local_v6(&ip) || !zone_is_valid(str_from(s, len + 1))))
		return false;
	*ret_ip = ip;
	return true;
}

static bool is_v6_text(struct str s)
{
	size_t n = s.len < V6_COLON_WITHIN ? s.len : V6_COLON_WITHIN;

	for (size_t i = 0; i < n; i++)
		if (s.ptr[i] == ':')
			return true;
	return false;
}

bool ip_parse(struct ip *ret_ip, struct str s)
{
	return is_v6_text(s) ? ip_parse_v6(ret_ip, s) : ip_parse_v4(ret_ip, s);
}

static bool port_is_valid(struct str port)
{
	unsigned v = 0;

	if (port.len == 0 || port.len > PORT_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < port.len; i++) {
		if (!str_is_digit(port.ptr[i]))
			return false;
		v = v * 10 + (unsigned)(port.ptr[i] - '0');
	}
	return v <= UINT16_MAX;
}

/* What stands behind an address: nothing, or a colon and a port. */
static bool read_port(struct str rest, struct str *ret_port)
{
	if (rest.len != 0 && (rest.ptr[0] != ':' || !port_is_valid(str_from(rest, 1))))
		return false;
	if (ret_port != NULL)
		*ret_port = str_from(rest, 1);
	return true;
}

bool ip_parse_with_port(struct ip *ret_ip, struct str s, struct str *ret_port)
{
	struct ip ip;
	struct str rest;

	if (s.len == 0 || s.len > WITH_PORT_TEXT_MAX)
		return false;
	if (s.ptr[0] == '[') {
		size_t close = str_find(s, ']');

		if (close == s.len || !ip_parse_v6(&ip, str_make(s.ptr + 1, close - 1)))
			return false;
		rest = str_from(s, close + 1);
	} else if (is_v6_text(s)) {
		if (!ip_parse_v6(&ip, s))
			return false;
		rest = str_from(s, s.len);
	} else {
		uint32_t address;
		const char *end = read_v4(&address, s.ptr, s.ptr + s.len);

		if (end == NULL)
			return false;
		ip = ip_from_v4(address);
		rest = str_from(s, (size_t)(end - s.ptr));
	}
	if (!read_port(rest, ret_port))
		return false;
	*ret_ip = ip;
	return true;
}

struct ip ip_from_bytes(const uint8_t bytes[16])
{
	struct ip ip;

	memcpy(ip.bytes, bytes, sizeof(ip.bytes));
	return ip;
}

bool ip_is_v4(const struct ip *ip)
{
	return memcmp(ip->bytes, mapped_prefix, sizeof(mapped_prefix)) == 0;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

int ip_compare(const struct ip *a, const struct ip *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

bool ip_is_unspecified(const struct ip *ip)
{
	static const uint8_t zero[16];

	if (ip_is_v4(ip))
		return memcmp(ip->bytes + 12, zero, 4) == 0;
	return memcmp(ip->bytes, zero, sizeof(zero)) == 0;
}

bool ip_is_multicast(const struct ip *ip)
{
	static const uint8_t broadcast[4] = {255, 255, 255, 255};

	if (ip_is_v4(ip))
		return (ip->bytes[12] & 0xf0) == 224 ||
		       memcmp(ip->bytes + 12, broadcast, sizeof(broadcast)) == 0;
	return ip->bytes[0] == 0xff;
}

bool ip_is_local(const struct ip *ip)
{
	static const uint8_t loopback_v6[16] = {[15] = 1};
	const uint8_t *four = ip->bytes + 12;

	if (!ip_is_v4(ip))
		return (ip->bytes[0] & 0xfe) == 0xfc || is_link_local_v6(ip) ||
		       memcmp(ip->bytes, loopback_v6, sizeof(loopback_v6)) == 0;
	switch (four[0]) {
	case 10:
	case 127: return true;
	case 100: return (four[1] & 0xc0) == 64;
	case 169: return four[1] == 254;
	case 172: return (four[1] & 0xf0) == 16;
	case 192: return four[1] == 168;
	default: return false;
	}
}

bool ip_unwrap_nat64(const struct ip *ip, struct ip *ret_v4)
{
	if (memcmp(ip->bytes, nat64_prefix, sizeof(nat64_prefix)) != 0)
		return false;
	memmove(ret_v4->bytes + 12, ip->bytes + 12, 4);
	memcpy(ret_v4->bytes, mapped_prefix, sizeof(mapped_prefix));
	return true;
}

void ip_mask(struct ip *ip, unsigned bits)
{
	unsigned whole = bits / 8;

	must(bits <= 128);
	if (whole == 16)
		return;
	ip->bytes[whole] &= (uint8_t)(0xff00u >> bits % 8);
	memset(ip->bytes + whole + 1, 0, 15 - whole);
}

static char *put_octet(char *p, unsigned v)
{
	if (v >= 100)
		*p++ = (char)('0' + v / 100);
	if (v >= 10)
		*p++ = (char)('0' + v / 10 % 10);
	*p++ = (char)('0' + v % 10);
	return p;
}

static char *put_group(char *p, unsigned v)
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned shift = v >= 0x1000 ? 12 : v >= 0x100 ? 8 : v >= 0x10 ? 4 : 0; shift != 0; shift -= 4)
		*p++ = digits[v >> shift & 15];
	*p++ = digits[v & 15];
	return p;
}

/* The longest run of at least two zero groups, the first of equals (RFC 5952 4.2). */
static unsigned longest_zeros(const unsigned groups[8], unsigned *ret_len)
{
	unsigned best = 8, best_len = 1;

	for (unsigned i = 0; i < 8; i++) {
		unsigned len = 0;

		while (i + len < 8 && groups[i + len] == 0)
			len++;
		if (len > best_len) {
			best = i;
			best_len = len;
		}
		i += len;
	}
	*ret_len = best_len;
	return best;
}

static char *print_v6(const struct ip *ip, char *p)
{
	unsigned groups[8], zeros, zeros_len;

	for (unsigned i = 0; i < 8; i++)
		groups[i] = (unsigned)(ip->bytes[2 * i] << 8 | ip->bytes[2 * i + 1]);
	zeros = longest_zeros(groups, &zeros_len);
	for (unsigned i = 0; i < 8; i++) {
		if (i == zeros) {
			*p++ = ':';
			*p++ = ':';
			i += zeros_len - 1;
			continue;
		}
		if (i != 0 && i != zeros + zeros_len)
			*p++ = ':';
		p = put_group(p, groups[i]);
	}
	return p;
}

size_t ip_print(const struct ip *ip, char out[IP_TEXT_BYTES])
{
	char *p = out;

	if (ip_is_v4(ip)) {
		for (int i = 12; i < 16; i++) {
			if (i != 12)
				*p++ = '.';
			p = put_octet(p, ip->bytes[i]);
		}
	} else {
		p = print_v6(ip, p);
	}
	*p = '\0';
	return (size_t)(p - out);
}
