// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent that watches the policy file, its includes and its lists. For its databases
// see reapply.c.
#include "ctl/agent/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/agent/applies.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/inputs.h"
#include "ctl/agent/parts.h"
#include "ctl/agent/process.h"
#include "ctl/agent/task.h"
#include "ctl/agent/watches.h"
#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/sum.h"
#include "ctl/control/active.h"
#include "ctl/datapath/lock.h"

#define AGAIN_FIRST_MS 10000 // after a failure: a trial may end, a name may resolve
#define AGAIN_MOST_MS  600000
#define AFTER_COMMAND  100 // ms; which then waits for the end of the command
#define OUTPUT_MAX     (64u << 20)

struct files {
	struct agent *agent;
	struct watches *watches;
	struct inputs inputs;
	struct agent_process *child;
	struct agent_task look, again;
	bool wanted, offline;       // after the child that runs
	bool reloading;             // the child that runs, or the one after it, is a reload
	sum_text text;              // sum of the policy file, when it was last read; "": never
	char accepted[REVISION_ID]; // when the policy was refused last
	char first[256];            // line of the last refusal; "": not known
	bool gone;                  // it has existed since the agent began, and does not now
};

bool files_have_policy(const struct agent *a)
{
	return !a->policy_is_default || file_exists(a->policy);
}

const struct inputs *files_inputs(const struct agent *a)
{
	return a->files ? &a->files->inputs : NULL;
}

// ---- watched paths ------------------------------------------------------------------------------

static void tell_inputs(struct agent *a, bool applied)
{
	if (a->inputs_changed)
		a->inputs_changed(a, applied);
}

static void add_paths(struct watches_paths *to, char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vec_push(&to->all, mem_strdup(paths[i]));
}

// Before the policy is applied: what changes after this is another change.
static void look_again(struct files *f)
{
	CLEANUP(watches_paths_free) struct watches_paths paths = {0};

	inputs_free(&f->inputs);
	inputs_read(f->agent->policy, &f->inputs);
	add_paths(&paths, f->inputs.paths.at, f->inputs.paths.n);
	add_paths(&paths, f->inputs.patterns.at, f->inputs.patterns.n);
	watches_set(f->watches, &paths);
	tell_inputs(f->agent, false);
}

// ---- applying -----------------------------------------------------------------------------------

static void wait_and_try(struct files *f)
{
	agent_task_move(&f->again,
			trouble_pause_ms(f->agent->refused.times, AGAIN_FIRST_MS, AGAIN_MOST_MS));
}

// The same failure again is not logged: the same sentence, and the same first line before it.
static void fail(struct files *f, const struct err *why, const struct process_result *r)
{
	char first[sizeof(f->first)] = "";
	bool same;

	if (r)
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(r->said, "\n"), r->said);

	revisions_current(f->agent->instance, f->accepted, NULL);
	applies_count(f->agent, APPLIES_FILE, false);
	same = !trouble_begin(&f->agent->refused, why->text) &&
	       (!f->first[0] || !strcmp(first, f->first));
	snprintf(f->first, sizeof(f->first), "%s", first);
	if (same)
		return;
	if (r && r->said[0])
		process_log(r, false, log_error);
	else
		log_error("%s", why->text);
	log_error("the active policy stays");
}

static void succeed(struct files *f, const struct process_result *r)
{
	applies_log(f->agent, r, f->agent->refused.why);
	trouble_end(&f->agent->refused);
	applies_count(f->agent, APPLIES_FILE, true);
	tell_inputs(f->agent, true);
}

static void start_child(struct files *f);

static void end_reload(struct files *f)
{
	if (f->reloading && !f->child)
		parts_reload_done(f->agent);
	f->reloading &= f->child != NULL;
}

static void on_end(void *ctx, const struct process_result *r)
{
	struct files *f = ctx;
	struct err why = {0};

	f->child = NULL;
	if (r->status) {
		process_failure(r, "weir apply", &why);
		fail(f, &why, r);
	} else {
		succeed(f, r);
	}
	agent_changed(f->agent);
	if (f->wanted)
		start_child(f);
	else if (r->status)
		wait_and_try(f);
	end_reload(f);
}

static void start_child(struct files *f)
{
	const struct agent *a = f->agent;
	const char *args[5 + 1] = {"-j", "apply", a->policy};
	const struct process_request request = {
		.args = args,
		.output_max = OUTPUT_MAX,
		.by = AGENT_BY_FILE,
		.tells = true,
		.done = on_end,
		.ctx = f,
	};
	struct err err = {0};
	size_t n = 3;

	if (!a->takes_all)
		args[n++] = "--unattended";
	if (f->offline)
		args[n++] = "--offline";
	f->wanted = f->offline = false;
	agent_task_cancel(&f->again);
	if (!process_start(f->agent, &request, &f->child, &err))
		return;
	fail(f, &err, NULL);
	wait_and_try(f);
}

static void apply_now(struct files *f, bool offline)
{
	f->offline = offline && (f->offline || !f->wanted);
	f->wanted = true;
	if (!f->child)
		start_child(f);
}

