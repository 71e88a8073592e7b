/* SPDX-License-Identifier: MIT */
/*
 * Asks a running instance whether it is ready: the probe of images that have no shell.
 */
#include "verb.h"

#include "fetch.h"

#include <stdio.h>

#define DEFAULT_ADDR "127.0.0.1:9182"

int verb_health(int argc, char **argv)
{
	const char *addr_z = argc > 1 ? argv[1] : DEFAULT_ADDR, *why;
	struct endpoint endpoint;
	const struct fetch_question q = {.endpoint = &endpoint, .host = STR("localhost"), .target = STR("/readyz")};
	struct fetch_answer answer;
	enum err e;
	int code = EXIT_DONE;

	if (argc > 2 || addr_z[0] == '-')
		return verb_usage_error("health", "one address at most: HOST:PORT or unix:/path of the ops listener");
	if (!endpoint_parse(&endpoint, str_from_z(addr_z), &why))
		return verb_usage_error("health", "%s: %s", addr_z, why);
	e = fetch(&answer, &q);
	if (e == ERR_SYNTAX) {
		fputs("postern health: not ready: no answer in HTTP\n", stderr);
		return EXIT_DENY;
	}
	if (e != ERR_OK) {
		fprintf(stderr, "postern health: %s: %s\n", addr_z, err_text(e));
		return EXIT_UNREACHABLE;
	}
	if (answer.status == 200) {
		puts("ready");
	} else {
		fprintf(stderr, "postern health: not ready: %.*s", STR_ARG(answer.body));
		code = EXIT_DENY;
	}
	fetch_free(&answer);
	return code;
}
