/* SPDX-License-Identifier: MIT */
/*
 * Sums the workers' counters into the families of api/metrics.def. Every series of a closed set is written, zero or not,
 * so that a rate over a series that has not happened yet is 0 and not missing.
 */
#include "engine/engine.h"

#include "engine/counters.h"

#include "store/store.h"
#include "watch/notice.h"
#include "watch/watch.h"

#include "base/metric.h"

#include <stddef.h>

static const struct str store_label = {"memory", 6};

/* A counter inside every worker, by its offset, summed. */
static uint64_t sum_member(const struct engine *e, size_t offset, size_t index)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < e->n_workers; i++) {
		const char *member = (const char *)&e->workers[i] + offset;

		sum += metric_get((const metric_counter *)member + index);
	}
	return sum;
}

/* Every series of a name in force is shown, and those of one that is not any more where they have counted something. */
static bool is_shown(const struct row *row, uint64_t sum)
{
	return row->is_used || sum > 0;
}

static void write_decisions(const struct engine *e, struct text *t)
{
	const struct roster *roster = &e->edition->rosters[NAMED_RULES];

	metric_family(t, METRIC_DECISIONS);
	for (size_t row = 0; row < roster->n; row++) {
		for (size_t i = 0; i < (size_t)DOOR_COUNT * REASON_COUNT; i++) {
			enum door door = (enum door)(i / REASON_COUNT);
			enum reason reason = (enum reason)(i % REASON_COUNT);
			struct metric_label labels[] = {{"door", door_word(door)},
				{"decision", decision_word(reason_decision(reason))}, {"reason", reason_word(reason)},
				{"rule", str_from_z(roster->rows[row].name_z)}};
			uint64_t sum = 0;

			for (unsigned w = 0; w < e->n_workers; w++)
				sum += metric_get(rows_decision(&e->workers[w], row, door, reason));
			if (is_shown(&roster->rows[row], sum))
				metric_sample(t, METRIC_DECISIONS, labels, 4, sum);
		}
	}
}

static void write_identities(const struct engine *e, struct text *t, enum metric family, ns now, ns wall_now)
{
	const struct roster *roster = &e->edition->rosters[NAMED_IDENTITIES];

	metric_family(t, family);
	for (size_t i = 0; i < roster->n * TOKEN_SLOT_COUNT; i++) {
		const struct row *row = &roster->rows[i / TOKEN_SLOT_COUNT];
		enum token_slot slot = (enum token_slot)(i % TOKEN_SLOT_COUNT);
		struct metric_label labels[] = {
			{"identity", str_from_z(row->name_z)}, {"slot", token_slot_word(slot)}};
		uint64_t requests = 0;
		ns last = 0;

		for (unsigned w = 0; w < e->n_workers; w++) {
			const metric_counter *c = rows_identity(&e->workers[w], i / TOKEN_SLOT_COUNT, slot);
			ns used = metric_get(&c[IDENTITY_LAST_USED_NS]);

			requests += metric_get(&c[IDENTITY_REQUESTS]);
			last = used > last ? used : last;
		}
		if (!is_shown(row, requests))
			continue;
		if (family == METRIC_IDENTITY_REQUESTS)
			metric_sample(t, family, labels, 2, requests);
		else
			metric_sample(t, family, labels, 2, last == 0 ? 0 : (wall_now - (now - last)) / NS_PER_S);
	}
}

static void write_key_fallbacks(const struct engine *e, struct text *t)
{
	const struct roster *roster = &e->edition->rosters[NAMED_LIMITS];

	metric_family(t, METRIC_KEY_FALLBACK);
	for (size_t i = 0; i < roster->n; i++) {
		struct metric_label label = {"limit", str_from_z(roster->rows[i].name_z)};
		uint64_t sum = 0;

		for (unsigned w = 0; w < e->n_workers; w++)
			sum += metric_get(rows_limit(&e->workers[w], i));
		if (is_shown(&roster->rows[i], sum))
			metric_sample(t, METRIC_KEY_FALLBACK, &label, 1, sum);
	}
}

