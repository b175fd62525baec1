// SPDX-License-Identifier: GPL-2.0-only
// Attaches the root program to devices: by libxdp or a pinned link, under a number of the instance.
#include "ctl/datapath/attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/attach_query.h"
#include "ctl/datapath/attach_remove.h"
#include "ctl/datapath/counters.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/hook.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/linked.h"
#include "ctl/datapath/root_program.h"
#include "ctl/datapath/sharing.h"

// ---- the root program on a device ---------------------------------------------------------------

// Input of attach_shared() and attach_alone().
struct root_attach {
	const struct instance *instance;
	uint32_t number, ifindex;
};

static int attach_shared(void *ctx, enum iface_mode mode, struct err *err)
{
	const struct root_attach *a = ctx;
	CLEANUP(root_cleanup) struct root_program *root = NULL;
	struct xdp_program *program;
	int code = sharing_check(&a->instance->meta, err);

	if (code || (code = root_open(a->instance, &root, err)) ||
	    (code = root_program(root, &program, err)))
		return code;
	code = hook_attach_shared(program, a->ifindex, mode);
	return code ? err_system(err, -code, "libxdp cannot attach") : 0;
}

// If the kernel makes no link, an attach without one works, or fails with a message of the kernel.
static int attach_alone(void *ctx, enum iface_mode mode)
{
	const struct root_attach *a = ctx;
	CLEANUP(root_cleanup) struct root_program *root = NULL;
	bool made;
	int fd, code = root_open(a->instance, &root, NULL);

	if (code)
		return code;
	if ((fd = root_load(root)) < 0)
		return fd;
	code = linked_attach(a->instance->folder, a->number, fd, a->ifindex, mode, &made);
	return code && !made ? hook_attach_alone(fd, a->ifindex, mode) : code;
}

static int attach_root(const struct instance *i, uint32_t number, const struct hook_target *target,
		       enum attach_mode mode, const struct err *unfit, char notice[HOOK_NOTICE],
		       struct err *err)
{
	struct root_attach a = {.instance = i, .number = number, .ifindex = target->ifindex};
	const struct hook_program program = {
		.shared = attach_shared,
		.alone = attach_alone,
		.ctx = &a,
		.can_share = !sharing_check(&i->meta, NULL),
		.before = "Weir sees them",
	};

	return hook_attach(target, mode, unfit, &program, notice, err);
}

static int find_on(const struct instance *i, uint32_t ifindex, bool *ret, struct err *err)
{
	struct attached_list list;
	int code = attach_query(ifindex, i->progs_id, &list, err);

	if (code)
		return code;
	*ret = attached_ours(&list) != NULL;
	return 0;
}

// ---- numbers ------------------------------------------------------------------------------------

static int set_number(const struct instance *i, uint32_t number, const struct iface *iface,
		      struct err *err)
{
	if (iface_table_set(i->knobs, iface->ifindex, number))
		return err_refused(err, "no room in the interface table for '%s'", iface->name);
	return instance_set_iface(i, number, iface, err);
}

// The device itself has a number, whatever its name was; else a device that no longer exists had
// the name.
static bool has_number(const struct device *d, const char *name, uint32_t ifindex, bool *ret_itself)
{
	bool here = d->state == DEVICE_HELD || d->state == DEVICE_OPEN;
	bool former = d->state == DEVICE_ANOTHER || d->state == DEVICE_GONE;

	*ret_itself = here && d->iface.ifindex == ifindex;
	return *ret_itself || (former && !strcmp(d->iface.name, name));
}

// *ret 0: it has no number.
static int find_number(const struct instance *i, const char *name, uint32_t ifindex, uint32_t *ret,
		       struct err *err)
{
	bool itself = false;

	*ret = 0;
	for (uint32_t n = 1; !itself && n < WEIR_IFACES; n++) {
		struct device d;
		struct iface iface;
		int code = instance_iface(i, n, &iface, err);

		if (code)
			return code;
		if (iface.state == IFACE_FREE ||
		    (iface.ifindex != ifindex && strcmp(iface.name, name) != 0))
			continue;
		if ((code = device_read(i, n, &d, err)))
			return code;
		if (has_number(&d, name, ifindex, &itself) && (itself || !*ret))
			*ret = n;
	}
	return 0;
}

static uint32_t free_number(const struct instance *i)
{
	struct iface iface;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!instance_iface_stored(i, n, &iface, NULL) && iface.state == IFACE_FREE)
			return n;
	return 0;
}

// The number of a device that a policy brought and that no longer exists; it is freed.
static uint32_t reclaim_number(const struct instance *i)
{
	struct device d;
	bool there;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!device_read(i, n, &d, NULL) && d.state == DEVICE_GONE && d.iface.generation &&
		    !attach_remove(i, n, &there, NULL))
			return n;
	return 0;
}

