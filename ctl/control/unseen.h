// SPDX-License-Identifier: GPL-2.0-only
// Does the device receive packets that our program does not see?
//
// A driver may accept a program and not run it, while the kernel reports it as attached. So the
// receive counter of the device is compared with the counters of the program. Many cards count in
// hardware and report it once a second: growth at one look may be older than the first look. Growth
// at two looks while the program has counted nothing is not.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/control/devices.h"
#include "ctl/datapath/attach.h"

#define UNSEEN_PACKETS  8    // fewer do not count: some frames end in the firmware of a card
#define UNSEEN_WAIT_MS  2500 // how long status and doctor look where a device leaves a doubt
#define UNSEEN_FIRST_MS 200  // how long an attach looks

// One device; all zero at the start.
struct unseen {
	bool begun, seen; // seen: the program has counted a packet
	unsigned growths; // readings at which the device had received more than at the previous one
	uint64_t device, ours;  // packets at the first look
	uint64_t packets, last; // packets of the device: since the first reading; at the last one
};

// A reading: packets that the device and the program have counted. Pure.
void unseen_note(struct unseen *u, uint64_t device, uint64_t ours);
// A reading `ms` after the last one, which may be long ago. It counts as the first one again if the
// program has counted a packet, or the device has received less than UNSEEN_PACKETS in each
// UNSEEN_WAIT_MS since then. Pure.
void unseen_note_later(struct unseen *u, uint64_t device, uint64_t ours, uint64_t ms);
// Is it certain that the program does not run? Pure.
bool unseen_is_certain(const struct unseen *u);
// May it be? Only a longer look decides. Pure.
bool unseen_is_doubtful(const struct unseen *u);

struct unseen_watch {
	uint64_t ifaces;             // bit: number of the interface
	uint32_t index[WEIR_IFACES]; // of its device
	struct unseen at[WEIR_IFACES];
};

// All interfaces that run our program in native mode and no other program.
void unseen_choose(const struct instance *i, const struct devices *devices,
		   struct unseen_watch *ret);
void unseen_look(const struct instance *i, struct unseen_watch *w);
// Looks again every 100 ms while a device is doubtful, for UNSEEN_WAIT_MS at most.
void unseen_wait(const struct instance *i, struct unseen_watch *w);
// One reading, together with readings of previous commands from /run/weir/NAME/unseen: for commands
// that never wait. A device is certain at the third reading. If the file cannot be written, the
// next command has the previous reading.
void unseen_look_kept(const struct instance *i, const struct devices *devices,
		      struct unseen_watch *ret);
// After an attach in native mode by a driver that no test has tried: looks until the program has
// seen a packet, or it is certain that it sees none, for UNSEEN_FIRST_MS at most. true: it is
// certain. Not for the loop of an agent.
bool unseen_at_attach(const struct instance *i, const char *ifname,
		      const struct attach_result *attach);

// "receives packets that …" and the command, of an interface that is certain; the caller frees
// both.
struct unseen_finding {
	char *text, *mend;
};
struct unseen_finding unseen_finding(const char *ifname);
void unseen_finding_free(struct unseen_finding *f);
#define CLEANUP_UNSEEN CLEANUP(unseen_finding_free)
