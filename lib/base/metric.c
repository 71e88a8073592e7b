/* SPDX-License-Identifier: MIT */
/*
 * Writes the text form by hand, into the scraper's answer. A histogram is kept as plain counts, since observing happens
 * on the decision path and reading every 15 seconds: only here they become cumulative. _count is the sum of the very
 * counts that were read for the buckets, not a counter of its own, so that the two agree in every scrape though other
 * threads go on counting.
 */
#include "base/metric.h"

#include "base/clock.h"
#include "base/must.h"

#include <stdbool.h>

#define BOUNDS_MAX 15

static const struct {
	const char *name, *type, *help;
} metrics[] = {
#define METRIC(id, name, type, help) [METRIC_##id] = {name, type, help},
#include "metrics.def"
#undef METRIC
};

const char *metric_name(enum metric m)
{
	return metrics[m].name;
}

/* Backslash and line feed are escaped everywhere, quotes in label values only. */
static void put_escaped(struct text *t, struct str s, bool quotes)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (c == '\n') {
			text_z(t, "\\n");
			continue;
		}
		if (c == '\\' || (c == '"' && quotes))
			text_char(t, '\\');
		text_char(t, c);
	}
}

void metric_family(struct text *t, enum metric m)
{
	text_z(t, "# HELP ");
	text_z(t, metrics[m].name);
	text_char(t, ' ');
	put_escaped(t, str_from_z(metrics[m].help), false);
	text_z(t, "\n# TYPE ");
	text_z(t, metrics[m].name);
	text_char(t, ' ');
	text_z(t, metrics[m].type);
	text_char(t, '\n');
}

/* Nanoseconds as seconds: exact, and without zeros at the end. */
static void put_seconds(struct text *t, uint64_t value_ns)
{
	uint64_t rest = value_ns % NS_PER_S;

	text_u64(t, value_ns / NS_PER_S);
	if (rest == 0)
		return;
	text_char(t, '.');
	for (uint64_t unit = NS_PER_S / 10; rest > 0; rest %= unit, unit /= 10)
		text_char(t, (char)('0' + rest / unit));
}

static void put_label(struct text *t, bool is_first, const char *name, struct str value)
{
	text_char(t, is_first ? '{' : ',');
	text_z(t, name);
	text_z(t, "=\"");
	put_escaped(t, value, true);
	text_char(t, '"');
}

/* "name_suffix{labels,le="le"} ", up to the value; le may be empty. */
static void put_head(struct text *t, enum metric m, const char *suffix, const struct metric_label *labels,
	size_t n, struct str le)
{
	text_z(t, metrics[m].name);
	text_z(t, suffix);
	for (size_t i = 0; i < n; i++)
		put_label(t, i == 0, labels[i].name, labels[i].value);
	if (le.len > 0)
		put_label(t, n == 0, "le", le);
	text_z(t, n > 0 || le.len > 0 ? "} " : " ");
}

void metric_sample(struct text *t, enum metric m, const struct metric_label *labels, size_t n, uint64_t value)
{
	put_head(t, m, "", labels, n, str_make(NULL, 0));
	text_u64(t, value);
	text_char(t, '\n');
}

void metric_sample_seconds(
	struct text *t, enum metric m, const struct metric_label *labels, size_t n, uint64_t ns_value)
{
	put_head(t, m, "", labels, n, str_make(NULL, 0));
	put_seconds(t, ns_value);
	text_char(t, '\n');
}

void metric_observe(struct metric_histogram *h, const struct metric_bounds *b, uint64_t value_ns)
{
	size_t i = 0;

	while (i < b->n && value_ns > b->upper_ns[i])
		i++;
	metric_add(&h->counts[i], 1);
	metric_add(&h->sum_ns, value_ns);
}

void metric_sample_histogram(struct text *t, enum metric m, const struct metric_label *labels, size_t n,
	const struct metric_parts *parts)
{
	const struct metric_bounds *b = parts->bounds;
	uint64_t cumulative = 0, sum_ns = 0;

	must(b->n <= BOUNDS_MAX);
	for (size_t i = 0; i <= b->n; i++) {
		char le[24];
		struct text bound;

		for (size_t part = 0; part < parts->n; part++)
			cumulative += metric_get(&parts->items[part]->counts[i]);
		text_init(&bound, le, sizeof(le));
		if (i < b->n)
			put_seconds(&bound, b->upper_ns[i]);
		else
			text_z(&bound, "+Inf");
		put_head(t, m, "_bucket", labels, n, text_view(&bound));
		text_u64(t, cumulative);
		text_char(t, '\n');
	}
	for (size_t part = 0; part < parts->n; part++)
		sum_ns += metric_get(&parts->items[part]->sum_ns);
	put_head(t, m, "_sum", labels, n, str_make(NULL, 0));
	put_seconds(t, sum_ns);
	text_char(t, '\n');
	put_head(t, m, "_count", labels, n, str_make(NULL, 0));
	text_u64(t, cumulative);
	text_char(t, '\n');
}
