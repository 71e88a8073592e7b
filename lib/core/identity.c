/* SPDX-License-Identifier: MIT */
/*
 * Time must not tell how much of a token was right, nor which identity it belongs to: the digest of what was shown is
 * compared with all of them, and the index is gathered with a mask instead of a branch. Comparing digests (and not
 * tokens) makes what an attacker could measure useless anyway.
 * A token of a length that none can have is not hashed: its length is no secret, and hashing whole headers of junk
 * would let strangers spend our time.
 */
#include "core/identity.h"

static const struct str authorization = {"Authorization", 13};
static const struct str bearer = {"Bearer ", 7};

static bool name_equal(struct str a, struct str b)
{
	return a.len == b.len && str_equal_nocase(a, b);
}

/* What stands in a header, or in the request's own member. */
struct shown {
	struct str token;
	bool present, several, is_authorization;
};

/* The token behind "Bearer". False if the scheme is another: somebody else's business, not a token. */
static bool read_bearer(struct str value, struct str *ret_token)
{
	bool blank = str_equal_nocase(value, str_head(bearer, bearer.len - 1));

	if (!blank && !str_starts_with_nocase(value, bearer))
		return false;
	*ret_token = str_trim(str_from(value, bearer.len));
	return true;
}

/* The lines of one token header. Most requests have none, so its name is looked at only when there is one. */
static void read_lines(const struct request *req, struct str name, struct shown *ret)
{
	size_t i, lines = 0;

	for (i = 0; i < req->n_headers; i++) {
		struct str value;

		if (!name_equal(req->headers[i].name, name))
			continue;
		if (lines++ == 0)
			ret->is_authorization = name_equal(name, authorization);
		value = str_trim(req->headers[i].value);
		if (ret->is_authorization && !read_bearer(value, &value))
			continue;
		ret->present = true;
		ret->token = value;
	}
	ret->several = lines > 1;
}

static void find_shown(const struct identity_set *set, const struct request *req, struct shown *ret)
{
	size_t i;

	if (req->token.said) {
		*ret = (struct shown){.token = str_trim(req->token.text), .present = true};
		return;
	}
	*ret = (struct shown){.present = false};
	for (i = 0; i < set->n_headers && !ret->present; i++)
		read_lines(req, set->headers[i], ret);
}

/* Whatever was shown beside it and proven by it: what looks like a token of ours is no business of the application. */
static bool holds_ours(const struct request *req)
{
	for (size_t i = 0; i < req->n_headers; i++) {
		struct str token;

		if (name_equal(req->headers[i].name, authorization) &&
			read_bearer(str_trim(req->headers[i].value), &token) && str_starts_with(token, STR(TOKEN_PREFIX)))
			return true;
	}
	return false;
}

/* Index into set->tokens, or set->n_tokens. Looks at every token, whatever it finds. */
static size_t find_token(const struct identity_set *set, struct str token)
{
	struct digest d;
	size_t i, which = set->n_tokens;

	if (token.len < TOKEN_BYTES_MIN || token.len > TOKEN_BYTES_MAX)
		return which;
	digest_sha256(&d, token);
	for (i = 0; i < set->n_tokens; i++) {
		size_t mask = (size_t)0 - digest_equal(&d, &set->tokens[i].digest);

		which = (which & ~mask) | (i & mask);
	}
	return which;
}

void identity_find(const struct identity_set *set, const struct request *req, struct token_result *ret)
{
	struct shown shown;
	size_t which;

	*ret = (struct token_result){.state = TOKEN_STATE_ABSENT, .from_authorization = holds_ours(req)};
	find_shown(set, req, &shown);
	if (!shown.present)
		return;
	if (shown.several || str_find(shown.token, ',') < shown.token.len) {
		ret->state = TOKEN_STATE_AMBIGUOUS;
		return;
	}
	if (shown.token.len == 0)
		return;
	which = find_token(set, shown.token);
	if (which < set->n_tokens) {
		ret->state = TOKEN_STATE_VALID;
		ret->index = set->tokens[which].identity;
		ret->identity = &set->items[ret->index];
		ret->slot = (enum token_slot)set->tokens[which].slot;
		ret->from_authorization |= shown.is_authorization;
	} else if (!shown.is_authorization || str_starts_with(shown.token, STR(TOKEN_PREFIX))) {
		ret->state = TOKEN_STATE_UNKNOWN;
	}
}

struct str token_slot_word(enum token_slot s)
{
	return s == TOKEN_SLOT_CURRENT ? STR("current") : STR("previous");
}
