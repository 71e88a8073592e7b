/* SPDX-License-Identifier: MIT */
/*
 * The yardstick for /check: libmicrohttpd alone, in the settings that measured best (one epoll thread, a small pool, one
 * response made beforehand), which reads the body of a POST, does not look at it, and answers with a constant as long as
 * our answers are. What postern needs more than this is its own work.
 * Writes "port N" and "library V", then serves until it is ended.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POOL_BYTES ((size_t)8192)
#define CONNECTIONS_MAX 4096u

static char answer[] =
	"{\"decision\": \"allow\", \"reason\": \"allowed\", \"status\": 200, \"client\": {\"address\": "
	"\"203.0.113.9\", "
	"\"reason\": \"trusted_range\", \"decided\": true}, \"identity\": null, \"token\": \"absent\", "
	"\"rule\": "
	"\"default\", \"limits\": [{\"name\": \"per-client\", \"quota\": 1000000, \"window\": 1, "
	"\"remaining\": 999999, "
	"\"reset\": 1}], \"response_headers\": {\"RateLimit-Policy\": \"\\\"per-client\\\";q=1000000;w=1\", "
	"\"RateLimit\": \"\\\"per-client\\\";r=999999;t=1\"}, \"upstream_headers\": {\"X-Postern-Client\": "
	"\"203.0.113.9\", \"X-Postern-Identity\": \"\"}, \"remove_headers\": [\"X-Internal-Token\"]}\n";

/* An answer in the first call would close the connection. */
static enum MHD_Result serve(void *response, struct MHD_Connection *c, const char *url, const char *method,
	const char *version, const char *body, size_t *body_bytes, void **state)
{
	static int seen;

	(void)url;
	(void)method;
	(void)version;
	(void)body;
	if (*state == NULL || *body_bytes > 0) {
		*state = &seen;
		*body_bytes = 0;
		return MHD_YES;
	}
	return MHD_queue_response(c, MHD_HTTP_OK, response);
}

int main(void)
{
	struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(answer), answer, MHD_RESPMEM_PERSISTENT);
	const union MHD_DaemonInfo *info;
	struct MHD_Daemon *daemon;

	if (response == NULL ||
		MHD_add_response_header(response, "Content-Type", "application/json") != MHD_YES ||
		MHD_add_response_header(response, "Cache-Control", "no-store") != MHD_YES)
		return 1;
	daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, serve, response,
		MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&where, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		POOL_BYTES, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_END);
	info = daemon != NULL ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
	if (info == NULL)
		return 1;
	printf("port %u\nlibrary %s\n", (unsigned)info->port, MHD_get_version());
	fflush(stdout);
	for (;;)
		pause();
}
