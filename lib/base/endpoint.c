/* SPDX-License-Identifier: MIT */
/*
 * Where to listen or connect. Addresses are literal: a name would make the start depend on a resolver, and
 * which of its answers was taken would be anybody's guess. The port is always written, for the same reason.
 * A Unix path is absolute, because a daemon's working directory is nothing to rely on.
 */
#include "base/endpoint.h"

#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#define MODE_DEFAULT 0660
#define MODE_DIGITS_MAX 4

_Static_assert(
	sizeof(((struct endpoint *)0)->path_z) == sizeof(((struct sockaddr_un *)0)->sun_path), "sun_path");

static const struct str unix_prefix = {"unix:", 5};

static bool mode_parse(mode_t *ret_mode, struct str s)
{
	unsigned mode = 0;

	if (s.len == 0 || s.len > MODE_DIGITS_MAX)
		return false;
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] < '0' || s.ptr[i] > '7')
			return false;
		mode = mode << 3 | (unsigned)(s.ptr[i] - '0');
	}
	if (mode > 0777)
		return false;
	*ret_mode = mode;
	return true;
}

static const char *parse_unix(struct endpoint *e, struct str s)
{
	size_t mark = str_find(s, '?');
	struct str path = str_head(s, mark), query = str_from(s, mark);

	e->is_unix = true;
	e->mode = MODE_DEFAULT;
	if (path.len < 2 || path.ptr[0] != '/')
		return "the path of a Unix socket starts with a slash: \"unix:/run/postern/http.sock\"";
	if (path.len >= sizeof(e->path_z))
		return "the path of a Unix socket is longer than 107 bytes";
	if (str_find(path, '\0') != path.len)
		return "the path of a Unix socket holds a NUL";
	memcpy(e->path_z, path.ptr, path.len);
	if (query.len != 0 && !str_starts_with(query, STR("?mode=")))
		return "only \"?mode=\" may stand behind the path of a Unix socket";
	if (query.len != 0 && !mode_parse(&e->mode, str_from(query, 6)))
		return "the mode of a Unix socket is one to four octal digits, at most 0777";
	return NULL;
}

/* Not an address and port: what else does it look like? */
static const char *judge_tcp(struct str s)
{
	struct str port = str_from(s, str_find_last(s, ':'));
	struct ip ip;

	if (s.len == 0)
		return "it is empty";
	if (ip_parse_v6(&ip, s))
		return "the port is missing; with one, an IPv6 address stands in brackets: \"[::1]:9180\"";
	if (ip_parse_with_port(&ip, s, NULL) || port.len == 1)
		return "the port is missing: \"127.0.0.1:9180\"";
	if (port.len == s.len)
		return "the address is missing: \"127.0.0.1:9180\", or \"0.0.0.0:9180\" for all of IPv4";
	if (ip_parse_with_port(&ip, str_head(s, s.len - port.len), NULL))
		return "the port is a number from 0 to 65535";
	return "it is neither an IP address and port (\"127.0.0.1:9180\", \"[::1]:9180\") nor "
	       "\"unix:/path\"; names are "
	       "not resolved";
}

static const char *parse_tcp(struct endpoint *e, struct str s)
{
	struct str port;
	uint64_t number;

	if (!ip_parse_with_port(&e->ip, s, &port) || port.len == 0)
		return judge_tcp(s);
	if (str_find(s, '%') != s.len)
		return "a zone is not supported here";
	if (!str_to_u64(port, UINT16_MAX, &number))
		return "the port has leading zeros";
	e->port = (uint16_t)number;
	return NULL;
}

bool endpoint_parse(struct endpoint *ret, struct str s, const char **ret_why)
{
	struct endpoint e = {0};
	const char *why;

	if (str_starts_with(s, unix_prefix))
		why = parse_unix(&e, str_from(s, unix_prefix.len));
	else
		why = parse_tcp(&e, s);
	if (why != NULL) {
		*ret_why = why;
		return false;
	}
	*ret = e;
	return true;
}

