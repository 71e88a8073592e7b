/* SPDX-License-Identifier: MIT */
/*
 * sighting: what postern made of one probing request, and what that says about everybody else's.
 *
 * Model      One way into postern is judged by its plain request and the forged ones. From one place alone it cannot be
 *            seen that two clients are told apart; what can be seen is whether the address that postern chose is this
 *            machine's own as the first hop saw it, or some hop's, which everybody else comes with too.
 * Ownership  Views of the JSON that was read.
 * Threads    Pure.
 */
#ifndef POSTERN_CMD_SIGHTING_H
#define POSTERN_CMD_SIGHTING_H

#include "base/ip.h"
#include "base/json.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct sighting {
	struct str door, reason, remote_addr;
	struct str client, client_reason, key; /* client: empty where there is none */
	bool has_client, decided;
	struct str strategy, cure; /* cure: empty where there is none */
	const struct json *headers, *steps;
};

/* False if the value is no sighting. */
bool sighting_read(struct sighting *ret, const struct json *v);

enum sighting_verdict {
	SIGHTING_APART,  /* the address is this machine's */
	SIGHTING_PUBLIC, /* it is a public one that may be this machine's behind address translation */
	SIGHTING_SHARED, /* it is a hop's */
	SIGHTING_UNDECIDED
};

struct sighting_place {
	bool has_local, is_loopback; /* loopback: the gateway's address is */
	struct ip local;             /* our end of the connection to the gateway */
};

/* forged (may be NULL): the same way in, with planted as the first entry of X-Forwarded-For. */
enum sighting_verdict sighting_judge(const struct sighting *plain, const struct sighting *forged,
	const struct ip *planted, const struct sighting_place *place);

enum forgery { FORGERY_IGNORED, FORGERY_CHOOSES, FORGERY_LEAVES };

/* What planting this address has changed. */
enum forgery sighting_forgery(const struct sighting *plain, const struct sighting *forged, const struct ip *planted);

#endif
