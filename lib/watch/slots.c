/* SPDX-License-Identifier: MIT */
/*
 * The lists are short, so they are searched from the front: a heap or a table would cost more than it saves at this
 * length. Hashes and counts lie apart from what they stand for, since that is large and only one item of it is wanted.
 */
#include "watch/slots.h"

static size_t find(const struct slots *s, uint64_t hash)
{
	size_t i = 0;

	while (i < s->n && s->hashes[i] != hash)
		i++;
	return i;
}

static size_t least(const struct slots *s)
{
	size_t at = 0;

	for (size_t i = 1; i < s->n; i++)
		at = s->counts[i] < s->counts[at] ? i : at;
	return at;
}

static void set(struct slots *s, size_t i, struct slot value)
{
	s->hashes[i] = value.hash;
	s->counts[i] = value.count;
	s->errors[i] = value.error;
}

size_t slots_take(struct slots *s, size_t max, uint64_t hash, uint64_t weight, bool *ret_is_new)
{
	size_t i = find(s, hash);

	*ret_is_new = i == s->n;
	if (i < s->n) {
		s->counts[i] += weight;
	} else if (s->n < max) {
		s->n++;
		set(s, i, (struct slot){hash, weight, 0});
	} else {
		i = least(s);
		set(s, i, (struct slot){hash, s->counts[i] + weight, s->counts[i]});
	}
	return i;
}

size_t slots_merge(struct slots *s, size_t max, const struct slot *from, bool *ret_is_new)
{
	size_t i = find(s, from->hash);

	*ret_is_new = i == s->n;
	if (i < s->n) {
		s->counts[i] += from->count;
		s->errors[i] += from->error;
		return i;
	}
	if (s->n < max)
		s->n++;
	else if (s->counts[i = least(s)] >= from->count)
		return SLOTS_NONE;
	set(s, i, *from);
	return i;
}

struct slot slots_at(const struct slots *s, size_t i)
{
	return (struct slot){s->hashes[i], s->counts[i], s->errors[i]};
}
