/* SPDX-License-Identifier: MIT */
/*
 * notice: says a fault out loud the first time it is seen, in plain words and with its cure.
 *
 * Model      Looks at verdicts that carry a warning or a caller's or door's fault and writes one log line per kind and
 *            remote_addr network (IPv4 /24, IPv6 /48). Where remote_addr lies in own_networks the line names the exact
 *            configuration that would cure it; where it is a stranger it says that the header was rightly ignored unless
 *            that address is a proxy of yours: nobody is ever told to trust an attacker's network. Never changes a verdict.
 * Ownership  The board owns its memory, fixed at creation.
 * Threads    shared: one lock, taken only for verdicts that have something to say.
 * Blocking   on that lock and on the log.
 * Limits     remembers 256 networks; when full, further new ones are counted, not logged.
 */
#ifndef POSTERN_WATCH_NOTICE_H
#define POSTERN_WATCH_NOTICE_H

#include "base/err.h"
#include "base/text.h"
#include "core/policy.h"
#include "core/request.h"
#include "core/verdict.h"

#include <stdint.h>

struct notice;

MUST_USE enum err notice_new(struct notice **ret);
void notice_free(struct notice *n); /* NULL is fine */

/* Call for every verdict; returns at once where there is nothing to say. */
void notice_verdict(struct notice *n, const struct ruleset *rules, const struct request *req, const struct verdict *v);

/* Says everything anew, as after a start. */
void notice_forget(struct notice *n);

/* Lines not logged because the memory was full. */
uint64_t notice_suppressed(struct notice *n);

/* The "client" member that would make rules believe what peer writes, as JSON:
 * "client": {"strategy": "trusted_ranges", "trusted_proxies": ["10.0.0.0/8", "172.18.0.5"]}. Existing ranges are kept. */
void notice_cure(struct text *t, const struct client_rule *rule, const struct ip *peer);

#endif
