/* SPDX-License-Identifier: MIT */
/*
 * finding: what the traffic of a rule says about its key. The words are rows of api/signals.def.
 *
 * Model      A warning (shared_bucket) is made for a rule and a key with many people behind the key and a proof that the
 *            address was misread: a forwarding header unread with more than 20 distinct public values; a large undecided
 *            share; an entry left of the chosen one in over 80 % of requests with ten times as many public values; or
 *            chosen addresses not global with fewer than 8 keys holding over 90 % of the rule. Without proof it is a note:
 *            a campus looks like that. A proof needs 150 requests of the rule, of a key outside own_networks
 *            256, and there it is none where visitors are seen beside it whom nobody stands before; even so it is told
 *            under the condition that the address is a proxy of yours. Computed when asked. It is gone when a
 *            window of the rule no longer shows it, or at once by a reload that changes client, own_networks or
 *            identities.
 * Ownership  Copies; rule leads into the ruleset.
 * Threads    shared.
 */
#ifndef POSTERN_WATCH_FINDING_H
#define POSTERN_WATCH_FINDING_H

#include "base/clock.h"
#include "core/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum finding_level { FINDING_WARNING, FINDING_NOTE };

enum finding_code {
#define FINDING(id, word, level, text) FINDING_CODE_##id,
#include "signals.def"
#undef FINDING
	FINDING_CODE_COUNT
};

enum signal {
#define SIGNAL(id, word, text) SIGNAL_##id,
#include "signals.def"
#undef SIGNAL
	SIGNAL_COUNT
};

struct str finding_word(enum finding_code c);
struct str finding_text(enum finding_code c);
enum finding_level finding_level_of(enum finding_code c);
struct str signal_word(enum signal s);
struct str signal_text(enum signal s);

#define FINDINGS_MAX 32
#define FINDING_KEY_BYTES 64
#define FINDING_TEXT_BYTES 768
#define FINDING_CURE_BYTES 1024

struct finding {
	enum finding_code code;
	const struct rule *rule;
	char key_z[FINDING_KEY_BYTES]; /* the chosen address as text; "none" where there is none */
	unsigned signals; /* bits 1 << enum signal */
	uint64_t requests; /* that it rests on, estimated where the rule is busy */
	ns since; /* since 1970: the first request of this evidence */
	char text_z[FINDING_TEXT_BYTES]; /* plain words, ASCII: what was seen, numbers, since when */
	char cure_z
		[FINDING_CURE_BYTES]; /* what to do: "client": {...} complete, or which hop must send which header */
	bool cure_is_setting; /* cure_z holds a member of the configuration (behind words where it is conditional), the whole cure */
};

struct watch;

/* What holds now, warnings first, the busiest key first. Returns how many of at most max were written. */
size_t watch_findings(struct watch *w, ns now, ns wall_now, struct finding *ret, size_t max);

#endif
