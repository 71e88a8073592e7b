/* SPDX-License-Identifier: MIT */
/*
 * hop: the entry of X-Forwarded-For that a gateway wrote for its own peer.
 *
 * Model      A door either takes the last entry over all X-Forwarded-For lines as remote_addr, or it has that from elsewhere:
 *            then an equal last entry says the same hop again and is taken off, and any other one is left alone. Entries are
 *            trimmed of space and tab; a line left without entries disappears.
 * Ownership  lines are changed in place; values stay views of what they were.
 * Threads    Pure.
 * Errors     none.
 */
#ifndef POSTERN_ADAPTER_HOP_H
#define POSTERN_ADAPTER_HOP_H

#include "core/request.h"

#include <stdbool.h>
#include <stddef.h>

/* Takes the last entry over all X-Forwarded-For lines, without blanks around it, where the gateway itself wrote it; n is
 * lowered by a line left without entries. False if there is no such line. */
bool hop_consume_last(struct header_line *lines, size_t *n, struct str *ret_entry);

/* The same for an entry that is remote_addr again. Returns how many lines are left. */
size_t hop_consume_equal(struct header_line *lines, size_t n, struct str remote_addr);

#endif
