/* SPDX-License-Identifier: MIT */
/*
 * Finds the verb and runs it. Without a verb: help, and the exit code for wrong usage.
 */
#include "verb.h"

#include "base/digest.h"
#include "base/json.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERBS_MAX 32

int verb_usage_error(const char *verb, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "postern %s: ", verb);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n\"postern help %s\" tells more.\n", verb);
	return EXIT_USAGE;
}

const struct verb *verb_find(const char *name)
{
	for (size_t i = 0; i < n_verbs; i++) {
		if (strcmp(verbs[i].name, name) == 0)
			return &verbs[i];
	}
	return NULL;
}

int verb_unknown(const char *name)
{
	struct str names[VERBS_MAX] = {{NULL, 0}};
	size_t n = 0, nearest;

	for (; n < n_verbs && n < VERBS_MAX; n++)
		names[n] = str_from_z(verbs[n].name);
	nearest = str_nearest(str_make(name, strlen(name)), names, n);
	fprintf(stderr, "postern: there is no verb \"%s\"; ", name);
	if (nearest < n)
		fprintf(stderr, "did you mean \"%.*s\"? ", STR_ARG(names[nearest]));
	fputs("\"postern help\" lists them\n", stderr);
	return EXIT_USAGE;
}

/* "postern --help" and "postern --version" are what people try first. */
static const char *verb_meant(const char *word)
{
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return "help";
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0)
		return "version";
	return word;
}

int main(int argc, char **argv)
{
	const struct verb *verb;

	if (digest_init() != ERR_OK) {
		fputs("postern: the system has no source of random bytes\n", stderr);
		return EXIT_NOT_NOW;
	}
	json_setup();
	if (argc < 2) {
		verb_help(1, argv);
		return EXIT_USAGE;
	}
	verb = verb_find(verb_meant(argv[1]));
	if (verb == NULL)
		return verb_unknown(argv[1]);
	if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
		fputs(verb->help, stdout);
		return EXIT_DONE;
	}
	return verb->run(argc - 1, argv + 1);
}
