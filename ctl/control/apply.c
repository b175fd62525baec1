// SPDX-License-Identifier: GPL-2.0-only
// Carries out an apply: every step that can fail precedes the one store that commits.
#include "ctl/control/apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/num.h"
#include "ctl/base/time.h"
#include "ctl/control/apply_devices.h"
#include "ctl/control/apply_notes.h"
#include "ctl/control/apply_result.h"
#include "ctl/control/bringup.h"
#include "ctl/control/detach_stale.h"
#include "ctl/control/lb_running.h"
#include "ctl/control/lockout.h"
#include "ctl/control/macs.h"
#include "ctl/control/nat_settle.h"
#include "ctl/control/overrides.h"
#include "ctl/control/prove.h"
#include "ctl/control/quick_apply.h"
#include "ctl/control/quick_entries.h"
#include "ctl/control/recover.h"
#include "ctl/control/shrink.h"
#include "ctl/control/unchanged.h"
#include "ctl/control/unroutable.h"
#include "ctl/control/unseen.h"
#include "ctl/control/vips.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/reach.h"

// Before the switch

static int check_revision(const struct instance *i, const char *wanted, struct err *err)
{
	struct commit_state state;
	struct generation_about about = {0};
	int code = commit_read(i, &state, err);

	if (code)
		return code;
	code = generation_read_about(i, state.active, &about, err);
	if (code || !strcmp(about.revision, wanted))
		return code;
	if (!about.revision[0])
		return err_refused(err, "no policy is active; expected revision %s", wanted);
	return err_refused(err, "revision %s is active, not %s: another apply came first",
			   about.revision, wanted);
}

// Tells the new generation the attached devices; the others get their number at attach.
static int set_classes(const struct instance *i, const struct candidate *c, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct iface iface;

	candidate_about(c, about);
	for (uint32_t n = 1; n < WEIR_IFACES; n++) {
		int code = instance_iface(i, n, &iface, err);

		if (code)
			return code;
		if (iface.state == IFACE_FREE)
			continue;
		code = generation_set_iface(c->generation, n, generation_class(about, iface.name),
					    err);
		if (code || (code = generation_reach(c->generation, iface.ifindex, err)))
			return code;
	}
	return 0;
}

static int stage_record(const struct instance *i, struct candidate *c,
			const struct apply_options *o, struct revision *r, struct err *err)
{
	char in_force[REVISION_ID];
	struct err why = {0};
	int code = recover_in_force(i, in_force, err);

	if (code)
		return code;
	r->path = mem_strdup(o->path);
	r->by = mem_strdup(o->by);
	r->note = mem_strdup(o->note);
	r->at_s = (uint64_t)time(NULL);
	r->fleeting = o->fleeting;
	code = revisions_stage(o->instance, in_force, r, &c->environment, c->resolved, &why);
	if (code && !o->fleeting) {
		*err = why;
		err_hint(err, "--volatile changes only the kernel");
		return code;
	}
	return 0;
}

// Attaches an interface and lists it in ret->attached if the kernel was asked to.
static int attach_one(struct bringup *b, const struct policy_device *device,
		      struct apply_result *ret, struct err *err)
{
	struct apply_iface one = {0};
	int code = bringup_attach(b, device->link.name, (enum attach_mode)device->mode,
				  ret->generation, NULL, &one.attach, err);

	if (code || !one.attach.changed)
		return code;
	snprintf(one.name, sizeof(one.name), "%s", device->link.name);
	vec_push(&ret->attached, one);
	if (unseen_at_attach(b->instance, one.name, &one.attach))
		apply_note_unseen(one.name, ret);
	return 0;
}

// Attaches the interfaces of the policy that are not attached yet. A failure does not undo the
// switch; all interfaces are tried, and the first failure is reported.
static int attach_new(struct bringup *b, const struct policy_devices *d, struct apply_result *ret,
		      struct err *err)
{
	int first = 0;

