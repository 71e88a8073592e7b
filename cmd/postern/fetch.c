/* SPDX-License-Identifier: MIT */
/*
 * Small enough to be read in one go: no chunks, no redirects, no names, no encryption. What is asked of a gateway is judged by its
 * status alone, and what is asked of postern itself comes with its length.
 */
#include "fetch.h"

#include "verb.h"

#include "base/clock.h"
#include "base/text.h"
#include "io/listen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUESTION_BYTES 8192
#define ANSWER_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define ANSWER_BYTES_FIRST ((size_t)64 * 1024)

struct reading {
	int fd;
	ns deadline;
	char *bytes;
	size_t len, cap;
};

static bool wait_for(const struct reading *r, short events)
{
	struct pollfd wait = {.fd = r->fd, .events = events};
	ns now = clock_monotonic_ns();

	return now < r->deadline && poll(&wait, 1, (int)((r->deadline - now) / NS_PER_MS) + 1) > 0;
}

static enum err send_question(const struct reading *r, struct str bytes)
{
	while (bytes.len > 0) {
		ssize_t n = send(r->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n > 0)
			bytes = str_from(bytes, (size_t)n);
		else if (n < 0 && errno == EAGAIN && !wait_for(r, POLLOUT))
			return ERR_TIMEOUT;
		else if (n < 0 && errno != EAGAIN && errno != EINTR)
			return ERR_IO;
	}
	return ERR_OK;
}

/* The length that the header in front of head_len tells, or SIZE_MAX. */
static size_t told_length(struct str head)
{
	struct str name = STR("content-length:");

	while (head.len > 0) {
		struct str line = str_head(head, str_find(head, '\n'));
		uint64_t n;

		head = str_from(head, line.len + 1);
		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (str_starts_with_nocase(line, name) &&
			str_to_u64(str_trim(str_from(line, name.len)), ANSWER_BYTES_MAX, &n))
			return (size_t)n;
	}
	return SIZE_MAX;
}

/* Where the body begins; 0 while the header is not complete. */
static size_t head_length(const struct reading *r)
{
	const char *end = r->len > 0 ? memmem(r->bytes, r->len, "\r\n\r\n", 4) : NULL;

	return end != NULL ? (size_t)(end - r->bytes) + 4 : 0;
}

static bool is_complete(const struct reading *r, bool head_only)
{
	size_t head = head_length(r), length;

	if (head == 0 || head_only)
		return head != 0;
	length = told_length(str_make(r->bytes, head));
	return length != SIZE_MAX && r->len - head >= length;
}

static enum err grow(struct reading *r)
{
	size_t cap = r->cap == 0 ? ANSWER_BYTES_FIRST : 2 * r->cap;
	char *grown;

	if (cap > ANSWER_BYTES_MAX)
		return ERR_RANGE;
	grown = realloc(r->bytes, cap);
	if (grown == NULL)
		return ERR_MEMORY;
	r->bytes = grown;
	r->cap = cap;
	return ERR_OK;
}

static enum err read_answer(struct reading *r, bool head_only)
{
	while (!is_complete(r, head_only)) {
		ssize_t n;
		enum err e = r->len == r->cap ? grow(r) : ERR_OK;

		if (e != ERR_OK)
			return e;
		n = recv(r->fd, r->bytes + r->len, r->cap - r->len, 0);
		if (n > 0)
			r->len += (size_t)n;
		else if (n == 0)
			return r->len == 0 ? ERR_CLOSED : ERR_OK;
		else if (errno == EAGAIN && !wait_for(r, POLLIN))
			return ERR_TIMEOUT;
		else if (errno != EAGAIN && errno != EINTR)
			return ERR_IO;
	}
	return ERR_OK;
}

static struct str write_question(const struct fetch_question *q, char buffer[QUESTION_BYTES])
{
	struct text t;

