// SPDX-License-Identifier: GPL-2.0-only
// Paths, mount and look-ups in the BPF file system.
#include "ctl/datapath/bpffs.h"

#include <dirent.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/num.h"
#include "ctl/base/vec.h"
#include "ctl/datapath/confined.h"
#include "ctl/datapath/netns.h"
#include "ctl/datapath/probe.h"

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_name(const char *name)
{
	if (!is_letter(name[0]) || strlen(name) >= WEIR_NAME_MAX)
		return false;
	for (const char *c = name; *c; c++)
		if (!is_letter(*c) && !(*c >= '0' && *c <= '9') && *c != '-' && *c != '_')
			return false;
	return true;
}

int bpffs_check_name(const char *name, struct err *err)
{
	if (is_name(name))
		return 0;
	err_input(err, "'%s' is not an instance name", name);
	return err_hint(err, "a letter, then letters, digits, '-' or '_', at most %d in all",
			WEIR_NAME_MAX - 1);
}

static bool is_bpffs(const char *path)
{
	struct statfs fs;

	return !statfs(path, &fs) && (unsigned long)fs.f_type == BPF_FS_MAGIC;
}

static bool is_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool same_inode(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && is_inode(&x, &y);
}

static int refuse_private_mount(struct err *err)
{
	CLEANUP_FREE char *name = NULL;
	struct stat st = {0};

	if (!stat("/proc/self/ns/net", &st))
		name = netns_name(st.st_ino);
	err_refused(err, "this shell has its own mount namespace (ip netns exec creates one): maps "
			 "that are pinned here are lost when the command ends");
	return err_hint(err, "use weir -N %s", name ? name : "NETNS");
}

// The parent of a process; 0: not visible.
static uint32_t parent_of(uint32_t pid)
{
	CLEANUP_FREE char *path = mem_printf("/proc/%u/stat", pid);
	CLEANUP_FREE char *text = NULL;
	const char *field;
	uint32_t parent;
	size_t len;

	// "PID (COMMAND) STATE PARENT …": the command may contain any character, so its last ')'
	// counts.
	if (file_read(path, 4096, &text, &len, NULL) || !(field = strrchr(text, ')')) ||
	    strlen(field) < 5)
		return 0;
	field += 4;
	return num_parse_u32(field, strcspn(field, " "), 1, UINT32_MAX, &parent) ? 0 : parent;
}

// Does this process, in the mount namespace `own`, see another BPF file system than an ancestor in
// another one?
static bool cut_off_from(uint32_t pid, const struct stat *own)
{
	CLEANUP_FREE char *ns = mem_printf("/proc/%u/ns/mnt", pid);
	CLEANUP_FREE char *bpffs = NULL;
	struct stat st;

	if (stat(ns, &st) || is_inode(&st, own))
		return false;
	bpffs = mem_printf("/proc/%u/root%s", pid, BPFFS_MOUNT);
	return !access(bpffs, F_OK) && !same_inode(BPFFS_MOUNT, bpffs);
}

static bool in_private_mount(void)
{
	uint32_t pid = (uint32_t)getpid();
	struct stat own, init;

	if (stat("/proc/self/ns/mnt", &own) ||
	    (!stat("/proc/1/ns/mnt", &init) && is_inode(&init, &own)))
		return false;
	while ((pid = parent_of(pid)))
		if (cut_off_from(pid, &own))
			return true;
	return false;
}

// A kernel that has instances has loaded programs: it need not load another one to show that it
// can.
int bpffs_ready(struct err *err)
{
	bool used = is_bpffs(BPFFS_MOUNT) && file_exists(BPFFS_ROOT);
	int code = used ? probe_machine(err) : probe_kernel(err);

	if (code)
		return code;
	if (in_private_mount())
		return refuse_private_mount(err);
	if (is_bpffs(BPFFS_MOUNT))
		return 0;
	if (confined_pids())
		return err_refused(err,
				   "this container has no BPF file system of the host: start it "
				   "with -v %s:%s -v %s:%s -v %s:%s",
				   BPFFS_MOUNT, BPFFS_MOUNT, WEIR_RUN_FOLDER, WEIR_RUN_FOLDER,
				   WEIR_STATE_FOLDER, WEIR_STATE_FOLDER);
	if (mount("bpf", BPFFS_MOUNT, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return err_system(err, errno, "cannot mount the BPF file system at '%s'",
				  BPFFS_MOUNT);
	return 0;
}

int bpffs_list(char ***ret, size_t *ret_n, struct err *err)
{
	VEC(char *) names = {0};
	DIR *dir = opendir(BPFFS_ROOT);
	struct dirent *file;

	if (!dir && errno != ENOENT)
		return err_system(err, errno, "cannot read '%s'", BPFFS_ROOT);
	while (dir && (file = readdir(dir)))
		if (is_name(file->d_name))
			vec_push(&names, mem_strdup(file->d_name));
	if (dir)
		closedir(dir);
	*ret = names.at;
	*ret_n = names.n;
	return 0;
}

int bpffs_get(const char *folder, const char *name, int *ret_fd, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s", folder, name);
	int fd = bpf_obj_get(path);

	if (fd == -ENOENT)
		return -ENOENT;
	if (fd < 0)
		return err_system(err, -fd, "cannot open '%s'", path);
	*ret_fd = fd;
	return 0;
}

int bpffs_put(const char *folder, const char *name, int fd, struct err *err)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s", folder, name);
	int code = bpf_obj_pin(fd, path);

	return code ? err_system(err, -code, "cannot pin '%s'", path) : 0;
}

bool bpffs_exist(const char *instance)
{
	CLEANUP_FREE char *path = mem_printf("%s/%s", BPFFS_ROOT, instance);

	// Without the privilege to look, the next step names that.
	return file_exists(path) || errno == EACCES;
}
