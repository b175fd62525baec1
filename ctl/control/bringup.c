// SPDX-License-Identifier: GPL-2.0-only
// Creates, restores and removes instances and attaches interfaces, in the order in which that is
// safe.
#include "ctl/control/bringup.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/log.h"
#include "ctl/base/mem.h"
#include "ctl/base/progress.h"
#include "ctl/base/time.h"
#include "ctl/control/entries/store.h"
#include "ctl/control/entries/upkeep.h"
#include "ctl/control/fitness.h"
#include "ctl/control/macs.h"
#include "ctl/control/recover.h"
#include "ctl/control/tracking.h"
#include "ctl/control/unchanged.h"
#include "ctl/control/unroutable.h"
#include "ctl/datapath/attach_remove.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/instance.h"
#include "ctl/datapath/instance_create.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/outgoing.h"
#include "ctl/datapath/probe.h"
#include "ctl/datapath/reach.h"
#include "ctl/net/link.h"

void restore_free(struct restore *r)
{
	candidate_free(r->candidate);
	revision_free(&r->revision);
	*r = (struct restore){0};
}

// The path of the text to compile; without a policy, of an empty one.
static int load_accepted(const char *instance, const char *id, struct restore *r,
			 const char **ret_path, struct err *err)
{
	int code;

	if (!id[0]) {
		r->revision.path = mem_strdup("");
		r->revision.by = mem_strdup("");
		*ret_path = candidate_no_policy(r->candidate);
		return 0;
	}
	code = revisions_load(instance, id, &r->candidate->environment, &r->revision, err);
	*ret_path = r->revision.path;
	if (!code)
		return 0;
	err_prefix(err, "cannot restore the accepted policy %s", id);
	if (err)
		err->kind = ERR_SYSTEM; // the operator did not enter the name
	return code;
}

// Takes the rules; quick NULL: none.
static int compile_accepted(const char *instance, const char *id, struct quick_rules *quick,
			    struct restore *r, struct err *err)
{
	const char *path;
	int code;

	r->candidate = candidate_new_replay();
	if (quick) {
		r->candidate->quick = *quick;
		*quick = (struct quick_rules){0};
	}
	if ((code = load_accepted(instance, id, r, &path, err)))
		return code;
	if (candidate_compile(r->candidate, path, NULL, 0))
		return err_stated(err, EBADMSG, "%s%s no longer %s",
				  id[0] ? "the accepted policy " : "the quick rules", id,
				  id[0] ? "compiles" : "compile");
	return 0;
}

static void take_first(void *ctx, enum diag_level level, const char *file, unsigned line,
		       unsigned column, const char *message, const char *hint)
{
	struct err *why = ctx;

	if (level == DIAG_ERROR && !why->text[0])
		err_refused(why, "the quick rules are left out: %s: %s", file ? file : "policy",
			    message);
}

// A quick rule that does not compile keeps nothing else from being restored.
static int leave_out(const char *instance, const char *id, struct restore *r, struct err *err)
{
	struct err why = {0};
	int code = 0;

	diag_each(r->candidate->diag, take_first, &why);
	restore_free(r);
	err_clear(err);
	if (id[0])
		code = compile_accepted(instance, id, NULL, r, err);
	r->left_out = why;
	return code;
}

// id "": quick rules only; without any, r->candidate remains NULL.
static int prepare(const char *instance, const char *id, struct restore *r, struct err *err)
{
	CLEANUP_QUICK struct quick_rules quick = {0};
	int code = quick_read(instance, &quick, err);

	if (code)
		return code;
	quick_end(&quick, time_s(CLOCK_REALTIME));
	if (!id[0] && !quick.n)
		return 0;
	code = compile_accepted(instance, id, &quick, r, err);
	if (code && r->candidate->quick.n && diag_errors(r->candidate->diag))
		code = leave_out(instance, id, r, err);
	if (code || !r->candidate)
		return code;
	return lb_apply_find_nexthops(&r->candidate->lb, r->candidate->resolved, NEXTHOP_WAIT_MS,
				      err);
}

// Runs without the lock, as neighbours may be waited for. The restore under the lock reports any
// failure.
static void restore_prepare(const char *instance, struct restore *ret)
{
	char id[REVISION_ID] = "";

	*ret = (struct restore){0};
	if (!revisions_current(instance, id, NULL) && prepare(instance, id, ret, NULL))
		restore_free(ret);
}

static int mark_complete(const struct instance *i, const struct candidate *c, uint32_t number,
			 struct err *err)
{
	sum_text sum;

