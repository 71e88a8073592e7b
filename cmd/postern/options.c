/* SPDX-License-Identifier: MIT */
/*
 * From flags to a checked configuration. A flag that does not parse is wrong usage; a file that a flag names and that cannot
 * be used is a configuration fault: scripts and units tell the two apart by exit code.
 */
#include "options.h"

#include "verb.h"

#include "base/must.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUICK_BYTES ((size_t)64 * 1024)

static bool take_repeated(const struct options *o, const char **values, size_t *n, const char *value, int *ret_exit)
{
	if (*n == OPTIONS_REPEATS_MAX)
		*ret_exit = verb_usage_error(o->verb, "at most %d of one flag", OPTIONS_REPEATS_MAX);
	else
		values[(*n)++] = value;
	return true;
}

static bool take_once(const struct options *o, const char **slot, const char *value, int *ret_exit)
{
	if (*slot != NULL)
		*ret_exit = verb_usage_error(o->verb, "a flag is given twice: %s and %s", *slot, value);
	*slot = value;
	return true;
}

bool options_take(struct options *o, int id, const char *value, int *ret_exit)
{
	switch (id) {
	case OPTION_CONFIG: return take_once(o, &o->config_z, value, ret_exit);
	case OPTION_RATE: return take_once(o, &o->rate_z, value, ret_exit);
	case OPTION_BURST: return take_once(o, &o->burst_z, value, ret_exit);
	case OPTION_CLIENT: return take_once(o, &o->client_z, value, ret_exit);
	case OPTION_TRUSTED_PROXIES: return take_once(o, &o->trusted_proxies_z, value, ret_exit);
	case OPTION_IDENTITY: return take_repeated(o, o->identities, &o->n_identities, value, ret_exit);
	case OPTION_CALLER: return take_repeated(o, o->callers, &o->n_callers, value, ret_exit);
	case OPTION_LISTEN: return take_repeated(o, o->listens, &o->n_listens, value, ret_exit);
	default: return false;
	}
}

static bool has_quick_flags(const struct options *o)
{
	return o->rate_z != NULL || o->burst_z != NULL || o->client_z != NULL || o->trusted_proxies_z != NULL ||
		o->n_identities > 0 || o->n_callers > 0;
}

static void write_strings(struct text *t, const char *const *values, size_t n)
{
	text_char(t, '[');
	for (size_t i = 0; i < n; i++) {
		text_z(t, i == 0 ? "" : ", ");
		text_json(t, str_from_z(values[i]));
	}
	text_char(t, ']');
}

/* "10.0.0.0/8, 192.0.2.7" as a list; "any" as the word. */
static void write_ranges(struct text *t, struct str ranges)
{
	if (str_equal(ranges, STR("any"))) {
		text_z(t, "\"any\"");
		return;
	}
	text_char(t, '[');
	for (bool more = true; more;) {
		size_t comma = str_find(ranges, ',');

		text_json(t, str_trim(str_head(ranges, comma)));
		more = comma < ranges.len;
		text_z(t, more ? ", " : "");
		ranges = str_from(ranges, comma + 1);
	}
	text_char(t, ']');
}

/* STRATEGY[:PARAMETER]. The parameter is the hops of hop_count, else the header of named_header. */
static void write_client(struct text *t, const struct options *o)
{
	struct str client = str_from_z(o->client_z != NULL ? o->client_z : "trusted_ranges");
	size_t colon = str_find(client, ':');
	struct str strategy = str_head(client, colon), parameter = str_from(client, colon + 1);

	text_z(t, ", \"client\": {\"strategy\": ");
	text_json(t, strategy);
	if (colon < client.len && str_equal(strategy, STR("hop_count"))) {
		uint64_t hops;

		text_z(t, ", \"hops\": ");
		if (str_to_u64(parameter, UINT32_MAX, &hops))
			text_u64(t, hops);
		else
			text_json(t, parameter);
	} else if (colon < client.len) {
		text_z(t, ", \"header\": ");
		text_json(t, parameter);
	}
	if (o->trusted_proxies_z != NULL) {
		text_z(t, ", \"trusted_proxies\": ");
		write_ranges(t, str_from_z(o->trusted_proxies_z));
	}
	text_char(t, '}');
}