	vec_each (d, device) {
		struct err why = {0};
		int code = attach_one(b, device, ret, &why);

		if (code && !first) {
			first = code;
			*err = why;
		}
	}
	return first;
}

// Ends what earlier commands left unfinished, then checks whether another policy may be applied.
static int recover(struct bringup *b, const struct apply_options *o, struct err *err)
{
	int code = recover_trial(b->instance, err);

	if (code)
		return code;
	if ((code = recover_check(b->instance, err)))
		return code;
	if ((code = recover_record(b->instance, err)) && !o->fleeting)
		return code;
	err_clear(err);
	return o->if_revision ? check_revision(b->instance, o->if_revision, err) : 0;
}

// Loads the new generation and proves it: tracking, routes, VIPs, expectations, the operator's
// login.
static int prepare(struct bringup *b, struct candidate *c, const struct apply_options *o,
		   struct apply_result *ret, struct err *err)
{
	int code;

	c->lb.options = (struct lb_apply_options){
		.force = o->force, .trial_ms = o->trial_ms, .patient = o->patient};
	if (!o->force && (code = candidate_check_tracking(c, o->quick, err)))
		return code;
	if (!o->force && (code = candidate_check_unroutable(c, o->quick, err)))
		return code;
	if (!o->quick)
		quick_note_tracking(c, ret);
	if ((code = candidate_load(c, b->instance, err)))
		return code;
	if (!o->force && (code = vips_check(c, b->instance, err)))
		return code;
	if ((code = prove_expects(c, err)))
		return code;
	if ((code = quick_judge_expects(c, o, ret, err)))
		return code;
	if ((code = lockout_check(c, b->instance, o, ret, err)))
		return code;
	return set_classes(b->instance, c, err);
}

// Rings for the way back, counters of rules, then the switch, which is the commit.
static int enter_and_switch(const struct instance *i, struct candidate *c, const struct revision *r,
			    uint64_t trial_ms, struct err *err)
{
	int code = lb_apply_before(&c->lb, i, r->fleeting, err);

	if (code)
		return code;
	if ((code = identities_enter(i, &c->identities, err)))
		return code;
	if ((code = commit_switch(i, c->generation, trial_ms, err)))
		identities_leave(i, &c->identities);
	return code;
}

// Activates the generation. A failure before the switch takes back what was written.
static int put_in_force(const struct instance *i, struct candidate *c, const struct revision *r,
			uint64_t trial_ms, uint32_t number, struct apply_result *ret,
			struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	int code;

	if ((code = quick_stage(i, &c->quick, err)))
		return code;
	candidate_about(c, about);
	revision_sign(r, about);
	if ((code = generation_pin(i->folder, c->generation, number, about, err))) {
		quick_settle(i, NULL);
		return code;
	}
	test_program_pin(c->test, i, number);
	if ((code = enter_and_switch(i, c, r, trial_ms, err))) {
		generation_unpin(i->folder, number);
		quick_settle(i, NULL);
		return code;
	}
	ret->switched = true;
	code = lb_apply_after(&c->lb, i, number, err);
	apply_note_freed(c->lb.freed, ret);
	apply_note_sources(i, ret);
	return code;
}

// Marks the generation as complete, so that the next apply of the same policy changes nothing.
static int finish(const struct instance *i, const struct candidate *c, uint32_t generation,
		  struct err *err)
{
	sum_text sum;

	unchanged_sum(c, sum);
	return generation_finish(i, generation, sum, err);
}

// The policy is active. Makes its record the current one; a failure is an error, but does not
// undo the switch. On trial the record stays as it is, and a volatile policy's record serves status
// and explain only.
static int accept_revision(const struct apply_options *o, const struct candidate *c,
			   const struct revision *revision, struct err *err)
{
	int code;

	if (o->trial_ms || o->fleeting)
		return 0;
	if (revision->id[0] && (code = revisions_accept(o->instance, revision->id, err)))
		return code;
	return overrides_forget_unnamed(o->instance, c->lb.lb, err);
}