	unchanged_sum(c, sum);
	return generation_finish(i, number, sum, err);
}

static int load(const struct instance *i, struct candidate *c, const struct revision *r,
		struct err *err)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	uint32_t number;
	int code;

	if ((code = candidate_load(c, i, err)))
		return code;
	candidate_about(c, about);
	revision_sign(r, about);
	if ((code = commit_next_number(i, &number, err)))
		return code;
	if ((code = quick_stage(i, &c->quick, err)))
		return code;
	if ((code = generation_pin(i->folder, c->generation, number, about, err)))
		return code;
	test_program_pin(c->test, i, number);
	if ((code = identities_enter(i, &c->identities, err)))
		return code;
	if ((code = commit_switch(i, c->generation, 0, err)))
		return code;
	if ((code = lb_apply_after(&c->lb, i, number, err)))
		return code;
	if ((code = mark_complete(i, c, number, err)))
		return code;
	// The second switch makes it the previous policy as well, in place of the empty one of a
	// new instance.
	return commit_switch(i, c->generation, 0, err);
}

// The restored policy is without the saved rules. They become the only list, so that no other one
// counts as active.
static int keep_rules(const char *instance, struct err *err)
{
	CLEANUP_QUICK struct quick_rules q = {0};
	int code = quick_read(instance, &q, err);

	return code || !q.version ? code : quick_save(instance, &q, err);
}

// Loads the current revision, and quick rules in front of it, and puts it into both slots; if
// another one was prepared, prepares this one. No accepted policy: 0 and an empty ret_revision. The
// caller holds the lock.
static int restore_policy(const struct instance *i, struct restore *r,
			  char ret_revision[REVISION_ID], struct err *err)
{
	char id[REVISION_ID] = "";
	int code = revisions_current(i->name, id, err);

	ret_revision[0] = '\0';
	if (code)
		return code;
	if (!r->candidate || strcmp(id, r->revision.id) != 0) {
		restore_free(r);
		if ((code = prepare(i->name, id, r, err)))
			return code;
	}
	if (r->left_out.text[0] && (code = keep_rules(i->name, err)))
		return code;
	if (!r->candidate)
		return 0;
	if ((code = load(i, r->candidate, &r->revision, err)))
		return code;
	snprintf(ret_revision, REVISION_ID, "%s", id);
	return 0;
}

void bringup_close(struct bringup *b)
{
	instance_free(b->instance);
	fd_close(b->lock);
	b->instance = NULL;
	b->lock = -1;
}

// At boot, a table of nft can start it later; until then `not established` matches every packet of
// TCP and UDP.
static void warn_tracking(const struct candidate *c)
{
	const struct image_rule *rule = candidate_tracks(c);

	if (rule && tracking_fails_now(tracking_of(c->resolved)))
		log_warning("rule \"%s\" (%s) needs connection tracking, which is off in this "
			    "network namespace",
			    rule->identity, rule->place);
}

// Until a sysctl is set, its rules match nothing.
static void warn_unroutable(const struct candidate *c)
{
	uint32_t off = unroutable_off(unroutable_of(c->resolved));

	if (off)
		log_warning("the loopback device does not forward: 'unroutable' matches no "
			    "packet%s (%s)",
			    unroutable_packets(off), unroutable_mend(off));
}

// Restores policy and overlay from the state folder. An accepted policy that cannot be restored
// does not block a new one.
static int restore_state(struct bringup *b, struct restore *r, const char *name, bool new_policy,
			 struct err *err)
{
	CLEANUP_PROGRESS unsigned operation = progress_begin("restoring instance '%s'", name);
	int code = restore_policy(b->instance, r, b->revision, err);

	if (code && !new_policy) {
		err_hint(err, "weir apply FILE applies another policy");
		return code;
	}
	if (code)
		keep_rules(name, NULL);
	err_clear(err);
	if (r->left_out.text[0] && !new_policy)
		log_warning("%s", r->left_out.text);
	if (b->revision[0])
		b->cost = r->candidate->cost;
	if (r->candidate && !new_policy) {
		warn_tracking(r->candidate);
		warn_unroutable(r->candidate);
	}
	if ((code = entries_restore(b->instance, &b->restored, &b->damaged, err)))
		err_hint(err, "move '%s/%s/overlay' away to begin without it", WEIR_STATE_FOLDER,
			 name);
	return code;
}

