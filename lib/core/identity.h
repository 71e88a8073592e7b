/* SPDX-License-Identifier: MIT */
/*
 * identity: which of our own services is asking, proven by a token.
 *
 * Model      The presented token is hashed once and compared with every configured digest in constant time, no early
 *            exit. A wrong token proves nothing and costs nothing: its bearer is an ordinary stranger.
 *            Looked for in the request's token if it was said (even empty), else in the first token header that is
 *            present. More than one line of it, or a comma in it: ambiguous. In Authorization only the Bearer scheme
 *            counts, and a value that matches nothing and does not begin with "postern_" is some user's login: absent.
 * Ownership  An identity_set is frozen with its ruleset. Only digests are kept, never tokens.
 * Threads    Pure.
 * Limits     tokens of 16 to 512 visible ASCII characters without comma.
 * Source     RFC 6750 2.1 (Bearer), RFC 9110 11.1 (scheme names without case).
 */
#ifndef POSTERN_CORE_IDENTITY_H
#define POSTERN_CORE_IDENTITY_H

#include "base/digest.h"
#include "core/reason.h"
#include "core/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_BYTES_MIN 16
#define TOKEN_BYTES_MAX 512
#define TOKEN_PREFIX "postern_"
#define TOKEN_HEADERS_MAX 8

enum token_slot { TOKEN_SLOT_CURRENT, TOKEN_SLOT_PREVIOUS, TOKEN_SLOT_COUNT };

struct identity {
	struct str name;
	struct str token_file;  /* for people: where its current token is read from, as configured; empty: given as a digest */
	const uint16_t *limits; /* indices into the ruleset's limits; these replace the rule's */
	size_t n_limits;        /* 0: exempt */
};

struct identity_token {
	struct digest digest;
	uint16_t identity;      /* index */
	uint8_t slot;
};

struct identity_set {
	const struct identity *items;
	size_t n;
	const struct identity_token *tokens;
	size_t n_tokens;
	const struct str *headers; /* where tokens are looked for, in order */
	size_t n_headers;
};

struct token_result {
	enum token_state state;
	const struct identity *identity; /* NULL unless VALID */
	uint16_t index;                  /* of the identity, if VALID */
	enum token_slot slot;            /* if VALID */
	bool from_authorization;         /* Authorization proved it, or looks like a token of ours: strip it */
};

void identity_find(const struct identity_set *set, const struct request *req, struct token_result *ret);

struct str token_slot_word(enum token_slot s); /* "current", "previous" */

#endif
