/* SPDX-License-Identifier: MIT */
/*
 * policy: compiled limits and rules, and which rule a request falls under.
 *
 * Model      First matching rule wins; the last one has no match and catches the rest. A fact that was not said matches no
 *            match on it. Hosts compare without case, port and trailing dot; methods exactly; paths exactly or as a prefix
 *            ("/api/" followed by anything, which also matches "/api" itself); client ranges only where the address is
 *            decided.
 * Ownership  A ruleset is built once by config into an arena of its own and is frozen.
 * Threads    Pure.
 * Limits     8 limits a rule, 16 charges a decision.
 */
#ifndef POSTERN_CORE_POLICY_H
#define POSTERN_CORE_POLICY_H

#include "base/range.h"
#include "core/bucket.h"
#include "core/charge.h"
#include "core/client.h"
#include "core/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULE_LIMITS_MAX 8

enum key_part { KEY_CLIENT, KEY_NETWORK, KEY_IDENTITY, KEY_HOST, KEY_PATH, KEY_METHOD, KEY_HEADER, KEY_PART_COUNT };

#define LIMIT_KEY_PARTS_MAX 8

struct limit_key_part {
	enum key_part part;
	struct str header; /* KEY_HEADER: which */
};

struct limit {
	struct str name;
	struct bucket_rule bucket;
	uint64_t window_s; /* whole seconds that refill it, rounded up, at least 1 */
	const struct limit_key_part *key;
	size_t n_key;
	bool headers; /* may be shown in RateLimit headers and answers to clients */
};

enum rule_action { ACTION_LIMIT, ACTION_DENY, ACTION_ALLOW };
enum rule_require { REQUIRE_NOTHING, REQUIRE_ANY, REQUIRE_LISTED };

struct path_pattern {
	struct str text; /* normalised; prefix patterns end in "/"; lower case if the rule ignores case */
	bool is_prefix;
};

/* Empty lists match everything. */
struct rule_match {
	const struct str *hosts; /* lower case, no port, no trailing dot */
	const struct str *methods;
	const struct path_pattern *paths;
	const uint16_t *identities;
	struct range_set clients;
	size_t n_hosts, n_methods, n_paths, n_identities;
};

struct rule {
	struct str name;
	struct rule_match match;
	bool ignore_case; /* paths only */
	enum rule_action action;
	enum rule_require require;
	const uint16_t *required; /* identities, for REQUIRE_LISTED */
	size_t n_required;
	bool shadow;
	const uint16_t *limits;
	size_t n_limits;
};

struct header_options {
	bool ratelimit, retry_after, x_ratelimit;
};

/* Where the door /ext-authz finds remote_addr. */
enum remote_addr_from { REMOTE_ADDR_FROM_HEADER, REMOTE_ADDR_FROM_XFF_LAST };

struct door_options {
	enum remote_addr_from ext_authz;
};

struct ruleset {
	struct client_rule client;
	struct identity_set identities;
	const struct limit *limits;
	size_t n_limits;
	const struct rule *rules;
	size_t n_rules;
	struct range_set own_networks;
	struct header_options headers;
	struct door_options doors;
	bool ignores_path, ignores_host; /* set by policy_freeze; false is always right, only slower */
	struct str hash; /* 12 hex digits over the configuration and its tokens' digests */
};

/* What of a request rules look at, worked out once. */
struct policy_view {
	const struct client *client;
	const struct token_result *token;
	const struct request *req;
	struct str path_normalised, path_raw; /* if req->path was said and is looked at */
	bool path_doubtful;                   /* see path.h */
	struct str host;                      /* lower case, no port, no trailing dot; if said and looked at */
};

/* Why a rule did not match, for explain. */
enum rule_miss { MISS_NONE /* it matched */, MISS_HOST, MISS_METHOD, MISS_PATH, MISS_IDENTITY, MISS_CLIENT };

/* Works out what no rule and no key of the ruleset looks at, so that a decision need not. Last step of building one. */
void policy_freeze(struct ruleset *rules);

/* Fills the view with what these rules look at, or with everything if rules is NULL. Host and path may take room in the
 * arena, at most their own length each (and alignment). */
void policy_view_make(struct policy_view *ret, const struct ruleset *rules, const struct request *req,
	const struct client *client, const struct token_result *token, struct arena *a);

enum rule_miss policy_rule_check(const struct rule *rule, const struct policy_view *view, bool raw_path);

/* The first rule that matches; never NULL, since the last rule matches everything. */
const struct rule *policy_find(const struct ruleset *rules, const struct policy_view *view, bool raw_path);

/* Does a token meet what the rule requires? */
bool policy_requirement_met(const struct ruleset *rules, const struct rule *rule, const struct token_result *token);

/* The two names of a charge (see charge.h). */
struct policy_keys {
	struct str bucket; /* the limit's name, then its key's parts */
	struct str wide;   /* the client's wide network, then the limit's name */
	bool fallback;     /* a part was absent and replaced by the client */
};

/* A part of a key is a kind, a length and at most 64 bytes, whatever was sent. */
#define POLICY_PART_BYTES_MAX (2 + 64)
#define POLICY_KEYS_BYTES_MAX ((2 + LIMIT_KEY_PARTS_MAX) * POLICY_PART_BYTES_MAX)

/* Writes the keys of this limit for this request into the arena. False if the arena is full. */
bool policy_keys_make(struct policy_keys *ret, const struct ruleset *rules, const struct limit *limit,
	const struct policy_view *view, struct arena *a);

#endif
