/* SPDX-License-Identifier: MIT */
/*
 * nghttp2 is used by its memory interface and knows HTTP/2 better than we ever shall: windows, HPACK, continuations, the order
 * of frames, acknowledgements and their floods, resets and their rate. What it does not count are frames that are legal,
 * further nothing and cost it no answer: empty DATA, PRIORITY, WINDOW_UPDATE. They are counted here against the calls that
 * came of them, and forgiven after a minute, so that a keepalive of weeks is never mistaken for a flood.
 * Gateways cancel calls whenever their own client goes away, so resets are allowed at a rate that only an attack exceeds.
 * An answer is HEADERS, DATA with the message and no empty frame behind it, and HEADERS again: some gateways count empty
 * frames as an attack, too.
 */
#include "server/grpc_session.h"

#include "server/gate.h"
#include "server/server.h"

#include "base/text.h"

#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#define CONNECTION_WINDOW_BYTES (1 << 20)
#define RESETS_BURST 2000
#define RESETS_A_SECOND 1000
#define IDLE_FRAMES_MAX 10000
#define IDLE_FRAMES_PERIOD_NS (60 * NS_PER_S)
#define HELD_MESSAGES_MAX 4 /* of the largest size */
#define STATUS_DIGITS 3

struct session {
	nghttp2_session *h2;
	struct grpc_service *service;
	struct peer *peer;
	struct call *calls; /* open streams */
	unsigned idle_frames;
	ns idle_frames_since;
	bool was_heard, is_broken;
};

static const uint8_t notice_ping[8] = {'p', 'o', 's', 't', 'e', 'r', 'n', '!'};

const char *server_grpc_library_z(void)
{
	return nghttp2_version(0)->version_str;
}

/* ---------------------------------------------------------------------------------------------------- answers */

static nghttp2_nv line(struct str name, struct str value)
{
	return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.ptr,
		.namelen = name.len,
		.value = (uint8_t *)(uintptr_t)value.ptr,
		.valuelen = value.len,
		.flags = NGHTTP2_NV_FLAG_NO_COPY_NAME};
}

static struct str number(unsigned n, char room[STATUS_DIGITS])
{
	struct text t;

	text_init(&t, room, STATUS_DIGITS);
	text_u64(&t, n);
	return text_view(&t);
}

/* grpc-status and what belongs to it; both stand in a response without a message and in trailers. */
static size_t put_status(const struct call *c, char room[STATUS_DIGITS], nghttp2_nv *to)
{
	size_t n = 0;

	to[n++] = line(STR("grpc-status"), c->status == RPC_OK ? STR("0") : number(c->status, room));
	if (c->detail_len > 0)
		to[n++] = line(STR("grpc-message"), str_make(c->detail, c->detail_len));
	if (c->tells_encodings)
		to[n++] = line(STR("grpc-accept-encoding"), STR("identity"));
	return n;
}

