/* SPDX-License-Identifier: MIT */
/*
 * client: who is really asking.
 *
 * Model      There is no "real" client address in a request: there is remote_addr, and there are header texts, each worth
 *            as much as the machine that wrote it. One compiled rule says whose writing is believed. The answer is an
 *            address with a reason, or undecided with a reason; header text is never returned. Undecided falls back to
 *            remote_addr (or nothing) and never satisfies an exemption.
 *            Lists are read from the right over all lines of the header: what stands left of our own hop's entry was
 *            typed by the client. An entry that does not parse ends the walk; a list that is too short is never clamped;
 *            no other header is tried.
 * Units      ipv6_prefix in bits, 32 to 128.
 * Ownership  A client_rule is frozen with its ruleset; results hold slices of the request (trace only).
 * Threads    Pure.
 * Blocking   Never; no allocation. Cost: at most 64 entries of at most 64 bytes, plus one backward scan for Forwarded.
 * Errors     none; every input has a reason.
 * Source     RFC 7239 (Forwarded); X-Forwarded-For has no standard.
 */
#ifndef POSTERN_CORE_CLIENT_H
#define POSTERN_CORE_CLIENT_H

#include "base/ip.h"
#include "base/range.h"
#include "core/reason.h"
#include "core/request.h"

#include <stdbool.h>
#include <stddef.h>

enum strategy {
	STRATEGY_PEER,
	STRATEGY_SINGLE_VALUE,
	STRATEGY_RIGHTMOST,
	STRATEGY_HOP_COUNT,
	STRATEGY_TRUSTED_RANGES,
	STRATEGY_NAMED_HEADER,
	STRATEGY_COUNT
};

#define CLIENT_HOPS_MAX 32
#define CLIENT_ENTRIES_MAX 64

struct client_rule {
	enum strategy strategy;
	struct range_set trusted;   /* empty: nobody */
	bool trust_any;             /* also Unix, absent and junk peers */
	bool trust_unix;
	bool none_on_undecided;     /* else the peer's own address */
	struct str header;          /* as configured; names compare without case */
	bool header_is_forwarded;   /* RFC 7239 instead of a plain list */
	unsigned hops;              /* hop_count only */
	unsigned ipv6_prefix;       /* of the key */
	unsigned network_v4, network_v6; /* prefix lengths of the wide network (24, 48) */
};

struct client {
	bool has_address;
	bool decided;
	enum client_reason reason;
	struct ip address;          /* if has_address */
	bool has_peer;              /* remote_addr holds a usable address */
	struct ip peer;
	bool peer_is_unix;
	bool header_read;           /* the gate let us read a header (found or not) */
	bool forwarding_present;    /* an X-Forwarded-For or Forwarded line was there to read */
};

struct str strategy_word(enum strategy s);

/* The strategy of this word, or STRATEGY_COUNT. */
enum strategy strategy_find(struct str word);

/* One step of the reasoning, for explain. */
enum step_verdict {
	STEP_UNTRUSTED, /* peer: headers are not read */
	STEP_TRUSTED,   /* peer or entry: ours, go on */
	STEP_COUNTED,   /* entry: passed over by hop_count */
	STEP_CHOSEN,    /* this is the client */
	STEP_REFUSED,   /* not usable: the reason says why */
	STEP_FALLBACK   /* undecided: what was returned instead */
};

struct client_step {
	enum step_verdict verdict;
	bool is_peer;               /* else an entry of the header, or the fallback */
	int position;               /* entries: -1 is the rightmost; 0 for peer and fallback */
	unsigned line;              /* entries: which field line, from 1 */
	struct str raw;             /* hostile text, uncut */
	bool has_address;
	struct ip address;
	enum client_reason reason;  /* REFUSED and FALLBACK */
	const struct range *by;     /* TRUSTED: by which range; NULL: by "any" or "trust_unix" */
};

#define CLIENT_STEPS_MAX 10     /* the peer, 8 entries, the fallback; further entries are counted only */

struct client_trace {
	struct client_step steps[CLIENT_STEPS_MAX];
	size_t n_steps;
	size_t steps_left_out;      /* entries judged but not kept */
	size_t lines;               /* field lines of the configured header */
	size_t entries_unread;      /* entries further left that nobody needs to believe */
	bool other_forwarding;      /* forwarding headers besides the configured one were present */
	bool connection_names_header; /* a Connection line names the configured header: a proxy may drop it */
};

/* Fills *ret; trace may be NULL (the decision path) or is filled from scratch. */
void client_resolve(const struct client_rule *rule, const struct request *req, struct client_trace *trace,
	struct client *ret);

/* The key of a client: bytes that are equal for the same client everywhere. IPv4 whole; IPv6 by prefix, after folding
 * mapped IPv4 and unwrapping NAT64; 6to4 by /48; local scope whole; undecided in a space of its own.
 * Returns the length, at most CLIENT_KEY_BYTES. */
#define CLIENT_KEY_BYTES 20
size_t client_key(const struct client_rule *rule, const struct client *c, uint8_t out[CLIENT_KEY_BYTES]);

/* The same for the wide network (IPv4 /24, IPv6 /48 by default). */
size_t client_network_key(const struct client_rule *rule, const struct client *c, uint8_t out[CLIENT_KEY_BYTES]);

/* A key for people: "4:203.0.113.7", "6:2001:db8:1:2::/64", "u:4:10.0.0.1", "none". Returns the length. */
#define CLIENT_KEY_TEXT_BYTES 64
size_t client_key_text(const uint8_t *key, size_t len, char out[CLIENT_KEY_TEXT_BYTES]);

#endif
