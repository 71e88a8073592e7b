/* SPDX-License-Identifier: MIT */
/*
 * Which word getopt_long has just read can be told from where it stands: the value of a flag is either a word of its own,
 * behind it, or part of it.
 */
#include "flags.h"

#include "verb.h"

#include "base/str.h"

#include <string.h>

#define NAMES_MAX 32

/* "--rate" of "--rate=5/hour". */
static struct str name_of(const char *word)
{
	struct str s = str_from_z(word);

	return str_head(s, str_find(s, '='));
}

static const char *nearest_to(struct str name, const struct option *options)
{
	struct str names[NAMES_MAX] = {{NULL, 0}};
	size_t n = 0, nearest;

	while (n < NAMES_MAX && options[n].name != NULL) {
		names[n] = str_from_z(options[n].name);
		n++;
	}
	nearest = str_nearest(str_from(name, 2), names, n);
	return nearest < n ? options[nearest].name : NULL;
}

/* meant_z: NULL if that cannot be told. */
static int refuse_unknown(const char *verb, struct str name, const char *meant_z)
{
	if (meant_z != NULL)
		verb_usage_error(verb, "\"%.*s\" is not known; did you mean \"--%s\"?", STR_ARG(name), meant_z);
	else
		verb_usage_error(verb, "\"%.*s\" is not known", STR_ARG(name));
	return FLAGS_BAD;
}

int flags_next(const char *verb, int argc, char **argv, const char *short_z, const struct option *options)
{
	int at = -1, id;
	const char *word;

	opterr = 0;
	id = getopt_long(argc, argv, short_z, options, &at);
	if (id == -1)
		return FLAGS_END;
	word = argv[optind - 1];
	if (id == ':')
		return verb_usage_error(verb, "\"%s\" lacks its value", word), FLAGS_BAD;
	if (id == '?' && optopt == 0)
		return refuse_unknown(verb, name_of(word), nearest_to(name_of(word), options));
	if (id == '?' && strncmp(word, "--", 2) != 0)
		return verb_usage_error(verb, "\"-%c\" is not known", optopt), FLAGS_BAD;
	if (id == '?')
		return verb_usage_error(verb, "\"%s\": this flag takes no value", word), FLAGS_BAD;
	if (at < 0)
		return id;
	if (optarg == word)
		word = argv[optind - 2];
	if (!str_equal(str_from(name_of(word), 2), str_from_z(options[at].name)))
		return refuse_unknown(verb, name_of(word), options[at].name);
	return id;
}
