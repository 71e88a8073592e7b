/* SPDX-License-Identifier: MIT */
/*
 * The table of set-ups that tell clients apart wrongly, and of those that only look as if they did. Each row's traffic is
 * made up from a seed, asked through a door, judged and watched in virtual time. A wrong set-up must be told within
 * FLAG_WITHIN requests, in words that hold its cure, and still be told of at the end; where the cure is a setting, the same traffic is run again under it and
 * must be told of no more. A right one must never be accused, in all of ROW_REQUESTS. The table is printed.
 * Run from the root of the repository.
 */
#include "adapter/adapter.h"
#include "config/config.h"
#include "engine/engine.h"
#include "store/store.h"
#include "watch/finding.h"
#include "watch/own.h"
#include "watch/watch.h"

#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "../support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#define TABLE_PATH "tests/cases/topology.json"
#define TABLE_MAX_BYTES ((size_t)4 << 20)
#define ROW_REQUESTS 5000u
#define FLAG_WITHIN 1000u
#define LOOK_EVERY 25u
#define ARENA_BYTES ((size_t)128 * 1024)
#define GROUPS_MAX 8
#define LINES_MAX 16
#define VALUE_BYTES 256
#define WALL_START ((ns)1700000000 * NS_PER_S)

static const struct json *rows;
static char blocks[ARENA_BYTES];
static unsigned n_wrong, n_right;

/* ---- reading the table */

static struct str text_of(const struct json *object, const char *name_z, const char *otherwise_z)
{
	const struct json *v = json_member(object, name_z);

	return v != NULL ? json_text(v) : str_from_z(otherwise_z);
}

static uint64_t number_of(const struct json *object, const char *name_z, uint64_t otherwise)
{
	const struct json *v = json_member(object, name_z);

	return v != NULL ? (uint64_t)json_integer_of(v) : otherwise;
}

static bool flag_of(const struct json *object, const char *name_z, bool otherwise)
{
	const struct json *v = json_member(object, name_z);

	return v != NULL ? json_bool(v) : otherwise;
}

/* {"version":1, client, rest}; in the table single quotes stand for double ones. */
static struct config *config_make(const struct json *row, const char *client_z)
{
	const struct config_options options = {.without_secrets = false};
	struct str client = client_z != NULL ? str_from_z(client_z) : text_of(row, "client", "");
	struct str rest = text_of(row, "rest",
		"'limits':{'per-client':{'rate':'300/minute'}},"
		"'rules':[{'name':'all','limits':['per-client']}]");
	struct config *config = NULL;
	struct fault_list faults;
	char buffer[4096];
	int n = snprintf(buffer, sizeof(buffer), "{\"version\":1%s%.*s%s%.*s}", client.len > 0 ? "," : "",
		STR_ARG(client), rest.len > 0 ? "," : "", STR_ARG(rest));

	assert_in_range(n, 1, sizeof(buffer) - 1);
	for (int i = 0; i < n; i++)
		buffer[i] = buffer[i] == '\'' ? '"' : buffer[i];
	fault_list_init(&faults);
	if (config_load_text(&config, str_make(buffer, (size_t)n), ".", &options, &faults) != ERR_OK)
		fail_msg("%s: %s in %s", faults.items[0].pointer_z, faults.items[0].text_z, buffer);
	fault_list_done(&faults);
	return config;
}

/* ---- traffic */

struct person {
	const struct json *group;
	uint64_t number; /* in its group */
	char client[IP_TEXT_BYTES];
};

/* Homes of a group lie side by side: IPv4 address by address, IPv6 /64 by /64 with hosts that change. */
/* In place of digest_random (see the Makefile): sketches and samples are those of one start, in every run. */
void __wrap_digest_random(void *bytes, size_t len);

void __wrap_digest_random(void *bytes, size_t len)
{
	static struct random drawn = {7};

	for (size_t i = 0; i < len; i++)
		((uint8_t *)bytes)[i] = (uint8_t)random_u64(&drawn);
}

static void person_address(struct person *p, struct random *r)
{
	uint64_t home = p->number % number_of(p->group, "homes", number_of(p->group, "people", 1));
	struct ip ip;

	assert_true(ip_parse(&ip, text_of(p->group, "net", "198.18.0.0")));
	if (ip_is_v4(&ip)) {
		uint32_t address = (uint32_t)ip.bytes[12] << 24 | (uint32_t)ip.bytes[13] << 16 |
				   (uint32_t)ip.bytes[14] << 8 | ip.bytes[15];

		ip = ip_from_v4(address + 1 + (uint32_t)home);
	} else if (flag_of(p->group, "hosts", false)) {
		ip.bytes[14] = (uint8_t)(home >> 8);
		ip.bytes[15] = (uint8_t)(home + 1);
	} else {
		ip.bytes[6] = (uint8_t)(home >> 8);
		ip.bytes[7] = (uint8_t)home;
		ip.bytes[15] = (uint8_t)(1 + random_below(r, 250));
	}
	(void)ip_print(&ip, p->client);
}

