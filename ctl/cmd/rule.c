// SPDX-License-Identifier: GPL-2.0-only
// weir rule add, list, delete: single rules in front of the policy.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/log.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/cmd/command.h"
#include "ctl/cmd/overlay_options.h"
#include "ctl/cmd/policy_show.h"
#include "ctl/cmd/rules.h"
#include "ctl/cmd/show.h"
#include "ctl/control/active.h"
#include "ctl/control/need_attached.h"
#include "ctl/control/quick_apply.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/rule_counts.h"

#define TRIES 200 // each time another command was first

// ---- a change -----------------------------------------------------------------------------------

struct rule_change {
	struct context *ctx;
	const struct args *args;
	quick_edit *edit;
	struct quick_rule rule; // to add
	struct quick_place place;
	struct quick_wait wait;
	bool asked;    // whether others may add the rule
	bool by_other; // another command has added the rule
	size_t deleted;
};

static void change_free(struct rule_change *change)
{
	quick_free_rule(&change->rule);
	quick_wait_free(&change->wait);
}

// Without an instance nothing could check a new rule.
static int change_saved(struct rule_change *change, struct err *err)
{
	const struct apply_options options = {
		.instance = change->ctx->instance,
		.command = change->ctx->line,
		.dry_run = args_has(change->args, "dry-run"),
	};

	if (change->rule.fresh)
		return not_attached(options.instance, "add rules", err);
	return quick_edit_saved(&options, change->edit, change, err);
}

// Does each command that adds the rule examine whether it would cut off this login?
static bool is_guarded(const struct session *s)
{
	enum session_place place = session_placed(s);

	return place == SESSION_NONE || (place == SESSION_KNOWN && session_is_found(s));
}

// A rule that others may add: without --force, and only if they would refuse what this command
// refuses.
static void wait_with_others(struct rule_change *change, const struct apply_options *o)
{
	if (!change->rule.fresh || change->asked || o->force || o->dry_run)
		return;
	change->asked = true;
	if (!is_guarded(o->session))
		return;
	quick_wait_begin(&change->wait, o->instance, &change->rule, &change->place);
	change->rule.token = mem_strdup(change->wait.token);
}

// An attempt has failed. Is another one needed? Another command was first, or has taken the rule;
// or the rules of others may be at fault.
static bool tries_again(struct rule_change *change, const struct apply_result *result, unsigned n,
			int code)
{
	if (n < TRIES && quick_is_other_command(code))
		return true;
	if (n < TRIES && code != -EAGAIN && quick_wait_has_others(&change->wait)) {
		quick_wait_failed(&change->wait, result->culprit);
		return true;
	}
	return !quick_wait_withdraw(&change->wait);
}

static void hear(void *of, bool notice, const char *text)
{
	struct apply_result *result = of;

	if (notice)
		vec_push(&result->notices, mem_strdup(text));
	else
		vec_push(&result->warnings, mem_strdup(text));
}

static bool is_about_other(const struct rule_change *change, const struct candidate *c,
			   const char *text)
{
	vec_each (&c->quick, rule)
		if (strcmp(rule->label, change->rule.label) != 0 &&
		    quick_is_about(rule->label, text))
			return true;
	return false;
}

static void report_findings(struct rule_change *change, struct candidate *c,
			    struct apply_result *result)
{
	struct context *ctx = change->ctx;

	quick_wait_end_turn(&change->wait);
	if (change->by_other)
		quick_wait_read(&change->wait, hear, result);
	diag_keep(c->diag, change->rule.label);
	policy_show_findings(ctx, c);
	out_array(ctx->out, "warnings");
	vec_each (&result->warnings, text) {
		if (is_about_other(change, c, *text))
			continue;
		out_item_string(ctx->out, *text);
		log_warning("%s", *text);
	}
	out_end(ctx->out);
	out_array(ctx->out, "notices");
	vec_each (&result->notices, text) {
		if (!quick_is_about(change->rule.label, *text))
			continue;
		out_item_string(ctx->out, *text);
		log_warning("%s", *text);
	}
	out_end(ctx->out);
}

