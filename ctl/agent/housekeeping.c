// SPDX-License-Identifier: GPL-2.0-only
// The part of the agent for what time ends: trials, transitions and overrides of services, entries,
// quick rules.
//
// Each is a task. It looks, by reading only, whether something is due, does that as a command
// would, and runs again when the next thing is due. Any command may bring a nearer deadline, so all
// look again after one.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/agent/agent.h"
#include "ctl/agent/commands.h"
#include "ctl/agent/hooks.h"
#include "ctl/agent/process.h"
#include "ctl/agent/record.h"
#include "ctl/agent/task.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"
#include "ctl/base/text.h"
#include "ctl/base/time.h"
#include "ctl/control/apply.h"
#include "ctl/control/entries/store.h"
#include "ctl/control/entries/upkeep.h"
#include "ctl/control/lb_due.h"
#include "ctl/control/overrides.h"
#include "ctl/control/pool.h"
#include "ctl/control/quick_apply.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/iface_table.h"
#include "ctl/datapath/lock.h"

#define AFTER_COMMAND_MS 50     // commands in quick succession are looked at together
#define LOOK_MOST_MS     300000 // wall clocks are set, machines sleep
#define TRIAL_LOOK_MS    500    // quick rules that end as soon as a trial has ended
#define ENTRIES_LEAST_MS 1000   // between two removals of entries, which packets do not see
#define ENTRIES_SHARE    100    // looking for them takes at most one hundredth of the time
#define MORE_LEAST_MS    100    // if more have expired than one commit removes
#define MORE_SHARE       10     // removing them takes at most a tenth of the time
#define ENTRIES_SLOTS    8192   // slots of the index, in one commit

struct housekeeping {
	struct agent *agent;
	struct agent_task trial, services, entries, rules;
	uint32_t trial_of;            // the generation whose trial was seen last; 0: none runs
	uint64_t trial_ends_ms;       // monotonic
	uint64_t brought;             // interfaces that this trial attached (commit.h)
	char tried[REVISION_ID];      // its revision; "": a trial of interfaces
	uint64_t walked_ms;           // monotonic, the last tidy of the services
	bool is_due;                  // a tidy, for what is in `due`
	struct lb_due due;            // for the copy that tidies up
	struct agent_process *tidy;   // reads all pins, which takes long; NULL: none runs
	struct agent_process *ending; // ends quick rules, so it compiles; NULL: none runs
};

// ---- to look ------------------------------------------------------------------------------------

// The instance and its state at one moment, under the shared lock, which glance_end() releases.
struct glance {
	struct instance *instance;
	struct commit_state state;
	int lock;
};

static void glance_end(struct glance *l)
{
	instance_free(l->instance);
	fd_close(l->lock);
}

static int glance(const struct housekeeping *h, struct glance *ret, struct err *err)
{
	int code = lock_share(h->agent->instance, &ret->lock, err);

	if (code)
		return code;
	if ((code = instance_open(h->agent->instance, &ret->instance, err)))
		return code;
	return commit_read(ret->instance, &ret->state, err);
}

// ---- trials -------------------------------------------------------------------------------------

static void tell_hook(const struct housekeeping *h, const char *from, const char *to)
{
	CLEANUP_FREE char *object =
		h->tried[0] ? mem_printf("revision %s", h->tried) : mem_strdup("interfaces");

	hooks_tell(h->agent, &(struct hook_event){
				     .event = "trial", .object = object, .from = from, .to = to});
}

// Are all interfaces that the trial attached still attached?
static bool has_brought(const struct housekeeping *h, const struct instance *i)
{
	struct iface iface;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (h->brought & iface_bit(n) &&
		    (instance_iface_stored(i, n, &iface, NULL) || iface.state == IFACE_FREE))
			return false;
	return true;
}

// Returns how the trial that was seen last has ended.
static const char *end_of(const struct housekeeping *h, const struct instance *i,
			  const struct commit_state *now)
{
	if (!now->expired && now->active == h->trial_of && has_brought(h, i))
		return "confirmed";
	return now->expired || agent_now_ms() >= h->trial_ends_ms ? "expired" : "ended";
}

static void begin_trial(struct housekeeping *h, const struct instance *i,
			const struct commit_state *now)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);

	h->trial_of = now->active;
	generation_read_about(i, now->active, about, NULL);
	snprintf(h->tried, sizeof(h->tried), "%s",
		 commit_tries_interfaces(now) ? "" : about->revision);
	tell_hook(h, NULL, "running");
}

