/* SPDX-License-Identifier: MIT */
/*
 * The one place where a name is resolved: it is the user's own, typed on the command line, and a gateway is usually known by its
 * name. Nothing that a peer sends gets here.
 */
#include "url.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

static bool cut(struct str *s, struct str prefix)
{
	if (!str_starts_with_nocase(*s, prefix))
		return false;
	*s = str_from(*s, prefix.len);
	return true;
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
			return false;
	return true;
}

static bool parse_authority(struct url *ret, struct str s, const char **ret_why)
{
	size_t end = s.len > 0 && s.ptr[0] == '[' ? str_find(s, ']') + 1 : str_find(s, ':');
	uint64_t port = 80;

	*ret_why = "behind http:// stands HOST or HOST:PORT";
	if (end > s.len || end == 0 || str_find(s, '@') < s.len ||
		(end < s.len && (s.ptr[end] != ':' || !str_to_u64(str_from(s, end + 1), UINT16_MAX, &port) || port == 0)))
		return false;
	ret->authority = s;
	ret->host = str_head(s, end);
	if (s.ptr[0] == '[')
		ret->host = str_make(s.ptr + 1, end - 2);
	ret->port = (uint16_t)port;
	return ret->host.len > 0;
}

bool url_parse(struct url *ret, const char *text_z, const char **ret_why)
{
	struct str s = str_from_z(text_z), path;
	size_t slash, query;

	*ret_why = "it holds a character that no URL can hold";
	if (!is_plain(s))
		return false;
	*ret_why = "only http:// is spoken here: probe the gateway where it takes plain HTTP, or send a nonce yourself (postern help probe)";
	if (!cut(&s, STR("http://")))
		return false;
	s = str_head(s, str_find(s, '#'));
	slash = str_find(s, '/');
	query = str_find(s, '?');
	if (query < slash)
		slash = query;
	path = str_from(s, slash);
	*ret_why = "it is too long";
	if (path.len + 2 > sizeof(ret->target_z))
		return false;
	(void)snprintf(ret->target_z, sizeof(ret->target_z), "%s%.*s", path.len > 0 && path.ptr[0] == '/' ? "" : "/",
		STR_ARG(path));
	return parse_authority(ret, str_head(s, slash), ret_why);
}

size_t url_resolve(const struct url *u, struct endpoint *ret, size_t max)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found, *a;
	char host_z[256];
	size_t n = 0;

	ret[0] = (struct endpoint){.port = u->port};
	if (ip_parse(&ret[0].ip, u->host))
		return 1;
	if (u->host.len >= sizeof(host_z))
		return 0;
	memcpy(host_z, u->host.ptr, u->host.len);
	host_z[u->host.len] = '\0';
	if (getaddrinfo(host_z, NULL, &hints, &found) != 0)
		return 0;
	for (a = found; a != NULL && n < max; a = a->ai_next) {
		if (!endpoint_from_sockaddr(&ret[n], a->ai_addr, a->ai_addrlen))
			continue;
		ret[n++].port = u->port;
	}
	freeaddrinfo(found);
	return n;
}
