/* SPDX-License-Identifier: MIT */
/*
 * Space-saving, over arrays of any item that begins with a struct slot. The lists are short, so they are searched from the
 * front: a heap or a table would cost more than it saves at this length, and only samples come here.
 */
#include "watch/slots.h"

#include <string.h>

static struct slot *at(struct slots s, size_t i)
{
	return (struct slot *)((char *)s.items + i * s.item_size);
}

void *slots_find(struct slots s, uint64_t hash)
{
	for (size_t i = 0; i < *s.n; i++) {
		if (at(s, i)->hash == hash)
			return at(s, i);
	}
	return NULL;
}

static struct slot *least(struct slots s)
{
	struct slot *least = at(s, 0);

	for (size_t i = 1; i < *s.n; i++) {
		if (at(s, i)->count < least->count)
			least = at(s, i);
	}
	return least;
}

static void renew(struct slots s, struct slot *slot, struct slot value)
{
	memset(slot, 0, s.item_size);
	*slot = value;
}

void *slots_take(struct slots s, uint64_t hash, uint64_t weight, bool *ret_is_new)
{
	struct slot *slot = slots_find(s, hash);

	*ret_is_new = slot == NULL;
	if (slot != NULL) {
		slot->count += weight;
		return slot;
	}
	if (*s.n < s.max) {
		slot = at(s, (*s.n)++);
		renew(s, slot, (struct slot){hash, weight, 0});
	} else {
		slot = least(s);
		renew(s, slot, (struct slot){hash, slot->count + weight, slot->count});
	}
	return slot;
}

void *slots_merge(struct slots s, const struct slot *from, bool *ret_is_new)
{
	struct slot *slot = slots_find(s, from->hash);

	*ret_is_new = slot == NULL;
	if (slot != NULL) {
		slot->count += from->count;
		slot->error += from->error;
		return slot;
	}
	if (*s.n < s.max)
		slot = at(s, (*s.n)++);
	else if ((slot = least(s))->count >= from->count)
		return NULL;
	renew(s, slot, *from);
	return slot;
}
