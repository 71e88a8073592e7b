/* SPDX-License-Identifier: MIT */
/*
 * One byte, one step, but for the data itself. Lines end in CR LF and nothing else, a size is digits up to the CR or to the
 * semicolon of an extension: blanks there, a bare LF, and a CR inside an extension are what readers disagree about.
 * What extensions and trailers may take is counted over the whole body, or a body of one-byte chunks with long extensions would
 * cost a hundred times what it holds.
 */
#include "server/http_body.h"

#define DIGITS_MAX 16

enum place {
	SIZE,
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER_START,
	TRAILER,
	TRAILER_LF,
	LAST_LF
};

void chunks_init(struct chunks *c)
{
	*c = (struct chunks){.place = SIZE, .spare = CHUNKS_SPARE_BYTES};
}

static int hex_value(char c)
{
	unsigned digit = (unsigned char)c - (unsigned)'0';
	unsigned letter = ((unsigned char)c | 0x20u) - (unsigned)'a';

	if (digit < 10)
		return (int)digit;
	return letter < 6 ? (int)letter + 10 : -1;
}

/* Goes to the next place if the byte is the one that must stand here. */
static enum chunks_state expect(struct chunks *c, bool is_right, enum place next)
{
	c->place = next;
	return is_right ? CHUNKS_MORE : CHUNKS_BAD;
}

static enum chunks_state read_size(struct chunks *c, char byte)
{
	int digit = hex_value(byte);

	if (digit < 0)
		return expect(c, c->n_digits > 0 && (byte == '\r' || byte == ';'), byte == ';' ? EXTENSION : SIZE_LF);
	c->left = c->left * 16 + (unsigned)digit;
	return ++c->n_digits <= DIGITS_MAX ? CHUNKS_MORE : CHUNKS_BAD;
}

/* Text up to the CR, behind which lies next. */
static enum chunks_state read_over(struct chunks *c, char byte, enum place next)
{
	if (byte == '\r')
		return expect(c, true, next);
	if (((unsigned char)byte < ' ' && byte != '\t') || byte == 0x7f || c->spare == 0)
		return CHUNKS_BAD;
	c->spare--;
	return CHUNKS_MORE;
}

static enum chunks_state step(struct chunks *c, char byte)
{
	switch ((enum place)c->place) {
	case SIZE: return read_size(c, byte);
	case EXTENSION: return read_over(c, byte, SIZE_LF);
	case SIZE_LF: return expect(c, byte == '\n', c->left > 0 ? DATA : TRAILER_START);
	case DATA_CR: return expect(c, byte == '\r', DATA_LF);
	case DATA_LF:
		c->n_digits = 0;
		return expect(c, byte == '\n', SIZE);
	case TRAILER_START:
		if (byte == '\r')
			return expect(c, true, LAST_LF);
		c->place = TRAILER;
		return read_over(c, byte, TRAILER_LF);
	case TRAILER: return read_over(c, byte, TRAILER_LF);
	case TRAILER_LF: return expect(c, byte == '\n', TRAILER_START);
	case LAST_LF: return byte == '\n' ? CHUNKS_END : CHUNKS_BAD;
	case DATA: break;
	}
	return CHUNKS_BAD;
}

enum chunks_state chunks_read(struct chunks *c, const char *bytes, size_t n, size_t *ret_used, struct str *ret_piece)
{
	size_t at = 0;
	enum chunks_state state = CHUNKS_MORE;

	while (at < n && state == CHUNKS_MORE && c->place != DATA)
		state = step(c, bytes[at++]);
	*ret_used = at;
	if (state != CHUNKS_MORE || at == n)
		return state;
	*ret_piece = str_make(bytes + at, c->left < n - at ? (size_t)c->left : n - at);
	*ret_used += ret_piece->len;
	c->left -= ret_piece->len;
	if (c->left == 0)
		c->place = DATA_CR;
	return CHUNKS_PIECE;
}
