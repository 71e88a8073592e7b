/* SPDX-License-Identifier: MIT */
/*
 * Reads a whole file into one buffer of the largest size allowed, since untouched pages cost nothing: the
 * size that stat tells may be wrong a moment later (an editor that writes in place) and is 0 in /proc, and a
 * buffer that grows would leave pieces of a secret behind in freed memory. One byte more tells a file that
 * is too large from one that just fits. Opened without waiting: a pipe of that name must not stop the start,
 * and is refused as no regular file.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err read_whole(int fd, char *bytes, size_t max_bytes, size_t *ret_len)
{
	size_t len = 0;

	for (;;) {
		ssize_t n = read(fd, bytes + len, max_bytes + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_from_errno(errno);
		if (n == 0)
			break;
		len += (size_t)n;
		if (len > max_bytes)
			return ERR_RANGE;
	}
	*ret_len = len;
	return ERR_OK;
}

enum err file_read(struct str *ret_bytes, const char *path_z, size_t max_bytes)
{
	struct stat st;
	char *bytes = NULL;
	size_t len = 0;
	enum err e = ERR_OK;
	int fd = open(path_z, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	/* ENXIO: a socket, or a device without a driver. */
	if (fd < 0)
		return errno == ENXIO ? ERR_RANGE : err_from_errno(errno);
	if (fstat(fd, &st) != 0)
		e = err_from_errno(errno);
	else if (!S_ISREG(st.st_mode) || max_bytes == SIZE_MAX)
		e = ERR_RANGE;
	else if ((bytes = malloc(max_bytes + 1)) == NULL)
		e = ERR_MEMORY;
	if (e == ERR_OK)
		e = read_whole(fd, bytes, max_bytes, &len);
	close(fd);
	if (e == ERR_OK) {
		*ret_bytes = str_make(bytes, len);
		return ERR_OK;
	}
	if (bytes != NULL) {
		explicit_bzero(bytes, max_bytes + 1);
		free(bytes);
	}
	return e;
}

void file_free(struct str bytes)
{
	char *own = (char *)(uintptr_t)bytes.ptr;

	if (own == NULL)
		return;
	explicit_bzero(own, bytes.len);
	free(own);
}
