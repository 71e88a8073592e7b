/* SPDX-License-Identifier: MIT */
/*
 * same: whether two rulesets say the same, part by part.
 *
 * Model      A part is the same if no request can tell it from the other. What refers to a limit or an identity means its
 *            name: an index of one ruleset is nothing in another. Order counts where it decides (rules, token headers).
 * Threads    Pure.
 */
#ifndef POSTERN_CORE_SAME_H
#define POSTERN_CORE_SAME_H

#include "base/range.h"
#include "core/client.h"
#include "core/identity.h"
#include "core/policy.h"

#include <stdbool.h>
#include <stddef.h>

bool same_ranges(const struct range_set *a, const struct range_set *b);
bool same_client(const struct client_rule *a, const struct client_rule *b);
bool same_limit(const struct limit *a, const struct limit *b);

/* By their places in their rulesets: name, tokens, limits. */
bool same_identity(const struct ruleset *a, size_t i, const struct ruleset *b, size_t k);
bool same_rule(const struct ruleset *a, size_t i, const struct ruleset *b, size_t k);

/* Whether what was learned under one about who is asking holds under the other: client, own_networks and identities. */
bool same_people(const struct ruleset *a, const struct ruleset *b);

/* Where the limit, identity or rule of this name is, or SIZE_MAX. */
size_t same_limit_find(const struct ruleset *r, struct str name);
size_t same_identity_find(const struct ruleset *r, struct str name);
size_t same_rule_find(const struct ruleset *r, struct str name);

#endif
