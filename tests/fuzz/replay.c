/* SPDX-License-Identifier: MIT */
/*
 * Stands in for libFuzzer where a target only has to go through its corpus again: feeds it each file given as an
 * argument. Each input lies in a block of exactly its size, so that a sanitizer sees the first byte read behind it.
 * No file at all is a failure: a corpus that got lost must not look like one that passed.
 */
#include "fuzz.h"

#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX_BYTES ((size_t)16 << 20)

static int replay(const char *path_z)
{
	uint8_t *data = NULL;
	struct str bytes;
	enum err e = file_read(&bytes, path_z, INPUT_MAX_BYTES);

	if (e == ERR_OK) {
		data = malloc(bytes.len);
		e = data != NULL || bytes.len == 0 ? ERR_OK : ERR_MEMORY;
		if (e == ERR_OK && bytes.len > 0)
			memcpy(data, bytes.ptr, bytes.len);
		if (e == ERR_OK)
			(void)LLVMFuzzerTestOneInput(data, bytes.len);
		file_free(bytes);
		free(data);
	}
	if (e != ERR_OK)
		fprintf(stderr, "%s: %s\n", path_z, err_text(e));
	return e == ERR_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc < 2) {
		fprintf(stderr, "%s: no files to replay\n", argv[0]);
		return 1;
	}
	for (int i = 1; i < argc; i++) {
		/* Named first, so that a crash tells its input. */
		printf("%s\n", argv[i]);
		fflush(stdout);
		failed |= replay(argv[i]);
	}
	return failed;
}
