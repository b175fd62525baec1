// SPDX-License-Identifier: GPL-2.0-only
// weir block, weir allow: add entries to the overlay.
#include <errno.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/attaching.h"
#include "ctl/cmd/block_url.h"
#include "ctl/cmd/blocking.h"
#include "ctl/cmd/live.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/datapath/bpffs.h"

// Reports the change, its expiry, its interfaces, and whether it is saved. ret_open: set if
// interfaces of the instance do not run Weir.
static void report(struct context *ctx, const struct blocking *r, const struct store *b,
		   struct err *ret_open)
{
	CLEANUP_TEXT struct text line = {0};
	struct out *o = ctx->out;
	const char *key;

	blocking_describe(&line, r, b, o);
	text_add(&line, " on ");
	show_interfaces(&line, b->instance, o, ret_open);
	blocking_add_change(&line, r);
	blocking_add_groups(&line, r, b, o);
	text_addf(&line, "; %s", show_kept(ctx->instance, r->intent.fleeting, &key));
	out_set_string(o, "instance", ctx->instance);
	if (!ctx->quiet)
		out_line(o, "%s", text_get(&line));
}

// Compares a list before the lock is taken: if little has changed, comparing costs much more than
// changing. NULL: the lock is needed, or an error occurred, which the caller then finds under the
// lock.
static struct store *draft_list(const struct context *ctx, struct blocking *r)
{
	CLEANUP_STORE struct store *draft = NULL;
	struct err err = {0};

	if (!r->intent.list[0] || r->dry_run || !bpffs_exist(ctx->instance) ||
	    store_draft(ctx->instance, &draft, &err) || blocking_record(r, draft, &err))
		return NULL;
	blocking_warn_overruled(r, draft);
	store_reduce(draft);
	return TAKE_PTR(draft);
}

static int change_store(struct context *ctx, struct blocking *r, struct err *ret_open,
			struct err *err)
{
	CLEANUP_STORE struct store *draft = draft_list(ctx, r);
	CLEANUP_STORE struct store *store = NULL;
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct err why = {0};
	bool adopted;
	int code = blocking_open(ctx, r->verb, r->dry_run, &store, err);

	if (code)
		return code;
	store->guard = r->intent.group ? &r->guard : NULL;
	adopted = draft && store_adopt(store, draft);
	if (!adopted && (code = blocking_record(r, store, err)))
		return code;
	if (!r->dry_run && (code = store_commit(store, r->intent.fleeting, &plan, err)))
		return code;
	if (!r->dry_run && block_url_keep(ctx, r, &why))
		log_warning("%s; the list does not follow the feed", why.text);
	store_unlock(store);
	show_damage(&store->damaged);
	if (!adopted)
		blocking_warn_overruled(r, store);
	report(ctx, r, store, ret_open);
	return 0;
}

// `-i IFACE`: attaches first, and detaches again if the rest fails. ret_open: as in report().
static int attach_and_change(struct context *ctx, struct blocking *r, struct err *ret_open,
			     struct err *err)
{
	CLEANUP(attaching_free) struct attaching attaching = {0};
	bool live = args_has(r->args, "live");
	int code = r->dry_run ? 0 : attaching_do(ctx, r->args, &attaching, err);

	if (code) {
		attaching_undo(ctx, &attaching);
		return code;
	}
	code = live ? block_live(ctx, &r->targets, &r->intent, err)
		    : change_store(ctx, r, ret_open, err);
	if (code || live)
		attaching_undo(ctx, &attaching);
	return code;
}

// Reads options and targets and resolves addresses: everything before the first change.
static int prepare(struct context *ctx, const struct args *args, bool allow, struct blocking *r,
		   struct err *err)
{
	int code = bpffs_ready(err);

	if (code)
		return code;
	code = blocking_read(ctx, args, allow, r, err);
	overlay_report_errors(ctx, &r->targets);
	if (code)
		return code;
	if (!allow &&
	    (code = blocking_guard(ctx, r, blocking_extends(r), r->force, &r->guard, err)))
		return code;
	if ((code = blocking_resolve(ctx, r, &r->guard, err)))
		return code;
	return blocking_check(r, &r->guard, err);
}

