/* SPDX-License-Identifier: MIT */
/*
 * Loading may take long (a thousand rules, a slow disk under a token file) and worker 0 answers questions like every other, so
 * it happens in a thread that lives as long as that. Everything that can fail happens there too: what is left for worker 0
 * is to change pointers, so a reload can neither hold up a question nor stop half way.
 * One attempt at a time: the next may not begin before the configuration before is gone, since its place among the counters
 * and in the snapshot is given away then.
 */
#include "server/reload.h"

#include "config/snapshot.h"

#include "base/log.h"
#include "base/metric.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FAULTS_TOLD 3
#define WARNINGS_TOLD 8
#define FAULT_LINE_BYTES 768

static const struct str result_words[RELOAD_RESULT_COUNT] = {
	[RELOAD_SUCCESS] = {"success", 7}, [RELOAD_UNCHANGED] = {"unchanged", 9}, [RELOAD_FAILURE] = {"failure", 7}};

static void attempt_begin(struct reload *r);

/* ---------------------------------------------------------------------------------------------------- what is told */

/* Prints the next fault of this severity from *at on; false if there is none. */
static bool next_fault(const struct fault_list *faults, enum fault_severity severity, size_t *at, char line[FAULT_LINE_BYTES])
{
	while (*at < faults->n && faults->items[*at].severity != severity)
		(*at)++;
	if (*at == faults->n)
		return false;
	fault_print(&faults->items[(*at)++], line, FAULT_LINE_BYTES);
	return true;
}

static void tell_failure(struct reload *r)
{
	static const char *const names[FAULTS_TOLD] = {"fault", "fault_2", "fault_3"};
	const struct reload_attempt *a = &r->attempt;
	char lines[FAULTS_TOLD][FAULT_LINE_BYTES];
	struct log_field fields[2 + FAULTS_TOLD] = {
		LOG_STR("config", r->config->rules.hash), LOG_NUM("faults", a->faults.n_errors)};
	size_t n = 2, at = 0;

	for (size_t i = 0; i < FAULTS_TOLD && next_fault(&a->faults, FAULT_ERROR, &at, lines[i]); i++)
		fields[n++] = LOG_Z(names[i], lines[i]);
	if (n == 2) {
		snprintf(lines[0], sizeof(lines[0]), "cannot load: %s", err_text(a->error));
		fields[n++] = LOG_Z(names[0], lines[0]);
	}
	snprintf(r->status.error_z, sizeof(r->status.error_z), "%s", lines[0]);
	log_write(LOG_ERROR, "reload_failed", STR("the new configuration has faults, so the one in force stays"), fields, n);
}

static void tell_unchanged(const struct reload *r)
{
	const struct log_field fields[] = {LOG_STR("config", r->config->rules.hash)};

	log_write(LOG_INFO, "reload_unchanged",
		r->config->file_z[0] != '\0' ?
			STR("nothing has changed since the last load, in the file or in a token") :
			STR("nothing to take: there is no configuration file, and no token file holds another token"),
		fields, 1);
}

static void tell_success(const struct reload *r, struct str old_hash)
{
	const struct reload_attempt *a = &r->attempt;
	const struct change *c = &a->change;
	char line[FAULT_LINE_BYTES];
	struct log_field fields[8] = {
		LOG_STR("old", old_hash),
		LOG_STR("new", r->config->rules.hash),
		LOG_Z("changed", c->settings_z),
		LOG_Z("limits", c->limits_z),
		LOG_Z("rules", c->rules_z),
		LOG_Z("identities", c->identities_z),
		LOG_NUM("took_ms", (loop_now(r->loop) - a->began) / NS_PER_MS),
	};
	size_t n = 7, at = 0;

	for (size_t i = 0; i < WARNINGS_TOLD && next_fault(&a->faults, FAULT_WARNING, &at, line); i++)
		log_write(LOG_WARN, "config_warning", str_from_z(line), NULL, 0);
	if (c->restart_z[0] != '\0')
		fields[n++] = LOG_Z("restart_required", c->restart_z);
	log_write(c->restart_z[0] != '\0' ? LOG_WARN : LOG_INFO, "reload",
		c->restart_z[0] != '\0' ?
			STR("the new configuration is in force, but for settings that keep their value until a restart") :
			STR("the new configuration is in force"),
		fields, n);
}

