// SPDX-License-Identifier: GPL-2.0-only
// Puts the root program on interfaces and takes it away: through libxdp where other XDP programs can share
// the interface with it, else held by a link of its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/datapath/instance.h"

enum attach_mode { ATTACH_AUTO, ATTACH_NATIVE, ATTACH_GENERIC };

struct attach_result {
	uint32_t number; // of the interface in the instance
	bool changed;    // false: it was attached already
	enum iface_mode mode;
	bool shared;       // behind libxdp's dispatcher
	char notice[1024]; // why not native, why not shared; "" when there is nothing to say
};

// Gives a device its number in the instance before it is attached, so that policies can be told first. A
// failed attach_interface gives it back. A device that has a number keeps it under every name; one that was
// made anew gets that of the device that had its name.
int attach_reserve(const struct instance *i, const char *name, uint32_t ifindex,
		   uint32_t *ret_number, struct err *err);

// The device of that name gets the root program. AUTO takes native mode, else generic with the reason
// in the notice. unfit: why native mode will not do here although the driver takes it; NULL: it will. The
// caller holds the lock. All or nothing: 0, or -errno with err set and no program of ours left there.
int attach_interface(const struct instance *i, const char *name, uint32_t ifindex,
		     const char *driver, enum attach_mode mode, const struct err *unfit,
		     struct attach_result *ret, struct err *err);

// Takes away our program, and only ours, from the device of this row, whatever its name and its network
// namespace are now. A device that is gone, or from which somebody else removed the program, is no error:
// *ret_was_there tells.
int attach_remove(const struct instance *i, uint32_t number, bool *ret_was_there, struct err *err);

// A program on an interface.
struct attached {
	uint32_t prog_id;
	char name[16];
	bool ours; // an root program of the instance asked about
};
#define ATTACHED_MAX 11 // libxdp's dispatcher holds ten

struct attached_list {
	uint32_t link_prog_id; // the program the interface shows: dispatcher or single; 0 none
	enum iface_mode mode;
	bool shared; // the link shows libxdp's dispatcher
	size_t n;
	struct attached at[ATTACHED_MAX];
};

// What is on the interface now. progs_id: of the instance asked about (0: none is "ours").
// 0 (also when nothing is there) or -errno with err set.
int attach_query(uint32_t ifindex, uint32_t progs_id, struct attached_list *ret, struct err *err);

// Which of them is ours; NULL: none.
const struct attached *attached_ours(const struct attached_list *list);

// Takes every root program of the instance that is pinned below FOLDER (any layout version) off every interface:
// by its links, and by its slots map in all network namespaces that can be seen. *ret_n counts.
int attach_remove_all(const char *folder, size_t *ret_n, struct err *err);
