/* SPDX-License-Identifier: MIT */
/*
 * snapshot: one value that many threads use and one replaces, without a lock where it is used.
 *
 * Model      Each reader has a number and takes the value by passing a quiet point: a moment when it holds nothing of what it
 *            was given before. Until its next one it may use what that gave it as if nobody else were there. The value
 *            before can be freed when no reader has it any more, which is when each has passed a quiet point since. A
 *            reader that sleeps holds up nothing but that, and must be woken by whoever publishes.
 * Ownership  Values are the publisher's.
 * Threads    snapshot_pass: confined to the reader of that number. publish, retire, open, close: confined to the publisher,
 *            who may be one of the readers.
 * Blocking   Never.
 * Errors     snapshot_open: ERR_MEMORY.
 * Limits     two values at a time: one is published only after the one before was retired.
 * Source     quiescent-state-based reclamation: Hart, McKenney, Brown, Walpole (2007).
 */
#ifndef POSTERN_CONFIG_SNAPSHOT_H
#define POSTERN_CONFIG_SNAPSHOT_H

#include "base/err.h"

struct snapshot;

/* Every reader holds first from the beginning. */
MUST_USE enum err snapshot_open(struct snapshot **ret, unsigned readers, void *first);
void snapshot_close(struct snapshot *s); /* NULL is fine; no reader may be at work */

/* A quiet point of this reader. What it was given before is not its any more; this is. */
const void *snapshot_pass(struct snapshot *s, unsigned reader);

/* Puts next in the place of what was there. There is nothing to retire when this is called. */
void snapshot_publish(struct snapshot *s, void *next);

/* What was there before, once no reader has it; it is handed out once. NULL: not yet, or nothing. */
void *snapshot_retire(struct snapshot *s);

#endif
