// SPDX-License-Identifier: GPL-2.0-only
#include "ctl/datapath/attach_remove.h"

#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/attach_query.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/hook.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/linked.h"
#include "ctl/datapath/netns.h"

// Without the device the program is gone too. If the kernel does not tell, the device is taken to
// exist.
static bool is_gone(uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	return !if_indextoname(ifindex, name) && (errno == ENXIO || errno == ENODEV);
}

// Detaches our program from the interface if it is there.
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

// ---- in all network namespaces ------------------------------------------------------------------

struct removal {
	uint32_t progs_id, prog_id; // prog_id: only on devices that show this program; 0: on all
	size_t n;                   // removed so far
	struct err *err;
};

static bool is_meant(const struct removal *r, uint32_t ifindex)
{
	struct attached_list there;

	return !r->prog_id ||
	       (!attach_query(ifindex, 0, &there, NULL) && there.link_prog_id == r->prog_id);
}

static int remove_from(struct removal *r, const struct if_nameindex *links)
{
	for (size_t n = 0; links && links[n].if_index; n++) {
		bool there = false;
		int code = is_meant(r, links[n].if_index)
				   ? remove_ours(links[n].if_index, r->progs_id, &there, r->err)
				   : 0;

		r->n += there;
		if (code)
			return code;
	}
	return 0;
}

// In the present namespace.
static int remove_here(void *ctx, const char *netns)
{
	struct if_nameindex *links = if_nameindex();
	int code = remove_from(ctx, links);

	if (links)
		if_freenameindex(links);
	return code;
}

static bool exists(uint32_t prog_id)
{
	CLEANUP_FD int fd = bpf_prog_get_fd_by_id(prog_id);

	return fd != -ENOENT;
}

// In all namespaces that can be entered. one: only until the program was there.
static int remove_anywhere(struct removal *r, bool one)
{
	int code = remove_here(r, "");

	return code || (one && r->n) ? code : netns_visit_others(remove_here, r);
}

// Without a link: from the device, or from where that has been moved to.
static int remove_unlinked(const struct instance *i, const struct iface *iface, bool *ret_was_there,
			   struct err *err)
{
	struct removal r = {
		.progs_id = i->progs_id,
		.prog_id = iface->shared ? iface->dispatcher_id : iface->prog_id,
		.err = err,
	};
	int code = remove_ours(iface->ifindex, i->progs_id, ret_was_there, err);

	if (code || *ret_was_there || !r.prog_id || !exists(r.prog_id))
		return code;
	code = remove_anywhere(&r, true);
	*ret_was_there = r.n > 0;
	return code;
}

static int clear_number(const struct instance *i, uint32_t number, const struct iface *iface,
			struct err *err)
{
	iface_table_clear(i->knobs, iface->ifindex, number);
	i->knobs->bypass_until[number] = 0;
	commit_unbring(i, number);
	i->knobs->station[number] = 0;
	return instance_set_iface(i, number, &(struct iface){0}, err);
}

int attach_remove(const struct instance *i, uint32_t number, bool *ret_was_there, struct err *err)
{
	struct linked linked = {0};
	struct iface iface;
	int code = instance_iface_stored(i, number, &iface, err);

	*ret_was_there = false;
	if (code || iface.state == IFACE_FREE)
		return code;
	iface.state = IFACE_DETACHING;
	if ((code = instance_set_iface(i, number, &iface, err)))
		return code;
	code = linked_remove(i->folder, number, &linked, err);
	*ret_was_there = linked.ifindex != 0;
	if (code || (!linked.there && (code = remove_unlinked(i, &iface, ret_was_there, err))))
		return code;
	return clear_number(i, number, &iface, err);
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
	struct removal r = {.err = err};
	size_t linked = 0;
	int code = linked_remove_all(folder, &linked, err);

	*ret_n = linked;
	if (code || (code = progs_of(folder, &r.progs_id, err)))
		return code == -ENOENT ? 0 : code;
	code = remove_anywhere(&r, false);
	*ret_n = linked + r.n;
	return code == -ENOENT ? 0 : code;
}
