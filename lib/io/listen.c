/* SPDX-License-Identifier: MIT */
/*
 * A Unix socket file outlives the process that made it, so one that is in the way is asked first: if nobody answers it is
 * left over and goes; one that answers, and anything that is no socket, stays. Two starts in the same instant may both
 * find it left over: the later bind wins, and the other process closes without touching a file that is not its own.
 * The file is made closed to others and opened to its mode before listen(), so no one gets in on a wider mode.
 * Removal compares device and inode while our descriptor is still open, since that keeps the inode from being reused.
 */
#include "io/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define BACKLOG 4096

static enum err listen_err(int errno_value)
{
	switch (errno_value) {
	case EADDRINUSE:
	case EEXIST: return ERR_EXISTS;
	case EACCES:
	case EPERM:
	case EROFS: return ERR_ACCESS;
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
	case ENOENT:
	case ENOTDIR:
	case ECONNREFUSED: return ERR_ABSENT;
	case ETIMEDOUT: return ERR_TIMEOUT;
	default: return ERR_IO;
	}
}

static void close_keeping_errno(int fd)
{
	int errno_kept = errno;

	(void)close(fd);
	errno = errno_kept;
}

/* 0, or -1 with errno. */
static int clear_the_way(const struct endpoint *e, const struct sockaddr_storage *sa, socklen_t len)
{
	struct stat st;
	int fd, answer;

	if (lstat(e->path_z, &st) != 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISSOCK(st.st_mode)) {
		errno = EEXIST;
		return -1;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	answer = connect(fd, (const struct sockaddr *)sa, len) == 0 ? 0 : errno;
	(void)close(fd);
	if (answer == ECONNREFUSED)
		return unlink(e->path_z) == 0 || errno == ENOENT ? 0 : -1;
	if (answer == ENOENT)
		return 0;
	/* Also a full backlog (EAGAIN) and a socket of another type (EPROTOTYPE) are somebody's. */
	errno = answer == EACCES || answer == EPERM ? answer : EADDRINUSE;
	return -1;
}

static int bind_unix(struct listener *l, const struct sockaddr_storage *sa, socklen_t len)
{
	const struct endpoint *e = &l->endpoint;
	struct stat st;
	mode_t mask;
	int bound;

	if (clear_the_way(e, sa, len) != 0)
		return -1;
	mask = umask(0177);
	bound = bind(l->fd, (const struct sockaddr *)sa, len);
	(void)umask(mask);
	if (bound != 0 || lstat(e->path_z, &st) != 0)
		return -1;
	l->made_device = st.st_dev;
	l->made_inode = st.st_ino;
	return chmod(e->path_z, e->mode);
}

static int bind_tcp(struct listener *l, const struct sockaddr_storage *sa, socklen_t len)
{
	struct sockaddr_storage bound = {0};
	socklen_t bound_len = sizeof bound;
	int on = 1;

	if (setsockopt(l->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
		return -1;
	if (sa->ss_family == AF_INET6 && setsockopt(l->fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0)
		return -1;
	if (bind(l->fd, (const struct sockaddr *)sa, len) != 0)
		return -1;
	if (getsockname(l->fd, (struct sockaddr *)&bound, &bound_len) != 0)
		return -1;
	return endpoint_from_sockaddr(&l->endpoint, (const struct sockaddr *)&bound, bound_len) ? 0 : -1;
}

enum err listen_open(struct listener *ret, const struct endpoint *e)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_sockaddr(e, &sa);
	struct listener l = {.endpoint = *e};
	int bound;

	l.fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (l.fd < 0)
		return listen_err(errno);
	bound = e->is_unix ? bind_unix(&l, &sa, len) : bind_tcp(&l, &sa, len);
	if (bound != 0 || listen(l.fd, BACKLOG) != 0) {
		int errno_kept = errno;

		listen_close(&l);
		errno = errno_kept;
		return listen_err(errno_kept);
	}
	*ret = l;
	return ERR_OK;
}

void listen_close(struct listener *l)
{
	struct stat st;

	if (l->fd < 0)
		return;
	if (l->made_inode != 0 && lstat(l->endpoint.path_z, &st) == 0 && st.st_dev == l->made_device &&
		st.st_ino == l->made_inode)
		(void)unlink(l->endpoint.path_z);
	(void)close(l->fd);
	l->fd = -1;
	l->made_inode = 0;
}

enum err listen_accept(
	const struct listener *l, int *ret_fd, struct sockaddr_storage *ret_peer, socklen_t *ret_len)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof peer;
	int on = 1, fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		switch (errno) {
		case EAGAIN: return ERR_ABSENT;
		case EMFILE:
		case ENFILE:
		case ENOBUFS:
		case ENOMEM: return ERR_FULL;
		default: return ERR_IO;
		}
	}
	if (peer.ss_family == AF_UNIX)
		len = 0; /* a client may have bound a path of its own choice: no concern of ours */
	else if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
		close_keeping_errno(fd);
		return ERR_IO;
	}
	*ret_fd = fd;
	*ret_peer = peer;
	*ret_len = len;
	return ERR_OK;
}

/* 0, or -1 with errno. */
static int bind_from(int fd, const struct ip *from)
{
	const struct endpoint e = {.ip = *from};
	struct sockaddr_storage sa;
	socklen_t len = endpoint_sockaddr(&e, &sa);

	return bind(fd, (const struct sockaddr *)&sa, len);
}

enum err listen_connect(int *ret_fd, const struct endpoint *e, unsigned timeout_ms)
{
	return listen_connect_from(ret_fd, e, NULL, timeout_ms);
}

enum err listen_connect_from(
	int *ret_fd, const struct endpoint *e, const struct ip *from, unsigned timeout_ms)
{
	struct sockaddr_storage sa;
	socklen_t len = endpoint_sockaddr(e, &sa);
	/* A send timeout of 0 would mean for ever. */
	struct timeval timeout = {
		.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms == 0 ? 1 : timeout_ms % 1000 * 1000};
	int fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return listen_err(errno);
	/* The kernel's own send timeout bounds connect, and unlike poll it also covers a Unix socket's full backlog. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) != 0 ||
		(from != NULL && bind_from(fd, from) != 0) ||
		connect(fd, (const struct sockaddr *)&sa, len) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0) {
		if (errno == EINPROGRESS || errno == EAGAIN)
			errno = ETIMEDOUT;
		close_keeping_errno(fd);
		return listen_err(errno);
	}
	*ret_fd = fd;
	return ERR_OK;
}
