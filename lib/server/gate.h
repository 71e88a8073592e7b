/* SPDX-License-Identifier: MIT */
/*
 * gate: which callers may ask.
 *
 * Model      A caller is known by where it connects from (a range, or any Unix socket) and, where a key is configured, must
 *            show that as well, Unix callers too.
 * Threads    Pure; a peer is confined to where its connection is served.
 * Errors     none.
 */
#ifndef POSTERN_SERVER_GATE_H
#define POSTERN_SERVER_GATE_H

#include "config/config.h"
#include "core/request.h"
#include "server/exchange.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define GATE_ADDRESS_BYTES IP_TEXT_BYTES
#define GATE_KEY "X-Postern-Key"

/* Who it is, once a connection; the text of the address goes to ret_address ("unix" for a Unix peer). */
void gate_peer_init(struct peer *ret, const struct sockaddr *sa, socklen_t len, char ret_address[GATE_ADDRESS_BYTES]);

/* Whether this end may ask, its key aside. Looked up once a connection and configuration: a connection may outlive many. */
bool gate_lists(const struct config *config, struct peer *peer);

/* Takes every line of X-Postern-Key out, so that it goes nowhere, and says whether what was shown is enough. */
bool gate_key_take(const struct config *config, struct header_line *lines, size_t *n);

#endif