static int run(struct context *ctx, const struct args *args, bool allow, struct err *err)
{
	CLEANUP(blocking_free) struct blocking r = {0};
	struct err open = {0};
	int code = prepare(ctx, args, allow, &r, err);

	if (code)
		return code;
	if (args_has(args, "set"))
		return sets_change(ctx, args_value(args, "set"), &r.targets, &r.intent, false, err);
	blocking_warn_no_forwarding(r.intent.kinds);
	if ((code = attach_and_change(ctx, &r, &open, err)))
		return code;
	if (open.kind) {
		*err = open;
		return -EPERM;
	}
	if (r.bad)
		return err_input(err, "ignored %zu invalid %s", r.bad,
				 num_plural(r.bad, "line", "lines"));
	return 0;
}

static int run_block(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, false, err);
}

static int run_allow(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, true, err);
}

// clang-format off
static const struct args_option options[] = {
	OPTION_FILE,
	OPTION_WIDE,
	OPTION_MASK,
	OPTION_DIRECTION,
	{.name = "for", .arg = "TIME", .help = "expire after TIME: 30s, 10m, 2h, 7d (default: permanent)"},
	{.name = "note", .arg = "TEXT", .help = "reason, shown by weir list"},
	OPTION_ORIGIN,
	{.name = "group", .arg = "N", .help = "match N hosts of the origin in one /24 or /64 as that prefix"},
	OPTION_SYNC,
	OPTION_URL,
	{.name = "set", .arg = "NAME", .help = "add the addresses to the dynamic set NAME instead"},
	{.name = "iface", .letter = 'i', .arg = "IFACE", .help = "attach to IFACE first", .repeated = true},
	{.name = "mode", .arg = "MODE", .help = "for -i: auto, native or generic"},
	{.name = "live", .help = "print counters every second until ^C, then undo"},
	{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"},
	{.name = "resolver-timeout", .arg = "TIME", .help = "timeout for resolving names (5s)"},
	{.name = "keep-going", .help = "load the valid lines of a list, skip the invalid ones"},
	{.name = "volatile", .help = "do not save: gone after detach or reboot"},
	OPTION_CHANGE,
	{0},
};
// clang-format on

static const struct args_foreign foreign[] = {
	{"timeout", 't', "--for TIME lets the entries expire"},
	{"comment", 0, "--note TEXT records a reason"},
	{"reason", 0, "--note TEXT records a reason"},
	{0},
};

const struct command cmd_block = {
	.name = "block",
	.usage = "WHAT… | -f FILE | --url URL --sync NAME [OPTIONS]",
	.summary = "drop packets from (or to) addresses, prefixes and host names",
	.text = "WHAT is an address, a prefix, a range A-B, a host name (all its addresses), country DE or\n"
		"asn 64500 (all its prefixes, from a local database).\n"
		"A line of FILE is: WHAT [for TIME] [to|both] [note \"TEXT\"]; '#' begins a comment.\n"
		"An allow entry beats every block entry. This host's addresses, its gateways and the\n"
		"other end of your login are refused without --force.\n"
		"\n"
		"  weir block 203.0.113.7 --for 1h --note \"abuse 4711\"\n"
		"  weir block -i eth0 --live twitter.com\n"
		"  curl -s https://example.net/drop.txt | weir block -f - --sync drop",
	.options = options,
	.foreign = foreign,
	.run = run_block,
};

const struct command cmd_allow = {
	.name = "allow",
	.usage = "WHAT… | -f FILE | --url URL --sync NAME [OPTIONS]",
	.summary = "pass packets from (or to) addresses, even if they are blocked",
	.text = "Same syntax as weir block. Any allow entry, host or prefix, beats any block entry.",
	.options = options,
	.foreign = foreign,
	.run = run_allow,
};
