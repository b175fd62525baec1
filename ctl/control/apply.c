// SPDX-License-Identifier: GPL-2.0-only
// Carries out an apply: everything that can fail comes before the one store that commits.
#include "ctl/control/apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/base/num.h"
#include "ctl/control/detach_stale.h"
#include "ctl/control/lockout.h"
#include "ctl/control/overrides.h"
#include "ctl/control/pool.h"
#include "ctl/control/recover.h"
#include "ctl/control/unchanged.h"
#include "ctl/control/vips.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/reach.h"
#include "ctl/net/ethtool.h"
#include "ctl/net/link.h"

void apply_result_free(struct apply_result *r)
{
	vec_each (&r->absent, name)
		free(*name);
	vec_each (&r->warnings, text)
		free(*text);
	vec_free(&r->absent);
	vec_free(&r->warnings);
	vec_free(&r->attached);
	vec_free(&r->left);
	vec_free(&r->entries_only);
	vec_free(&r->tried);
}

// The devices the policy is for

struct policy_device {
	struct link link;
	uint8_t class; // number of the interface in the policy + 1
	uint8_t mode;  // enum attach_mode
};
struct policy_devices {
	struct policy_device *at;
	size_t n, cap;
};

static int check_present(const struct resolved *r, const struct policy_devices *d,
			 struct apply_result *ret, struct err *err)
{
	for (size_t i = 0; i < r->n_interfaces; i++) {
		const struct resolved_interface *iface = &r->interfaces[i];
		struct link link;
		bool found = false;

		for (size_t n = 0; n < d->n; n++)
			found |= d->at[n].class == i + 1;
		if (found)
			continue;
		if (!iface->pattern && !iface->optional)
			return link_get(iface->name, &link, err); // says what is there instead
		vec_push(&ret->absent, mem_strdup(iface->name));
	}
	return 0;
}

static int find_devices(const struct candidate *c, struct policy_devices *d,
			struct apply_result *ret, struct err *err)
{
	const struct resolved *r = c->resolved;
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	CLEANUP_FREE struct link *links = NULL;
	size_t n = 0;
	int code = link_list(&links, &n, err);

	candidate_about(c, about);
	for (size_t l = 0; !code && l < n; l++) {
		uint8_t class = generation_class(about, links[l].name);

		if (class)
			vec_push(d, ((struct policy_device){links[l], class,
							    r->interfaces[class - 1].mode}));
	}
	return code ? code : check_present(r, d, ret, err);
}

// The device whose offload hides VLAN tags from a program on `link`, and the feature's name; false: none.
// On veth it is the sending end's; ret_unsure: that one is out of sight.
static bool hides_tags(const struct link *link, struct link *ret_device, const char **ret_feature,
		       bool *ret_unsure)
{
	bool veth = !strcmp(link->kind, "veth");
	struct ethtool e;

	*ret_device = *link;
	*ret_feature = veth ? "txvlan" : "rxvlan";
	*ret_unsure =
		veth && (link->lower_elsewhere || link_get_by_index(link->lower, ret_device, NULL));
	if (*ret_unsure || ethtool_get(ret_device->name, &e, NULL))
		return false;
	return (veth ? e.tx_vlan : e.rx_vlan) == ETHTOOL_ON;
}

static int check_tags(const struct candidate *c, const struct apply_options *o,
		      const struct policy_devices *d, struct apply_result *ret, struct err *err)
{
	if (!c->image->config.use[FIELD_VLAN] || o->force)
		return 0;
	vec_each (d, device) {
		const char *feature;
		struct link culprit;
		bool unsure;

		if (hides_tags(&device->link, &culprit, &feature, &unsure)) {
			err_refused(err,
				    "rules with 'vlan' would be blind on '%s': tags are taken "
				    "out of the packet before XDP sees it",
				    device->link.name);
			err_hint(err, "ethtool -K %s %s off", culprit.name, feature);
			return -EOPNOTSUPP;
		}
		if (unsure)
			vec_push(&ret->warnings,
				 mem_printf("'%s' shows VLAN tags only if its other end says: "
					    "ethtool -K PEER txvlan off",
					    device->link.name));
	}
	return 0;
}

