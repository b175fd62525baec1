// SPDX-License-Identifier: GPL-2.0-only
// Reads a whole file into memory.
#include "file.h"

#include <stdio.h>
#include <stdlib.h>

static char *read_all(FILE *file, size_t *ret_len)
{
	size_t cap = 65536, len = 0;
	char *text = malloc(cap);

	while (text) {
		size_t got = fread(text + len, 1, cap - len - 1, file);
		char *larger;

		if (got == 0)
			break;
		len += got;
		if (len + 1 < cap)
			continue;
		cap *= 2;
		larger = realloc(text, cap);
		if (!larger)
			free(text);
		text = larger;
	}
	if (text && ferror(file)) {
		free(text);
		return NULL;
	}
	if (text)
		text[len] = '\0';
	*ret_len = len;
	return text;
}

char *file_read(const char *path, size_t *ret_len)
{
	FILE *file = fopen(path, "re");
	char *text;

	if (!file)
		return NULL;
	text = read_all(file, ret_len);
	fclose(file);
	return text;
}
