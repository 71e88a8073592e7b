/* SPDX-License-Identifier: MIT */
/*
 * What the admin listener shows, without its sockets: JSON that the library reads back, a page without markup of a client's
 * making, and sizes that a million clients do not change.
 */
#include "server/admin.h"
#include "server/facts.h"
#include "server/write.h"

#include "base/json.h"
#include "base/log.h"
#include "store/store.h"

#include "../support/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MANY 100000u
#else
#define MANY 1000000u
#endif
#define BUFFER_BYTES ((size_t)1 << 20)

static const char config_z[] =
	"{'limits': {'per-client': {'rate': '5/hour'}, 'login': {'rate': '2/hour'}},"
	" 'identities': {'edge': {'token_sha256': "
	"'9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'}},"
	" 'rules': [{'name': 'login', 'match': {'path': '/login'}, 'limits': ['per-client', 'login']},"
	" {'name': 'rest', 'limits': ['per-client']}]}";

static struct judge judge;
static struct engine *engine;
static struct arena arena;
static char block[64 * 1024], json_bytes[BUFFER_BYTES], page_bytes[BUFFER_BYTES];
static ns now;

static int open_all(void **state)
{
	(void)state;
	log_setup(LOG_ERROR, LOG_TEXT, STDERR_FILENO);
	judge_open(&judge, config_z);
	arena_init(&arena, block, sizeof(block));
	now = clock_monotonic_ns();
	return engine_open(&engine, judge.rules, judge.store, 1) == ERR_OK ? 0 : -1;
}

static int close_all(void **state)
{
	(void)state;
	engine_close(engine);
	judge_close(&judge);
	return 0;
}

static void decide(struct str remote_addr, const struct header_line *headers, size_t n)
{
	const struct request req = {.door = DOOR_CHECK,
		.fault = REASON_ALLOWED,
		.cost = 1,
		.remote_addr = remote_addr,
		.headers = headers,
		.n_headers = n,
		.path = {STR("/login"), true}};
	struct verdict v;

	arena_reset(&arena);
	engine_decide(engine_worker_at(engine, 0), &req, &arena, now, &v);
}

static struct str show(char *buffer, void (*write)(struct text *t, const void *what))
{
	static const struct reload_status loaded = {.ok = true, .checked_at = NS_PER_S, .loaded_at = NS_PER_S};
	const struct facts_source source = {judge.config, &loaded, engine, now + NS_PER_S, now};
	struct facts *f = facts_new(&source);
	struct text t;

	assert_non_null(f);
	text_init(&t, buffer, BUFFER_BYTES);
	write(&t, f);
	assert_false(t.overflow);
	facts_free(f);
	return text_view(&t);
}

static struct json *status(void)
{
	struct json_fault fault;
	struct json *root;

	if (json_read(&root, show(json_bytes, admin_write_status), &fault) != ERR_OK)
		fail_msg("%s", fault.detail_z);
	return root;
}

static bool contains(struct str s, const char *part_z)
{
	return memmem(s.ptr, s.len, part_z, strlen(part_z)) != NULL;
}

