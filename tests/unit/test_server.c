/* SPDX-License-Identifier: MIT */
/*
 * A whole server in this process, on ports of the kernel's choice, spoken to over raw sockets, because what matters here is
 * what goes over the wire: which connection ends, which goes on, and whether every question gets its answer. Reads have a
 * timeout as a safety net only. Signals come through a pipe in the form a signalfd gives them.
 */
#include "server/server.h"

#include "base/digest.h"
#include "base/fault.h"
#include "base/log.h"
#include "engine/engine.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define SAFETY_S 20

/* ---------------------------------------------------------------------------------------------------- a server */

static int quiet_fd; /* where the log goes */

static struct fixture {
	struct config *config;
	struct store *store;
	struct engine *engine;
	struct server *server;
	int signals[2];
	pthread_t thread;
	bool is_running;
	enum err outcome;
	char folder_z[64];
} f;

static void *run(void *arg)
{
	(void)arg;
	f.outcome = server_run(f.server);
	return NULL;
}

static void start_text(const char *text_z)
{
	char note[256] = "";
	struct config_options options = {0};
	struct fault_list faults;

	fault_list_init(&faults);
	if (config_load_text(&f.config, str_from_z(text_z), f.folder_z, &options, &faults) != ERR_OK)
		fail_msg("%s: %s", text_z, faults.n > 0 ? faults.items[0].text_z : "?");
	fault_list_done(&faults);
	assert_int_equal(store_open(&f.store, f.config->store_max_memory_bytes), ERR_OK);
	assert_int_equal(engine_open(&f.engine, &f.config->rules, f.store, f.config->workers), ERR_OK);
	if (server_open(&f.server, f.config, f.engine, f.signals[0], note, sizeof(note)) != ERR_OK)
		fail_msg("%s", note);
	assert_int_equal(pthread_create(&f.thread, NULL, run, NULL), 0);
	f.is_running = true;
}

/* members: more of the configuration, with a comma in front. */
static void start(const char *members_z)
{
	char text[2048];

	snprintf(text, sizeof(text), "{\"listen\": {\"http\": \"127.0.0.1:0\", \"grpc\": null, \"ops\": \"127.0.0.1:0\", \"admin\": null}%s}",
		members_z);
	start_text(text);
}

static void send_signal(int number)
{
	struct signalfd_siginfo info = {.ssi_signo = (uint32_t)number};

	assert_int_equal(write(f.signals[1], &info, sizeof(info)), sizeof(info));
}

static enum err wait_for_end(void)
{
	pthread_join(f.thread, NULL);
	f.is_running = false;
	return f.outcome;
}

static int setup(void **state)
{
	(void)state;
	f = (struct fixture){0};
	snprintf(f.folder_z, sizeof(f.folder_z), "/tmp/test_server.XXXXXX");
	if (mkdtemp(f.folder_z) == NULL)
		return -1;
	return pipe2(f.signals, O_NONBLOCK | O_CLOEXEC);
}

static int teardown(void **state)
{
	char path[128];

	(void)state;
	if (f.is_running) {
		send_signal(SIGTERM);
		send_signal(SIGTERM);
		(void)wait_for_end();
	}
	server_close(f.server);
	engine_close(f.engine);
	store_close(f.store);
	config_free(f.config);
	close(f.signals[0]);
	close(f.signals[1]);
	snprintf(path, sizeof(path), "%s/key", f.folder_z);
	unlink(path);
	return rmdir(f.folder_z);
}

/* ---------------------------------------------------------------------------------------------------- a client */

struct line {
	int fd;
	size_t len;
	char bytes[256 * 1024];
};

struct answer {
	unsigned status;
	bool closes; /* it says so */
	char head[4096];
	char body[128 * 1024];
};

static struct line client, other;
static struct answer answer;