// Before the switch

static int check_revision(const struct instance *i, const char *wanted, struct err *err)
{
	struct commit_state state;
	struct generation_about about = {0};
	int code = commit_read(i, &state, err);

	if (!code)
		code = generation_read_about(i, state.active, &about, err);
	if (code || !strcmp(about.revision, wanted))
		return code;
	if (!about.revision[0])
		return err_refused(err, "no policy is in force, so not revision %s either", wanted);
	return err_refused(err, "revision %s is in force, not %s: somebody else applied a policy",
			   about.revision, wanted);
}

// A device that is attached already knows its number; one that will be gets it at attach.
static int set_classes(const struct instance *i, const struct candidate *c, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct iface row;
	int code = 0;

	candidate_about(c, about);

	for (uint32_t n = 1; !code && n < WEIR_IFACES; n++) {
		code = instance_iface(i, n, &row, err);
		if (!code && row.state != IFACE_FREE)
			code = generation_set_iface(c->generation, n,
						    generation_class(about, row.name), err);
	}
	return code;
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
	code = revisions_stage(o->instance, in_force, r, &c->environment, &why);
	if (code && !o->fleeting) {
		*err = why;
		err_hint(err, "--volatile changes the kernel alone");
		return code;
	}
	return 0;
}

// After the switch: interfaces that the policy names and that are not attached yet. A failure leaves the
// switch as it is; the first one is reported.
static int attach_new(struct bringup *b, const struct policy_devices *d, struct apply_result *ret,
		      struct err *err)
{
	int code = 0;

	vec_each (d, device) {
		struct apply_iface one = {0};
		struct err why = {0};
		int failed = bringup_attach(b, device->link.name, (enum attach_mode)device->mode,
					    ret->generation, NULL, &one.attach, &why);

		if (failed && !code) {
			code = failed;
			*err = why;
		}
		if (failed || !one.attach.changed)
			continue;
		snprintf(one.name, sizeof(one.name), "%s", device->link.name);
		vec_push(&ret->attached, one);
	}
	return code;
}

// What is in force, and whether something may be put in its place.
static int settle(struct bringup *b, const struct apply_options *o, struct err *err)
{
	int code = recover_trial(b->instance, err);

	if (!code)
		code = recover_check(b->instance, err);
	if (!code && (code = recover_record(b->instance, err)) && o->fleeting) {
		err_clear(err);
		code = 0;
	}
	if (!code && o->if_revision)
		code = check_revision(b->instance, o->if_revision, err);
	return code;
}

static int prepare(struct bringup *b, struct candidate *c, const struct apply_options *o,
		   struct apply_result *ret, struct err *err)
{
	int code = o->force ? 0 : candidate_check_tracking(c, err);

	c->lb.options = (struct lb_apply_options){o->force, o->trial_ms};
	if (!code)
		code = candidate_load(c, b->instance, err);
	if (!code && !o->force)
		code = vips_check(c, b->instance, err);
	if (!code)
		code = candidate_prove(c, b->instance, err);
	if (!code)
		code = lockout_check(c, b->instance, o, ret, err);
	return code ? code : set_classes(b->instance, c, err);
}

// Pins, counters, slots: the last is the commit. A failure takes back the others.
static int put_in_force(const struct instance *i, struct candidate *c, const struct revision *r,
			uint64_t trial_ms, uint32_t number, struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	int code;

	candidate_about(c, about);
	revision_sign(r, about);
	if ((code = generation_pin(i->folder, c->generation, number, about, err)))
		return code;
	if (!(code = lb_apply_before(&c->lb, i, r->fleeting, err)) &&
	    !(code = identities_enter(i, &c->identities, err)) &&
	    (code = commit_switch(i, c->generation, trial_ms, err)))
		identities_leave(i, &c->identities);
	if (code)
		generation_unpin(i->folder, number);
	return code ? code : lb_apply_after(&c->lb, i, number, err);
}