// Also in its last millisecond.
static bool runs(const struct commit_state *s)
{
	return s->deadline && !s->expired;
}

static void see_trial(struct housekeeping *h, const struct instance *i,
		      const struct commit_state *now, uint64_t left_ms)
{
	if (h->trial_of && (!runs(now) || now->active != h->trial_of)) {
		tell_hook(h, "running", end_of(h, i, now));
		h->trial_of = 0;
	}
	if (!runs(now))
		return;
	h->trial_ends_ms = agent_now_ms() + left_ms;
	h->brought = now->brought;
	if (!h->trial_of)
		begin_trial(h, i, now);
}

static int look_at_trial(struct housekeeping *h, bool *ret_expired, struct err *err)
{
	CLEANUP(glance_end) struct glance look = {.lock = -1};
	struct clock now;
	uint64_t left_ms;
	int code = glance(h, &look, err);

	if (code)
		return code;
	if ((code = instance_clock(look.instance, &now, err)))
		return code;
	*ret_expired = look.state.expired;
	left_ms = runs(&look.state) ? clock_ms_until(&now, look.state.deadline) : 0;
	see_trial(h, look.instance, &look.state, left_ms);
	if (runs(&look.state))
		agent_task_in(&h->trial, left_ms);
	return 0;
}

static void tell_trial(struct agent *a, const struct apply_result *result)
{
	CLEANUP_TEXT struct text names = {0}, what = {0}, why = {0};

	ifnames_text(&result->tried, &names);
	if (result->tried.n) {
		text_addf(&what, "the trial of %s has expired", text_get(&names));
		text_add(&why, "detached");
	} else {
		text_add(&what, "the trial has expired");
		text_addf(&why, "%s%s is active again",
			  result->revision[0] ? "revision " : "the empty policy", result->revision);
	}
	log_notice("%s: %s", text_get(&what), text_get(&why));
	record_change(a, &(struct record_change){.part = "trials",
						 .verb = "trial",
						 .what = text_get(&what),
						 .why = text_get(&why)});
}

static int do_trial(void *part, struct err *err)
{
	struct housekeeping *h = part;
	CLEANUP_APPLY_RESULT struct apply_result result = {0};
	bool expired = false;
	int code;

	if (!bpffs_exist(h->agent->instance))
		return 0;
	if ((code = look_at_trial(h, &expired, err)) || !expired)
		return code;
	if ((code = apply_end_expired(h->agent->instance, h->agent->command, &expired, &result,
				      err)))
		return code;
	if (expired)
		tell_trial(h->agent, &result);
	return 0;
}

// ---- services -----------------------------------------------------------------------------------

// While a trial runs, nothing may be changed: the end of the trial is a command, or the task above.
// Nothing is late by that: slots that are changing stay so through the trial and a hold longer
// (ring_extend), and a trial takes no longer than `idle`, so the hold is looked at in time.
static int look_at_services(struct housekeeping *h, struct lb_due *ret, bool *ret_any,
			    struct err *err)
{
	CLEANUP_POOL struct pool pool = {.lock = -1};
	CLEANUP_FD int lock = -1;
	struct commit_state state;
	struct err why = {0};
	int code = lock_share(h->agent->instance, &lock, err);

