/* SPDX-License-Identifier: MIT */
/*
 * listen: listening and connecting sockets, TCP and Unix.
 *
 * Model      Sockets are non-blocking and close-on-exec. TCP: SO_REUSEADDR, TCP_NODELAY on what is accepted, backlog
 *            4096. An IPv6 endpoint takes IPv6 only. Unix: created with the endpoint's mode; a socket file that nobody
 *            answers is replaced, one that answers is ERR_EXISTS ("already in use"), any other file is left alone.
 * Ownership  The caller closes with listen_close, which removes the Unix file that listen_open made.
 * Threads    confined.
 * Errors     ERR_EXISTS (in use), ERR_ACCESS, ERR_ABSENT (no such directory or address), ERR_IO; errno is kept.
 */
#ifndef POSTERN_IO_LISTEN_H
#define POSTERN_IO_LISTEN_H

#include "base/endpoint.h"
#include "base/err.h"

struct listener {
	int fd;
	struct endpoint endpoint; /* as bound: a port 0 is now the real one */
	/* The Unix file that listen_open made, so that closing removes no other; inode 0: none. */
	dev_t made_device;
	ino_t made_inode;
};

MUST_USE enum err listen_open(struct listener *ret, const struct endpoint *e);
void listen_close(struct listener *l);

/* One connection, non-blocking. ERR_ABSENT: nothing there now; ERR_FULL: no descriptors left (pause accepting);
 * ERR_IO: that connection died on the way, try again. ret_peer is zero-length family AF_UNIX for Unix peers. */
MUST_USE enum err listen_accept(const struct listener *l, int *ret_fd, struct sockaddr_storage *ret_peer, socklen_t *ret_len);

/* Blocking connect with a deadline, for the command line. */
MUST_USE enum err listen_connect(int *ret_fd, const struct endpoint *e, unsigned timeout_ms);

/* The same from a local address of choice; NULL: of the kernel's. */
MUST_USE enum err listen_connect_from(
	int *ret_fd, const struct endpoint *e, const struct ip *from, unsigned timeout_ms);

#endif