// What was set for a backend goes with its line.
static int forget_overrides(const char *instance, const struct lb_state *b, struct err *err)
{
	struct overrides overrides = {0};
	int code = overrides_read(instance, &overrides, err);
	size_t before = overrides.n;

	if (code)
		return code;
	overrides_keep_named(&overrides, b, (uint64_t)time(NULL));
	if (overrides.n < before)
		code = overrides_write(instance, &overrides, err);
	vec_free(&overrides);
	return code;
}

// All is done: the next apply of the same need not do it again.
static int finish(const struct instance *i, const struct candidate *c, uint32_t generation,
		  struct err *err)
{
	sum_text sum;

	unchanged_sum(c, sum);
	return generation_finish(i, generation, sum, err);
}

static int switch_over(struct bringup *b, struct candidate *c, const struct apply_options *o,
		       struct apply_result *ret, struct err *err)
{
	struct revision revision = {0};
	int code = commit_next_number(b->instance, &ret->generation, err);

	if (!code)
		code = stage_record(b->instance, c, o, &revision, err);
	if (!code)
		code = put_in_force(b->instance, c, &revision, o->trial_ms, ret->generation, err);
	// In force from here on. A record that cannot become the current one is worth an error, not a way
	// back: the kernel is the truth. That of a fleeting policy serves status and explain only.
	if (!code && !o->trial_ms && !o->fleeting && revision.id[0])
		code = revisions_accept(o->instance, revision.id, err);
	if (!code && !o->trial_ms && !o->fleeting)
		code = forget_overrides(o->instance, c->lb.lb, err);
	if (!code)
		code = finish(b->instance, c, ret->generation, err);
	snprintf(ret->revision, sizeof(ret->revision), "%s", revision.id);
	revision_free(&revision);
	return code;
}

// Services that end with the policy before.
static void note_ended(const struct instance *i, const struct candidate *c,
		       struct apply_result *ret)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	struct commit_state state;
	const struct lb_state *b;

	if (commit_read(i, &state, NULL) || lb_maps_open(i, state.active, &l, NULL))
		return;
	b = lb_maps_state(l);
	for (size_t n = 0; n < b->n_services; n++)
		if (!c->lb.lb || !lb_state_find(c->lb.lb, b->services[n].name))
			vec_push(&ret->warnings,
				 mem_printf(
					 "service '%s' is not in the policy any more: its packets "
					 "go to no backend",
					 b->services[n].name));
}

// What the hand set goes on, which somebody may have forgotten.
static void note_overrides(const struct lb_state *b, struct apply_result *ret)
{
	for (size_t n = 0; b && n < b->n_services; n++)
		for (uint32_t m = 0; m < b->services[n].n_members; m++) {
			const struct lb_member *member =
				&b->members[b->services[n].first_member + m];
			addr_text name;

			if (member->gone || (member->override == BACKEND_UP && !member->weighed))
				continue;
			vec_push(&ret->warnings,
				 mem_printf("service '%s': %s stays %s by hand; weir undrain %s %s "
					    "takes it back",
					    b->services[n].name, pool_name(member, name),
					    member->override == BACKEND_DOWN ? "down"
					    : member->override == BACKEND_DRAIN
						    ? "drained"
						    : "weighed otherwise",
					    b->services[n].name, pool_name(member, name)));
		}
}

// Generic mode gets what the device has merged, which is too big for any backend.
static void warn_merged(const struct instance *i, const struct candidate *c,
			struct apply_result *ret)
{
	struct ethtool e;
	struct iface row;

	for (uint32_t n = 1; c->resolved->n_services && n < WEIR_IFACES; n++) {
		if (instance_iface(i, n, &row, NULL) || row.state == IFACE_FREE ||
		    row.mode != IFACE_GENERIC || ethtool_get(row.name, &e, NULL) ||
		    e.gro != ETHTOOL_ON)
			continue;
		vec_push(
			&ret->warnings,
			mem_printf("'%s' is in generic mode and merges packets, which then are too "
				   "big for a backend: ethtool -K %s gro off",
				   row.name, row.name));
	}
}

