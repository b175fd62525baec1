// SPDX-License-Identifier: GPL-2.0-only
// Finds the device of an interface: by its link, else where the program was attached, else
// everywhere.
#include "ctl/datapath/device.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/attach_query.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/linked.h"
#include "ctl/datapath/netns.h"

static bool name_of(uint32_t ifindex, char ret[IF_NAMESIZE])
{
	return ifindex && if_indextoname(ifindex, ret);
}

// ---- programs in any namespace ------------------------------------------------------------------

struct device_search {
	uint32_t prog_id; // that the device shows
	struct device *ret;
	bool found;
};

static int shows(uint32_t ifindex, uint32_t prog_id, bool *ret)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);
	int code = bpf_xdp_query((int)ifindex, 0, &opts);

	*ret = false;
	if (code)
		return code;
	*ret = opts.drv_prog_id == prog_id || opts.skb_prog_id == prog_id;
	return 0;
}

static int search_here(void *ctx, const char *netns)
{
	struct device_search *s = ctx;
	struct if_nameindex *links = if_nameindex();
	bool found;

	for (size_t n = 0; !s->found && links && links[n].if_index; n++) {
		if (shows(links[n].if_index, s->prog_id, &found) || !found)
			continue;
		s->found = true;
		s->ret->iface.ifindex = links[n].if_index;
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

// ---- an element of the table --------------------------------------------------------------------

// Has the device another number?
static bool has_number(const struct instance *i, uint32_t ifindex, uint32_t except)
{
	uint32_t number = iface_table_find(i->knobs, ifindex);

	return number && number != except;
}

// Without our program it is not certain which device was meant: the one with both index and name,
// else the one with the index, unless its name belongs to another device that is not in the table.
// Then that is the device that people mean.
static void refresh_open(const struct instance *i, uint32_t number, struct iface *iface)
{
	char name[IF_NAMESIZE];
	uint32_t named = if_nametoindex(iface->name);

	if (!name_of(iface->ifindex, name) || (named && !has_number(i, named, number)))
		return;
	snprintf(iface->name, sizeof(iface->name), "%s", name);
}

static int is_ours_on(const struct instance *i, uint32_t ifindex, bool *ret, struct err *err)
{
	struct attached_list list;
	int code = attach_query(ifindex, i->progs_id, &list, err);

	*ret = false;
	if (code)
		return code;
	*ret = attached_ours(&list) != NULL;
	return 0;
}

static void refresh_unlinked(const struct instance *i, uint32_t number, struct iface *iface)
{
	char name[IF_NAMESIZE];
	bool ours;

	if (!name_of(iface->ifindex, name) || !strcmp(name, iface->name) ||
	    is_ours_on(i, iface->ifindex, &ours, NULL))
		return;
	if (ours)
		snprintf(iface->name, sizeof(iface->name), "%s", name);
	else
		refresh_open(i, number, iface);
}

// The link has a device: is that in this namespace? If the index belongs to no device, it is not.
static int refresh_linked(const struct linked *linked, struct iface *iface, bool *ret_here)
{
	char name[IF_NAMESIZE];
	int code = 0;

	iface->ifindex = linked->ifindex;
	*ret_here = false;
	if (name_of(linked->ifindex, name))
		code = shows(linked->ifindex, linked->prog_id, ret_here);
	else if (errno != ENXIO && errno != ENODEV)
		code = -errno;
	if (*ret_here)
		snprintf(iface->name, sizeof(iface->name), "%s", name);
	return code;
}

// A link without a device: the device no longer exists, and another one has its index.
// Updates a stored element of the table with the present name and ifindex of the device. Values
// that the kernel does not report stay unchanged.
static void device_refresh(const struct instance *i, uint32_t number, struct iface *iface)
{
	struct linked linked = {0};
	char name[IF_NAMESIZE];
	bool here;

	if (iface->linked && linked_read(i->folder, number, &linked, NULL))
		return;
	if (linked.ifindex == iface->ifindex && name_of(iface->ifindex, name) &&
	    !strcmp(name, iface->name))
		return; // very likely the same one; device_read() asks for the program
	if (linked.ifindex)
		refresh_linked(&linked, iface, &here);
	else if (!linked.there)
		refresh_unlinked(i, number, iface);
}

static int read_linked(const struct linked *linked, struct device *ret, struct err *err)
{
	struct device_search search = {.prog_id = linked->prog_id, .ret = ret};
	struct iface iface;
	bool here;
	int code = refresh_linked(linked, &ret->iface, &here);

	if (code)
		return err_system(err, -code, "cannot read the XDP program of '%s'",
				  ret->iface.name);
	ret->state = here ? DEVICE_HELD : DEVICE_MOVED;
	iface = ret->iface;
	if (!here)
		netns_visit_others(search_here, &search);
	ret->iface = iface;
	return 0;
}

static int state_without(const struct iface *iface, enum device_state *ret, struct err *err)
{
	uint32_t named = if_nametoindex(iface->name);

	if (!named && errno != ENODEV && errno != ENXIO)
		return err_system(err, errno, "cannot look up the interface '%s'", iface->name);
	*ret = !named ? DEVICE_GONE : named == iface->ifindex ? DEVICE_OPEN : DEVICE_ANOTHER;
	return 0;
}

// The device may be back under another index, or in another namespace.
static bool find_moved(struct device *d)
{
	struct device_search s = {
		.prog_id = d->iface.shared ? d->iface.dispatcher_id : d->iface.prog_id, .ret = d};

	if (!s.prog_id || !exists(s.prog_id))
		return false;
	if (search_here(&s, ""))
		snprintf(d->iface.name, sizeof(d->iface.name), "%s", d->there);
	else
		netns_visit_others(search_here, &s);
	if (s.found)
		d->state = d->netns[0] ? DEVICE_MOVED : DEVICE_HELD;
	return s.found;
}

// cut: its link no longer has a device.
static int read_unlinked(const struct instance *i, uint32_t number, bool cut, struct device *ret,
			 struct err *err)
{
	bool ours = false;
	int code;

	if (!cut)
		refresh_unlinked(i, number, &ret->iface);
	if ((code = state_without(&ret->iface, &ret->state, err)))
		return code;
	if (ret->state == DEVICE_OPEN && (code = is_ours_on(i, ret->iface.ifindex, &ours, err)))
		return code;
	if (ours)
		ret->state = DEVICE_HELD;
	else if (!cut)
		find_moved(ret);
	return 0;
}

static int read_used(const struct instance *i, uint32_t number, struct device *ret, struct err *err)
{
	struct linked linked;
	int code = linked_read(i->folder, number, &linked, err);

	if (code)
		return code;
	return linked.ifindex ? read_linked(&linked, ret, err)
			      : read_unlinked(i, number, linked.there, ret, err);
}

int device_read(const struct instance *i, uint32_t number, struct device *ret, struct err *err)
{
	struct device d = {.state = DEVICE_FREE};
	int code = instance_iface_stored(i, number, &d.iface, err);

	if (code || (d.iface.state != IFACE_FREE && (code = read_used(i, number, &d, err))))
		return code;
	*ret = d;
	return 0;
}

// ---- the table ----------------------------------------------------------------------------------

struct device_view {
	const struct device_shown *shown;
	size_t n;
	struct iface stored[WEIR_IFACES];
};

static int compare_index(const void *a, const void *b)
{
	const struct device_shown *x = a, *y = b;

	return x->ifindex < y->ifindex ? -1 : x->ifindex > y->ifindex;
}

// A device that was moved may have the index of another one that is here.
static bool has_index_alone(const struct device_view *v, uint32_t number)
{
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (n != number && v->stored[n].state != IFACE_FREE &&
		    v->stored[n].ifindex == v->stored[number].ifindex)
			return false;
	return true;
}

// Only libxdp reports the programs under its dispatcher.
static bool is_as_stored(const struct device_view *v, uint32_t number)
{
	const struct iface *iface = &v->stored[number];
	const struct device_shown key = {.ifindex = iface->ifindex}, *shown;

	if (iface->state != IFACE_ATTACHED || iface->shared || !iface->prog_id || !v->n)
		return false;
	shown = bsearch(&key, v->shown, v->n, sizeof(key), compare_index);
	return shown && shown->prog_id == iface->prog_id && !strcmp(shown->name, iface->name) &&
	       has_index_alone(v, number);
}

int device_read_all(const struct instance *i, const struct device_shown *shown, size_t n,
		    struct device ret[WEIR_IFACES], struct err *ret_why, struct err *err)
{
	struct device_view v = {.shown = shown, .n = n};
	int code = instance_ifaces_stored(i, v.stored, err);

	if (code)
		return code;
	for (uint32_t number = 0; number < WEIR_IFACES; number++) {
		struct device d = {.iface = v.stored[number]};

		if (!number || d.iface.state == IFACE_FREE) {
			d.state = DEVICE_FREE;
		} else if (is_as_stored(&v, number)) {
			d.state = DEVICE_HELD;
		} else if (read_used(i, number, &d, ret_why->kind ? NULL : ret_why)) {
			d = (struct device){.state = DEVICE_UNKNOWN, .iface = v.stored[number]};
		}
		ret[number] = d;
	}
	return 0;
}

static int refresh_table(const struct instance *i, uint32_t number, const struct iface *stored,
			 const struct iface *iface, struct err *err)
{
	if (iface->ifindex != stored->ifindex &&
	    iface_table_find(i->knobs, stored->ifindex) == number)
		iface_table_set(i->knobs, stored->ifindex, 0);
	// In another namespace it may have the index of a device that is here; then that keeps the
	// index.
	if (!iface_table_find(i->knobs, iface->ifindex) &&
	    iface_table_set(i->knobs, iface->ifindex, number))
		return err_refused(err, "no room in the interface table for '%s'", iface->name);
	return instance_set_iface(i, number, iface, err);
}

// A device with the same index in another namespace had its element in the table, and was detached.
static bool is_unknown(const struct instance *i, const struct device *d)
{
	return (d->state == DEVICE_HELD || d->state == DEVICE_MOVED) &&
	       d->iface.state == IFACE_ATTACHED && !iface_table_find(i->knobs, d->iface.ifindex);
}

int device_sync(const struct instance *i, const struct device devices[WEIR_IFACES], struct err *err)
{
	struct iface stored[WEIR_IFACES];
	int code = instance_ifaces_stored(i, stored, err);

	if (code)
		return code;
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		const struct device *d = &devices[n];

		if (d->state == DEVICE_FREE || d->state == DEVICE_UNKNOWN)
			continue;
		if ((d->iface.ifindex != stored[n].ifindex ||
		     strcmp(d->iface.name, stored[n].name) != 0 || is_unknown(i, d)) &&
		    (code = refresh_table(i, n, &stored[n], &d->iface, err)))
			return code;
	}
	return 0;
}

const char *device_state_name(enum device_state state)
{
	static const char *const names[] = {
		[DEVICE_FREE] = "free",       [DEVICE_HELD] = "held",
		[DEVICE_MOVED] = "moved",     [DEVICE_OPEN] = "open",
		[DEVICE_ANOTHER] = "another", [DEVICE_GONE] = "gone",
		[DEVICE_UNKNOWN] = "unknown",
	};

	return names[state];
}

bool device_is_open(const struct device *d)
{
	return d->state == DEVICE_OPEN || d->state == DEVICE_ANOTHER;
}

// ---- by number in the interface table -----------------------------------------------------------

int instance_iface(const struct instance *i, uint32_t number, struct iface *ret, struct err *err)
{
	struct iface iface;
	int code = instance_iface_stored(i, number, &iface, err);

	if (code)
		return code;
	if (iface.state != IFACE_FREE)
		device_refresh(i, number, &iface);
	*ret = iface;
	return 0;
}

bool instance_next_iface(const struct instance *i, uint32_t *n, struct iface *ret)
{
	while (++*n < WEIR_IFACES)
		if (!instance_iface(i, *n, ret, NULL) && ret->state != IFACE_FREE)
			return true;
	return false;
}

int device_find_held(const struct instance *i, uint32_t ifindex, uint32_t *ret, struct err *err)
{
	uint32_t found = 0;
	struct iface iface;
	struct device d;

	for (uint32_t n = 1; !found && n < WEIR_IFACES; n++) {
		int code = instance_iface(i, n, &iface, err);

		if (code)
			return code;
		if (iface.state != IFACE_ATTACHED || iface.ifindex != ifindex)
			continue;
		if ((code = device_read(i, n, &d, err)))
			return code;
		if (d.state == DEVICE_HELD && d.iface.ifindex == ifindex)
			found = n;
	}
	*ret = found;
	return 0;
}

int instance_find_iface(const struct instance *i, const char *name, uint32_t *ret, struct err *err)
{
	uint32_t ifindex = if_nametoindex(name), found = 0;
	struct iface all[WEIR_IFACES];
	int code = instance_ifaces_stored(i, all, err);

	if (code)
		return code;
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		struct iface *iface = &all[n];

		if (iface->state == IFACE_FREE)
			continue;
		device_refresh(i, n, iface);
		if (!strcmp(iface->name, name) && (!found || iface->ifindex == ifindex))
			found = n;
	}
	*ret = found;
	return 0;
}