static void person_pick(const struct json *row, unsigned n, struct random *r, struct person *ret)
{
	const struct json *traffic = json_member(row, "traffic"), *open[GROUPS_MAX];
	uint64_t sum = 0, at;
	size_t n_open = 0;

	for (size_t i = 0; i < json_count(traffic); i++) {
		const struct json *group = json_item(traffic, i);

		if (n < number_of(group, "from", 0) || n >= number_of(group, "until", UINT32_MAX))
			continue;
		assert_true(n_open < GROUPS_MAX);
		open[n_open++] = group;
		sum += number_of(group, "share", 1);
	}
	at = random_below(r, sum);
	for (size_t i = 0; i < n_open; i++) {
		ret->group = open[i];
		if (at < number_of(open[i], "share", 1))
			break;
		at -= number_of(open[i], "share", 1);
	}
	ret->number = random_below(r, number_of(ret->group, "people", 1));
	person_address(ret, r);
}

/* Fills in {client}, {edge} (one of the group's edges), {forged} (made up each time) and {n} (the person's number). */
static struct str fill(const struct person *p, struct str form, struct random *r, char *out)
{
	const struct json *edges = json_member(p->group, "edges");
	struct text t;

	text_init(&t, out, VALUE_BYTES);
	while (form.len > 0) {
		size_t open = str_find(form, '{'), close = str_find(form, '}');
		struct str name = str_head(str_from(form, open + 1), close - open - 1);

		text_str(&t, str_head(form, open));
		if (open == form.len)
			break;
		if (str_equal(name, STR("client"))) {
			text_z(&t, p->client);
		} else if (str_equal(name, STR("edge"))) {
			text_str(&t, json_text(json_item(edges, random_below(r, json_count(edges)))));
		} else if (str_equal(name, STR("n"))) {
			text_u64(&t, p->number);
		} else {
			assert_true(str_equal(name, STR("forged")));
			text_z(&t, "198.19.");
			text_u64(&t, random_below(r, 256));
			text_char(&t, '.');
			text_u64(&t, random_below(r, 256));
		}
		form = str_from(form, close + 1);
	}
	assert_false(t.overflow);
	return text_view(&t);
}

struct lines {
	struct header_line items[LINES_MAX];
	size_t n;
	char values[LINES_MAX][VALUE_BYTES];
};

static void line_add(
	struct lines *l, struct str name, struct str form, const struct person *p, struct random *r)
{
	assert_true(l->n < LINES_MAX);
	l->items[l->n] = (struct header_line){name, fill(p, form, r, l->values[l->n])};
	l->n++;
}

static void lines_make(const struct person *p, struct random *r, struct lines *ret)
{
	const struct json *headers = json_member(p->group, "headers");
	uint64_t agents = number_of(p->group, "agents", 24), agent = p->number * 7 % agents;
	char buffer[96];

	ret->n = 0;
	for (size_t i = 0; headers != NULL && i < json_count(headers); i++) {
		const struct json *line = json_item(headers, i);

		line_add(ret, json_text(json_item(line, 0)), json_text(json_item(line, 1)), p, r);
	}
	(void)snprintf(buffer, sizeof(buffer), "Mozilla/5.0 (X11; Linux x86_64) Browser/%u", (unsigned)agent);
	line_add(ret, STR("User-Agent"), text_of(p->group, "agent", buffer), p, r);
	line_add(ret, STR("Accept"), STR("text/html"), p, r);
	line_add(ret, STR("X-Request-Id"), STR("{forged}"), p, r);
	if (flag_of(p->group, "cookie", true))
		line_add(ret, STR("Cookie"), STR("sid=s{n}"), p, r);
	if (flag_of(p->group, "authorization", false))
		line_add(ret, STR("Authorization"), STR("Bearer login-{n}"), p, r);
}

/* ---- the doors */