// Interfaces that keep Weir, and have only entries from now on.
static void note_entries_only(const struct instance *i, struct apply_result *ret)
{
	struct reach reach;
	struct iface row;

	if (reach_read(i, ret->generation, &reach, NULL) || !reach.named)
		return;
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!instance_iface(i, n, &row, NULL) && row.state != IFACE_FREE &&
		    !reach.classes.class[n])
			memcpy(*vec_add(&ret->entries_only), row.name, sizeof(row.name));
}

static bool is_held(const struct instance *i, uint32_t ifindex)
{
	struct device d;
	struct iface row;

	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (!instance_iface(i, n, &row, NULL) && row.state == IFACE_ATTACHED &&
		    row.ifindex == ifindex && !device_read(i, n, &d, NULL) &&
		    d.state == DEVICE_HELD)
			return true;
	return false;
}

// The policy's devices from which Weir's program is missing.
static void find_missing(const struct instance *i, const struct policy_devices *d,
			 struct policy_devices *missing)
{
	vec_each (d, device)
		if (!is_held(i, device->link.index))
			vec_push(missing, *device);
}

// Interfaces and what else follows a switch.
static int follow(struct bringup *b, struct candidate *c, const struct apply_options *o,
		  const struct policy_devices *d, struct apply_result *ret, struct err *err)
{
	int code;

	b->trial = o->trial_ms;
	code = attach_new(b, d, ret, err);
	warn_merged(b->instance, c, ret);
	if (!code && !o->trial_ms)
		code = detach_stale(b->instance, ret->generation, &ret->left, err);
	ret->attach_failed = code != 0;
	note_entries_only(b->instance, ret);
	return code;
}

static int replace(struct bringup *b, struct candidate *c, const struct apply_options *o,
		   const struct policy_devices *d, struct apply_result *ret, struct err *err)
{
	int code = prepare(b, c, o, ret, err);

	ret->cost = c->cost;
	vec_each (&c->lb.warnings, text)
		vec_push(&ret->warnings, mem_strdup(*text));
	note_overrides(c->lb.lb, ret);
	if (!code)
		note_ended(b->instance, c, ret);
	if (code || o->dry_run)
		return code;
	if ((code = switch_over(b, c, o, ret, err)))
		return code;
	return follow(b, c, o, d, ret, err);
}

// The services of what runs: their times, their rings and next hops as they should be now.
static int renew_services(const struct instance *i, const struct apply_options *o,
			  struct apply_result *ret, struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	CLEANUP_LB_PATHS struct lb_paths ways = {0};
	struct clock now;
	int code = lb_maps_open(i, ret->generation, &l, err);

	if (code)
		return code;
	if (!(code = instance_clock(i, &now, err)) && !o->dry_run)
		code = lb_running_tidy(l, &now, NULL, NULL, err);
	if (!code)
		code = lb_running_refresh(l, 0, !o->dry_run, &ways, err);
	ret->nexthops = ways.changed;
	vec_each (&ways.lost, text)
		vec_push(&ret->warnings, mem_strdup(*text));
	vec_each (&ways.warnings, text)
		vec_push(&ret->warnings, mem_strdup(*text));
	note_overrides(lb_maps_state(l), ret);
	return code;
}

// It is in force. What reaches another interface now is proved as if it were new.
static int keep(struct bringup *b, struct candidate *c, const struct apply_options *o,
		const struct policy_devices *missing, struct apply_result *ret, struct err *err)
{
	int code = missing->n ? prepare(b, c, o, ret, err) : 0;

	ret->unchanged = true;
	ret->cost = c->cost;
	if (!code && !o->dry_run) // as a new record does: of trials that nobody confirmed
		revisions_forget(o->instance, ret->revision);
	if (!code && c->resolved->n_services)
		code = renew_services(b->instance, o, ret, err);
	for (size_t n = 0; !code && o->dry_run && n < missing->n; n++) {
		struct apply_iface one = {0};

		snprintf(one.name, sizeof(one.name), "%s", missing->at[n].link.name);
		vec_push(&ret->attached, one);
	}
	return code || o->dry_run ? code : follow(b, c, o, missing, ret, err);
}

