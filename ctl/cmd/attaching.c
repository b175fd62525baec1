// SPDX-License-Identifier: GPL-2.0-only
// weir attach, and attaching for other commands: -i IFACE.
#include "ctl/cmd/attaching.h"

#include <errno.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/attachments.h"
#include "ctl/control/egress.h"
#include "ctl/control/pool.h"
#include "ctl/control/unseen.h"
#include "ctl/datapath/attach_remove.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/reach.h"
#include "ctl/net/link.h"
#include "ctl/policy/words.h"

#define IFACES_MAX WEIR_IFACES

int attaching_mode(const char *text, enum attach_mode *ret, struct err *err)
{
	size_t mode = ATTACH_AUTO;

	if (text && choice_find(&choice_attach, text, &mode)) {
		err_input(err, "invalid mode '%s': auto, native or generic", text);
		return -EINVAL;
	}
	*ret = (enum attach_mode)mode;
	return 0;
}

// Reports what applies to packets of the interface; nothing without a policy.
static const char *reach_words(const struct bringup *b, uint32_t number, bool *ret_holds)
{
	struct reach reach;

	*ret_holds = false;
	if (reach_in_force(b->instance, &reach, NULL) || reach.empty)
		return "";
	*ret_holds = reach_holds(&reach, number);
	return *ret_holds ? "; the policy applies to it"
			  : "; the policy does not name it: only entries apply";
}

static void report(struct context *ctx, const struct bringup *b, const char *ifname,
		   const struct attach_result *result)
{
	const char *mode = hook_mode_name(result->mode);
	bool holds;
	const char *words = reach_words(b, result->number, &holds);

	out_set_string(ctx->out, "name", ifname);
	out_set_string(ctx->out, "mode", mode);
	out_set_bool(ctx->out, "shared", result->shared);
	out_set_bool(ctx->out, "changed", result->changed);
	out_set_bool(ctx->out, "policy", holds);
	if (result->notice[0]) {
		out_set_string(ctx->out, "notice", result->notice);
		log_notice("%s", result->notice);
	}
	if (!ctx->quiet)
		out_line(ctx->out, "%s %s, %s mode, instance %s%s",
			 result->changed ? "attached to" : "already attached to", ifname, mode,
			 ctx->instance, words);
}

// In generic mode packets may be longer than their length field can express.
static void tell_big_tcp(struct context *ctx, const char *ifname,
			 const struct attach_result *result)
{
	struct link link;

	if (result->mode != IFACE_GENERIC || link_get(ifname, &link, NULL) || !link_big_tcp(&link))
		return;
	out_set_u64(ctx->out, "big_tcp_bytes", link_big_tcp(&link));
	log_notice("'%s' has BIG TCP (gro_max_size %u, gro_ipv4_max_size %u): generic mode "
		   "copies packets of up to %u bytes, and counts each as one",
		   ifname, link.gro_max, link.gro_max4, link_big_tcp(&link));
}

// Forwarded packets cross the ports of a bridge, never the bridge device.
static void warn_bridge(const char *ifname)
{
	CLEANUP_FREE struct link *links = NULL;
	CLEANUP_TEXT struct text ports = {0};
	struct link bridge;
	size_t n = 0;

	if (link_get(ifname, &bridge, NULL) || strcmp(bridge.kind, "bridge") ||
	    link_list(&links, &n, NULL))
		return;
	for (size_t l = 0; l < n; l++)
		if (links[l].master == bridge.index)
			text_addf(&ports, "%s %s", ports.len ? "" : "; its ports:", links[l].name);
	log_warning("'%s' is a bridge: Weir sees only packets for this host, not those that "
		    "it forwards%s",
		    ifname, text_get(&ports));
}

static void warn_unseen(const char *ifname)
{
	CLEANUP_UNSEEN struct unseen_finding f = unseen_finding(ifname);

	log_warning("'%s' %s (%s)", ifname, f.text, f.mend);
}

// Frames that services redirect to the interface, which only now sends them.
static void warn_egress(struct context *ctx, const char *ifname)
{
	CLEANUP_POOL struct pool pool = {.lock = -1};
	CLEANUP_EGRESSES struct egresses egresses = {0};
	CLEANUP_EGRESS_FINDINGS struct egress_findings findings = {0};

	if (pool_open_few(ctx->instance, NULL, &pool, NULL))
		return;
	egress_find(&pool, &egresses);
	egress_check(&egresses, false, &findings);
	vec_each (&findings, one)
		if (one->problem && !strcmp(one->about, ifname))
			log_warning("%s (%s)", one->text, one->mend);
}