static void ask_check(
	const struct person *p, const struct lines *l, struct random *r, struct arena *a, struct request *ret)
{
	char remote[VALUE_BYTES];
	struct problem problem;
	struct http_question q = {.method = STR("POST"), .target = STR("/check"), .caller_allowed = true};
	struct text t;

	text_init_arena(&t, a, 8192);
	text_z(&t, "{\"remote_addr\":");
	text_json(&t, fill(p, text_of(p->group, "remote", "{client}"), r, remote));
	text_z(&t, ",\"method\":");
	text_json(&t, text_of(p->group, "method", "GET"));
	text_z(&t, ",\"path\":");
	text_json(&t, text_of(p->group, "path", "/"));
	text_z(&t, ",\"headers\":[");
	for (size_t i = 0; i < l->n; i++) {
		text_z(&t, i > 0 ? ",[" : "[");
		text_json(&t, l->items[i].name);
		text_char(&t, ',');
		text_json(&t, l->items[i].value);
		text_char(&t, ']');
	}
	text_z(&t, "]}");
	assert_false(t.overflow);
	q.body = text_view(&t);
	assert_true(check_decode(&q, a, ret, &problem));
}

/* The headers that a gateway of this door writes about the request itself. */
static const struct {
	enum door door;
	const char *method_z, *path_z; /* NULL: said by the question's own */
	const char *target_z;
} header_doors[] = {
	{DOOR_FORWARD_AUTH, "X-Forwarded-Method", "X-Forwarded-Uri", "/forward-auth"},
	{DOOR_AUTH_REQUEST, "X-Original-Method", "X-Original-URL", "/auth-request"},
	{DOOR_EXT_AUTHZ_HTTP, NULL, NULL, "/ext-authz"},
};

static void ask_gateway(const struct person *p, enum door door, struct lines *l, struct random *r,
	struct arena *a, struct request *ret)
{
	struct str method = text_of(p->group, "method", "GET"), path = text_of(p->group, "path", "/");
	struct http_question q = {.method = STR("GET"), .caller_allowed = true};
	struct problem problem;
	struct text t;
	size_t i = 0;

	while (header_doors[i].door != door)
		assert_true(++i < sizeof(header_doors) / sizeof(header_doors[0]));
	text_init_arena(&t, a, 256);
	text_z(&t, header_doors[i].target_z);
	if (header_doors[i].method_z != NULL) {
		line_add(l, str_from_z(header_doors[i].method_z), method, p, r);
		line_add(l, str_from_z(header_doors[i].path_z), path, p, r);
	} else {
		text_str(&t, path);
		q.method = method;
	}
	q.target = text_view(&t);
	q.headers = l->items;
	q.n_headers = l->n;
	assert_true(adapter_http_of(door)->decode(&q, a, ret, &problem));
	assert_int_equal(ret->fault, REASON_ALLOWED);
}

/* ---- running a row */

struct run {
	const struct json *row;
	struct config *config;
	struct store *store;
	struct engine *engine;
	struct random random;
	ns now;
	unsigned asked, decided, addresses;
	struct finding findings[FINDINGS_MAX];
	size_t n_findings;
	struct own_refusal refusals[OWN_REFUSALS_MAX];
	size_t n_refusals;
};

static void run_open(struct run *run, const struct json *row, const char *client_z)
{
	memset(run, 0, sizeof(*run));
	run->row = row;
	run->config = config_make(row, client_z);
	run->now = 1000 * NS_PER_S;
	run->random.seed = number_of(row, "seed", 1);
	assert_int_equal(store_open(&run->store, (size_t)1 << 20), ERR_OK);
	assert_int_equal(engine_open(&run->engine, &run->config->rules, run->store, 1), ERR_OK);
}

static void run_close(struct run *run)
{
	engine_close(run->engine);
	store_close(run->store);
	config_free(run->config);
}

static void run_one(struct run *run)
{
	struct person person;
	struct lines lines;
	struct request req;
	struct verdict verdict;
	enum door door;
	struct arena a;

	arena_init(&a, blocks, sizeof(blocks));
	person_pick(run->row, run->asked, &run->random, &person);
	lines_make(&person, &run->random, &lines);
	door = door_find(text_of(run->row, "door", "check"));
	if (door == DOOR_CHECK)
		ask_check(&person, &lines, &run->random, &a, &req);
	else
		ask_gateway(&person, door, &lines, &run->random, &a, &req);
	engine_decide(engine_worker_at(run->engine, 0), &req, &a, run->now, &verdict);
	run->asked++;
	run->decided += verdict.has_client && verdict.client.decided;
	run->now += number_of(run->row, "gap_ms", 200) * NS_PER_MS;
}

static void run_look(struct run *run)
{
	struct watch *w = engine_watch(run->engine);
	ns wall = WALL_START + run->now;

	watch_tick(w, run->now, wall);
	run->n_findings = watch_findings(w, run->now, wall, run->findings, FINDINGS_MAX);
	run->n_refusals = own_refusals_read(w, run->now, wall, run->refusals, OWN_REFUSALS_MAX);
}