static void write_limit(struct text *t, const struct options *o)
{
	uint64_t burst;

	text_z(t, ", \"limits\": {\"per-client\": {\"rate\": ");
	text_json(t, str_from_z(o->rate_z != NULL ? o->rate_z : "300/minute"));
	if (o->burst_z != NULL) {
		text_z(t, ", \"burst\": ");
		if (str_to_u64(str_from_z(o->burst_z), INT64_MAX, &burst))
			text_u64(t, burst);
		else
			text_json(t, str_from_z(o->burst_z));
	}
	text_z(t, "}}, \"rules\": [{\"name\": \"default\", \"limits\": [\"per-client\"]}]");
}

static void write_identities(struct text *t, const struct options *o)
{
	text_z(t, ", \"identities\": {");
	for (size_t i = 0; i < o->n_identities; i++) {
		struct str value = str_from_z(o->identities[i]);
		size_t equals = str_find(value, '=');

		text_z(t, i == 0 ? "" : ", ");
		text_json(t, str_head(value, equals));
		text_z(t, ": {\"token_file\": ");
		text_json(t, str_from(value, equals + 1));
		text_char(t, '}');
	}
	text_char(t, '}');
}

static void write_quick(struct text *t, const struct options *o)
{
	text_z(t, "{\"version\": 1");
	if (o->client_z != NULL || o->trusted_proxies_z != NULL)
		write_client(t, o);
	if (o->rate_z != NULL || o->burst_z != NULL)
		write_limit(t, o);
	if (o->n_identities > 0)
		write_identities(t, o);
	if (o->n_callers > 0) {
		text_z(t, ", \"callers\": ");
		write_strings(t, o->callers, o->n_callers);
	}
	text_char(t, '}');
}

/* Which flag a fault's pointer came from; first match wins. */
static const char *flag_of(const char *pointer_z)
{
	static const struct {
		const char *pointer, *flag;
	} flags[] = {{"/client/trusted_proxies", "--trusted-proxies"}, {"/client", "--client"},
		{"/limits/per-client/burst", "--burst"}, {"/limits", "--rate"}, {"/identities", "--identity"},
		{"/callers", "--caller"}};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (strncmp(pointer_z, flags[i].pointer, strlen(flags[i].pointer)) == 0)
			return flags[i].flag;
	}
	return "flags";
}

static bool is_about_a_file(const struct fault *f)
{
	return strcmp(f->code, "unreadable_file") == 0 || strcmp(f->code, "bad_token") == 0;
}

