/* SPDX-License-Identifier: MIT */
/*
 * watch: sees every verdict, keeps a bounded memory of them, and tells what looks wrong. Never changes a verdict.
 *
 * Model      One watch belongs to one ruleset. Each worker writes a part of its own; whoever asks gets the parts merged.
 *            Every verdict is counted; the sketches behind the signals see every request of a rule while its window is
 *            young, then a sample, whose weights are corrected. A window of a rule lasts at least ten minutes and 256
 *            requests; findings are read from the current window, or from the one before while the current one is short.
 *            Verdicts of proven identities enter no signal, only the ledger (own.h).
 * Units      now: ns on the loop's clock; wall_now: ns since 1970 at the same moment. Times handed out are since 1970.
 * Ownership  The watch owns all its memory, allocated by watch_open and by nothing later. Ruleset is the caller's and
 *            outlives it. What is handed out is copied, but rules and identities are pointers into the ruleset.
 * Threads    watch_verdict and watch_verdict_look: confined to their worker, wait for nobody: where a reader is at its part at this
 *            moment, the sample is dropped. The rest: shared, one lock among readers.
 * Blocking   readers wait for one another, and for the length of one sample.
 * Errors     watch_open: ERR_MEMORY.
 * Limits     the first WATCH_RULES_MAX rules. Memory is at most the sum of the WATCH_BYTES below; 290 KiB with one worker
 *            and one rule.
 */
#ifndef POSTERN_WATCH_WATCH_H
#define POSTERN_WATCH_WATCH_H

#include "base/clock.h"
#include "base/err.h"
#include "base/text.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

#include <stddef.h>
#include <stdint.h>

#define WATCH_RULES_MAX 64
#define WATCH_BYTES_BASE ((size_t)224 * 1024)
#define WATCH_BYTES_A_WORKER ((size_t)16 * 1024)
#define WATCH_BYTES_A_RULE ((size_t)48 * 1024) /* and worker */
#define WATCH_BYTES_AN_IDENTITY ((size_t)1024) /* and worker */

struct watch;

MUST_USE enum err watch_open(struct watch **ret, const struct ruleset *rules, unsigned workers);
void watch_close(struct watch *w); /* NULL is fine */

/* All memory that this watch holds. */
size_t watch_bytes(const struct watch *w);

/* What watch_verdict needs at hand; for it alone. */
struct watch_worker {
	const struct rule *rules;
	size_t n_rules;
	uint32_t *skips; /* by rule: how many verdicts to pass over before the next one that is looked at */
	uint32_t *skips_refused; /* the same of refusals */
	uint64_t own_bytes[2][4]; /* IPv6, IPv4: which first bytes occur in own_networks */
};

struct watch_worker *watch_worker_at(struct watch *w, unsigned index);

/* The part of watch_verdict that looks. */
void watch_verdict_look(
	struct watch_worker *worker, const struct request *req, const struct verdict *v, ns now);

/* False: the address is surely not in own_networks. Most are not, and this is quicker than to look them up. */
static inline bool watch_may_be_own(const struct watch_worker *worker, const struct ip *ip)
{
	bool v4 = ip_is_v4(ip);
	uint8_t first = ip->bytes[v4 ? 12 : 0];

	return worker->own_bytes[v4][first / 64] >> first % 64 & 1;
}

/* Call for every verdict, in the thread of that worker. Inline, since nearly always there is nothing to do but count. */
static inline void watch_verdict(
	struct watch_worker *worker, const struct request *req, const struct verdict *v, ns now)
{
	size_t rule = (size_t)(v->rule - worker->rules);

	if (rule < worker->n_rules && worker->skips[rule] != 0) {
		if (v->decision == DECISION_ALLOW && v->token.state != TOKEN_STATE_VALID) {
			worker->skips[rule]--;
			return;
		}
		if (v->decision == DECISION_DENY && v->token.state == TOKEN_STATE_ABSENT &&
			worker->skips_refused[rule] != 0 && !watch_may_be_own(worker, &v->client.address)) {
			worker->skips[rule]--;
			worker->skips_refused[rule]--;
			return;
		}
	}
	watch_verdict_look(worker, req, v, now);
}

/* Call about once a second, in one thread: writes one log line for each new warning and one when it clears by itself, and
 * one for own services that were refused (at most OWN_LINES_PER_MINUTE). */
void watch_tick(struct watch *w, ns now, ns wall_now);

/* At a reload, before to sees its first verdict: takes over by name the ledger (a token's row follows the token into
 * another slot) and the refusals of own services. Signals and top lists are taken over too unless client, own_networks or
 * identities differ: then they start anew, and the next tick says that what was warned of has cleared. Both have the same
 * number of workers. from may still be in use by them: the count of refusals is one for both. */
void watch_carry(struct watch *to, struct watch *from);

/* The families of api/metrics.def that watch owns. */
void watch_metrics_write(struct watch *w, struct text *t, ns now, ns wall_now);

/* Log lines left out by the rate limit. */
uint64_t watch_suppressed(struct watch *w);

#endif