static void open_socket(struct line *c, enum listen_name name)
{
	struct timeval timeout = {.tv_sec = SAFETY_S};

	c->fd = socket(
		server_endpoint(f.server, name)->is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	c->len = 0;
	assert_true(c->fd >= 0);
	assert_int_equal(setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
}

static void dial_on(struct line *c, enum listen_name name)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_sockaddr(server_endpoint(f.server, name), &sa);

	assert_int_equal(connect(c->fd, (struct sockaddr *)&sa, len), 0);
}

static void dial(struct line *c, enum listen_name name)
{
	open_socket(c, name);
	dial_on(c, name);
}

static void hang_up(struct line *c)
{
	close(c->fd);
	c->fd = -1;
}

static void say_bytes(struct line *c, const char *bytes, size_t n)
{
	assert_int_equal(send(c->fd, bytes, n, MSG_NOSIGNAL), n);
}

static void say(struct line *c, const char *text_z)
{
	say_bytes(c, text_z, strlen(text_z));
}

/* False at the end of the connection. */
static bool more(struct line *c)
{
	ssize_t n;

	assert_true(c->len < sizeof(c->bytes) - 1);
	n = recv(c->fd, c->bytes + c->len, sizeof(c->bytes) - 1 - c->len, 0);
	if (n < 0)
		assert_int_equal(errno, ECONNRESET); /* else the safety net: nothing came */
	if (n <= 0)
		return false;
	c->len += (size_t)n;
	return true;
}

/* Reads one answer into "answer". Its status, or 0 if the connection ended instead. */
static unsigned hear(struct line *c, bool has_body)
{
	char *end;
	const char *length;
	size_t head_len, body_len = 0;

	for (;;) {
		c->bytes[c->len] = '\0';
		end = strstr(c->bytes, "\r\n\r\n");
		if (end != NULL)
			break;
		if (!more(c))
			return 0;
	}
	head_len = (size_t)(end - c->bytes) + 4;
	assert_true(head_len < sizeof(answer.head));
	memcpy(answer.head, c->bytes, head_len);
	answer.head[head_len] = '\0';
	assert_int_equal(sscanf(answer.head, "HTTP/1.1 %u ", &answer.status), 1);
	answer.closes = strstr(answer.head, "\r\nConnection: close\r\n") != NULL;
	length = strstr(answer.head, "\r\nContent-Length: ");
	assert_true(length != NULL || answer.status == 100);
	if (has_body && length != NULL)
		body_len = strtoul(length + 18, NULL, 10);
	while (c->len < head_len + body_len)
		assert_true(more(c));
	assert_true(body_len < sizeof(answer.body));
	memcpy(answer.body, c->bytes + head_len, body_len);
	answer.body[body_len] = '\0';
	c->len -= head_len + body_len;
	memmove(c->bytes, c->bytes + head_len + body_len, c->len);
	return answer.status;
}

static void assert_ended(struct line *c)
{
	assert_int_equal(c->len, 0);
	assert_false(more(c));
}

/* One question on a connection of its own, which must end with the answer. */
static void assert_refused(const char *text_z, unsigned status, const char *code_z)
{
	dial(&other, LISTEN_HTTP);
	say(&other, text_z);
	assert_int_equal(hear(&other, true), status);
	assert_true(answer.closes);
	if (strstr(answer.body, code_z) == NULL)
		fail_msg("%s: %s", text_z, answer.body);
	assert_ended(&other);
	hang_up(&other);
}

#define GATEWAY "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /x\r\n"
#define ASK_HEAD "GET /forward-auth HTTP/1.1\r\nHost: a\r\n"
#define ASK "GET /forward-auth HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n"
#define CHECK_HEAD "POST /check HTTP/1.1\r\nHost: a\r\n"
#define CHECK_BODY "{\"remote_addr\": \"203.0.113.9\"}"
#define CHECK CHECK_HEAD "Content-Length: 30\r\n\r\n" CHECK_BODY
#define FIVE                                                                                                 \
	", \"limits\": {\"l\": {\"rate\": \"5/day\"}}, \"rules\": [{\"name\": \"r\", \"limits\": [\"l\"]}]"

/* ---------------------------------------------------------------------------------------------------- connections */

static void test_keep_alive(void **state)
{
	(void)state;
	start(FIVE);
	dial(&client, LISTEN_HTTP);
	for (unsigned i = 0; i < 10; i++) {
		say(&client, ASK);
		assert_int_equal(hear(&client, true), i < 5 ? 200 : 429);
		assert_false(answer.closes);
		if (i < 5) {
			assert_string_equal(answer.body, "");
			assert_non_null(strstr(answer.head, "\r\nX-Postern-Client: 203.0.113.9\r\n"));
			/* Empty, and present: a forged one must not live on. */
			assert_non_null(strstr(answer.head, "\r\nX-Postern-Identity: \r\n"));
		} else {
			assert_non_null(
				strstr(answer.body, "{\"error\": \"rate_limited\", \"retry_after\": "));
			assert_null(strstr(answer.head, "X-Postern-"));
		}
	}
	hang_up(&client);
}

static void test_check(void **state)
{
	(void)state;
	start("");
	dial(&client, LISTEN_HTTP);
	for (unsigned i = 0; i < 3; i++) {
		say(&client, CHECK);
		assert_int_equal(hear(&client, true), 200);
		assert_false(answer.closes);
		assert_non_null(strstr(answer.body, "\"decision\": \"allow\""));
	}
	/* Malformed, yet its end is known: the connection goes on. */
	say(&client, CHECK_HEAD "Content-Length: 2\r\n\r\n{]");
	assert_int_equal(hear(&client, true), 400);
	assert_false(answer.closes);
	/* In pieces and in chunks. */
	say(&client, CHECK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"rem");
	say(&client, "\r\n19\r\note_addr\": \"203.0.113.9\"}\r\n0\r\n\r\n");
	assert_int_equal(hear(&client, true), 200);
	say(&client, CHECK);
	assert_int_equal(hear(&client, true), 200);
	hang_up(&client);
}

static void test_no_door(void **state)
{
	(void)state;
	start("");
	dial(&client, LISTEN_HTTP);
	say(&client, "GET /chekc HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, true), 404);
	assert_false(answer.closes);
	assert_non_null(strstr(answer.body, "did you mean /check?"));
	say(&client, "HEAD /check HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, false), 405);
	assert_non_null(strstr(answer.head, "\r\nAllow: POST\r\n"));
	say(&client, "GET /check HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, true), 405);
	assert_false(answer.closes);
	/* The query is no option and no part of the path. */
	say(&client, "GET /forward-auth?a=b&c?d HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n");
	assert_int_equal(hear(&client, true), 200);
	say(&client, "GET /forward-auth? HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n");
	assert_int_equal(hear(&client, true), 200);
	say(&client, "GET /forward%2dauth HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n");
	assert_int_equal(hear(&client, true), 404);
	hang_up(&client);
	assert_refused("PUT /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", 404, "not_found");
}

static void test_pipelining(void **state)
{
	(void)state;
	start("");
	dial(&client, LISTEN_HTTP);
	say(&client, ASK CHECK ASK);
	assert_int_equal(hear(&client, true), 200);
	assert_string_equal(answer.body, "");
	assert_int_equal(hear(&client, true), 200);
	assert_non_null(strstr(answer.body, "\"decision\""));
	assert_int_equal(hear(&client, true), 200);
	assert_string_equal(answer.body, "");
	hang_up(&client);
}

static void test_versions_and_methods(void **state)
{
	(void)state;
	start("");
	dial(&client, LISTEN_HTTP);
	say(&client, "GET /forward-auth HTTP/1.0\r\n" GATEWAY "\r\n");
	assert_int_equal(hear(&client, true), 200);
	assert_true(answer.closes);
	assert_ended(&client);
	hang_up(&client);

	dial(&client, LISTEN_HTTP);
	say(&client, "GET /forward-auth HTTP/1.0\r\nConnection: keep-alive\r\n" GATEWAY "\r\n");
	assert_int_equal(hear(&client, true), 200);
	say(&client, "HEAD /forward-auth HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n");
	assert_int_equal(hear(&client, false), 200);
	say(&client,
		"BREW /forward-auth HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" GATEWAY
		"\r\n");
	assert_int_equal(hear(&client, true), 200);
	say(&client, "GET /forward-auth HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" GATEWAY "\r\n");
	assert_int_equal(hear(&client, true), 200);
	assert_ended(&client);
	hang_up(&client);
}

static void test_expect(void **state)
{
	(void)state;
	start("");
	dial(&client, LISTEN_HTTP);
	say(&client, CHECK_HEAD "Expect: 100-continue\r\nContent-Length: 30\r\n\r\n");
	assert_int_equal(hear(&client, false), 100);
	say(&client, CHECK_BODY);
	assert_int_equal(hear(&client, true), 200);
	hang_up(&client);
}

/* ---------------------------------------------------------------------------------------------------- hostile bytes */

static void test_framing(void **state)
{
	static const char *const texts[] = {
		CHECK_HEAD "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
		CHECK_HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		CHECK_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n",
		CHECK_HEAD "Transfer-Encoding: chunked \r\n\r\n",
		CHECK_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST /check HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		CHECK_HEAD "Content-Length : 5\r\n\r\n",
		CHECK_HEAD "X(A): 1\r\n\r\n",
		CHECK_HEAD "Host: b\r\n\r\n",
		CHECK_HEAD "X-Forwarded-: 6.6.6.6\r\n For\r\n\r\n",
		CHECK_HEAD "X-A: 1\nX-B: 2\r\n\r\n",
		CHECK_HEAD "X-A: 1\rX-Forwarded-For: 6.6.6.6\r\n\r\n",
		CHECK_HEAD "X-A: 1\r\r\n\r\n",
		"GET /forward-auth?a\rb HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n",
		"GET /forward-auth\r HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n",
		CHECK_HEAD ": 1\r\n\r\n",
		"POST /check HTTP/1.1\r\n\r\n",
		"GET /forward-auth /x HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET  /forward-auth HTTP/1.1\r\nHost: a\r\n\r\n",
		"CONNECT /forward-auth HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n",
		"G(T /forward-auth HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n",
	};

	(void)state;
	start("");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_refused(texts[i], 400, "bad_framing");
}

#define BYTES(literal)                                                                                       \
	{                                                                                                    \
		literal, sizeof(literal) - 1                                                                 \
	}

static void test_nul(void **state)
{
	static const struct str texts[] = {
		BYTES("GET /forward-auth HTTP/1.1\r\nHost: a\r\nX-A: 1\0, 2\r\n\r\n"),
		BYTES("GET /forward-auth\0/x HTTP/1.1\r\nHost: a\r\n\r\n"),
		BYTES("GET\0 /forward-auth HTTP/1.1\r\nHost: a\r\n\r\n"),
		BYTES("GET /forward-auth HTTP/1.1\r\nHost: a\r\n\0: 1\r\nX-C: 2\r\n\r\n"),
	};

	(void)state;
	start("");
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		dial(&client, LISTEN_HTTP);
		say_bytes(&client, texts[i].ptr, texts[i].len);
		assert_int_equal(hear(&client, true), 400);
		assert_ended(&client);
		hang_up(&client);
	}
}

/* A length that leaked in from the client's own request must not swallow the next client's question. */
static void test_announced_body(void **state)
{
	(void)state;
	start(FIVE);
	for (unsigned i = 0; i < 6; i++)
		assert_refused("GET /forward-auth HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\n" GATEWAY
			       "\r\n",
			i < 5 ? 200 : 429, i < 5 ? "" : "rate_limited");
	assert_refused("GET /forward-auth HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n" GATEWAY
		       "\r\n",
		429, "");
	dial(&client, LISTEN_HTTP);
	say(&client, "GET /forward-auth HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n" GATEWAY "\r\n");
	assert_int_equal(hear(&client, true), 429);
	assert_false(answer.closes);
	hang_up(&client);
}

/* Whatever a visitor's own lines and cookies do to the library's memory, there is an answer. */
static void test_header_sizes(void **state)
{
	static const struct {
		const char *before_z, *piece_z, *after_z;
		size_t most;
	} cases[] = {
		{ASK_HEAD GATEWAY "X-A: ", "aaaaaaaaaaaaaaaa", "\r\n\r\n", 2000},
		{ASK_HEAD GATEWAY, "X: 1\r\n", "\r\n", 4000},
		{ASK_HEAD GATEWAY "Cookie: ", ";", "\r\n\r\n", 30000},
		{ASK_HEAD GATEWAY "Cookie: ", "a=b; ", "\r\n\r\n", 8000},
		{"GET /forward-auth?", "a&", " HTTP/1.1\r\nHost: a\r\n" GATEWAY "\r\n", 16000},
	};
	static char text[64 * 1024];

	(void)state;
	start(FIVE);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t n = 0; n <= cases[i].most; n += 1 + n / 3) {
			size_t len = strlen(cases[i].before_z), piece = strlen(cases[i].piece_z);

			memcpy(text, cases[i].before_z, len);
			for (size_t k = 0; k < n; k++, len += piece)
				memcpy(text + len, cases[i].piece_z, piece);
			memcpy(text + len, cases[i].after_z, strlen(cases[i].after_z));
			len += strlen(cases[i].after_z);
			dial(&client, LISTEN_HTTP);
			assert_true(send(client.fd, text, len, MSG_NOSIGNAL) > 0);
			(void)hear(&client, true);
			/* Up to 16 KiB it is heard, beyond that refused. */
			if (len > 16 * 1024)
				assert_true(answer.status == 431 || answer.status == 414);
			else if (i != 1 || n < 120)
				assert_true(answer.status == 200 || answer.status == 429);
			else
				assert_true(answer.status == 429 || answer.status == 431);
			hang_up(&client);
		}
	}
}

static void test_body_sizes(void **state)
{
	static char body[70 * 1024];
	char head[128];

	(void)state;
	start(", \"http\": {\"body_bytes\": \"64KiB\"}");
	memset(body, ' ', sizeof(body));
	memcpy(body, CHECK_BODY, strlen(CHECK_BODY));
	/* As large as may be, in one announcement and in chunks. */
	dial(&client, LISTEN_HTTP);
	say(&client, CHECK_HEAD "Content-Length: 65536\r\n\r\n");
	say_bytes(&client, body, 65536);
	assert_int_equal(hear(&client, true), 200);
	say(&client, CHECK_HEAD "Transfer-Encoding: chunked\r\n\r\n10000\r\n");
	say_bytes(&client, body, 65536);
	say(&client, "\r\n0\r\n\r\n");
	assert_int_equal(hear(&client, true), 200);
	hang_up(&client);
	/* One byte more. */
	assert_refused(CHECK_HEAD "Content-Length: 65537\r\n\r\n", 413, "body_too_large");
	assert_refused(CHECK_HEAD "Content-Length: 99999999999999\r\n\r\n", 413, "body_too_large");
	dial(&client, LISTEN_HTTP);
	snprintf(head, sizeof(head), "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n", CHECK_HEAD, 65537);
	say(&client, head);
	say_bytes(&client, body, 65537);
	assert_int_equal(hear(&client, true), 413);
	assert_non_null(strstr(answer.body, "body_too_large"));
	assert_true(answer.closes);
	assert_ended(&client);
	hang_up(&client);
}

static void test_request_timeout(void **state)
{
	(void)state;
	start(", \"http\": {\"request_timeout\": \"100ms\"}");
	dial(&client, LISTEN_HTTP);
	say(&client, "GET /forward-auth HTTP/1.1\r\nHos");
	assert_ended(&client);
	hang_up(&client);
	dial(&client, LISTEN_HTTP);
	say(&client, CHECK_HEAD "Content-Length: 30\r\n\r\n{");
	assert_ended(&client);
	hang_up(&client);
}

/* ---------------------------------------------------------------------------------------------------- callers */

static void test_caller_refused(void **state)
{
	(void)state;
	start(", \"callers\": [\"192.0.2.1\"]");
	dial(&client, LISTEN_HTTP);
	say(&client, ASK ASK);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(hear(&client, true), 403);
		assert_string_equal(answer.body, "{\"error\": \"caller_not_allowed\"}\n");
		assert_false(answer.closes);
	}
	hang_up(&client);
	/* Before a byte of the body has come. */
	assert_refused(CHECK_HEAD "Content-Length: 30\r\n\r\n", 403, "caller_not_allowed");
	assert_refused("GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", 403, "caller_not_allowed");
	/* Health and metrics are not gated, and the refusals were counted as decisions. */
	dial(&client, LISTEN_OPS);
	say(&client, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, true), 200);
	assert_non_null(strstr(answer.body, "postern_decisions_total{door=\"forward_auth\",decision=\"deny\","
					    "reason=\"caller_not_allowed\",rule=\"\"} 2\n"));
	assert_non_null(strstr(answer.body, "postern_decisions_total{door=\"check\",decision=\"deny\",reason="
					    "\"caller_not_allowed\",rule=\"\"} 1\n"));
	hang_up(&client);
}