// Would keeping it change something that the end of a trial has to take back?
static bool needs_trial(const struct instance *i, const struct candidate *c, uint32_t generation,
			const struct policy_devices *missing)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	CLEANUP_LB_PATHS struct lb_paths ways = {0};

	if (missing->n || !c->resolved->n_services)
		return missing->n;
	return lb_maps_open(i, generation, &l, NULL) ||
	       lb_running_refresh(l, 0, false, &ways, NULL) || ways.changed;
}

// Does it treat every interface by the name that its device has now?
static bool goes_by_names(const struct instance *i, uint32_t generation)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct reach reach;
	struct iface row;

	if (reach_read(i, generation, &reach, NULL) ||
	    generation_read_about(i, generation, about, NULL))
		return false;
	for (uint32_t n = 1; n < WEIR_IFACES; n++)
		if (instance_iface(i, n, &row, NULL) ||
		    (row.state != IFACE_FREE && !reach_is_by_name(&reach, about, n, row.name)))
			return false;
	return true;
}

static int under_lock(struct bringup *b, struct candidate *c, const struct apply_options *o,
		      const struct policy_devices *d, struct apply_result *ret, struct err *err)
{
	struct policy_devices missing = {0};
	struct in_force now;
	bool same;
	int code = settle(b, o, err);

	if (code)
		return code;
	same = !o->force && unchanged_find(b->instance, c, o->path, o->fleeting, &now) &&
	       goes_by_names(b->instance, now.generation);
	find_missing(b->instance, d, &missing);
	if (same && o->trial_ms)
		same = !needs_trial(b->instance, c, now.generation, &missing);
	if (same) {
		ret->generation = now.generation;
		snprintf(ret->revision, sizeof(ret->revision), "%s", now.revision);
		code = keep(b, c, o, &missing, ret, err);
	} else {
		code = replace(b, c, o, d, ret, err);
	}
	vec_free(&missing);
	return code;
}

static int load_revision(struct candidate *c, const struct apply_options *o, char **ret_path,
			 struct err *err)
{
	struct revision revision = {0};
	int code = revisions_load(o->instance, o->revision, &c->environment, &revision, err);

	if (!code)
		*ret_path = mem_strdup(revision.path);
	revision_free(&revision);
	return code;
}

int apply(struct candidate *c, const struct apply_options *o, struct apply_result *ret,
	  struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	CLEANUP_FREE char *path = o->path ? mem_strdup(o->path) : NULL;
	struct policy_devices devices = {0};
	struct apply_options options = *o; // with the path, also that of an earlier revision
	bool removed;
	int code = o->path ? 0 : load_revision(c, o, &path, err);

	if (!code && candidate_compile(c, path, o->ifaces, o->n_ifaces))
		code = err_input(err, "'%s' has errors; nothing was changed", path);
	if (!code)
		code = lb_apply_find_nexthops(&c->lb, c->resolved, NEXTHOP_WAIT_MS, err);
	if (!code)
		code = find_devices(c, &devices, ret, err);
	if (!code)
		code = check_tags(c, o, &devices, ret, err);
	if (!code)
		code = bringup_open(o->instance, o->command, 0, true, &b, err);
	if (!code) {
		ret->rules = c->image->n_rules;
		ret->expects = c->resolved->n_expects;
		ret->services = c->resolved->n_services;
		options.path = path;
		code = under_lock(&b, c, &options, &devices, ret, err);
		if (!code && !o->dry_run && !instance_has_ifaces(b.instance))
			vec_push(&ret->warnings, mem_strdup("no interface is attached, so that no "
							    "packet meets the policy: weir attach "
							    "IFACE"));
		// An instance that was made for this and holds no interface is taken back.
		if (b.created && (code || o->dry_run))
			bringup_remove_if_idle(&b, &removed, NULL);
	}
	vec_free(&devices);
	return code;
}

// The end of a trial

struct trial {
	struct bringup bringup;
	struct commit_state state;
	struct generation_about about; // of the policy that will be in force
};

static void trial_close(struct trial *t)
{
	bringup_close(&t->bringup);
}

