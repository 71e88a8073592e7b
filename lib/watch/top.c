/* SPDX-License-Identifier: MIT */
/*
 * The lists that the profiles keep anyway, put in order. Keys are clients' keys, not buckets': who is refused is asked
 * about people and machines, whatever else a limit's key holds.
 */
#include "watch/top.h"

#include "watch/part.h"

/* Puts a row where it belongs; a full list loses its last. Returns the new length. */
static size_t row_add(struct top_row *rows, size_t n, size_t max, const struct top_row *row)
{
	size_t at = n;

	while (at > 0 && rows[at - 1].requests < row->requests)
		at--;
	if (at == max)
		return n;
	n = n < max ? n + 1 : n;
	memmove(&rows[at + 1], &rows[at], (n - 1 - at) * sizeof(*rows));
	rows[at] = *row;
	return n;
}

/* Puts the list of one rule into the rows. */
static size_t rule_read(
	struct watch *w, size_t rule, enum top_kind kind, struct top_row *rows, size_t n, size_t max)
{
	const struct window *win = w->merged;
	size_t count = kind == TOP_BUSIEST ? win->busiest_slots.n : win->refused_slots.n;

	for (size_t i = 0; i < count; i++) {
		const struct behind *b = &win->busiest[i];
		const struct refused_key *r = &win->refused[i];
		bool busiest = kind == TOP_BUSIEST;
		const struct slot *slot = busiest ? &b->slot : &r->slot;
		struct top_row row = {.rule = &w->rules->rules[rule],
			.key_len = busiest ? b->key_len : r->key_len,
			.requests = slot->count,
			.error = slot->error};

		memcpy(row.key, busiest ? b->key : r->key, sizeof(row.key));
		n = row_add(rows, n, max, &row);
	}
	return n;
}

size_t top_read(
	struct watch *w, size_t rule_index, enum top_kind kind, ns now, struct top_row *ret, size_t max)
{
	size_t n = 0;

	if (rule_index >= w->n_rules)
		return 0;
	pthread_mutex_lock(&w->lock);
	watch_merge(w, rule_index, now, true, false);
	n = rule_read(w, rule_index, kind, ret, n, max);
	pthread_mutex_unlock(&w->lock);
	return n;
}

size_t top_read_all(struct watch *w, enum top_kind kind, ns now, struct top_row *ret, size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_rules; i++) {
		watch_merge(w, i, now, true, false);
		n = rule_read(w, i, kind, ret, n, max);
	}
	pthread_mutex_unlock(&w->lock);
	return n;
}
