/* SPDX-License-Identifier: MIT */
/*
 * err: failures of the world (no memory, port taken, file unreadable), as return values.
 *
 * Model      ERR_OK is 0. What a client did wrong is never one of these: that is a reason or a problem code.
 * Threads    Pure.
 */
#ifndef POSTERN_BASE_ERR_H
#define POSTERN_BASE_ERR_H

enum err {
	ERR_OK,
	ERR_MEMORY,
	ERR_SYNTAX,
	ERR_RANGE,
	ERR_ABSENT,
	ERR_EXISTS,
	ERR_FULL,
	ERR_TIMEOUT,
	ERR_IO,
	ERR_CLOSED,
	ERR_ACCESS,
	ERR_COUNT
};

#define MUST_USE __attribute__((warn_unused_result))

/* The error's name for a message: "no memory", "already in use". Static text. */
const char *err_text(enum err e);

/* The nearest enum err for an errno value. */
enum err err_from_errno(int errno_value);

#endif