// The instance becomes visible after everything is restored; instance_sweep removes what a killed
// command leaves.
static int create(struct bringup *b, struct restore *r, const char *name, uint32_t max_entries,
		  bool new_policy, struct err *err)
{
	int code = instance_create(name, max_entries ? max_entries : WEIR_OVERLAY_MAX, &b->instance,
				   err);

	if (code)
		return code;
	b->created = true;
	if ((code = restore_state(b, r, name, new_policy, err)) ||
	    (code = instance_publish(b->instance, err)))
		instance_sweep(name, NULL);
	return code;
}

static int check_size(const struct bringup *b, uint32_t max_entries, struct err *err)
{
	if (!max_entries || max_entries == b->instance->meta.max_entries)
		return 0;
	err_refused(err, "instance '%s' runs with --max-entries %u", b->instance->name,
		    b->instance->meta.max_entries);
	err_hint(err, "weir detach first; entries are kept");
	return -EBUSY;
}

static int open_running(struct bringup *b, const char *name, uint32_t max_entries, struct err *err)
{
	CLEANUP_DEVICES struct devices devices = {0};
	int code = instance_open(name, &b->instance, err);

	if (code)
		return code;
	if ((code = check_size(b, max_entries, err)))
		return code;
	if ((code = devices_sync(b->instance, &devices, err)))
		return code;
	if ((code = recover_trial(b->instance, err)))
		return code;
	return macs_refresh(b->instance, err);
}

// A machine that cannot block outgoing connections is attached all the same.
static void follow_outgoing(const struct instance *i)
{
	struct err why = {0};
	err_full_text full;
	bool whole;

	if (outgoing_follow(i, &whole, &why))
		log_warning("outgoing connections are not blocked: %s", err_full(&why, full));
	else if (!whole)
		log_warning("outgoing connections are blocked only for processes of a container: "
			    "the root of cgroup 2 is not visible here");
}

int bringup_open(const char *name, const char *command, uint32_t max_entries, bool new_policy,
		 struct bringup *ret, struct err *err)
{
	CLEANUP_RESTORE struct restore restore = {0};
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	int code = bpffs_ready(err);

	if (code)
		return code;
	if (!bpffs_exist(name))
		restore_prepare(name, &restore);
	if ((code = lock_take(name, command, &b.lock, err)))
		return code;
	if ((code = instance_sweep(name, err)))
		return code;
	code = bpffs_exist(name) ? open_running(&b, name, max_entries, err)
				 : create(&b, &restore, name, max_entries, new_policy, err);
	if (code)
		return code;
	follow_outgoing(b.instance);
	*ret = b;
	b = (struct bringup){.lock = -1};
	return 0;
}

int bringup_open_running(const char *name, const char *command, struct bringup *ret,
			 struct err *err)
{
	CLEANUP_BRINGUP struct bringup b = {.lock = -1};
	int code = lock_take(name, command, &b.lock, err);

	if (code)
		return code;
	if ((code = open_running(&b, name, 0, err)))
		return code;
	*ret = b;
	b = (struct bringup){.lock = -1};
	return 0;
}

static int check_link(const struct link *link, struct err *err)
{
	if (link->type == ARPHRD_ETHER)
		return 0;
	if (link->type == ARPHRD_LOOPBACK)
		err_refused(err,
			    "'%s' is the loopback interface: no packet from outside arrives there",
			    link->name);
	else
		err_refused(err,
			    "'%s' is not an Ethernet device (%s): its packets start at the IP "
			    "header",
			    link->name, link->kind[0] ? link->kind : "type unknown");
	return -EOPNOTSUPP;
}

// Records the policy that brought the interface, for detach_stale(). A command killed before this
// leaves an interface that stays attached.
static int note_origin(const struct instance *i, uint32_t generation,
		       const struct attach_result *result, struct err *err)
{
	struct iface iface;
	int code = instance_iface(i, result->number, &iface, err);

	if (code || iface.generation == generation || (generation && !result->changed))
		return code;
	iface.generation = generation;
	return instance_set_iface(i, result->number, &iface, err);
}

static bool is_by_name(const struct instance *i, uint32_t number, const char *name)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct reach reach;

	return !reach_in_force(i, &reach, NULL) &&
	       !generation_read_about(i, reach.generation, about, NULL) &&
	       reach_is_by_name(&reach, about, number, name);
}

// Does attaching change nothing for the packets of the interface? It changes something for a device
// that was renamed, since policies then apply to the new name, and for a device that a trial has
// attached, since the device then stays attached after the trial.
static bool is_settled(const struct instance *i, uint32_t held, const char *name)
{
	return held && is_by_name(i, held, name) && !(i->knobs->brought >> held & 1);
}

