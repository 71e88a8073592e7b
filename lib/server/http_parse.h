/* SPDX-License-Identifier: MIT */
/*
 * http_parse: the head of a request, from the request line to the empty line, out of bytes that come as they come.
 *
 * Model      The owner keeps the bytes of a request together in one buffer and shows all of them again whenever there are more;
 *            no byte is looked at twice. Lines are slices of that buffer, as they were sent. Whatever a reader before or
 *            after this one could see otherwise is refused, not mended, so that both agree on where a request ends.
 * Units      bytes.
 * Ownership  Slices are valid while the buffer stays where it is. If it must move before the head is whole, the lines are lost:
 *            check the rest without lines, and read the head once more when it is done.
 * Threads    confined; no state but the struct's.
 * Errors     HEAD_BAD and what is wrong; the same however the bytes were cut up.
 * Limits     max_bytes of a head, HTTP_LINES_MAX field lines.
 * Source     RFC 9112 (HTTP/1.1) 2 to 7 and 9, RFC 9110 5.5, 5.6 and 7.2.
 */
#ifndef POSTERN_SERVER_HTTP_PARSE_H
#define POSTERN_SERVER_HTTP_PARSE_H

#include "adapter/problem.h"
#include "base/str.h"
#include "core/request.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_LINES_MAX 256

enum head_state { HEAD_MORE, HEAD_DONE, HEAD_BAD };

struct head_fault {
	enum problem_code code;
	const char *detail_z;
};

struct http_head {
	/* Where reading stands. */
	struct header_line *lines; /* room for HTTP_LINES_MAX, or NULL: the head is only checked */
	size_t max_bytes;
	size_t line_at; /* where the line begins that is being read */
	size_t scanned; /* no byte before this one is a reason to refuse */
	bool has_request_line;
	unsigned n_hosts, n_lengths, n_codings;
	bool is_coding_odd, says_close, says_keep_alive;

	/* HEAD_BAD: what is wrong. */
	const struct head_fault *fault;

	/* HEAD_DONE: what was read. The slices only where there is room for lines. */
	struct str method, target;
	size_t n_lines;
	size_t n_bytes; /* of the whole head */
	bool is_http_1_0, keeps_alive, expects_continue;
	bool is_chunked;
	uint64_t length; /* Content-Length; 0 without one, UINT64_MAX for more than can be counted */
};

void http_head_init(struct http_head *h, size_t max_bytes, struct header_line *lines);

/* bytes: the n that have come of this request so far, and perhaps more behind it. Not to be called again after HEAD_BAD. */
enum head_state http_head_read(struct http_head *h, const char *bytes, size_t n);

/* False where a byte stands that no field value may hold: all control bytes but the tab. RFC 9110 5.5. */
bool http_value_is_clean(struct str value);

#endif
