// SPDX-License-Identifier: GPL-2.0-only
// Attaching: behind libxdp's dispatcher where this instance can stand there, else alone with libbpf;
// native first, generic where the driver cannot.
#include "ctl/datapath/attach.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/entry.h"
#include "ctl/datapath/hook.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/pins.h"
#include "ctl/datapath/probe.h"
#include "ctl/datapath/sharing.h"

#define ENTRY_NAME "weir_entry"
#define MAPS_MAX   64

static bool uses_map(const struct bpf_prog_info *info, const uint32_t *maps, uint32_t map_id)
{
	for (uint32_t m = 0; m < info->nr_map_ids && m < MAPS_MAX; m++)
		if (maps[m] == map_id)
			return true;
	return false;
}

static const struct attached *find_ours(const struct attached_list *list)
{
	for (size_t n = 0; n < list->n; n++)
		if (list->at[n].ours)
			return &list->at[n];
	return NULL;
}

// A program that went meanwhile is no failure; one that cannot be looked at might be ours.
static int describe_program(uint32_t id, uint32_t slots_id, struct attached *ret)
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
	// Only entry uses the slots. Its name may be missing: libbpf leaves it out where its probe failed.
	ret->ours = slots_id && (!info.name[0] || !strcmp(info.name, ENTRY_NAME)) &&
		    uses_map(&info, maps, slots_id);
	return 0;
}

static int add_program(uint32_t id, uint32_t slots_id, struct attached_list *list)
{
	return id && list->n < ATTACHED_MAX ? describe_program(id, slots_id, &list->at[list->n++])
					    : 0;
}

// Behind the dispatcher: libxdp knows the programs.
static int add_shared(struct xdp_multiprog *mp, uint32_t slots_id, struct attached_list *list)
{
	struct xdp_program *prog = NULL;
	int code = 0;

	while (!code && (prog = xdp_multiprog__next_prog(prog, mp)))
		code = add_program(xdp_program__id(prog), slots_id, list);
	list->shared = list->n > 0;
	if (code || list->shared)
		return code;
	// libxdp takes a program whose BTF it cannot read for a dispatcher without programs, which there
	// never is. Ours by itself can be told all the same.
	code = add_program(list->link_prog_id, slots_id, list);
	return code || find_ours(list) ? code : -EIO;
}

// libxdp says why it does not know the interface's program as a dispatcher: that it is none, or that it
// could not look.
static int add_all(uint32_t ifindex, uint32_t slots_id, struct attached_list *list)
{
	struct xdp_multiprog *mp = xdp_multiprog__get_from_ifindex((int)ifindex);
	int code = (int)libxdp_get_error(mp);

	if (code)
		return code == -ENOENT || code == -EOPNOTSUPP
			       ? add_program(list->link_prog_id, slots_id, list)
			       : code;
	code = xdp_multiprog__is_legacy(mp) ? add_program(list->link_prog_id, slots_id, list)
					    : add_shared(mp, slots_id, list);
	xdp_multiprog__close(mp);
	return code;
}

int attach_query(uint32_t ifindex, uint32_t slots_id, struct attached_list *ret, struct err *err)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, opts);
	int code = bpf_xdp_query((int)ifindex, 0, &opts);

	if (!code) {
		*ret = (struct attached_list){
			.link_prog_id = opts.drv_prog_id ? opts.drv_prog_id : opts.skb_prog_id,
			.mode = opts.drv_prog_id ? IFACE_NATIVE : IFACE_GENERIC,
		};
		code = ret->link_prog_id ? add_all(ifindex, slots_id, ret) : 0;
	}
	return code ? err_system(err, -code, "cannot ask for the XDP programs of interface %u",
				 ifindex)
		    : 0;
}

static int find_on(const struct instance *i, uint32_t ifindex, bool *ret, struct err *err)
{
	struct attached_list list;
	int code = attach_query(ifindex, i->slots_id, &list, err);

	if (!code)
		*ret = find_ours(&list) != NULL;
	return code;
}

bool attach_is_there(const struct instance *i, const struct iface *row)
{
	bool there = false;

	return !find_on(i, row->ifindex, &there, NULL) && there;
}

static int attach_shared(const struct instance *i, uint32_t ifindex, enum iface_mode mode,
			 struct err *err)
{
	CLEANUP(entry_cleanup) struct entry *entry = NULL;
	struct xdp_program *program;
	int code = sharing_check(&i->meta, err);

	if (!code)
		code = entry_open(i, &entry, err);
	if (!code)
		code = entry_program(entry, &program, err);
	if (code)
		return code;
	code = hook_attach_shared(program, ifindex, mode);
	return code ? err_system(err, -code, "libxdp cannot attach") : 0;
}

static int attach_alone(const struct instance *i, uint32_t ifindex, enum iface_mode mode,
			struct err *err)
{
	CLEANUP(entry_cleanup) struct entry *entry = NULL;
	int fd, code = entry_open(i, &entry, err);