// Of a policy that is in force for good; one that is volatile has changed nothing on disk.
static int forget_confirmed(const struct instance *i, uint32_t generation, const char *revision,
			    struct err *err)
{
	CLEANUP_LB_MAPS struct lb_maps *l = NULL;
	char current[REVISION_ID] = "";
	int code = revisions_current(i->name, current, err);

	if (code || !current[0] || strcmp(current, revision) != 0)
		return code;
	code = lb_maps_open(i, generation, &l, err);
	if (code && code != -ENOENT)
		return code;
	return forget_overrides(i->name, l ? lb_maps_state(l) : NULL, err);
}

// keeps: the slot of the policy that will be in force. ERR_REFUSED when there is no trial.
static int trial_open(const char *instance, const char *command, enum weir_prog keeps,
		      struct trial *t, struct err *err)
{
	struct instance **i = &t->bringup.instance;
	int code;

	t->bringup.lock = -1;
	code = lock_take(instance, command, &t->bringup.lock, err);
	if (!code)
		code = instance_open(instance, i, err);
	if (!code)
		code = device_sync(*i, err);
	if (!code)
		code = recover_record(*i, err);
	if (!code)
		code = commit_read(*i, &t->state, err);
	if (code)
		return code;
	if (!t->state.deadline)
		return err_refused(err, "there is no trial");
	return generation_read_about(*i, keeps == PROG_ACTIVE ? t->state.active : t->state.previous,
				     &t->about, err);
}

// A trial of interfaces alone: which?
static void note_tried(const struct trial *t, struct apply_result *ret)
{
	if (commit_tries_interfaces(&t->state))
		detach_list_brought(t->bringup.instance, &ret->tried);
}

static int refuse_expired(const struct trial *t, const struct ifnames *tried, struct err *err)
{
	struct text names = {0};

	ifnames_text(tried, &names);
	if (!commit_tries_interfaces(&t->state))
		err_refused(err, "the trial has run out: the policy before it is in force");
	else
		err_refused(err, "the trial has run out: %s %s detached again",
			    names.len ? text_get(&names) : "what it tried",
			    tried->n > 1 ? "are" : "is");
	text_free(&names);
	return -EPERM;
}

int apply_confirm(const char *instance, const char *command, struct apply_result *ret,
		  struct err *err)
{
	CLEANUP(trial_close) struct trial t = {0};
	const struct instance *i;
	bool removed;
	int code = trial_open(instance, command, PROG_ACTIVE, &t, err);

	i = t.bringup.instance;
	if (!code)
		note_tried(&t, ret);
	if (!code && t.state.expired) {
		code = recover_trial(i, err);
		if (!code)
			code = refuse_expired(&t, &ret->tried, err);
		if (commit_tries_interfaces(&t.state))
			bringup_remove_if_idle(&t.bringup, &removed, NULL);
	}
	if (!code)
		code = commit_confirm(i, err);
	if (code)
		return code;
	snprintf(ret->revision, sizeof(ret->revision), "%s", t.about.revision);
	code = revisions_recover(instance, ret->revision, err);
	if (!code)
		code = forget_confirmed(i, t.state.active, ret->revision, err);
	return code ? code : detach_stale(i, t.state.active, &ret->left, err);
}

int apply_abandon(const char *instance, const char *command, struct apply_result *ret,
		  struct err *err)
{
	CLEANUP(trial_close) struct trial t = {0};
	const struct instance *i;
	bool removed;
	int code = trial_open(instance, command, PROG_PREVIOUS, &t, err);

	i = t.bringup.instance;
	if (!code)
		note_tried(&t, ret);
	if (!code)
		code = detach_brought(i, &ret->left, err);
	if (!code)
		code = commit_back(i, err);
	if (code)
		return code;
	revisions_forget(instance, t.about.revision);
	snprintf(ret->revision, sizeof(ret->revision), "%s", t.about.revision);
	code = lb_apply_back(i, t.state.previous, err);
	if (!code)
		code = detach_stale(i, t.state.previous, &ret->left, err);
	if (!code && ret->left.n)
		code = bringup_remove_if_idle(&t.bringup, &removed, err);
	return code;
}