static void add_warning(const char *warning, struct attach_result *ret)
{
	size_t len = strlen(ret->notice);

	if (warning[0])
		snprintf(ret->notice + len, sizeof(ret->notice) - len, "%s%s", len ? "; " : "",
			 warning);
}

// Checks everything that may refuse the interface, and changes nothing.
static int check_attach(const struct bringup *b, const char *ifname, const struct gate *gate,
			struct link *link, uint32_t *held, char *warning, size_t size,
			struct err *err)
{
	int code = link_get(ifname, link, err);

	if (code)
		return code;
	if ((code = check_link(link, err)))
		return code;
	// An interface that cannot be inspected does not count as detached, as the end of a trial
	// would then detach it.
	if ((code = device_find_held(b->instance, link->index, held, err)))
		return code;
	if (!gate || is_settled(b->instance, *held, ifname))
		return 0;
	return gate_check(b->instance, link, gate, warning, size, err);
}

// The policies learn the number of the interface and its own MAC addresses before the first packet
// arrives.
static int introduce(const struct bringup *b, const struct link *link, uint32_t *ret_number,
		     struct err *err)
{
	int code = attach_reserve(b->instance, link->name, link->index, ret_number, err);

	if (code)
		return code;
	if ((code = macs_refresh(b->instance, err)))
		return code;
	return generation_introduce(b->instance, *ret_number, link->name, err);
}

int bringup_attach(struct bringup *b, const char *ifname, enum attach_mode mode,
		   uint32_t generation, const struct gate *gate, struct attach_result *ret,
		   struct err *err)
{
	CLEANUP_ADVICES struct advices advices = {0};
	fitness_text reason;
	char warning[512] = "";
	struct link link;
	struct err why = {0};
	uint32_t number, held = 0;
	bool there;
	int code = check_attach(b, ifname, gate, &link, &held, warning, sizeof(warning), err);

	if (code)
		return code;
	if ((code = introduce(b, &link, &number, err)))
		return code;
	if (b->trial && !held)
		commit_bring(b->instance, number);
	fitness_look(&link, &advices);
	code = attach_interface(b->instance,
				&(struct hook_target){
					.name = ifname,
					.driver = link.driver,
					.reason = fitness_refusal(&advices, reason),
					.ifindex = link.index,
				},
				mode, fitness_native(&advices, &link, mode, &why) ? NULL : &why,
				ret, err);
	if (code)
		return code;
	if (!b->trial || !ret->changed)
		commit_unbring(b->instance, number);
	add_warning(warning, ret);
	if (ret->changed) {
		fitness_warn(&advices, &link, ret->mode, ret->notice, sizeof(ret->notice));
		// A device that was deleted and created again under its name had another index
		// before. Until this call every frame on the device was treated as its own.
		macs_refresh(b->instance, NULL);
	}
	if ((code = note_origin(b->instance, generation, ret, err)) && ret->changed)
		attach_remove(b->instance, ret->number, &there, NULL);
	return code;
}

int bringup_try(struct bringup *b, uint64_t trial_ms, struct err *err)
{
	int code = recover_check(b->instance, err);

	b->trial = false;
	if (code)
		return code;
	if ((code = recover_record(b->instance, err)))
		return code;
	if ((code = commit_try_interfaces(b->instance, trial_ms, err)))
		return code;
	b->trial = true;
	return 0;
}

int bringup_end_try(struct bringup *b, struct err *err)
{
	b->trial = false;
	return commit_back(b->instance, err);
}

void bringup_recover(const char *name)
{
	CLEANUP_INSTANCE struct instance *i = NULL;

	if (instance_open(name, &i, NULL))
		return;
	recover_record(i, NULL);
	store_part(i, NULL);
}

int bringup_remove_if_idle(struct bringup *b, bool *ret_removed, struct err *err)
{
	bool any;
	int code = instance_find_any_iface(b->instance, &any, err);

	*ret_removed = code == 0 && !any;
	if (!*ret_removed)
		return code;
	// The maps are removed, so the files that a killed command left beside the old ones are
	// kept or deleted now. A record that still cannot be written does not keep the instance:
	// its own command has failed and reported it.
	recover_record(b->instance, NULL);
	if ((code = store_part(b->instance, err)))
		return code;
	if ((code = instance_remove(b->instance->name, err)))
		return code;
	revisions_forget(b->instance->name, "");
	return 0;
}
