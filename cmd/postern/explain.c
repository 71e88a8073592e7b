/* SPDX-License-Identifier: MIT */
/*
 * One decision offline, by the code that serves decisions: the configuration is loaded as serve would, the question is read by
 * the door's own decoder, and the buckets are those of a store that nobody has used.
 */
#include "verb.h"

#include "flags.h"
#include "options.h"

#include "adapter/adapter.h"
#include "adapter/explain.h"
#include "base/clock.h"
#include "base/file.h"
#include "engine/engine.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BODY_BYTES_MAX ((size_t)1024 * 1024)
#define ARENA_BYTES ((size_t)4 * 1024 * 1024)
#define OUTPUT_BYTES ((size_t)256 * 1024)
#define HEADERS_MAX 256
#define TOKEN_FILE_BYTES 1024

enum own_option {
	OPTION_REMOTE_ADDR = OPTION_OWN_FIRST,
	OPTION_TOKEN_FILE,
	OPTION_METHOD,
	OPTION_HOST,
	OPTION_PATH,
	OPTION_DOOR,
	OPTION_JSON,
	OPTION_EXIT_CODE
};

static const struct option long_options[] = {OPTIONS_SETTINGS,
	{"remote-addr", required_argument, NULL, OPTION_REMOTE_ADDR},
	{"token-file", required_argument, NULL, OPTION_TOKEN_FILE}, {"method", required_argument, NULL, OPTION_METHOD},
	{"host", required_argument, NULL, OPTION_HOST}, {"path", required_argument, NULL, OPTION_PATH},
	{"door", required_argument, NULL, OPTION_DOOR}, {"json", no_argument, NULL, OPTION_JSON},
	{"exit-code", no_argument, NULL, OPTION_EXIT_CODE}, {NULL, 0, NULL, 0}};

/* What was asked on the command line. */
struct ask {
	struct options options;
	enum door door;
	const char *remote_addr_z, *token_file_z, *method_z, *host_z, *path_z;
	struct header_line headers[HEADERS_MAX];
	size_t n_headers;
	bool json, exit_code;
	struct str token_bytes; /* of token_file_z; freed at the end */
	struct str body;        /* from stdin */
};

static int take_header(struct ask *ask, const char *value_z)
{
	struct str line = str_from_z(value_z);
	size_t colon = str_find(line, ':');

	if (colon == line.len)
		return verb_usage_error("explain", "-H '%s': a header line is 'Name: value'", value_z);
	if (ask->n_headers == HEADERS_MAX)
		return verb_usage_error("explain", "at most %d header lines", HEADERS_MAX);
	ask->headers[ask->n_headers++] =
		(struct header_line){str_head(line, colon), str_trim(str_from(line, colon + 1))};
	return EXIT_DONE;
}

static int take_own(struct ask *ask, int id, const char *value)
{
	switch (id) {
	case 'H': return take_header(ask, value);
	case OPTION_REMOTE_ADDR: ask->remote_addr_z = value; return EXIT_DONE;
	case OPTION_TOKEN_FILE: ask->token_file_z = value; return EXIT_DONE;
	case OPTION_METHOD: ask->method_z = value; return EXIT_DONE;
	case OPTION_HOST: ask->host_z = value; return EXIT_DONE;
	case OPTION_PATH: ask->path_z = value; return EXIT_DONE;
	case OPTION_JSON: ask->json = true; return EXIT_DONE;
	case OPTION_EXIT_CODE: ask->exit_code = true; return EXIT_DONE;
	case OPTION_DOOR:
		ask->door = door_find(str_from_z(value));
		if (ask->door == DOOR_COUNT || adapter_http_of(ask->door) == NULL)
			return verb_usage_error("explain", "--door %s: there is no such door", value);
		return EXIT_DONE;
	default: return EXIT_USAGE;
	}
}

static int parse(int argc, char **argv, struct ask *ask)
{
	int id, code = EXIT_DONE;

	while (code == EXIT_DONE && (id = flags_next("explain", argc, argv, ":H:", long_options)) != FLAGS_END) {
		if (!options_take(&ask->options, id, optarg, &code))
			code = take_own(ask, id, optarg);
	}
	if (code != EXIT_DONE)
		return code;
	if (optind < argc)
		return verb_usage_error("explain", "unexpected \"%s\"", argv[optind]);
	if (ask->door != DOOR_CHECK && (ask->remote_addr_z || ask->host_z))
		return verb_usage_error("explain", "with --door the headers supply remote_addr and host");
	if (ask->door != DOOR_CHECK && !door_is_prefix(ask->door) && (ask->method_z || ask->path_z))
		return verb_usage_error("explain", "at this door the headers supply method and path, too");
	if (door_is_prefix(ask->door) && ask->path_z != NULL && ask->path_z[0] != '/')
		return verb_usage_error("explain", "--path begins with a slash at this door");
	if (ask->door == DOOR_CHECK && ask->remote_addr_z == NULL &&
		(ask->n_headers > 0 || ask->token_file_z || ask->method_z || ask->host_z || ask->path_z))
		return verb_usage_error("explain", "--remote-addr is needed: the client's end of the connection");
	return EXIT_DONE;
}

