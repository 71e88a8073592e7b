/* SPDX-License-Identifier: MIT */
/*
 * What is running: bug reports begin with this.
 */
#include "verb.h"

#include "base/digest.h"
#include "base/json.h"
#include "server/server.h"

#include "revision.h"

#include <stdio.h>

int verb_version(int argc, char **argv)
{
	if (argc > 1)
		return verb_usage_error("version", "unexpected \"%s\"", argv[1]);
	printf("postern %s (%s)\nlibnghttp2 %s, jansson %s, libsodium %s\n", POSTERN_VERSION, POSTERN_REVISION,
		server_grpc_library_z(), json_library_z(), digest_library_z());
	return EXIT_DONE;
}
