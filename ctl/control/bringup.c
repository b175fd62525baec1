// SPDX-License-Identifier: GPL-2.0-only
// Makes, restores, attaches and removes, in the order in which that is safe.
#include "ctl/control/bringup.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/base/file.h"
#include "ctl/base/mem.h"
#include "ctl/control/fitness.h"
#include "ctl/control/macs.h"
#include "ctl/control/recover.h"
#include "ctl/control/restore.h"
#include "ctl/control/store.h"
#include "ctl/datapath/bpffs.h"
#include "ctl/datapath/commit.h"
#include "ctl/datapath/device.h"
#include "ctl/datapath/generation.h"
#include "ctl/datapath/lock.h"
#include "ctl/datapath/probe.h"
#include "ctl/datapath/reach.h"
#include "ctl/net/link.h"

void bringup_close(struct bringup *b)
{
	instance_free(b->instance);
	fd_close(b->lock);
	b->instance = NULL;
	b->lock = -1;
}

// The book owns its instance and lock; here it only borrows them.
static int restore_overlay(struct bringup *b, struct err *err)
{
	CLEANUP_OVERLAY_PLAN struct overlay_plan plan = {0};
	struct store *store = NULL;
	int code = store_open_with(b->instance, -1, &store, err);

	if (code) {
		b->instance = NULL; // gone with the book
		return code;
	}
	code = store_restore(store, &b->restored, err);
	if (!code && b->restored)
		code = store_commit(store, true, &plan, err);
	store->instance = NULL;
	store_free(store);
	return code;
}

// Nothing is visible before everything is back; a killed command leaves what instance_sweep removes.
static int create(struct bringup *b, struct restore *r, const char *name, uint32_t max_entries,
		  bool new_policy, struct err *err)
{
	int code = instance_create(name, max_entries ? max_entries : WEIR_OVERLAY_MAX, &b->instance,
				   err);

	if (code)
		return code;
	b->created = true;
	code = restore_policy(b->instance, r, b->revision, err);
	if (code &&
	    new_policy) { // an accepted one that is no good any more must not keep a new one out
		err_clear(err);
		code = 0;
	}
	if (code)
		err_hint(err, "weir apply FILE brings another policy");
	else if ((code = restore_overlay(b, err)))
		err_hint(err, "move '%s/%s/overlay' away to begin without it", WEIR_STATE_FOLDER,
			 name);
	if (!code)
		code = instance_publish(b->instance, err);
	if (code)
		instance_sweep(name, NULL);
	return code;
}

static int check_size(const struct bringup *b, uint32_t max_entries, struct err *err)
{
	if (!max_entries || max_entries == b->instance->meta.max_entries)
		return 0;
	err_refused(err, "instance '%s' runs with --max-entries %u", b->instance->name,
		    b->instance->meta.max_entries);
	err_hint(err, "weir detach first; what is blocked is kept");
	return -EBUSY;
}

int bringup_open(const char *name, const char *command, uint32_t max_entries, bool new_policy,
		 struct bringup *ret, struct err *err)
{
	CLEANUP_RESTORE struct restore restore = {0};
	struct bringup b = {.lock = -1};
	int code = bpffs_ready(err);

	if (!code && !bpffs_exist(name))
		restore_prepare(name, &restore);
	if (!code)
		code = lock_take(name, command, &b.lock, err);
	if (!code)
		code = instance_sweep(name, err);
	if (!code && bpffs_exist(name)) {
		code = instance_open(name, &b.instance, err);
		if (!code)
			code = check_size(&b, max_entries, err);
		if (!code)
			code = device_sync(b.instance, err);
		if (!code)
			code = recover_trial(b.instance, err);
		if (!code)
			code = macs_refresh(b.instance, err);
	} else if (!code) {
		code = create(&b, &restore, name, max_entries, new_policy, err);
	}
	if (code) {
		bringup_close(&b);
		return code;
	}
	*ret = b;
	return 0;
}

static int check_link(const struct link *link, struct err *err)
{
	if (link->type == ARPHRD_ETHER)
		return 0;
	if (link->type == ARPHRD_LOOPBACK)
		err_refused(err,
			    "'%s' is the loopback interface: nothing from outside comes in there",
			    link->name);
	else
		err_refused(err,
			    "'%s' is not an Ethernet device (%s): its packets start at the IP "
			    "header",
			    link->name, link->kind[0] ? link->kind : "type unknown");
	return -EOPNOTSUPP;
}

