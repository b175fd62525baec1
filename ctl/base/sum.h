// SPDX-License-Identifier: GPL-2.0-only
// The checksum in the last line of the files that Weir writes and reads back.
//
// It finds bytes that a disk or a person has changed, above all those that still make sense. It
// does not protect against intent. A file without that line, from an older version, is accepted.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"

typedef char sum_text[17];

// 64 bits of FNV-1a in hex; one changed byte always changes it.
void sum_of(const char *text, size_t len, sum_text ret);

// Another sum, of eight bytes at a time: for a megabyte, where nothing but a difference counts.
void sum_of_words(const void *bytes, size_t len, sum_text ret);

// The text and a last line "sum HEX\n" over it. The caller frees it.
char *sum_seal(const char *text, size_t len, size_t *ret_len);
// Removes that line: *len becomes the length before it. A text without it, written manually, is not
// changed. 0, or -EBADMSG if the sum differs.
int sum_open(const char *text, size_t *len);

// Writes the file with that line, readable only by root, as file_replace does; creates its folder
// if necessary.
int sum_write(const char *path, const char *text, size_t len, struct err *err);
