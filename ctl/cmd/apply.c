// SPDX-License-Identifier: GPL-2.0-only
// weir apply, confirm, rollback: switch to a policy, keep it, return to the previous one.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/agent/presence.h"
#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/cmd/applying.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/service_show.h"
#include "ctl/cmd/show.h"
#include "ctl/control/active.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/net/fetch_url.h"

#define STALE_TRIES 20

struct apply_request {
	struct apply_options options;
	const char *ifaces[POLICY_IFACES_MAX];
	struct policy_dns dns;
	struct environment
		last; // names and lists of the accepted policy, used where a lookup fails now
	struct in_effect *again; // --again: the active policy; else NULL
	struct text standard;    // what standard input had, for a second load
	char by[160];
};

static void request_free(struct apply_request *r)
{
	environment_free(&r->last);
	in_effect_cleanup(&r->again);
	text_free(&r->standard);
}

static void load_last(const char *instance, struct environment *last)
{
	char id[REVISION_ID] = "";
	struct revision revision = {0};

	environment_replay(last);
	if (!revisions_current(instance, id, NULL) && id[0])
		revisions_load(instance, id, last, &revision, NULL);
	revision_free(&revision);
}

// Fills in who asks, and how names are resolved.
static int begin_request(struct context *ctx, const struct args *args, struct apply_request *r,
			 struct err *err)
{
	struct apply_options *o = &r->options;
	int code = policy_dns(ctx, args, &r->dns, err);

	show_author(ctx, r->by, sizeof(r->by));
	*o = (struct apply_options){
		.instance = ctx->instance,
		.command = ctx->line,
		.note = "",
		.by = r->by,
		.session = ctx->session_here ? &ctx->session : NULL,
		.dns = r->dns.options,
	};
	return code;
}

static int read_request(struct context *ctx, const struct args *args, struct apply_request *r,
			struct err *err)
{
	struct apply_options *o = &r->options;
	int code = begin_request(ctx, args, r, err);

	o->ifaces = r->ifaces;
	o->n_ifaces = args_values(args, "iface", r->ifaces, POLICY_IFACES_MAX);
	o->if_revision = args_value(args, "if-revision");
	o->force = args_has(args, "force");
	o->fleeting = args_has(args, "volatile");
	o->dry_run = args_has(args, "dry-run");
	if (code)
		return code;
	if ((code = overlay_text(args, "note", &o->note, err)))
		return code;
	return policy_trial(args, &o->trial_ms, err);
}

static void add_attached(struct context *ctx, const struct apply_result *result, bool dry_run,
			 struct text *line)
{
	const char *what = dry_run ? ", would attach to " : ", attached to ";

	out_array(ctx->out, "attached");
	vec_each (&result->attached, one) {
		out_item_string(ctx->out, one->name);
		if (one->attach.notice[0])
			log_notice("%s", one->attach.notice);
		text_addf(line, "%s%s", one == result->attached.at ? what : " ", one->name);
	}
	out_end(ctx->out);
}

static void add_left(struct context *ctx, const struct apply_result *result, struct text *line)
{
	out_array(ctx->out, "detached");
	vec_each (&result->left, name) {
		out_item_string(ctx->out, *name);
		text_addf(line, "%s%s", name == result->left.at ? ", detached from " : " ", *name);
	}
	out_end(ctx->out);
}

static void add_entries_only(struct context *ctx, const struct apply_result *result,
			     struct text *line)
{
	out_array(ctx->out, "only_entries_on");
	vec_each (&result->entries_only, name) {
		out_item_string(ctx->out, *name);
		text_addf(line, "%s%s",
			  name == result->entries_only.at ? "; only entries apply to " : " ",
			  *name);
	}
	out_end(ctx->out);
}

static void add_tried(struct context *ctx, const struct apply_result *r, bool kept,
		      struct text *line)
{
	out_array(ctx->out, "tried");
	vec_each (&r->tried, name)
		out_item_string(ctx->out, *name);
	out_end(ctx->out);
	if (!kept) {
		text_addf(line, "ended the trial in instance %s", ctx->instance);
		return;
	}
	text_add(line, "confirmed: ");
	ifnames_text(&r->tried, line);
	text_addf(line, " %s attached, instance %s", num_plural(r->tried.n, "stays", "stay"),
		  ctx->instance);
}

// The result of confirm, and of a rollback that ends a trial.
static void report_end(struct context *ctx, bool kept, const struct apply_result *r)
{
	CLEANUP_TEXT struct text line = {0};

	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_string(ctx->out, "revision", r->revision[0] ? r->revision : NULL);
	if (r->tried.n)
		add_tried(ctx, r, kept, &line);
	else
		text_addf(&line, "%s %s%s, instance %s",
			  kept ? "confirmed" : "ended the trial: back to",
			  r->revision[0] ? "revision " : "the empty policy", r->revision,
			  ctx->instance);
	add_left(ctx, r, &line);
	if (!ctx->quiet)
		out_line(ctx->out, "%s", text_get(&line));
}

