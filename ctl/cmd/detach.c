// SPDX-License-Identifier: GPL-2.0-only
// weir detach: detach Weir's programs, and no others, from interfaces.
#include <errno.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/show.h"
#include "ctl/control/attachments.h"
#include "ctl/control/bringup.h"
#include "ctl/control/devices.h"
#include "ctl/control/parting.h"
#include "ctl/control/recover.h"
#include "ctl/datapath/attach_remove.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/instance_create.h"
#include "ctl/datapath/lock.h"

static void report_one(struct context *ctx, const struct device *d, bool was_there)
{
	CLEANUP_TEXT struct text line = {0};

	out_object(ctx->out, NULL);
	out_set_string(ctx->out, "name", d->iface.name);
	out_set_string(ctx->out, "netns", d->netns[0] ? d->netns : NULL);
	out_set_bool(ctx->out, "was_there", was_there);
	out_end(ctx->out);
	text_addf(&line,
		  was_there ? "detached from %s"
			    : "removed %s from the instance; its program was already detached",
		  d->iface.name);
	if (d->state == DEVICE_MOVED) {
		text_add(&line, " in ");
		show_moved(&line, d);
	}
	if (!ctx->quiet)
		out_line(ctx->out, "%s", text_get(&line));
}

// Removes a detached interface from the list that `weir restore` attaches again; name NULL: all. A
// failure is only a warning, because the interface is detached in any case. 0 with a text: the list
// was damaged, and another one is begun. One warning is enough: *told.
static void forget_attached(const char *instance, const char *name, bool *told)
{
	struct err why = {0};
	err_full_text full;

	if (!*told && attachments_take(instance, name, &why))
		log_warning("%s: weir restore attaches it again", why.text);
	else if (!*told && why.text[0])
		log_warning("%s", err_full(&why, full));
	*told |= why.text[0] != '\0';
}

static int detach_one(struct context *ctx, struct bringup *b, uint32_t number, bool *told,
		      struct err *err)
{
	struct device device;
	bool there;
	int code = device_read(b->instance, number, &device, err);

	if (code)
		return code;
	if ((code = attach_remove(b->instance, number, &there, err)))
		return code;
	report_one(ctx, &device, there);
	forget_attached(ctx->instance, device.iface.name, told);
	return 0;
}

// Finds an interface by its name in this namespace, else by its name in the namespace it was moved
// to. *ret 0: not attached.
static int find_iface(const struct instance *i, const char *name, uint32_t *ret, struct err *err)
{
	struct device d;
	int code = instance_find_iface(i, name, ret, err);

	if (code || *ret)
		return code;
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		if ((code = device_read(i, n, &d, err)))
			return code;
		if (d.state == DEVICE_MOVED && !strcmp(d.there, name)) {
			*ret = n;
			return 0;
		}
	}
	return 0;
}

static int detach_named(struct context *ctx, struct bringup *b, const struct args *args, bool *told,
			struct err *err)
{
	vec_each (&args->words, name) {
		uint32_t number = 0;
		int code = find_iface(b->instance, *name, &number, err);

		if (code)
			return code;
		if (!number)
			log_notice("'%s' was not attached to instance '%s'", *name, ctx->instance);
		else if ((code = detach_one(ctx, b, number, told, err)))
			return code;
	}
	return 0;
}

static int detach_all(struct context *ctx, struct bringup *b, bool *told, struct err *err)
{
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		struct iface iface;
		int code = instance_iface(b->instance, n, &iface, err);

		if (code)
			return code;
		if (iface.state != IFACE_FREE && (code = detach_one(ctx, b, n, told, err)))
			return code;
	}
	return 0;
}

