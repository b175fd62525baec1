// SPDX-License-Identifier: GPL-2.0-only
// weir refresh: look again at the host names of entries.
#include <errno.h>
#include <string.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/refresh.h"
#include "ctl/control/targets.h"
#include "ctl/datapath/bpffs.h"

#define NAMES_MAX (16u << 20) // bytes of a file of names

struct asked_names {
	char **at;
	size_t n, cap;
};

static void names_free(struct asked_names *names)
{
	vec_each (names, name)
		free(*name);
	vec_free(names);
}

static int read_file(const char *path, struct asked_names *ret, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	char *rest = NULL;
	size_t len;
	int code = file_read_stream(path, NAMES_MAX, &text, &len, err);

	if (code)
		return code;
	for (char *word = strtok_r(text, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest))
		vec_push(ret, target_name(word));
	return 0;
}

static int read_names(const struct args *args, struct asked_names *ret, struct err *err)
{
	const char *path = args_value(args, "file");

	vec_each (&args->words, word)
		vec_push(ret, target_name(*word));
	return path ? read_file(path, ret, err) : 0;
}

static void report_one(struct context *ctx, const struct refresh_name *one)
{
	struct out *o = ctx->out;

	out_row(o);
	out_cell(o, "name", "NAME", one->name);
	out_cell_u64(o, "addresses", "ADDRESSES", one->addresses);
	out_cell_u64(o, "added", "ADDED", one->added);
	out_cell_u64(o, "leaving", "LEAVING", one->leaving);
	out_cell_u64(o, "ttl_s", "TTL", one->ttl_s);
	out_cell(o, "error", "ERROR", one->why);
}

static void report(struct context *ctx, const struct refresh *r)
{
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_u64(ctx->out, "changed", r->changed);
	out_table(ctx->out, "names");
	for (size_t n = 0; n < r->n; n++)
		report_one(ctx, &r->at[n]);
	out_table_end(ctx->out);
	if (!r->n && !ctx->quiet)
		out_line(ctx->out, "no entry of instance %s has a host name", ctx->instance);
}

static int check_known(const struct asked_names *names, const struct refresh *r, struct err *err)
{
	vec_each (names, name) {
		bool known = false;

		for (size_t n = 0; n < r->n; n++)
			known |= !strcmp(r->at[n].name, *name);
		if (!known)
			return err_input(err, "no entry has the name '%s'", *name);
	}
	return 0;
}

static int failures(const struct refresh *r, struct err *err)
{
	size_t failed = 0;

	for (size_t n = 0; n < r->n; n++)
		failed += r->at[n].error != 0;
	if (!failed)
		return 0;
	err_system(err, EIO, "%zu of %zu %s no answer and %s the addresses of before", failed, r->n,
		   failed == 1 ? "names has" : "names have", failed == 1 ? "keeps" : "keep");
	return -EIO;
}

static int ask(struct context *ctx, const struct args *args, struct refresh *r, struct err *err)
{
	struct policy_dns dns;
	struct guard guard = {0};
	int code = policy_dns(ctx, args, &dns, err);

	if (code)
		return code;
	dns.options.search = true;
	if (!(code = guard_collect(ctx->session_here ? &ctx->session : NULL, &guard, err)))
		code = refresh_names(ctx->instance, ctx->line, &dns.options, &guard, r, err);
	guard_free(&guard);
	return code;
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(names_free) struct asked_names names = {0};
	CLEANUP_REFRESH struct refresh r = {0};
	int code = bpffs_ready(err);

	if (code)
		return code;
	if ((code = read_names(args, &names, err)))
		return code;
	if (!bpffs_exist(ctx->instance))
		return not_attached(ctx->instance, "refresh names", err);
	if ((code = refresh_list(ctx->instance, (const char *const *)names.at, names.n, &r, err)))
		return code;
	if (!args_has(args, "file") && (code = check_known(&names, &r, err)))
		return code;
	if (!args_has(args, "list") && (code = ask(ctx, args, &r, err)))
		return code;
	report(ctx, &r);
	return failures(&r, err);
}

static const struct args_option options[] = {
	{.name = "file",
	 .letter = 'f',
	 .arg = "FILE",
	 .help = "read names from FILE, - for standard input"},
	{.name = "list", .help = "print the names and ask no name server"},
	{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"},
	{.name = "resolver-timeout", .arg = "TIME", .help = "timeout for resolving names (5s)"},
	{0},
};

const struct command cmd_refresh = {
	.name = "refresh",
	.usage = "[NAME…] [OPTIONS]",
	.summary = "look again at the host names of entries",
	.text = "New addresses are added. Addresses that a name has no more stay for a grace time, twice\n"
		"the TTL or at least a minute. A name without an answer keeps its addresses. The agent\n"
		"(weir run) does this for each name when its TTL ends.",
	.options = options,
	.run = run,
};