static int switch_over(struct bringup *b, struct candidate *c, const struct apply_options *o,
		       struct revision *revision, struct apply_result *ret, struct err *err)
{
	int code = commit_next_number(b->instance, &ret->generation, err);

	if (code)
		return code;
	// A device above an interface may be new.
	if (unroutable_of(c->resolved) && (code = macs_refresh(b->instance, err)))
		return code;
	if (!revision->id[0] && (code = stage_record(b->instance, c, o, revision, err)))
		return code;
	code = put_in_force(b->instance, c, revision, o->trial_ms, ret->generation, ret, err);
	if (code)
		return code;
	if ((code = accept_revision(o, c, revision, err)))
		return code;
	return finish(b->instance, c, ret->generation, err);
}

// Adjusts interfaces after a switch: attaches new ones and, without a trial, detaches stale ones.
static int follow(struct bringup *b, struct candidate *c, const struct apply_options *o,
		  const struct policy_devices *d, struct apply_result *ret, struct err *err)
{
	int code;

	b->trial = o->trial_ms;
	code = attach_new(b, d, ret, err);
	apply_note_merged(b->instance, c, ret);
	apply_note_tags(b->instance, c, ret);
	apply_note_routes(b->instance, c, ret);
	code = code || o->trial_ms ? code
				   : detach_stale(b->instance, ret->generation, &ret->left, err);
	ret->attach_failed = code != 0;
	apply_note_entries_only(b->instance, ret);
	return code;
}

// A record that cannot be read or compiled is nothing to keep.
static int check_shrink(const struct instance *i, const struct candidate *c,
			const struct apply_options *o, struct err *err)
{
	CLEANUP_CANDIDATE struct candidate *accepted = candidate_new_replay();
	CLEANUP(revision_free) struct revision r = {0};
	char current[REVISION_ID] = "", in_force[REVISION_ID] = "";
	struct policy_size before, now = policy_size(c->resolved);

	if (revisions_current(o->instance, current, NULL) || !current[0] ||
	    recover_in_force(i, in_force, NULL) ||
	    revisions_load(o->instance, current, &accepted->environment, &r, NULL) ||
	    candidate_resolve(accepted, r.path, NULL, 0))
		return 0;
	before = policy_size(accepted->resolved);
	return shrink_refuse(&before, &now, o->path,
			     strcmp(current, in_force) ? "accepted" : "active", o->instance, err);
}

static int replace(struct bringup *b, struct candidate *c, const struct apply_options *o,
		   const struct policy_devices *d, struct apply_result *ret, struct err *err)
{
	CLEANUP(revision_free) struct revision revision = {0};
	int code = o->unattended ? check_shrink(b->instance, c, o, err) : 0;

	if (code)
		return code;
	code = prepare(b, c, o, ret, err);
	ret->cost = c->cost;
	vec_each (&c->lb.warnings, text)
		vec_push(&ret->warnings, mem_strdup(*text));
	apply_note_overrides(c->lb.lb, ret);
	if (code)
		return code;
	apply_note_ended(b->instance, c, ret);
	if (o->dry_run)
		return 0;
	if (o->force && !o->trial_ms && // switched to once more, under the same revision
	    unchanged_record(b->instance, c, o->path, o->fleeting, &revision))
		revisions_forget(o->instance, revision.id);
	code = switch_over(b, c, o, &revision, ret, err);
	snprintf(ret->revision, sizeof(ret->revision), "%s", revision.id);
	return code ? code : follow(b, c, o, d, ret, err);
}

static int tidy_services(const struct instance *i, struct lb_maps *l, struct err *err)
{
	struct clock now;
	int code = instance_clock(i, &now, err);

	return code ? code : lb_running_tidy(l, &now, NULL, NULL, err);
}

