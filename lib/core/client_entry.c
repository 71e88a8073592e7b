/* SPDX-License-Identifier: MIT */
/*
 * One entry of X-Forwarded-For, or the value of a header that holds a single address. The address is tried first: text
 * that is one holds no odd byte and is neither empty nor a word, so the usual entry is read once and the reasons are only
 * worked out for the others. Their order is part of the contract: what the bytes are comes before what they mean.
 * Quotes mean nothing here; a reader that honours them can be led past the true entry by a client that opens one.
 */
#include "core/client_parts.h"

bool client_byte_is_control(char c)
{
	return (unsigned char)c < 0x20 || (unsigned char)c == 0x7f;
}

bool client_byte_is_high(char c)
{
	return (unsigned char)c >= 0x80;
}

bool client_address_usable(const struct ip *ip, enum client_reason *ret_reason)
{
	if (ip_is_unspecified(ip)) {
		*ret_reason = CLIENT_REASON_UNSPECIFIED_ADDRESS;
		return false;
	}
	if (ip_is_multicast(ip)) {
		*ret_reason = CLIENT_REASON_NOT_UNICAST;
		return false;
	}
	return true;
}

static enum client_reason entry_refusal(struct str entry)
{
	if (entry.len == 0)
		return CLIENT_REASON_EMPTY_ENTRY;
	for (size_t i = 0; i < entry.len; i++)
		if (client_byte_is_control(entry.ptr[i]) || client_byte_is_high(entry.ptr[i]))
			return CLIENT_REASON_ILLEGAL_BYTES;
	return str_equal_nocase(entry, STR("unknown")) ? CLIENT_REASON_UNKNOWN
						       : CLIENT_REASON_INVALID_ADDRESS;
}

bool client_entry_read(struct str entry, struct ip *ret_ip, enum client_reason *ret_reason)
{
	struct ip ip;

	if (!ip_parse_with_port(&ip, entry, NULL)) {
		*ret_reason = entry_refusal(entry);
		return false;
	}
	if (!client_address_usable(&ip, ret_reason))
		return false;
	*ret_ip = ip;
	return true;
}
