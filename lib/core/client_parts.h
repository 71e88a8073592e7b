/* SPDX-License-Identifier: MIT */
/*
 * client_parts: what the client files share: a list read from its right end, the syntax of one entry, the trace.
 *
 * Model      A client_list walks the entries of one header over all its lines, last line first, last entry first, and
 *            never builds them up. An entry that a comma or the line's end bounds is one entry, empty or not; a blank line
 *            is one empty entry. The two syntaxes (plain, RFC 7239) differ in where an entry begins and in how it is
 *            read; both give an address or a reason.
 * Units      entries and lines are counted from the right.
 * Ownership  Slices of the request.
 * Threads    Pure.
 * Errors     a reason from reasons.def.
 */
#ifndef POSTERN_CORE_CLIENT_PARTS_H
#define POSTERN_CORE_CLIENT_PARTS_H

#include "core/client.h"

#include <stdbool.h>
#include <stddef.h>

/* Field names compare without case; nearly all differ in length already. */
static inline bool client_name_is(struct str name, struct str wanted)
{
	return name.len == wanted.len && str_equal_nocase(name, wanted);
}

struct client_list {
	struct str name;
	bool is_forwarded;
	const struct header_line *headers;
	size_t n_headers;    /* those not looked at yet */
	bool in_line;        /* rest holds at least one more entry of the line */
	struct str rest;
	unsigned lines_read;
};

enum list_found {
	LIST_END,
	LIST_ENTRY,
	LIST_MALFORMED /* the quotes do not pair: where the entry begins cannot be known, so the walk must end */
};

void client_list_start(struct client_list *list, const struct client_rule *rule, const struct request *req);

/* Goes to the next line to the left, giving up what is left of this one. False if there is none. */
bool client_list_line(struct client_list *list);

/* The next entry to the left, over line ends, without its outer spaces and tabs. */
enum list_found client_list_next(struct client_list *list, struct str *ret_entry);

/* Splits the last element off line: *ret_element, and in *ret_rest what stands left of its comma (*ret_more: there was
 * one). False if its quotes do not pair; it then reaches back to the start of the line. */
bool client_forwarded_split(struct str line, struct str *ret_element, struct str *ret_rest, bool *ret_more);

/* Reads one trimmed entry. On failure *ret_reason is set instead of *ret_ip. */
bool client_entry_read(struct str entry, struct ip *ret_ip, enum client_reason *ret_reason);
bool client_forwarded_read(struct str element, struct ip *ret_ip, enum client_reason *ret_reason);

/* Is this an address that a client can have? Else says why not. */
bool client_address_usable(const struct ip *ip, enum client_reason *ret_reason);

/* Bytes that no entry may hold: control bytes, DEL, and from 0x80 up. */
bool client_byte_is_control(char c);
bool client_byte_is_high(char c);

/* Only called where a trace was asked for. */
void client_trace_start(struct client_trace *trace, const struct client_rule *rule, const struct request *req);
void client_trace_peer(struct client_trace *trace, const struct client_rule *rule, const struct request *req,
	const struct client *c, const struct range *by);

/* One judged entry; ip is NULL where it has no address. by belongs to STEP_TRUSTED, reason to STEP_REFUSED. */
struct client_judged {
	enum step_verdict verdict;
	struct str raw;
	const struct ip *ip;
	const struct range *by;
	enum client_reason reason;
};
void client_trace_entry(struct client_trace *trace, const struct client_list *list, unsigned from_right,
	const struct client_judged *judged);
void client_trace_fallback(struct client_trace *trace, const struct client *c);

#endif
