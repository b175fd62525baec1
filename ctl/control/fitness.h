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
