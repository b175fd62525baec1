// SPDX-License-Identifier: GPL-2.0-only
// weir forget: remove the saved state of a detached instance.
#include <errno.h>

#include "ctl/agent/presence.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/control/forget.h"
#include "ctl/datapath/bpffs.h"

static void add(struct text *line, size_t n, const char *one, const char *many)
{
	if (n)
		text_addf(line, "%s%zu %s", line->len ? ", " : "", n, num_plural(n, one, many));
}

static void add_word(struct text *line, bool is, const char *what)
{
	if (is)
		text_addf(line, "%s%s", line->len ? ", " : "", what);
}

static void report(struct context *ctx, const struct forgotten *f, bool agent, bool dry_run)
{
	CLEANUP_TEXT struct text line = {0};
	bool changed = f->revisions || f->entries || f->damaged || f->overrides || f->quick ||
		       f->seed || f->interfaces || agent;

	ctx->noted = changed ? NOTED_NOTHING : NOTED_CHANGES;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_bool(ctx->out, "changed", changed);
	out_set_bool(ctx->out, "dry_run", dry_run);
	out_set_u64(ctx->out, "revisions", f->revisions);
	out_set_u64(ctx->out, "quick_rules", f->quick);
	out_set_u64(ctx->out, "entries", f->entries);
	out_set_bool(ctx->out, "entries_damaged", f->damaged);
	out_set_bool(ctx->out, "backends_by_hand", f->overrides);
	out_set_bool(ctx->out, "seed", f->seed);
	out_set_bool(ctx->out, "interfaces", f->interfaces);
	out_set_bool(ctx->out, "agent", agent);
	add(&line, f->revisions, "revision", "revisions");
	add(&line, f->quick, "quick rule", "quick rules");
	add(&line, f->entries, "entry", "entries");
	add_word(&line, f->damaged, "unreadable entries");
	add_word(&line, f->overrides, "overrides of backends");
	add_word(&line, f->seed, "seed");
	add_word(&line, f->interfaces, "interfaces to attach at boot");
	add_word(&line, agent, "the end of the agent");
	if (!ctx->quiet && changed)
		out_line(ctx->out, "%s from instance %s: %s", dry_run ? "would remove" : "removed",
			 ctx->instance, text_get(&line));
	else if (!ctx->quiet)
		out_line(ctx->out, "nothing to remove from instance %s", ctx->instance);
}

// Allowed while the instance is attached.
static int forget_agent(struct context *ctx, bool dry_run, struct err *err)
{
	const struct forgotten nothing = {0};
	bool any;
	int code = presence_forget(ctx->instance, dry_run, &any, err);

	if (code)
		return code;
	report(ctx, &nothing, any, dry_run);
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	bool all = args_has(args, "all"), policy = args_has(args, "policy");
	bool entries = args_has(args, "entries"), dry_run = args_has(args, "dry-run");
	struct forget_what what = {
		.policy = policy || all || !entries,
		.entries = entries || all || !policy,
		.seed = all,
		.interfaces = all,
	};
	struct forgotten forgotten;
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	if (all && (policy || entries))
		return err_input(err, "--all cannot be combined with --policy or --entries");
	if (args_has(args, "agent") && (all || policy || entries))
		return err_input(err, "--agent cannot be combined with other options");
	if ((code = bpffs_ready(err)))
		return code;
	if (args_has(args, "agent"))
		return forget_agent(ctx, dry_run, err);
	if ((code = forget(ctx->instance, ctx->line, &what, dry_run, &forgotten, err)))
		return code;
	report(ctx, &forgotten, false, dry_run);
	return 0;
}

static const struct args_option options[] = {
	{.name = "policy",
	 .help = "remove the revisions of the policy, quick rules and overrides of backends"},
	{.name = "entries", .help = "remove the saved entries"},
	{.name = "all",
	 .help = "remove both, the seed of the rings, and the interfaces to attach at boot"},
	{.name = "agent", .help = "forget that an agent has run: no alarm misses it"},
	{.name = "dry-run", .help = "print what would be done, change nothing"},
	{0},
};

const struct command cmd_forget = {
	.name = "forget",
	.usage = "[--policy | --entries | --all | --agent]",
	.summary = "remove the saved state of a detached instance",
	.text = "Without an option the policy and the entries are removed. Refused while the instance is\n"
		"attached, except --agent. This cannot be undone. The record of weir changes remains.",
	.options = options,
	.changes = CHANGES_INSTANCE,
	.run = run,
};
