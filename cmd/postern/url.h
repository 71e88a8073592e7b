/* SPDX-License-Identifier: MIT */
/*
 * url: an http:// URL as a user gives it.
 *
 * Ownership  host and target are views of the text.
 * Blocking   url_resolve asks the system's resolver where the host is a name.
 * Errors     url_parse: false and why, in words.
 */
#ifndef POSTERN_CMD_URL_H
#define POSTERN_CMD_URL_H

#include "base/endpoint.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct url {
	struct str authority; /* as written: for Host */
	struct str host;      /* without port and brackets */
	uint16_t port;
	char target_z[2048];
};

bool url_parse(struct url *ret, const char *text_z, const char **ret_why);

/* The addresses of the host; how many of at most max. 0: there are none. */
size_t url_resolve(const struct url *u, struct endpoint *ret, size_t max);

#endif
