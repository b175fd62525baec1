// SPDX-License-Identifier: GPL-2.0-only
// Detaches our program: by its link, or from its device, in whichever network namespace that is now.
#include "ctl/datapath/attach.h"

#include <errno.h>
#include <net/if.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/hook.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/linked.h"
#include "ctl/datapath/netns.h"

// A device that is gone took the program with it; if that cannot be told, it is still there.
static bool is_gone(uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	return !if_indextoname(ifindex, name) && (errno == ENXIO || errno == ENODEV);
}

// Takes our program off the interface if it is there.
static int remove_ours(uint32_t ifindex, uint32_t progs_id, bool *ret_was_there, struct err *err)
{
	struct attached_list there;
	const struct attached *ours;
	int code;

	*ret_was_there = false;
	if ((code = attach_query(ifindex, progs_id, &there, err)))
		return is_gone(ifindex) ? 0 : code;
	if (!(ours = attached_ours(&there)))
		return 0;
	*ret_was_there = true;
	return hook_remove(ifindex, &there, ours->prog_id, err);
}

struct sweep {
	uint32_t progs_id, prog_id; // prog_id: only ours on devices that show this program; 0: all
	size_t n;
	struct err *err;
};

static bool is_meant(const struct sweep *s, uint32_t ifindex)
{
	struct attached_list there;

	return !s->prog_id ||
	       (!attach_query(ifindex, 0, &there, NULL) && there.link_prog_id == s->prog_id);
}

// In the namespace that the caller is in.
static int sweep_here(void *ctx, const char *netns)
{
	struct sweep *s = ctx;
	struct if_nameindex *links = if_nameindex();
	int code = 0;

	(void)netns;
	for (size_t n = 0; !code && links && links[n].if_index; n++) {
		bool there = false;

		if (is_meant(s, links[n].if_index))
			code = remove_ours(links[n].if_index, s->progs_id, &there, s->err);
		s->n += there;
	}
	if (links)
		if_freenameindex(links);
	return code;
}

static bool exists(uint32_t prog_id)
{
	CLEANUP_FD int fd = bpf_prog_get_fd_by_id(prog_id);

	return fd != -ENOENT;
}

// Without a link: from the device, or from where that has been moved to.
static int remove_unlinked(const struct instance *i, const struct iface *row, bool *ret_was_there,
			   struct err *err)
{
	struct sweep s = {.progs_id = i->progs_id,
			  .prog_id = row->shared ? row->dispatcher_id : row->prog_id,
			  .err = err};
	int code = remove_ours(row->ifindex, i->progs_id, ret_was_there, err);

	if (code || *ret_was_there || !s.prog_id || !exists(s.prog_id))
		return code;
	code = sweep_here(&s, "");
	if (!code && !s.n)
		code = netns_visit_others(sweep_here, &s);
	*ret_was_there = s.n > 0;
	return code;
}

static int clear_number(const struct instance *i, uint32_t number, const struct iface *row,
			struct err *err)
{
	if (iface_table_find(i->knobs, row->ifindex) == number)
		iface_table_set(i->knobs, row->ifindex, 0);
	i->knobs->bypass_until[number] = 0;
	commit_unbring(i, number);
	i->knobs->station[number] = 0;
	return instance_set_iface(i, number, &(struct iface){0}, err);
}

int attach_remove(const struct instance *i, uint32_t number, bool *ret_was_there, struct err *err)
{
	struct linked linked = {0};
	struct iface row;
	int code = instance_iface_stored(i, number, &row, err);

	*ret_was_there = false;
	if (code || row.state == IFACE_FREE)
		return code;
	row.state = IFACE_DETACHING;
	code = instance_set_iface(i, number, &row, err);
	if (!code)
		code = linked_remove(i->folder, number, &linked, err);
	*ret_was_there = linked.ifindex != 0;
	if (!code && !linked.there)
		code = remove_unlinked(i, &row, ret_was_there, err);
	return code ? code : clear_number(i, number, &row, err);
}

static int progs_of(const char *folder, uint32_t *ret, struct err *err)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	CLEANUP_FD int fd = -1;
	int code = bpffs_get(folder, WEIR_PROGS, &fd, err);

	if (code)
		return code;
	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return err_system(err, errno, "cannot read the program array in '%s'", folder);
	*ret = info.id;
	return 0;
}

int attach_remove_all(const char *folder, size_t *ret_n, struct err *err)
{
	struct sweep s = {.err = err};
	size_t linked = 0;
	int code = linked_remove_all(folder, &linked, err);

	if (!code)
		code = progs_of(folder, &s.progs_id, err);
	if (!code)
		code = sweep_here(&s, "");
	if (!code)
		code = netns_visit_others(sweep_here, &s);
	*ret_n = linked + s.n;
	return code == -ENOENT ? 0 : code;
}
