/* SPDX-License-Identifier: MIT */
/*
 * Looking things up in an HTTP question. Names compare without case and nothing else: "_" is never "-", or a client's
 * X_Forwarded_For would overtake the gateway's line.
 */
#include "adapter/http.h"

const struct header_line *http_header_find(
	const struct header_line *headers, size_t n, struct str name, size_t *ret_count)
{
	const struct header_line *first = NULL;
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (!str_equal_nocase(headers[i].name, name))
			continue;
		if (first == NULL)
			first = &headers[i];
		count++;
	}
	*ret_count = count;
	return first;
}

struct str http_target_path(struct str target)
{
	return str_head(target, str_find(target, '?'));
}
