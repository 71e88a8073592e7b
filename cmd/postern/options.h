/* SPDX-License-Identifier: MIT */
/*
 * options: the settings flags that serve and explain share.
 *
 * Model      Quick flags are turned into the text of a configuration file and go through the same loader, so that they mean
 *            what the file means and are checked by the same code. Faults are told by flag.
 * Ownership  Values point into argv.
 */
#ifndef POSTERN_CMD_OPTIONS_H
#define POSTERN_CMD_OPTIONS_H

#include "config/config.h"

#include <stdbool.h>

#define OPTIONS_REPEATS_MAX 64

/* getopt values, out of the way of letters. */
enum option_id {
	OPTION_CONFIG = 256,
	OPTION_RATE,
	OPTION_BURST,
	OPTION_CLIENT,
	OPTION_TRUSTED_PROXIES,
	OPTION_IDENTITY,
	OPTION_CALLER,
	OPTION_LISTEN,
	OPTION_OWN_FIRST /* a verb's own flags count from here */
};

#define OPTIONS_SETTINGS \
	{"config", required_argument, NULL, OPTION_CONFIG}, {"rate", required_argument, NULL, OPTION_RATE}, \
	{"burst", required_argument, NULL, OPTION_BURST}, {"client", required_argument, NULL, OPTION_CLIENT}, \
	{"trusted-proxies", required_argument, NULL, OPTION_TRUSTED_PROXIES}, \
	{"identity", required_argument, NULL, OPTION_IDENTITY}, {"caller", required_argument, NULL, OPTION_CALLER}

struct options {
	const char *verb;
	const char *config_z, *rate_z, *burst_z, *client_z, *trusted_proxies_z;
	const char *identities[OPTIONS_REPEATS_MAX], *callers[OPTIONS_REPEATS_MAX], *listens[OPTIONS_REPEATS_MAX];
	size_t n_identities, n_callers, n_listens;
};

/* True if id was one of ours; *ret_exit is EXIT_USAGE where its value is not acceptable, else untouched. */
bool options_take(struct options *o, int id, const char *value, int *ret_exit);

/* Loads what the options say and applies --listen. Prints faults and warnings on stderr. Returns an exit code. */
int options_load(const struct options *o, struct config **ret);

/* The same once more, for a reload: files are read again. Prints nothing; any thread. */
MUST_USE enum err options_load_again(const struct options *o, struct config **ret, struct fault_list *faults);

#endif