static bool holds(const char *text_z, struct str part)
{
	return memmem(text_z, strlen(text_z), part.ptr, part.len) != NULL;
}

static bool holds_any(const char *text_z, const struct json *parts)
{
	for (size_t i = 0; parts != NULL && i < json_count(parts); i++) {
		if (holds(text_z, json_text(json_item(parts, i))))
			return true;
	}
	return false;
}

static bool holds_all(const char *text_z, const struct json *parts)
{
	for (size_t i = 0; parts != NULL && i < json_count(parts); i++) {
		if (!holds(text_z, json_text(json_item(parts, i))))
			return false;
	}
	return true;
}

static bool has_signals(const struct finding *f, const struct json *words)
{
	for (size_t i = 0; words != NULL && i < json_count(words); i++) {
		bool found = false;

		for (unsigned s = 0; s < SIGNAL_COUNT; s++)
			found |= (f->signals & 1u << s) &&
				 str_equal(signal_word((enum signal)s), json_text(json_item(words, i)));
		if (!found)
			return false;
	}
	return true;
}

/* The finding or refusal that the row expects, in the words it expects. */
static const char *flagged(const struct run *run, const struct finding **ret_finding)
{
	struct str code = text_of(run->row, "code", "shared_bucket"), key = text_of(run->row, "key", "");
	const struct json *cure = json_member(run->row, "cure");

	*ret_finding = NULL;
	if (str_equal(code, STR("own_service_refused"))) {
		for (size_t i = 0; i < run->n_refusals; i++) {
			const struct own_refusal *o = &run->refusals[i];
			struct str name = text_of(run->row, "identity", "");

			if (str_equal(str_from_z(o->remote_addr_z), key) && holds_all(o->text_z, cure) &&
				(name.len == 0 || (o->identity_guess != NULL &&
							  str_equal(o->identity_guess->name, name))))
				return o->text_z;
		}
		return NULL;
	}
	for (size_t i = 0; i < run->n_findings; i++) {
		const struct finding *f = &run->findings[i];

		if (!str_equal(finding_word(f->code), code) ||
			!(str_equal(key, STR("*")) || str_equal(str_from_z(f->key_z), key)) ||
			!holds_all(f->cure_z, cure) ||
			holds_any(f->cure_z, json_member(run->row, "no_cure")) ||
			f->cure_is_setting != flag_of(run->row, "setting", false) ||
			!has_signals(f, json_member(run->row, "signals")))
			continue;
		*ret_finding = f;
		return f->cure_z;
	}
	return NULL;
}

static void print_seen(const struct run *run)
{
	for (size_t i = 0; i < run->n_findings; i++)
		print_error("  %s %s: %s\n    cure: %s\n", finding_word(run->findings[i].code).ptr,
			run->findings[i].key_z, run->findings[i].text_z, run->findings[i].cure_z);
	for (size_t i = 0; i < run->n_refusals; i++)
		print_error("  own_service_refused %s: %s\n", run->refusals[i].remote_addr_z,
			run->refusals[i].text_z);
}

/* No accusation, and no note but those the row knows of. */
static void check_quiet(const struct run *run, const char *what)
{
	const struct json *notes = json_member(run->row, "notes");

	for (size_t i = 0; i < run->n_findings; i++) {
		struct str word = finding_word(run->findings[i].code);
		bool known = false;

		for (size_t k = 0; notes != NULL && k < json_count(notes); k++)
			known |= str_equal(json_text(json_item(notes, k)), word);
		if (finding_level_of(run->findings[i].code) == FINDING_WARNING || !known) {
			print_seen(run);
			fail_msg("%.*s (%s): %.*s after %u requests", STR_ARG(text_of(run->row, "name", "?")),
				what, STR_ARG(word), run->asked);
		}
	}
	if (run->n_refusals > 0) {
		print_seen(run);
		fail_msg("%.*s (%s): own_service_refused after %u requests",
			STR_ARG(text_of(run->row, "name", "?")), what, run->asked);
	}
}

static void run_quiet(const struct json *row, const char *client_z, const char *what)
{
	struct run run;
	unsigned bad = (unsigned)number_of(row, "undecided_percent", 5);

	run_open(&run, row, client_z);
	while (run.asked < ROW_REQUESTS) {
		run_one(&run);
		if (run.asked % LOOK_EVERY != 0)
			continue;
		run_look(&run);
		check_quiet(&run, what);
	}
	assert_true((run.asked - run.decided) * 100 <= bad * run.asked);
	run_close(&run);
}

