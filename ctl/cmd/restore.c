// SPDX-License-Identifier: GPL-2.0-only
// weir restore: at boot, what was there before.
#include <errno.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/cmd/applying.h"
#include "ctl/cmd/attaching.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/attachments.h"
#include "ctl/control/revisions.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/net/link.h"

static bool has_ifaces(const char *instance)
{
	CLEANUP_INSTANCE struct instance *i = NULL;

	return !instance_open(instance, &i, NULL) && instance_has_ifaces(i);
}

// The policy file, else the accepted policy. *ret: there is one, and it is active.
static int restore_policy_of(struct context *ctx, const struct args *args, bool *ret,
			     struct err *err)
{
	CLEANUP_FREE char *path = policy_path(ctx, args);
	char current[REVISION_ID] = "";
	err_full_text full;
	int code = revisions_current(ctx->instance, current, err);

	*ret = true;
	if (code)
		return code;
	if (file_exists(path) && !policy_was_replaced(ctx->instance, path)) {
		if (!(code = applying_file(ctx, args, path, true, err)) || !current[0])
			return code;
		log_error("%s", err_full(err, full));
		log_notice("restoring revision %s, the last one that was accepted", current);
		err_clear(err);
	} else if (args->words.n && !file_exists(path)) {
		return err_input(err, "cannot read '%s': %s", path, err_why(ENOENT));
	}
	*ret = current[0] != '\0';
	return *ret ? applying_revision(ctx, args, current, err) : 0;
}

static int attach_one(struct context *ctx, struct bringup *b, const struct attachment *one,
		      struct attaching *a, struct err *err)
{
	struct link link;
	int code;

	if (link_get(one->name, &link, NULL)) {
		log_notice("no device '%s': it is not attached", one->name);
		return 0;
	}
	out_object(ctx->out, NULL);
	code = attaching_one(ctx, b, one->name, one->mode, false, a, err);
	out_end(ctx->out);
	return code;
}

// All that can be attached; the first failure is returned.
static int restore_attached(struct context *ctx, const struct attachments *list, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	CLEANUP(attaching_free) struct attaching attaching = {0};
	int code = bringup_open(ctx->instance, ctx->line, 0, false, &b, err);
	bool removed;

	if (code)
		return code;
	show_damage(&b.damaged);
	policy_show_refused(&b.cost);
	out_array(ctx->out, "interfaces");
	vec_each (&list->list, one) {
		struct err why = {0};
		err_full_text full;
		int failed = attach_one(ctx, &b, one, &attaching, &why);

		if (!failed)
			continue;
		if (code)
			log_error("%s", err_full(&why, full));
		else
			*err = why;
		code = code ? code : failed;
	}
	out_end(ctx->out);
	if (bringup_remove_if_idle(&b, &removed, code ? NULL : err) || code || !removed)
		return code;
	err_stated(err, ENODEV, "none of the interfaces of instance '%s' exists", ctx->instance);
	return -ENODEV;
}

static int nothing(const struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_FREE char *path = policy_path(ctx, args);

	err_input(err, "nothing to restore for instance '%s'", ctx->instance);
	err_hint(err, "there is no '%s', no accepted policy, and no interface was attached", path);
	return -ENOENT;
}

// A policy that fails does not keep the entries from being restored.
static int restore(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_ATTACHMENTS struct attachments list;
	struct err why = {0};
	err_full_text full;
	bool has_policy = false;
	int code = attachments_read(ctx->instance, &list, &why), policy;

	if (code)
		log_warning("%s", err_full(&why, full));
	policy = restore_policy_of(ctx, args, &has_policy, err);
	if (!list.list.n)
		return policy || has_policy ? policy : nothing(ctx, args, err);
	err_clear(&why);
	code = restore_attached(ctx, &list, &why);
	if (policy && code)
		log_error("%s", err_full(&why, full));
	else if (code)
		*err = why;
	return policy ? policy : code;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	int code = args_expect_words(args, 0, 1, "", err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	if (!has_ifaces(ctx->instance))
		return restore(ctx, args, err);
	if (!ctx->quiet)
		out_line(ctx->out, "instance %s is attached: nothing to restore", ctx->instance);
	return 0;
}

static const struct args_option options[] = {
	{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"},
	{.name = "resolver-timeout", .arg = "TIME", .help = "timeout for resolving names (5s)"},
	{0},
};

const struct command cmd_restore = {
	.name = "restore",
	.usage = "[FILE] [OPTIONS]",
	.summary = "attach what was attached before the last reboot",
	.text = "Applies the policy FILE, by default /etc/weir/INSTANCE.weir. If it does not exist, has an\n"
		"error, was rolled back or has lost most of the policy that was accepted last (half of\n"
		"its rules, all services, default drop), the latter is applied. Then the interfaces\n"
		" of weir attach are attached again, with the saved entries. Names that do\n"
		"not resolve keep their last addresses. An instance that is attached stays as it is.",
	.options = options,
	.changes = CHANGES_INSTANCE,
	.run = run,
};
