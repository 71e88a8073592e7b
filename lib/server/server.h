/* SPDX-License-Identifier: MIT */
/*
 * server: the daemon's sockets. Worker threads, one loop each; the http, grpc, ops and admin listeners.
 *
 * Model      Worker 0 accepts for everybody and deals connections out round robin; each worker serves its own in its
 *            loop. ops and admin live on worker 0, so that a full http listener never blinds a health check or an operator. On
 *            SIGTERM or SIGINT: not ready, drain.delay, stop accepting, one more answer with "Connection: close" on live
 *            connections, idle ones closed after a short linger (gRPC: GOAWAY in two steps), then done; a second signal, or
 *            drain.timeout, ends what is left. On SIGHUP: reload (reload.h).
 * Ownership  config and engine are the caller's and outlive the server; see struct server_source.
 * Threads    server_open, server_run and server_close are called by the main thread, which becomes worker 0.
 * Blocking   server_run until drained.
 * Errors     server_open: what and where in reterr_note ("cannot listen on http 127.0.0.1:9180: already in use").
 * Limits     all of config's http settings.
 */
#ifndef POSTERN_SERVER_SERVER_H
#define POSTERN_SERVER_SERVER_H

#include "base/endpoint.h"
#include "base/err.h"
#include "base/fault.h"
#include "config/config.h"

#include <stddef.h>

struct engine;
struct server;

/* signal_fd: from proc_signals_open. Binds every listener that is on; nothing is answered before server_run. */
MUST_USE enum err server_open(struct server **ret, const struct config *config, struct engine *engine, int signal_fd,
	char *reterr_note, size_t note_size);

/* Where a changed configuration comes from. */
struct server_source {
	/* Loads and checks as for a start; faults are listed, not told. Called in a thread of its own, one at a time. */
	enum err (*load)(void *arg, struct config **ret, struct fault_list *faults);
	void *arg;
	/* Holds what server_open was given, and from now on what is in force: replaced at a reload, which frees the one before.
	 * What it holds in the end is the caller's. */
	struct config **config;
};

/* Before server_run; without it SIGHUP changes nothing. */
void server_reload_from(struct server *s, const struct server_source *source);

/* As bound (a port 0 is the real one); NULL if the listener is off. */
const struct endpoint *server_endpoint(const struct server *s, enum listen_name name);

/* Runs until told to stop. ERR_OK: drained; ERR_TIMEOUT: something was cut off. */
MUST_USE enum err server_run(struct server *s);
void server_close(struct server *s); /* NULL is fine */

/* Version of the HTTP/2 library, for "version" and the build info. */
const char *server_grpc_library_z(void);

#endif
