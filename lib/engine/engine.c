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
#include "core/same.h"

#include <stdlib.h>

static enum err workers_new(struct engine *e, unsigned workers)
{
	e->workers = calloc(workers, sizeof(*e->workers));
	if (e->workers == NULL)
		return ERR_MEMORY;
	for (; e->n_workers < workers; e->n_workers++) {
		e->workers[e->n_workers].engine = e;
		if (rows_new(&e->workers[e->n_workers]) != ERR_OK) {
			rows_free(&e->workers[e->n_workers]);
			return ERR_MEMORY;
		}
	}
	return ERR_OK;
}

enum err engine_open(struct engine **ret, const struct ruleset *rules, struct store *store, unsigned workers)
{
	struct engine *e = calloc(1, sizeof(*e));
	enum err error = ERR_MEMORY;

	if (e == NULL)
		return ERR_MEMORY;
	e->store = store;
	error = workers_new(e, workers);
	if (error == ERR_OK)
		error = engine_edition_new(&e->edition, e, rules);
	if (error == ERR_OK)
		error = notice_new(&e->notice);
	if (error != ERR_OK) {
		engine_close(e);
		return error;
	}
	for (unsigned i = 0; i < workers; i++)
		engine_edition_take(&e->workers[i], e->edition);
	*ret = e;
	return ERR_OK;
}

void engine_close(struct engine *e)
{
	if (e == NULL)
		return;
	for (unsigned i = 0; i < e->n_workers; i++)
		rows_free(&e->workers[i]);
	free(e->workers);
	engine_edition_free(e->edition);
	notice_free(e->notice);
	free(e);
}

const struct ruleset *engine_rules(const struct engine *e)
{
	return e->edition->rules;
}

struct edition *engine_edition(const struct engine *e)
{
	return e->edition;
}

struct watch *engine_watch(struct engine *e)
{
	return e->edition->watch;
}

void engine_edition_take(struct engine_worker *w, const struct edition *ed)
{
	w->edition = ed;
	w->watch = watch_worker_at(ed->watch, (unsigned)(w - w->engine->workers));
}

void engine_edition_set(struct engine *e, struct edition *ed)
{
	e->edition = ed;
}

/* Not when the new one is put in force: a worker that still goes by the old one would say the old fault once more, and with
 * that keep a new one from being said. What is said rests on client and own_networks alone: new tokens repeat nothing. */
void engine_edition_retire(struct engine *e, struct edition *before)
{
	const struct ruleset *a = before->rules, *b = e->edition->rules;

	if (!same_client(&a->client, &b->client) || !same_ranges(&a->own_networks, &b->own_networks))
		notice_forget(e->notice);
	engine_edition_free(before);
}

struct engine_worker *engine_worker_at(struct engine *e, unsigned index)
{
	return &e->workers[index];
}

/* A verdict without a rule has a row too, and so have all those beyond the cap together. */
static size_t rule_row(struct engine_worker *w, const struct rule *rule)
{
	const struct edition *ed = w->edition;
	size_t row;

	if (rule == NULL)
		return ROW_NO_RULE;
	row = ed->rosters[NAMED_RULES].row_of[rule - ed->rules->rules];
	if (row == ROW_OTHER_RULE)
		metric_add(&w->label_overflow, 1);
	return row;
}

static void count_token(struct engine_worker *w, const struct token_result *token, ns now)
{
	metric_counter *c;

	metric_add(&w->token_states[token->state], 1);
	if (token->state != TOKEN_STATE_VALID)
		return;
	c = rows_identity(w, w->edition->rosters[NAMED_IDENTITIES].row_of[token->index], token->slot);
	metric_add(&c[IDENTITY_REQUESTS], 1);
	metric_set(&c[IDENTITY_LAST_USED_NS], now);
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
	const struct edition *ed = w->edition;

	metric_add(rows_decision(w, rule_row(w, v->rule), req->door, v->reason), 1);
	if (v->reason == REASON_DOOR_MISCONFIGURED)
		count_misconfigured(w, req);
	if (v->has_client) {
		metric_add(&w->client_reasons[v->client.reason], 1);
		count_token(w, &v->token, now);
	}
	for (size_t i = 0; i < plan->n_charges; i++) {
		if (plan->fallbacks[i])
			metric_add(rows_limit(w, ed->rosters[NAMED_LIMITS].row_of[plan->limits[i] - ed->rules->limits]), 1);
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
	const struct ruleset *rules = w->edition->rules;
	struct plan plan;
	struct taking takings[CHARGES_MAX];

	decide_plan(rules, req, a, NULL, &plan);
	if (!plan.is_final)
		store_take(e->store, plan.charges, plan.n_charges, now, takings);
	decide_conclude(rules, req, &plan, takings, ret);
	count_verdict(w, req, &plan, ret, now);
	if (ret->warnings != 0 || req->fault != REASON_ALLOWED)
		notice_verdict(e->notice, rules, req, ret);
	watch_verdict(w->watch, req, ret, now);
	if (log_wants(LOG_DEBUG))
		log_decision(req, ret);
}

void engine_explain(struct engine_worker *w, const struct request *req, struct arena *a, ns now,
	struct explanation *ret)
{
	struct engine *e = w->engine;
	const struct ruleset *rules = w->edition->rules;
	struct taking takings[CHARGES_MAX];
	struct request peek = *req;

	peek.peek = true;
	decide_plan(rules, &peek, a, &ret->trace, &ret->plan);
	if (!ret->plan.is_final)
		store_take(e->store, ret->plan.charges, ret->plan.n_charges, now, takings);
	decide_conclude(rules, &peek, &ret->plan, takings, &ret->verdict);
}