// Who brought it, for detach_stale(). A command killed before this leaves one that stays.
static int note_origin(const struct instance *i, uint32_t generation,
		       const struct attach_result *result, struct err *err)
{
	struct iface row;
	int code = instance_iface(i, result->number, &row, err);

	if (code || row.generation == generation || (generation && !result->changed))
		return code;
	row.generation = generation;
	return instance_set_iface(i, result->number, &row, err);
}

static bool is_by_name(const struct instance *i, uint32_t number, const char *name)
{
	CLEANUP_FREE struct generation_about *about = mem_new(struct generation_about);
	struct reach reach;

	return !reach_in_force(i, &reach, NULL) &&
	       !generation_read_about(i, reach.generation, about, NULL) &&
	       reach_is_by_name(&reach, about, number, name);
}

// *ret: the number of an interface that has our program, else 0. What cannot be looked at is not taken for
// detached: it would be given up at the end of a trial.
static int find_held(const struct instance *i, const struct link *link, uint32_t *ret,
		     struct err *err)
{
	struct device d;
	uint32_t number;
	int code = instance_find_iface(i, link->name, &number, err);

	*ret = 0;
	if (code || !number || (code = device_read(i, number, &d, err)))
		return code;
	if (d.state == DEVICE_HELD && d.row.state == IFACE_ATTACHED && d.row.ifindex == link->index)
		*ret = number;
	return 0;
}

// Does attaching change nothing for its packets? It does for a device that got its name since, as policies go
// by it then, and for one that came with a trial: it stays after that.
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

int bringup_attach(struct bringup *b, const char *ifname, enum attach_mode mode,
		   uint32_t generation, const struct gate *gate, struct attach_result *ret,
		   struct err *err)
{
	char warning[512] = "";
	struct link link;
	struct err why = {0};
	uint32_t number, held = 0;
	int code = link_get(ifname, &link, err);

	if (!code)
		code = check_link(&link, err);
	if (!code)
		code = find_held(b->instance, &link, &held, err);
	if (!code && gate && !is_settled(b->instance, held, ifname))
		code = gate_check(b->instance, &link, gate, warning, sizeof(warning), err);
	if (!code)
		code = attach_reserve(b->instance, ifname, link.index, &number, err);
	// First the policies learn which interface it is, and whose frames are its own, then packets come.
	if (!code)
		code = macs_refresh(b->instance, err);
	if (!code)
		code = generation_introduce(b->instance, number, ifname, err);
	if (!code && b->trial && !held)
		commit_bring(b->instance, number);
	if (!code)
		code = attach_interface(b->instance, ifname, link.index, link.driver, mode,
					fitness_native(&link, mode, &why) ? NULL : &why, ret, err);
	if (!code && (!b->trial || !ret->changed))
		commit_unbring(b->instance, number);
	if (!code)
		add_warning(warning, ret);
	if (!code && ret->changed)
		fitness_warn(&link, ret);
	// One made anew under its name was known by another index. Until here any frame was its own.
	if (!code && ret->changed)
		macs_refresh(b->instance, NULL);
	return code ? code : note_origin(b->instance, generation, ret, err);
}

int bringup_try(struct bringup *b, uint64_t trial_ms, struct err *err)
{
	int code = recover_check(b->instance, err);

	if (!code)
		code = recover_record(b->instance, err);
	if (!code)
		code = commit_try_interfaces(b->instance, trial_ms, err);
	b->trial = !code;
	return code;
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
	store_recover(i, NULL);
}

int bringup_remove_if_idle(struct bringup *b, bool *ret_removed, struct err *err)
{
	int code;

	*ret_removed = !instance_has_ifaces(b->instance);
	if (!*ret_removed)
		return 0;
	// The maps go: what a command that was cut short left beside the old files is decided now. A record
	// that still cannot be written is no reason to stay: its own command has failed and said so.
	recover_record(b->instance, NULL);
	code = store_recover(b->instance, err);
	if (!code)
		code = instance_remove(b->instance->name, err);
	if (!code)
		revisions_forget(b->instance->name, "");
	return code;
}
