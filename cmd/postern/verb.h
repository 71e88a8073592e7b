/* SPDX-License-Identifier: MIT */
/*
 * verb: what the program can do. One file a verb.
 *
 * Model      A verb gets its own argv (argv[0] is its name) and returns an exit code. Data goes to stdout, talk to stderr.
 */
#ifndef POSTERN_CMD_VERB_H
#define POSTERN_CMD_VERB_H

#include <stddef.h>

/* What a caller of the program may rely on. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_NOT_NOW = 1,     /* could not do it now; a restart may help */
	EXIT_USAGE = 2,       /* wrong usage */
	EXIT_CONFIG = 3,      /* configuration or secret invalid; a restart will not help */
	EXIT_UNREACHABLE = 4, /* the instance did not answer */
	EXIT_DENY = 5         /* the decision was deny, the instance is not ready, or the probe found a fault */
};

struct verb {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *summary; /* one line */
	const char *help;    /* usage, examples first */
};

extern const struct verb verbs[];
extern const size_t n_verbs;

const struct verb *verb_find(const char *name); /* NULL if there is none */

/* Says that there is no such verb, and the nearest that there is; returns EXIT_USAGE. */
int verb_unknown(const char *name);

/* Says what is wrong and how to get help; returns EXIT_USAGE. */
int verb_usage_error(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

int verb_serve(int argc, char **argv);
int verb_check_config(int argc, char **argv);
int verb_explain(int argc, char **argv);
int verb_token(int argc, char **argv);
int verb_health(int argc, char **argv);
int verb_probe(int argc, char **argv);
int verb_top(int argc, char **argv);
int verb_version(int argc, char **argv);
int verb_help(int argc, char **argv);

#endif
