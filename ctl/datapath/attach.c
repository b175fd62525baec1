// SPDX-License-Identifier: GPL-2.0-only
// Attaches the root program: through libxdp or held by a pinned link, in native mode or else in generic mode.
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
#include "ctl/datapath/device.h"
#include "ctl/datapath/hook.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/instance_ifaces.h"
#include "ctl/datapath/linked.h"
#include "ctl/datapath/probe.h"
#include "ctl/datapath/root.h"
#include "ctl/datapath/sharing.h"

static int find_on(const struct instance *i, uint32_t ifindex, bool *ret, struct err *err)
{
	struct attached_list list;
	int code = attach_query(ifindex, i->progs_id, &list, err);

	if (!code)
		*ret = attached_ours(&list) != NULL;
	return code;
}

static int attach_shared(const struct instance *i, uint32_t ifindex, enum iface_mode mode,
			 struct err *err)
{
	CLEANUP(root_cleanup) struct root_program *root = NULL;
	struct xdp_program *program;
	int code = sharing_check(&i->meta, err);

	if (!code)
		code = root_open(i, &root, err);
	if (!code)
		code = root_program(root, &program, err);
	if (code)
		return code;
	code = hook_attach_shared(program, ifindex, mode);
	return code ? err_system(err, -code, "libxdp cannot attach") : 0;
}

// Where no link can be made, without one: then the kernel says in words what is wrong, or it works.
static int hook_root(const struct instance *i, uint32_t number, int fd, uint32_t ifindex,
		     enum iface_mode mode, struct err *err)
{
	bool made;
	int code = linked_attach(i->folder, number, fd, ifindex, mode, &made);

	if (code && made)
		return err_system(err, -code, "cannot pin the link to the interface");
	if (code)
		code = hook_attach_alone(fd, ifindex, mode);
	return code ? err_system(err, -code, "the kernel refuses to attach") : 0;
}

static int attach_alone(const struct instance *i, uint32_t number, uint32_t ifindex,
			enum iface_mode mode, struct err *err)
{
	CLEANUP(root_cleanup) struct root_program *root = NULL;
	int fd, code = root_open(i, &root, err);

	if (code)
		return code;
	if ((fd = root_load(root)) < 0)
		return err_system(err, -fd, "the kernel refuses the root program");
	return hook_root(i, number, fd, ifindex, mode, err);
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
	if ((code = attach_query(ifindex, i->progs_id, &there, err)))
		return code;
	if (there.link_prog_id)
		return occupied(i, name, &there, &why, err);
	probe_kernel_said();
	code = attach_alone(i, ret->number, ifindex, mode, err);
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

static int finish(const struct instance *i, struct iface *row, struct attach_result *ret,
		  struct err *err)
{
	struct attached_list there;
	struct linked linked;
	const struct attached *ours;
	int code = attach_query(row->ifindex, i->progs_id, &there, err);

	if (!code)
		code = linked_read(i->folder, ret->number, &linked, err);
	if (code)
		return code;
	if (!(ours = attached_ours(&there)))
		return err_system(err, ENOENT, "the program vanished from '%s' at once", row->name);
	row->state = IFACE_ATTACHED;
	row->mode = there.mode;
	row->shared = there.shared;
	row->prog_id = ours->prog_id;
	row->dispatcher_id = there.shared ? there.link_prog_id : 0;
	row->linked = linked.there;
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

// Is this the number of the device, whatever its name was, or of a former device of that name?
static bool is_row_of(const struct device *d, const char *name, uint32_t ifindex, bool *ret_itself)
{
	bool here = d->state == DEVICE_HELD || d->state == DEVICE_OPEN;
	bool former = d->state == DEVICE_ANOTHER || d->state == DEVICE_GONE;

	*ret_itself = here && d->row.ifindex == ifindex;
	return *ret_itself || (former && !strcmp(d->row.name, name));
}

static int find_number(const struct instance *i, const char *name, uint32_t ifindex, uint32_t *ret,
		       struct err *err)
{
	bool itself = false;
	int code = 0;

	*ret = 0;
	for (uint32_t n = 1; !code && !itself && n < WEIR_IFACES; n++) {
		struct device d;
		struct iface row;

		code = instance_iface(i, n, &row, err);
		if (code || row.state == IFACE_FREE ||
		    (row.ifindex != ifindex && strcmp(row.name, name) != 0))
			continue;
		code = device_read(i, n, &d, err);
		if (!code && is_row_of(&d, name, ifindex, &itself) && (itself || !*ret))
			*ret = n;
	}
	return code;
}

static uint32_t free_number(const struct instance *i)
{
	struct iface row;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!instance_iface_stored(i, n, &row, NULL) && row.state == IFACE_FREE)
			return n;
	return 0;
}

// A row that a policy brought for a device that is gone, and made free.
static uint32_t forgotten_number(const struct instance *i)
{
	struct device d;
	bool there;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!device_read(i, n, &d, NULL) && d.state == DEVICE_GONE && d.row.generation &&
		    !attach_remove(i, n, &there, NULL))
			return n;
	return 0;
}

static int give_number(const struct instance *i, const char *name, uint32_t ifindex,
		       struct attach_result *ret, struct iface *row, struct err *err)
{
	int code = find_number(i, name, ifindex, &ret->number, err);

	if (code)
		return code;
	if (!ret->number && !(ret->number = free_number(i)))
		ret->number = forgotten_number(i);
	if (!ret->number)
		return err_refused(err, "instance '%s' has %d interfaces already, the limit",
				   i->name, WEIR_IFACES - 1);
	return instance_iface_stored(i, ret->number, row, err);
}

int attach_reserve(const struct instance *i, const char *name, uint32_t ifindex,
		   uint32_t *ret_number, struct err *err)
{
	struct attach_result result = {0};
	struct iface row;
	int code = give_number(i, name, ifindex, &result, &row, err);

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
	struct linked before;
	struct iface row;
	bool there = false;
	int code = give_number(i, name, ifindex, &result, &row, err);

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
	if (!there && (code = linked_remove(i->folder, result.number, &before, err)))
		return code; // of a device that went, under the same name
	clear_slot(i, result.number, row.ifindex);
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
