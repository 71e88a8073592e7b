/* SPDX-License-Identifier: MIT */
/*
 * The load of the HTTP rows: a number of keep-alive connections over TCP or a Unix socket, each sending the same request
 * again as soon as its answer is whole. wrk cannot do Unix sockets, and what both rows of a comparison share must be the
 * same program. Any answer but the expected one ends the run: a fast refusal must not look like a fast answer.
 *
 *   bench_load ENDPOINT REQUEST-FILE STATUS CONNECTIONS SECONDS
 *
 * Prints "requests N", "seconds S" and percentiles of the time to answer.
 */
#include "base/clock.h"
#include "base/endpoint.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define CONNECTIONS_MAX 1024
#define ANSWER_BYTES 8192
#define REQUEST_BYTES_MAX ((size_t)65536)
#define EVENTS 256
#define TIMES (1u << 22)

struct connection {
	int fd;
	ns sent_at;
	size_t len;
	char answer[ANSWER_BYTES];
};

static struct str request;
static char status_line[16]; /* "HTTP/1.1 200" */
static uint32_t *times_ns; /* the first TIMES */
static uint64_t n_answers;

static void give_up(const char *what_z)
{
	fprintf(stderr, "bench_load: %s\n", what_z);
	exit(1);
}

static void send_request(struct connection *c)
{
	c->len = 0;
	c->sent_at = clock_monotonic_ns();
	if (send(c->fd, request.ptr, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
		give_up("a request could not be sent");
}

/* The whole length of the answer, or 0 as long as its head is not complete. */
static size_t answer_bytes(const struct connection *c)
{
	static const char name[] = "content-length: ";
	struct str head = {c->answer, c->len};
	const char *end = memmem(head.ptr, head.len, "\r\n\r\n", 4);
	size_t n = 0, at;

	if (end == NULL)
		return 0;
	head.len = (size_t)(end - head.ptr);
	if (!str_starts_with(head, str_from_z(status_line)))
		give_up("an answer has another status than the expected one");
	for (at = str_find(head, '\n') + 1; at < head.len; at += str_find(str_from(head, at), '\n') + 1) {
		struct str line = str_from(head, at);

		if (!str_starts_with_nocase(line, str_from_z(name)))
			continue;
		for (at += sizeof(name) - 1; str_is_digit(c->answer[at]); at++)
			n = n * 10 + (size_t)(c->answer[at] - '0');
	}
	return head.len + 4 + n;
}

static void read_answer(struct connection *c)
{
	ssize_t n = recv(c->fd, c->answer + c->len, sizeof(c->answer) - c->len, MSG_DONTWAIT);
	size_t whole;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		give_up("a connection was closed");
	c->len += (size_t)n;
	whole = answer_bytes(c);
	if (whole == 0 || c->len < whole) {
		if (c->len == sizeof(c->answer))
			give_up("an answer is too long");
		return;
	}
	if (c->len > whole)
		give_up("more came than was asked for");
	if (n_answers < TIMES)
		times_ns[n_answers] = (uint32_t)(clock_monotonic_ns() - c->sent_at);
	n_answers++;
	send_request(c);
}

static void connect_all(const struct endpoint *where, struct connection *all, size_t n, int epoll_fd)
{
	struct sockaddr_storage address;
	socklen_t len = endpoint_sockaddr(where, &address);

	for (size_t i = 0; i < n; i++) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};

		all[i].fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (all[i].fd < 0 || connect(all[i].fd, (struct sockaddr *)&address, len) != 0 ||
			epoll_ctl(epoll_fd, EPOLL_CTL_ADD, all[i].fd, &event) != 0)
			give_up("cannot connect");
	}
}

static int time_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(ns spent_ns)
{
	size_t n = n_answers < TIMES ? (size_t)n_answers : TIMES;

	if (n == 0)
		give_up("nothing was answered");
	qsort(times_ns, n, sizeof(*times_ns), time_compare);
	printf("requests %llu\nseconds %.6f\np50_us %.1f\np99_us %.1f\n", (unsigned long long)n_answers,
		(double)spent_ns / (double)NS_PER_S, times_ns[n / 2] / 1e3, times_ns[n - 1 - n / 100] / 1e3);
}

static void run(struct connection *all, size_t n, int epoll_fd, ns duration_ns)
{
	struct epoll_event events[EVENTS];
	ns start = clock_monotonic_ns(), now = start;

	for (size_t i = 0; i < n; i++)
		send_request(&all[i]);
	while (now - start < duration_ns) {
		int ready = epoll_wait(epoll_fd, events, EVENTS, 1000);

		if (ready == 0)
			give_up("no answer within a second");
		for (int i = 0; i < ready; i++)
			read_answer(events[i].data.ptr);
		now = clock_monotonic_ns();
	}
	report(now - start);
}

int main(int argc, char **argv)
{
	static struct connection all[CONNECTIONS_MAX];
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct endpoint where;
	const char *why = "";
	size_t n;

	if (argc != 6)
		give_up("use: bench_load ENDPOINT REQUEST-FILE STATUS CONNECTIONS SECONDS");
	n = (size_t)atoi(argv[4]);
	if (!endpoint_parse(&where, str_from_z(argv[1]), &why) || n < 1 || n > CONNECTIONS_MAX)
		give_up("the endpoint or the number of connections is none");
	if (file_read(&request, argv[2], REQUEST_BYTES_MAX) != ERR_OK)
		give_up("the request cannot be read");
	times_ns = malloc(TIMES * sizeof(*times_ns));
	if (times_ns == NULL || epoll_fd < 0)
		give_up("no memory");
	(void)snprintf(status_line, sizeof(status_line), "HTTP/1.1 %.3s", argv[3]);
	connect_all(&where, all, n, epoll_fd);
	run(all, n, epoll_fd, (ns)(atof(argv[5]) * (double)NS_PER_S));
	return 0;
}
