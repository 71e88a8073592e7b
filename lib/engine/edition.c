/* SPDX-License-Identifier: MIT */
/*
 * Counters stay where they are while rulesets change: only the way from a rule to its row is made anew. So nothing is copied,
 * nothing is lost while workers count, and no series ever goes back. The price is that the series of a removed name stay,
 * as they should for whoever computes a rate over the moment of the change, until their row is needed for a new name.
 * A row may be given away when the ruleset in force does not have its name: no worker can have an older one by then,
 * since an edition is made only after the one before was put in force everywhere.
 */
#include "engine/counters.h"

#include "base/must.h"
#include "watch/watch.h"

#include <stdlib.h>

#define RULES_OF_OUR_OWN 2 /* ROW_NO_RULE, ROW_OTHER_RULE */
#define NAMES_MAX 1000     /* of identities or limits in a configuration */

static size_t rule_count(const struct ruleset *r)
{
	return r->n_rules;
}

static struct str rule_name(const struct ruleset *r, size_t i)
{
	return r->rules[i].name;
}

static size_t identity_count(const struct ruleset *r)
{
	return r->identities.n;
}

static struct str identity_name(const struct ruleset *r, size_t i)
{
	return r->identities.items[i].name;
}

static size_t limit_count(const struct ruleset *r)
{
	return r->n_limits;
}

static struct str limit_name(const struct ruleset *r, size_t i)
{
	return r->limits[i].name;
}

/* max_names: of one ruleset, more share ROW_OTHER_RULE. There are rows for two rulesets that have no name in common. */
static const struct kind {
	size_t (*count)(const struct ruleset *r);
	struct str (*name)(const struct ruleset *r, size_t i);
	size_t max_names, first_row, counters_a_row;
} kinds[NAMED_COUNT] = {
	[NAMED_RULES] = {rule_count, rule_name, RULE_LABELS_MAX, RULES_OF_OUR_OWN, (size_t)DOOR_COUNT * REASON_COUNT},
	[NAMED_IDENTITIES] = {identity_count, identity_name, NAMES_MAX, 0, (size_t)TOKEN_SLOT_COUNT * IDENTITY_COUNTERS},
	[NAMED_LIMITS] = {limit_count, limit_name, NAMES_MAX, 0, 1},
};

static size_t rows_max(const struct kind *k)
{
	return k->first_row + 2 * k->max_names;
}

enum err rows_new(struct engine_worker *w)
{
	for (size_t i = 0; i < NAMED_COUNT; i++) {
		w->rows[i] = calloc(rows_max(&kinds[i]) * kinds[i].counters_a_row, sizeof(*w->rows[i]));
		if (w->rows[i] == NULL)
			return ERR_MEMORY;
	}
	return ERR_OK;
}

void rows_free(struct engine_worker *w)
{
	for (size_t i = 0; i < NAMED_COUNT; i++)
		free(w->rows[i]);
}

static void row_clear(struct engine *e, enum named named, size_t row)
{
	size_t n = kinds[named].counters_a_row;

	for (unsigned w = 0; w < e->n_workers; w++) {
		for (size_t i = 0; i < n; i++)
			metric_set(&e->workers[w].rows[named][row * n + i], 0);
	}
}

static void row_use(struct row *row, struct str name)
{
	size_t len = name.len < ROW_NAME_BYTES ? name.len : ROW_NAME_BYTES - 1;

	if (len > 0)
		memcpy(row->name_z, name.ptr, len);
	row->name_z[len] = '\0';
	row->is_used = true;
}

/* A row for a name that has none yet. */
static size_t row_new(struct engine *e, enum named named, struct roster *to)
{
	const struct roster *from = e->edition != NULL ? &e->edition->rosters[named] : to;
	size_t row = 0;

	if (to->n < rows_max(&kinds[named]))
		return to->n++;
	while (to->rows[row].is_used || from->rows[row].is_used) {
		row++;
		must(row < from->n);
	}
	row_clear(e, named, row);
	return row;
}

static size_t row_find(const struct roster *roster, const struct kind *kind, struct str name)
{
	size_t row = kind->first_row;

	while (row < roster->n && !str_equal(str_from_z(roster->rows[row].name_z), name))
		row++;
	return row;
}

/* The rows there were, with room for those of new names. */
static enum err roster_begin(struct roster *to, const struct roster *from, const struct kind *kind, size_t n)
{
	to->n = from != NULL ? from->n : kind->first_row;
	to->rows = calloc(to->n + n + 1, sizeof(*to->rows));
	to->row_of = calloc(n + 1, sizeof(*to->row_of));
	if (to->rows == NULL || to->row_of == NULL)
		return ERR_MEMORY;
	for (size_t row = 0; from != NULL && row < from->n; row++)
		memcpy(to->rows[row].name_z, from->rows[row].name_z, ROW_NAME_BYTES);
	return ERR_OK;
}

static enum err roster_make(struct engine *e, enum named named, struct edition *ed)
{
	const struct kind *kind = &kinds[named];
	struct roster *to = &ed->rosters[named];
	size_t n = kind->count(ed->rules);
	enum err error = roster_begin(to, e->edition != NULL ? &e->edition->rosters[named] : NULL, kind, n);

	if (error != ERR_OK)
		return error;
	for (size_t row = 0; row < kind->first_row; row++)
		row_use(&to->rows[row], row == ROW_NO_RULE ? STR("") : STR("_other"));
	for (size_t i = 0; i < n; i++) {
		struct str name = kind->name(ed->rules, i);
		size_t row;

		if (i >= kind->max_names && kind->first_row == 0)
			return ERR_FULL;
		to->row_of[i] = ROW_OTHER_RULE;
		if (i >= kind->max_names)
			continue;
		row = row_find(to, kind, name);
		if (row == to->n)
			row = row_new(e, named, to);
		row_use(&to->rows[row], name);
		to->row_of[i] = (uint16_t)row;
	}
	return ERR_OK;
}

enum err engine_edition_new(struct edition **ret, struct engine *e, const struct ruleset *rules)
{
	struct edition *ed = calloc(1, sizeof(*ed));
	enum err error = ed != NULL ? ERR_OK : ERR_MEMORY;

	if (error == ERR_OK) {
		ed->rules = rules;
		error = watch_open(&ed->watch, rules, e->n_workers);
	}
	for (unsigned named = 0; named < NAMED_COUNT && error == ERR_OK; named++)
		error = roster_make(e, (enum named)named, ed);
	if (error != ERR_OK) {
		engine_edition_free(ed);
		return error;
	}
	if (e->edition != NULL)
		watch_carry(ed->watch, e->edition->watch);
	*ret = ed;
	return ERR_OK;
}

void engine_edition_free(struct edition *ed)
{
	if (ed == NULL)
		return;
	for (size_t i = 0; i < NAMED_COUNT; i++) {
		free(ed->rosters[i].rows);
		free(ed->rosters[i].row_of);
	}
	watch_close(ed->watch);
	free(ed);
}