// Also works if another version of Weir made the objects in bpffs: the programs to detach are found
// by the maps that they use, not by the layout of the maps.
static int detach_force(struct context *ctx, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", BPFFS_ROOT, ctx->instance);
	CLEANUP_FD int lock = -1;
	struct err owner = {0};
	bool told = false;
	size_t n = 0;
	int code;

	// A stopped command keeps its lock, but must not keep Weir on the interface.
	if (lock_try(ctx->instance, ctx->line, &lock, &owner))
		log_warning("%s; removed anyway", owner.text);
	else
		bringup_recover(ctx->instance);
	if ((code = attach_remove_all(folder, &n, err)))
		return code;
	if ((code = instance_remove(ctx->instance, err)))
		return code;
	if (lock >= 0)
		revisions_forget(ctx->instance, "");
	forget_attached(ctx->instance, NULL, &told);
	out_set_u64(ctx->out, "detached", n);
	out_set_bool(ctx->out, "removed", true);
	if (!ctx->quiet)
		out_line(ctx->out, "detached from %zu %s and removed instance %s", n,
			 num_plural(n, "interface", "interfaces"), ctx->instance);
	return 0;
}

static int open_existing(struct context *ctx, struct bringup *b, struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	int code = lock_take(ctx->instance, ctx->line, &b->lock, err);

	if (code)
		return code;
	if ((code = instance_open(ctx->instance, &b->instance, err)))
		return code;
	return devices_sync(b->instance, &devices, err);
}

static bool is_named(const struct args *args, const char *ifname)
{
	vec_each (&args->words, name)
		if (!strcmp(*name, ifname))
			return true;
	return false;
}

// True if no interface is left afterwards, so that the instance is removed.
static bool takes_all(const struct bringup *b, const struct args *args)
{
	struct iface iface;

	for (uint32_t n = 0; args->words.n && instance_next_iface(b->instance, &n, &iface);)
		if (!is_named(args, iface.name))
			return false;
	return true;
}

// The balancer keeps the state of an expired trial until recover_trial ends the trial.
static int check_parting(const struct instance *i, struct err *err)
{
	struct err why = {0};
	int code = parting_check(i, &why);

	if (code != -EBUSY) {
		*err = why;
		return code;
	}
	code = recover_trial(i, err);
	return code ? code : parting_check(i, err);
}

static int detach_ifaces(struct context *ctx, struct bringup *b, const struct args *args,
			 struct err *err)
{
	bool told = false;
	int code;

	out_array(ctx->out, "interfaces");
	code = args->words.n ? detach_named(ctx, b, args, &told, err)
			     : detach_all(ctx, b, &told, err);
	out_end(ctx->out);
	if (code)
		return code;
	if (!args->words.n)
		forget_attached(ctx->instance, NULL, &told);
	return 0;
}

static int detach(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	bool removed;
	int code = open_existing(ctx, &b, err);

	if (code)
		return code;
	if (takes_all(&b, args) && (code = check_parting(b.instance, err)))
		return code;
	if ((code = detach_ifaces(ctx, &b, args, err)))
		return code;
	recover_trial(b.instance, NULL); // ends a trial that only these interfaces had
	if ((code = bringup_remove_if_idle(&b, &removed, err)))
		return code;
	out_set_bool(ctx->out, "removed", removed);
	return 0;
}

// The instance does not exist, but a killed command may have left parts of one.
static int clean_up(struct context *ctx, struct err *err)
{
	CLEANUP_FD int lock = -1;
	int code = lock_take(ctx->instance, ctx->line, &lock, err);

	if (code)
		return code;
	if (!bpffs_exist(ctx->instance) && (code = instance_sweep(ctx->instance, err)))
		return code;
	out_set_bool(ctx->out, "removed", false);
	if (!ctx->quiet)
		out_line(ctx->out, "instance %s is not attached: nothing to do", ctx->instance);
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	int code = bpffs_ready(err);

	if (code)
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	if (!bpffs_exist(ctx->instance))
		return clean_up(ctx, err);
	return args_has(args, "force") ? detach_force(ctx, err) : detach(ctx, args, err);
}

static const struct args_option options[] = {
	{.name = "force",
	 .help = "remove the whole instance, even if connections break or versions differ"},
	{0},
};

const struct command cmd_detach = {
	.name = "detach",
	.usage = "[IFACE…] [OPTIONS]",
	.summary = "detach Weir from interfaces (default: all)",
	.text = "Other programs on the interface stay. With the last interface the instance is removed\n"
		"from the kernel; its policy and entries are saved for the next attach. Refused while\n"
		"connections of services would break, because the next attach builds new rings.",
	.options = options,
	.changes = CHANGES_INSTANCE,
	.run = run,
};