static void key_file(const char *text_z)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/key", f.folder_z);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text_z, strlen(text_z)), strlen(text_z));
	close(fd);
}

#define ASK_WITH(lines) "GET /forward-auth HTTP/1.1\r\nHost: a\r\n" GATEWAY lines "\r\n"

static void test_caller_key(void **state)
{
	static const struct {
		const char *text_z;
		unsigned status;
	} cases[] = {
		{ASK, 403},
		{ASK_WITH("X-Postern-Key: 0123456789abcdef0123456789abcdeF\r\n"), 403},
		{ASK_WITH("X-Postern-Key: 0123456789abcdef0123456789abcdef\r\n"), 200},
		{ASK_WITH("x-postern-key:0123456789abcdef0123456789abcdef \r\n"), 200},
		{ASK_WITH("X-Postern-Key: 0123456789abcdef0123456789abcdef\r\n"
			  "X-Postern-Key: 0123456789abcdef0123456789abcdef\r\n"),
			403},
	};

	(void)state;
	key_file("0123456789abcdef0123456789abcdef\n");
	start(", \"caller_key_file\": \"key\"");
	dial(&client, LISTEN_HTTP);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		say(&client, cases[i].text_z);
		assert_int_equal(hear(&client, true), cases[i].status);
	}
	hang_up(&client);
}