static int give_number(const struct instance *i, const char *name, uint32_t ifindex,
		       uint32_t *ret_number, struct iface *ret_iface, struct err *err)
{
	uint32_t number;
	int code = find_number(i, name, ifindex, &number, err);

	if (code)
		return code;
	if (!number && !(number = free_number(i)))
		number = reclaim_number(i);
	if (!number)
		return err_refused(err, "instance '%s' already has %d interfaces, the limit",
				   i->name, WEIR_IFACES - 1);
	*ret_number = number;
	return instance_iface_stored(i, number, ret_iface, err);
}

int attach_reserve(const struct instance *i, const char *name, uint32_t ifindex,
		   uint32_t *ret_number, struct err *err)
{
	struct iface iface;
	uint32_t number;
	int code = give_number(i, name, ifindex, &number, &iface, err);

	if (code)
		return code;
	*ret_number = number;
	if (iface.state != IFACE_FREE)
		return 0;
	if ((code = counters_clear(i, number, err)))
		return code;
	iface = (struct iface){.ifindex = ifindex, .state = IFACE_ATTACHING};
	snprintf(iface.name, sizeof(iface.name), "%s", name);
	return set_number(i, number, &iface, err);
}

// ---- attaching ----------------------------------------------------------------------------------

// Attached already, but in another mode than the wanted one.
static int check_mode(const char *name, enum attach_mode wanted, enum iface_mode have,
		      struct err *err)
{
	if (wanted == ATTACH_AUTO || (wanted == ATTACH_NATIVE) == (have == IFACE_NATIVE))
		return 0;
	err_refused(err, "'%s' is already attached in %s mode", name, hook_mode_name(have));
	err_hint(err, "weir detach %s first", name);
	return -EBUSY;
}

// Writes what the kernel shows now.
static int finish(const struct instance *i, struct iface *iface, struct attach_result *ret,
		  struct err *err)
{
	struct attached_list there;
	struct linked linked;
	const struct attached *ours;
	int code = attach_query(iface->ifindex, i->progs_id, &there, err);

	if (code || (code = linked_read(i->folder, ret->number, &linked, err)))
		return code;
	if (!(ours = attached_ours(&there)))
		return err_stated(err, ENOENT, "the program on '%s' was removed at once",
				  iface->name);
	iface->state = IFACE_ATTACHED;
	iface->mode = there.mode;
	iface->shared = there.shared;
	iface->prog_id = ours->prog_id;
	iface->dispatcher_id = there.shared ? there.link_prog_id : 0;
	iface->linked = linked.there;
	ret->mode = there.mode;
	ret->shared = there.shared;
	return set_number(i, ret->number, iface, err);
}

// there: our program is on the device already, left by a killed command. `before` is what the table
// has.
static int attach_numbered(const struct instance *i, const struct hook_target *target,
			   enum attach_mode mode, const struct err *unfit,
			   const struct iface *before, bool there, struct attach_result *ret,
			   struct err *err)
{
	struct iface iface = {
		.ifindex = target->ifindex,
		.state = IFACE_ATTACHING,
		.attached_s = (uint64_t)time(NULL),
	};
	int code;

	iface_table_clear(i->knobs, before->ifindex, ret->number);
	snprintf(iface.name, sizeof(iface.name), "%s", target->name);
	if ((code = set_number(i, ret->number, &iface, err)))
		return code;
	code = there ? 0 : attach_root(i, ret->number, target, mode, unfit, ret->notice, err);
	if (code || (code = finish(i, &iface, ret, err)))
		attach_remove(i, ret->number, &there, NULL);
	return code;
}

int attach_interface(const struct instance *i, const struct hook_target *target,
		     enum attach_mode mode, const struct err *unfit, struct attach_result *ret,
		     struct err *err)
{
	struct attach_result result = {0};
	struct linked former;
	struct iface iface;
	bool there;
	int code = give_number(i, target->name, target->ifindex, &result.number, &iface, err);

	// If the kernel does not tell, everything stays as it is: the program that is there does
	// its work.
	if (code || (code = find_on(i, target->ifindex, &there, err)))
		return code;
	if (there && iface.state == IFACE_ATTACHED && iface.ifindex == target->ifindex) {
		result.mode = iface.mode;
		result.shared = iface.shared;
		*ret = result;
		return check_mode(target->name, mode, result.mode, err);
	}
	// The link of a device that no longer exists and had the number.
	if (!there && (code = linked_remove(i->folder, result.number, &former, err)))
		return code;
	if ((code = attach_numbered(i, target, mode, unfit, &iface, there, &result, err)))
		return code;
	result.changed = true;
	*ret = result;
	return 0;
}
