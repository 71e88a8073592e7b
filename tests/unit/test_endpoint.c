/* SPDX-License-Identifier: MIT */
/*
 * Endpoints: text to struct to text, to a socket address and back.
 */
#include "base/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#define PATH_20 "/aaaaaaaaaaaaaaaaaaa"
#define PATH_100 PATH_20 PATH_20 PATH_20 PATH_20 PATH_20

static struct endpoint parse(const char *text)
{
	struct endpoint e;
	const char *why = "";

	if (!endpoint_parse(&e, str_from_z(text), &why))
		fail_msg("%s: %s", text, why);
	return e;
}

static void test_accepted(void **state)
{
	static const struct {
		const char *text, *printed;
		bool is_unix, is_local;
		unsigned port, mode;
	} rows[] = {
		{"127.0.0.1:9180", "127.0.0.1:9180", false, true, 9180, 0},
		{"127.8.8.8:0", "127.8.8.8:0", false, true, 0, 0},
		{"0.0.0.0:65535", "0.0.0.0:65535", false, false, 65535, 0},
		{"10.0.0.1:80", "10.0.0.1:80", false, false, 80, 0},
		{"[::1]:9180", "[::1]:9180", false, true, 9180, 0},
		{"[::]:9", "[::]:9", false, false, 9, 0},
		{"[2001:DB8:0::1]:443", "[2001:db8::1]:443", false, false, 443, 0},
		{"[::ffff:127.0.0.1]:100", "127.0.0.1:100", false, true, 100, 0},
		{"unix:/run/postern/http.sock", "unix:/run/postern/http.sock", true, true, 0, 0660},
		{"unix:/run/p?mode=0666", "unix:/run/p", true, true, 0, 0666},
		{"unix:/run/p?mode=600", "unix:/run/p", true, true, 0, 0600},
		{"unix:/run/p?mode=0", "unix:/run/p", true, true, 0, 0},
		{"unix:" PATH_100 "/aaaaaa", "unix:" PATH_100 "/aaaaaa", true, true, 0, 0660},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct endpoint e = parse(rows[i].text);
		char out[ENDPOINT_TEXT_BYTES];
		size_t len = endpoint_print(&e, out);

		assert_string_equal(out, rows[i].printed);
		assert_int_equal(len, strlen(out));
		assert_int_equal(e.is_unix, rows[i].is_unix);
		assert_int_equal(endpoint_is_local(&e), rows[i].is_local);
		assert_int_equal(e.port, rows[i].port);
		assert_int_equal(e.mode, rows[i].mode);
	}
}

static void test_refused(void **state)
{
	static const struct {
		struct str text;
		const char *why; /* a part of the reason */
	} rows[] = {
		{STR(""), "empty"},
		{STR("127.0.0.1"), "port is missing"},
		{STR("127.0.0.1:"), "port is missing"},
		{STR("[::1]"), "port is missing"},
		{STR("[::1]:"), "port is missing"},
		{STR("::1:9180"), "brackets"},
		{STR(":9180"), "address is missing"},
		{STR("127.0.0.1:65536"), "0 to 65535"},
		{STR("127.0.0.1:http"), "0 to 65535"},
		{STR("[::1]:-1"), "0 to 65535"},
		{STR("127.0.0.1:080"), "leading zeros"},
		{STR("[fe80::1%eth0]:80"), "zone"},
		{STR("localhost:9180"), "names are not resolved"},
		{STR("9180"), "names are not resolved"},
		{STR("*:9180"), "names are not resolved"},
		{STR("010.0.0.1:80"), "names are not resolved"},
		{STR(" 127.0.0.1:80"), "names are not resolved"},
		{STR("127.0.0.1\0:80"), "names are not resolved"},
		{STR("http://127.0.0.1:80"), "names are not resolved"},
		{STR("/run/p"), "names are not resolved"},
		{STR("unix:"), "slash"},
		{STR("unix:/"), "slash"},
		{STR("unix:run/p"), "slash"},
		{STR("unix:@p"), "slash"},
		{STR("unix:?mode=0666"), "slash"},
		{STR("unix:" PATH_100 "/aaaaaaa"), "107 bytes"},
		{STR("unix:/run\0/p"), "NUL"},
		{STR("unix:/run/p?"), "mode="},
		{STR("unix:/run/p?user=1"), "mode="},
		{STR("unix:/run/p?mode="), "octal"},
		{STR("unix:/run/p?mode=0888"), "octal"},
		{STR("unix:/run/p?mode=1777"), "octal"},
		{STR("unix:/run/p?mode=00666"), "octal"},
		{STR("unix:/run/p?mode=666&x"), "octal"},
	};
	struct endpoint e = {.port = 7};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = NULL;

		if (endpoint_parse(&e, rows[i].text, &why))
			fail_msg("accepted: %.*s", STR_ARG(rows[i].text));
		if (strstr(why, rows[i].why) == NULL)
			fail_msg("%.*s: %s", STR_ARG(rows[i].text), why);
		assert_int_equal(e.port, 7);
	}
}

