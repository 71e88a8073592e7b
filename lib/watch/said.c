/* SPDX-License-Identifier: MIT */
/*
 * The log lines of warnings: one when it comes, one when it goes. What was there last time is remembered by code, rule and
 * key; a finding that comes back is a new one. Notes accuse nobody and stay out of the log.
 */
#include "watch/part.h"

#include "base/log.h"

static void log_new(const struct finding *f)
{
	char signals[256], line[FINDING_TEXT_BYTES + FINDING_CURE_BYTES + 16];
	struct text s, t;

	text_init(&s, signals, sizeof(signals));
	for (unsigned i = 0; i < SIGNAL_COUNT; i++) {
		if (!(f->signals & 1u << i))
			continue;
		text_z(&s, s.len > 0 ? "," : "");
		text_str(&s, signal_word((enum signal)i));
	}
	text_init(&t, line, sizeof(line));
	text_z(&t, f->text_z);
	text_z(&t, ". Cure: ");
	text_z(&t, f->cure_z);
	log_write(LOG_WARN, "shared_bucket", text_view(&t),
		(struct log_field[]){LOG_STR("rule", f->rule->name), LOG_Z("key", f->key_z),
			LOG_STR("signals", text_view(&s))},
		3);
}

static void log_gone(const struct watch *w, const struct active *a)
{
	log_write(LOG_INFO, "shared_bucket_cleared",
		w->restarted ? STR("no longer warned of: what tells clients apart was changed by a reload, "
				   "and watching began anew")
			     : STR("no longer seen: the people behind this key are told apart, or have gone"),
		(struct log_field[]){LOG_Z("rule", a->rule_z), LOG_Z("key", a->key_z)}, 2);
}

struct active *active_find(struct watch *w, const struct finding *f)
{
	for (size_t i = 0; i < w->n_actives; i++) {
		struct active *a = &w->actives[i];

		if (a->code == f->code && strcmp(a->key_z, f->key_z) == 0 &&
			str_equal(str_from_z(a->rule_z), f->rule->name))
			return a;
	}
	return NULL;
}

static void active_add(struct watch *w, const struct finding *f)
{
	struct active *a = &w->actives[w->n_actives++];

	memset(a, 0, sizeof(*a));
	a->code = f->code;
	a->since = f->since;
	a->still = true;
	memcpy(a->key_z, f->key_z, sizeof(a->key_z));
	memcpy(a->rule_z, f->rule->name.ptr,
		f->rule->name.len < sizeof(a->rule_z) ? f->rule->name.len : sizeof(a->rule_z) - 1);
}

void findings_tick(struct watch *w, ns now, ns wall_now)
{
	size_t n = findings_compute(w, now, wall_now, w->findings, FINDINGS_MAX), kept = 0;

	for (size_t i = 0; i < w->n_actives; i++)
		w->actives[i].still = false;
	for (size_t i = 0; i < n; i++) {
		struct active *a = active_find(w, &w->findings[i]);

		if (a != NULL)
			a->still = true;
	}
	for (size_t i = 0; i < w->n_actives; i++) {
		if (w->actives[i].still)
			w->actives[kept++] = w->actives[i];
		else if (finding_level_of(w->actives[i].code) == FINDING_WARNING)
			log_gone(w, &w->actives[i]);
	}
	w->n_actives = kept;
	w->restarted = false;
	for (size_t i = 0; i < n; i++) {
		if (active_find(w, &w->findings[i]) != NULL || w->n_actives == FINDINGS_MAX)
			continue;
		active_add(w, &w->findings[i]);
		if (finding_level_of(w->findings[i].code) == FINDING_WARNING)
			log_new(&w->findings[i]);
	}
}