	text_init(&t, buffer, QUESTION_BYTES);
	text_z(&t, "GET ");
	text_str(&t, q->target);
	text_z(&t, " HTTP/1.1\r\nHost: ");
	text_str(&t, q->host);
	for (size_t i = 0; i < q->n_headers; i++) {
		text_z(&t, "\r\n");
		text_str(&t, q->headers[i].name);
		text_z(&t, ": ");
		text_str(&t, q->headers[i].value);
	}
	text_z(&t, "\r\nUser-Agent: postern/" POSTERN_VERSION "\r\nAccept: */*\r\nConnection: close\r\n\r\n");
	return t.overflow ? STR("") : text_view(&t);
}

/* "HTTP/1.1 200 OK": the status; 0 if it is none. */
static unsigned read_status(struct str answer)
{
	uint64_t status;

	if (!str_starts_with(answer, STR("HTTP/1.")) || !str_to_u64(str_head(str_from(answer, 9), 3), 999, &status))
		return 0;
	return (unsigned)status;
}

static void read_local(int fd, struct fetch_answer *ret)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	struct endpoint e;

	ret->has_local = getsockname(fd, (struct sockaddr *)&sa, &len) == 0 &&
			 endpoint_from_sockaddr(&e, (const struct sockaddr *)&sa, len) && !e.is_unix;
	if (ret->has_local)
		ret->local = e.ip;
}

enum err fetch(struct fetch_answer *ret, const struct fetch_question *q)
{
	struct reading r = {.deadline = clock_monotonic_ns() + FETCH_TIMEOUT_MS * NS_PER_MS};
	struct fetch_answer answer = {0};
	char buffer[QUESTION_BYTES];
	struct str question = write_question(q, buffer);
	enum err e = question.len > 0 ? listen_connect_from(&r.fd, q->endpoint, q->from, FETCH_TIMEOUT_MS) : ERR_RANGE;

	if (e != ERR_OK)
		return e;
	read_local(r.fd, &answer);
	e = send_question(&r, question);
	if (e == ERR_OK)
		e = read_answer(&r, q->head_only);
	close(r.fd);
	answer.status = e == ERR_OK ? read_status(str_make(r.bytes, r.len)) : 0;
	if (e == ERR_OK && (answer.status == 0 || head_length(&r) == 0))
		e = ERR_SYNTAX;
	if (e != ERR_OK) {
		free(r.bytes);
		return e;
	}
	answer.bytes = r.bytes;
	answer.body = str_from(str_make(r.bytes, r.len), head_length(&r));
	*ret = answer;
	return ERR_OK;
}

void fetch_free(struct fetch_answer *a)
{
	free(a->bytes);
	a->bytes = NULL;
}

int fetch_admin_address(const char *verb_z, const char *text_z, struct endpoint *ret)
{
	const char *why;

	if (endpoint_parse(ret, str_from_z(text_z), &why))
		return EXIT_DONE;
	return verb_usage_error(verb_z, "%s: %s", text_z, why);
}

int fetch_admin(const char *verb_z, const struct endpoint *admin, struct str target, struct json **ret)
{
	const struct fetch_question q = {.endpoint = admin, .host = STR("localhost"), .target = target};
	char where_z[ENDPOINT_TEXT_BYTES];
	struct fetch_answer answer;
	struct json_fault fault;
	enum err e = fetch(&answer, &q);

	endpoint_print(admin, where_z);
	if (e != ERR_OK) {
		fprintf(stderr, "postern %s: the admin listener %s: %s\n", verb_z, where_z, err_text(e));
		return EXIT_UNREACHABLE;
	}
	e = answer.status == 200 ? json_read(ret, answer.body, &fault) : ERR_SYNTAX;
	if (e != ERR_OK)
		fprintf(stderr, "postern %s: %s does not answer like an admin listener of postern (status %u)\n", verb_z,
			where_z, answer.status);
	fetch_free(&answer);
	return e == ERR_OK ? EXIT_DONE : EXIT_UNREACHABLE;
}
