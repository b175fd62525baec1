// SPDX-License-Identifier: GPL-2.0-only
// A file with the pid of the reader, under flock.
#include "ctl/datapath/reader_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"

int reader_lock(const struct instance *i, const char *name, const char *done, int *ret_fd,
		struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", WEIR_RUN_FOLDER, i->name);
	CLEANUP_FREE char *path = mem_printf("%s/%s", folder, name);
	int code = file_mkdirs(folder, 0755, err);
	CLEANUP_FD int fd = -1;
	char pid[16] = "";

	if (code)
		return code;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_system(err, errno, "cannot open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		if (pread(fd, pid, sizeof(pid) - 1, 0) < 0)
			pid[0] = '\0';
		err_refused(err, "instance '%s' is already %s (pid %s)", i->name, done, pid);
		return -EBUSY;
	}
	if (ftruncate(fd, 0) || dprintf(fd, "%d", getpid()) < 0)
		errno = 0; // the pid is only for the message above
	*ret_fd = TAKE_FD(fd);
	return 0;
}
