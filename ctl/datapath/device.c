// SPDX-License-Identifier: GPL-2.0-only
// Finds the device of an interface: by its link, else where the program was attached, else everywhere.
#include "ctl/datapath/device.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/attach.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/linked.h"
#include "ctl/datapath/netns.h"

static bool name_of(uint32_t ifindex, char ret[IF_NAMESIZE])
{
	return ifindex && if_indextoname(ifindex, ret);
}

// ---- a program, wherever it is ------------------------------------------------------------------

struct search {
	uint32_t prog_id; // that the device shows
	struct device *ret;
	bool found;
};

static int shows(uint32_t ifindex, uint32_t prog_id, bool *ret)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);
	int code = bpf_xdp_query((int)ifindex, 0, &opts);

	*ret = !code && (opts.drv_prog_id == prog_id || opts.skb_prog_id == prog_id);
	return code;
}

static int search_here(void *ctx, const char *netns)
{
	struct search *s = ctx;
	struct if_nameindex *links = if_nameindex();
	bool found;

	for (size_t n = 0; !s->found && links && links[n].if_index; n++) {
		if (shows(links[n].if_index, s->prog_id, &found) || !found)
			continue;
		s->found = true;
		s->ret->row.ifindex = links[n].if_index;
		snprintf(s->ret->there, sizeof(s->ret->there), "%s", links[n].if_name);
		snprintf(s->ret->netns, sizeof(s->ret->netns), "%s", netns);
	}
	if (links)
		if_freenameindex(links);
	return s->found;
}

static bool exists(uint32_t prog_id)
{
	CLEANUP_FD int fd = bpf_prog_get_fd_by_id(prog_id);

	return fd != -ENOENT;
}

// ---- rows ---------------------------------------------------------------------------------------

// Is there a row of that device among the others?
static bool has_row(const struct instance *i, uint32_t ifindex, uint32_t except)
{
	uint32_t number = iface_table_find(i->knobs, ifindex);

	return number && number != except;
}

// Without our program nothing says for sure which device was meant: a device that has both index and name,
// else the one with the index, unless its name has gone to another device that no row knows: then it is the
// name that people mean.
static void refresh_open(const struct instance *i, uint32_t number, struct iface *row)
{
	char name[IF_NAMESIZE];
	uint32_t named = if_nametoindex(row->name);

	if (!name_of(row->ifindex, name) || (named && !has_row(i, named, number)))
		return;
	snprintf(row->name, sizeof(row->name), "%s", name);
}

static int is_ours_on(const struct instance *i, uint32_t ifindex, bool *ret, struct err *err)
{
	struct attached_list list;
	int code = attach_query(ifindex, i->progs_id, &list, err);

	*ret = false;
	for (size_t n = 0; !code && n < list.n; n++)
		*ret |= list.at[n].ours;
	return code;
}

static void refresh_unlinked(const struct instance *i, uint32_t number, struct iface *row)
{
	char name[IF_NAMESIZE];
	bool ours;

	if (!name_of(row->ifindex, name) || !strcmp(name, row->name) ||
	    is_ours_on(i, row->ifindex, &ours, NULL))
		return;
	if (ours)
		snprintf(row->name, sizeof(row->name), "%s", name);
	else
		refresh_open(i, number, row);
}

// Of a row whose link has a device: is that in this namespace? An index without a device is not.
static int refresh_linked(const struct linked *linked, struct iface *row, bool *ret_here)
{
	char name[IF_NAMESIZE];
	int code = 0;

	row->ifindex = linked->ifindex;
	*ret_here = false;
	if (name_of(linked->ifindex, name))
		code = shows(linked->ifindex, linked->prog_id, ret_here);
	else if (errno != ENXIO && errno != ENODEV)
		code = -errno;
	if (*ret_here)
		snprintf(row->name, sizeof(row->name), "%s", name);
	return code;
}

// A link that has lost its device says that the device went: whoever has its index now is another one.
void device_refresh(const struct instance *i, uint32_t number, struct iface *row)
{
	struct linked linked = {0};
	char name[IF_NAMESIZE];
	bool here;

	if (row->linked && linked_read(i->folder, number, &linked, NULL))
		return;
	if (linked.ifindex == row->ifindex && name_of(row->ifindex, name) &&
	    !strcmp(name, row->name))
		return; // in all likelihood the same one; device_read() asks for the program
	if (linked.ifindex)
		refresh_linked(&linked, row, &here);
	else if (!linked.there)
		refresh_unlinked(i, number, row);
}

