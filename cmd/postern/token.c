/* SPDX-License-Identifier: MIT */
/*
 * Makes tokens and digests. A token is only ever read from a file or stdin: a command line is visible to every process.
 */
#include "verb.h"

#include "base/digest.h"
#include "base/file.h"
#include "config/config.h"
#include "core/identity.h"

#include <stdio.h>
#include <string.h>

#define RANDOM_BYTES 32
#define TOKEN_INPUT_BYTES 1024 /* a token and its newline, and enough to see that there is more */

static int token_new(void)
{
	uint8_t bytes[RANDOM_BYTES];
	char text[(RANDOM_BYTES * 4 + 2) / 3 + 1];

	digest_random(bytes, sizeof(bytes));
	digest_base64url(bytes, sizeof(bytes), text);
	printf("%s%s\n", TOKEN_PREFIX, text);
	digest_wipe(bytes, sizeof(bytes));
	digest_wipe(text, sizeof(text));
	return fflush(stdout) == 0 ? EXIT_DONE : EXIT_NOT_NOW;
}

static int print_hash(struct str token)
{
	struct digest digest;
	char hex[2 * DIGEST_BYTES + 1];
	const char *why = config_token_fault(token);

	if (why != NULL) {
		fprintf(stderr, "postern token: this cannot be a token: %s\n", why);
		return EXIT_CONFIG;
	}
	digest_sha256(&digest, token);
	str_hex(digest.bytes, DIGEST_BYTES, hex);
	puts(hex);
	return fflush(stdout) == 0 ? EXIT_DONE : EXIT_NOT_NOW;
}

static int hash_file(const char *file_z)
{
	struct str bytes;
	enum err e = file_read(&bytes, file_z, TOKEN_INPUT_BYTES);
	int code;

	if (e != ERR_OK) {
		fprintf(stderr, "postern token: %s: %s\n", file_z, err_text(e));
		return EXIT_CONFIG;
	}
	code = print_hash(config_token_text(bytes));
	file_free(bytes);
	return code;
}

static int hash_stdin(void)
{
	char bytes[TOKEN_INPUT_BYTES];
	int code = print_hash(config_token_text(str_make(bytes, fread(bytes, 1, sizeof(bytes), stdin))));

	digest_wipe(bytes, sizeof(bytes));
	return code;
}

int verb_token(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "new") == 0)
		return token_new();
	if ((argc == 2 || argc == 3) && strcmp(argv[1], "hash") == 0)
		return argc == 3 ? hash_file(argv[2]) : hash_stdin();
	return verb_usage_error("token", "say \"token new\" or \"token hash [FILE]\"");
}