	if (code)
		return code;
	if ((fd = entry_load(entry)) < 0)
		return err_system(err, -fd, "the kernel refuses the entry program");
	code = hook_attach_alone(fd, ifindex, mode);
	return code ? err_system(err, -code, "the kernel refuses to attach") : 0;
}

// why: what came of the attempt to share.
static int occupied(const struct instance *i, const char *name, const struct attached_list *there,
		    const struct err *why, struct err *err)
{
	bool lonely = !there->shared && !sharing_check(&i->meta, NULL);

	return hook_occupied(name, there,
			     lonely ? "it was attached without libxdp's dispatcher" : why->text,
			     err);
}

static void notice_alone(const char *name, const struct err *why, struct attach_result *ret)
{
	size_t len = strlen(ret->notice);

	snprintf(ret->notice + len, sizeof(ret->notice) - len,
		 "%s'%s' is not shared with other XDP programs: %.200s", len ? "; " : "", name,
		 why->text);
}

static int attach_in(const struct instance *i, const char *name, uint32_t ifindex,
		     const char *driver, enum iface_mode mode, struct attach_result *ret,
		     struct err *err)
{
	struct attached_list there;
	struct err why = {0};
	int code = attach_shared(i, ifindex, mode, &why);

	if (!code)
		return 0;
	if ((code = attach_query(ifindex, i->slots_id, &there, err)))
		return code;
	if (there.link_prog_id)
		return occupied(i, name, &there, &why, err);
	probe_kernel_said();
	code = attach_alone(i, ifindex, mode, err);
	if (code)
		return hook_attach_failed(name, driver, mode, code, err);
	notice_alone(name, &why, ret);
	return 0;
}

// Native, and generic where that may be. The reason for generic goes into the notice.
static int attach_by_mode(const struct instance *i, const char *name, uint32_t ifindex,
			  const char *driver, enum attach_mode mode, const struct err *unfit,
			  struct attach_result *ret, struct err *err)
{
	struct err native = {0};
	int code;

	if (mode != ATTACH_GENERIC) {
		if (unfit)
			native = *unfit;
		code = unfit ? -unfit->code
			     : attach_in(i, name, ifindex, driver, IFACE_NATIVE, ret, &native);
		if (code && (mode == ATTACH_NATIVE || native.kind == ERR_REFUSED)) {
			*err = native;
			return code;
		}
		if (!code)
			return 0;
		snprintf(ret->notice, sizeof(ret->notice),
			 "generic mode, slower: %.200s%s%.300s%s; the stack may merge packets "
			 "before Weir sees them: ethtool -K %.16s gro off",
			 native.text, native.hint[0] ? " (" : "", native.hint,
			 native.hint[0] ? ")" : "", name);
	}
	return attach_in(i, name, ifindex, driver, IFACE_GENERIC, ret, err);
}

static uint32_t free_number(const struct instance *i)
{
	struct iface row;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!instance_iface(i, n, &row, NULL) && row.state == IFACE_FREE)
			return n;
	return 0;
}

static int set_number(const struct instance *i, uint32_t number, const struct iface *row,
		      struct err *err)
{
	if (iface_table_set(i->knobs, row->ifindex, number))
		return err_refused(err, "no room in the interface table for '%s'", row->name);
	return instance_set_iface(i, number, row, err);
}

static void clear_slot(const struct instance *i, uint32_t number, uint32_t ifindex)
{
	if (iface_table_find(i->knobs, ifindex) == number)
		iface_table_set(i->knobs, ifindex, 0);
}

static int clear_number(const struct instance *i, uint32_t number, const struct iface *row,
			struct err *err)
{
	clear_slot(i, number, row->ifindex);
	i->knobs->bypass_until[number] = 0;
	commit_unbring(i, number);
	i->knobs->station[number] = 0;
	return instance_set_iface(i, number, &(struct iface){0}, err);
}

static int finish(const struct instance *i, struct iface *row, struct attach_result *ret,
		  struct err *err)
{
	struct attached_list there;
	const struct attached *ours;
	int code = attach_query(row->ifindex, i->slots_id, &there, err);

	if (code)
		return code;
	if (!(ours = find_ours(&there)))
		return err_system(err, ENOENT, "the program vanished from '%s' at once", row->name);
	row->state = IFACE_ATTACHED;
	row->mode = there.mode;
	row->shared = there.shared;
	row->prog_id = ours->prog_id;
	row->dispatcher_id = there.shared ? there.link_prog_id : 0;
	ret->mode = there.mode;
	ret->shared = there.shared;
	return set_number(i, ret->number, row, err);
}

static bool already(const struct iface *row, uint32_t ifindex, bool there,
		    struct attach_result *ret)
{
	if (row->state != IFACE_ATTACHED || row->ifindex != ifindex || !there)
		return false;
	ret->mode = row->mode;
	ret->shared = row->shared;
	return true;
}

