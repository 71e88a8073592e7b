/* SPDX-License-Identifier: MIT */
/*
 * file: reads a small file whole.
 *
 * Ownership  The caller frees ret_bytes with file_free, which wipes it (it may hold a token).
 * Errors     ERR_ABSENT, ERR_ACCESS, ERR_RANGE (larger than max, or not a regular file), ERR_IO, ERR_MEMORY.
 */
#ifndef POSTERN_BASE_FILE_H
#define POSTERN_BASE_FILE_H

#include "base/err.h"
#include "base/str.h"

MUST_USE enum err file_read(struct str *ret_bytes, const char *path_z, size_t max_bytes);
void file_free(struct str bytes);

#endif
