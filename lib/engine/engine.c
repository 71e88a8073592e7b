/* SPDX-License-Identifier: MIT */
/*
 * The only place that knows that a decision has a middle: plan, store, conclude. Counters are kept per worker with one
 * writer each, so that counting costs a plain store on the decision path; metrics.c sums them for a scrape.
 */
#include "engine/engine.h"

#include "engine/counters.h"

#include "store/store.h"
#include "watch/notice.h"
#include "watch/watch.h"

#include "base/log.h"

#include <stdlib.h>

static enum err workers_new(struct engine *e)
{
	e->workers = calloc(e->n_workers, sizeof(*e->workers));
	if (e->workers == NULL)
		return ERR_MEMORY;
	for (unsigned i = 0; i < e->n_workers; i++) {
		struct engine_worker *w = &e->workers[i];

		w->engine = e;
		w->decisions = calloc(e->n_rule_labels * DOOR_COUNT * REASON_COUNT, sizeof(*w->decisions));
		w->identities = calloc(e->rules->identities.n * TOKEN_SLOT_COUNT + 1, sizeof(*w->identities));
		w->key_fallbacks = calloc(e->rules->n_limits + 1, sizeof(*w->key_fallbacks));
		if (w->decisions == NULL || w->identities == NULL || w->key_fallbacks == NULL)
			return ERR_MEMORY;
	}
	return ERR_OK;
}

enum err engine_open(struct engine **ret, const struct ruleset *rules, struct store *store, unsigned workers)
{
	struct engine *e = calloc(1, sizeof(*e));
	enum err error = ERR_MEMORY;

	if (e == NULL)
		return ERR_MEMORY;
	e->rules = rules;
	e->store = store;
	e->n_workers = workers;
	e->n_own_labels = rules->n_rules < RULE_LABELS_MAX ? rules->n_rules : RULE_LABELS_MAX;
	e->n_rule_labels = e->n_own_labels + RULE_LABELS_EXTRA;
	error = workers_new(e);
	if (error == ERR_OK)
		error = notice_new(&e->notice);
	if (error == ERR_OK)
		error = watch_open(&e->watch, rules, workers);
	for (unsigned i = 0; error == ERR_OK && i < workers; i++)
		e->workers[i].watch = watch_worker_at(e->watch, i);
	if (error != ERR_OK) {
		engine_close(e);
		return error;
	}
	*ret = e;
	return ERR_OK;
}

void engine_close(struct engine *e)
{
	if (e == NULL)
		return;
	for (unsigned i = 0; e->workers != NULL && i < e->n_workers; i++) {
		free(e->workers[i].decisions);
		free(e->workers[i].identities);
		free(e->workers[i].key_fallbacks);
	}
	free(e->workers);
	notice_free(e->notice);
	watch_close(e->watch);
	free(e);
}

const struct ruleset *engine_rules(const struct engine *e)
{
	return e->rules;
}

struct engine_worker *engine_worker_at(struct engine *e, unsigned index)
{
	return &e->workers[index];
}

struct watch *engine_watch(struct engine *e)
{
	return e->watch;
}

/* Rules beyond the cap share the label "_other"; a verdict without a rule has an empty one. */
static size_t rule_label(struct engine_worker *w, const struct rule *rule)
{
	const struct engine *e = w->engine;
	size_t i;

	if (rule == NULL)
		return e->n_own_labels + RULE_LABEL_NONE;
	i = (size_t)(rule - e->rules->rules);
	if (i < e->n_own_labels)
		return i;
	metric_add(&w->label_overflow, 1);
	return e->n_own_labels + RULE_LABEL_OTHER;
}

static void count_token(struct engine_worker *w, const struct token_result *token, ns now)
{
	struct identity_counter *c;

	metric_add(&w->token_states[token->state], 1);
	if (token->state != TOKEN_STATE_VALID)
		return;
	c = &w->identities[token->index * TOKEN_SLOT_COUNT + token->slot];
	metric_add(&c->requests, 1);
	metric_set(&c->last_used_ns, now);
}

static void count_misconfigured(struct engine_worker *w, const struct request *req)
{
	enum door_header h = door_header_find(req->door, req->fault_header);

	if (h < DOOR_HEADER_COUNT)
		metric_add(&w->door_headers[h], 1);
}

static void count_verdict(struct engine_worker *w, const struct request *req, const struct plan *plan,
	const struct verdict *v, ns now)
{
	size_t series = (rule_label(w, v->rule) * DOOR_COUNT + req->door) * REASON_COUNT + v->reason;

	metric_add(&w->decisions[series], 1);
	if (v->reason == REASON_DOOR_MISCONFIGURED)
		count_misconfigured(w, req);
	if (v->has_client) {
		metric_add(&w->client_reasons[v->client.reason], 1);
		count_token(w, &v->token, now);
	}
	for (size_t i = 0; i < plan->n_charges; i++) {
		if (plan->fallbacks[i])
			metric_add(&w->key_fallbacks[plan->limits[i] - w->engine->rules->limits], 1);
	}
	for (unsigned i = 0; i < WARNING_COUNT; i++) {
		if (v->warnings & 1u << i)
			metric_add(&w->warnings[i], 1);
	}
}

static void log_decision(const struct request *req, const struct verdict *v)
{
	char address[IP_TEXT_BYTES] = "";
	struct log_field fields[] = {
		LOG_STR("door", door_word(req->door)),
		LOG_STR("decision", decision_word(v->decision)),
		LOG_STR("reason", reason_word(v->reason)),
		LOG_STR("rule", v->rule != NULL ? v->rule->name : STR("")),
		LOG_STR("remote_addr", req->remote_addr),
		{.name = "client"},
		LOG_STR("client_reason", v->has_client ? client_reason_word(v->client.reason) : STR("")),
		LOG_STR("token", v->has_client ? token_state_word(v->token.state) : STR("")),
		LOG_STR("identity", v->has_client && v->token.identity != NULL ? v->token.identity->name : STR("")),
		LOG_STR("id", req->id.text),
	};

	if (v->has_client && v->client.has_address)
		fields[5].text = str_make(address, ip_print(&v->client.address, address));
	log_write(LOG_DEBUG, "decision", decision_word(v->decision), fields, sizeof(fields) / sizeof(fields[0]));
}

void engine_decide(struct engine_worker *w, const struct request *req, struct arena *a, ns now, struct verdict *ret)
{
	struct engine *e = w->engine;
	struct plan plan;
	struct taking takings[CHARGES_MAX];

	decide_plan(e->rules, req, a, NULL, &plan);
	if (!plan.is_final)
		store_take(e->store, plan.charges, plan.n_charges, now, takings);
	decide_conclude(e->rules, req, &plan, takings, ret);
	count_verdict(w, req, &plan, ret, now);
	if (ret->warnings != 0 || req->fault != REASON_ALLOWED)
		notice_verdict(e->notice, e->rules, req, ret);
	watch_verdict(w->watch, req, ret, now);
	if (log_wants(LOG_DEBUG))
		log_decision(req, ret);
}

void engine_explain(struct engine_worker *w, const struct request *req, struct arena *a, ns now,
	struct explanation *ret)
{
	struct engine *e = w->engine;
	struct taking takings[CHARGES_MAX];
	struct request peek = *req;

	peek.peek = true;
	decide_plan(e->rules, &peek, a, &ret->trace, &ret->plan);
	if (!ret->plan.is_final)
		store_take(e->store, ret->plan.charges, ret->plan.n_charges, now, takings);
	decide_conclude(e->rules, &peek, &ret->plan, takings, &ret->verdict);
}
