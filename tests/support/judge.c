/* SPDX-License-Identifier: MIT */
/*
 * Plan, store and conclude by hand, as the engine does, but for counting and logging. The configuration is read by the loader
 * that serve uses, so a test says what it needs in the words of the documentation.
 */
#include "judge.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define ARENA_BYTES ((size_t)256 * 1024)

struct str judge_quotes(struct judge *j, const char *text_z)
{
	struct str copy = arena_copy(&j->arena, str_from_z(text_z));

	assert_non_null(copy.ptr);
	for (size_t i = 0; i < copy.len; i++) {
		if (copy.ptr[i] == '\'')
			((char *)copy.ptr)[i] = '"';
	}
	return copy;
}

void judge_open(struct judge *j, const char *config_z)
{
	const struct config_options options = {.without_secrets = false};
	struct fault_list faults;

	json_setup();
	assert_int_equal(digest_init(), ERR_OK);
	*j = (struct judge){.now = NS_PER_S, .block = malloc(ARENA_BYTES)};
	assert_non_null(j->block);
	arena_init(&j->arena, j->block, ARENA_BYTES);
	fault_list_init(&faults);
	if (config_load_text(&j->config, judge_quotes(j, config_z), ".", &options, &faults) != ERR_OK)
		fail_msg("%s: %s", faults.items[0].pointer_z, faults.items[0].text_z);
	fault_list_done(&faults);
	j->rules = &j->config->rules;
	assert_int_equal(store_open(&j->store, STORE_BYTES_MIN), ERR_OK);
	judge_forget(j);
}

void judge_close(struct judge *j)
{
	store_close(j->store);
	config_free(j->config);
	free(j->block);
}

void judge_forget(struct judge *j)
{
	arena_reset(&j->arena);
}

void judge_decide(struct judge *j, const struct request *req, struct verdict *ret)
{
	struct taking takings[CHARGES_MAX];
	struct plan plan;

	decide_plan(j->rules, req, &j->arena, NULL, &plan);
	if (!plan.is_final)
		store_take(j->store, plan.charges, plan.n_charges, j->now, takings);
	decide_conclude(j->rules, req, &plan, takings, ret);
}

void judge_explain(struct judge *j, const struct request *req, struct explanation *ret)
{
	struct taking takings[CHARGES_MAX];
	struct request peek = *req;

	peek.peek = true;
	decide_plan(j->rules, &peek, &j->arena, &ret->trace, &ret->plan);
	if (!ret->plan.is_final)
		store_take(j->store, ret->plan.charges, ret->plan.n_charges, j->now, takings);
	decide_conclude(j->rules, &peek, &ret->plan, takings, &ret->verdict);
}