static void prefix_switched(const struct rule_change *change, struct err *err)
{
	if (change->rule.fresh)
		err_prefix(err, "added %s, but a later step failed", change->rule.label);
	else
		err_prefix(err, "deleted %zu quick %s, but a later step failed", change->deleted,
			   num_plural(change->deleted, "rule", "rules"));
}

// Once more when another command was first.
static int change_rules(struct rule_change *change, struct err *err)
{
	struct context *ctx = change->ctx;
	struct policy_dns dns;
	int code = bpffs_ready(err);

	if (code)
		return code;
	if (!bpffs_exist(ctx->instance))
		return change_saved(change, err);
	if ((code = policy_dns(ctx, change->args, &dns, err)))
		return code;
	for (unsigned n = 1;; n++) {
		CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
		CLEANUP_APPLY_RESULT struct apply_result result = {0};
		const struct apply_options options = {
			.instance = ctx->instance,
			.command = ctx->line,
			.dns = dns.options,
			.session = ctx->session_here ? &ctx->session : NULL,
			.force = args_knows(change->args, "force") &&
				 args_has(change->args, "force"),
			.dry_run = args_has(change->args, "dry-run"),
			.wait = &change->wait,
		};

		wait_with_others(change, &options);
		quick_wait_turn(&change->wait);
		code = quick_apply(c, &options, change->edit, change, &result, err);
		if (code && !result.switched && tries_again(change, &result, n, code)) {
			err_clear(err);
			continue;
		}
		report_findings(change, c, &result);
		if (code && result.switched)
			prefix_switched(change, err);
		return code;
	}
}

// ---- add ----------------------------------------------------------------------------------------

// Another command may have added the rule with its own.
static int edit_add(void *change_of, struct quick_rules *q, struct err *err)
{
	struct rule_change *change = change_of;
	uint64_t added = quick_wait_find(&change->wait, q);
	int code;

	change->by_other = added;
	if (added) {
		quick_set_id(&change->rule, added); // for the report
		q->changed = false; // the ends of other rules are left to the next change
		return 0;
	}
	if ((code = quick_insert(q, &change->rule, &change->place, err)))
		return code;
	quick_wait_join(&change->wait, q);
	return 0;
}

// One rule in one line.
static int take_text(const struct args *args, struct quick_rule *ret, struct err *err)
{
	CLEANUP_TEXT struct text t = {0};

	for (size_t n = 1; n < args->words.n; n++)
		text_addf(&t, "%s%s", n > 1 ? " " : "", args->words.at[n]);
	return quick_read_words(text_get(&t), args_value(args, "name"), ret, err);
}

static int read_place(const struct args *args, struct rule_change *ret, struct err *err)
{
	const char *before = args_value(args, "before");

	ret->place.first = args_has(args, "first");
	if (ret->place.first && before)
		return err_input(err, "--first and --before are mutually exclusive");
	if (before && num_parse_u64(before, strlen(before), 1, UINT64_MAX, &ret->place.before))
		return err_input(err, "--before '%s' is not the number of a rule", before);
	return 0;
}

// Everything but the rule itself.
static int read_about(struct context *ctx, const struct args *args, struct quick_rule *ret,
		      struct err *err)
{
	const char *origin;
	char by[160];
	int code;

	if ((code = overlay_text(args, "origin", &origin, err)))
		return code;
	show_author(ctx, by, sizeof(by));
	ret->since_s = time_s(CLOCK_REALTIME);
	if ((code = overlay_until(args, ret->since_s, &ret->until_s, err)))
		return code;
	if (ret->until_s == RECORD_NEVER)
		ret->until_s = 0;
	ret->by = mem_strdup(by);
	ret->note = overlay_note(args);
	ret->origin = *origin ? mem_strdup(origin) : NULL;
	ret->fresh = true;
	return 0;
}

