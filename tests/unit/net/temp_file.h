// SPDX-License-Identifier: GPL-2.0-only
// A file with a given content for as long as a test needs it.
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct temp_file {
	char path[32];
};

static struct temp_file temp_file(const char *text)
{
	struct temp_file f = {.path = "/tmp/weir-test-XXXXXX"};
	int fd = mkstemp(f.path);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		abort();
	close(fd);
	return f;
}

static void temp_file_remove(struct temp_file *f)
{
	unlink(f->path);
}
