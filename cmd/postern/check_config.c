/* SPDX-License-Identifier: MIT */
/*
 * Loads a configuration with the same code as serve, names every fault, and leaves. Dials nobody.
 */
#include "verb.h"

#include "config/config.h"

#include <stdio.h>
#include <string.h>

int verb_check_config(int argc, char **argv)
{
	struct config_options options = {.without_secrets = false};
	const char *file_z = NULL;
	struct fault_list faults;
	struct config *c = NULL;
	bool failed;
	enum err e;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--without-secrets") == 0)
			options.without_secrets = true;
		else if (argv[i][0] == '-' || file_z != NULL)
			return verb_usage_error("check-config", "unexpected \"%s\"", argv[i]);
		else
			file_z = argv[i];
	}
	if (file_z == NULL)
		return verb_usage_error("check-config", "which file?");
	fault_list_init(&faults);
	e = config_load_file(&c, file_z, &options, &faults);
	if (e == ERR_OK)
		config_check_listeners(c, &faults);
	for (size_t i = 0; i < faults.n; i++) {
		char line[1200];

		fault_print(&faults.items[i], line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	if (e != ERR_OK && faults.n_errors == 0)
		fprintf(stderr, "%s: %s\n", file_z, err_text(e));
	if (e == ERR_OK && faults.n_errors == 0)
		printf("%s: OK (%zu rule%s, %zu limit%s, %zu identit%s)\n", file_z, c->rules.n_rules,
			c->rules.n_rules == 1 ? "" : "s", c->rules.n_limits, c->rules.n_limits == 1 ? "" : "s",
			c->rules.identities.n, c->rules.identities.n == 1 ? "y" : "ies");
	config_free(c);
	failed = e != ERR_OK || faults.n_errors > 0;
	fault_list_done(&faults);
	if (e == ERR_MEMORY)
		return EXIT_NOT_NOW;
	return failed ? EXIT_CONFIG : EXIT_DONE;
}
