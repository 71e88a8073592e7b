/* SPDX-License-Identifier: MIT */
/*
 * Asks a running instance whether it is ready: the probe of images that have no shell.
 */
#include "verb.h"

#include "base/endpoint.h"
#include "io/listen.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_ADDR "127.0.0.1:9182"
#define TIMEOUT_MS 2000

static const char question[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/* Reads until the peer closes, the buffer is full or nothing more comes in time; false if nothing came at all. */
static bool read_answer(int fd, char *answer, size_t size)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	size_t len = 0;

	while (len < size - 1 && poll(&wait, 1, TIMEOUT_MS) > 0) {
		ssize_t n = read(fd, answer + len, size - 1 - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	answer[len] = '\0';
	return len > 0;
}

static int judge(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	if (strncmp(answer, "HTTP/1.1 200", 12) == 0) {
		puts("ready");
		return EXIT_DONE;
	}
	fprintf(stderr, "postern health: not ready: %s", body != NULL ? body + 4 : "no answer in HTTP\n");
	return EXIT_DENY;
}

int verb_health(int argc, char **argv)
{
	const char *addr_z = argc > 1 ? argv[1] : DEFAULT_ADDR, *why;
	struct endpoint endpoint;
	char answer[1024];
	enum err e;
	int fd, code = EXIT_UNREACHABLE;

	if (argc > 2 || addr_z[0] == '-')
		return verb_usage_error("health", "one address at most: HOST:PORT or unix:/path of the ops listener");
	if (!endpoint_parse(&endpoint, str_from_z(addr_z), &why))
		return verb_usage_error("health", "%s: %s", addr_z, why);
	e = listen_connect(&fd, &endpoint, TIMEOUT_MS);
	if (e != ERR_OK) {
		fprintf(stderr, "postern health: %s: %s\n", addr_z, err_text(e));
		return EXIT_UNREACHABLE;
	}
	if (write(fd, question, sizeof(question) - 1) == (ssize_t)sizeof(question) - 1 &&
		read_answer(fd, answer, sizeof(answer)))
		code = judge(answer);
	else
		fprintf(stderr, "postern health: %s: no answer\n", addr_z);
	close(fd);
	return code;
}