static void row_wrong(const struct json *row)
{
	struct str name = text_of(row, "name", "?"), code = text_of(row, "code", "shared_bucket");
	const struct finding *finding = NULL;
	const char *words_z = NULL;
	char cure[FINDING_CURE_BYTES] = "";
	unsigned after;
	struct run run;

	run_open(&run, row, NULL);
	while (words_z == NULL && run.asked < FLAG_WITHIN) {
		run_one(&run);
		if (run.asked % LOOK_EVERY != 0)
			continue;
		run_look(&run);
		words_z = flagged(&run, &finding);
	}
	after = run.asked;
	if (words_z == NULL) {
		print_seen(&run);
		fail_msg("%.*s: not flagged within %u requests", STR_ARG(name), FLAG_WITHIN);
	}
	assert_null(strstr(words_z, "\"any\""));
	printf("TABLE  wrong  %-44.*s %4u  %-24.*s %.150s\n", STR_ARG(name), after, STR_ARG(code), words_z);
	if (finding != NULL && finding->cure_is_setting)
		memcpy(cure, strstr(words_z, "\"client\""), strlen(strstr(words_z, "\"client\"")) + 1);
	while (run.asked < ROW_REQUESTS) {
		run_one(&run);
		if (run.asked % LOOK_EVERY == 0)
			run_look(&run);
	}
	if (flagged(&run, &finding) == NULL) {
		print_seen(&run);
		fail_msg("%.*s: no longer flagged after %u requests", STR_ARG(name), run.asked);
	}
	run_close(&run);
	if (cure[0] != '\0')
		run_quiet(row, cure, "cured");
	n_wrong++;
}

static void row_right(const struct json *row)
{
	run_quiet(row, NULL, "right");
	printf("TABLE  right  %-44.*s    -\n", STR_ARG(text_of(row, "name", "?")));
	n_right++;
}

static void check_condition(const struct run *run, const struct finding *f)
{
	const struct json *parts = json_member(run->row, "condition");
	char both[FINDING_TEXT_BYTES + FINDING_CURE_BYTES];

	(void)snprintf(both, sizeof(both), "%s %s", f->text_z, f->cure_z);
	if (!holds_all(both, parts)) {
		print_seen(run);
		fail_msg("%.*s: says too much after %u requests", STR_ARG(text_of(run->row, "name", "?")),
			run->asked);
	}
}

/* What traffic cannot tell is said too, and held to. */
static void row_cannot(const struct json *row)
{
	struct run run;
	bool warned = false;

	run_open(&run, row, NULL);
	while (run.asked < ROW_REQUESTS) {
		run_one(&run);
		if (run.asked % LOOK_EVERY != 0)
			continue;
		run_look(&run);
		for (size_t i = 0; i < run.n_findings; i++) {
			if (finding_level_of(run.findings[i].code) != FINDING_WARNING)
				continue;
			warned = true;
			check_condition(&run, &run.findings[i]);
		}
		if (!flag_of(row, "flagged", false))
			check_quiet(&run, "cannot be told");
	}
	assert_int_equal(warned, flag_of(row, "flagged", false));
	printf("TABLE  cannot %-44.*s %s: %.*s\n", STR_ARG(text_of(row, "name", "?")),
		warned ? "warned" : "silent", STR_ARG(text_of(row, "cannot", "")));
	run_close(&run);
}

static void test_table(void **state)
{
	(void)state;
	printf("TABLE  set-up %-44s after %-23s cure\n", "", "code");
	for (size_t i = 0; i < json_count(rows); i++) {
		const struct json *row = json_item(rows, i);

		if (json_member(row, "cannot") != NULL)
			row_cannot(row);
		else if (flag_of(row, "right", false))
			row_right(row);
		else
			row_wrong(row);
	}
	printf("TABLE  %u wrong set-ups flagged, %u right ones left alone\n", n_wrong, n_right);
	assert_true(n_wrong >= 20);
	assert_true(n_right >= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_table)};
	struct json_fault fault;
	struct json *root;
	struct str text;
	int failed;

	log_setup(LOG_ERROR, LOG_TEXT, STDERR_FILENO);
	if (digest_init() != ERR_OK || file_read(&text, TABLE_PATH, TABLE_MAX_BYTES) != ERR_OK)
		return 1;
	if (json_read(&root, text, &fault) != ERR_OK) {
		print_error("%s:%u: %s\n", TABLE_PATH, fault.line, fault.detail_z);
		return 1;
	}
	rows = json_member(root, "rows");
	failed = cmocka_run_group_tests_name("topology", tests, NULL, NULL);
	json_free(root);
	file_free(text);
	return failed;
}