static void test_write_html(void **state)
{
	char all[256], buffer[4096];
	struct text t;

	(void)state;
	for (unsigned i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	text_init(&t, buffer, sizeof(buffer));
	write_html(&t, str_make(all, sizeof(all)));
	assert_false(t.overflow);
	for (size_t i = 0; i < t.len; i++)
		assert_true(t.ptr[i] >= ' ' && t.ptr[i] <= '~' && strchr("<>\"'", t.ptr[i]) == NULL);
	text_init(&t, buffer, sizeof(buffer));
	write_html(&t, STR("<a href='x' b=\"&\">\\x\n\xff"));
	assert_true(str_equal(text_view(&t),
		STR("&lt;a href=&#39;x&#39; b=&quot;&amp;&quot;&gt;\\x\\x0a\\xff")));
}

static void test_write_time(void **state)
{
	char buffer[256];
	struct text t;

	(void)state;
	text_init(&t, buffer, sizeof(buffer));
	write_time(&t, "", "a", 0);
	write_time(&t, ", ", "b", (ns)1767323045 * NS_PER_S + 999);
	write_time_words(&t, (ns)1767323045 * NS_PER_S);
	write_time_words(&t, 0);
	assert_true(str_equal(text_view(&t),
		STR("\"a\": null, \"b\": \"2026-01-02T03:04:05Z\"2026-01-02 03:04:05 UTCnever")));
}

static void test_status_of_nothing(void **state)
{
	struct json *root = status();

	(void)state;
	assert_int_equal(json_count(json_member(root, "warnings")), 0);
	assert_int_equal(json_count(json_member(root, "notes")), 0);
	assert_int_equal(json_count(json_member(root, "own_service_refused")), 0);
	assert_int_equal(json_count(json_member(root, "identities")), 1);
	assert_int_equal(json_integer_of(json_member(root, "uptime_s")), 1);
	assert_int_equal(json_integer_of(json_member(json_member(root, "store"), "entries")), 0);
	json_free(root);
	assert_true(contains(show(page_bytes, admin_write_page), "No warning"));
}

static const char hostile_z[] = "\"'><script>&\n\x01";

/* A service with a dead token whose remote_addr is what somebody likes it to be. */
static void test_hostile_text(void **state)
{
	static const struct header_line lines[] = {
		{{"X-Internal-Token", 16}, {"postern_dead-token-of-the-tests", 31}},
		{{"User-Agent", 10}, {"<script>alert(2)</script>", 25}},
		{{"Cookie", 6}, {"\"><img src=x onerror=alert(3)>", 30}},
	};
	struct json *root;
	struct str page;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		decide(STR(hostile_z), lines, 3);
	root = status();
	assert_int_equal(json_count(json_member(root, "own_service_refused")), 1);
	json_free(root);
	for (size_t i = 0; json_bytes[i] != '\0'; i++)
		assert_true((json_bytes[i] >= ' ' && json_bytes[i] <= '~') || json_bytes[i] == '\n');
	page = show(page_bytes, admin_write_page);
	assert_true(contains(page, "&quot;&#39;&gt;&lt;script&gt;&amp;"));
	assert_false(contains(page, "<script") || contains(page, "<img") || contains(page, "dead-token"));
	assert_false(contains(str_from_z(json_bytes), "dead-token"));
}

/* Clients of the documentation's and other ranges, all different. */
static void many_clients(unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		struct ip ip = ip_from_v4(0x0b000000u + i);
		char address[IP_TEXT_BYTES];

		now += 1000;
		decide(str_make(address, ip_print(&ip, address)), NULL, 0);
	}
}

static void test_sizes_are_bounded(void **state)
{
	size_t status_len, page_len, top_len;

	(void)state;
	many_clients(0, MANY / 10);
	status_len = show(json_bytes, admin_write_status).len;
	page_len = show(page_bytes, admin_write_page).len;
	top_len = show(page_bytes, admin_write_top).len;
	many_clients(MANY / 10, MANY);
	/* Only numbers have become longer. */
	assert_in_range(show(json_bytes, admin_write_status).len, 1, status_len + 512);
	assert_in_range(show(page_bytes, admin_write_page).len, 1, page_len + 512);
	assert_in_range(show(page_bytes, admin_write_top).len, 1, top_len + 512);
	assert_in_range(status_len, 1, 32 * 1024);
	assert_in_range(page_len, 1, 64 * 1024);
	assert_in_range(top_len, 1, 16 * 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_html),
		cmocka_unit_test(test_write_time),
		cmocka_unit_test_setup_teardown(test_status_of_nothing, open_all, close_all),
		cmocka_unit_test_setup_teardown(test_hostile_text, open_all, close_all),
		cmocka_unit_test_setup_teardown(test_sizes_are_bounded, open_all, close_all),
	};

	return cmocka_run_group_tests_name("admin", tests, NULL, NULL);
}