// Looks at the devices of services after the switch, when all interfaces are attached.
static void report_warnings(struct context *ctx, const struct apply_options *o,
			    const struct apply_result *r)
{
	CLEANUP_EGRESS_FINDINGS struct egress_findings findings = {0};

	if (!o->dry_run)
		egress_look(ctx->instance, &findings);
	egress_report(ctx, r->warnings.at, r->warnings.n, &findings);
}

// "applied edge.weir: 3 rules, 2 of 2 expectations hold", or "unchanged".
static void add_what(struct text *line, const struct apply_options *o, const struct apply_result *r)
{
	const char *what = o->path ? o->path : o->revision;

	if (r->unchanged)
		text_addf(line, "unchanged: %s is active, ", what);
	else
		text_addf(line, "%s %s: ", o->dry_run ? "would apply" : "applied", what);
	text_addf(line, "%zu %s", r->rules, num_plural(r->rules, "rule", "rules"));
	if (r->services)
		text_addf(line, ", %zu %s", r->services,
			  num_plural(r->services, "service", "services"));
	if (r->quick)
		text_addf(line, ", %zu quick %s in front", r->quick,
			  num_plural(r->quick, "rule", "rules"));
	if (!r->unchanged && r->expects)
		text_addf(line, ", %zu of %zu %s", r->expects, r->expects,
			  num_plural(r->expects, "expectation holds", "expectations hold"));
}

static void set_fields(struct context *ctx, const struct apply_options *o,
		       const struct apply_result *r)
{
	bool trial = o->trial_ms && !r->unchanged;

	out_set_bool(ctx->out, "changed",
		     !r->unchanged || r->attached.n || r->left.n || r->nexthops);
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_string(ctx->out, "revision", r->revision[0] ? r->revision : NULL);
	out_set_u64(ctx->out, "rules", r->rules);
	out_set_u64(ctx->out, "quick_rules", r->quick);
	out_set_u64(ctx->out, "services", r->services);
	out_set_u64(ctx->out, "expects", r->expects);
	out_set_u64(ctx->out, "trial_ms", trial ? o->trial_ms : 0);
	out_set_bool(ctx->out, "dry_run", o->dry_run);
}

// No interface could be attached, and without one there is no instance.
static bool is_nowhere(const struct context *ctx, const struct apply_result *r)
{
	return r->attach_failed && !bpffs_exist(ctx->instance);
}

static void add_nowhere(struct text *line, const struct context *ctx, const struct apply_options *o,
			const struct apply_result *r)
{
	text_addf(line, "%s is not active: no interface of instance %s is attached",
		  o->path ? o->path : o->revision, ctx->instance);
	if (!o->trial_ms && !o->fleeting)
		text_addf(line, "; the next attach restores it, revision %s", r->revision);
}

static void add_result(struct context *ctx, const struct apply_options *o,
		       const struct apply_result *r, struct text *line)
{
	num_text time;

	add_what(line, o, r);
	if ((r->unchanged || !o->dry_run) && r->revision[0])
		text_addf(line, ", revision %s", r->revision);
	if (r->unchanged || !o->dry_run)
		text_addf(line, ", instance %s", ctx->instance);
	add_attached(ctx, r, o->dry_run, line);
	add_left(ctx, r, line);
	add_entries_only(ctx, r, line);
	if (r->nexthops)
		text_addf(line, ", %zu next %s %s", r->nexthops,
			  num_plural(r->nexthops, "hop", "hops"),
			  o->dry_run ? "would change" : "changed");
	if (o->trial_ms && r->unchanged)
		text_add(line, "; no trial was started");
	else if (o->trial_ms && !o->dry_run)
		text_addf(line, "; on trial for %s: 'weir confirm' keeps it",
			  num_format_duration_ms(o->trial_ms, time));
}

static void report(struct context *ctx, const struct apply_options *o, const struct apply_result *r)
{
	CLEANUP_TEXT struct text line = {0}, nowhere = {0};

	report_warnings(ctx, o, r);
	policy_show_refused(&r->cost);
	out_array(ctx->out, "absent");
	vec_each (&r->absent, name) {
		out_item_string(ctx->out, *name);
		log_notice("no device matches '%s'", *name);
	}
	out_end(ctx->out);
	set_fields(ctx, o, r);
	add_result(ctx, o, r, &line);
	if (is_nowhere(ctx, r))
		add_nowhere(&nowhere, ctx, o, r);
	if (!ctx->quiet)
		out_line(ctx->out, "%s", text_get(nowhere.len ? &nowhere : &line));
}

