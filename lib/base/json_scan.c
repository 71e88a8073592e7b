/* SPDX-License-Identifier: MIT */
/*
 * Why a second reader beside jansson: jansson says what is wrong in words that quote the input, which may be a token,
 * and in columns that count characters; and it forgets all places once the tree is built. This reader runs only when
 * something is wrong already, so it may be slow, but it reads what a stranger has sent: every byte is looked at behind
 * a bounds check, nothing recurses, and the state is of fixed size. jansson alone judges what is accepted; the fuzz
 * target holds the two against each other.
 */
#include "base/json_scan.h"

#include "base/text.h"

#include <stdio.h>

void json_scan_init(struct json_scan *s, struct str text)
{
	s->text = text;
	s->at = 0;
	s->duplicate_end = s->overflow_end = JSON_NOWHERE;
	s->depth = s->value_depth = 0;
	s->value_at = s->name_at = 0;
	s->began = s->opened = s->fault_has_name = false;
	s->kind = JSON_FAULT_SYNTAX;
	s->fault_at = 0;
	s->why = "";
}

/* The byte at hand, or -1 at the end. */
static int peek(const struct json_scan *s)
{
	return s->at < s->text.len ? (unsigned char)s->text.ptr[s->at] : -1;
}

static int peek_at(const struct json_scan *s, size_t at)
{
	return at < s->text.len ? (unsigned char)s->text.ptr[at] : -1;
}

static bool fail(struct json_scan *s, enum json_fault_kind kind, size_t at, const char *why)
{
	s->kind = kind;
	s->fault_at = at;
	s->why = why;
	return false;
}

static void skip_space(struct json_scan *s)
{
	for (int c = peek(s); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(s))
		s->at++;
}

