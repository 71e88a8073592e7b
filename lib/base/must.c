/* SPDX-License-Identifier: MIT */
/*
 * The one place where a broken promise of ours ends the program. It formats into a buffer of its own and
 * uses write(2): the heap may be what is broken, and stdio takes locks that the failing thread may hold
 * already.
 */
#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void must_fail(const char *condition, const char *file, int line)
{
	char text[512];
	int len = snprintf(text, sizeof(text), "postern: %s:%d: must(%s) failed\n", file, line, condition);

	if (len > 0) {
		size_t n = (size_t)len < sizeof(text) ? (size_t)len : sizeof(text) - 1;
		/* Nothing can be done about a failed write here. */
		ssize_t ignored = write(STDERR_FILENO, text, n);
		(void)ignored;
	}
	abort();
}
