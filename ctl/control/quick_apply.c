// SPDX-License-Identifier: GPL-2.0-only
// Applies the active policy with other quick rules.
#include "ctl/control/quick_apply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/control/active.h"
#include "ctl/control/apply.h"
#include "ctl/control/bringup.h"
#include "ctl/control/recover.h"
#include "ctl/control/tracking.h"
#include "ctl/control/unroutable.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/lock.h"

bool quick_is_other_command(int code)
{
	return code == -ESTALE;
}

int quick_edit_saved(const struct apply_options *options, quick_edit *edit, void *ctx,
		     struct err *err)
{
	CLEANUP_QUICK struct quick_rules q = {0};
	CLEANUP_FD int lock = -1;
	int code = lock_take(options->instance, options->command, &lock, err);

	if (code)
		return code;
	if (bpffs_exist(options->instance)) {
		err_refused(err, "another command has attached the instance meanwhile");
		return -ESTALE;
	}
	if ((code = quick_read(options->instance, &q, err)))
		return code;
	if ((code = edit(ctx, &q, err)) || !q.changed || options->dry_run)
		return code;
	return quick_save(options->instance, &q, err);
}

// ---- new rules ----------------------------------------------------------------------------------

int quick_judge_rules(const struct candidate *c, const struct apply_options *o,
		      struct apply_result *ret, struct err *err)
{
	for (size_t n = 0; n < c->resolved->n_quick; n++) {
		const struct resolved_rule *rule = &c->resolved->rules[c->resolved->n_always + n];
		const struct quick_rule *quick = &c->quick.at[n];

		if (!quick->fresh)
			continue;
		ret->culprit = quick->id;
		if (quick->name && strcmp(quick->name, rule->identity) != 0)
			return err_input(err, "the policy has a rule \"%s\" already", quick->name);
		if ((!rule->impossible && !rule->never) || o->force)
			continue;
		err_refused(err, "no packet would match the rule");
		err_hint(err, "--force adds it");
		return -EPERM;
	}
	ret->culprit = 0;
	return 0;
}

void quick_note_tracking(const struct candidate *c, struct apply_result *ret)
{
	for (size_t n = 0; n < c->resolved->n_quick; n++) {
		size_t number = c->resolved->n_always + n;
		const struct resolved_word *word = &c->resolved->rules[number].established;
		uint32_t off;

		if (tracking_fails_now(tracking_of_rule(c->resolved, number)))
			vec_push(&ret->warnings,
				 mem_printf(
					 "%s with '%sestablished' %s: connection tracking is off",
					 c->quick.at[n].label, word->negated ? "not " : "",
					 word->negated ? "finds no connection" : "does not match"));
		if ((off = unroutable_off(unroutable_of_rule(c->resolved, number))))
			vec_push(&ret->warnings,
				 mem_printf("%s with 'unroutable' matches no packet%s: the "
					    "loopback device does not forward (%s)",
					    c->quick.at[n].label, unroutable_packets(off),
					    unroutable_mend(off)));
	}
}

int quick_judge_expects(const struct candidate *c, const struct apply_options *o,
			struct apply_result *ret, struct err *err)
{
	size_t n = 0;

	vec_each (&c->broken, broken)
		if (broken->by->fresh) {
			vec_push(&ret->warnings, mem_strdup(broken->what));
			ret->culprit = broken->by->id;
			n++;
		}
	if (!n || o->force)
		return 0;
	err_refused(err, "the rule breaks %zu %s of the policy", n,
		    num_plural(n, "expectation", "expectations"));
	err_hint(err, "--force adds it; the lines then hold without quick rules only");
	return -EPERM;
}

// ---- rules of others ----------------------------------------------------------------------------

struct said {
	const struct candidate *c;
	const struct apply_result *result;
	const char *label;
	struct json_writer *file;
};

static void say_finding(void *ctx, enum diag_level level, const char *file, unsigned line,
			unsigned column, const char *message, const char *hint)
{
	CLEANUP_FREE char *text = mem_printf("%s: %s", file ? file : "", message);
	const struct said *s = ctx;

	if (file && !strcmp(file, s->label))
		quick_wait_say(s->file, false, text);
}

bool quick_is_about(const char *label, const char *notice)
{
	size_t len = strlen(label);

	return !strncmp(notice, label, len) && notice[len] == ':';
}

