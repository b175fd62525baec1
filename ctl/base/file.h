// SPDX-License-Identifier: GPL-2.0-only
// Whole files: read with a bound, and replaced so that a reader sees the old content or the new
// one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ctl/base/err.h"

// Reads a regular file of at most max bytes; "-" reads standard input. The content is
// NUL-terminated after *ret_len bytes. 0 or -errno with err set (ERR_INPUT for a directory, a
// device, or too large; ERR_SYSTEM otherwise; ERR_INPUT with ENOENT/EACCES: the user named it).
int file_read(const char *path, size_t max, char **ret_text, size_t *ret_len, struct err *err);
// The same, and pipes, such as a shell's <(COMMAND); waits for the writer of a named pipe.
int file_read_stream(const char *path, size_t max, char **ret_text, size_t *ret_len,
		     struct err *err);

// The two halves of an atomic replacement. file_stage writes PATH.new and fsyncs it; file_commit
// renames it over PATH and fsyncs the folder. A killed process leaves PATH old or new, whole; a
// failed file_commit leaves PATH.new, so that it can be tried again.
int file_stage(const char *path, const char *text, size_t len, mode_t mode, struct err *err);
int file_commit(const char *path, struct err *err);
// Both at once; a failure leaves no PATH.new.
int file_replace(const char *path, const char *text, size_t len, mode_t mode, struct err *err);

// Writes all bytes to a descriptor: at its position, or at an offset. 0 or -errno.
int file_write(int fd, const void *bytes, size_t len);
int file_write_at(int fd, const void *bytes, size_t len, uint64_t at);
// Whether the other end of a pipe or socket has been closed: no process reads what is written.
bool file_is_unread(int fd);

// Can a file in the folder be written now? Tries it with a file that has no name, so nothing is
// left. 0, or -errno: -ENOSPC, -EDQUOT, -EROFS, -ENOENT. 0 too where the file system cannot tell.
int file_try_write(const char *folder);

// mkdir -p; folders that it makes get `mode`. 0 or -errno with err set.
int file_mkdirs(const char *path, mode_t mode, struct err *err);
bool file_exists(const char *path);
