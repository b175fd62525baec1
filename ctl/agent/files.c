// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for the policy file, its includes and its lists, which are watched: carries
// out what its plan decides (applies_plan.h). For its databases see reapply.c.
#include "ctl/agent/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/agent/applies_plan.h"
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
#include "ctl/base/text.h"
#include "ctl/control/active.h"
#include "ctl/datapath/lock.h"

#define AFTER_COMMAND 100 // ms; which then waits for the end of the command
#define OUTPUT_MAX    (64u << 20)

struct files {
	struct agent *agent;
	struct watches *watches;
	struct inputs inputs;
	struct agent_process *child;
	struct agent_task look, again;
	struct file_plan plan;
};

bool files_have_policy(const struct agent *a)
{
	return !a->policy_is_default || file_exists(a->policy);
}

const struct inputs *files_inputs(const struct agent *a)
{
	return a->files ? &a->files->inputs : NULL;
}

static struct file_seen see(const struct files *f)
{
	const struct agent *a = f->agent;
	struct file_seen seen = {.exists = file_exists(a->policy),
				 .optional = a->policy_is_default};
	CLEANUP_FREE char *text = NULL;
	size_t len;

	if (!file_read(a->policy, POLICY_TEXT_BYTES, &text, &len, NULL))
		sum_of(text, len, seen.text);
	if (!revision_was_replaced(a->instance, a->policy, seen.replaced, seen.current))
		seen.replaced[0] = '\0';
	return seen;
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

// ---- applies of all sources ---------------------------------------------------------------------

void applies_count(struct agent *a, enum applies_source source, bool ok)
{
	struct applies *applies = &a->applies[source];

	*(ok ? &applies->ok : &applies->failed) += 1;
	agent_changed(a);
}

static void add_warnings(const struct process_result *r, const char *key, struct text *to)
{
	const struct json *list = json_get(r->document, key);

	if (json_length(list))
		json_print(list, false, to);
}

// Keeps the warnings of this apply. True: there are some, and the last apply had the same.
static bool warns_again(struct agent *a, const struct process_result *r)
{
	CLEANUP_FREE char *before = TAKE_PTR(a->warned);
	CLEANUP_TEXT struct text now = {0};

	add_warnings(r, "diagnostics", &now);
	add_warnings(r, "warnings", &now);
	a->warned = mem_strdup(text_get(&now));
	return now.len && before && !strcmp(before, a->warned);
}

void applies_log(struct agent *a, const struct process_result *r, bool awaited)
{
	bool changed = json_is_yes(json_get(r->document, "changed"));

	process_log(r, warns_again(a, r), awaited || changed ? log_notice : log_info);
}

static struct json *applies_report(const struct agent *a)
{
	static const char *const names[APPLIES_SOURCES] = {
		[APPLIES_FILE] = "file", [APPLIES_AGAIN] = "again", [APPLIES_API] = "api"};
	struct json *list = json_array();

	for (size_t n = 0; n < APPLIES_SOURCES; n++) {
		struct json *one = json_object();

		json_set(one, "source", json_string(names[n]));
		json_set(one, "ok", json_u64(a->applies[n].ok));
		json_set(one, "failed", json_u64(a->applies[n].failed));
		json_append(list, one);
	}
	return list;
}

// ---- what the plan says -------------------------------------------------------------------------

static void start_child(struct files *f, bool offline);

static void follow_plan(struct files *f)
{
	const struct plan_now now = plan_now();
	struct file_plan *p = &f->plan;
	bool offline;

	plan_log(&p->messages);
	if (file_plan_begin(p, &offline))
		start_child(f, offline);
	if (p->due_ms)
		agent_task_move(&f->again, p->due_ms > now.ms ? p->due_ms - now.ms : 0);
	else
		agent_task_cancel(&f->again);
	if (file_plan_ends_reload(p))
		parts_reload_done(f->agent);
	agent_changed(f->agent);
}

// ---- applying -----------------------------------------------------------------------------------

// r: NULL if no process was started.
static void fail(struct files *f, const struct err *why, const struct process_result *r)
{
	const struct plan_now now = plan_now();
	const char *said = r ? r->said : "";
	CLEANUP_FREE char *first = mem_printf("%.*s", (int)strcspn(said, "\n"), said);
	char accepted[REVISION_ID] = "";

	revisions_current(f->agent->instance, accepted, NULL);
	applies_count(f->agent, APPLIES_FILE, false);
	if (!file_plan_failed(&f->plan, why->text, first, accepted, &now))
		return;
	if (said[0])
		process_log(r, false, log_error);
	else
		log_error("%s", why->text);
	log_error("the active policy stays");
}

static void succeed(struct files *f, const struct process_result *r)
{
	applies_log(f->agent, r, f->agent->refused.why);
	file_plan_succeeded(&f->plan);
	applies_count(f->agent, APPLIES_FILE, true);
	tell_inputs(f->agent, true);
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
	follow_plan(f);
}

static void start_child(struct files *f, bool offline)
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
	if (offline)
		args[n++] = "--offline";
	if (process_start(f->agent, &request, &f->child, &err))
		fail(f, &err, NULL);
}

