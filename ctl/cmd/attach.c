// SPDX-License-Identifier: GPL-2.0-only
// weir attach: attach the datapath to interfaces.
#include <errno.h>
#include <string.h>

#include "ctl/base/num.h"
#include "ctl/cmd/attaching.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/show.h"

static int read_entries(const struct args *args, uint32_t *ret, struct err *err)
{
	const char *text = args_value(args, "max-entries");
	uint64_t n = 0;

	if (text && num_parse_count(text, strlen(text), 1, WEIR_OVERLAY_MAX, &n)) {
		err_input(err, "invalid --max-entries '%s'", text);
		return err_hint(err, "1 to 4194304; 200k and 1M are allowed");
	}
	*ret = (uint32_t)n;
	return 0;
}

// Attaches all interfaces or none: a failure detaches those that this command has attached.
static int attach_all(struct context *ctx, struct bringup *b, const struct args *args,
		      enum attach_mode mode, struct err *err)
{
	CLEANUP(attaching_free) struct attaching attaching = {.created = b->created};
	int code = 0;

	out_array(ctx->out, "interfaces");
	vec_each (&args->words, name) {
		out_object(ctx->out, NULL);
		code = attaching_one(ctx, b, *name, mode, args_has(args, "force"), &attaching, err);
		out_end(ctx->out);
		if (code)
			break;
	}
	out_end(ctx->out);
	if (code) {
		attaching_take_back(b, &attaching);
		return code;
	}
	// No interface is new: nothing is on trial.
	return b->trial && !attaching.fresh.n ? bringup_end_try(b, err) : 0;
}

// With --confirm the trial starts before the first interface is attached: an interface that a
// killed command has attached expires with the trial.
static int attach_on_trial(struct context *ctx, struct bringup *b, const struct args *args,
			   enum attach_mode mode, uint64_t *trial_ms, struct err *err)
{
	struct attaching none = {0};
	num_text time;
	int code = *trial_ms ? bringup_try(b, *trial_ms, err) : 0;

	if (code) {
		attaching_take_back(b, &none); // removes an instance that was made for it
		return code;
	}
	if ((code = attach_all(ctx, b, args, mode, err)))
		return code;
	if (*trial_ms && !b->trial) {
		*trial_ms = 0;
		if (!ctx->quiet)
			out_line(ctx->out,
				 "no trial was started: all interfaces were attached already");
	}
	out_set_u64(ctx->out, "trial_ms", *trial_ms);
	if (*trial_ms && !ctx->quiet)
		out_line(ctx->out, "on trial for %s: 'weir confirm' keeps it attached",
			 num_format_duration_ms(*trial_ms, time));
	return 0;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	enum attach_mode mode;
	uint32_t entries = 0;
	uint64_t trial_ms;
	int code = args_expect_words(args, 1, WEIR_IFACES - 1, "interface", err);

	if (code)
		return code;
	if ((code = attaching_mode(args_value(args, "mode"), &mode, err)))
		return code;
	if ((code = read_entries(args, &entries, err)))
		return code;
	if ((code = policy_trial(args, &trial_ms, err)))
		return code;
	if ((code = bringup_open(ctx->instance, ctx->line, entries, false, &b, err)))
		return code;
	if ((code = attach_on_trial(ctx, &b, args, mode, &trial_ms, err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_u64(ctx->out, "restored", b.restored);
	out_set_string(ctx->out, "revision", b.revision[0] ? b.revision : NULL);
	if (b.revision[0] && !ctx->quiet)
		out_line(ctx->out, "restored the accepted policy, revision %s", b.revision);
	show_damage(&b.damaged);
	policy_show_refused(&b.cost);
	if (b.restored && !ctx->quiet)
		out_line(ctx->out, "restored %zu overlay %s", b.restored,
			 num_plural(b.restored, "entry", "entries"));
	return 0;
}

static const struct args_option options[] = {
	{.name = "mode", .arg = "MODE", .help = "auto (native, else generic), native or generic"},
	{.name = "max-entries",
	 .arg = "N",
	 .help = "at most N hosts and N prefixes per address family (4194304)"},
	{.name = "confirm",
	 .arg = "TIME",
	 .help = "trial: the kernel passes everything after TIME (60s) unless confirmed",
	 .optional = true},
	{.name = "force", .help = "attach even if that cuts off your own login"},
	{0},
};

const struct command cmd_attach = {
	.name = "attach",
	.usage = "IFACE… [OPTIONS]",
	.summary = "attach Weir to network interfaces",
	.text = "The first attach creates the instance and restores the accepted policy and the saved\n"
		"entries. Without a policy every packet passes that no entry drops. Attaching an\n"
		"interface that is already attached changes nothing.",
	.options = options,
	.run = run,
};