// It ends the grace time of addresses that names have no more; without one they would stay until
// the next apply.
static bool has_agent(const char *instance)
{
	CLEANUP_PRESENCE struct presence agent;

	presence_read(instance, &agent);
	return agent.runs;
}

static int apply_once(struct context *ctx, struct apply_request *r, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = NULL;
	CLEANUP_APPLY_RESULT struct apply_result result = {0};
	const struct environment *last = r->again ? &r->again->record : &r->last;
	int code;

	c = r->options.path ? candidate_new(&r->options.dns, last) : candidate_new_replay();
	c->environment.again = r->again;
	c->environment.overlap = has_agent(ctx->instance);
	code = apply(c, &r->options, &result, err);
	if ((code == -ETIME && !r->options.patient) || code == -ESTALE)
		return code;
	policy_show_findings(ctx, c);
	if (code && !result.attach_failed)
		return code;
	if (ctx->verbose)
		policy_show_cost(ctx, c);
	report(ctx, &r->options, &result);
	if (code)
		return code;
	return r->options.dry_run ? 0 : show_open_in(ctx->instance, ctx->out, err);
}

// Once more when another command has changed the quick rules meanwhile.
static int apply_until(struct context *ctx, struct apply_request *r, struct err *err)
{
	int code = apply_once(ctx, r, err);

	for (unsigned n = 0; code == -ESTALE && n < STALE_TRIES; n++) {
		err_clear(err);
		code = apply_once(ctx, r, err);
	}
	return code;
}

// On a slow machine the verifier takes minutes.
static int do_apply(struct context *ctx, struct apply_request *r, struct err *err)
{
	int code = bpffs_ready(err);

	if (code)
		return code;
	load_last(ctx->instance, &r->last);
	r->options.standard = &r->standard;
	code = apply_until(ctx, r, err);
	if (code != -ETIME || r->options.patient)
		return code;
	log_notice("the policy took more than 30 s to load: loading it once more, for up to 5m");
	err_clear(err);
	r->options.patient = true;
	return apply_until(ctx, r, err);
}

static int apply_this(struct context *ctx, const struct args *args, const char *path,
		      bool unattended, const char *revision, struct err *err)
{
	CLEANUP(request_free) struct apply_request r = {0};
	int code = begin_request(ctx, args, &r, err);

	if (code)
		return code;
	r.options.path = path;
	r.options.revision = revision;
	r.options.unattended = unattended;
	return do_apply(ctx, &r, err);
}

int applying_file(struct context *ctx, const struct args *args, const char *path, bool unattended,
		  struct err *err)
{
	return apply_this(ctx, args, path, unattended, NULL, err);
}

int applying_revision(struct context *ctx, const struct args *args, const char *revision,
		      struct err *err)
{
	return apply_this(ctx, args, NULL, false, revision, err);
}

// --again: applies the policy of the record, unless another policy is applied before.
static int find_again(struct context *ctx, const struct args *args, struct apply_request *r,
		      struct err *err)
{
	struct in_effect *e = r->again = in_effect_new();
	struct apply_options *o = &r->options;
	int code;

	if (o->n_ifaces)
		return err_input(err, "--again cannot be combined with --iface");
	if ((code = in_effect_find(ctx->instance, e, err)))
		return code;
	if (e->trial)
		return err_refused(err, "a trial is running");
	if (!e->about.revision[0])
		return err_refused(err, "no policy is active, or it has no record");
	if ((code = in_effect_load(ctx->instance, e, err)))
		return code;
	o->path = e->revision.path;
	o->fleeting |= e->revision.fleeting;
	if (!o->if_revision)
		o->if_revision = e->about.revision;
	if (!args_has(args, "note"))
		o->note = e->revision.note;
	return in_effect_ifaces(ctx->instance, e->about.revision, &e->about, r->ifaces,
				&o->n_ifaces, err);
}

// --as: the text of one file, applied as the text of another, where the file will be.
static int read_paths(const struct args *args, struct apply_options *o, struct err *err)
{
	const char *as = args_value(args, "as");

	if (as && (!*as || !strcmp(as, "-")))
		return err_input(err, "--as needs the path of a file");
	if (as && fetch_is_url(as))
		return err_input(err, "--as needs the path of a file, '%s' is a URL", as);
	o->path = as ? as : args->words.at[0];
	o->staged = as ? args->words.at[0] : NULL;
	return 0;
}