/* The key is nobody's business behind the gate: a limit whose key is that header sees it absent. */
static void test_caller_key_goes_nowhere(void **state)
{
	(void)state;
	start(", \"limits\": {\"l\": {\"rate\": \"1/day\", \"key\": [\"header:X-Postern-Key\"]}}, "
	      "\"rules\": [{\"name\": \"r\", \"limits\": [\"l\"]}]");
	dial(&client, LISTEN_HTTP);
	say(&client, ASK_WITH("X-Postern-Key: one\r\n") ASK_WITH("X-Postern-Key: two\r\n"));
	assert_int_equal(hear(&client, true), 200);
	assert_int_equal(hear(&client, true), 429);
	hang_up(&client);
}

static void test_unix_caller(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct stat st;
	char text[256];

	(void)state;
	snprintf(text, sizeof(text),
		"{\"callers\": [\"unix\"], \"listen\": {\"http\": \"unix:%s/http\", \"grpc\": null, \"ops\": null, \"admin\": null}}",
		f.folder_z);
	start_text(text);
	assert_null(server_endpoint(f.server, LISTEN_OPS));
	dial(&client, LISTEN_HTTP);
	say(&client, ASK CHECK);
	assert_int_equal(hear(&client, true), 200);
	assert_int_equal(hear(&client, true), 200);
	hang_up(&client);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/http", f.folder_z);
	assert_int_equal(stat(sa.sun_path, &st), 0);
	send_signal(SIGTERM);
	assert_int_equal(wait_for_end(), ERR_OK);
	assert_int_not_equal(stat(sa.sun_path, &st), 0);
}

