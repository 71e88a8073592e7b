/* SPDX-License-Identifier: MIT */
/*
 * Reading files whole: sizes at the limit, and what is no regular file.
 */
#include "base/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];

static int start(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/postern-file-XXXXXX",
		tmp != NULL && strlen(tmp) < 30 ? tmp : "/tmp");
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/f", folder);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void write_file(struct str bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.ptr, bytes.len), bytes.len);
	close(fd);
}

static void test_sizes(void **state)
{
	struct str got = STR("kept");

	(void)state;
	write_file(STR("a\0b\n"));
	assert_int_equal(file_read(&got, path, 3), ERR_RANGE);
	assert_int_equal(file_read(&got, path, 0), ERR_RANGE);
	assert_true(str_equal(got, STR("kept")));
	assert_int_equal(file_read(&got, path, 4), ERR_OK);
	assert_true(str_equal(got, STR("a\0b\n")));
	file_free(got);
	assert_int_equal(file_read(&got, path, 1 << 20), ERR_OK);
	assert_int_equal(got.len, 4);
	file_free(got);
	write_file(STR(""));
	assert_int_equal(file_read(&got, path, 0), ERR_OK);
	assert_int_equal(got.len, 0);
	file_free(got);
	file_free((struct str){NULL, 0});
}

/* stat says 0 bytes. */
static void test_size_unknown(void **state)
{
	struct str got;

	(void)state;
	assert_int_equal(file_read(&got, "/proc/self/stat", 1 << 16), ERR_OK);
	assert_true(got.len > 0);
	file_free(got);
}

static void test_absent(void **state)
{
	struct str got;

	(void)state;
	unlink(path);
	assert_int_equal(file_read(&got, path, 10), ERR_ABSENT);
	assert_int_equal(file_read(&got, "", 10), ERR_ABSENT);
}

static void test_not_regular(void **state)
{
	struct str got;

	(void)state;
	unlink(path);
	assert_int_equal(file_read(&got, folder, 10), ERR_RANGE);
	assert_int_equal(file_read(&got, "/dev/zero", 10), ERR_RANGE);
	/* Must not wait for a writer. */
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(file_read(&got, path, 10), ERR_RANGE);
	unlink(path);
}

static void test_access(void **state)
{
	struct str got;

	uid_t user = geteuid();
	enum err e;

	(void)state;
	write_file(STR("x"));
	assert_int_equal(chmod(path, 0), 0);
	/* root may read everything, so it becomes nobody for a moment. */
	if (user == 0)
		assert_int_equal(seteuid(65534), 0);
	e = file_read(&got, path, 10);
	if (user == 0)
		assert_int_equal(seteuid(user), 0);
	assert_int_equal(e, ERR_ACCESS);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_size_unknown),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_not_regular),
		cmocka_unit_test(test_access),
	};

	return cmocka_run_group_tests_name("file", tests, start, stop);
}
