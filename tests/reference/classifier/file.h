// SPDX-License-Identifier: GPL-2.0-only
// Reads a whole file into memory.
#ifndef REF_FILE_H
#define REF_FILE_H

#include <stddef.h>

/* The content, terminated by '\0', to be freed; NULL with errno set. */
char *file_read(const char *path, size_t *ret_len);

#endif