static void report_added(struct context *ctx, const struct quick_rule *rule, bool dry_run)
{
	CLEANUP_TEXT struct text until = {0};
	struct out *o = ctx->out;

	out_set_string(o, "instance", ctx->instance);
	out_set_bool(o, "changed", true);
	out_set_bool(o, "dry_run", dry_run);
	out_set_u64(o, "id", rule->id);
	out_set_string(o, "name", rule->name);
	out_set_string(o, "rule", rule->text);
	out_set_time(o, "until", rule->until_s ? rule->until_s : UINT64_MAX);
	show_until(&until, rule->until_s ? rule->until_s : RECORD_NEVER, rule->since_s);
	if (!ctx->quiet)
		out_line(o, "%s %s: %s, %s, instance %s", dry_run ? "would add" : "added",
			 rule->label, rule->text, text_get(&until), ctx->instance);
}

static int add_rule(struct rule_change *change, struct err *err)
{
	struct context *ctx = change->ctx;
	int code = read_about(ctx, change->args, &change->rule, err);

	if (code)
		return code;
	if ((code = change_rules(change, err)))
		return code;
	report_added(ctx, &change->rule, args_has(change->args, "dry-run"));
	return show_open_in(ctx->instance, ctx->out, err);
}

static int run_add(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP(change_free)
	struct rule_change change = {
		.ctx = ctx, .args = args, .edit = edit_add, .wait = QUICK_NO_WAIT};
	int code = take_text(args, &change.rule, err);

	if (code)
		return code;
	if ((code = read_place(args, &change, err)))
		return code;
	return add_rule(&change, err);
}

int rule_add(struct context *ctx, const struct args *args, const char *text, struct err *err)
{
	CLEANUP(change_free)
	struct rule_change change = {
		.ctx = ctx, .args = args, .edit = edit_add, .wait = QUICK_NO_WAIT};

	change.rule.text = mem_strdup(text);
	return add_rule(&change, err);
}

// ---- delete -------------------------------------------------------------------------------------

// The number of a rule, or its name.
static bool is_called(const struct quick_rule *rule, const char *word)
{
	uint64_t id;

	if (!num_parse_u64(word, strlen(word), 1, UINT64_MAX, &id))
		return rule->id == id;
	return (rule->name && !strcmp(rule->name, word)) || !strcmp(rule->label, word);
}

static bool is_meant(const struct rule_change *change, const struct quick_rule *rule)
{
	const struct args *args = change->args;
	const char *origin = args_value(args, "origin");

	if (origin && (!rule->origin || strcmp(rule->origin, origin) != 0))
		return false;
	if (change->rule.text)
		return !strcmp(rule->text, change->rule.text);
	for (size_t n = 1; n < args->words.n; n++)
		if (is_called(rule, args->words.at[n]))
			return true;
	return args_has(args, "all");
}

static int check_words(const struct rule_change *change, const struct quick_rules *q,
		       struct err *err)
{
	const struct args *args = change->args;

	for (size_t n = 1; n < args->words.n; n++) {
		size_t found = 0;

		vec_each (q, rule)
			found += is_meant(change, rule) && is_called(rule, args->words.at[n]);
		if (!found)
			return err_input(err, "no quick rule '%s'%s%s", args->words.at[n],
					 args_has(args, "origin") ? " of origin " : "",
					 args_has(args, "origin") ? args_value(args, "origin")
								  : "");
	}
	return 0;
}

static int edit_delete(void *change_of, struct quick_rules *q, struct err *err)
{
	struct rule_change *change = change_of;
	size_t kept = 0;
	int code = change->rule.text ? 0 : check_words(change, q, err);

	if (code)
		return code;
	for (size_t n = 0; n < q->n; n++)
		if (is_meant(change, &q->at[n]))
			quick_free_rule(&q->at[n]);
		else
			q->at[kept++] = q->at[n];
	change->deleted = q->n - kept;
	q->n = kept;
	if (change->deleted)
		quick_change(q);
	return 0;
}

