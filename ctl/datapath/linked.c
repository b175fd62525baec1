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

int linked_attach(const char *folder, uint32_t number, int program, uint32_t ifindex,
		  enum iface_mode mode, bool *ret_made)
{
	CLEANUP_FREE char *links = folder_of(folder);
	CLEANUP_FREE char *path = path_of(folder, number);
	LIBBPF_OPTS(bpf_link_create_opts, opts,
		    .flags = mode == IFACE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	CLEANUP_FD int fd = bpf_link_create(program, (int)ifindex, BPF_XDP, &opts);
	int code;

	*ret_made = fd >= 0;
	if (fd < 0)
		return fd;
	code = file_mkdirs(links, 0700, NULL);
	if (!code)
		code = bpf_obj_pin(fd, path);
	if (code) // closing would do, but only a moment later
		bpf_link_detach(fd);
	return code;
}

static int describe(int fd, struct bpf_link_info *ret)
{
	uint32_t size = sizeof(*ret);

	*ret = (struct bpf_link_info){0};
	return bpf_obj_get_info_by_fd(fd, ret, &size) ? -errno : 0;
}

// *ret_fd: of the link, -1 without a pin.
static int open_pin(const char *path, int *ret_fd, struct linked *ret, struct err *err)
{
	CLEANUP_FD int fd = bpf_obj_get(path);
	struct bpf_link_info info;
	int code = fd < 0 ? fd : describe(fd, &info);

	if (code && code != -ENOENT)
		return err_system(err, -code, "cannot read the link '%s'", path);
	*ret = (struct linked){0};
	if (!code)
		*ret = (struct linked){true, info.xdp.ifindex, info.prog_id};
	*ret_fd = code ? -1 : TAKE_FD(fd);
	return 0;
}

int linked_read(const char *folder, uint32_t number, struct linked *ret, struct err *err)
{
	CLEANUP_FREE char *path = path_of(folder, number);
	CLEANUP_FD int fd = -1;

	return open_pin(path, &fd, ret, err);
}

// Cut first: the kernel lets go of a link without pins only a moment later.
static int cut(const char *path, struct linked *ret, struct err *err)
{
	CLEANUP_FD int fd = -1;
	struct linked linked;
	int code = open_pin(path, &fd, &linked, err);

	if (code)
		return code;
	if (linked.ifindex && (code = bpf_link_detach(fd)))
		return err_system(err, -code, "cannot take the program off interface %u",
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

int linked_remove_all(const char *folder, size_t *ret_n, struct err *err)
{
	CLEANUP_FREE char *links = folder_of(folder);
	DIR *dir = opendir(links);
	struct dirent *file;
	int code = 0;

	*ret_n = 0;
	if (!dir)
		return errno == ENOENT ? 0 : err_system(err, errno, "cannot read '%s'", links);
	while (!code && (file = readdir(dir))) {
		CLEANUP_FREE char *path = mem_printf("%s/%s", links, file->d_name);
		struct linked linked = {0};

		if (file->d_name[0] == '.')
			continue;
		code = cut(path, &linked, err);
		*ret_n += linked.ifindex != 0;
	}
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