/* Length of the UTF-8 character at a byte from 0x80 up, or 0 (RFC 3629 4: no overlong form, no surrogate). */
static size_t utf8_length(const struct json_scan *s, size_t at)
{
	int lead = peek_at(s, at), second = peek_at(s, at + 1);
	int low = 0x80, high = 0xbf;
	size_t len = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;

	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	if (second < low || second > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (peek_at(s, at + i) < 0x80 || peek_at(s, at + i) > 0xbf)
			return 0;
	return len;
}

static bool fail_at_end(struct json_scan *s)
{
	const char *why = "the text is empty";

	if (s->depth > 0 && s->levels[s->depth - 1].is_object)
		why = "the text ends inside an object";
	else if (s->depth > 0)
		why = "the text ends inside an array";
	return fail(s, JSON_FAULT_SYNTAX, s->at, why);
}

/* A byte that starts nothing JSON knows. Says what people most often meant by it. */
static bool fail_at_byte(struct json_scan *s, const char *why)
{
	int c = peek(s);

	if (c < 0)
		return fail_at_end(s);
	if (c >= 0x80 && utf8_length(s, s->at) == 0)
		return fail(s, JSON_FAULT_UTF8, s->at, "the text is not valid UTF-8");
	if (s->at == 0 && c == 0xef && peek_at(s, 1) == 0xbb && peek_at(s, 2) == 0xbf)
		why = "the text starts with a byte order mark, which JSON does not allow";
	else if (c == '\'')
		why = "JSON strings stand in double quotes";
	else if (c == '/' || c == '#')
		why = "JSON has no comments";
	return fail(s, JSON_FAULT_SYNTAX, s->at, why);
}

static int hex_value(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four hex digits behind a "\u" at this place, or -1. */
static int escape_unit(const struct json_scan *s, size_t at)
{
	int v = 0;

	if (peek_at(s, at) != '\\' || peek_at(s, at + 1) != 'u')
		return -1;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_value(peek_at(s, at + i));

		if (digit < 0)
			return -1;
		v = v * 16 + digit;
	}
	return v;
}

static bool scan_escape(struct json_scan *s, bool is_name)
{
	int c = peek_at(s, s->at + 1), unit;

	if (c >= 0 && c < 0x80 && strchr("\"\\/bfnrt", c) != NULL && c != '\0') {
		s->at += 2;
		return true;
	}
	if (c != 'u')
		return fail(
			s, JSON_FAULT_SYNTAX, s->at, "a backslash starts an escape that JSON does not know");
	unit = escape_unit(s, s->at);
	if (unit < 0)
		return fail(s, JSON_FAULT_SYNTAX, s->at, "four hex digits must stand behind \\u");
	if (unit == 0 && is_name)
		return fail(s, JSON_FAULT_SYNTAX, s->at, "a member's name may not hold U+0000");
	if (unit >= 0xd800 && unit <= 0xdfff) {
		int second = escape_unit(s, s->at + 6);

		if (unit >= 0xdc00 || second < 0xdc00 || second > 0xdfff)
			return fail(s, JSON_FAULT_SYNTAX, s->at, "a \\u escape is half of a surrogate pair");
		s->at += 6;
	}
	s->at += 6;
	return true;
}

/* At the opening quote. ret_raw is what stands between the quotes. */
static bool scan_string(struct json_scan *s, bool is_name, struct str *ret_raw)
{
	size_t start = s->at++;

	for (;;) {
		int c = peek(s);
		size_t len = 1;

		if (c < 0)
			return fail(s, JSON_FAULT_SYNTAX, start, "a string starts here and is never closed");
		if (c == '"')
			break;
		if (c < 0x20)
			return fail(s, JSON_FAULT_SYNTAX, s->at,
				"a control character inside a string must be written as an escape");
		if (c == '\\') {
			if (!scan_escape(s, is_name))
				return false;
			continue;
		}
		if (c >= 0x80) {
			len = utf8_length(s, s->at);
			if (len == 0)
				return fail(s, JSON_FAULT_UTF8, s->at, "the text is not valid UTF-8");
		}
		s->at += len;
	}
	*ret_raw = str_make(s->text.ptr + start + 1, s->at - start - 1);
	s->at++;
	return true;
}

/* Digits, at least one. */
static bool scan_digits(struct json_scan *s)
{
	size_t start = s->at;

	while (peek(s) >= '0' && peek(s) <= '9')
		s->at++;
	return s->at > start;
}

static bool scan_number(struct json_scan *s)
{
	size_t start = s->at;

	if (peek(s) == '-')
		s->at++;
	if (peek(s) == '0') {
		s->at++;
		if (peek(s) >= '0' && peek(s) <= '9')
			return fail(s, JSON_FAULT_SYNTAX, start, "a number may not start with a needless 0");
	} else if (!scan_digits(s)) {
		return fail(s, JSON_FAULT_SYNTAX, start, "a digit must stand behind the minus sign");
	}
	if (peek(s) == '.') {
		s->at++;
		if (!scan_digits(s))
			return fail(
				s, JSON_FAULT_SYNTAX, start, "a digit must stand behind the decimal point");
	}
	if (peek(s) == 'e' || peek(s) == 'E') {
		s->at++;
		if (peek(s) == '+' || peek(s) == '-')
			s->at++;
		if (!scan_digits(s))
			return fail(s, JSON_FAULT_SYNTAX, start, "a digit must stand in the exponent");
	}
	if (s->at == s->overflow_end)
		return fail(s, JSON_FAULT_SYNTAX, start, "a number is too large");
	return true;
}

static bool is_letter(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool scan_word(struct json_scan *s)
{
	size_t start = s->at;
	struct str word;

	while (is_letter(peek(s)))
		s->at++;
	word = str_make(s->text.ptr + start, s->at - start);
	if (str_equal(word, STR("true")) || str_equal(word, STR("false")) || str_equal(word, STR("null")))
		return true;
	return fail(s, JSON_FAULT_SYNTAX, start, "only true, false and null may stand without quotes");
}

/* A scalar whole, or the opening bracket of the rest. */
static bool scan_value(struct json_scan *s)
{
	int c = peek(s);
	struct str ignored;

	s->value_at = s->at;
	s->value_depth = s->depth;
	s->opened = c == '{' || c == '[';
	if (s->opened) {
		if (s->depth == JSON_DEPTH_MAX)
			return fail(s, JSON_FAULT_DEPTH, s->at,
				"arrays and objects are nested more than 64 deep");
		s->levels[s->depth++] = (struct json_level){c == '{', 0, {NULL, 0}};
		s->at++;
		return true;
	}
	if (c == '"')
		return scan_string(s, false, &ignored);
	if (c == '-' || (c >= '0' && c <= '9'))
		return scan_number(s);
	if (is_letter(c))
		return scan_word(s);
	return fail_at_byte(s, "a value must stand here");
}

/* "name": in front of a member's value. */
static bool scan_name(struct json_scan *s, struct json_level *level)
{
	s->name_at = s->at;
	if (peek(s) != '"')
		return fail_at_byte(s, "the name of a member, in double quotes, must stand here");
	if (!scan_string(s, true, &level->name))
		return false;
	if (s->at == s->duplicate_end) {
		s->fault_has_name = true;
		return fail(s, JSON_FAULT_DUPLICATE, s->name_at, "comes twice in the same object");
	}
	skip_space(s);
	if (peek(s) != ':')
		return fail_at_byte(s, "a colon must stand behind the name of a member");
	s->at++;
	skip_space(s);
	return true;
}

/* Behind a value or an opening bracket: closes what ends here, up to the comma in front of the next value. */
static bool scan_behind(struct json_scan *s)
{
	for (bool empty = s->opened;; empty = false) {
		struct json_level *level;
		int c;

		skip_space(s);
		if (s->depth == 0)
			return s->at == s->text.len || fail_at_byte(s, "the text goes on behind its value");
		level = &s->levels[s->depth - 1];
		c = peek(s);
		if (c == (level->is_object ? '}' : ']')) {
			s->at++;
			s->depth--;
			continue;
		}
		if (empty)
			return true;
		if (c != ',')
			return fail_at_byte(s, level->is_object ? "a comma or a closing brace must stand here"
								: "a comma or a closing bracket must stand here");
		s->at++;
		level->index++;
		skip_space(s);
		if (peek(s) == '}' || peek(s) == ']')
			return fail(s, JSON_FAULT_SYNTAX, s->at,
				"a comma stands in front of the closing bracket");
		return true;
	}
}

enum json_scan_step json_scan_next(struct json_scan *s)
{
	if (s->began && !scan_behind(s))
		return SCAN_FAULT;
	if (s->began && s->depth == 0)
		return SCAN_END;
	s->began = true;
	skip_space(s);
	s->name_at = s->at;
	if (s->depth > 0 && s->levels[s->depth - 1].is_object && !scan_name(s, &s->levels[s->depth - 1]))
		return SCAN_FAULT;
	return scan_value(s) ? SCAN_VALUE : SCAN_FAULT;
}

/* Writes a code point as UTF-8 into out, which has room for 4. */
static size_t utf8_write(unsigned long code, char *out)
{
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = len; i > 1; i--) {
		out[i - 1] = (char)(0x80 | (code & 0x3f));
		code >>= 6;
	}
	out[0] = (char)(code | lead[len]);
	return len;
}

/* Decodes the character at hand into unit and steps behind it. */
static size_t decode_char(struct json_scan *s, char unit[4])
{
	static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
	int c = peek(s), next = peek_at(s, s->at + 1);
	size_t len = 1;

	if (c == '\\' && next == 'u') {
		unsigned long code = (unsigned long)escape_unit(s, s->at);

		s->at += 6;
		if (code >= 0xd800 && code <= 0xdbff) {
			code = 0x10000 + ((code - 0xd800) << 10) +
			       ((unsigned long)escape_unit(s, s->at) - 0xdc00);
			s->at += 6;
		}
		return utf8_write(code, unit);
	}
	if (c == '\\') {
		const char *letter = strchr(letters, next);

		unit[0] = letter != NULL ? controls[letter - letters] : (char)next;
		s->at += 2;
		return 1;
	}
	if (c >= 0x80)
		len = utf8_length(s, s->at);
	memcpy(unit, s->text.ptr + s->at, len);
	s->at += len;
	return len;
}

struct str json_scan_name(struct str raw, char *out, size_t size, bool *ret_whole)
{
	struct json_scan s;
	size_t written = 0;
	bool whole = true;

	json_scan_init(&s, raw);
	while (whole && s.at < raw.len) {
		char unit[4];
		size_t len = decode_char(&s, unit);

		whole = len <= size - written;
		if (whole) {
			memcpy(out + written, unit, len);
			written += len;
		}
	}
	if (ret_whole != NULL)
		*ret_whole = whole;
	return str_make(out, written);
}

void json_scan_place(struct str text, size_t at, unsigned *ret_line, unsigned *ret_column)
{
	size_t line = 1, start = 0;

	for (size_t i = 0; i < at && i < text.len; i++) {
		if (text.ptr[i] == '\n') {
			line++;
			start = i + 1;
		}
	}
	*ret_line = (unsigned)line;
	*ret_column = (unsigned)(at - start + 1);
}

/* "the member "name" comes twice": the only sentence that repeats something of the input. */
static void explain_name(const struct json_scan *s, struct json_fault *ret_fault)
{
	/* Short enough that the sentence fits even if each byte must be shown as \xNN. */
	enum { NAME_SHOWN_BYTES = 24 };
	char name[NAME_SHOWN_BYTES + 4], shown[NAME_SHOWN_BYTES * 4 + 8];
	struct text t;

	text_init(&t, shown, sizeof(shown));
	text_visible(
		&t, json_scan_name(s->levels[s->depth - 1].name, name, sizeof(name), NULL), NAME_SHOWN_BYTES);
	(void)snprintf(ret_fault->detail_z, sizeof(ret_fault->detail_z), "the member \"%.*s\" %s",
		STR_ARG(text_view(&t)), s->why);
}

void json_scan_explain(const struct json_scan *s, struct json_fault *ret_fault)
{
	/* The innermost container is named by the levels around it. */
	size_t n = s->fault_has_name || s->depth == 0 ? s->depth : s->depth - 1;
	char name[JSON_POINTER_BYTES];

	ret_fault->kind = s->kind;
	json_scan_place(s->text, s->fault_at, &ret_fault->line, &ret_fault->column);
	ret_fault->pointer_z[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		const struct json_level *level = &s->levels[i];

		if (level->is_object)
			json_pointer_push(
				ret_fault->pointer_z, json_scan_name(level->name, name, sizeof(name), NULL));
		else
			json_pointer_push_index(ret_fault->pointer_z, level->index);
	}
	if (s->fault_has_name)
		explain_name(s, ret_fault);
	else
		(void)snprintf(ret_fault->detail_z, sizeof(ret_fault->detail_z), "%s", s->why);
}
