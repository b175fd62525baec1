// SPDX-License-Identifier: GPL-2.0-only
// Finds the mount of cgroup 2 in /proc/self/mountinfo.
#include "ctl/datapath/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/base/file.h"
#include "ctl/base/lines.h"
#include "ctl/base/mem.h"

#define MOUNTINFO     "/proc/self/mountinfo"
#define MOUNTINFO_MAX (16u << 20)

// A field of a line ends at a blank.
static struct word take_field(const char **line, const char *end)
{
	struct word f = {.at = *line};
	const char *blank = memchr(f.at, ' ', (size_t)(end - f.at));

	f.len = (size_t)((blank ? blank : end) - f.at);
	*line = blank ? blank + 1 : end;
	return f;
}

static bool is_octal(const char *at, size_t len)
{
	return len >= 3 && at[0] >= '0' && at[0] <= '3' && at[1] >= '0' && at[1] <= '7' &&
	       at[2] >= '0' && at[2] <= '7';
}

// The kernel writes blanks, tabs, newlines and backslashes of a path as "\040".
static char *unescape(struct word f)
{
	char *path = mem_zalloc(f.len + 1, 1), *to = path;

	for (size_t i = 0; i < f.len; i++) {
		if (f.at[i] == '\\' && is_octal(f.at + i + 1, f.len - i - 1)) {
			*to++ = (char)((f.at[i + 1] - '0') << 6 | (f.at[i + 2] - '0') << 3 |
				       (f.at[i + 3] - '0'));
			i += 3;
		} else {
			*to++ = f.at[i];
		}
	}
	return path;
}

// Is it a line of cgroup 2? "36 25 0:29 ROOT PATH OPTIONS [TAGS…] - cgroup2 SOURCE OPTIONS"
static bool read_line(const char *line, const char *end, struct word *ret_root,
		      struct word *ret_path)
{
	for (int skipped = 0; skipped < 3; skipped++)
		take_field(&line, end);
	*ret_root = take_field(&line, end);
	*ret_path = take_field(&line, end);
	while (line < end)
		if (word_is(take_field(&line, end), "-"))
			return word_is(take_field(&line, end), "cgroup2");
	return false;
}

char *cgroup_mount(const char *mountinfo)
{
	struct word part = {0}, root, path;
	const char *next;

	for (const char *line = mountinfo; *line; line = next) {
		const char *end = strchrnul(line, '\n');

		next = *end ? end + 1 : end;
		if (!read_line(line, end, &root, &path) || !path.len)
			continue;
		if (word_is(root, "/"))
			return unescape(path);
		if (!part.len)
			part = path;
	}
	return part.len ? unescape(part) : NULL;
}

static int not_mounted(struct err *err)
{
	err_stated(err, ENOENT, "cgroup 2 is not mounted");
	return err_hint(err, "mount -t cgroup2 none /sys/fs/cgroup/unified, or boot with "
			     "systemd.unified_cgroup_hierarchy=1");
}

int cgroup_open_root(int *ret_fd, uint64_t *ret_id, struct err *err)
{
	CLEANUP_FREE char *text = NULL, *path = NULL;
	CLEANUP_FD int fd = -1;
	struct stat st;
	size_t len;
	int code = file_read(MOUNTINFO, MOUNTINFO_MAX, &text, &len, err);

	if (code)
		return code;
	if (!(path = cgroup_mount(text)))
		return not_mounted(err);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return err_system(err, errno, "cannot open '%s'", path);
	*ret_id = st.st_ino; // the inode is the number, also of the links
	*ret_fd = TAKE_FD(fd);
	return 0;
}