	*ret_any = false;
	if (code)
		return code;
	code = pool_open(h->agent->instance, NULL, &pool, &why);
	if (code && why.kind == ERR_INPUT)
		return 0; // no services
	if (code) {
		*err = why;
		return code;
	}
	if ((code = commit_read(pool.instance, &state, err)) || state.deadline)
		return code;
	*ret_any = true;
	return lb_due(pool.live, &pool.clock, ret, err);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

// Milliseconds until the services need a tidy; 0: now.
static uint64_t tidy_in(const struct housekeeping *h, const struct lb_due *due)
{
	uint64_t since = agent_now_ms() - h->walked_ms;
	uint64_t walk = due->walk_ms <= since ? 0 : due->walk_ms - since;

	return least(due->tidy_ms, due->walk_ms == LB_DUE_NEVER ? LB_DUE_NEVER : walk);
}

static void tell_ended(const struct agent *a, const char *override)
{
	CLEANUP_FREE char *what = mem_printf("%s has ended", override);

	log_notice("%s", what);
	record_change_here(
		a, &(struct record_change){.part = "services", .verb = "expire", .what = what});
}

// Opening the pool for a change tidies it up. Output: a byte if it was opened.
static int tidy_services(void *part, struct text *output, struct err *err)
{
	CLEANUP_POOL struct pool pool = {.lock = -1};
	const struct housekeeping *h = part;
	struct err why = {0};
	int code = pool_open(h->agent->instance, h->agent->command, &pool, &why);

	if (code == -EBUSY || (code && why.kind == ERR_INPUT))
		return 0; // a trial has begun, or the services are gone
	if (code) {
		*err = why;
		return code;
	}
	text_addc(output, '1');
	vec_each (&h->due.ended, text)
		tell_ended(h->agent, *text);
	return h->due.ended.n ? overrides_forget_unnamed(h->agent->instance, pool.state, err) : 0;
}

static void on_tidied(void *part, const struct process_result *r)
{
	struct housekeeping *h = part;
	char done;

	h->tidy = NULL;
	if (process_take(r, &done, 1))
		h->walked_ms = agent_now_ms();
	agent_task_end(&h->services, r->status, &r->err);
	if (!r->status)
		agent_task_in(&h->services, AFTER_COMMAND_MS); // for the next deadline
}

// The copy of the agent has the list of what has ended.
static int start_tidy(struct housekeeping *h, struct err *err)
{
	const struct process_request request = {.run = tidy_services, .done = on_tidied, .ctx = h};
	int code = process_start(h->agent, &request, &h->tidy, err);

	lb_due_free(&h->due);
	h->is_due = false;
	return code ? code : -EINPROGRESS;
}

// To look and to copy an agent that has much memory are two callbacks, each of some milliseconds.
static int do_services(void *part, struct err *err)
{
	struct housekeeping *h = part;
	uint64_t wait;
	bool any;
	int code;

	if (h->tidy)
		return -EINPROGRESS;
	if (!bpffs_exist(h->agent->instance))
		return 0;
	if (h->is_due)
		return start_tidy(h, err);
	lb_due_free(&h->due);
	if ((code = look_at_services(h, &h->due, &any, err)) || !any)
		return code;
	wait = tidy_in(h, &h->due);
	h->is_due = !wait;
	agent_task_in(&h->services, least(least(wait, h->due.look_ms), LOOK_MOST_MS));
	return wait ? 0 : -EINPROGRESS;
}

// ---- entries ------------------------------------------------------------------------------------

// Removals of entries within a second are joined. Entries that expire while the store is read are
// removed at the next look.
static uint64_t entries_in(const struct store_expiry *e, uint64_t took_ms)
{
	uint64_t ms = e->next_s == RECORD_NEVER ? LOOK_MOST_MS
		      : e->next_s * 1000 > e->wall_ms
			      ? e->next_s * 1000 - e->wall_ms + ENTRIES_LEAST_MS
			      : 0;

	if (ms < ENTRIES_LEAST_MS + took_ms * ENTRIES_SHARE)
		ms = ENTRIES_LEAST_MS + took_ms * ENTRIES_SHARE;
	return least(ms, LOOK_MOST_MS);
}

static int do_entries(void *part, struct err *err)
{
	struct housekeeping *h = part;
	struct store_expiry e;
	uint64_t began = agent_now_ms(), took;
	size_t removed;
	int code;

	if (!bpffs_exist(h->agent->instance))
		return 0;
	if ((code = store_expiry(h->agent->instance, &e, err)))
		return code;
	if (!e.due) {
		agent_task_in(&h->entries, entries_in(&e, agent_now_ms() - began));
		return 0;
	}
	if ((code = entries_expire(h->agent->instance, h->agent->command, e.first, ENTRIES_SLOTS,
				   &removed, err)))
		return code;
	if (removed)
		record_change(h->agent, &(struct record_change){.part = "entries",
								.verb = "expire",
								.what = "expired entries",
								.entries = true,
								.removed = removed});
	took = agent_now_ms() - began;
	agent_task_in(&h->entries,
		      e.due > ENTRIES_SLOTS ? took * MORE_SHARE + MORE_LEAST_MS : ENTRIES_LEAST_MS);
	return 0;
}

// ---- quick rules --------------------------------------------------------------------------------

static void tell_rules(const struct agent *a, size_t ended)
{
	CLEANUP_FREE char *what = mem_printf("%zu quick %s ended", ended,
					     num_plural(ended, "rule has", "rules have"));

	log_notice("%s", what);
	record_change_here(
		a, &(struct record_change){.part = "rules", .verb = "expire", .what = what});
}

static int end_rules(void *part, struct text *output, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *c = candidate_new_replay();
	CLEANUP_APPLY_RESULT struct apply_result result = {0};
	const struct housekeeping *h = part;
	const struct apply_options options = {
		.instance = h->agent->instance,
		.command = h->agent->command,
		.dns = *h->agent->dns,
		.force = true, // an end is no reason to ask again
	};
	int code = quick_apply(c, &options, NULL, NULL, &result, err);

	if (code == -EBUSY)
		return 0; // a trial has begun
	if (quick_is_other_command(code))
		return -EAGAIN;
	if (code)
		return code;
	if (result.ended)
		tell_rules(h->agent, result.ended);
	return 0;
}

static void on_rules_ended(void *part, const struct process_result *r)
{
	struct housekeeping *h = part;

	h->ending = NULL;
	agent_task_end(&h->rules, r->status, &r->err);
	if (!r->status)
		agent_task_in(&h->rules, AFTER_COMMAND_MS); // for the next end
}

// Until a rule ends; 0: now. During a trial nothing ends.
static int look_at_rules(struct housekeeping *h, uint64_t *ret_ms, struct err *err)
{
	CLEANUP_QUICK struct quick_rules q = {0};
	CLEANUP(glance_end) struct glance look = {.lock = -1};
	uint64_t now_ms = time_ms(CLOCK_REALTIME), next_s;
	int code = glance(h, &look, err);

	if (code)
		return code;
	if ((code = quick_read(h->agent->instance, &q, err)))
		return code;
	next_s = quick_next_end(&q);
	if (next_s == UINT64_MAX)
		*ret_ms = LOOK_MOST_MS;
	else if (next_s * 1000 > now_ms)
		*ret_ms = least(next_s * 1000 - now_ms, LOOK_MOST_MS);
	else
		*ret_ms = look.state.deadline ? TRIAL_LOOK_MS : 0;
	return 0;
}

static int do_rules(void *part, struct err *err)
{
	const struct process_request request = {
		.run = end_rules, .done = on_rules_ended, .ctx = part};
	struct housekeeping *h = part;
	uint64_t wait;
	int code;

	if (h->ending)
		return -EINPROGRESS;
	if (!bpffs_exist(h->agent->instance))
		return 0;
	if ((code = look_at_rules(h, &wait, err)))
		return code;
	if (wait) {
		agent_task_in(&h->rules, wait);
		return 0;
	}
	code = process_start(h->agent, &request, &h->ending, err);
	return code ? code : -EINPROGRESS;
}

// ---- the part -----------------------------------------------------------------------------------

static void begin(struct agent_task *task, uint64_t ms)
{
	agent_after_command(task->agent, task, ms);
	agent_task_in(task, 0);
}

static int start(struct agent *a, struct err *err)
{
	struct housekeeping *h = mem_new(struct housekeeping);

	h->agent = a;
	a->housekeeping = h;
	agent_task_init(&h->trial, a, "end of a trial", do_trial, h);
	agent_task_init(&h->services, a, "services", do_services, h);
	agent_task_init(&h->entries, a, "expired entries", do_entries, h);
	agent_task_init(&h->rules, a, "ends of quick rules", do_rules, h);
	begin(&h->rules, AFTER_COMMAND_MS);
	begin(&h->trial, AFTER_COMMAND_MS);
	begin(&h->services, AFTER_COMMAND_MS);
	begin(&h->entries, ENTRIES_LEAST_MS);
	return 0;
}

static void stop(struct agent *a)
{
	struct housekeeping *h = a->housekeeping;

	if (!h)
		return;
	agent_task_free(&h->trial);
	agent_task_free(&h->services);
	process_stop(h->tidy);
	lb_due_free(&h->due);
	agent_task_free(&h->entries);
	agent_task_free(&h->rules);
	process_stop(h->ending);
	free(h);
	a->housekeeping = NULL;
}

static void report(const struct agent *a, struct json *fields, struct json *problems)
{
	const struct housekeeping *h = a->housekeeping;

	agent_task_report(&h->trial, problems);
	agent_task_report(&h->services, problems);
	agent_task_report(&h->entries, problems);
	agent_task_report(&h->rules, problems);
}

const struct agent_part agent_housekeeping = {
	.name = "housekeeping",
	.start = start,
	.stop = stop,
	.report = report,
};