static size_t print_port(char *out, unsigned port)
{
	size_t len = 1;

	for (unsigned rest = port; rest >= 10; rest /= 10)
		len++;
	for (size_t i = len; i-- > 0; port /= 10)
		out[i] = (char)('0' + port % 10);
	out[len] = '\0';
	return len;
}

size_t endpoint_print(const struct endpoint *e, char out[ENDPOINT_TEXT_BYTES])
{
	size_t len = 0;

	if (e->is_unix) {
		size_t path_len = strlen(e->path_z);

		memcpy(out, unix_prefix.ptr, unix_prefix.len);
		memcpy(out + unix_prefix.len, e->path_z, path_len + 1);
		return unix_prefix.len + path_len;
	}
	if (ip_is_v4(&e->ip)) {
		len = ip_print(&e->ip, out);
	} else {
		out[len++] = '[';
		len += ip_print(&e->ip, out + len);
		out[len++] = ']';
	}
	out[len++] = ':';
	return len + print_port(out + len, e->port);
}

bool endpoint_is_local(const struct endpoint *e)
{
	static const struct ip loopback_v6 = {{[15] = 1}};

	if (e->is_unix)
		return true;
	return ip_is_v4(&e->ip) ? e->ip.bytes[12] == 127 : ip_equal(&e->ip, &loopback_v6);
}

socklen_t endpoint_sockaddr(const struct endpoint *e, struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (e->is_unix) {
		struct sockaddr_un *sa = (struct sockaddr_un *)ret;
		size_t len = strlen(e->path_z);

		sa->sun_family = AF_UNIX;
		memcpy(sa->sun_path, e->path_z, len + 1);
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
	}
	if (ip_is_v4(&e->ip)) {
		struct sockaddr_in *sa = (struct sockaddr_in *)ret;

		sa->sin_family = AF_INET;
		sa->sin_port = htons(e->port);
		memcpy(&sa->sin_addr, e->ip.bytes + 12, sizeof(sa->sin_addr));
		return sizeof(*sa);
	}
	struct sockaddr_in6 *sa = (struct sockaddr_in6 *)ret;

	sa->sin6_family = AF_INET6;
	sa->sin6_port = htons(e->port);
	memcpy(&sa->sin6_addr, e->ip.bytes, sizeof(sa->sin6_addr));
	return sizeof(*sa);
}

/* The path is empty for a peer that has bound no name, and for an abstract one, which starts with a NUL. */
static void read_unix(struct endpoint *e, const struct sockaddr *sa, socklen_t len)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)sa;
	size_t offset = offsetof(struct sockaddr_un, sun_path);
	size_t path_len = len > offset ? strnlen(un->sun_path, len - offset) : 0;

	/* The kernel may fill all of sun_path without a NUL; ours has room for one only. */
	if (path_len >= sizeof(e->path_z))
		path_len = sizeof(e->path_z) - 1;
	memcpy(e->path_z, un->sun_path, path_len);
	e->is_unix = true;
}

bool endpoint_from_sockaddr(struct endpoint *ret, const struct sockaddr *sa, socklen_t len)
{
	struct endpoint e = {0};

	if (len < sizeof(sa->sa_family))
		return false;
	if (sa->sa_family == AF_INET && len >= sizeof(struct sockaddr_in)) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)sa;

		e.ip = ip_from_v4(ntohl(in->sin_addr.s_addr));
		e.port = ntohs(in->sin_port);
	} else if (sa->sa_family == AF_INET6 && len >= sizeof(struct sockaddr_in6)) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;

		e.ip = ip_from_bytes(in6->sin6_addr.s6_addr);
		e.port = ntohs(in6->sin6_port);
	} else if (sa->sa_family == AF_UNIX) {
		read_unix(&e, sa, len);
	} else {
		return false;
	}
	*ret = e;
	return true;
}
