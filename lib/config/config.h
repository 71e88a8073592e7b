/* SPDX-License-Identifier: MIT */
/*
 * config: a JSON file, checked, as one frozen structure.
 *
 * Model      Load reads the text, names every fault in one pass (pointer, line, column, nearest right name, stable code)
 *            and, if there is no error, gives a config that never changes again. Scalars are rows of api/settings.def with
 *            range, default and one line of text; lists of rules, limits and identities are read by their own code.
 *            The same code serves serve, check-config and explain. Without any configuration: one limit "per-client",
 *            300/minute, one rule "default".
 *            A known member that this version cannot serve is refused (not_in_this_version), never ignored.
 * Units      ns and bytes inside; "10s" and "16KiB" in the file.
 * Ownership  The config owns everything that its ruleset points at; config_free frees all.
 * Threads    frozen after loading.
 * Blocking   reads files.
 * Errors     faults in the list; ERR_SYNTAX if there is an error among them, ERR_ABSENT/ERR_ACCESS/ERR_IO if the file itself
 *            cannot be read (one fault says so), ERR_MEMORY.
 * Limits     file 4 MiB; 1000 rules, 1000 limits, 1000 identities, 1024 ranges a list.
 */
#ifndef POSTERN_CONFIG_CONFIG_H
#define POSTERN_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/endpoint.h"
#include "base/err.h"
#include "base/fault.h"
#include "base/log.h"
#include "core/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Listeners of this version. */
enum listen_name { LISTEN_HTTP, LISTEN_GRPC, LISTEN_OPS, LISTEN_ADMIN, LISTEN_COUNT };

struct config_listen {
	bool on;
	struct endpoint endpoint;
};

struct config {
	struct ruleset rules;
	struct config_listen listen[LISTEN_COUNT];

	struct range_set callers;
	bool callers_unix;       /* Unix peers may ask */
	bool callers_named;      /* the file names them; else the default: loopback and unix */
	bool has_caller_key;
	struct digest caller_key;

	unsigned workers;
	size_t http_max_connections, http_header_bytes, http_body_bytes;
	ns http_idle_timeout_ns, http_request_timeout_ns;
	size_t grpc_max_connections, grpc_header_bytes, grpc_message_bytes;
	unsigned grpc_max_streams;
	ns grpc_request_timeout_ns, grpc_idle_timeout_ns;
	ns grpc_max_connection_age_ns; /* 0: none */
	ns drain_delay_ns, drain_timeout_ns;
	enum log_level log_level;
	enum log_format log_format;
	size_t store_max_memory_bytes;
	struct str request_id_header; /* empty: none */

	uint64_t serial;         /* which one of this process: 1 the first, each reload the next */
	bool is_builtin;         /* nothing was configured, neither by a file nor by flags */
	char file_z[256];        /* as given, "" without a file */
};

struct config_options {
	bool without_secrets;    /* leave token and key files alone (for CI) */
};

/* From a file. Relative paths in it are relative to its folder. */
MUST_USE enum err config_load_file(struct config **ret, const char *path_z, const struct config_options *options,
	struct fault_list *faults);

/* From a text: quick flags are turned into one, tests use it. base_dir_z: for relative paths. */
MUST_USE enum err config_load_text(struct config **ret, struct str text, const char *base_dir_z,
	const struct config_options *options, struct fault_list *faults);

/* Checks that need the final listeners (after --listen): beyond loopback without named callers, callers without a key,
 * an admin listener that others can reach. */
void config_check_listeners(const struct config *c, struct fault_list *faults);

void config_free(struct config *c); /* NULL is fine */

struct str listen_name_word(enum listen_name n); /* "http", "grpc", "ops", "admin" */

/* The token in the bytes of a token file: without the one line end that editors write. */
struct str config_token_text(struct str bytes);

/* Why s cannot be a token, for people; NULL if it can. */
const char *config_token_fault(struct str s);

/* Reads "300/minute", "100/15m". Shared with the quick flags. */
bool config_rate_parse(struct str s, uint64_t *ret_count, ns *ret_period_ns);

#endif
