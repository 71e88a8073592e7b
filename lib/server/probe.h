/* SPDX-License-Identifier: MIT */
/*
 * probe: finds again a request that somebody has sent through the real gateway with a nonce in X-Postern-Probe, and remembers
 * how its client was found.
 *
 * Model      Whoever probes asks admin for the nonce before sending it, and so makes it awaited for PROBE_AWAITED_NS. Only
 *            requests that carry an awaited nonce are remembered, at most PROBE_SIGHTINGS_MAX each; of all other requests
 *            nothing is stored, and while nobody probes none is even looked at.
 * Units      ns on the loop's clock.
 * Ownership  The board owns all its memory, taken by probe_board_new.
 * Threads    shared: one lock, taken only for requests with the header while something is awaited.
 * Blocking   on that lock.
 * Errors     probe_board_new: ERR_MEMORY.
 * Limits     PROBE_NONCES_MAX nonces; a further one takes the place of the one that ends first.
 */
#ifndef POSTERN_SERVER_PROBE_H
#define POSTERN_SERVER_PROBE_H

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define PROBE_HEADER "X-Postern-Probe"
#define PROBE_NONCE_BYTES 32 /* lower-case hex digits */
#define PROBE_NONCES_MAX 16
#define PROBE_SIGHTINGS_MAX 4
#define PROBE_AWAITED_NS (60 * NS_PER_S)

struct probe_nonce;

struct probe_board {
	pthread_mutex_t lock;
	_Atomic ns awaited_until; /* by the last nonce to end */
	struct probe_nonce *nonces;
};

MUST_USE enum err probe_board_new(struct probe_board **ret);
void probe_board_free(struct probe_board *b); /* NULL is fine */

bool probe_nonce_valid(struct str nonce);

/* Makes the nonce awaited from now on, and writes what has been seen of it, as JSON. */
void probe_read(struct probe_board *b, struct str nonce, ns now, struct text *t);

void probe_look(struct probe_board *b, const struct ruleset *rules, const struct request *req, const struct verdict *v,
	ns now);

/* Call for every verdict. */
static inline void probe_see(struct probe_board *b, const struct ruleset *rules, const struct request *req,
	const struct verdict *v, ns now)
{
	if (now < atomic_load_explicit(&b->awaited_until, memory_order_relaxed))
		probe_look(b, rules, req, v, now);
}

#endif
