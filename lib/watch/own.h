/* SPDX-License-Identifier: MIT */
/*
 * own: our own services in the traffic: those that were refused, and the ledger of those that were let through.
 *
 * Model      A refusal looks like ours if a token was shown and is not absent (unknown, ambiguous, or valid and refused
 *            all the same), or if the chosen address is in own_networks, the request carries no unread forwarding header
 *            (then it is somebody behind a proxy) and no browser's User-Agent (then it is a person). Each remote_addr,
 *            client and token state is a row; where there are too many the one longest quiet makes room.
 *            The identity it seems to be: the one proven; the one whose token stands in a header that is not read; the one
 *            whose ledger holds the address; the only one there is. Else none.
 *            The ledger has a row for each identity and slot, used or not, so that a dead or leaked token shows.
 * Units      times since 1970; 0: never.
 * Ownership  Copies; identities lead into the ruleset.
 * Threads    shared.
 * Limits     OWN_REFUSALS_MAX rows; OWN_ADDRESSES_MAX addresses an identity and slot, the longest unused make room.
 */
#ifndef POSTERN_WATCH_OWN_H
#define POSTERN_WATCH_OWN_H

#include "base/clock.h"
#include "base/ip.h"
#include "core/identity.h"
#include "core/policy.h"
#include "core/reason.h"

#include <stddef.h>
#include <stdint.h>

#define OWN_REFUSALS_MAX 32
#define OWN_ADDRESSES_MAX 16
#define OWN_LINES_PER_MINUTE 4
#define OWN_TEXT_BYTES 640

struct own_refusal {
	char remote_addr_z[64]; /* as told, visible ASCII, cut */
	char client_z[64]; /* the chosen address; "none" where there is none */
	enum token_state token;
	enum reason reason; /* of the last one */
	const struct rule *rule; /* of the last one; may be NULL */
	const struct identity *identity_guess; /* NULL: no idea */
	uint64_t count;
	ns first, last;
	char text_z[OWN_TEXT_BYTES]; /* plain words: what it is and what to do */
};

struct own_ledger {
	const struct identity *identity;
	enum token_slot slot;
	uint64_t requests;
	ns first_used, last_used;
	struct ip addresses[OWN_ADDRESSES_MAX]; /* remote_addr, not the client; the last used first */
	size_t n_addresses;
	uint64_t addresses_left_out; /* how often a new address pushed out an old one */
};

struct watch;

/* The last refused first. Returns how many of at most max were written. */
size_t own_refusals_read(struct watch *w, ns now, ns wall_now, struct own_refusal *ret, size_t max);

/* All refusals of what looks like ours since start. */
uint64_t own_refused_total(struct watch *w);

/* Rows identity by identity, current then previous. Returns how many of at most max were written. */
size_t own_ledger_read(struct watch *w, ns now, ns wall_now, struct own_ledger *ret, size_t max);

#endif