// For `weir restore`.
static void remember(const char *instance, const char *ifname, enum attach_mode mode)
{
	CLEANUP_FREE char *warning = attachments_remember(instance, ifname, mode);

	if (warning)
		log_warning("%s", warning);
}

int attaching_one(struct context *ctx, struct bringup *b, const char *ifname, enum attach_mode mode,
		  bool force, struct attaching *a, struct err *err)
{
	const struct gate gate = {
		.session = ctx->session_here ? &ctx->session : NULL,
		.force = force,
		.trial = b->trial,
	};
	struct attach_result result;
	int code = bringup_attach(b, ifname, mode, 0, &gate, &result, err);

	if (code)
		return code;
	if (result.changed)
		vec_push(&a->fresh, result.number);
	if (!b->trial)
		remember(ctx->instance, ifname, mode);
	report(ctx, b, ifname, &result);
	if (result.changed) {
		warn_bridge(ifname);
		warn_egress(ctx, ifname);
		if (unseen_at_attach(b->instance, ifname, &result))
			warn_unseen(ifname);
		tell_big_tcp(ctx, ifname, &result);
	}
	return 0;
}

static void take_back(const struct instance *i, uint32_t number)
{
	struct err err = {0};
	struct iface iface;
	err_full_text full;
	bool there;

	if (instance_iface(i, number, &iface, &err) ||
	    attachments_take(i->name, iface.name, &err)) {
		log_error("%s", err.text);
		return;
	}
	if (err.text[0]) // the list was damaged
		log_warning("%s", err_full(&err, full));
	if (attach_remove(i, number, &there, &err))
		log_error("%s", err.text);
	else
		log_notice("detached from '%s'", iface.name);
}

void attaching_take_back(struct bringup *b, const struct attaching *a)
{
	struct err err = {0};
	bool removed;

	vec_each (&a->fresh, number)
		take_back(b->instance, *number);
	if (b->trial && bringup_end_try(b, &err))
		log_error("%s", err.text);
	// It was made for this command, or an expired trial has left it without an interface.
	if (bringup_remove_if_idle(b, &removed, &err))
		log_error("%s", err.text);
}

int attaching_do(struct context *ctx, const struct args *args, struct attaching *ret,
		 struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	const char *names[IFACES_MAX];
	size_t n = args_values(args, "iface", names, IFACES_MAX);
	enum attach_mode mode;
	int code = attaching_mode(args_value(args, "mode"), &mode, err);

	if (code || !n)
		return code;
	gate_prepare(ctx->session_here ? &ctx->session : NULL, args_has(args, "force"));
	if ((code = bringup_open(ctx->instance, ctx->line, 0, false, &b, err)))
		return code;
	ret->created = b.created;
	show_damage(&b.damaged);
	policy_show_refused(&b.cost);
	out_array(ctx->out, "attached");
	for (size_t i = 0; i < n; i++) {
		out_object(ctx->out, NULL);
		code = attaching_one(ctx, &b, names[i], mode, args_has(args, "force"), ret, err);
		out_end(ctx->out);
		if (code)
			break;
	}
	out_end(ctx->out);
	if (code) {
		attaching_take_back(&b, ret);
		ret->fresh.n = 0;
	}
	return code;
}

void attaching_undo(struct context *ctx, const struct attaching *a)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	struct err err = {0};

	if (!a->fresh.n)
		return;
	if (bringup_open(ctx->instance, ctx->line, 0, false, &b, &err))
		log_error("%s", err.text);
	else
		attaching_take_back(&b, a);
}

void attaching_free(struct attaching *a)
{
	vec_free(&a->fresh);
}

// ---- weir attach --------------------------------------------------------------------------------

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
	if (attaching.fresh.n)
		return 0;
	// No interface is new: nothing has changed, or is on trial.
	if (b->trial && (code = bringup_end_try(b, err)))
		return code;
	ctx->noted = NOTED_CHANGES;
	return 0;
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
	gate_prepare(ctx->session_here ? &ctx->session : NULL, args_has(args, "force"));
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
	.changes = CHANGES_INSTANCE,
	.run = run,
};
