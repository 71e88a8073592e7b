/* SPDX-License-Identifier: MIT */
/*
 * The yardstick for gRPC: nghttp2 alone, one epoll loop, one read and one send a connection a turn, each message unpacked by
 * protobuf-c and not looked at, and a constant answer as long as ours. What postern needs more than this is its own work.
 * Writes "port N" and "library V", then serves until it is ended.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "envoy/service/auth/v3/external_auth.pb-c.h"

#define PREFIX_BYTES 5
#define BUFFER_BYTES ((size_t)64 * 1024)
#define EVENTS 64

/* The answer to a request that passes, with its five bytes in front; filled by make_answer. */
static char answer[1024];
static size_t answer_bytes;
static int epoll_fd;

struct stream {
	size_t len, sent;
	char bytes[4096];
};

struct client {
	int fd;
	nghttp2_session *session;
};

static size_t put(char *to, const char *bytes, size_t n)
{
	memcpy(to, bytes, n);
	return n;
}

/* status, three headers for the application and the client, a name to remove, and metadata: about 360 bytes. */
static void make_answer(void)
{
	static const char header[] = "\x12\x2a\x0a\x24\x0a\x10x-postern-client\x12\x10"
				     "203.0.113.9.....\x12\x00\x18\x02";
	static const char shown[] = "\x32\x38\x0a\x32\x0a\x10ratelimit-policy\x12\x1e\"per-client\";q=10000000;w=1...\x12\x00\x18\x02";
	static const char removed[] = "\x2a\x12x-postern-identity\x2a\x10x-internal-token";
	static const char entry[] = "\x0a\x18\x0a\x06reason\x12\x0e\x1a\x0c"
				    "allowed.....";
	char ok[512], metadata[512];
	size_t n_ok = 0, n_metadata = 0, n = PREFIX_BYTES;

	n_ok += put(ok + n_ok, header, sizeof(header) - 1);
	n_ok += put(ok + n_ok, removed, sizeof(removed) - 1);
	n_ok += put(ok + n_ok, shown, sizeof(shown) - 1);
	n_ok += put(ok + n_ok, shown, sizeof(shown) - 1);
	for (int i = 0; i < 3; i++)
		n_metadata += put(metadata + n_metadata, entry, sizeof(entry) - 1);
	n += put(answer + n, "\x0a\x00\x1a", 3);
	answer[n++] = (char)((n_ok & 127) | 128);
	answer[n++] = (char)(n_ok >> 7);
	n += put(answer + n, ok, n_ok);
	answer[n++] = '\x22';
	answer[n++] = (char)n_metadata;
	n += put(answer + n, metadata, n_metadata);
	answer_bytes = n;
	answer[3] = (char)((n - PREFIX_BYTES) >> 8);
	answer[4] = (char)(n - PREFIX_BYTES);
}

static nghttp2_nv line(const char *name, const char *value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
		NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE};
}

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t size, uint32_t *flags,
	nghttp2_data_source *source, void *user)
{
	struct stream *s = source->ptr;
	nghttp2_nv trailers[] = {line("grpc-status", "0")};
	size_t n = answer_bytes - s->sent;

	(void)user;
	n = n < size ? n : size;
	memcpy(buffer, answer + s->sent, n);
	s->sent += n;
	if (s->sent == answer_bytes) {
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(session, id, trailers, 1) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return (ssize_t)n;
}

static int on_begin(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct stream *s;

	(void)user;
	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = malloc(sizeof(*s));
	if (s == NULL)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	s->len = 0;
	s->sent = 0;
	return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, s);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, id);

	(void)flags;
	(void)user;
	if (s == NULL || n > sizeof(s->bytes) - s->len)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	memcpy(s->bytes + s->len, bytes, n);
	s->len += n;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	nghttp2_nv lines[] = {line(":status", "200"), line("content-type", "application/grpc")};
	nghttp2_data_provider provider = {.source.ptr = s, .read_callback = read_answer};
	Envoy__Service__Auth__V3__CheckRequest *request;

	(void)user;
	if (s == NULL || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 || s->len < PREFIX_BYTES)
		return 0;
	request = envoy__service__auth__v3__check_request__unpack(
		NULL, s->len - PREFIX_BYTES, (const uint8_t *)s->bytes + PREFIX_BYTES);
	if (request == NULL)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	envoy__service__auth__v3__check_request__free_unpacked(request, NULL);
	return nghttp2_submit_response(session, frame->hd.stream_id, lines, 2, &provider);
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	(void)code;
	(void)user;
	free(nghttp2_session_get_stream_user_data(session, id));
	return 0;
}

static void client_end(struct client *c)
{
	nghttp2_session_del(c->session);
	close(c->fd);
	free(c);
}

static void serve(struct client *c)
{
	static uint8_t in[BUFFER_BYTES], out[2 * BUFFER_BYTES];
	ssize_t n = read(c->fd, in, sizeof(in));
	const uint8_t *piece;
	size_t filled = 0;

	if (n <= 0 || nghttp2_session_mem_recv(c->session, in, (size_t)n) < 0) {
		client_end(c);
		return;
	}
	while ((n = nghttp2_session_mem_send(c->session, &piece)) > 0 && filled + (size_t)n <= sizeof(out)) {
		memcpy(out + filled, piece, (size_t)n);
		filled += (size_t)n;
	}
	/* The load reads what it asks for; whatever does not fit the socket is a broken run. */
	if (filled > 0 && send(c->fd, out, filled, MSG_NOSIGNAL) != (ssize_t)filled)
		client_end(c);
}

static void accept_client(int listener, nghttp2_session_callbacks *callbacks)
{
	static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 256}};
	struct client *c = calloc(1, sizeof(*c));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
	int one = 1;

	if (c == NULL)
		exit(1);
	c->fd = accept(listener, NULL, NULL);
	if (c->fd < 0 || nghttp2_session_server_new(&c->session, callbacks, c) != 0 ||
		nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 1) != 0 ||
		nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, 1 << 20) != 0)
		exit(1);
	(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &event) != 0)
		exit(1);
}

static nghttp2_session_callbacks *callbacks_new(void)
{
	nghttp2_session_callbacks *callbacks;

	if (nghttp2_session_callbacks_new(&callbacks) != 0)
		exit(1);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
	return callbacks;
}

int main(void)
{
	struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, events[EVENTS];
	nghttp2_session_callbacks *callbacks = callbacks_new();
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t where_bytes = sizeof(where);

	make_answer();
	epoll_fd = epoll_create1(0);
	if (listener < 0 || epoll_fd < 0 || bind(listener, (struct sockaddr *)&where, sizeof(where)) != 0 ||
		listen(listener, 64) != 0 || getsockname(listener, (struct sockaddr *)&where, &where_bytes) != 0 ||
		epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event) != 0)
		return 1;
	printf("port %u\nlibrary %s\n", ntohs(where.sin_port), nghttp2_version(0)->version_str);
	fflush(stdout);
	for (;;) {
		int n = epoll_wait(epoll_fd, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.ptr == NULL)
				accept_client(listener, callbacks);
			else
				serve(events[i].data.ptr);
		}
	}
}
