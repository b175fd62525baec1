// SPDX-License-Identifier: GPL-2.0-only
// weir run: the agent, in the foreground.
#include <errno.h>
#include <string.h>

#include "ctl/agent/event_log.h"
#include "ctl/agent/files.h"
#include "ctl/agent/heart.h"
#include "ctl/agent/hooks.h"
#include "ctl/agent/notify.h"
#include "ctl/agent/parts.h"
#include "ctl/agent/presence.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/cmd/applying.h"
#include "ctl/cmd/changing.h"
#include "ctl/cmd/event_sink.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/instance.h"

static int look_for_ifaces(struct context *ctx, bool *ret_any, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	int code = instance_open(ctx->instance, &i, err);

	if (code && code != -ENOENT)
		return code;
	err_clear(err);
	*ret_any = i && instance_has_ifaces(i);
	return 0;
}

// An instance that is already attached gets its agent even if the policy cannot be applied.
static int apply_file(struct context *ctx, const struct args *args, struct agent *a,
		      struct err *err)
{
	struct err why = {0};
	err_full_text full;
	bool any = false;
	int code;

	if (policy_was_replaced(ctx->instance, a->policy))
		return 0;
	code = applying_file(ctx, args, a->policy, !a->takes_all, err);
	changing_note(&cmd_apply, args, ctx, code, err);
	if (!code)
		return 0;
	if (look_for_ifaces(ctx, &any, &why) || !any)
		return code;
	trouble_begin(&a->refused, err->text);
	log_error("%s; the agent runs with the active policy", err_full(err, full));
	err_clear(err);
	return 0;
}

// Prints the report of the apply now, with -j as a separate document.
static void print_start(struct context *ctx, const struct agent *a)
{
	if (ctx->json && !a->policy_was_absent)
		out_next_document(ctx->out);
	else
		out_flush(ctx->out);
}

static bool session_is_possible(const struct session *s)
{
	return s->peer.family || s->guess.family || s->remote || s->error;
}

// At the first boot there may be neither policy nor interface yet. The parts of the agent find an
// instance when a command has made it.
static int start(struct context *ctx, const struct args *args, struct agent *a, struct err *err)
{
	bool any = false;
	int code;

	if (!a->policy_was_absent && (code = apply_file(ctx, args, a, err)))
		return code;
	if ((code = look_for_ifaces(ctx, &any, err)) || any)
		return code;
	if (a->policy_is_default)
		log_notice("instance %s is not attached to any interface; the agent waits for weir "
			   "attach IFACE, or for '%s'",
			   ctx->instance, a->policy);
	else
		log_notice("instance %s is not attached to any interface; the agent waits for weir "
			   "attach IFACE",
			   ctx->instance);
	return 0;
}

static int run_locked(struct context *ctx, const struct args *args, struct agent *a,
		      struct err *err)
{
	int code = start(ctx, args, a, err);

	if (code)
		return code;
	print_start(ctx, a);
	return parts_run(a, err);
}

// An error that the operator has just read is nothing to tell again.
static void leave(const struct agent *a, int code, const struct err *err)
{
	if (code && !notify_is_managed())
		return;
	presence_leave(a->instance, files_have_policy(a) ? a->policy : NULL, code ? err : NULL);
}

// Without a journal, events go to standard error.
static int read_events(struct agent *a, const char *to, struct err *err)
{
	int code;

	if (!to || !strcmp(to, EVENTS_NONE))
		return 0;
	code = event_sink_check(to, err);
	if (code && strcmp(to, EVENTS_JOURNAL) != 0)
		return code;
	if (code)
		log_warning("%s; events are written to standard error", err->text);
	err_clear(err);
	a->events_to = code ? EVENTS_STDERR : to;
	return 0;
}

static void end_heart(struct heart **heart)
{
	heart_free(*heart);
}

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	struct agent a = {
		.instance = ctx->instance,
		.command = ctx->line,
		.netns = ctx->netns,
		.session = ctx->session_here && session_is_possible(&ctx->session) ? &ctx->session
										   : NULL,
		.takes_all = args_has(args, "force"),
		.metrics = args_value(args, "metrics"),
		.hook = args_value(args, "hook"),
		.keeps_history = !args_has(args, "no-history"),
		.keeps_drops = args_has(args, "keep-drops"),
		.page_group = args_value(args, "page-group"),
		.resolver = args_value(args, "resolver"),
		.resolver_timeout = args_value(args, "resolver-timeout"),
	};
	CLEANUP_FREE char *path = policy_path(ctx, args);
	CLEANUP(end_heart) struct heart *heart = NULL;
	CLEANUP_FD int lock = -1;
	struct policy_dns dns;
	int code = args_expect_words(args, 0, 1, "", err);

	if (code)
		return code;
	if (a.hook && (code = hooks_check(a.hook, err)))
		return code;
	if ((code = policy_dns(ctx, args, &dns, err)))
		return code;
	a.dns = &dns.options;
	if ((code = bpffs_ready(err)))
		return code;
	fd_close(ctx->netns_before); // a namespace remains while a descriptor is open
	ctx->netns_before = -1;
	if (notify_logs_to_journal())
		log_to_journal();
	a.policy = path;
	a.policy_is_default = !args->words.n;
	a.policy_was_absent = a.policy_is_default && !file_exists(path);
	ctx->by = AGENT_BY_FILE;
	if ((code = presence_take(ctx->instance, &lock, err)))
		return code;
	if ((code = read_events(&a, args_value(args, "events"), err)))
		return code;
	if ((code = heart_new(ctx->instance, &heart, err)))
		return code;
	a.heart = heart;
	code = run_locked(ctx, args, &a, err);
	leave(&a, code, err);
	trouble_end(&a.refused);
	if (code)
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_bool(ctx->out, "end", true); // the last document
	return 0;
}

static const struct args_option options[] = {
	{.name = "events",
	 .arg = "WHERE",
	 .help = "record logged packets and changes: journal, stderr, a file or none (none)"},
	{.name = "force",
	 .help = "apply the policy file also if it has lost most of the accepted policy"},
	{.name = "hook",
	 .arg = "PROGRAM",
	 .help = "run PROGRAM for each change of backends, trials, feeds and alarms"},
	{.name = "keep-drops",
	 .help = "read drops also while no client of /v1/events asks for them"},
	{.name = "metrics",
	 .arg = "ADDR:PORT",
	 .help = "also serve /metrics there, to everybody who can reach it"},
	{.name = "no-history", .help = "do not keep rates of the last 24 hours"},
	{.name = "page-group",
	 .arg = "GROUP",
	 .help = "also let GROUP read the page, for example through a proxy"},
	{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"},
	{.name = "resolver-timeout", .arg = "TIME", .help = "timeout for resolving names (5s)"},
	{0},
};

const struct command cmd_run = {
	.name = "run",
	.usage = "[FILE] [OPTIONS]",
	.summary = "run the agent, which looks after the instance between commands",
	.text = "The policy FILE, by default /etc/weir/INSTANCE.weir if it exists, is applied first, as\n"
		"weir apply does, unless it is active or was rolled back, and again when it changes\n"
		"or comes to exist. The agent stays in the foreground until SIGTERM or SIGINT. Packets\n"
		"never wait for it: its end changes no verdict. weir status shows what it does.\n"
		"A file with half of the rules of the accepted policy or fewer, with none of its\n"
		"services or without its default drop is not applied, unless --force is given or\n"
		"weir apply FILE is run.",
	.options = options,
	.run = run,
};
