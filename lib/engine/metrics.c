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

static struct str label_of_rule(const struct engine *e, size_t label)
{
	if (label < e->n_own_labels)
		return e->rules->rules[label].name;
	return label - e->n_own_labels == RULE_LABEL_NONE ? STR("") : STR("_other");
}

static void write_decisions(const struct engine *e, struct text *t)
{
	metric_family(t, METRIC_DECISIONS);
	for (size_t label = 0; label < e->n_rule_labels; label++) {
		for (size_t i = 0; i < (size_t)DOOR_COUNT * REASON_COUNT; i++) {
			enum door door = (enum door)(i / REASON_COUNT);
			enum reason reason = (enum reason)(i % REASON_COUNT);
			struct metric_label labels[] = {{"door", door_word(door)},
				{"decision", decision_word(reason_decision(reason))}, {"reason", reason_word(reason)},
				{"rule", label_of_rule(e, label)}};
			uint64_t sum = 0;

			for (unsigned w = 0; w < e->n_workers; w++)
				sum += metric_get(&e->workers[w].decisions[label * DOOR_COUNT * REASON_COUNT + i]);
			metric_sample(t, METRIC_DECISIONS, labels, 4, sum);
		}
	}
}

static void write_identities(const struct engine *e, struct text *t, enum metric family, ns now, ns wall_now)
{
	metric_family(t, family);
	for (size_t i = 0; i < e->rules->identities.n * TOKEN_SLOT_COUNT; i++) {
		struct metric_label labels[] = {{"identity", e->rules->identities.items[i / TOKEN_SLOT_COUNT].name},
			{"slot", token_slot_word((enum token_slot)(i % TOKEN_SLOT_COUNT))}};
		uint64_t requests = 0;
		ns last = 0;

		for (unsigned w = 0; w < e->n_workers; w++) {
			ns used = metric_get(&e->workers[w].identities[i].last_used_ns);

			requests += metric_get(&e->workers[w].identities[i].requests);
			last = used > last ? used : last;
		}
		if (family == METRIC_IDENTITY_REQUESTS)
			metric_sample(t, family, labels, 2, requests);
		else
			metric_sample(t, family, labels, 2, last == 0 ? 0 : (wall_now - (now - last)) / NS_PER_S);
	}
}

static void write_key_fallbacks(const struct engine *e, struct text *t)
{
	metric_family(t, METRIC_KEY_FALLBACK);
	for (size_t i = 0; i < e->rules->n_limits; i++) {
		struct metric_label label = {"limit", e->rules->limits[i].name};
		uint64_t sum = 0;

		for (unsigned w = 0; w < e->n_workers; w++)
			sum += metric_get(&e->workers[w].key_fallbacks[i]);
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
	metric_sample(t, METRIC_LOG_SUPPRESSED, &own, 1, watch_suppressed(e->watch));
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
	write_single(t, METRIC_CONFIG_INFO, "hash", e->rules->hash, 1);
	watch_metrics_write(e->watch, t, now, wall_now);
	write_suppressed(e, t);
	write_single(t, METRIC_LABEL_OVERFLOW, "family", STR("postern_decisions_total"),
		sum_member(e, offsetof(struct engine_worker, label_overflow), 0));
}
