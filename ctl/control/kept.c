// SPDX-License-Identifier: GPL-2.0-only
// Reads and replaces the files that commands without the lock keep.
#include "ctl/control/kept.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

#include "ctl/base/file.h"
#include "ctl/base/json.h"
#include "ctl/base/mem.h"

#define FILE_MAX (16u << 20)

struct json *kept_read(const char *path, uint32_t progs_id)
{
	CLEANUP_FREE char *text = NULL;
	CLEANUP_JSON struct json *j = NULL;
	size_t len;

	if (file_read(path, FILE_MAX, &text, &len, NULL))
		return NULL;
	j = json_parse(text, len, NULL, 0);
	return j && json_get_u64(j, "progs_id") == progs_id ? TAKE_PTR(j) : NULL;
}

// Two writers would share the file that is staged.
static int lock_folder(const char *path)
{
	CLEANUP_FREE char *folder = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
	CLEANUP_FD int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
		return -1;
	return TAKE_FD(fd);
}

void kept_write(const char *path, uint32_t progs_id, struct json *j)
{
	CLEANUP_FD int lock = lock_folder(path);
	CLEANUP_TEXT struct text text = {0};

	if (lock < 0)
		return;
	json_set(j, "progs_id", json_u64(progs_id));
	json_print(j, false, &text);
	file_replace(path, text.at, text.len, 0600, NULL);
}
