/* SPDX-License-Identifier: MIT */
/*
 * flags: the next flag of a command line, by its whole name.
 *
 * Model      getopt_long, which would also take any beginning of a name that is the only one so far: what a script says
 *            must not come to mean something else, or nothing, because a flag has been added.
 * Errors     said on stderr, with the nearest name.
 */
#ifndef POSTERN_CMD_FLAGS_H
#define POSTERN_CMD_FLAGS_H

#include <getopt.h>

enum { FLAGS_END = -1, FLAGS_BAD = -2 };

/* A letter, the val of a long option, or one of the above. short_z as for getopt_long, beginning with ':'. The flag's value is
 * in optarg; behind the end, optind is the first word that is no flag. */
int flags_next(const char *verb, int argc, char **argv, const char *short_z, const struct option *options);

#endif