static int delete_rules(struct rule_change *change, struct err *err)
{
	struct context *ctx = change->ctx;
	bool dry_run = args_has(change->args, "dry-run");
	int code = change_rules(change, err);

	if (code)
		return code;
	ctx->noted = change->deleted ? NOTED_NOTHING : NOTED_CHANGES;
	out_set_string(ctx->out, "instance", ctx->instance);
	out_set_bool(ctx->out, "changed", change->deleted);
	out_set_bool(ctx->out, "dry_run", dry_run);
	out_set_u64(ctx->out, "deleted", change->deleted);
	if (!ctx->quiet)
		out_line(ctx->out, "%s %zu quick %s, instance %s",
			 dry_run ? "would delete" : "deleted", change->deleted,
			 num_plural(change->deleted, "rule", "rules"), ctx->instance);
	return 0;
}

static int run_delete(struct context *ctx, const struct args *args, struct err *err)
{
	struct rule_change change = {
		.ctx = ctx, .args = args, .edit = edit_delete, .wait = QUICK_NO_WAIT};
	const char *origin;
	int code = overlay_text(args, "origin", &origin, err);

	if (code)
		return code;
	if (args->words.n < 2 && !args_has(args, "all"))
		return err_input(err, "missing the number or name of a rule, or --all");
	if (args->words.n > 1 && args_has(args, "all"))
		return err_input(err, "--all cannot be combined with a rule");
	return delete_rules(&change, err);
}

int rule_delete(struct context *ctx, const struct args *args, const char *text, struct err *err)
{
	CLEANUP(change_free)
	struct rule_change change = {
		.ctx = ctx, .args = args, .edit = edit_delete, .wait = QUICK_NO_WAIT};
	const char *origin;
	int code = overlay_text(args, "origin", &origin, err);

	if (code)
		return code;
	change.rule.text = mem_strdup(text);
	return delete_rules(&change, err);
}

// ---- list ---------------------------------------------------------------------------------------

// i and c NULL: not attached, so nothing is counted.
static int list_rule(struct context *ctx, const struct quick_rule *rule, const struct instance *i,
		     const char *identity, struct err *err)
{
	struct counter counter = {0};
	uint64_t now_s = time_s(CLOCK_REALTIME), left_s = 0;
	CLEANUP_TEXT struct text since = {0};
	struct out *o = ctx->out;
	num_text left;
	int code = i ? rule_count(i, identity, &counter, err) : 0;

	if (code)
		return code;
	if (rule->until_s > now_s)
		left_s = rule->until_s - now_s;
	show_time(&since, rule->since_s, now_s);
	out_row(o);
	out_cell_u64(o, "id", "ID", rule->id);
	out_cell(o, "name", "NAME", rule->name ? rule->name : "");
	out_cell(o, NULL, "SINCE", text_get(&since));
	out_set_time(o, "since", rule->since_s);
	if (!rule->until_s)
		out_cell(o, "left_s", "LEFT", "");
	else
		out_cell_as(o, "left_s", "LEFT", num_format_duration_ms(left_s * 1000, left),
			    left_s);
	out_cell(o, "by", "BY", rule->by);
	out_cell(o, "origin", "ORIGIN", rule->origin ? rule->origin : "");
	out_cell_u64(o, "packets", "PACKETS", counter.packets);
	out_set_u64(o, "bytes", counter.bytes);
	out_cell(o, "rule", "RULE", rule->text);
	out_cell(o, "note", "NOTE", rule->note);
	return 0;
}

static int list_each (struct context *ctx, const char *origin, const struct instance *i,
		      const struct quick_rules *q, const struct candidate *c, struct err * err)
{
	for (size_t n = 0; n < q->n; n++) {
		const struct resolved *r = c ? c->resolved : NULL;
		const char *identity = r ? r->rules[r->n_always + n].identity : NULL;
		int code = 0;

		if (!origin || text_same(origin, q->at[n].origin))
			code = list_rule(ctx, &q->at[n], identity ? i : NULL, identity, err);
		if (code)
			return code;
	}
	return 0;
}

