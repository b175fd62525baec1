// SPDX-License-Identifier: GPL-2.0-only
// Finds out which programs are on an interface, and which one is ours.
#include "ctl/datapath/attach_query.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/confined.h"

#define ROOT_NAME "weir_root"
#define MAPS_MAX  64
#define FD_FIRST  3 // libbpf uses no lower one

static bool uses_map(const struct bpf_prog_info *info, const uint32_t *maps, uint32_t map_id)
{
	for (uint32_t m = 0; m < info->nr_map_ids && m < MAPS_MAX; m++)
		if (maps[m] == map_id)
			return true;
	return false;
}

const struct attached *attached_ours(const struct attached_list *list)
{
	for (size_t n = 0; n < list->n; n++)
		if (list->at[n].ours)
			return &list->at[n];
	return NULL;
}

// It is not an error if the program no longer exists. One that cannot be read might be ours.
static int describe_program(uint32_t id, uint32_t progs_id, struct attached *ret)
{
	uint32_t maps[MAPS_MAX] = {0};
	struct bpf_prog_info info = {.nr_map_ids = MAPS_MAX, .map_ids = (uint64_t)(uintptr_t)maps};
	uint32_t size = sizeof(info);
	CLEANUP_FD int fd = bpf_prog_get_fd_by_id(id);

	*ret = (struct attached){.prog_id = id};
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return -errno;
	snprintf(ret->name, sizeof(ret->name), "%s", info.name);
	// Only the root program uses the program array. Its name may be missing: libbpf omits names
	// if its probe for them failed.
	ret->ours = progs_id && (!info.name[0] || !strcmp(info.name, ROOT_NAME)) &&
		    uses_map(&info, maps, progs_id);
	return 0;
}

static int add_program(uint32_t id, uint32_t progs_id, struct attached_list *list)
{
	return id && list->n < ATTACHED_MAX ? describe_program(id, progs_id, &list->at[list->n++])
					    : 0;
}

// Under the dispatcher: libxdp knows the programs.
static int add_shared(struct xdp_multiprog *mp, uint32_t progs_id, struct attached_list *list)
{
	struct xdp_program *prog = NULL;
	int code;

	while ((prog = xdp_multiprog__next_prog(prog, mp)))
		if ((code = add_program(xdp_program__id(prog), progs_id, list)))
			return code;
	list->shared = list->n > 0;
	if (list->shared)
		return 0;
	// libxdp takes a program whose BTF it cannot read for a dispatcher without programs. A
	// dispatcher always has one, so this is the only program; ours can be recognised.
	code = add_program(list->link_prog_id, progs_id, list);
	return code || attached_ours(list) ? code : -EIO;
}

// The number that the next descriptor of this process gets.
static int next_fd(void)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, FD_FIRST);

	fd_close(fd);
	return fd;
}

// libxdp 1.3 leaves the first descriptor open that it opens, which is `first`, and a process that
// queries often would have no descriptor left. This process has one thread: no other descriptor can
// have got that number in the meantime.
static void close_forgotten(int first)
{
	if (first >= 0 && fcntl(first, F_GETFD) >= 0)
		close(first);
}

// The errors of libxdp distinguish an interface without a dispatcher from one that it could not
// read.
static int add_by_libxdp(uint32_t ifindex, uint32_t progs_id, struct attached_list *list)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex((int)ifindex);
	int code = (int)libxdp_get_error(mp);

	if (code)
		return code == -ENOENT || code == -EOPNOTSUPP
			       ? add_program(list->link_prog_id, progs_id, list)
			       : code;
	code = xdp_multiprog__is_legacy(mp) ? add_program(list->link_prog_id, progs_id, list)
					    : add_shared(mp, progs_id, list);
	xdp_multiprog__close(mp);
	return code;
}

static int add_all(uint32_t ifindex, uint32_t progs_id, struct attached_list *list)
{
	int first = next_fd();
	int code = add_by_libxdp(ifindex, progs_id, list);

	close_forgotten(first);
	return code;
}

static int query(uint32_t ifindex, uint32_t progs_id, struct attached_list *ret)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);
	int code = bpf_xdp_query((int)ifindex, 0, &opts);

	if (code)
		return code;
	*ret = (struct attached_list){
		.link_prog_id = opts.drv_prog_id ? opts.drv_prog_id : opts.skb_prog_id,
		.mode = opts.drv_prog_id ? IFACE_NATIVE : IFACE_GENERIC,
	};
	return ret->link_prog_id ? add_all(ifindex, progs_id, ret) : 0;
}

int attach_query(uint32_t ifindex, uint32_t progs_id, struct attached_list *ret, struct err *err)
{
	int code = query(ifindex, progs_id, ret);

	if (!code)
		return 0;
	err_system(err, -code, "cannot read the XDP programs of interface %u", ifindex);
	confined_explain(err, CONFINED_ATTACH);
	return code;
}
