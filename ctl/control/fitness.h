// SPDX-License-Identifier: GPL-2.0-only
// Does native mode work on this device, and what does it lose?
//
// A driver that attaches and then loses packets, or passes them, is worse than one that refuses.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/abi.h"
#include "ctl/datapath/attach.h"
#include "ctl/net/link.h"
#include "ctl/net/native.h"

// Which offload removes the tags of frames that arrive on an interface.
struct tags {
	bool removed;
	bool unsure;              // the peer of a veth is in another network namespace
	char device[IF_NAMESIZE]; // whose offload it is: the interface, or the peer of a veth
	const char *feature;      // "rxvlan" or "txvlan", for ethtool -K
};
// As ethtool reports it now.
void tags_read(const struct link *link, struct tags *ret);

// The first VLAN device above an interface, also by a bridge or bond that the interface is a port
// of; NULL: no such device. Pure: links are all of the namespace.
const struct link *tags_vlan_above(const struct link *links, size_t n, const struct link *link);

// Features of a policy that need the tags.
struct tags_use {
	bool rejects, services, matches; // matches: rules with `vlan`
};
// A warning, or NULL: nothing is lost. The caller frees it. vlan: the VLAN device above; NULL: no
// such device. Pure.
char *tags_warning(const struct tags *t, const char *ifname, enum iface_mode mode, const char *vlan,
		   const struct tags_use *use);

enum advice_kind {
	ADVICE_LOSES,   // the driver loses packets in native mode
	ADVICE_IDLE,    // it accepts a program, and does not run it
	ADVICE_FORGETS, // it runs the program until the device goes down
	ADVICE_REFUSES, // it accepts no program
	ADVICE_DROPS,   // it loses some of the frames redirected to the device
	ADVICE_SHARES,  // CPUs share the queues from which XDP sends: slower
};

// text: a sentence, after "driver 'ena': "; mend: the command that fixes it, or "".
struct advice {
	enum advice_kind kind;
	char *text, *mend;
};
struct advices {
	struct advice *at;
	size_t n, cap;
};

// Reasons against native mode on a device; pure. The caller frees *ret with fitness_free.
void fitness_advise(const struct native_facts *f, struct advices *ret);
// The same of a device as it is now.
void fitness_look(const struct link *link, struct advices *ret);
void fitness_free(struct advices *a);
#define CLEANUP_ADVICES CLEANUP(fitness_free)
// The first of a kind; NULL: no advice of this kind.
const struct advice *fitness_find(const struct advices *a, enum advice_kind kind);

// false: why is set, ERR_SYSTEM, so that generic mode may do. A mode that is asked for by name is
// refused only where it loses packets.
bool fitness_native(const struct advices *a, const struct link *link, enum attach_mode mode,
		    struct err *ret_why);

// Why the driver may refuse native mode, for struct hook_target; "": not known.
typedef char fitness_text[HOOK_REASON];
const char *fitness_refusal(const struct advices *a, fitness_text buf);

// Adds to the notice what a device in native mode, just attached, does not do or may do later.
void fitness_warn(const struct advices *a, const struct link *link, enum iface_mode mode,
		  char *notice, size_t size);
