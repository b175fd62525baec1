// SPDX-License-Identifier: GPL-2.0-only
// Makes, reads and detaches pinned links.
#include "ctl/datapath/linked.h"

#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"

static char *folder_of(const char *instance_folder)
{
	return mem_printf("%s/links", instance_folder);
}

static char *path_of(const char *instance_folder, uint32_t number)
{
	return mem_printf("%s/links/%u", instance_folder, number);
}

static int pin_link(int fd, const char *folder, uint32_t number)
{
	CLEANUP_FREE char *links = folder_of(folder);
	CLEANUP_FREE char *path = path_of(folder, number);
	int code = file_mkdirs(links, 0700, NULL);

	return code ? code : bpf_obj_pin(fd, path);
}

int linked_attach(const char *folder, uint32_t number, int program, uint32_t ifindex,
		  enum iface_mode mode, bool *ret_made)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = mode == IFACE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	CLEANUP_FD int fd = bpf_link_create(program, (int)ifindex, BPF_XDP, &opts);
	int code;

	*ret_made = fd >= 0;
	if (fd < 0)
		return fd;
	if ((code = pin_link(fd, folder, number)))
		bpf_link_detach(fd); // at once; after a close the kernel detaches it a moment later
	return code;
}

static int describe(int fd, struct bpf_link_info *ret)
{
	uint32_t size = sizeof(*ret);

	*ret = (struct bpf_link_info){0};
	return bpf_obj_get_info_by_fd(fd, ret, &size) ? -errno : 0;
}

// *ret_fd: of the link; -1: it is not pinned.
static int open_link(const char *path, int *ret_fd, struct linked *ret, struct err *err)
{
	CLEANUP_FD int fd = bpf_obj_get(path);
	struct bpf_link_info info;
	int code = fd < 0 ? fd : describe(fd, &info);

	if (code && code != -ENOENT)
		return err_system(err, -code, "cannot read the link '%s'", path);
	*ret = (struct linked){0};
	*ret_fd = -1;
	if (code)
		return 0;
	*ret = (struct linked){
		.there = true,
		.ifindex = info.xdp.ifindex,
		.prog_id = info.prog_id,
	};
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int linked_read(const char *folder, uint32_t number, struct linked *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(folder, number);
	CLEANUP_FD int fd = -1;

	return open_link(path, &fd, ret, err);
}

// Detached before the file is removed: the kernel detaches a link that nothing holds only a moment
// later.
static int cut(const char *path, struct linked *ret, struct err *err)
{
	CLEANUP_FD int fd = -1;
	struct linked linked;
	int code = open_link(path, &fd, &linked, err);

	if (code)
		return code;
	if (linked.ifindex && (code = bpf_link_detach(fd)))
		return err_system(err, -code, "cannot detach the program from interface %u",
				  linked.ifindex);
	if (linked.there && unlink(path))
		return err_system(err, errno, "cannot remove '%s'", path);
	*ret = linked;
	return 0;
}

int linked_remove(const char *folder, uint32_t number, struct linked *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(folder, number);

	return cut(path, ret, err);
}

// Each file of the folder.
static int cut_all(const char *links, DIR *dir, size_t *ret_n, struct err *err)
{
	struct dirent *file;

	while ((file = readdir(dir))) {
		CLEANUP_FREE char *path = mem_printf("%s/%s", links, file->d_name);
		struct linked linked;
		int code;

		if (file->d_name[0] == '.')
			continue;
		if ((code = cut(path, &linked, err)))
			return code;
		*ret_n += linked.ifindex != 0;
	}
	return 0;
}

int linked_remove_all(const char *folder, size_t *ret_n, struct err *err)
{
	CLEANUP_FREE char *links = folder_of(folder);
	DIR *dir = opendir(links);
	int code;

	*ret_n = 0;
	if (!dir)
		return errno == ENOENT ? 0 : err_system(err, errno, "cannot read '%s'", links);
	code = cut_all(links, dir, ret_n, err);
	closedir(dir);
	return code;
}

uint32_t linked_holder(uint32_t prog_id)
{
	struct bpf_link_info info;
	uint32_t id = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		CLEANUP_FD int fd = bpf_link_get_fd_by_id(id);

		if (fd >= 0 && !describe(fd, &info) && info.type == BPF_LINK_TYPE_XDP &&
		    info.prog_id == prog_id)
			return id;
	}
	return 0;
}

bool linked_holds(const char *folder, uint32_t prog_id)
{
	struct linked linked;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!linked_read(folder, n, &linked, NULL) && linked.there &&
		    linked.prog_id == prog_id)
			return true;
	return false;
}