void files_apply(struct agent *a, bool offline)
{
	char revision[REVISION_ID], current[REVISION_ID];

	if (!a->files || !files_have_policy(a))
		return;
	if (!revision_was_replaced(a->instance, a->policy, revision, current))
		apply_now(a->files, offline);
	else
		log_info("'%s' is not applied: it is revision %s, which revision %s has replaced",
			 a->policy, revision, current);
}

// ---- the part -----------------------------------------------------------------------------------

// A person who writes the policy file wants it applied, also if it is an older one again.
static bool is_other_text(struct files *f)
{
	CLEANUP_FREE char *text = NULL;
	sum_text now = "";
	size_t len;
	bool other;

	if (!file_read(f->agent->policy, POLICY_TEXT_BYTES, &text, &len, NULL))
		sum_of(text, len, now);
	other = strcmp(now, f->text);
	memcpy(f->text, now, sizeof(now));
	return other;
}

// Without the file nothing is applied or refused, and its last policy stays active. A named file
// that has never existed is an error of its apply.
static bool is_absent(struct files *f)
{
	bool had = f->text[0], gone = had && !file_exists(f->agent->policy);
	bool absent = gone || !files_have_policy(f->agent);

	if (gone && !f->gone)
		log_warning("'%s' no longer exists; the active policy stays", f->agent->policy);
	f->gone = gone;
	if (absent) {
		trouble_end(&f->agent->refused);
		agent_task_cancel(&f->again);
	}
	agent_changed(f->agent);
	return absent;
}

static void on_change(void *ctx)
{
	struct files *f = ctx;

	look_again(f);
	if (is_absent(f))
		return;
	if (is_other_text(f))
		apply_now(f, false);
	else
		files_apply(f->agent, false);
}

static int try_again(void *ctx, struct err *err)
{
	struct files *f = ctx;

	if (!is_absent(f))
		files_apply(f->agent, false);
	return 0;
}

// A command may have applied what was refused.
static int look(void *ctx, struct err *err)
{
	struct files *f = ctx;
	char accepted[REVISION_ID] = "";
	CLEANUP_FD int lock = -1;
	int code;

	if (f->child)
		agent_task_in(&f->look, AFTER_COMMAND);
	if (f->child || !f->agent->refused.why)
		return 0;
	if ((code = lock_share(f->agent->instance, &lock, err)))
		return code;
	if (!revisions_current(f->agent->instance, accepted, NULL) &&
	    strcmp(accepted, f->accepted) != 0)
		files_apply(f->agent, false);
	return 0;
}

// The policy that was applied before the parts started.
static void take_start(struct files *f)
{
	struct agent *a = f->agent;

	if (a->policy_was_absent) {
		files_apply(a, false); // it may have come in the meantime
		return;
	}
	is_other_text(f);
	applies_count(a, APPLIES_FILE, !a->refused.why);
	if (a->refused.why) {
		revisions_current(a->instance, f->accepted, NULL);
		wait_and_try(f);
	}
}

static int start(struct agent *a, struct err *err)
{
	struct files *f = mem_new(struct files);
	int code;

	f->agent = a;
	a->files = f;
	agent_task_init(&f->again, a, "apply of the policy file", try_again, f);
	agent_task_init(&f->look, a, "look at the accepted policy", look, f);
	agent_after_command(a, &f->look, AFTER_COMMAND);
	if ((code = watches_new(a, on_change, f, &f->watches, err)))
		return code;
	look_again(f);
	take_start(f);
	return 0;
}

static void stop(struct agent *a)
{
	struct files *f = a->files;

	if (!f)
		return;
	process_stop(f->child);
	agent_task_free(&f->look);
	watches_free(f->watches);
	inputs_free(&f->inputs);
	agent_task_free(&f->again);
	free(f);
	a->files = NULL;
}

// The service manager waits for the end of the apply.
static int reload(struct agent *a, struct err *err)
{
	struct files *f = a->files;

	if (!files_have_policy(a))
		f->text[0] = '\0'; // it is to be so
	on_change(f);
	if (f->child && !f->reloading) {
		f->reloading = true;
		parts_reload_continues(a);
	}
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	CLEANUP_FREE char *gone =
		mem_printf("'%s' no longer exists; the active policy stays", a->policy);

	if (!a->files)
		return;
	if (a->files->gone) // one that is refused is a problem of the part `policy`
		json_append(problems, json_string(gone));
	json_set(fields, "watched",
		 json_u64(a->files->inputs.paths.n + a->files->inputs.patterns.n));
	json_set(fields, "applying", json_bool(a->files->child));
	json_set(fields, "applies_ok", json_u64(a->applies[APPLIES_FILE].ok));
	json_set(fields, "applies_failed", json_u64(a->applies[APPLIES_FILE].failed));
}

const struct agent_part agent_files = {
	.name = "files",
	.start = start,
	.stop = stop,
	.reload = reload,
	.report = report,
};