// The services of the running policy: what has expired ends, rings and next hops are brought up to
// date.
static int renew_services(const struct instance *i, const struct apply_options *o,
			  struct apply_result *ret, struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	CLEANUP_LB_PATHS struct lb_paths paths = {0};
	int code = lb_maps_open(i, ret->generation, LB_SLOTS_ALL, &l, err);

	if (code || !l)
		return code;
	if (!o->dry_run && (code = tidy_services(i, l, err)))
		return code;
	code = lb_running_refresh(l, 0, !o->dry_run, &paths, err);
	ret->nexthops = paths.changed;
	vec_each (&paths.lost, text)
		vec_push(&ret->warnings, mem_strdup(*text));
	vec_each (&paths.warnings, text)
		vec_push(&ret->warnings, mem_strdup(*text));
	apply_note_overrides(lb_maps_state(l), ret);
	return code;
}

static void list_missing(const struct policy_devices *missing, struct apply_result *ret)
{
	vec_each (missing, device) {
		struct apply_iface one = {0};

		snprintf(one.name, sizeof(one.name), "%s", device->link.name);
		vec_push(&ret->attached, one);
	}
}

// The policy is active already. Its effect on another interface is proved as if the policy were
// new.
static int keep(struct bringup *b, struct candidate *c, const struct apply_options *o,
		const struct policy_devices *missing, struct apply_result *ret, struct err *err)
{
	int code = missing->n ? prepare(b, c, o, ret, err) : 0;

	ret->unchanged = true;
	ret->cost = c->cost;
	if (code)
		return code;
	if (!o->dry_run) // as a new record does: records of trials that were not confirmed
		revisions_forget(o->instance, ret->revision);
	if (c->resolved->n_services && (code = renew_services(b->instance, o, ret, err)))
		return code;
	if (!o->dry_run)
		return follow(b, c, o, missing, ret, err);
	list_missing(missing, ret);
	return 0;
}

// Whether keeping the policy changes something that the end of a trial must undo.
static bool needs_trial(const struct instance *i, const struct candidate *c, uint32_t generation,
			const struct policy_devices *missing)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	CLEANUP_LB_PATHS struct lb_paths paths = {0};

	if (missing->n || !c->resolved->n_services)
		return missing->n;
	return lb_maps_open(i, generation, LB_SLOTS_USED, &l, NULL) || !l ||
	       lb_running_refresh(l, 0, false, &paths, NULL) || paths.changed;
}

// Whether every interface is treated by the name that its device has now.
static bool goes_by_names(const struct instance *i, uint32_t generation)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct reach reach;
	struct iface iface;

	if (reach_read(i, generation, &reach, NULL) ||
	    generation_read_about(i, generation, about, NULL))
		return false;
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (instance_iface(i, n, &iface, NULL) ||
		    (iface.state != IFACE_FREE && !reach_is_by_name(&reach, about, n, iface.name)))
			return false;
	return true;
}

// Whether the policy is active already, so that only interfaces and next hops are brought up to
// date.
static bool is_unchanged(const struct instance *i, const struct candidate *c,
			 const struct apply_options *o, const struct policy_devices *missing,
			 struct in_force *ret)
{
	if (o->force || !unchanged_find(i, c, o->path, o->fleeting, ret) ||
	    !goes_by_names(i, ret->generation))
		return false;
	return !o->trial_ms || !needs_trial(i, c, ret->generation, missing);
}

static int under_lock(struct bringup *b, struct candidate *c, const struct apply_options *o,
		      const struct policy_devices *d, struct apply_result *ret, struct err *err)
{
	CLEANUP_VEC struct policy_devices missing = {0};
	struct in_force now;
	int code = recover(b, o, err);

	if (code)
		return code;
	if (!b->created && (code = quick_check(b->instance, &c->quick, err)))
		return code;
	apply_devices_missing(b->instance, d, &missing);
	if (!is_unchanged(b->instance, c, o, &missing, &now))
		return replace(b, c, o, d, ret, err);
	ret->generation = now.generation;
	snprintf(ret->revision, sizeof(ret->revision), "%s", now.revision);
	return keep(b, c, o, &missing, ret, err);
}

static int load_revision(struct candidate *c, const struct apply_options *o, char **ret_path,
			 struct err *err)
{
	CLEANUP(revision_free) struct revision revision = {0};
	int code = revisions_load(o->instance, o->revision, &c->environment, &revision, err);

