/* SPDX-License-Identifier: MIT */
/*
 * hop: the entry of X-Forwarded-For that a gateway wrote for its own peer.
 *
 * Model      Where a door has remote_addr from elsewhere, an equal last entry over all X-Forwarded-For lines says the same
 *            hop again and is taken off, trimmed of space and tab; any other last entry is left alone. A line left without
 *            entries disappears.
 * Ownership  lines are changed in place; values stay views of what they were.
 * Threads    Pure.
 * Errors     none.
 */
#ifndef POSTERN_ADAPTER_HOP_H
#define POSTERN_ADAPTER_HOP_H

#include "core/request.h"

#include <stddef.h>

/* How many lines are left. */
size_t hop_consume_equal(struct header_line *lines, size_t n, struct str remote_addr);

#endif