static int read_stdin(struct ask *ask)
{
	char *bytes = malloc(BODY_BYTES_MAX);
	size_t len;

	if (bytes == NULL)
		return EXIT_NOT_NOW;
	len = fread(bytes, 1, BODY_BYTES_MAX, stdin);
	ask->body = str_make(bytes, len);
	if (len == 0)
		return verb_usage_error("explain", "nothing is on stdin: describe a request with --remote-addr and -H, "
						   "or send a /check body, such as {\"remote_addr\": \"203.0.113.9\"}");
	if (len < BODY_BYTES_MAX)
		return EXIT_DONE;
	fputs("postern explain: the question on stdin is too large\n", stderr);
	return EXIT_USAGE;
}

static struct fact fact_of(const char *text_z)
{
	return (struct fact){str_from_z(text_z), text_z != NULL};
}

/* The door's path; below a prefix, what --path says in place of the asterisk's slash. Empty without room. */
static struct str target_of(const struct ask *ask, struct arena *a)
{
	struct str path = door_path(ask->door), below = str_from_z(ask->path_z != NULL ? ask->path_z : "/");
	struct text t;

	if (!door_is_prefix(ask->door))
		return path;
	text_init_arena(&t, a, path.len + below.len);
	text_str(&t, str_head(path, path.len - 2));
	text_str(&t, below);
	return text_view(&t);
}

static int decode(struct ask *ask, const struct ruleset *rules, struct arena *a, struct request *ret)
{
	const struct http_question q = {.method = str_from_z(ask->method_z != NULL ? ask->method_z : "GET"),
		.target = target_of(ask, a), .headers = ask->headers, .n_headers = ask->n_headers, .body = ask->body,
		.caller_allowed = true, .doors = rules->doors};
	struct problem problem;

	if (ask->remote_addr_z != NULL) {
		*ret = (struct request){.door = DOOR_CHECK, .fault = REASON_ALLOWED, .cost = 1,
			.remote_addr = str_from_z(ask->remote_addr_z), .headers = ask->headers,
			.n_headers = ask->n_headers, .method = fact_of(ask->method_z), .host = fact_of(ask->host_z),
			.path = fact_of(ask->path_z)};
		return EXIT_DONE;
	}
	if (adapter_http_of(ask->door)->decode(&q, a, ret, &problem))
		return EXIT_DONE;
	fprintf(stderr, "postern explain: %u:%u: %s: %s [%.*s]\n", problem.line, problem.column, problem.pointer_z,
		problem.detail_z, STR_ARG(problem_word(problem.code)));
	return EXIT_USAGE;
}

static int read_token(struct ask *ask, struct request *req)
{
	enum err e = file_read(&ask->token_bytes, ask->token_file_z, TOKEN_FILE_BYTES);

	if (e != ERR_OK) {
		fprintf(stderr, "postern explain: %s: %s\n", ask->token_file_z, err_text(e));
		return EXIT_CONFIG;
	}
	req->token.said = true;
	req->token.text = config_token_text(ask->token_bytes);
	return EXIT_DONE;
}

static int print(const struct ask *ask, const struct ruleset *rules, const struct request *req,
	const struct explanation *e, struct arena *a)
{
	struct text t;

	text_init_arena(&t, a, OUTPUT_BYTES);
	if (ask->json)
		explain_json(&t, rules, req, e, a);
	else
		explain_words(&t, rules, req, e);
	if (t.overflow || a->overflow) {
		fputs("postern explain: the explanation is too long\n", stderr);
		return EXIT_NOT_NOW;
	}
	fwrite(t.ptr, 1, t.len, stdout);
	if (fflush(stdout) != 0)
		return EXIT_NOT_NOW;
	return ask->exit_code && e->verdict.decision != DECISION_ALLOW ? EXIT_DENY : EXIT_DONE;
}

static int explain(struct ask *ask, const struct config *config, struct arena *a)
{
	struct explanation *e = arena_alloc(a, sizeof(*e));
	struct store *store = NULL;
	struct engine *engine = NULL;
	struct request req;
	int code = decode(ask, &config->rules, a, &req);

	if (code == EXIT_DONE && ask->token_file_z != NULL)
		code = read_token(ask, &req);
	if (code != EXIT_DONE)
		return code;
	if (e == NULL || store_open(&store, config->store_max_memory_bytes) != ERR_OK ||
		engine_open(&engine, &config->rules, store, 1) != ERR_OK) {
		fputs("postern explain: no memory\n", stderr);
		code = EXIT_NOT_NOW;
	} else {
		engine_explain(engine_worker_at(engine, 0), &req, a, clock_monotonic_ns(), e);
		code = print(ask, &config->rules, &req, e, a);
	}
	engine_close(engine);
	store_close(store);
	return code;
}

int verb_explain(int argc, char **argv)
{
	struct ask ask = {.options = {.verb = "explain"}, .door = DOOR_CHECK};
	struct config *config = NULL;
	struct arena a;
	char *block = malloc(ARENA_BYTES);
	int code = parse(argc, argv, &ask);

	if (code == EXIT_DONE && block == NULL)
		code = EXIT_NOT_NOW;
	if (code == EXIT_DONE)
		code = options_load(&ask.options, &config);
	if (code == EXIT_DONE && ask.door == DOOR_CHECK && ask.remote_addr_z == NULL)
		code = read_stdin(&ask);
	if (code == EXIT_DONE) {
		arena_init(&a, block, ARENA_BYTES);
		code = explain(&ask, config, &a);
	}
	if (ask.token_bytes.ptr != NULL)
		file_free(ask.token_bytes);
	free((void *)(uintptr_t)ask.body.ptr);
	free(block);
	config_free(config);
	return code;
}