static int read_linked(const struct linked *linked, struct device *ret, struct err *err)
{
	struct search search = {.prog_id = linked->prog_id, .ret = ret};
	struct iface row;
	bool here;
	int code = refresh_linked(linked, &ret->row, &here);

	if (code)
		return err_system(err, -code, "cannot ask for the XDP program of '%s'",
				  ret->row.name);
	ret->state = here ? DEVICE_HELD : DEVICE_MOVED;
	row = ret->row;
	if (!here)
		netns_visit_others(search_here, &search);
	ret->row = row;
	return 0;
}

static int state_without(const struct iface *row, enum device_state *ret, struct err *err)
{
	uint32_t named = if_nametoindex(row->name);

	if (!named && errno != ENODEV && errno != ENXIO)
		return err_system(err, errno, "cannot look for '%s'", row->name);
	*ret = !named ? DEVICE_GONE : named == row->ifindex ? DEVICE_OPEN : DEVICE_ANOTHER;
	return 0;
}

// The device may have come back under another index, or be elsewhere.
static bool find_moved(struct device *d)
{
	struct search s = {.prog_id = d->row.shared ? d->row.dispatcher_id : d->row.prog_id,
			   .ret = d};

	if (!s.prog_id || !exists(s.prog_id))
		return false;
	if (search_here(&s, ""))
		snprintf(d->row.name, sizeof(d->row.name), "%s", d->there);
	else
		netns_visit_others(search_here, &s);
	if (s.found)
		d->state = d->netns[0] ? DEVICE_MOVED : DEVICE_HELD;
	return s.found;
}

// cut: its link has no device any more.
static int read_unlinked(const struct instance *i, uint32_t number, bool cut, struct device *ret,
			 struct err *err)
{
	bool ours = false;
	int code;

	if (!cut)
		refresh_unlinked(i, number, &ret->row);
	if ((code = state_without(&ret->row, &ret->state, err)))
		return code;
	if (ret->state == DEVICE_OPEN && (code = is_ours_on(i, ret->row.ifindex, &ours, err)))
		return code;
	if (ours)
		ret->state = DEVICE_HELD;
	else if (!cut)
		find_moved(ret);
	return 0;
}

int device_read(const struct instance *i, uint32_t number, struct device *ret, struct err *err)
{
	struct device d = {.state = DEVICE_FREE};
	struct linked linked = {0};
	int code = instance_iface_stored(i, number, &d.row, err);

	if (!code && d.row.state != IFACE_FREE)
		code = linked_read(i->folder, number, &linked, err);
	if (!code && linked.ifindex)
		code = read_linked(&linked, &d, err);
	else if (!code && d.row.state != IFACE_FREE)
		code = read_unlinked(i, number, linked.there, &d, err);
	if (!code)
		*ret = d;
	return code;
}

// ---- the table ----------------------------------------------------------------------------------

static int refresh_row(const struct instance *i, uint32_t number, const struct iface *stored,
		       const struct iface *row, struct err *err)
{
	if (row->ifindex != stored->ifindex) {
		if (iface_table_find(i->knobs, stored->ifindex) == number)
			iface_table_set(i->knobs, stored->ifindex, 0);
		// In another namespace it may have the index of one that is here, which then has it.
		if (!iface_table_find(i->knobs, row->ifindex) &&
		    iface_table_set(i->knobs, row->ifindex, number))
			return err_refused(err, "no room in the interface table for '%s'",
					   row->name);
	}
	return instance_set_iface(i, number, row, err);
}

int device_sync(const struct instance *i, struct err *err)
{
	int code = 0;

	for (uint32_t n = 1; !code && n < WEIR_IFACES; n++) {
		struct iface stored;
		struct device d;

		code = instance_iface_stored(i, n, &stored, err);
		if (code || stored.state == IFACE_FREE || device_read(i, n, &d, NULL))
			continue;
		if (d.row.ifindex != stored.ifindex || strcmp(d.row.name, stored.name) != 0)
			code = refresh_row(i, n, &stored, &d.row, err);
	}
	return code;
}

const char *device_state_name(enum device_state state)
{
	static const char *const names[] = {"free", "held", "moved", "open", "another", "gone"};

	return names[state];
}

bool device_is_open(const struct device *d)
{
	return d->state == DEVICE_OPEN || d->state == DEVICE_ANOTHER;
}