/* Prints every fault; the exit code they call for. */
static int report(const struct options *o, const struct fault_list *faults, bool quick)
{
	int code = EXIT_DONE;

	for (size_t i = 0; i < faults->n; i++) {
		const struct fault *f = &faults->items[i];
		char line[1200];

		if (f->severity == FAULT_ERROR && code != EXIT_CONFIG)
			code = quick && !is_about_a_file(f) ? EXIT_USAGE : EXIT_CONFIG;
		if (quick) {
			fprintf(stderr, "postern %s: %s: %s: %s [%s]\n", o->verb, flag_of(f->pointer_z),
				f->severity == FAULT_ERROR ? "error" : "warning", f->text_z, f->code);
			continue;
		}
		fault_print(f, line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	return code;
}

static int apply_listen(const struct options *o, struct config *c, const char *value_z)
{
	struct str value = str_from_z(value_z), name = listen_name_word(LISTEN_HTTP);
	size_t equals = str_find(value, '=');
	const char *why;

	/* A "=" behind "unix:" belongs to "?mode=". */
	if (equals < value.len && str_find(value, ':') > equals) {
		name = str_head(value, equals);
		value = str_from(value, equals + 1);
	}
	for (int i = 0; i < LISTEN_COUNT; i++) {
		if (!str_equal(name, listen_name_word((enum listen_name)i)))
			continue;
		if (!endpoint_parse(&c->listen[i].endpoint, value, &why))
			return verb_usage_error(o->verb, "--listen %s: %s", value_z, why);
		c->listen[i].on = true;
		return EXIT_DONE;
	}
	return verb_usage_error(o->verb, "--listen %s: this version listens on http, grpc, ops and admin", value_z);
}

static int apply_listens(const struct options *o, struct config *c)
{
	int code = EXIT_DONE;

	for (size_t i = 0; code == EXIT_DONE && i < o->n_listens; i++)
		code = apply_listen(o, c, o->listens[i]);
	return code;
}

static const char *file_of(const struct options *o)
{
	return o->config_z != NULL ? o->config_z : getenv("POSTERN_CONFIG");
}

static enum err load(const struct options *o, struct fault_list *faults, struct config **ret)
{
	const struct config_options nothing = {.without_secrets = false};
	struct text t;
	char *buffer;
	enum err e;

	if (file_of(o) != NULL)
		return config_load_file(ret, file_of(o), &nothing, faults);
	buffer = malloc(QUICK_BYTES);
	if (buffer == NULL)
		return ERR_MEMORY;
	text_init(&t, buffer, QUICK_BYTES);
	write_quick(&t, o);
	e = t.overflow ? ERR_RANGE :
			 config_load_text(ret, has_quick_flags(o) ? text_view(&t) : STR("{}"), ".", &nothing, faults);
	free(buffer);
	return e;
}

/* What the loader could say only in the words of a file. */
static int check_client(const struct options *o)
{
	struct str client = str_from_z(o->client_z != NULL ? o->client_z : "");
	size_t colon = str_find(client, ':');
	enum strategy strategy = strategy_find(str_head(client, colon));
	const char *wanted_z = strategy == STRATEGY_HOP_COUNT ? "hop_count:N, where entry N from the right is the client" :
		strategy == STRATEGY_NAMED_HEADER	      ? "named_header:NAME, as in named_header:CF-Connecting-IP" :
								NULL;

	if (wanted_z != NULL && colon == client.len)
		return verb_usage_error(o->verb, "--client %s: write %s", o->client_z, wanted_z);
	if (wanted_z == NULL && colon < client.len && strategy != STRATEGY_COUNT)
		return verb_usage_error(o->verb, "--client %s: this strategy takes no parameter", o->client_z);
	return EXIT_DONE;
}

static int load_for_start(const struct options *o, struct fault_list *faults, struct config **ret)
{
	enum err e;

	if (has_quick_flags(o) && file_of(o) != NULL)
		return verb_usage_error(o->verb, "quick flags and a file exclude each other; the file is %s%s", file_of(o),
			o->config_z == NULL ? " (from POSTERN_CONFIG)" : "");
	if (check_client(o) != EXIT_DONE)
		return EXIT_USAGE;
	e = load(o, faults, ret);
	if (e == ERR_OK)
		return apply_listens(o, *ret);
	*ret = NULL;
	if (faults->n_errors == 0)
		fprintf(stderr, "postern %s: %s\n", o->verb, err_text(e));
	return e == ERR_MEMORY ? EXIT_NOT_NOW : EXIT_CONFIG;
}

int options_load(const struct options *o, struct config **ret)
{
	struct fault_list faults;
	struct config *c = NULL;
	int code, reported;

	fault_list_init(&faults);
	code = load_for_start(o, &faults, &c);
	if (code == EXIT_DONE)
		config_check_listeners(c, &faults);
	reported = report(o, &faults, has_quick_flags(o));
	if (reported != EXIT_DONE)
		code = reported;
	fault_list_done(&faults);
	if (code != EXIT_DONE) {
		config_free(c);
		return code;
	}
	*ret = c;
	return EXIT_DONE;
}

enum err options_load_again(const struct options *o, struct config **ret, struct fault_list *faults)
{
	struct config *c = NULL;
	enum err e = load(o, faults, &c);

	if (e != ERR_OK)
		return e;
	/* They were right at the start. */
	must(apply_listens(o, c) == EXIT_DONE);
	config_check_listeners(c, faults);
	if (faults->n_errors > 0) {
		config_free(c);
		return ERR_SYNTAX;
	}
	*ret = c;
	return ERR_OK;
}
