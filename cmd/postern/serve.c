/* SPDX-License-Identifier: MIT */
/*
 * The daemon, always in this order: options, configuration, signals, memory, bind, harden, say ready, run, drain. Nothing is
 * answered before all of it has gone well, and what went wrong is said with its name and place. A reload goes through the
 * first two again, so that it takes what a start would take.
 */
#include "verb.h"

#include "flags.h"
#include "options.h"

#include "base/log.h"
#include "base/text.h"
#include "engine/engine.h"
#include "io/proc.h"
#include "server/server.h"
#include "store/store.h"

#include "revision.h"

#include <stdio.h>
#include <unistd.h>

#define BANNER_BYTES 512

static const struct option long_options[] = {
	OPTIONS_SETTINGS, {"listen", required_argument, NULL, OPTION_LISTEN}, {NULL, 0, NULL, 0}};

static int parse(int argc, char **argv, struct options *o)
{
	int id, code = EXIT_DONE;

	while (code == EXIT_DONE && (id = flags_next("serve", argc, argv, ":", long_options)) != FLAGS_END) {
		if (!options_take(o, id, optarg, &code))
			return EXIT_USAGE;
	}
	if (code == EXIT_DONE && optind < argc)
		return verb_usage_error("serve", "unexpected \"%s\"", argv[optind]);
	return code;
}

static void write_ranges(struct text *t, const struct range_set *set)
{
	char buffer[RANGE_TEXT_BYTES];

	for (size_t i = 0; i < set->n; i++) {
		text_z(t, i == 0 ? "" : ", ");
		text_str(t, str_make(buffer, range_print(&set->items[i], buffer)));
	}
}

/* "single_value of X-Forwarded-For, trusting 172.18.0.0/16" */
static void write_client(struct text *t, const struct client_rule *rule)
{
	text_str(t, strategy_word(rule->strategy));
	if (rule->strategy == STRATEGY_PEER)
		return;
	text_z(t, " of ");
	text_str(t, rule->header);
	text_z(t, ", trusting ");
	if (rule->trust_any)
		text_z(t, "anybody");
	else if (rule->trusted.n > 0)
		write_ranges(t, &rule->trusted);
	else
		text_z(t, rule->trust_unix ? "unix" : "nobody");
	if (rule->trust_unix && rule->trusted.n > 0)
		text_z(t, ", unix");
}

static void write_limits(struct text *t, const struct ruleset *rules)
{
	for (size_t i = 0; i < rules->n_limits; i++) {
		const struct limit *l = &rules->limits[i];

		text_z(t, i == 0 ? "" : ", ");
		text_str(t, l->name);
		text_z(t, " ");
		text_u64(t, l->bucket.burst);
		text_z(t, " in ");
		text_u64(t, l->window_s);
		text_z(t, " s");
	}
}

static void write_identities(struct text *t, const struct identity_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		text_z(t, i == 0 ? "" : ", ");
		text_str(t, set->items[i].name);
	}
	text_z(t, set->n == 0 ? "none" : "");
}

static void write_callers(struct text *t, const struct config *c)
{
	write_ranges(t, &c->callers);
	if (c->callers_unix)
		text_z(t, c->callers.n > 0 ? ", unix" : "unix");
	if (c->has_caller_key)
		text_z(t, ", with a key");
}

/* One line that says what is in force: a wrong key is found here, or not at all. */
static void log_banner(const struct config *c, const struct server *server)
{
	char client[BANNER_BYTES], limits[BANNER_BYTES], identities[BANNER_BYTES], callers[BANNER_BYTES];
	char at[LISTEN_COUNT][ENDPOINT_TEXT_BYTES] = {"off", "off", "off", "off"};
	struct text client_text, limits_text, identities_text, callers_text;

	text_init(&client_text, client, sizeof(client));
	text_init(&limits_text, limits, sizeof(limits));
	text_init(&identities_text, identities, sizeof(identities));
	text_init(&callers_text, callers, sizeof(callers));
	write_client(&client_text, &c->rules.client);
	write_limits(&limits_text, &c->rules);
	write_identities(&identities_text, &c->rules.identities);
	write_callers(&callers_text, c);
	for (int i = 0; i < LISTEN_COUNT; i++) {
		if (server_endpoint(server, (enum listen_name)i) != NULL)
			endpoint_print(server_endpoint(server, (enum listen_name)i), at[i]);
	}
	const struct log_field fields[] = {
		LOG_Z("version", POSTERN_VERSION),
		LOG_Z("revision", POSTERN_REVISION),
		LOG_Z("http", at[LISTEN_HTTP]),
		LOG_Z("grpc", at[LISTEN_GRPC]),
		LOG_Z("ops", at[LISTEN_OPS]),
		LOG_Z("admin", at[LISTEN_ADMIN]),
		LOG_STR("config", c->rules.hash),
		LOG_STR("client", text_view(&client_text)),
		LOG_STR("limits", text_view(&limits_text)),
		LOG_NUM("rules", c->rules.n_rules),
		LOG_STR("identities", text_view(&identities_text)),
		LOG_STR("callers", text_view(&callers_text)),
		LOG_NUM("workers", c->workers),
	};
	log_write(LOG_INFO, "start",
		c->is_builtin ? STR("ready, without a configuration: one limit per client address, nobody is trusted") :
				STR("ready"),
		fields, sizeof(fields) / sizeof(fields[0]));
}

static enum err load_again(void *arg, struct config **ret, struct fault_list *faults)
{
	return options_load_again(arg, ret, faults);
}

/* *config is what was loaded, and in the end what was in force last. */
static int run(struct config **config, struct options *options, int signal_fd)
{
	const struct server_source source = {load_again, options, config};
	struct store *store = NULL;
	struct engine *engine = NULL;
	struct server *server = NULL;
	char note[BANNER_BYTES] = "no memory for the bucket table";
	int code = EXIT_NOT_NOW;

	if (store_open(&store, (*config)->store_max_memory_bytes) == ERR_OK &&
		engine_open(&engine, &(*config)->rules, store, (*config)->workers) == ERR_OK &&
		server_open(&server, *config, engine, signal_fd, note, sizeof(note)) == ERR_OK) {
		server_reload_from(server, &source);
		log_banner(*config, server);
		code = server_run(server) == ERR_OK ? EXIT_DONE : EXIT_NOT_NOW;
		log_write(LOG_INFO, "stop", code == EXIT_DONE ? STR("drained") : STR("stopped before all was answered"), NULL, 0);
	} else {
		log_write(LOG_ERROR, "start_failed", str_from_z(note), NULL, 0);
	}
	server_close(server);
	engine_close(engine);
	store_close(store);
	return code;
}

int verb_serve(int argc, char **argv)
{
	struct options options = {.verb = "serve"};
	struct config *config = NULL;
	int signal_fd = -1, code;

	if (proc_signals_open(&signal_fd) != ERR_OK)
		return EXIT_NOT_NOW;
	log_setup(LOG_INFO, LOG_AUTO, STDERR_FILENO);
	code = parse(argc, argv, &options);
	if (code == EXIT_DONE)
		code = options_load(&options, &config);
	if (code == EXIT_DONE) {
		log_setup(config->log_level, config->log_format, STDERR_FILENO);
		proc_harden();
		proc_raise_open_files();
		code = run(&config, &options, signal_fd);
	}
	config_free(config);
	close(signal_fd);
	return code;
}
