/* SPDX-License-Identifier: MIT */
/* Loopback on free ports, and Unix sockets in a folder made for each test. */
#include "io/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define DEADLINE_MS 10000

static char folder_z[64];

static int setup(void **state)
{
	(void)state;
	(void)strcpy(folder_z, "/tmp/test_listen.XXXXXX");
	return mkdtemp(folder_z) != NULL ? 0 : -1;
}

/* Fails where a test leaves a file behind. */
static int teardown(void **state)
{
	(void)state;
	return rmdir(folder_z);
}

static struct endpoint tcp(const char *address_z, uint16_t port)
{
	struct endpoint e = {.port = port};

	assert_true(ip_parse(&e.ip, str_from_z(address_z)));
	return e;
}

static struct endpoint unix_path(const char *name_z, mode_t mode)
{
	struct endpoint e = {.is_unix = true, .mode = mode};

	(void)snprintf(e.path_z, sizeof e.path_z, "%s/%s", folder_z, name_z);
	return e;
}

static void wait_readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
}

static void assert_flags(int fd)
{
	assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
}

/* Connects, accepts, sends a byte each way. */
static void assert_serves(const struct listener *l, struct sockaddr_storage *ret_peer, socklen_t *ret_len)
{
	int client = -1, server = -1;
	char byte = 0;

	assert_int_equal(listen_accept(l, &server, ret_peer, ret_len), ERR_ABSENT);
	assert_int_equal(server, -1);
	assert_int_equal(listen_connect(&client, &l->endpoint, DEADLINE_MS), ERR_OK);
	wait_readable(l->fd);
	assert_int_equal(listen_accept(l, &server, ret_peer, ret_len), ERR_OK);
	assert_flags(client);
	assert_flags(server);
	assert_int_equal(send(client, "a", 1, 0), 1);
	wait_readable(server);
	assert_int_equal(recv(server, &byte, 1, 0), 1);
	assert_int_equal(send(server, "b", 1, 0), 1);
	wait_readable(client);
	assert_int_equal(recv(client, &byte, 1, 0), 1);
	assert_int_equal(byte, 'b');
	if (!l->endpoint.is_unix) {
		int on = 0;
		socklen_t len = sizeof on;

		assert_int_equal(getsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
		assert_int_not_equal(on, 0);
	}
	/* Who closes first keeps the port in TIME_WAIT. */
	assert_int_equal(close(server), 0);
	assert_int_equal(close(client), 0);
}

static void tcp_v4_serves_on_a_free_port(void **state)
{
	struct endpoint e = tcp("127.0.0.1", 0), peer_endpoint;
	struct listener l;
	struct sockaddr_storage peer;
	socklen_t len = 0;

	(void)state;
	assert_int_equal(listen_open(&l, &e), ERR_OK);
	assert_flags(l.fd);
	assert_int_not_equal(l.endpoint.port, 0);
	assert_true(ip_equal(&l.endpoint.ip, &e.ip));
	assert_false(l.endpoint.is_unix);
	assert_serves(&l, &peer, &len);
	assert_true(endpoint_from_sockaddr(&peer_endpoint, (const struct sockaddr *)&peer, len));
	assert_true(ip_equal(&peer_endpoint.ip, &e.ip));
	listen_close(&l);
	assert_int_equal(l.fd, -1);
	listen_close(&l);
}

static void tcp_v6_takes_v6_only(void **state)
{
	struct endpoint e = tcp("::", 0), v4;
	struct listener l, l4;
	struct sockaddr_storage peer;
	socklen_t len = 0;
	enum err error = ERR_EXISTS;

	(void)state;
	if (access("/proc/net/if_inet6", R_OK) != 0)
		skip();
	/* The same port of IPv4 is free, unless another program has it just then: not every time. */
	for (size_t i = 0; error != ERR_OK && i < 20; i++) {
		assert_int_equal(listen_open(&l, &e), ERR_OK);
		assert_serves(&l, &peer, &len);
		assert_int_equal(peer.ss_family, AF_INET6);
		v4 = tcp("0.0.0.0", l.endpoint.port);
		error = listen_open(&l4, &v4);
		if (error == ERR_OK)
			listen_close(&l4);
		listen_close(&l);
	}
	assert_int_equal(error, ERR_OK);
}

static void tcp_in_use_and_absent_are_told_apart(void **state)
{
	struct endpoint e = tcp("127.0.0.1", 0), taken, elsewhere = tcp("192.0.2.1", 0);
	struct listener l, second = {.fd = -7};
	struct sockaddr_storage peer;
	socklen_t len;
	int fd = -1;

	(void)state;
	assert_int_equal(listen_open(&l, &e), ERR_OK);
	taken = l.endpoint;
	assert_int_equal(listen_open(&second, &taken), ERR_EXISTS);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(listen_open(&second, &elsewhere), ERR_ABSENT);
	assert_int_equal(errno, EADDRNOTAVAIL);
	assert_int_equal(second.fd, -7);
	assert_serves(&l, &peer, &len);
	listen_close(&l);
	assert_int_equal(listen_connect(&fd, &taken, DEADLINE_MS), ERR_ABSENT);
	assert_int_equal(errno, ECONNREFUSED);
	assert_int_equal(fd, -1);
	assert_int_equal(listen_open(&l, &taken), ERR_OK);
	listen_close(&l);
}

static void unix_serves_with_its_mode_and_is_removed(void **state)
{
	const mode_t modes[] = {0660, 0666, 0600};

	(void)state;
	for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
		struct endpoint e = unix_path("a.sock", modes[i]);
		mode_t mask = umask(0027);
		struct listener l;
		struct sockaddr_storage peer;
		socklen_t len = 1;
		struct stat st;

		assert_int_equal(listen_open(&l, &e), ERR_OK);
		assert_int_equal(umask(mask), 0027);
		assert_int_equal(stat(e.path_z, &st), 0);
		assert_int_equal(st.st_mode, S_IFSOCK | modes[i]);
		assert_serves(&l, &peer, &len);
		assert_int_equal(peer.ss_family, AF_UNIX);
		assert_int_equal(len, 0);
		listen_close(&l);
		assert_int_equal(stat(e.path_z, &st), -1);
	}
}