static void attempt_end(struct reload *r)
{
	struct reload_status *s = &r->status;
	ns now = clock_wall_ns();

	r->counts[r->attempt.result]++;
	s->ok = r->attempt.result != RELOAD_FAILURE;
	if (s->ok) {
		s->error_z[0] = '\0';
		s->checked_at = now;
	}
	if (r->attempt.result == RELOAD_SUCCESS) {
		s->loaded_at = now;
		memcpy(s->restart_z, r->attempt.change.restart_z, sizeof(s->restart_z));
	}
	fault_list_done(&r->attempt.faults);
	r->stage = RELOAD_IDLE;
	if (r->again)
		attempt_begin(r);
}

/* ---------------------------------------------------------------------------------------------------- loading, in a thread of its own */

static void attempt_clear(struct reload_attempt *a)
{
	config_free(a->config);
	free(a->next);
	a->config = NULL;
	a->next = NULL;
}

/* Also for the listeners that there are: what is right for those in the file may be wrong for them. */
static enum err attempt_check(struct reload *r)
{
	struct reload_attempt *a = &r->attempt;

	change_settle(&a->change, a->config, r->config);
	config_check_listeners(a->config, &a->faults);
	if (a->faults.n_errors > 0)
		return ERR_SYNTAX;
	a->next = calloc(1, sizeof(*a->next));
	if (a->next == NULL)
		return ERR_MEMORY;
	a->next->config = a->config;
	return engine_edition_new(&a->next->edition, r->engine, &a->config->rules);
}

static void *attempt_run(void *arg)
{
	struct reload *r = arg;
	struct reload_attempt *a = &r->attempt;

	a->result = RELOAD_FAILURE;
	a->error = r->source.load(r->source.arg, &a->config, &a->faults);
	if (a->error == ERR_OK && str_equal(a->config->rules.hash, r->config->rules.hash))
		a->result = RELOAD_UNCHANGED;
	else if (a->error == ERR_OK)
		a->error = attempt_check(r);
	if (a->result == RELOAD_FAILURE && a->error == ERR_OK)
		a->result = RELOAD_SUCCESS;
	else
		attempt_clear(a);
	atomic_store(&a->done, true);
	reload_tell(r);
	return NULL;
}

/* ---------------------------------------------------------------------------------------------------- worker 0 */

static void attempt_begin(struct reload *r)
{
	struct reload_attempt *a = &r->attempt;

	r->again = false;
	*a = (struct reload_attempt){.result = RELOAD_FAILURE, .error = ERR_MEMORY, .began = loop_now(r->loop)};
	fault_list_init(&a->faults);
	if (pthread_create(&r->thread, NULL, attempt_run, r) == 0) {
		r->stage = RELOAD_LOADING;
		return;
	}
	tell_failure(r);
	attempt_end(r);
}

static void loaded(struct reload *r)
{
	struct reload_attempt *a = &r->attempt;

	(void)pthread_join(r->thread, NULL);
	if (a->result != RELOAD_SUCCESS) {
		if (a->result == RELOAD_FAILURE)
			tell_failure(r);
		else
			tell_unchanged(r);
		attempt_end(r);
		return;
	}
	r->stage = RELOAD_TAKING;
	r->before = *r->source.config;
	*r->source.config = a->config;
	r->config = a->config;
	r->current = a->next;
	engine_edition_set(r->engine, a->next->edition);
	log_change(r->config->log_level, r->config->log_format);
	snapshot_publish(r->snapshot, a->next);
	r->in_force(r->arg, r->config);
}