void files_apply(struct agent *a, bool offline)
{
	struct file_seen seen;

	if (!a->files)
		return;
	seen = see(a->files);
	file_plan_want(&a->files->plan, &seen, offline);
	follow_plan(a->files);
}

// ---- events -------------------------------------------------------------------------------------

static void on_change(void *ctx)
{
	struct files *f = ctx;
	struct file_seen seen;

	look_again(f);
	seen = see(f);
	file_plan_changed(&f->plan, &seen);
	follow_plan(f);
}

static int try_again(void *ctx, struct err *err)
{
	struct files *f = ctx;
	const struct file_seen seen = see(f);

	file_plan_due(&f->plan, &seen);
	follow_plan(f);
	return 0;
}

// A command has changed something.
static int look(void *ctx, struct err *err)
{
	struct files *f = ctx;
	char accepted[REVISION_ID] = "";
	struct file_seen seen;
	CLEANUP_FD int lock = -1;
	int code;

	if (f->child)
		agent_task_in(&f->look, AFTER_COMMAND);
	if (!file_plan_awaits(&f->plan))
		return 0;
	if ((code = lock_share(f->agent->instance, &lock, err)))
		return code;
	if (revisions_current(f->agent->instance, accepted, NULL))
		return 0;
	seen = see(f);
	file_plan_accepted(&f->plan, &seen, accepted);
	follow_plan(f);
	return 0;
}

// The policy that was applied before the parts started.
static void take_start(struct files *f)
{
	const struct plan_now now = plan_now();
	const struct file_seen seen = see(f);
	struct agent *a = f->agent;
	char accepted[REVISION_ID] = "";

	revisions_current(a->instance, accepted, NULL);
	if (!a->policy_was_absent)
		applies_count(a, APPLIES_FILE, !a->refused.why);
	file_plan_start(&f->plan, &seen, a->policy_was_absent, accepted, &now);
	follow_plan(f);
}

// ---- the part -----------------------------------------------------------------------------------

static int start(struct agent *a, struct err *err)
{
	struct files *f = mem_new(struct files);
	int code;

	f->agent = a;
	f->plan.path = a->policy;
	f->plan.refused = &a->refused;
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
	file_plan_free(&f->plan);
	free(f);
	a->files = NULL;
}

// The service manager waits for the end of the apply.
static int reload(struct agent *a, struct err *err)
{
	struct files *f = a->files;
	struct file_seen seen;

	look_again(f);
	seen = see(f);
	if (file_plan_reload(&f->plan, &seen))
		parts_reload_continues(a);
	follow_plan(f);
	return 0;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	CLEANUP_FREE char *gone =
		mem_printf("'%s' no longer exists; the active policy stays", a->policy);

	if (!a->files)
		return;
	if (a->files->plan.gone) // one that is refused is a problem of the part `policy`
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

// Reports the policy before all other parts.
static int start_policy(struct agent *a, struct err *err)
{
	return 0;
}

static void report_policy(const struct agent *a, struct json *fields, struct json *problems)
{
	json_set(fields, "path", files_have_policy(a) ? json_string(a->policy) : json_nothing());
	json_set(fields, "applies", applies_report(a));
	trouble_report(&a->refused, NULL, problems);
}

const struct agent_part agent_policy = {
	.name = "policy",
	.start = start_policy,
	.report = report_policy,
};
