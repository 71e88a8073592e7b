/* SPDX-License-Identifier: MIT */
/*
 * profile: what one worker has seen of one rule; private to watch.
 *
 * Model      The window being filled and the one before it: counts, who connects, the busiest keys and what differs behind
 *            each. Beside them a few requests as examples, for trying a cure on.
 * Units      counts are requests, corrected for sampling; ns on the loop's clock.
 * Ownership  The part's.
 * Threads    guarded by the part's busy mark.
 * Limits     the constants below; about 45 KiB a profile.
 */
#ifndef POSTERN_WATCH_PROFILE_H
#define POSTERN_WATCH_PROFILE_H

#include "base/clock.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"
#include "watch/sketch.h"
#include "watch/slots.h"
#include "watch/top.h"

struct watch;

#define WINDOW_NS (600 * NS_PER_S)
#define WINDOW_REQUESTS_MIN 256u
#define WINDOW_OLD_NS (24 * 3600 * NS_PER_S) /* evidence beyond this age is none */
#define YOUNG_SAMPLES 1024u /* of a window: each request is looked at */
#define SAMPLE_DISTANCE_MAX 2047u /* then ever fewer, down to one of 1024 on average, at uneven distances */

struct behind {
	struct slot slot; /* filled in for readers */
	uint8_t key[CLIENT_KEY_BYTES];
	uint8_t key_len;
	bool has_address, decided, chosen_is_peer, has_peer, peer_is_unix;
	enum client_reason reason; /* of the last one */
	struct ip address, peer;
	ns first_ns;
	uint64_t unread; /* a forwarding header that was not read held an address */
	uint64_t left; /* a public entry stands left of the chosen one */
	struct sketch people; /* Cookie, else Authorization, else User-Agent, else the unread address */
	struct sketch agents; /* User-Agent */
	struct sketch unread_values; /* of those addresses */
	struct sketch left_values;
};

struct refused_key {
	struct slot slot; /* filled in for readers */
	uint8_t key[CLIENT_KEY_BYTES];
	uint8_t key_len;
};

/* A remote_addr that connects. */
struct caller {
	struct slot slot; /* filled in for readers */
	bool has_ip, is_unix;
	struct ip ip;
	bool browser; /* has sent a browser's User-Agent */
	ns first_ns;
	uint64_t refused;
	struct sketch agents; /* of all its requests */
	struct sketch clients; /* on whose behalf it was refused: chosen key with Cookie or Authorization */
};

#define CALLERS_MAX 8
#define ENTRIES_COUNTED 9 /* 0 to 7 entries, or more */

struct window {
	ns start_ns, last_ns; /* start_ns 0: nothing in it */
	uint32_t samples, refused_samples;
	uint64_t requests, refusals, undecided, unread, left, strangers, ends;
	uint64_t reasons[CLIENT_REASON_COUNT];
	uint64_t entries[ENTRIES_COUNTED]; /* requests by number of entries in the configured header */
	struct sketch keys, left_values;
	struct sketch stranger_keys; /* public addresses that came straight, without a forwarding header */
	struct sketch end_keys; /* public addresses chosen from a header with nothing public left of them */
	struct slots busiest_slots, refused_slots, caller_slots; /* places of the arrays below */
	struct behind busiest[TOP_KEYS_MAX];
	struct refused_key refused[TOP_KEYS_MAX];
	struct caller callers[CALLERS_MAX];
};

/* What a cure is tried out on: the headers that speak of addresses, as they came. */
enum example_kind { EXAMPLE_PEER, EXAMPLE_UNDECIDED, EXAMPLE_DECIDED, EXAMPLE_KIND_COUNT };

#define EXAMPLES_MAX 16
#define EXAMPLE_BYTES 224

struct example {
	bool whole; /* all lines found room */
	bool has_peer, peer_is_unix;
	struct ip peer;
	uint64_t key_hash;
	uint16_t len;
	uint8_t bytes[EXAMPLE_BYTES];
};

struct examples {
	uint32_t n[EXAMPLE_KIND_COUNT]; /* ever kept; the last EXAMPLES_MAX are there */
	uint64_t last_person[EXAMPLE_KIND_COUNT];
	struct example items[EXAMPLE_KIND_COUNT][EXAMPLES_MAX];
};

struct profile {
	struct window now, before;
	struct examples examples;
};

/* What one verdict stands for. 0: not looked at for that. */
struct weight {
	uint64_t requests, refused;
	ns now;
};

/* Adds one verdict that has a client and a rule to the profile of that rule. */
void profile_add(struct watch *w, struct profile *p, const struct request *req, const struct verdict *v,
	const struct weight *weight);

/* Copies the slots into the items and puts the busiest and the most refused in order. No more can be added then. */
void window_finish(struct window *win);

/* Adds what from holds to to; both may be empty. */
void window_merge(struct window *to, const struct window *from);

/* A browser's User-Agent. */
bool agent_is_browser(struct str agent);

/* ---- examples */

/* Headers that speak of addresses, for reading them whatever the configuration says. */
enum forwarding {
	FORWARDING_FOR,
	FORWARDING_RFC7239,
	FORWARDING_REAL_IP,
	FORWARDING_CF,
	FORWARDING_TRUE,
	FORWARDING_COUNT
};
const struct client_rule *forwarding_rule(enum forwarding which);

void example_keep(struct examples *e, enum example_kind kind, const struct client_rule *rule,
	const struct request *req, const struct client *c, uint64_t key_hash);

/* The request that an example was made of, as far as addresses go; rule: the one in force then. */
#define EXAMPLE_LINES_MAX 8
struct example_request {
	struct request req;
	struct header_line lines[EXAMPLE_LINES_MAX];
	char remote_addr[IP_TEXT_BYTES];
};
void example_open(const struct client_rule *rule, const struct example *e, struct example_request *ret);

#endif
