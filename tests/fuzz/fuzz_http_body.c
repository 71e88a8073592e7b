/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a body in chunks: whole, and in pieces whose size the first byte says. Both must give the same data and come to
 * the same end at the same byte, and no more data than there are bytes.
 */
#include "fuzz.h"

#include "base/must.h"
#include "server/http_body.h"

#include <stdlib.h>

struct outcome {
	enum chunks_state state;
	size_t used, n;
	uint64_t sum; /* of the data and where it stands */
};

static struct outcome read_in_pieces(struct str input, size_t piece_bytes)
{
	struct outcome o = {.state = CHUNKS_MORE};
	struct chunks c;

	chunks_init(&c);
	while ((o.state == CHUNKS_MORE || o.state == CHUNKS_PIECE) && o.used < input.len) {
		struct str part = str_head(str_from(input, o.used), piece_bytes), piece;
		size_t used;

		o.state = chunks_read(&c, part.ptr, part.len, &used, &piece);
		must(used <= part.len && (o.state != CHUNKS_MORE || used == part.len));
		o.used += used;
		for (size_t i = 0; o.state == CHUNKS_PIECE && i < piece.len; i++)
			o.sum = o.sum * 31 + (unsigned char)piece.ptr[i];
		o.n += o.state == CHUNKS_PIECE ? piece.len : 0;
	}
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str input = str_make((const char *)data + 1, size > 0 ? size - 1 : 0);
	struct outcome whole, cut;

	if (size == 0)
		return 0;
	whole = read_in_pieces(input, SIZE_MAX);
	cut = read_in_pieces(input, (size_t)data[0] + 1);
	must(whole.used == cut.used && whole.n == cut.n && whole.sum == cut.sum && whole.n <= input.len);
	must(whole.state == cut.state);
	return 0;
}
