/* SPDX-License-Identifier: MIT */
/*
 * gate: which callers may ask.
 *
 * Model      A caller is known by where it connects from (a range, or any Unix socket) and, where a key is configured, must
 *            show that as well, Unix callers too. The first half is settled once a connection, the second once a question.
 * Threads    Pure.
 * Errors     none.
 */
#ifndef POSTERN_SERVER_GATE_H
#define POSTERN_SERVER_GATE_H

#include "config/config.h"
#include "core/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define GATE_ADDRESS_BYTES IP_TEXT_BYTES
#define GATE_KEY "X-Postern-Key"

/* Whether this end may ask, its key aside; its address goes to ret_address as text ("unix" for a Unix peer). Returns the
 * text's length through ret_len. */
bool gate_lists(const struct config *config, const struct sockaddr *sa, socklen_t len,
	char ret_address[GATE_ADDRESS_BYTES], size_t *ret_len);

/* Takes every line of X-Postern-Key out, so that it goes nowhere, and says whether what was shown is enough. */
bool gate_key_take(const struct config *config, struct header_line *lines, size_t *n);

#endif
