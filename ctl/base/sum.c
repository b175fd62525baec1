// SPDX-License-Identifier: GPL-2.0-only
// The checksum (FNV-1a), and the line that contains it.
#include "ctl/base/sum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"

#define WORD       "sum "
#define LINE_BYTES (sizeof(WORD) - 1 + sizeof(sum_text)) // the newline takes the NUL's place

#define BASIS 0xcbf29ce484222325ull
#define PRIME 0x100000001b3ull

static uint64_t add_bytes(uint64_t hash, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)bytes[i]) * PRIME;
	return hash;
}

static void print(uint64_t hash, sum_text ret)
{
	snprintf(ret, sizeof(sum_text), "%016" PRIx64, hash);
}

void sum_of(const char *text, size_t len, sum_text ret)
{
	print(add_bytes(BASIS, text, len), ret);
}

// A product moves bits upwards only: the shift brings the high ones back.
void sum_of_words(const void *bytes, size_t len, sum_text ret)
{
	const char *at = bytes, *end = at + len;
	uint64_t hash = BASIS, word;

	for (; (size_t)(end - at) >= sizeof(word); at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash ^ word) * PRIME;
		hash ^= hash >> 32;
	}
	print(add_bytes(hash, at, (size_t)(end - at)), ret);
}

char *sum_seal(const char *text, size_t len, size_t *ret_len)
{
	char *sealed = mem_zalloc(len + LINE_BYTES + 1, 1);
	sum_text sum;

	sum_of(text, len, sum);
	memcpy(sealed, text, len);
	*ret_len = len + (size_t)snprintf(sealed + len, LINE_BYTES + 1, WORD "%s\n", sum);
	return sealed;
}

int sum_open(const char *text, size_t *len)
{
	size_t before = *len < LINE_BYTES ? 0 : *len - LINE_BYTES;
	const char *line = text + before;
	sum_text sum;

	if (*len < LINE_BYTES || (before && line[-1] != '\n') ||
	    memcmp(line, WORD, sizeof(WORD) - 1) != 0)
		return 0;
	sum_of(text, before, sum);
	if (memcmp(line + sizeof(WORD) - 1, sum, sizeof(sum) - 1) != 0 || text[*len - 1] != '\n')
		return -EBADMSG;
	*len = before;
	return 0;
}

int sum_write(const char *path, const char *text, size_t len, struct err *err)
{
	CLEANUP_FREE char *folder = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
	CLEANUP_FREE char *sealed = sum_seal(text, len, &len);
	int code = file_mkdirs(folder, 0700, err);

	return code ? code : file_replace(path, sealed, len, 0600, err);
}
