// SPDX-License-Identifier: GPL-2.0-only
// weir stats: packets and bytes by reason, rule, backend and owner of entries.
#include "ctl/base/mem.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/rules.h"
#include "ctl/cmd/service_show.h"
#include "ctl/cmd/stats_owners.h"
#include "ctl/control/devices.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/counters.h"

static void show_counter(struct context *ctx, const char *iface, enum weir_reason reason,
			 const struct counter *c)
{
	struct out *o = ctx->out;

	out_row(o);
	if (iface)
		out_cell(o, "interface", "INTERFACE", iface);
	out_cell(o, "verdict", "VERDICT", reason_outcome(reason));
	out_tint(o, reason_drops(reason) ? OUT_RED : OUT_GREEN);
	out_cell(o, "reason", "REASON", reason_name(reason));
	out_cell_u64(o, "packets", "PACKETS", c->packets);
	out_cell_u64(o, "bytes", "BYTES", c->bytes);
	out_cell(o, NULL, "MEANING", reason_text(reason));
}

static void show_reasons(struct context *ctx, const struct args *args, const struct counters *c)
{
	for (enum weir_reason r = 0; r < WEIR_REASON_COUNT; r++) {
		struct counter sum = counters_reason(c, r);

		if (sum.packets || args_has(args, "all") || ctx->json)
			show_counter(ctx, NULL, r, &sum);
	}
}

static void show_iface(struct context *ctx, const char *name, const struct counters *c,
		       uint32_t number)
{
	for (enum weir_reason r = 0; r < WEIR_REASON_COUNT; r++)
		if (c->at[number][r].packets)
			show_counter(ctx, name, r, &c->at[number][r]);
}

static int show_ifaces(struct context *ctx, const struct instance *i, const struct counters *c,
		       struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	int code = devices_read(i, &devices, err);

	if (code)
		return code;
	show_iface(ctx, "(other)", c, 0);
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (devices.at[n].state != DEVICE_FREE)
			show_iface(ctx, devices.at[n].iface.name, c, n);
	return 0;
}

static void show_tallies(struct context *ctx, const struct args *args, const struct counters *c)
{
	struct out *o = ctx->out;
	bool any = false;

	out_table(o, "events");
	for (enum weir_tally t = 0; t < WEIR_TALLY_COUNT; t++) {
		if (!c->tally[t] && !args_has(args, "all") && !ctx->json)
			continue;
		if (!any)
			out_line(o, "%s", "");
		any = true;
		out_row(o);
		out_cell(o, "event", "EVENT", tally_name(t));
		out_cell_u64(o, "times", "TIMES", c->tally[t]);
		out_cell(o, NULL, "MEANING", tally_text(t));
	}
	out_table_end(o);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_FREE struct counters *counters = mem_new(struct counters);
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if ((code = instance_open(ctx->instance, &i, err)))
		return code;
	if ((code = counters_read(i, counters, err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_table(ctx->out, "counters");
	if (args_has(args, "interfaces"))
		code = show_ifaces(ctx, i, counters, err);
	else
		show_reasons(ctx, args, counters);
	out_table_end(ctx->out);
	if (code)
		return code;
	show_tallies(ctx, args, counters);
	if ((code = rules_show(ctx, i, err)))
		return code;
	if ((code = service_show_stats(ctx->out, ctx->instance, err)))
		return code;
	return stats_owners_show(ctx, err);
}

static const struct args_option options[] = {
	{.name = "interfaces", .letter = 'i', .help = "one line per interface"},
	{.name = "all", .help = "also show reasons and events with zero counts"},
	OPTION_WIDE_TABLES,
	{0},
};

const struct command cmd_stats = {
	.name = "stats",
	.usage = "[OPTIONS]",
	.summary = "show packets and bytes by verdict, rule, backend and owner of entries",
	.options = options,
	.run = run,
};
