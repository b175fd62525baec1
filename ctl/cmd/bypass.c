// SPDX-License-Identifier: GPL-2.0-only
// weir bypass: pass every packet for a limited time. The kernel ends it.
#include <errno.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/show.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/bypass.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"

#define DEFAULT_MS 60000
#define MAX_MS     (24ull * 3600 * 1000)

static int read_time(const struct args *args, uint64_t *ret, struct err *err)
{
	const char *text = args_value(args, "for");

	*ret = DEFAULT_MS;
	if (!text || !num_parse_time_ms(text, strlen(text), 1000, MAX_MS, ret))
		return 0;
	return err_input(err, "--for '%s' is not a time of 1s to 24h", text);
}

static int find_iface(const struct instance *i, const char *name, uint32_t *ret, struct err *err)
{
	int code = instance_find_iface(i, name, ret, err);

	if (code || *ret)
		return code;
	return err_input(err, "'%s' is not attached to instance '%s'", name, i->name);
}

static void report(struct context *ctx, const char *where, uint64_t ms)
{
	num_text text;

	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_string(ctx->out, "interface", where);
	out_set_u64(ctx->out, "bypass_ms", ms);
	if (ctx->quiet)
		return;
	if (ms)
		out_line(ctx->out,
			 "all packets pass %s%s for %s; weir bypass --off ends the bypass",
			 where ? "on " : "on all interfaces", where ? where : "",
			 num_format_duration_ms(ms, text));
	else
		out_line(ctx->out, "bypass is off %s%s", where ? "on " : "on all interfaces",
			 where ? where : "");
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	const char *where = NULL;
	struct clock now;
	uint32_t number = 0;
	uint64_t ms;
	int code = args_expect_words(args, 0, 1, "", err);

	if (code)
		return code;
	if ((code = read_time(args, &ms, err)))
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if ((code = instance_open(ctx->instance, &i, err)))
		return code;
	if (args->words.n && (code = find_iface(i, where = args->words.at[0], &number, err)))
		return code;
	if ((code = instance_clock(i, &now, err)))
		return code;
	if (args_has(args, "off"))
		ms = 0;
	bypass_set(i, number, ms ? clock_after_ms(&now, ms) : 0);
	report(ctx, where, ms);
	return show_open(i, number, ctx->out, err);
}

static const struct args_option options[] = {
	{.name = "for", .arg = "TIME", .help = "duration, 1s to 24h (60s)"},
	{.name = "off", .help = "end the bypass now"},
	{0},
};

const struct command cmd_bypass = {
	.name = "bypass",
	.usage = "[IFACE] [OPTIONS]",
	.summary = "pass every packet for a limited time",
	.text = "The kernel ends the bypass, even if weir or your session dies.",
	.options = options,
	.changes = CHANGES_AT_ONCE,
	.run = run,
};
