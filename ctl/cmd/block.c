// SPDX-License-Identifier: GPL-2.0-only
// weir block, allow, unblock, unallow: each is a batch of one line.
#include <errno.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/cmd/attaching.h"
#include "ctl/cmd/block_port.h"
#include "ctl/cmd/block_url.h"
#include "ctl/cmd/live.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/rules.h"
#include "ctl/cmd/sets.h"
#include "ctl/cmd/show.h"
#include "ctl/datapath/bpffs.h"

static int first_error(const struct batch *b, struct err *err)
{
	*err = b->first;
	return err->code ? -err->code : -EINVAL;
}

// ret_open: set if interfaces of the instance do not run Weir.
static void report_addition(struct context *ctx, const struct batch *b, struct err *ret_open)
{
	CLEANUP_TEXT struct text text = {0};
	const struct batch_line *line = b->lines.at[0];
	const char *key;

	line_warn_overruled(line);
	line_describe(&text, line, ctx->instance, b->changed.instance, ctx->out, ret_open);
	text_addf(&text, "; %s", show_kept(ctx->instance, line->change.intent.fleeting, &key));
	out_set_string(ctx->out, "instance", ctx->instance);
	if (!ctx->quiet)
		out_line(ctx->out, "%s", text_get(&text));
	batch_warn_limits(b);
}

static int report_removal(struct context *ctx, const struct batch *b, struct err *err)
{
	CLEANUP_TEXT struct text text = {0};
	const struct batch_line *line = b->lines.at[0];

	if (b->changed.unsaved.code)
		log_warning("not saved: %s; the next attach may restore the removed entries",
			    b->changed.unsaved.text);
	line_describe(&text, line, ctx->instance, NULL, ctx->out, NULL);
	out_set_string(ctx->out, "instance", ctx->instance);
	if (!ctx->quiet)
		out_line(ctx->out, "%s in instance %s", text_get(&text), ctx->instance);
	return line_report_left(line, ctx->out, err);
}

static int apply(struct batch *b, struct err *err)
{
	int code = batch_apply(b, err);

	if (code)
		return code;
	show_damage(&b->changed.damaged);
	return b->failed ? first_error(b, err) : 0;
}

// `-i IFACE`: attaches first, and detaches again if the rest fails.
static int attach_and_apply(struct context *ctx, struct batch *b, const struct args *args,
			    struct err *err)
{
	CLEANUP(attaching_free) struct attaching attaching = {0};
	bool live = args_has(args, "live");
	int code = b->dry_run ? 0 : attaching_do(ctx, args, &attaching, err);

	if (code) {
		attaching_undo(ctx, &attaching);
		return code;
	}
	code = live ? block_live(ctx, &b->lines.at[0]->change, err) : apply(b, err);
	if (code || live)
		attaching_undo(ctx, &attaching);
	return code;
}

static int add(struct context *ctx, struct batch *b, const struct args *args, struct err *err)
{
	size_t bad = b->lines.at[0]->bad;
	struct err open = {0};
	int code = attach_and_apply(ctx, b, args, err);

	if (code)
		return code;
	if (b->changed.instance)
		report_addition(ctx, b, &open);
	if (open.kind) {
		*err = open;
		return -EPERM;
	}
	return bad ? err_input(err, "ignored %zu invalid %s", bad, num_plural(bad, "line", "lines"))
		   : 0;
}

// A port: options that a rule has not are refused.
static int run_rule(struct context *ctx, const struct args *args, const struct line_verb *verb,
		    const char *rule, struct err *err)
{
	static const char *const others[] = {
		"file", "wide", "mask",       "both",    "group",    "sync",  "url",
		"set",  "all",  "iface",      "out",     "out-only", "errno", "all-namespaces",
		"mode", "live", "keep-going", "volatile"};

	for (size_t n = 0; n < ARRAY_SIZE(others); n++) {
		if (!args_knows(args, others[n]) || !args_has(args, others[n]))
			continue;
		err_input(err, "--%s cannot be combined with a port", others[n]);
		return err_hint(err, "the port makes it a rule: %s", rule);
	}
	ctx->of_rule = true;
	return verb->removes ? rule_delete(ctx, args, rule, err) : rule_add(ctx, args, rule, err);
}

static int run(struct context *ctx, const struct args *args, const struct line_verb *verb,
	       struct err *err)
{
	CLEANUP_TEXT struct text rule = {0};
	CLEANUP(batch_free)
	struct batch b = {.ctx = ctx, .file = "-", .dry_run = args_has(args, "dry-run")};
	struct batch_line *line = batch_add(&b);
	int code = bpffs_ready(err);