	if (code)
		return code;
	environment_release(&c->environment, (uint64_t)time(NULL));
	c->environment.guard_again = true;
	*ret_path = mem_strdup(revision.path);
	return 0;
}

// The rules of commands stay in front of the policy, except those whose time has come.
static int read_quick(struct candidate *c, const struct apply_options *o, struct apply_result *ret,
		      struct err *err)
{
	int code = quick_read(o->instance, &c->quick, err);

	if (code)
		return code;
	ret->ended = quick_end(&c->quick, time_s(CLOCK_REALTIME));
	ret->quick = c->quick.n;
	return 0;
}

// Everything that needs no lock: text to tables, next hops, devices.
static int compile(struct candidate *c, const struct apply_options *o,
		   struct policy_devices *devices, struct apply_result *ret, struct err *err)
{
	int code;

	c->environment.instance = o->instance;
	c->environment.staged = o->staged;
	c->environment.staged_as = o->path;
	c->environment.standard = o->standard;
	c->environment.offline = o->offline;
	c->environment.force = o->force;
	c->environment.dns = o->dns;
	c->environment.session = o->session;
	c->environment.must_guard = !o->force && !o->trial_ms;
	if ((code = read_quick(c, o, ret, err)))
		return code;
	if (candidate_compile(c, o->path, o->ifaces, o->n_ifaces))
		return err_input(err, "'%s' has errors; nothing was changed", o->path);
	if ((code = lb_apply_find_nexthops(&c->lb, c->resolved, NEXTHOP_WAIT_MS, err)))
		return code;
	if ((code = apply_devices_find(c, devices, ret, err)))
		return code;
	if ((code = apply_devices_check_tags(c, o, devices, ret, err)))
		return code;
	ret->rules = c->image->n_rules - c->resolved->n_quick;
	ret->expects = c->resolved->n_expects;
	ret->services = c->resolved->n_services;
	return 0;
}

// Without a switch, the ends and blocks that were prepared for the policy are removed from the
// table of connections. The next apply completes it after a failure.
static void take_back(const struct instance *i, const struct apply_result *ret)
{
	if (!ret->switched)
		nat_settle(i, NULL, NULL);
}

static int apply_locked(struct bringup *b, struct candidate *c, const struct apply_options *o,
			const struct policy_devices *d, struct apply_result *ret, struct err *err)
{
	int code = under_lock(b, c, o, d, ret, err);

	take_back(b->instance, ret);
	if (code || o->dry_run || instance_has_ifaces(b->instance))
		return code;
	vec_push(&ret->warnings, mem_strdup("no interface is attached: no packet meets the policy "
					    "until 'weir attach IFACE'"));
	return 0;
}

// Without the copies, a feed that fails later has the content of the revision.
static void keep_feeds(const struct candidate *c, struct apply_result *ret)
{
	struct err why = {0};

	if (environment_keep_feeds(&c->environment, &why))
		vec_push(&ret->warnings, mem_strdup(why.text));
}

int apply(struct candidate *c, const struct apply_options *o, struct apply_result *ret,
	  struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	CLEANUP_FREE char *path = o->path ? mem_strdup(o->path) : NULL;
	CLEANUP_VEC struct policy_devices devices = {0};
	struct apply_options options = *o; // with the path, also that of an earlier revision
	bool removed;
	int code = o->path ? 0 : load_revision(c, o, &path, err);

	if (code)
		return code;
	options.path = path;
	if (strlen(path) >= sizeof(((struct generation_about *)0)->path))
		return err_input(err, "the path of a policy has at most %zu bytes",
				 sizeof(((struct generation_about *)0)->path) - 1);
	if ((code = compile(c, &options, &devices, ret, err)))
		return code;
	lockout_prepare(c, &options);
	if ((code = bringup_open(o->instance, o->command, 0, true, &b, err)))
		return code;
	if (b.damaged.text[0])
		vec_push(&ret->warnings, mem_strdup(b.damaged.text));
	code = apply_locked(&b, c, &options, &devices, ret, err);
	if (code == 0 && !o->dry_run)
		keep_feeds(c, ret);
	// An instance that was made for this apply and holds no interface is removed again.
	if (b.created && (code || o->dry_run))
		bringup_remove_if_idle(&b, &removed, NULL);
	return code;
}