static void write_door_headers(const struct engine *e, struct text *t)
{
	metric_family(t, METRIC_DOOR_MISCONFIGURED);
	for (size_t i = 0; i < DOOR_HEADER_COUNT; i++) {
		enum door_header h = (enum door_header)i;
		struct metric_label labels[] = {
			{"door", door_word(door_header_door(h))}, {"header", door_header_name(h)}};

		metric_sample(t, METRIC_DOOR_MISCONFIGURED, labels, 2,
			sum_member(e, offsetof(struct engine_worker, door_headers), i));
	}
}

static struct str word_of_client_reason(size_t i)
{
	return client_reason_word((enum client_reason)i);
}

static struct str word_of_token_state(size_t i)
{
	return token_state_word((enum token_state)i);
}

static struct str word_of_warning(size_t i)
{
	return warning_word((enum warning)i);
}

/* Families with one label from a closed list, counted in an array inside each worker. */
static const struct closed_family {
	enum metric metric;
	const char *label;
	size_t offset, count;
	struct str (*word)(size_t i);
} closed_families[] = {
	{METRIC_CLIENT_ADDRESS, "reason", offsetof(struct engine_worker, client_reasons), CLIENT_REASON_COUNT,
		word_of_client_reason},
	{METRIC_TOKEN_STATES, "state", offsetof(struct engine_worker, token_states), TOKEN_STATE_COUNT,
		word_of_token_state},
	{METRIC_WARNINGS, "warning", offsetof(struct engine_worker, warnings), WARNING_COUNT, word_of_warning},
};

static void write_closed(const struct engine *e, struct text *t, const struct closed_family *f)
{
	metric_family(t, f->metric);
	for (size_t i = 0; i < f->count; i++) {
		struct metric_label label = {f->label, f->word(i)};

		metric_sample(t, f->metric, &label, 1, sum_member(e, f->offset, i));
	}
}

static void write_single(struct text *t, enum metric m, const char *name, struct str value, uint64_t number)
{
	struct metric_label label = {name, value};

	metric_family(t, m);
	metric_sample(t, m, &label, 1, number);
}

static void write_suppressed(struct engine *e, struct text *t)
{
	struct metric_label notice = {"stream", STR("notice")}, own = {"stream", STR("own_service")};

	metric_family(t, METRIC_LOG_SUPPRESSED);
	metric_sample(t, METRIC_LOG_SUPPRESSED, &notice, 1, notice_suppressed(e->notice));
	metric_sample(t, METRIC_LOG_SUPPRESSED, &own, 1, watch_suppressed(e->edition->watch));
}

void engine_metrics_write(struct engine *e, struct text *t, ns now, ns wall_now)
{
	struct store_usage usage;

	store_usage_read(e->store, now, &usage);
	write_decisions(e, t);
	write_identities(e, t, METRIC_IDENTITY_REQUESTS, now, wall_now);
	write_identities(e, t, METRIC_IDENTITY_LAST_USED, now, wall_now);
	for (size_t i = 0; i < sizeof(closed_families) / sizeof(closed_families[0]); i++)
		write_closed(e, t, &closed_families[i]);
	write_door_headers(e, t);
	write_key_fallbacks(e, t);
	write_single(t, METRIC_STATE_ENTRIES, "store", store_label, usage.entries);
	write_single(t, METRIC_STATE_CAPACITY, "store", store_label, usage.capacity);
	write_single(t, METRIC_STATE_OVERFLOW, "store", store_label, usage.overflow_total);
	write_single(t, METRIC_CONFIG_INFO, "hash", e->edition->rules->hash, 1);
	watch_metrics_write(e->edition->watch, t, now, wall_now);
	write_suppressed(e, t);
	write_single(t, METRIC_LABEL_OVERFLOW, "family", STR("postern_decisions_total"),
		sum_member(e, offsetof(struct engine_worker, label_overflow), 0));
}
