// SPDX-License-Identifier: GPL-2.0-only
// weir detach: detach our programs, and no others, from interfaces.
#include <errno.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/show.h"
#include "ctl/control/bringup.h"
#include "ctl/control/parting.h"
#include "ctl/control/recover.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance_create.h"
#include "ctl/datapath/instance_ifaces.h"
#include "ctl/datapath/lock.h"

static void report_one(struct context *ctx, const struct device *d, bool was_there)
{
	struct text line = {0};

	out_object(ctx->out, NULL);
	out_set_string(ctx->out, "name", d->iface.name);
	out_set_string(ctx->out, "netns", d->netns[0] ? d->netns : NULL);
	out_set_bool(ctx->out, "was_there", was_there);
	out_end(ctx->out);
	text_addf(&line, was_there ? "detached from %s" : "forgot %s: the program was gone",
		  d->iface.name);
	if (d->state == DEVICE_MOVED) {
		text_add(&line, " in ");
		show_moved(&line, d);
	}
	if (!ctx->quiet)
		out_line(ctx->out, "%s", text_get(&line));
	text_free(&line);
}

static int detach_one(struct context *ctx, struct bringup *b, uint32_t number, struct err *err)
{
	struct device device;
	bool there;
	int code = device_read(b->instance, number, &device, err);

	if (!code)
		code = attach_remove(b->instance, number, &there, err);
	if (!code)
		report_one(ctx, &device, there);
	return code;
}

// By the name here, else by that in the namespace where it is now.
static int find_row(const struct instance *i, const char *name, uint32_t *ret, struct err *err)
{
	struct device d;
	int code = instance_find_iface(i, name, ret, err);

	for (uint32_t n = 1; !code && !*ret && n < WEIR_IFACES; n++) {
		code = device_read(i, n, &d, err);
		if (!code && d.state == DEVICE_MOVED && !strcmp(d.there, name))
			*ret = n;
	}
	return code;
}

static int detach_named(struct context *ctx, struct bringup *b, const struct args *args,
			struct err *err)
{
	int code = 0;

	vec_each (&args->words, name) {
		uint32_t number = 0;

		if (!code)
			code = find_row(b->instance, *name, &number, err);
		if (!code && !number)
			log_notice("'%s' was not attached to instance '%s'", *name, ctx->instance);
		else if (!code)
			code = detach_one(ctx, b, number, err);
	}
	return code;
}

static int detach_all(struct context *ctx, struct bringup *b, struct err *err)
{
	struct iface row;
	int code = 0;

	for (uint32_t n = 1; !code && n < WEIR_IFACES; n++) {
		code = instance_iface(b->instance, n, &row, err);
		if (!code && row.state != IFACE_FREE)
			code = detach_one(ctx, b, n, err);
	}
	return code;
}

// For pins that this version cannot read: by the programs that use them, whatever their layout.
static int detach_force(struct context *ctx, struct err *err)
{
	CLEANUP_FREE char *folder = mem_printf("%s/%s", BPFFS_ROOT, ctx->instance);
	CLEANUP_FD int lock = -1;
	struct err owner = {0};
	size_t n = 0;
	int code;

	// A command that is stopped keeps its lock; it must not keep Weir on the interface.
	if (lock_try(ctx->instance, ctx->line, &lock, &owner))
		log_warning("%s; removed all the same", owner.text);
	else
		bringup_recover(ctx->instance);
	code = attach_remove_all(folder, &n, err);
	if (!code)
		code = instance_remove(ctx->instance, err);
	if (code)
		return code;
	if (lock >= 0)
		revisions_forget(ctx->instance, "");
	out_set_u64(ctx->out, "detached", n);
	out_set_bool(ctx->out, "removed", true);
	if (!ctx->quiet)
		out_line(ctx->out, "detached from %zu %s and removed instance %s", n,
			 n == 1 ? "interface" : "interfaces", ctx->instance);
	return 0;
}

static int open_existing(struct context *ctx, struct bringup *b, struct err *err)
{
	int code = lock_take(ctx->instance, ctx->line, &b->lock, err);

	if (code)
		return code;
	if ((code = instance_open(ctx->instance, &b->instance, err)))
		return code;
	return device_sync(b->instance, err);
}

static bool is_named(const struct args *args, const char *ifname)
{
	vec_each (&args->words, name)
		if (!strcmp(*name, ifname))
			return true;
	return false;
}

// Will no interface be left, so that the instance goes?
static bool takes_all(const struct bringup *b, const struct args *args)
{
	struct iface row;

	for (uint32_t n = 1; args->words.n && n < WEIR_IFACES; n++)
		if (!instance_iface(b->instance, n, &row, NULL) && row.state != IFACE_FREE &&
		    !is_named(args, row.name))
			return false;
	return true;
}

// A trial that has run out leaves the balancer as it was until its end is made real.
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

static int detach(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	bool removed;
	int code = open_existing(ctx, &b, err);

	if (!code && takes_all(&b, args))
		code = check_parting(b.instance, err);
	if (code)
		return code;
	out_array(ctx->out, "interfaces");
	code = args->words.n ? detach_named(ctx, &b, args, err) : detach_all(ctx, &b, err);
	out_end(ctx->out);
	if (!code)
		recover_trial(b.instance, NULL); // one of these interfaces alone is over
	if (!code)
		code = bringup_remove_if_idle(&b, &removed, err);
	if (!code)
		out_set_bool(ctx->out, "removed", removed);
	return code;
}

// No instance, but perhaps what a killed command was making or removing.
static int clean_up(struct context *ctx, struct err *err)
{
	CLEANUP_FD int lock = -1;
	int code = lock_take(ctx->instance, ctx->line, &lock, err);

	if (!code && !bpffs_exist(ctx->instance))
		code = instance_sweep(ctx->instance, err);
	if (code)
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
	{"force", 0, NULL,
	 "remove the whole instance, even if connections break or versions differ", false, false},
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
	.run = run,
};