static void test_sockaddr_round_trip(void **state)
{
	static const struct {
		const char *text;
		int family;
		size_t len;
	} rows[] = {
		{"127.0.0.1:9180", AF_INET, sizeof(struct sockaddr_in)},
		{"[2001:db8::1]:443", AF_INET6, sizeof(struct sockaddr_in6)},
		{"unix:/run/p", AF_UNIX, offsetof(struct sockaddr_un, sun_path) + 7},
		{"unix:" PATH_100 "/aaaaaa", AF_UNIX, sizeof(struct sockaddr_un)},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct endpoint e = parse(rows[i].text), back;
		struct sockaddr_storage sa;
		socklen_t len = endpoint_sockaddr(&e, &sa);
		char out[ENDPOINT_TEXT_BYTES];

		assert_int_equal(sa.ss_family, rows[i].family);
		assert_int_equal(len, rows[i].len);
		assert_true(endpoint_from_sockaddr(&back, (struct sockaddr *)&sa, len));
		endpoint_print(&back, out);
		assert_string_equal(out, rows[i].text);
	}
}

static void test_sockaddr_bytes(void **state)
{
	struct endpoint e = parse("1.2.3.4:258");
	struct sockaddr_storage sa;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&sa;

	(void)state;
	endpoint_sockaddr(&e, &sa);
	assert_memory_equal(&in->sin_port, "\x01\x02", 2);
	assert_memory_equal(&in->sin_addr, "\x01\x02\x03\x04", 4);
}

static void test_odd_peers(void **state)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
	struct sockaddr other = {.sa_family = AF_UNSPEC};
	struct endpoint e;
	char out[ENDPOINT_TEXT_BYTES];

	(void)state;
	/* No name, an abstract name, and a name without room for its NUL. */
	assert_true(
		endpoint_from_sockaddr(&e, (struct sockaddr *)&un, offsetof(struct sockaddr_un, sun_path)));
	assert_true(e.is_unix);
	assert_string_equal(e.path_z, "");
	memcpy(un.sun_path, "\0abstract", 9);
	assert_true(endpoint_from_sockaddr(
		&e, (struct sockaddr *)&un, offsetof(struct sockaddr_un, sun_path) + 9));
	assert_string_equal(e.path_z, "");
	memset(un.sun_path, 'a', sizeof(un.sun_path));
	assert_true(endpoint_from_sockaddr(&e, (struct sockaddr *)&un, sizeof(un)));
	assert_int_equal(strlen(e.path_z), sizeof(un.sun_path) - 1);
	assert_true(endpoint_print(&e, out) < sizeof(out));
	/* An IPv4 peer of a socket that listens on "::". */
	memcpy(&mapped.sin6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x00\x00\x05", 16);
	assert_true(endpoint_from_sockaddr(&e, (struct sockaddr *)&mapped, sizeof(mapped)));
	endpoint_print(&e, out);
	assert_string_equal(out, "10.0.0.5:80");
	assert_false(endpoint_from_sockaddr(&e, (struct sockaddr *)&mapped, 8));
	assert_false(endpoint_from_sockaddr(&e, &other, sizeof(other)));
	assert_false(endpoint_from_sockaddr(&e, &other, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_sockaddr_round_trip),
		cmocka_unit_test(test_sockaddr_bytes),
		cmocka_unit_test(test_odd_peers),
	};

	return cmocka_run_group_tests_name("endpoint", tests, NULL, NULL);
}