static void taken(struct reload *r)
{
	struct generation *before = snapshot_retire(r->snapshot);

	if (before == NULL)
		return;
	engine_edition_retire(r->engine, before->edition);
	free(before);
	tell_success(r, r->before->rules.hash);
	config_free(r->before);
	attempt_end(r);
}

static void news_ready(void *arg, uint32_t epoll_events)
{
	struct reload *r = arg;
	uint64_t count;

	(void)epoll_events;
	if (read(r->news.fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
		return;
	if (r->stage == RELOAD_LOADING && atomic_load(&r->attempt.done))
		loaded(r);
	/* Not else: a single worker has taken it by now. */
	if (r->stage == RELOAD_TAKING)
		taken(r);
}

void reload_ask(struct reload *r)
{
	if (r->source.load == NULL)
		log_say(LOG_WARN, "reload_unchanged", "there is nothing that a new configuration could come from");
	else if (r->stage == RELOAD_IDLE)
		attempt_begin(r);
	else
		r->again = true;
}

/* ---------------------------------------------------------------------------------------------------- workers, and all together */

const struct generation *reload_pass(struct reload *r, unsigned worker)
{
	return snapshot_pass(r->snapshot, worker);
}

void reload_tell(const struct reload *r)
{
	uint64_t one = 1;
	ssize_t written = write(r->news.fd, &one, sizeof(one));

	(void)written; /* fails only where the counter is full, and then worker 0 will look anyway */
}

void reload_metrics_write(const struct reload *r, struct text *t)
{
	metric_family(t, METRIC_RELOAD_SUCCESSFUL);
	metric_sample(t, METRIC_RELOAD_SUCCESSFUL, NULL, 0, r->status.ok);
	metric_family(t, METRIC_RELOAD_SUCCESS_TIME);
	metric_sample(t, METRIC_RELOAD_SUCCESS_TIME, NULL, 0, r->status.checked_at / NS_PER_S);
	metric_family(t, METRIC_RELOADS);
	for (size_t i = 0; i < RELOAD_RESULT_COUNT; i++) {
		const struct metric_label label = {"result", result_words[i]};

		metric_sample(t, METRIC_RELOADS, &label, 1, r->counts[i]);
	}
}

enum err reload_open(struct reload *r)
{
	struct generation *first = calloc(1, sizeof(*first));

	r->news.fd = -1;
	if (first == NULL)
		return ERR_MEMORY;
	r->current = first;
	first->config = r->config;
	first->edition = engine_edition(r->engine);
	r->status.ok = true;
	r->status.checked_at = clock_wall_ns();
	r->status.loaded_at = r->status.checked_at;
	r->news.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (r->news.fd < 0)
		return ERR_IO;
	return snapshot_open(&r->snapshot, r->config->workers, first);
}

enum err reload_attach(struct reload *r, struct loop *loop)
{
	r->loop = loop;
	r->news.ready = news_ready;
	r->news.arg = r;
	return loop_add(loop, &r->news, EPOLLIN);
}

void reload_close(struct reload *r)
{
	if (r->current == NULL)
		return;
	r->again = false;
	if (r->stage == RELOAD_LOADING) {
		(void)pthread_join(r->thread, NULL);
		if (r->attempt.next != NULL)
			engine_edition_free(r->attempt.next->edition);
		attempt_clear(&r->attempt);
		fault_list_done(&r->attempt.faults);
	} else if (r->stage == RELOAD_TAKING) {
		for (unsigned i = 0; i < r->config->workers; i++)
			(void)reload_pass(r, i);
		taken(r);
	}
	if (r->loop != NULL)
		loop_remove(r->loop, &r->news);
	if (r->news.fd >= 0)
		(void)close(r->news.fd);
	snapshot_close(r->snapshot);
	free(r->current);
}
