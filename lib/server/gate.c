/* SPDX-License-Identifier: MIT */
/*
 * The key is compared as a digest in constant time: neither its length nor a common beginning can be told from the time it
 * takes. Two lines of it are a wrong key, because one of them was not written by the caller.
 */
#include "server/gate.h"

#include "base/digest.h"
#include "base/range.h"

void gate_peer_init(struct peer *ret, const struct sockaddr *sa, socklen_t len, char ret_address[GATE_ADDRESS_BYTES])
{
	struct endpoint peer;

	*ret = (struct peer){.address = STR("unix"), .is_unix = sa->sa_family == AF_UNIX};
	if (ret->is_unix || !endpoint_from_sockaddr(&peer, sa, len))
		return;
	ret->has_ip = true;
	ret->ip = peer.ip;
	ret->address = str_make(ret_address, ip_print(&peer.ip, ret_address));
}

bool gate_lists(const struct config *config, struct peer *peer)
{
	if (peer->is_listed_by != config->serial) {
		peer->is_listed = peer->is_unix ? config->callers_unix
						: peer->has_ip && range_set_find(&config->callers, &peer->ip) != NULL;
		peer->is_listed_by = config->serial;
	}
	return peer->is_listed;
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
