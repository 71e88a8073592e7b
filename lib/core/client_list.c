/* SPDX-License-Identifier: MIT */
/*
 * The entries of one header, from the right. Proxies append, to the last line or as a new line behind it, so the right end
 * of the last line is what the nearest hop wrote; a reader of the first line alone, or of the last alone, takes the
 * client's text for a hop's. Nothing is built up: only what the strategy asks for is found, and a client that sends a
 * long list pays for it with bytes, not us with work.
 */
#include "core/client_parts.h"

void client_list_start(struct client_list *list, const struct client_rule *rule, const struct request *req)
{
	*list = (struct client_list){.name = rule->header,
		.is_forwarded = rule->header_is_forwarded,
		.headers = req->headers,
		.n_headers = req->n_headers};
}

bool client_list_line(struct client_list *list)
{
	while (list->n_headers != 0) {
		const struct header_line *line = &list->headers[--list->n_headers];

		if (!client_name_is(line->name, list->name))
			continue;
		list->rest = line->value;
		list->in_line = true;
		list->lines_read++;
		return true;
	}
	list->in_line = false;
	return false;
}

static bool plain_split(struct str line, struct str *ret_entry, struct str *ret_rest)
{
	size_t comma = str_find_last(line, ',');

	if (comma == line.len) {
		*ret_entry = line;
		return false;
	}
	*ret_entry = str_from(line, comma + 1);
	*ret_rest = str_head(line, comma);
	return true;
}

enum list_found client_list_next(struct client_list *list, struct str *ret_entry)
{
	struct str entry;
	bool paired = true;

	if (!list->in_line && !client_list_line(list))
		return LIST_END;
	if (list->is_forwarded)
		paired = client_forwarded_split(list->rest, &entry, &list->rest, &list->in_line);
	else
		list->in_line = plain_split(list->rest, &entry, &list->rest);
	*ret_entry = str_trim(entry);
	return paired ? LIST_ENTRY : LIST_MALFORMED;
}