// Attached already, but in the other mode than the one that is asked for.
static int check_mode(const char *name, enum attach_mode wanted, enum iface_mode have,
		      struct err *err)
{
	if (wanted == ATTACH_AUTO || (wanted == ATTACH_NATIVE) == (have == IFACE_NATIVE))
		return 0;
	err_refused(err, "'%s' is attached in %s mode already", name, hook_mode_name(have));
	err_hint(err, "weir detach %s first", name);
	return -EBUSY;
}

static int give_number(const struct instance *i, const char *name, struct attach_result *ret,
		       struct iface *row, struct err *err)
{
	int code = instance_find_iface(i, name, &ret->number, err);

	if (code)
		return code;
	if (!ret->number)
		ret->number = free_number(i);
	if (!ret->number)
		return err_refused(err, "instance '%s' has %d interfaces already, the limit",
				   i->name, WEIR_IFACES - 1);
	return instance_iface(i, ret->number, row, err);
}

int attach_reserve(const struct instance *i, const char *name, uint32_t ifindex,
		   uint32_t *ret_number, struct err *err)
{
	struct attach_result result = {0};
	struct iface row;
	int code = give_number(i, name, &result, &row, err);

	if (code)
		return code;
	*ret_number = result.number;
	if (row.state != IFACE_FREE)
		return 0;
	if ((code = counters_clear(i, result.number, err)))
		return code;
	row = (struct iface){.ifindex = ifindex, .state = IFACE_ATTACHING};
	snprintf(row.name, sizeof(row.name), "%s", name);
	return set_number(i, result.number, &row, err);
}

int attach_interface(const struct instance *i, const char *name, uint32_t ifindex,
		     const char *driver, enum attach_mode mode, const struct err *unfit,
		     struct attach_result *ret, struct err *err)
{
	struct attach_result result = {0};
	struct iface row;
	bool there = false;
	int code = give_number(i, name, &result, &row, err);

	// Not to know is a reason to leave everything as it is: the program that is there does its work.
	if (!code)
		code = find_on(i, ifindex, &there, err);
	if (code)
		return code;
	if (already(&row, ifindex, there, &result)) {
		if ((code = check_mode(name, mode, result.mode, err)))
			return code;
		*ret = result;
		return 0;
	}
	clear_slot(i, result.number, row.ifindex); // of a device that went, under the same name
	row = (struct iface){
		.ifindex = ifindex,
		.state = IFACE_ATTACHING,
		.attached_s = (uint64_t)time(NULL),
	};
	snprintf(row.name, sizeof(row.name), "%s", name);
	if ((code = set_number(i, result.number, &row, err)))
		return code;
	code = there ? 0 : attach_by_mode(i, name, ifindex, driver, mode, unfit, &result, err);
	if (!code)
		code = finish(i, &row, &result, err);
	if (code) {
		attach_remove(i, result.number, &there, NULL);
		return code;
	}
	result.changed = true;
	*ret = result;
	return 0;
}

// A device that is gone took the program with it; if that cannot be told, it is still there.
static bool is_gone(uint32_t ifindex)
{
	char name[IF_NAMESIZE];

	return !if_indextoname(ifindex, name) && (errno == ENXIO || errno == ENODEV);
}

// Takes our program off the interface if it is there.
static int remove_ours(uint32_t ifindex, uint32_t slots_id, bool *ret_was_there, struct err *err)
{
	struct attached_list there;
	const struct attached *ours;
	int code;

	*ret_was_there = false;
	if ((code = attach_query(ifindex, slots_id, &there, err)))
		return is_gone(ifindex) ? 0 : code;
	if (!(ours = find_ours(&there)))
		return 0;
	*ret_was_there = true;
	return hook_remove(ifindex, &there, ours->prog_id, err);
}

int attach_remove(const struct instance *i, uint32_t number, bool *ret_was_there, struct err *err)
{
	struct iface row;
	int code = instance_iface(i, number, &row, err);

	*ret_was_there = false;
	if (code || row.state == IFACE_FREE)
		return code;
	row.state = IFACE_DETACHING;
	code = instance_set_iface(i, number, &row, err);
	if (!code)
		code = remove_ours(row.ifindex, i->slots_id, ret_was_there, err);
	return code ? code : clear_number(i, number, &row, err);
}

int attach_remove_all(const char *folder, size_t *ret_n, struct err *err)
{
	struct bpf_map_info info = {0};
	uint32_t size = sizeof(info);
	CLEANUP_FD int fd = -1;
	struct if_nameindex *links;
	int code = pins_get(folder, WEIR_MAP_SLOTS, &fd, err);

	*ret_n = 0;
	if (code)
		return code == -ENOENT ? 0 : code;
	if (bpf_obj_get_info_by_fd(fd, &info, &size))
		return err_system(err, errno, "cannot read the slots in '%s'", folder);
	links = if_nameindex();
	for (size_t n = 0; !code && links && links[n].if_index; n++) {
		bool there;

		code = remove_ours(links[n].if_index, info.id, &there, err);
		*ret_n += there;
	}
	if (links)
		if_freenameindex(links);
	return code;
}
