/* SPDX-License-Identifier: MIT */
/*
 * A head that is larger than usual is rare and one that is only begun is cheap to begin, so growing goes to the largest size at
 * once: doubling would copy more, and a peer that wants to hold memory gets it either way.
 */
#include "server/http_buffer.h"

#include <stdlib.h>
#include <string.h>

#define USUAL_BYTES ((size_t)8192 - sizeof(struct http_buffer))
#define SPARE_MAX 64

void http_buffers_init(struct http_buffers *p, size_t header_bytes)
{
	size_t most = header_bytes + HTTP_BODY_ROOM;

	*p = (struct http_buffers){.usual_bytes = most < USUAL_BYTES ? most : USUAL_BYTES, .most_bytes = most};
}

void http_buffers_done(struct http_buffers *p)
{
	while (p->spare != NULL) {
		struct http_buffer *b = p->spare;

		p->spare = b->next;
		free(b);
	}
	p->n_spare = 0;
}

static struct http_buffer *buffer_new(size_t bytes)
{
	struct http_buffer *b = malloc(sizeof(*b) + bytes);

	if (b != NULL)
		b->size = bytes;
	return b;
}

struct http_buffer *http_buffer_take(struct http_buffers *p)
{
	struct http_buffer *b = p->spare;

	if (b == NULL)
		return buffer_new(p->usual_bytes);
	p->spare = b->next;
	p->n_spare--;
	return b;
}

void http_buffer_put(struct http_buffers *p, struct http_buffer *b)
{
	if (b == NULL)
		return;
	if (b->size != p->usual_bytes || p->n_spare == SPARE_MAX) {
		free(b);
		return;
	}
	b->next = p->spare;
	p->spare = b;
	p->n_spare++;
}

bool http_buffer_grow(struct http_buffers *p, struct http_buffer **b, size_t filled)
{
	struct http_buffer *grown;

	if ((*b)->size == p->most_bytes)
		return true;
	grown = buffer_new(p->most_bytes);
	if (grown == NULL)
		return false;
	memcpy(grown->bytes, (*b)->bytes, filled);
	http_buffer_put(p, *b);
	*b = grown;
	return true;
}