// c NULL: not attached.
static int list_rules(struct context *ctx, const struct args *args, const struct instance *i,
		      const struct quick_rules *q, const struct candidate *c, struct err *err)
{
	int code;

	out_table(ctx->out, "rules");
	code = list_each (ctx, args_value(args, "origin"), i, q, c, err);
	out_table_end(ctx->out);
	return code;
}

static int run_list(struct context *ctx, const struct args *args, struct err *err)
{
	CLEANUP_INSTANCE struct instance *i = NULL;
	CLEANUP_CANDIDATE struct candidate *c = NULL;
	CLEANUP_QUICK struct quick_rules saved = {0};
	struct err why = {0};
	int code = args_expect_words(args, 1, 1, "", err);

	if (code)
		return code;
	if ((code = bpffs_ready(err)))
		return code;
	out_set_string(ctx->out, "instance", ctx->instance);
	if (!bpffs_exist(ctx->instance)) {
		if ((code = quick_read(ctx->instance, &saved, err)))
			return code;
		return list_rules(ctx, args, NULL, &saved, NULL, err);
	}
	if ((code = instance_open(ctx->instance, &i, err)))
		return code;
	code = active_rules(i, false, &c, &why);
	if (code && !(code == -ENOENT && !why.kind)) {
		*err = why;
		return code;
	}
	if (c && c->quick.n)
		return list_rules(ctx, args, i, &c->quick, c, err);
	if ((code = quick_read(ctx->instance, &saved, err))) // rules that could not be restored
		return code;
	return list_rules(ctx, args, NULL, &saved, NULL, err);
}

// ---- the command --------------------------------------------------------------------------------

static int run(struct context *ctx, const struct args *args, struct err *err)
{
	static const struct {
		const char *word, *options;
		int (*run)(struct context *ctx, const struct args *args, struct err *err);
	} verbs[] = {{"add", "for note name first before origin force dry-run", run_add},
		     {"list", "origin", run_list},
		     {"delete", "origin all force dry-run", run_delete}};
	int code = args_expect_words(args, 1, SIZE_MAX, "'add', 'list' or 'delete'", err);

	if (code)
		return code;
	for (size_t n = 0; n < ARRAY_SIZE(verbs); n++) {
		if (strcmp(args->words.at[0], verbs[n].word) != 0)
			continue;
		code = args_expect_options(args, verbs[n].word, verbs[n].options, err);
		return code ? code : verbs[n].run(ctx, args, err);
	}
	return err_input(err, "'%s' is neither 'add', 'list' nor 'delete'", args->words.at[0]);
}

static const struct args_option options[] = {
	{.name = "for", .arg = "TIME", .help = "end the rule after TIME: 30s, 10m, 2h, 7d, 4w"},
	{.name = "note", .arg = "TEXT", .help = "reason, shown by list"},
	{.name = "name", .arg = "NAME", .help = "name of the rule"},
	{.name = "first", .help = "in front of all other quick rules"},
	{.name = "before", .arg = "ID", .help = "in front of this quick rule"},
	{.name = "origin", .arg = "NAME", .help = "who asks; delete and list: only its rules"},
	{.name = "all", .help = "delete: all rules"},
	OPTION_CHANGE,
	{0},
};

const struct command cmd_rule = {
	.name = "rule",
	.usage = "add RULE | list | delete ID… [OPTIONS]",
	.summary = "add single rules in front of the policy, for a time",
	.text = "A quick rule is a rule in the words of weir-policy(5), without 'always'. It precedes the\n"
		"rules of any policy and follows the entries. An apply keeps it.\n"
		"\n"
		"  weir rule add --for 1h drop proto udp from any port 123 to any length 400-1500\n"
		"  weir rule list\n"
		"  weir rule delete 3",
	.options = options,
	.changes = CHANGES_INSTANCE,
	.run = run,
};
