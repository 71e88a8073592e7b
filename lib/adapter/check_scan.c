/* SPDX-License-Identifier: MIT */
/*
 * jansson needs as long for a question as the kernel does for the whole connection, this a fortieth of it, because nothing
 * is copied or allocated. That only works for strings that stand in the text as they are, so the first byte that
 * would need a thought (a backslash, a control character, anything beyond ASCII, a number in another form) ends the
 * attempt. It must never take what jansson refuses: RFC 8259 to the letter, and no name twice in either object.
 */
#include "adapter/check_scan.h"

#include "adapter/check_read.h"

#include <stddef.h>

/* Each name is compared with all before it, so there are few; more are left to jansson, whose table grows. */
#define LINES_MAX 16

struct scan {
	const char *at, *end;
	struct request req;
	unsigned seen; /* bits of the members read */
	struct header_line lines[LINES_MAX];
};

static void skip_space(struct scan *s)
{
	while (s->at < s->end && (*s->at == ' ' || *s->at == '\n' || *s->at == '\r' || *s->at == '\t'))
		s->at++;
}

static bool take(struct scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool take_text(struct scan *s, struct str *ret)
{
	size_t n;

	if (!take(s, '"'))
		return false;
	n = str_plain(str_make(s->at, (size_t)(s->end - s->at)));
	*ret = str_make(s->at, n);
	s->at += n;
	return take(s, '"');
}

/* From the opening brace to the closing one; member reads a value. */
static inline bool take_object(struct scan *s, bool (*member)(struct scan *s, struct str name))
{
	struct str name;

	if (!take(s, '{'))
		return false;
	skip_space(s);
	if (take(s, '}'))
		return true;
	do {
		skip_space(s);
		if (!take_text(s, &name))
			return false;
		skip_space(s);
		if (!take(s, ':'))
			return false;
		skip_space(s);
		if (!member(s, name))
			return false;
		skip_space(s);
	} while (take(s, ','));
	return take(s, '}');
}

static bool take_line(struct scan *s, struct str name)
{
	struct header_line *line = &s->lines[s->req.n_headers];

	if (s->req.n_headers == LINES_MAX)
		return false;
	for (size_t i = 0; i < s->req.n_headers; i++) {
		if (str_equal(s->lines[i].name, name))
			return false;
	}
	s->req.n_headers++;
	line->name = name;
	return take_text(s, &line->value);
}

/* Whole, from 1 on, no leading zero. What stands behind it is looked at next, so "1.0" and "1e3" end there. */
static bool take_cost(struct scan *s)
{
	uint32_t cost = 0;

	while (s->at < s->end && str_is_digit(*s->at) && cost <= REQUEST_COST_MAX) {
		if (cost == 0 && *s->at == '0')
			return false;
		cost = cost * 10 + (uint32_t)(*s->at++ - '0');
	}
	s->req.cost = cost;
	return cost >= 1 && cost <= REQUEST_COST_MAX;
}

static bool take_word(struct scan *s, struct str word)
{
	if (!str_starts_with(str_make(s->at, (size_t)(s->end - s->at)), word))
		return false;
	s->at += word.len;
	return true;
}

static bool take_peek(struct scan *s)
{
	s->req.peek = take_word(s, STR("true"));
	return s->req.peek || take_word(s, STR("false"));
}

static bool take_fact(struct scan *s, struct fact *ret)
{
	ret->said = true;
	return take_text(s, &ret->text);
}

static bool take_value(struct scan *s, enum check_member member)
{
	switch (member) {
	case CHECK_REMOTE_ADDR: return take_text(s, &s->req.remote_addr);
	case CHECK_HEADERS: return take_object(s, take_line);
	case CHECK_TOKEN: return take_fact(s, &s->req.token);
	case CHECK_METHOD: return take_fact(s, &s->req.method);
	case CHECK_HOST: return take_fact(s, &s->req.host);
	case CHECK_PATH: return take_fact(s, &s->req.path);
	case CHECK_COST: return take_cost(s);
	case CHECK_PEEK: return take_peek(s);
	case CHECK_ID: return take_fact(s, &s->req.id) && s->req.id.text.len <= CHECK_ID_BYTES_MAX;
	default: return false;
	}
}

static bool take_member(struct scan *s, struct str name)
{
	enum check_member member = check_member_find(name);

	if (s->seen & 1u << member)
		return false;
	s->seen |= 1u << member;
	return take_value(s, member);
}

static bool take_question(struct scan *s)
{
	skip_space(s);
	if (!take_object(s, take_member))
		return false;
	skip_space(s);
	return s->at == s->end && s->seen & 1u << CHECK_REMOTE_ADDR;
}

bool check_scan(struct str body, struct arena *a, struct request *ret)
{
	struct scan s;
	struct header_line *lines = NULL;

	if (body.len == 0)
		return false;
	/* The lines are not cleared: they are most of it. */
	s.at = body.ptr;
	s.end = body.ptr + body.len;
	s.req = *ret;
	s.seen = 0;
	if (!take_question(&s))
		return false;
	if (s.req.n_headers > 0) {
		lines = arena_array(a, s.req.n_headers, sizeof(*lines));
		if (lines == NULL)
			return false;
		memcpy(lines, s.lines, s.req.n_headers * sizeof(*lines));
	}
	s.req.headers = lines;
	*ret = s.req;
	return true;
}