/* ---------------------------------------------------------------------------------------------------- limits, workers */

static void test_connection_limit(void **state)
{
	(void)state;
	start(", \"http\": {\"max_connections\": 1}");
	dial(&client, LISTEN_HTTP);
	say(&client, ASK);
	assert_int_equal(hear(&client, true), 200);
	dial(&other, LISTEN_HTTP);
	assert_ended(&other);
	hang_up(&other);
	/* A full http never blinds a health check. */
	dial(&other, LISTEN_OPS);
	say(&other, "GET /livez HTTP/1.1\r\nHost: a\r\n\r\nGET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&other, true), 200);
	assert_string_equal(answer.body, "ok\n");
	assert_int_equal(hear(&other, true), 200);
	assert_non_null(strstr(answer.body, "postern_connections_rejected_total{listener=\"http\"} 1\n"));
	assert_non_null(strstr(answer.body, "postern_connections{listener=\"http\"} 1\n"));
	hang_up(&other);
	say(&client, ASK);
	assert_int_equal(hear(&client, true), 200);
	hang_up(&client);
}

/* Without descriptors it waits, says so, spins no more than it must, and goes on when there are some again. */
static void test_no_descriptors(void **state)
{
	struct rlimit usual, none;
	char text[4096] = "";
	size_t len = 0;
	int said[2], lowest;

	(void)state;
	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	log_setup(LOG_INFO, LOG_TEXT, said[1]);
	start("");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	open_socket(&client, LISTEN_HTTP);
	lowest = dup(said[0]);
	close(lowest);
	none = usual;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	dial_on(&client, LISTEN_HTTP);
	say(&client, ASK);
	while (strstr(text, "descriptors_exhausted") == NULL) {
		ssize_t n = read(said[0], text + len, sizeof(text) - 1 - len);

		assert_true(n > 0);
		len += (size_t)n;
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(hear(&client, true), 200);
	hang_up(&client);
	send_signal(SIGTERM);
	assert_int_equal(wait_for_end(), ERR_OK);
	log_setup(LOG_INFO, LOG_TEXT, quiet_fd);
	close(said[0]);
	close(said[1]);
}

static void test_workers(void **state)
{
	struct line *clients = calloc(6, sizeof(*clients));

	(void)state;
	assert_non_null(clients);
	start(", \"workers\": 3, \"limits\": {\"l\": {\"rate\": \"9/day\"}}, \"rules\": [{\"name\": \"r\", "
	      "\"limits\": [\"l\"]}]");
	for (unsigned i = 0; i < 6; i++)
		dial(&clients[i], LISTEN_HTTP);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 6; i++) {
			say(&clients[i], ASK);
			/* One bucket for all workers. */
			assert_int_equal(hear(&clients[i], true), round * 6 + i < 9 ? 200 : 429);
		}
	}
	send_signal(SIGTERM);
	for (unsigned i = 0; i < 6; i++)
		assert_ended(&clients[i]);
	assert_int_equal(wait_for_end(), ERR_OK);
	for (unsigned i = 0; i < 6; i++)
		hang_up(&clients[i]);
	free(clients);
}