// ---- the same policy ----------------------------------------------------------------------------

static int check_same(const struct instance *i, const struct revision *same, struct err *err)
{
	CLEANUP_ENVIRONMENT struct environment w;
	CLEANUP(revision_free) struct revision now = {0};
	char in_force[REVISION_ID] = "";
	int code = recover_in_force(i, in_force, err);

	environment_replay(&w);
	if (code)
		return code;
	if (same->id[0] && !strcmp(in_force, same->id) &&
	    (code = revisions_load_names(i->name, same->id, &w, &now, err)))
		return code;
	if (!strcmp(in_force, same->id) && now.answers == same->answers)
		return 0;
	err_refused(err, "another command has changed the policy meanwhile");
	return -ESTALE;
}

static int switch_same(struct bringup *b, struct candidate *c, const struct apply_options *o,
		       struct revision *same, struct apply_result *ret, struct err *err)
{
	int code = prepare(b, c, o, ret, err);
	uint32_t number;

	if (code || o->dry_run)
		return code;
	if ((code = commit_next_number(b->instance, &number, err)))
		return code;
	if ((code = quick_share(c, o, ret, err)))
		return code;
	code = put_in_force(b->instance, c, same, 0, number, ret, err);
	if (ret->switched) {
		quick_wait_done(o->wait);
		ret->generation = number;
	}
	if (code)
		return code;
	if (!o->quick && (code = revisions_save_names(o->instance, same, &c->environment, err))) {
		err_prefix(err, "the policy has the new addresses, but its record does not");
		return code;
	}
	return finish(b->instance, c, number, err);
}

// A new quick rule with 'vlan' where it would never match.
static int check_quick_tags(const struct candidate *c, const struct apply_options *o,
			    const struct instance *i, struct apply_result *ret, struct err *err)
{
	CLEANUP_VEC struct policy_devices devices = {0};

	if (!o->quick)
		return 0;
	apply_devices_attached(c, i, &devices);
	return apply_devices_check_tags(c, o, &devices, ret, err);
}

static int compile_same(struct candidate *c, const struct apply_options *o,
			struct apply_result *ret, struct err *err)
{
	int code = o->quick ? 0 : read_quick(c, o, ret, err);

	if (code)
		return code;
	if (!o->quick)
		quick_keep_active(&c->quick);
	if (candidate_compile(c, o->path, o->ifaces, o->n_ifaces))
		return o->quick ? err_input(err, "the rule has errors; nothing was changed")
				: err_input(err, "'%s' has errors with the new answers", o->path);
	if (o->quick && (code = quick_judge_rules(c, o, ret, err)))
		return code;
	if (o->quick)
		quick_note_entries(c, o->instance, ret);
	return lb_apply_find_nexthops(&c->lb, c->resolved, NEXTHOP_WAIT_MS, err);
}

int apply_same(struct candidate *c, const struct apply_options *o, struct revision *same,
	       struct apply_result *ret, struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	int code = compile_same(c, o, ret, err);

	if (code)
		return code;
	lockout_prepare(c, o);
	if ((code = bringup_open_running(o->instance, o->command, &b, err)))
		return code;
	if ((code = recover(&b, o, err)))
		return code;
	if ((code = quick_check(b.instance, &c->quick, err)))
		return code;
	if ((code = quick_wait_check(o->wait, err)))
		return code;
	if ((code = check_same(b.instance, same, err)))
		return code;
	if ((code = check_quick_tags(c, o, b.instance, ret, err)))
		return code;
	code = switch_same(&b, c, o, same, ret, err);
	take_back(b.instance, ret);
	return code;
}
