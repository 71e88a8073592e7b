/* SPDX-License-Identifier: MIT */
/*
 * The key is compared as a digest in constant time: neither its length nor a common beginning can be told from the time it
 * takes. Two lines of it are a wrong key, because one of them was not written by the caller.
 */
#include "server/gate.h"

#include "base/digest.h"
#include "base/range.h"

bool gate_lists(const struct config *config, const struct sockaddr *sa, socklen_t len,
	char ret_address[GATE_ADDRESS_BYTES], size_t *ret_len)
{
	struct endpoint peer;

	if (sa->sa_family == AF_UNIX || !endpoint_from_sockaddr(&peer, sa, len)) {
		memcpy(ret_address, "unix", 5);
		*ret_len = 4;
		return sa->sa_family == AF_UNIX && config->callers_unix;
	}
	*ret_len = ip_print(&peer.ip, ret_address);
	return range_set_find(&config->callers, &peer.ip) != NULL;
}

bool gate_key_take(const struct config *config, struct header_line *lines, size_t *n)
{
	struct digest shown;
	size_t kept = 0, count = 0;
	struct str value = STR("");

	for (size_t i = 0; i < *n; i++) {
		if (str_equal_nocase(lines[i].name, STR(GATE_KEY))) {
			value = lines[i].value;
			count++;
		} else {
			if (kept != i)
				lines[kept] = lines[i];
			kept++;
		}
	}
	*n = kept;
	if (!config->has_caller_key)
		return true;
	digest_sha256(&shown, value);
	return digest_equal(&shown, &config->caller_key) == 1 && count == 1;
}
