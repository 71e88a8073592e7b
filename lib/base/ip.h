/* SPDX-License-Identifier: MIT */
/*
 * ip: one IPv4 or IPv6 address.
 *
 * Model      16 bytes. IPv4 is held as ::ffff:a.b.c.d, so the mapped form and the plain one are the same address
 *            and compare by bytes. Parsed by hand: inet_aton and getaddrinfo read "010.0.0.1" as 8.0.0.1, and
 *            inet_pton stops at a NUL inside the text.
 * Threads    Pure.
 * Errors     ip_parse returns false; nothing else fails.
 * Limits     IPv4 octets without leading zeros. A zone ("%eth0": 1 to 32 of letters, digits and . _ ~ -) is accepted
 *            on fe80::/10 only and dropped: elsewhere it would be an endless supply of aliases.
 * Source     RFC 4291 2.2 (syntax), RFC 5952 (printing), RFC 6052 (NAT64 64:ff9b::/96).
 */
#ifndef POSTERN_BASE_IP_H
#define POSTERN_BASE_IP_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ip {
	uint8_t bytes[16];
};

/* Longest printed form and its NUL. */
#define IP_TEXT_BYTES 46

/* A bare address, no port, no brackets, nothing around it. */
bool ip_parse(struct ip *ret_ip, struct str s);

/* Only dotted decimal; only the IPv6 forms (mapped ones come out as IPv4). */
bool ip_parse_v4(struct ip *ret_ip, struct str s);
bool ip_parse_v6(struct ip *ret_ip, struct str s);

/* A "host:port" as clients and proxies write it: a.b.c.d[:port], [v6][:port], or bare v6. The port is 1 to 5 digits and
 * at most 65535. ret_port (may be NULL): the text of the port, empty if there is none. Not trimmed. */
bool ip_parse_with_port(struct ip *ret_ip, struct str s, struct str *ret_port);

struct ip ip_from_v4(uint32_t address_host_order);
struct ip ip_from_bytes(const uint8_t bytes[16]);

bool ip_is_v4(const struct ip *ip);
bool ip_equal(const struct ip *a, const struct ip *b);
int ip_compare(const struct ip *a, const struct ip *b);

bool ip_is_unspecified(const struct ip *ip); /* 0.0.0.0 and :: */
bool ip_is_multicast(const struct ip *ip);   /* 224.0.0.0/4, ff00::/8 and 255.255.255.255: no TCP source */

/* Loopback, RFC 1918, 100.64/10, link-local, ULA: reachable only from inside some network. */
bool ip_is_local(const struct ip *ip);

/* The IPv4 address inside 64:ff9b::/96, else false. */
bool ip_unwrap_nat64(const struct ip *ip, struct ip *ret_v4);

/* Clears all but the first bits bits, counted in the 128-bit form (IPv4 /24 is 120). */
void ip_mask(struct ip *ip, unsigned bits);

/* Canonical text and NUL: dotted decimal for IPv4, RFC 5952 for IPv6. Returns its length. */
size_t ip_print(const struct ip *ip, char out[IP_TEXT_BYTES]);

#endif
