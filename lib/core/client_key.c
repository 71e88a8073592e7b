/* SPDX-License-Identifier: MIT */
/*
 * From address to key. A key is a tag, the prefix length and the masked bytes of its family; the tag has a bit for
 * undecided, whose keys are a space of their own, so that junk cannot drain the bucket of the proxy that it
 * falls back to. Folding comes before masking, always: an IPv6 prefix laid over mapped IPv4, or over NAT64, makes one key of
 * the whole IPv4 Internet. A 6to4 site (2002::/16, RFC 3056) is one IPv4 host that owns a /48. Local scopes are kept
 * whole: the prefix of a container network holds everybody there is.
 */
#include "core/client.h"

#include "base/text.h"

#define KEY_NONE 0u
#define KEY_V4 4u
#define KEY_V6 6u
#define KEY_UNDECIDED 0x80u

#define KEY_NONE_BYTES 1
#define KEY_V4_BYTES 6
#define KEY_V6_BYTES 18

#define V4_AT 12 /* where the mapped form holds the IPv4 address */
#define SIXTOFOUR_BITS 48

_Static_assert(KEY_V6_BYTES <= CLIENT_KEY_BYTES, "the longest key fits");

static bool ip_is_6to4(const struct ip *ip)
{
	return ip->bytes[0] == 0x20 && ip->bytes[1] == 0x02;
}

static size_t key_write(const struct client *c, unsigned v4_bits, unsigned v6_bits, bool narrow,
	uint8_t out[CLIENT_KEY_BYTES])
{
	unsigned undecided = c->decided ? 0 : KEY_UNDECIDED;
	struct ip ip = c->address, v4;

	if (!c->has_address) {
		out[0] = KEY_NONE;
		return KEY_NONE_BYTES;
	}
	if (ip_unwrap_nat64(&ip, &v4))
		ip = v4;
	if (ip_is_v4(&ip)) {
		ip_mask(&ip, 8 * V4_AT + v4_bits);
		out[0] = (uint8_t)(KEY_V4 | undecided);
		out[1] = (uint8_t)v4_bits;
		memcpy(out + 2, ip.bytes + V4_AT, 4);
		return KEY_V4_BYTES;
	}
	if (narrow && ip_is_local(&ip))
		v6_bits = 128;
	else if (ip_is_6to4(&ip))
		v6_bits = narrow || v6_bits > SIXTOFOUR_BITS ? SIXTOFOUR_BITS : v6_bits;
	ip_mask(&ip, v6_bits);
	out[0] = (uint8_t)(KEY_V6 | undecided);
	out[1] = (uint8_t)v6_bits;
	memcpy(out + 2, ip.bytes, 16);
	return KEY_V6_BYTES;
}

size_t client_key(const struct client_rule *rule, const struct client *c, uint8_t out[CLIENT_KEY_BYTES])
{
	return key_write(c, 32, rule->ipv6_prefix, true, out);
}

size_t client_network_key(
	const struct client_rule *rule, const struct client *c, uint8_t out[CLIENT_KEY_BYTES])
{
	return key_write(c, rule->network_v4, rule->network_v6, false, out);
}

size_t client_key_text(const uint8_t *key, size_t len, char out[CLIENT_KEY_TEXT_BYTES])
{
	struct ip ip = {{0}};
	char address[IP_TEXT_BYTES];
	struct text t;
	unsigned family = len != 0 ? key[0] & ~KEY_UNDECIDED : KEY_NONE;

	text_init(&t, out, CLIENT_KEY_TEXT_BYTES);
	if (family == KEY_V4 && len == KEY_V4_BYTES) {
		uint32_t v4 =
			(uint32_t)key[2] << 24 | (uint32_t)key[3] << 16 | (uint32_t)key[4] << 8 | key[5];

		ip = ip_from_v4(v4);
	} else if (family == KEY_V6 && len == KEY_V6_BYTES) {
		ip = ip_from_bytes(key + 2);
	} else {
		text_str(&t, STR("none"));
		return t.len;
	}
	text_str(&t, key[0] & KEY_UNDECIDED ? STR("u:") : STR(""));
	text_str(&t, family == KEY_V4 ? STR("4:") : STR("6:"));
	text_str(&t, str_make(address, ip_print(&ip, address)));
	if (family == KEY_V6 || key[1] != 32) {
		text_char(&t, '/');
		text_u64(&t, key[1]);
	}
	return t.len;
}