static void unix_in_use_is_left_alone(void **state)
{
	struct endpoint e = unix_path("a.sock", 0660);
	struct listener l, second;
	struct sockaddr_storage peer;
	socklen_t len;
	int fd;

	(void)state;
	assert_int_equal(listen_open(&l, &e), ERR_OK);
	assert_int_equal(listen_open(&second, &e), ERR_EXISTS);
	assert_int_equal(errno, EADDRINUSE);
	/* What the probe left in the queue. */
	assert_int_equal(listen_accept(&l, &fd, &peer, &len), ERR_OK);
	assert_int_equal(close(fd), 0);
	assert_serves(&l, &peer, &len);
	listen_close(&l);
}

static void unix_left_over_is_replaced(void **state)
{
	struct endpoint e = unix_path("a.sock", 0660);
	struct listener l;
	struct sockaddr_storage peer;
	socklen_t len;

	(void)state;
	assert_int_equal(listen_open(&l, &e), ERR_OK);
	assert_int_equal(close(l.fd), 0); /* as a killed process leaves it */
	assert_int_equal(listen_open(&l, &e), ERR_OK);
	assert_serves(&l, &peer, &len);
	listen_close(&l);
}

static void other_files_are_left_alone(void **state)
{
	struct endpoint e = unix_path("a.sock", 0660), target = unix_path("b", 0660);
	struct listener l;
	struct stat st;
	int fd = open(e.path_z, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(listen_open(&l, &e), ERR_EXISTS);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(stat(e.path_z, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(unlink(e.path_z), 0);

	/* A link to a socket that nobody answers: neither of them is for us to remove. */
	assert_int_equal(listen_open(&l, &target), ERR_OK);
	assert_int_equal(close(l.fd), 0);
	assert_int_equal(symlink(target.path_z, e.path_z), 0);
	assert_int_equal(listen_open(&l, &e), ERR_EXISTS);
	assert_int_equal(lstat(e.path_z, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(unlink(e.path_z), 0);
	assert_int_equal(unlink(target.path_z), 0);
}

static void close_removes_its_own_file_only(void **state)
{
	struct endpoint e = unix_path("a.sock", 0660), moved = unix_path("b.sock", 0660);
	struct listener old, new;
	struct stat st;

	(void)state;
	assert_int_equal(listen_open(&old, &e), ERR_OK);
	assert_int_equal(unlink(e.path_z), 0);
	assert_int_equal(listen_open(&new, &e), ERR_OK);
	listen_close(&old);
	assert_int_equal(stat(e.path_z, &st), 0);
	assert_int_equal(rename(e.path_z, moved.path_z), 0);
	listen_close(&new);
	assert_int_equal(stat(moved.path_z, &st), 0);
	assert_int_equal(unlink(moved.path_z), 0);
}

static void unix_without_a_folder_is_absent(void **state)
{
	struct endpoint e = unix_path("no/a.sock", 0660);
	struct listener l;
	int fd;

	(void)state;
	assert_int_equal(listen_open(&l, &e), ERR_ABSENT);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(listen_connect(&fd, &e, DEADLINE_MS), ERR_ABSENT);
}

static void accept_says_when_descriptors_run_out(void **state)
{
	struct endpoint e = tcp("127.0.0.1", 0);
	struct listener l;
	struct rlimit before, none;
	struct sockaddr_storage peer;
	socklen_t len;
	int client, server = -1;

	(void)state;
	assert_int_equal(listen_open(&l, &e), ERR_OK);
	assert_int_equal(listen_connect(&client, &l.endpoint, DEADLINE_MS), ERR_OK);
	wait_readable(l.fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(listen_accept(&l, &server, &peer, &len), ERR_FULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(listen_accept(&l, &server, &peer, &len), ERR_OK);
	assert_int_equal(close(server), 0);
	assert_int_equal(close(client), 0);
	listen_close(&l);
}

static void connect_from_an_address(void **state)
{
	const struct endpoint e = {.ip = ip_from_v4(0x7f000001)};
	const struct ip here = ip_from_v4(0x7f030201), elsewhere = ip_from_v4(0xc0000201);
	struct sockaddr_storage peer;
	struct endpoint seen;
	struct listener l;
	socklen_t len;
	int client, server;

	(void)state;
	assert_int_equal(listen_open(&l, &e), ERR_OK);
	assert_int_equal(listen_connect_from(&client, &l.endpoint, &here, DEADLINE_MS), ERR_OK);
	wait_readable(l.fd);
	assert_int_equal(listen_accept(&l, &server, &peer, &len), ERR_OK);
	assert_true(endpoint_from_sockaddr(&seen, (struct sockaddr *)&peer, len) && ip_equal(&seen.ip, &here));
	assert_int_equal(close(server), 0);
	assert_int_equal(close(client), 0);
	assert_int_equal(listen_connect_from(&client, &l.endpoint, &elsewhere, DEADLINE_MS), ERR_ABSENT);
	listen_close(&l);
}

/* A Unix socket whose queue is full lets connect wait, for ever if nobody bounds it. */
static void connect_has_a_deadline(void **state)
{
	struct endpoint e = unix_path("a.sock", 0660);
	struct listener l;
	int first = -1, second = -1;

	(void)state;
	assert_int_equal(listen_open(&l, &e), ERR_OK);
	assert_int_equal(listen(l.fd, 0), 0);
	assert_int_equal(listen_connect(&first, &e, DEADLINE_MS), ERR_OK);
	assert_int_equal(listen_connect(&second, &e, 1), ERR_TIMEOUT);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(listen_connect(&second, &e, 0), ERR_TIMEOUT);
	assert_int_equal(second, -1);
	assert_int_equal(close(first), 0);
	listen_close(&l);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tcp_v4_serves_on_a_free_port),
		TEST(tcp_v6_takes_v6_only),
		TEST(tcp_in_use_and_absent_are_told_apart),
		TEST(unix_serves_with_its_mode_and_is_removed),
		TEST(unix_in_use_is_left_alone),
		TEST(unix_left_over_is_replaced),
		TEST(other_files_are_left_alone),
		TEST(close_removes_its_own_file_only),
		TEST(unix_without_a_folder_is_absent),
		TEST(accept_says_when_descriptors_run_out),
		TEST(connect_has_a_deadline),
		TEST(connect_from_an_address),
	};

	(void)alarm(60);
	return cmocka_run_group_tests_name("listen", tests, NULL, NULL);
}
