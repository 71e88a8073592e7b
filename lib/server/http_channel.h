/* SPDX-License-Identifier: MIT */
/*
 * http_channel: one connection that speaks HTTP/1, from its first byte to its close. For http.c only.
 *
 * Model      Phases: the head of a question is read, then its body if somebody waits for it, then the answer goes out, then the
 *            next head; one question at a time, in the order they came. What has come of later ones stays in the buffer.
 *            While an answer does not go out whole nothing is read. A channel that ends with bytes unread shuts its side down and
 *            reads on for a while, or the kernel would reset the connection and the answer could be lost.
 *            A channel has a buffer only while a question is on its way, an exchange only from a whole head on.
 * Units      bytes; ns on the loop's clock.
 * Ownership  The channel owns its connection and the descriptor. channel_end frees all of it.
 * Threads    confined to the loop's thread.
 * Errors     a broken connection ends its channel; nobody is told.
 * Limits     ANSWERS_A_TURN, READS_A_TURN, LINGER_NS, LINGER_BYTES in http_channel.c.
 * Source     RFC 9112 9.3 (persistence), 9.6 (closing); RFC 9110 10.1.1 (100-continue).
 */
#ifndef POSTERN_SERVER_HTTP_CHANNEL_H
#define POSTERN_SERVER_HTTP_CHANNEL_H

#include "io/loop.h"
#include "server/http.h"
#include "server/http_answer.h"
#include "server/http_body.h"
#include "server/http_buffer.h"
#include "server/http_parse.h"

struct http {
	struct loop *loop;
	struct http_options options;
	struct http_date date;
	struct http_buffers buffers;
	struct channel *first;
	struct loop_timer patrol;
};

enum channel_phase {
	PHASE_HEAD,
	PHASE_BODY,
	PHASE_ANSWER,
	PHASE_LINGER /* the answer is out and our side shut down; what still comes is thrown away */
};

struct channel {
	struct channel *next, *prev;
	struct http *http;
	struct connection *connection;
	struct loop_fd handle;
	uint32_t waits_for; /* EPOLLIN, or EPOLLOUT to go on with what is there */
	enum channel_phase phase;
	bool is_last; /* the channel ends with this answer */
	bool has_unread; /* and bytes may come that are not read */
	ns asked_at; /* since when the question is on its way, or the first one is waited for; 0: between two */
	ns moved_at; /* when bytes came or went last */
	struct http_buffer *buffer; /* holds bytes from start to filled; or NULL */
	size_t start, filled;
	size_t body_at; /* where the head of the question ends whose body is read */
	struct http_head head;
	struct chunks chunks;
	uint64_t left; /* of a body with a length; of what is still read while lingering */
	struct exchange *exchange;
	struct str output[2]; /* what is still to be sent */
};

/* Takes the connection, also where it fails. */
void channel_open(struct http *h, struct connection *c);
void channel_end(struct channel *k);

/* Ends it if its time is up. */
void channel_check_time(struct channel *k);

/* Between two questions: no more are read than have come. */
void channel_shut_idle(struct channel *k);

#endif
