/* SPDX-License-Identifier: MIT */
/*
 * The bump arena: alignment from any block, exhaustion at the last byte, products that wrap.
 */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_alignment(void **state)
{
	_Alignas(16) char block[256];

	(void)state;
	for (size_t skew = 0; skew < 16; skew++) {
		struct arena a;
		char *end = block + skew + 200;

		arena_init(&a, block + skew, 200);
		for (size_t n = 1; n < 20; n++) {
			char *p = arena_alloc(&a, n);

			if (p == NULL)
				break;
			assert_int_equal((uintptr_t)p % 16, 0);
			assert_true(p >= block + skew && p + n <= end);
			memset(p, 0xaa, n);
		}
		assert_true(a.overflow);
	}
}

static void test_full(void **state)
{
	_Alignas(16) char block[64];
	struct arena a;

	(void)state;
	arena_init(&a, block, sizeof(block));
	assert_non_null(arena_alloc(&a, 33));
	assert_non_null(arena_alloc(&a, 16));
	assert_non_null(arena_alloc(&a, 0));
	assert_false(a.overflow);
	assert_null(arena_alloc(&a, 1));
	assert_true(a.overflow);
	/* What would fit does not go in any more, until reset. */
	assert_null(arena_alloc(&a, 0));
	arena_reset(&a);
	assert_false(a.overflow);
	assert_ptr_equal(arena_alloc(&a, 64), block);
	arena_reset(&a);
	assert_null(arena_alloc(&a, SIZE_MAX));
	arena_reset(&a);
	assert_null(arena_alloc(&a, 65));
}

static void test_array(void **state)
{
	_Alignas(16) char block[64];
	struct arena a;

	(void)state;
	arena_init(&a, block, sizeof(block));
	assert_non_null(arena_array(&a, 4, 8));
	assert_non_null(arena_array(&a, 0, SIZE_MAX));
	assert_false(a.overflow);
	assert_null(arena_array(&a, SIZE_MAX / 2 + 1, 2));
	assert_true(a.overflow);
}

static void test_release(void **state)
{
	_Alignas(16) char block[64];
	struct arena a;
	char *p;

	(void)state;
	arena_init(&a, block, sizeof(block));
	assert_non_null(arena_alloc(&a, 16));
	p = arena_alloc(&a, 16);
	assert_non_null(arena_alloc(&a, 16));
	arena_release(&a, p);
	assert_ptr_equal(arena_alloc(&a, 48), p);
	assert_false(a.overflow);
}

static void test_copy(void **state)
{
	_Alignas(16) char block[32];
	char from[] = "a\0b";
	struct arena a;
	struct str copy;

	(void)state;
	arena_init(&a, block, sizeof(block));
	copy = arena_copy(&a, str_make(from, 3));
	from[0] = 'x';
	assert_true(str_equal(copy, STR("a\0b")));
	assert_int_equal(arena_copy(&a, (struct str){NULL, 0}).len, 0);
	assert_false(a.overflow);
	copy = arena_copy(&a, STR("seventeen bytes.."));
	assert_null(copy.ptr);
	assert_int_equal(copy.len, 0);
	assert_true(a.overflow);
}

static void test_tiny_blocks(void **state)
{
	_Alignas(16) char block[32];
	struct arena a;

	(void)state;
	for (size_t size = 0; size < 16; size++) {
		arena_init(&a, block + 1, size);
		assert_null(arena_alloc(&a, 1));
	}
	arena_init(&a, NULL, 0);
	assert_null(arena_alloc(&a, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alignment),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_array),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_tiny_blocks),
	};

	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
