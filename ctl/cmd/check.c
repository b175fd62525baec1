// SPDX-License-Identifier: GPL-2.0-only
// weir check: is a policy valid, what does it cost, do its expectations hold?
#include <errno.h>
#include <stdio.h>

#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/control/prove.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/connections.h"
#include "ctl/datapath/probe.h"

// With privilege the kernel is asked: the program is loaded around private maps and proved.
static int load_and_prove(struct candidate *c, struct err *err)
{
	int code = candidate_load(c, NULL, err);

	if (code || (code = connections_try(c->generation, c->image, err)))
		return code;
	return prove_expects(c, err);
}

static int prove(struct context *ctx, struct candidate *c, bool *ret_proved, struct err *err)
{
	struct err why = {0};
	int code;

	if (probe_kernel(&why)) {
		out_line(ctx->out, "not run in the kernel: %s", why.text);
		out_set_bool(ctx->out, "proved", false);
		return 0;
	}
	code = load_and_prove(c, err);
	policy_show_refused(&c->cost);
	*ret_proved = code == 0;
	out_set_bool(ctx->out, "proved", *ret_proved);
	return code;
}

static int dump(struct context *ctx, const struct candidate *c, struct err *err)
{
	CLEANUP_FREE char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f)
		image_dump(c->image, f);
	if (!f || fclose(f))
		return err_system(err, ENOMEM, "cannot print the tables");
	out_set_string(ctx->out, "dump", text);
	if (!ctx->json && fwrite(text, 1, len, stdout) != len)
		return err_system(err, errno, "cannot write to standard output");
	return 0;
}

static int check(struct context *ctx, const struct args *args, struct candidate *c,
		 bool *ret_proved, struct err *err)
{
	const char *ifaces[POLICY_IFACES_MAX];
	size_t n = args_values(args, "iface", ifaces, POLICY_IFACES_MAX);
	int code = candidate_compile(c, args->words.at[0], ifaces, n);

	if (code)
		return err_input(err, "'%s' has errors", args->words.at[0]);
	if (args_has(args, "dump"))
		return dump(ctx, c, err);
	if ((code = candidate_plan(c, NULL, 0, err)))
		return code;
	return prove(ctx, c, ret_proved, err);
}

// What this host must mend before the policy serves.
static void warn(struct context *ctx, const struct sentences *warnings)
{
	out_array(ctx->out, "warnings");
	vec_each (warnings, text) {
		out_item_string(ctx->out, *text);
		log_warning("%s", *text);
	}
	out_end(ctx->out);
}

// "near.weir is valid; 2 of 2 expectations hold"
static void report(struct context *ctx, const char *path, size_t n, bool proved)
{
	if (!n)
		out_line(ctx->out, "%s is valid", path);
	else if (proved)
		out_line(ctx->out, "%s is valid; %zu of %zu %s", path, n, n,
			 num_plural(n, "expectation holds", "expectations hold"));
	else
		out_line(ctx->out, "%s is valid; %zu %s not run", path, n,
			 num_plural(n, "expectation", "expectations"));
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = NULL;
	struct policy_dns dns;
	bool proved = false;
	int code = args_expect_words(args, 1, 1, "policy file", err);

	if (code)
		return code;
	if ((code = policy_dns(ctx, args, &dns, err)))
		return code;
	c = candidate_new(&dns.options, NULL);
	c->dumped = args_has(args, "dump");
	c->environment.instance = ctx->instance;
	c->environment.offline = args_has(args, "offline");
	c->environment.session = ctx->session_here ? &ctx->session : NULL;
	code = check(ctx, args, c, &proved, err);
	policy_show_findings(ctx, c);
	warn(ctx, &c->lb.warnings);
	if (code || args_has(args, "dump"))
		return code;
	policy_show_cost(ctx, c);
	out_set_u64(ctx->out, "expects", c->resolved->n_expects);
	if (!ctx->quiet)
		report(ctx, args->words.at[0], c->resolved->n_expects, proved);
	return 0;
}

static const struct args_option options[] = {
	{.name = "iface",
	 .letter = 'i',
	 .arg = "IFACE",
	 .help = "use IFACE instead of the policy's interfaces",
	 .repeated = true},
	{.name = "dump", .help = "print the compiled tables"},
	{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"},
	{.name = "resolver-timeout", .arg = "TIME", .help = "timeout for resolving names (5s)"},
	OPTION_OFFLINE,
	{0},
};

const struct command cmd_check = {
	.name = "check",
	.usage = "FILE [OPTIONS]",
	.summary = "check a policy file and run its expect lines",
	.text = "The text is checked without privilege. With privilege the policy is also loaded\n"
		"alongside the active one, and its expect lines are run in the kernel. Nothing is\n"
		"changed. -v prints the cost in the kernel.",
	.options = options,
	.run = run,
};
