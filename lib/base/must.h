/* SPDX-License-Identifier: MIT */
/*
 * must: what our own code promises itself.
 *
 * Model      must(cond) ends the program where going on would be worse than stopping; it stays on in
 *            release builds. Nothing a client can send may ever reach it.
 * Threads    Pure, until it fails.
 * Errors     none; a failed must() writes file, line and condition to stderr and aborts.
 */
#ifndef POSTERN_BASE_MUST_H
#define POSTERN_BASE_MUST_H

#define must(cond) ((cond) ? (void)0 : must_fail(#cond, __FILE__, __LINE__))

_Noreturn void must_fail(const char *condition, const char *file, int line);

#endif
