// SPDX-License-Identifier: GPL-2.0-only
// Decides when the network is looked at, and what follows from a look. Pure: events of the kernel,
// findings and times in; the next look, changes to write and messages out.
//
// An event that may matter leads to a look a little later, so that a burst is one look. Packets
// that XDP sends keep no neighbour alive, so the kernel is also asked at intervals.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/agent/plan.h"
#include "ctl/agent/trouble.h"
#include "ctl/net/monitor.h"

// A device, as far as it matters; new: since the agent has started, and not attached since.
struct links_device {
	struct link link;
	bool is_new;
};

// A backend or its gateway, and what the last message about it was.
struct links_hop {
	struct addr addr;
	uint32_t ifindex;
	uint8_t mac[6];
	bool known, told;
};

// All zero at first.
struct links_plan {
	VEC(struct links_device) devices;
	VEC(struct links_hop) hops; // sorted by address
	struct troubles lost;       // sentences of the last look
	uint64_t due_ms;            // of the next look, at the latest; 0: none
	uint64_t took_ms;           // by the last look
	uint32_t generation;        // at the last look
	uint32_t instance;          // the id of its programs' map then
	bool looked;
	// For the caller, who takes them:
	struct plan_messages messages;
};
void links_plan_free(struct links_plan *p);

// A look is needed. Events and commands lead to one themselves.
void links_plan_need(struct links_plan *p, const struct plan_now *now);

// What an event means for the checks of backends.
struct links_news {
	bool link;      // the link of a device is dead or alive
	bool suspect;   // the neighbour of the event is silent
	bool addresses; // addresses or routes of this host have changed
	bool dead;      // with link
};
struct links_news links_plan_event(struct links_plan *p, const struct monitor_event *e,
				   const struct plan_now *now);
// A command has changed something: which generation and instance there are now.
void links_plan_command(struct links_plan *p, uint32_t generation, uint32_t instance,
			const struct plan_now *now);

// A look begins.
void links_plan_begin(struct links_plan *p);
// It has found this generation and this instance.
void links_plan_instance(struct links_plan *p, uint32_t generation, uint32_t instance);
// It has found these devices; those whose messages were lost become known, others are forgotten.
void links_plan_devices(struct links_plan *p, const struct link *links, size_t n);
// Was the device added since the agent has started, and not attached since?
bool links_plan_is_new(const struct links_plan *p, uint32_t ifindex);
void links_plan_attached(struct links_plan *p, const char *name);
// It has found these backends and gateways, in any order, and sentences about lost neighbours.
void links_plan_hops(struct links_plan *p, const struct addr *addrs, size_t n);
void links_plan_lost(struct links_plan *p, char *const *sentences, size_t n);

enum links_write { LINKS_NOTHING, LINKS_PATHS, LINKS_MACS };
// What is written after the attempt to attach `devices` devices, of which none failed with
// `attached`: next hops that differ (which include the rest), or stale MAC addresses.
enum links_write links_plan_write(struct links_plan *p, size_t devices, bool attached, size_t hops,
				  bool stale, const struct plan_now *now);
// So many next hops were written, among them those of these backends.
void links_plan_moved(struct links_plan *p, const struct addr *addrs, size_t n, size_t changed);
// The look has ended; it has begun at began_ms.
void links_plan_end(struct links_plan *p, uint64_t began_ms, const struct plan_now *now);