	if (code)
		return code;
	if (!verb->allow && block_port(args, args_has(args, "to"), &rule))
		return run_rule(ctx, args, verb, text_get(&rule), err);
	if (!verb->allow && (code = block_port_refuse(args, verb->command->name, err)))
		return code;
	code = line_read(ctx, args, verb, line, err);
	overlay_report_errors(ctx, &line->change.targets);
	if (code)
		return code;
	batch_check(&b);
	if (b.failed)
		return first_error(&b, err);
	if (args_has(args, "set"))
		return sets_change(ctx, args_value(args, "set"), &line->change.targets,
				   &line->change.intent, verb->removes, err);
	if (!verb->removes)
		return add(ctx, &b, args, err);
	code = apply(&b, err);
	return code ? code : report_removal(ctx, &b, err);
}

static int run_block(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, &(struct line_verb){.command = &cmd_block}, err);
}

static int run_allow(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, &(struct line_verb){.command = &cmd_allow, .allow = true}, err);
}

static int run_unblock(struct context *ctx, const struct args *args, struct err *err)
{
	return run(ctx, args, &(struct line_verb){.command = &cmd_unblock, .removes = true}, err);
}

static int run_unallow(struct context *ctx, const struct args *args, struct err *err)
{
	const struct line_verb verb = {.command = &cmd_unallow, .removes = true, .allow = true};

	return run(ctx, args, &verb, err);
}

// clang-format off
static const struct args_option options[] = {
	OPTION_FILE,
	OPTION_WIDE,
	OPTION_MASK,
	OPTION_DIRECTION,
	OPTION_OUT,
	{.name = "errno", .arg = "ERROR", .help = "for --out: the call is denied (default), refused or unreachable"},
	{.name = "all-namespaces", .help = "for --out: of all network namespaces, containers too"},
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
		"A port makes it a quick rule (weir rule): WHAT port 22, 192.0.2.7:22, 22/tcp, ssh.\n"
		"A line of FILE is: WHAT [for TIME] [to|both] [note \"TEXT\"]; '#' begins a comment.\n"
		"An allow entry beats every block entry. This host's addresses, its gateways and the\n"
		"other end of your login are refused without --force.\n"
		"\n"
		"  weir block 203.0.113.7 --for 1h --note \"abuse 4711\"\n"
		"  weir block -i eth0 --live twitter.com\n"
		"  curl -s https://example.net/drop.txt | weir block -f - --sync drop",
	.options = options,
	.foreign = foreign,
	.changes = CHANGES_ENTRIES,
	.run = run_block,
};

const struct command cmd_allow = {
	.name = "allow",
	.usage = "WHAT… | -f FILE | --url URL --sync NAME [OPTIONS]",
	.summary = "pass packets from (or to) addresses, even if they are blocked",
	.text = "Same syntax as weir block. Any allow entry, host or prefix, beats any block entry.",
	.options = options,
	.foreign = foreign,
	.changes = CHANGES_ENTRIES,
	.run = run_allow,
};

// clang-format off
static const struct args_option removal_options[] = {
	OPTION_FILE,
	OPTION_WIDE,
	OPTION_MASK,
	{.name = "to", .help = "only entries that match the destination"},
	{.name = "both", .help = "only entries that match the source or the destination"},
	OPTION_OUT,
	OPTION_ORIGIN,
	{.name = "set", .arg = "NAME", .help = "remove the addresses from the dynamic set NAME instead"},
	{.name = "sync", .arg = "NAME", .help = "entries of the list NAME; without WHAT the whole list"},
	{.name = "all", .help = "all entries; with --origin NAME all entries of NAME"},
	{.name = "volatile", .help = "continue even if the state folder cannot be written"},
	{.name = "dry-run", .help = "print what would be done, change nothing"},
	{0},
};
// clang-format on

static const struct args_foreign removal_foreign[] = {
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
	.text = "WHAT with a port: the quick rule that weir block made of it.\n"
		"A name is removed with all its addresses. An address stays blocked while another name,\n"
		"list, origin or prefix blocks it; the command then names the cause. The exit status is\n"
		"3; it is 0 with --origin, and if only other origins still block the address.\n"
		"--origin NAME without WHAT removes all entries of NAME.",
	.options = removal_options,
	.foreign = removal_foreign,
	.changes = CHANGES_ENTRIES,
	.run = run_unblock,
};

const struct command cmd_unallow = {
	.name = "unallow",
	.usage = "WHAT… | -f FILE | --origin NAME | --sync NAME | --all [OPTIONS]",
	.summary = "remove allow entries",
	.text = "Same syntax as weir unblock, for allow entries.",
	.options = removal_options,
	.foreign = removal_foreign,
	.changes = CHANGES_ENTRIES,
	.run = run_unallow,
};