static int run_apply(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(request_free) struct apply_request r = {0};
	bool again = args_has(args, "again");
	int code = args_expect_words(args, !again, !again, "policy file", err);

	if (code)
		return code;
	if (again && args_has(args, "as"))
		return err_input(err, "--again cannot be combined with --as");
	if ((code = read_request(ctx, args, &r, err)))
		return code;
	if (again && (code = find_again(ctx, args, &r, err)))
		return code;
	if (!again && (code = read_paths(args, &r.options, err)))
		return code;
	r.options.offline = args_has(args, "offline");
	r.options.unattended = args_has(args, "unattended") && !r.options.force;
	return do_apply(ctx, &r, err);
}

static int run_confirm(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_APPLY_RESULT struct apply_result result = {0};
	int code = args_expect_words(args, 0, 0, "", err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	code = apply_confirm(ctx->instance, ctx->line, &result, err);
	vec_each (&result.warnings, warning)
		log_warning("%s", *warning);
	if (code)
		return code;
	report_end(ctx, true, &result);
	return 0;
}

static int abandon_trial(struct context *ctx, bool *ret_done, struct err *err)
{
	CLEANUP_APPLY_RESULT struct apply_result result = {0};
	struct err why = {0};
	int code = apply_abandon(ctx->instance, ctx->line, &result, &why);

	*ret_done = !code;
	if (code && why.kind == ERR_REFUSED) // no trial is running
		return 0;
	if (code) {
		*err = why;
		return code;
	}
	report_end(ctx, false, &result);
	return 0;
}

static int run_rollback(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(request_free) struct apply_request r = {0};
	char id[REVISION_ID] = "";
	bool done = false;
	int code = args_expect_words(args, 0, 1, "", err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	if (!args->words.n && ((code = abandon_trial(ctx, &done, err)) || done))
		return code;
	if ((code = read_request(ctx, args, &r, err)))
		return code;
	if (args->words.n)
		snprintf(id, sizeof(id), "%s", args->words.at[0]);
	else if ((code = revisions_previous(ctx->instance, id, err)))
		return code;
	r.options.revision = id;
	return do_apply(ctx, &r, err);
}

#define OPTION_APPLY                                                                          \
	{.name = "confirm",                                                                   \
	 .arg = "TIME",                                                                       \
	 .help = "trial: the kernel reverts after TIME (60s) unless confirmed",               \
	 .optional = true},                                                                   \
		{.name = "note", .arg = "TEXT", .help = "reason, shown by weir history"},     \
		{.name = "if-revision",                                                       \
		 .arg = "REV",                                                                \
		 .help = "only if REV is the active revision"},                               \
		{.name = "iface",                                                             \
		 .letter = 'i',                                                               \
		 .arg = "IFACE",                                                              \
		 .help = "use IFACE instead of the policy's interfaces",                      \
		 .repeated = true},                                                           \
		{.name = "resolver", .arg = "ADDR[:PORT]", .help = "query this name server"}, \
		{.name = "resolver-timeout",                                                  \
		 .arg = "TIME",                                                               \
		 .help = "timeout for resolving names (5s)"},                                 \
		{.name = "volatile", .help = "change the kernel only, not the state folder"}, \
		OPTION_CHANGE

static const struct args_option apply_options[] = {
	OPTION_APPLY,
	OPTION_OFFLINE,
	{.name = "as",
	 .arg = "PATH",
	 .help = "record PATH as the policy file: FILE is a copy that will become it"},
	{.name = "again", .help = "apply the active policy again, with its present feeds"},
	{.name = "unattended",
	 .help = "refuse a policy that has lost most of the accepted one, as weir run does"},
	{0},
};
static const struct args_option rollback_options[] = {OPTION_APPLY, {0}};

const struct command cmd_apply = {
	.name = "apply",
	.usage = "FILE | --again [OPTIONS]",
	.summary = "test a policy file and put it into effect atomically",
	.text = "The policy is compiled and loaded alongside the active one. Its expect lines are run in\n"
		"the kernel, and your own login is checked. One write then switches to it. A failure\n"
		"before the switch changes nothing. A policy that is already active is not switched\n"
		"again, unless --force is given. Rates and dynamic sets continue.\n"
		"\n"
		"  weir apply edge.weir --confirm=60s && weir confirm",
	.options = apply_options,
	.changes = CHANGES_INSTANCE,
	.run = run_apply,
};

const struct command cmd_confirm = {
	.name = "confirm",
	.usage = "",
	.summary = "end a trial and keep what is on trial",
	.changes = CHANGES_INSTANCE,
	.run = run_confirm,
};

const struct command cmd_rollback = {
	.name = "rollback",
	.usage = "[REVISION] [OPTIONS]",
	.summary = "end a trial, or apply an earlier revision again",
	.text = "weir history lists the revisions.",
	.options = rollback_options,
	.changes = CHANGES_INSTANCE,
	.run = run_rollback,
};