static void say(void *ctx, uint64_t id, struct json_writer *file)
{
	struct said *s = ctx;

	s->file = file;
	vec_each (&s->c->quick, rule)
		if (rule->id == id)
			s->label = rule->label;
	diag_each(s->c->diag, say_finding, s);
	vec_each (&s->result->warnings, text)
		if (quick_is_about(s->label, *text)) // the others are for the command that switches
			quick_wait_say(file, false, *text);
	vec_each (&s->result->notices, text)
		if (quick_is_about(s->label, *text))
			quick_wait_say(file, true, *text);
}

struct blaming {
	const struct candidate *c;
	uint64_t id;
};

static void blame(void *ctx, enum diag_level level, const char *file, unsigned line,
		  unsigned column, const char *message, const char *hint)
{
	struct blaming *b = ctx;

	if (level != DIAG_ERROR || !file || b->id)
		return;
	vec_each (&b->c->quick, rule)
		if (rule->fresh && !strcmp(rule->label, file))
			b->id = rule->id;
}

// The new rule with an error.
static uint64_t culprit(const struct candidate *c)
{
	struct blaming b = {.c = c};

	diag_each(c->diag, blame, &b);
	return b.id;
}

int quick_share(const struct candidate *c, const struct apply_options *o,
		const struct apply_result *result, struct err *err)
{
	struct said s = {.c = c, .result = result, .label = ""};

	return o->wait ? quick_wait_take(o->wait, say, &s, err) : 0;
}

// ---- the change ---------------------------------------------------------------------------------

// Names the trial; if it has expired, it is ended, and the change can be repeated.
static int refuse_trial(const struct apply_options *o, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	int code = bringup_open_running(o->instance, o->command, &b, err);

	if (code)
		return code;
	if ((code = recover_check(b.instance, err)))
		return code;
	return -ESTALE;
}

static int change_list(struct quick_rules *q, const struct apply_options *o, quick_edit *edit,
		       void *ctx, struct apply_result *ret, struct err *err)
{
	int code = quick_read(o->instance, q, err);

	if (code)
		return code;
	ret->ended = quick_end(q, time_s(CLOCK_REALTIME));
	if (edit && (code = edit(ctx, q, err)))
		return code;
	ret->quick = q->n;
	return 0;
}

// Without a policy, the rules follow an empty text.
static int load_same(struct candidate *c, struct apply_options *o, const struct in_effect *p,
		     const char **ifaces, struct revision *ret, struct err *err)
{
	int code;

	if (p->about.revision[0]) {
		code = in_effect_ifaces(o->instance, p->about.revision, &p->about, ifaces,
					&o->n_ifaces, err);
		if (code)
			return code;
		code = revisions_load(o->instance, p->about.revision, &c->environment, ret, err);
		o->ifaces = ifaces;
		o->path = ret->path;
		return code;
	}
	if (p->about.path[0]) {
		err_refused(err, "the active policy has no record");
		err_hint(err, "weir apply %s writes it again", p->about.path);
		return -ENODATA;
	}
	ret->path = mem_strdup("");
	ret->by = mem_strdup("");
	o->path = candidate_no_policy(c);
	return 0;
}

// Rules that are left out have ended, and the policy does not compile with the others either.
static int save_left_out(const struct candidate *c, const struct apply_options *o, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	int code;

	err_clear(err);
	if (o->dry_run)
		return 0;
	if ((code = bringup_open_running(o->instance, o->command, &b, err)))
		return code;
	if ((code = quick_check(b.instance, &c->quick, err)))
		return code;
	return quick_save(o->instance, &c->quick, err);
}

int quick_apply(struct candidate *c, const struct apply_options *options, quick_edit *edit,
		void *ctx, struct apply_result *ret, struct err *err)
{
	CLEANUP_IN_EFFECT struct in_effect *p = in_effect_new();
	CLEANUP(revision_free) struct revision same = {0};
	const char *ifaces[WEIR_IFACES];
	struct apply_options o = *options;
	int code = in_effect_find(o.instance, p, err);

	if (code)
		return code;
	if (p->trial)
		return refuse_trial(&o, err);
	if ((code = change_list(&c->quick, &o, edit, ctx, ret, err)) || !c->quick.changed)
		return code;
	if ((code = load_same(c, &o, p, ifaces, &same, err)))
		return code;
	c->environment.dns = o.dns;
	c->environment.session = o.session;
	c->environment.must_guard = !o.force;
	o.quick = true;
	o.fleeting = same.fleeting;
	code = apply_same(c, &o, &same, ret, err);
	if (code && !ret->culprit)
		ret->culprit = culprit(c);
	if (code == -EINVAL && !edit && quick_is_left_out(&c->quick))
		return save_left_out(c, &o, err);
	return code;
}
