// SPDX-License-Identifier: GPL-2.0-only
// Changes entries: commands block, allow, unblock and unallow, one or many in one commit.
#pragma once

#include "ctl/control/entries/targets.h"

// The references that an unblock removes.
enum change_scope {
	SCOPE_TARGETS,   // what was named
	SCOPE_LIST,      // all of --sync NAME
	SCOPE_ORIGIN,    // all of --origin NAME
	SCOPE_EVERYBODY, // --all
};

// A prefix that was meant to be free, and the reference that still covers it.
struct change_left {
	struct prefix meant;
	struct reference by;
	struct owner owner; // copies of its strings
	bool failure;       // the user expects otherwise
};

// An allow entry of the same prefix as a new block entry, which then has no effect.
struct change_overruled {
	struct prefix prefix;
	bool calls; // it allows outgoing connections, else packets
	char *name; // of the allow entry's owner; "" without
};

// One command: what it asks for, and its result.
struct entry_change {
	const char *verb; // "block"
	struct targets targets;
	struct intent intent;
	bool removes; // unblock, unallow
	// From when the lock is held; 0: until intent.until_s, whenever the lock is free.
	unsigned lease_s;
	enum change_scope scope;
	bool force;  // the list may shrink to less than half
	bool failed; // set also by the caller: it is left out
	bool whole;  // outgoing connections: of the whole machine, not only of a container

	struct records_change done;
	size_t listed;             // references of the list
	uint64_t until_s;          // of the only target, else as asked for
	struct prefix_list groups; // of the origin, which the hosts belong to (store_group.c)
	size_t hosts;              // members of the first group
	VEC(struct change_overruled) overruled;
	VEC(struct change_left) left;
};
void change_free(struct entry_change *c);

// Commands that are committed together, with one epoch.
struct entry_changes {
	const char *instance;
	const char *command; // printed by others that wait for the lock
	struct entry_change **at;
	size_t n;
	const struct guard *guard; // no group forms around these addresses; only read with --group
	bool dry_run;
	// Called for each command that fails while it is recorded.
	void (*failed)(void *ctx, size_t which, const struct err *err);
	// Called under the lock when the change is effective. May be NULL.
	void (*committed)(void *ctx);
	void *ctx;
};

// The state after a change.
struct entries_changed {
	struct instance *instance; // NULL: nothing was opened
	struct err damaged;        // which part of the journal is not used; text "": all is used
	struct err unsaved;        // why the change is not in the journal; no code: it is
};
void changed_free(struct entries_changed *c);
#define CLEANUP_CHANGED CLEANUP(changed_free)

// Takes the lock, changes the records of each command in order, and makes all effective at once. An
// added entry needs an attached instance. 0 also if commands fail: then nothing has changed. -errno
// with err set if no command is at fault. The lock is released.
int entries_change(const struct entry_changes *c, struct entries_changed *ret, struct err *err);