static ssize_t read_out(nghttp2_session *h2, int32_t id, uint8_t *buffer, size_t size, uint32_t *flags,
	nghttp2_data_source *source, void *user)
{
	struct call *c = source->ptr;
	size_t n = c->out.len - c->out_sent;
	char room[STATUS_DIGITS];
	nghttp2_nv trailers[3];

	(void)user;
	if (n > size)
		n = size;
	memcpy(buffer, c->out.ptr + c->out_sent, n);
	c->out_sent += n;
	if (c->out_sent < c->out.len)
		return (ssize_t)n;
	if (!c->has_ended)
		return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (nghttp2_submit_trailer(h2, id, trailers, put_status(c, room, trailers)) != 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return (ssize_t)n;
}

static void begin_answer(struct session *s, struct call *c)
{
	bool has_data = c->out.len > 0 || !c->has_ended;
	nghttp2_data_provider provider = {.source.ptr = c, .read_callback = read_out};
	char status_room[STATUS_DIGITS], http_room[STATUS_DIGITS];
	nghttp2_nv lines[5];
	size_t n = 0;

	c->has_begun = true;
	lines[n++] = line(STR(":status"), c->http_status == 200 ? STR("200") : number(c->http_status, http_room));
	lines[n++] = line(STR("content-type"),
		c->type_has_suffix ? STR("application/grpc+proto") : STR("application/grpc"));
	if (!has_data)
		n += put_status(c, status_room, lines + n);
	if (nghttp2_submit_response(s->h2, c->id, lines, n, has_data ? &provider : NULL) != 0)
		(void)nghttp2_submit_rst_stream(s->h2, NGHTTP2_FLAG_NONE, c->id, NGHTTP2_INTERNAL_ERROR);
}

void session_send(struct session *s, struct call *c)
{
	if (!c->has_begun)
		begin_answer(s, c);
	else
		(void)nghttp2_session_resume_data(s->h2, c->id); /* refused where it is not waiting for that */
}

void session_reset(struct session *s, const struct call *c)
{
	(void)nghttp2_submit_rst_stream(s->h2, NGHTTP2_FLAG_NONE, c->id, NGHTTP2_CANCEL);
}

/* ---------------------------------------------------------------------------------------------------- events */

static void list_add(struct session *s, struct call *c)
{
	c->next = s->calls;
	if (s->calls != NULL)
		s->calls->prev = c;
	s->calls = c;
}

static void list_remove(struct session *s, struct call *c)
{
	if (c->prev != NULL)
		c->prev->next = c->next;
	else
		s->calls = c->next;
	if (c->next != NULL)
		c->next->prev = c->prev;
}

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct session *s = user;
	struct call *c;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	c = call_take(s->service, s, frame->hd.stream_id);
	if (c == NULL)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	list_add(s, c);
	return nghttp2_session_set_stream_user_data(h2, frame->hd.stream_id, c);
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *frame, nghttp2_rcbuf *name, nghttp2_rcbuf *value,
	uint8_t flags, void *user)
{
	struct call *c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	nghttp2_vec n = nghttp2_rcbuf_get_buf(name), v = nghttp2_rcbuf_get_buf(value);

	(void)flags;
	(void)user;
	if (c == NULL || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	if (call_header(c, str_make((const char *)n.base, n.len), str_make((const char *)v.base, v.len)))
		return 0;
	return nghttp2_session_terminate_session(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_data(nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *bytes, size_t n, void *user)
{
	struct call *c = nghttp2_session_get_stream_user_data(h2, id);

	(void)flags;
	(void)user;
	if (c != NULL)
		call_data(c, str_make((const char *)bytes, n));
	return 0;
}

/* Frames that further nothing; at most so many a minute. */
static int count_idle(struct session *s)
{
	ns now = loop_now(s->service->loop);

	if (now - s->idle_frames_since > IDLE_FRAMES_PERIOD_NS) {
		s->idle_frames_since = now;
		s->idle_frames = 0;
	}
	if (++s->idle_frames <= IDLE_FRAMES_MAX)
		return 0;
	return nghttp2_session_terminate_session(s->h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct session *s = user;
	struct call *c;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
	case NGHTTP2_DATA: break;
	case NGHTTP2_PING:
		if ((frame->hd.flags & NGHTTP2_FLAG_ACK) &&
			memcmp(frame->ping.opaque_data, notice_ping, sizeof(notice_ping)) == 0)
			s->was_heard = true;
		return count_idle(s);
	default: return count_idle(s);
	}
	c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	if (c == NULL)
		return count_idle(s);
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		call_begin(c, gate_lists(s->service->config, s->peer));
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		call_end(c);
	else if (frame->hd.type == NGHTTP2_DATA && frame->data.hd.length == frame->data.padlen)
		return count_idle(s);
	return 0;
}

/* What must go out behind a frame and not before it, as nghttp2 would have it. Behind an answer: a caller that goes on sending
 * is told to stop (RFC 9113 8.1). Behind the notice that the connection will end: the PING that says it has been read. */
static int on_sent(nghttp2_session *h2, const nghttp2_frame *frame, void *user)
{
	struct call *c;

	(void)user;
	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.last_stream_id == INT32_MAX)
		return nghttp2_submit_ping(h2, NGHTTP2_FLAG_NONE, notice_ping);
	if (frame->hd.type != NGHTTP2_HEADERS || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
		return 0;
	c = nghttp2_session_get_stream_user_data(h2, frame->hd.stream_id);
	if (c == NULL || c->is_whole)
		return 0;
	return nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
}

static int on_close(nghttp2_session *h2, int32_t id, uint32_t error_code, void *user)
{
	struct session *s = user;
	struct call *c = nghttp2_session_get_stream_user_data(h2, id);

	if (c == NULL)
		return 0;
	if (c->has_ended && error_code == NGHTTP2_NO_ERROR && s->idle_frames > 0)
		s->idle_frames--;
	call_count(c, error_code != NGHTTP2_NO_ERROR || !c->has_ended);
	list_remove(s, c);
	call_put(c);
	return 0;
}

/* ---------------------------------------------------------------------------------------------------- sessions */

static enum err h2_new(struct session *s)
{
	nghttp2_session_callbacks *callbacks = NULL;
	nghttp2_option *option = NULL;
	int e = nghttp2_session_callbacks_new(&callbacks);

	if (e == 0)
		e = nghttp2_option_new(&option);
	if (e == 0) {
		nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
		nghttp2_session_callbacks_set_on_header_callback2(callbacks, on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
		nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
		nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
		nghttp2_option_set_stream_reset_rate_limit(option, RESETS_BURST, RESETS_A_SECOND);
		e = nghttp2_session_server_new2(&s->h2, callbacks, s, option);
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(callbacks);
	return e == 0 ? ERR_OK : ERR_MEMORY;
}

enum err session_open(struct session **ret, struct grpc_service *service, struct peer *peer)
{
	const struct config *config = service->config;
	const nghttp2_settings_entry settings[] = {
		{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, config->grpc_max_streams},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)config->grpc_header_bytes},
	};
	struct session *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return ERR_MEMORY;
	s->service = service;
	s->peer = peer;
	s->idle_frames_since = loop_now(service->loop);
	if (h2_new(s) != ERR_OK ||
		nghttp2_submit_settings(s->h2, NGHTTP2_FLAG_NONE, settings, sizeof(settings) / sizeof(settings[0])) != 0 ||
		nghttp2_session_set_local_window_size(s->h2, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW_BYTES) != 0) {
		session_close(s);
		return ERR_MEMORY;
	}
	*ret = s;
	return ERR_OK;
}

void session_close(struct session *s)
{
	if (s == NULL)
		return;
	/* Frees streams without telling of them. */
	nghttp2_session_del(s->h2);
	while (s->calls != NULL) {
		struct call *c = s->calls;

		call_count(c, true);
		list_remove(s, c);
		call_put(c);
	}
	free(s);
}

bool session_receive(struct session *s, const void *bytes, size_t n)
{
	ssize_t taken = nghttp2_session_mem_recv(s->h2, bytes, n);

	if (taken >= 0)
		return true;
	(void)nghttp2_session_terminate_session(s->h2,
		taken == NGHTTP2_ERR_FLOODED || taken == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS ? NGHTTP2_ENHANCE_YOUR_CALM
											    : NGHTTP2_PROTOCOL_ERROR);
	return false;
}

size_t session_output(struct session *s, const uint8_t **ret)
{
	ssize_t n = nghttp2_session_mem_send(s->h2, ret);

	s->is_broken |= n < 0;
	return n > 0 ? (size_t)n : 0;
}

bool session_is_done(const struct session *s)
{
	return s->is_broken || (nghttp2_session_want_read(s->h2) == 0 && nghttp2_session_want_write(s->h2) == 0);
}

ns session_due(const struct session *s)
{
	ns due = UINT64_MAX;

	for (const struct call *c = s->calls; c != NULL; c = c->next)
		due = c->due < due ? c->due : due;
	return due;
}

void session_expire(struct session *s, ns now)
{
	for (struct call *c = s->calls; c != NULL; c = c->next) {
		if (c->due <= now)
			call_expire(c);
	}
}

void session_changed(struct session *s)
{
	for (struct call *c = s->calls; c != NULL; c = c->next)
		call_changed(c);
}

void session_notice(struct session *s)
{
	(void)nghttp2_submit_shutdown_notice(s->h2);
}

bool session_was_heard(const struct session *s)
{
	return s->was_heard;
}

void session_leave(struct session *s)
{
	(void)nghttp2_submit_goaway(s->h2, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(s->h2),
		NGHTTP2_NO_ERROR, NULL, 0);
	for (struct call *c = s->calls; c != NULL; c = c->next)
		call_leave(c);
}

const struct peer *session_peer(const struct session *s)
{
	return s->peer;
}

bool session_may_hold(const struct session *s, size_t bytes)
{
	size_t held = bytes;

	if (bytes <= CALL_IN_BYTES)
		return true;
	for (const struct call *c = s->calls; c != NULL; c = c->next)
		held += c->in.cap > CALL_IN_BYTES ? c->in.cap : 0;
	return held <= HELD_MESSAGES_MAX * s->service->config->grpc_message_bytes;
}
