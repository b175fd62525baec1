// SPDX-License-Identifier: GPL-2.0-only
// By descriptors, so that a link put there in between does not lead out.
#include "ctl/base/file_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/mem.h"

static void close_folder(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static DIR *open_folder(int at, const char *name)
{
	CLEANUP_FD int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir;

	if (fd < 0)
		return NULL;
	dir = fdopendir(fd);
	if (dir)
		TAKE_FD(fd);
	return dir;
}

static int empty_folder(DIR *dir);

static int remove_folder(int at, const char *name)
{
	CLEANUP(close_folder) DIR *dir = open_folder(at, name);
	int code;

	if (!dir)
		return -errno;
	code = empty_folder(dir);
	if (code < 0)
		return code;
	return unlinkat(at, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

// Gone already is as good as removed.
static int remove_entry(int at, const char *name)
{
	int code;

	if (unlinkat(at, name, 0) == 0)
		return 0;
	code = -errno;
	if (code == -EISDIR)
		code = remove_folder(at, name);
	return code == -ENOENT ? 0 : code;
}

static int empty_folder(DIR *dir)
{
	struct dirent *file;
	int code;

	for (errno = 0; (file = readdir(dir)); errno = 0) {
		if (!strcmp(file->d_name, ".") || !strcmp(file->d_name, ".."))
			continue;
		code = remove_entry(dirfd(dir), file->d_name);
		if (code < 0)
			return code;
	}
	return -errno;
}

int file_remove_tree(const char *path, struct err *err)
{
	CLEANUP_FREE char *name = mem_strdup(path);
	size_t len = strlen(name);
	int code;

	// "link/" would be followed in spite of O_NOFOLLOW.
	while (len > 1 && name[len - 1] == '/')
		name[--len] = '\0';
	code = remove_folder(AT_FDCWD, name);
	if (code < 0 && code != -ENOENT)
		return err_system(err, code, "cannot remove '%s'", path);
	return 0;
}
