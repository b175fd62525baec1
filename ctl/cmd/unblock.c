// SPDX-License-Identifier: GPL-2.0-only
// weir unblock, weir unallow: remove entries, and report what still applies.
#include "ctl/base/log.h"
#include "ctl/base/text.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/cmd/unblocking.h"
#include "ctl/control/feed_lists.h"
#include "ctl/datapath/bpffs.h"

static void report(struct context *ctx, const struct unblocking *r)
{
	CLEANUP_TEXT struct text line = {0};

	unblocking_describe(&line, r, ctx->out);
	out_set_string(ctx->out, "instance", ctx->instance);
	if (!ctx->quiet)
		out_line(ctx->out, "%s in instance %s", text_get(&line), ctx->instance);
}

// A list that is removed as a whole follows no feed any more.
static void forget_feeds(const struct context *ctx, const struct unblocking *r)
{
	bool all = r->scope == SCOPE_EVERYBODY;

	if (r->scope != SCOPE_TARGETS)
		feed_lists_forget(ctx->instance, r->intent.allow, all ? NULL : r->intent.origin,
				  r->scope == SCOPE_LIST ? r->intent.list : NULL);
}

static int change_store(struct context *ctx, struct unblocking *r, struct err *err)
{
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	int code = bpffs_exist(ctx->instance) ? store_open(ctx->instance, ctx->line, &store, err)
					      : not_attached(ctx->instance, "undo", err);

	if (code)
		return code;
	if ((code = unblocking_record(r, store, err)))
		return code;
	if (!r->dry_run && r->removed && (code = store_commit(store, r->fleeting, &plan, err)))
		return code;
	if (!r->dry_run)
		forget_feeds(ctx, r);
	show_damage(&store->damaged);
	if (store->unsaved.code)
		log_warning("not saved: %s; the next attach may restore the removed entries",
			    store->unsaved.text);
	report(ctx, r);
	return unblocking_report_left(r, ctx->out, err);
}

static int run(struct context *ctx, const struct args *args, bool allow, struct err *err)
{
	CLEANUP(unblocking_free) struct unblocking r = {0};
	int code = bpffs_ready(err);

	if (code)
		return code;
	code = unblocking_read(args, allow, &r, err);
	overlay_report_errors(ctx, &r.targets);
	if (code)
		return code;
	if (args_has(args, "set"))
		return sets_change(ctx, args_value(args, "set"), &r.targets, &r.intent, true, err);
	return change_store(ctx, &r, err);
}

static int run_unblock(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, false, err);
}

static int run_unallow(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, true, err);
}

// clang-format off
static const struct args_option options[] = {
	OPTION_FILE,
	OPTION_WIDE,
	OPTION_MASK,
	{.name = "to", .help = "only entries that match the destination"},
	{.name = "both", .help = "entries of both directions (default)"},
	OPTION_ORIGIN,
	{.name = "set", .arg = "NAME", .help = "remove the addresses from the dynamic set NAME instead"},
	{.name = "sync", .arg = "NAME", .help = "entries of the list NAME; without WHAT the whole list"},
	{.name = "all", .help = "all entries; with --origin NAME all entries of NAME"},
	{.name = "volatile", .help = "continue even if the state folder cannot be written"},
	{.name = "dry-run", .help = "print what would be done, change nothing"},
	{0},
};
// clang-format on

static const struct args_foreign foreign[] = {
	{"iface", 'i',
	 "entries apply to all interfaces of the instance; weir detach IFACE detaches one"},
	{"for", 0, "entries are removed at once; weir block WHAT --for TIME lets a block expire"},
	{"force", 0, "unblock refuses nothing"},
	{0},
};

const struct command cmd_unblock = {
	.name = "unblock",
	.usage = "WHAT… | -f FILE | --origin NAME | --sync NAME | --all [OPTIONS]",
	.summary = "remove block entries",
	.text = "A name is removed with all its addresses. An address stays blocked while another name,\n"
		"list, origin or prefix blocks it; the command then names the cause. The exit status is\n"
		"3; it is 0 with --origin, and if only other origins still block the address.\n"
		"--origin NAME without WHAT removes all entries of NAME.",
	.options = options,
	.foreign = foreign,
	.run = run_unblock,
};

const struct command cmd_unallow = {
	.name = "unallow",
	.usage = "WHAT… | -f FILE | --origin NAME | --sync NAME | --all [OPTIONS]",
	.summary = "remove allow entries",
	.text = "Same syntax as weir unblock, for allow entries.",
	.options = options,
	.foreign = foreign,
	.run = run_unallow,
};