/* ---------------------------------------------------------------------------------------------------- ops */

static void test_ops(void **state)
{
	(void)state;
	start("");
	dial(&client, LISTEN_OPS);
	say(&client, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, true), 200);
	assert_string_equal(answer.body, "ok\n");
	say(&client, "HEAD /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, false), 200);
	say(&client, "DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, true), 405);
	assert_non_null(strstr(answer.head, "\r\nAllow: GET, HEAD\r\n"));
	say(&client, "GET /check HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, true), 404);
	assert_non_null(strstr(answer.body, "/livez, /readyz and /metrics"));
	say(&client, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	assert_int_equal(hear(&client, true), 200);
	assert_non_null(
		strstr(answer.head, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	assert_non_null(strstr(answer.body, "postern_build_info{version=\""));
	assert_non_null(strstr(answer.body, "postern_requests_total{listener=\"ops\",code=\"404\"} 1\n"));
	assert_non_null(strstr(answer.body, "postern_bad_requests_total{code=\"not_found\"} 1\n"));
	assert_non_null(strstr(answer.body, "postern_decision_duration_seconds_count{door=\"check\"} 0\n"));
	assert_non_null(strstr(answer.body, "\nprocess_open_fds "));
	assert_non_null(strstr(answer.body, "\npostern_state_capacity{"));
	assert_false(answer.closes);
	hang_up(&client);
}

/* ---------------------------------------------------------------------------------------------------- stopping */

static void test_drain(void **state)
{
	(void)state;
	start("");
	dial(&client, LISTEN_HTTP); /* idle, after a question */
	say(&client, ASK);
	assert_int_equal(hear(&client, true), 200);
	dial(&other, LISTEN_HTTP); /* busy: a body is on its way */
	say(&other, CHECK_HEAD "Content-Length: 30\r\n\r\n{");
	send_signal(SIGHUP);
	send_signal(SIGTERM);
	assert_ended(&client);
	hang_up(&client);
	say(&other, &CHECK_BODY[1]);
	assert_int_equal(hear(&other, true), 200);
	assert_true(answer.closes);
	assert_ended(&other);
	hang_up(&other);
	assert_int_equal(wait_for_end(), ERR_OK);
}

/* Live connections get one more answer, and ops tells why. */
static void test_drain_answers(void **state)
{
	(void)state;
	start(", \"drain\": {\"delay\": \"1h\"}");
	dial(&client, LISTEN_HTTP);
	send_signal(SIGTERM);
	dial(&other, LISTEN_OPS);
	do {
		say(&other, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n");
	} while (hear(&other, true) == 200);
	assert_int_equal(answer.status, 503);
	assert_string_equal(answer.body, "draining\n");
	hang_up(&other);
	/* Not ready, and still deciding, on new connections too. */
	dial(&other, LISTEN_HTTP);
	say(&other, ASK);
	assert_int_equal(hear(&other, true), 200);
	assert_false(answer.closes);
	hang_up(&other);
	say(&client, ASK);
	assert_int_equal(hear(&client, true), 200);
	hang_up(&client);
	send_signal(SIGTERM);
	assert_int_equal(wait_for_end(), ERR_TIMEOUT);
}

static void test_drain_timeout(void **state)
{
	(void)state;
	start(", \"drain\": {\"timeout\": \"50ms\"}");
	dial(&client, LISTEN_HTTP);
	say(&client, CHECK_HEAD "Content-Length: 30\r\n\r\n{");
	dial(&other, LISTEN_HTTP); /* so that the first one has been taken */
	say(&other, ASK);
	assert_int_equal(hear(&other, true), 200);
	hang_up(&other);
	send_signal(SIGTERM);
	assert_int_equal(wait_for_end(), ERR_TIMEOUT);
	hang_up(&client);
}

static void test_port_in_use(void **state)
{
	struct config_options options = {0};
	struct fault_list faults;
	struct config *config;
	struct server *second;
	char text[256], note[256], where[ENDPOINT_TEXT_BYTES], expected[256];

	(void)state;
	start("");
	endpoint_print(server_endpoint(f.server, LISTEN_HTTP), where);
	snprintf(text, sizeof(text), "{\"listen\": {\"http\": \"%s\", \"grpc\": null, \"ops\": null, \"admin\": null}}", where);
	fault_list_init(&faults);
	assert_int_equal(config_load_text(&config, str_from_z(text), "/", &options, &faults), ERR_OK);
	fault_list_done(&faults);
	assert_int_equal(
		server_open(&second, config, f.engine, f.signals[0], note, sizeof(note)), ERR_EXISTS);
	snprintf(expected, sizeof(expected), "cannot listen on http %s: already in use", where);
	assert_string_equal(note, expected);
	config_free(config);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_keep_alive),
		TEST(test_check),
		TEST(test_no_door),
		TEST(test_pipelining),
		TEST(test_versions_and_methods),
		TEST(test_expect),
		TEST(test_framing),
		TEST(test_nul),
		TEST(test_announced_body),
		TEST(test_header_sizes),
		TEST(test_body_sizes),
		TEST(test_request_timeout),
		TEST(test_caller_refused),
		TEST(test_caller_key),
		TEST(test_caller_key_goes_nowhere),
		TEST(test_unix_caller),
		TEST(test_connection_limit),
		TEST(test_no_descriptors),
		TEST(test_workers),
		TEST(test_ops),
		TEST(test_drain),
		TEST(test_drain_answers),
		TEST(test_drain_timeout),
		TEST(test_port_in_use),
	};

	quiet_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (quiet_fd < 0 || digest_init() != ERR_OK)
		return 1;
	log_setup(LOG_INFO, LOG_TEXT, quiet_fd);
	alarm(10 * SAFETY_S);
	return cmocka_run_group_tests_name("server", tests, NULL, NULL);
}
