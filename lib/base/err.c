/* SPDX-License-Identifier: MIT */
/*
 * Names and origins of the failures of the world. Many errno values fold into few: whoever handles an error
 * only ever asks whether to wait, to give up or to tell the operator, and the operator's message carries the
 * path or address.
 */
#include "base/err.h"

#include <errno.h>

static const char *const names[ERR_COUNT] = {
	[ERR_OK] = "no error",
	[ERR_MEMORY] = "no memory",
	[ERR_SYNTAX] = "not understood",
	[ERR_RANGE] = "outside the limits",
	[ERR_ABSENT] = "not there",
	[ERR_EXISTS] = "already in use",
	[ERR_FULL] = "no room left",
	[ERR_TIMEOUT] = "took too long",
	[ERR_IO] = "input/output error",
	[ERR_CLOSED] = "closed by the other side",
	[ERR_ACCESS] = "permission denied",
};

const char *err_text(enum err e)
{
	return (unsigned)e < ERR_COUNT ? names[e] : "unknown error";
}

enum err err_from_errno(int errno_value)
{
	switch (errno_value) {
	case 0: return ERR_OK;
	case ENOMEM:
	case ENOBUFS: return ERR_MEMORY;
	case EINVAL:
	case EILSEQ: return ERR_SYNTAX;
	case ERANGE:
	case E2BIG:
	case EFBIG:
	case EOVERFLOW:
	case EMSGSIZE:
	case ENAMETOOLONG: return ERR_RANGE;
	case ENOENT:
	case ENOTDIR:
	case ENXIO:
	case ENODEV:
	case EADDRNOTAVAIL: return ERR_ABSENT;
	case EEXIST:
	case EADDRINUSE: return ERR_EXISTS;
	case EMFILE:
	case ENFILE:
	case ENOSPC:
	case EDQUOT: return ERR_FULL;
	case EAGAIN:
	case ETIMEDOUT: return ERR_TIMEOUT;
	case EPIPE:
	case ECONNRESET:
	case ECONNREFUSED:
	case ECONNABORTED:
	case ENOTCONN:
	case ESHUTDOWN: return ERR_CLOSED;
	case EACCES:
	case EPERM:
	case EROFS: return ERR_ACCESS;
	default: return ERR_IO;
	}
}
