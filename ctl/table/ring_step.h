// SPDX-License-Identifier: GPL-2.0-only
// Changes the ring in use into another one without moving a flow: the only code that changes a slot.
//
// The rules are those of docs/ring.md, "Changing a ring".
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"

struct ring_rules {
	uint64_t now;        // jiffies64
	uint32_t hold_ticks; // slot_ticks() of the service: how long its slots are changing
	bool move;           // `udp move` of a service that is udp alone: slots never leave stable
};

// The slot once new_owner owns it. Unchanged when it does already, or new_owner is BACKEND_NONE: a ring
// without backends keeps its last owners.
uint64_t ring_step(uint64_t slot, uint32_t new_owner, const struct ring_rules *rules);

// The slot written as what it is by now: pins only when its time is over, and stable when in addition
// no living pin of the slot names another backend. `foreign`: one does, or nobody has looked. A packet
// that found the slot changing may still be about to pin its flow, so whoever serves real packets calls
// this with `foreign` first, waits for those packets (a jiffy), looks at the pins, and calls it again.
uint64_t ring_tidy(uint64_t slot, bool foreign, const struct ring_rules *rules);

// The slot of the ring before, when a policy with another owner there is only on trial: flows that find
// the new owner meanwhile are pinned, and must be found again if the kernel goes back.
uint64_t ring_trial(uint64_t slot, const struct ring_rules *rules);

// Before a policy goes on trial until `end`, in jiffies, at the latest: slots that are changing go on so until
// then, and one hold longer, in the ring before and in the one on trial. Were the clock of one of them to run
// out during the trial, that ring would leave flows without a pin which the other one sends elsewhere. Returns
// how many slots changed.
size_t ring_extend(uint64_t *slots, uint32_t size, uint64_t end, const struct ring_rules *rules);

// Before slots are changed by rules that were looked at a while ago: those that are changing go on so for at
// least `ticks` more. Were the clock of one to run out in between, flows would open without a pin, and be
// moved by a change that takes the slot for a changing one. Returns how many slots changed.
size_t ring_guard(uint64_t *slots, uint32_t size, uint32_t ticks, const struct ring_rules *rules);

// ring_step and ring_tidy for all slots, each written with one store, and only if it changes. Return how
// many did. foreign: a bit a slot, bit i % 64 of word i / 64.
size_t ring_change(uint64_t *slots, const uint16_t *owners, uint32_t size,
		   const struct ring_rules *rules);
size_t ring_tidy_all(uint64_t *slots, const uint64_t *foreign, uint32_t size,
		     const struct ring_rules *rules);

// How a walk sees the pins of a service.
struct ring_pins {
	uint64_t *words; // buckets × SERVICE_PIN_WORDS
	size_t n;
	uint32_t time; // pin_time() of now
	// Of pins: the longest idle of the service's protocols; of closed ones pin_linger(). Both two more for packets on
	// their way.
	uint32_t idle_ticks, linger_ticks;
	enum service_hash hash;
};

// Sets the bit of each slot of which a living pin names another backend than its owner, and frees pins
// that do not live. With SERVICE_HASH_SOURCE a pin does not say its slot and counts for all. Returns how
// many pins live. ret_foreign has (size + 63) / 64 words.
size_t ring_walk(const struct ring_pins *pins, const uint64_t *slots, uint32_t size,
		 uint64_t *ret_foreign);

// Frees the pins that name the backend, living or not: before its number is given to another one.
void ring_forget(uint64_t *words, size_t n, uint32_t backend);

// The hold of a service: doubled, to SERVICE_HOLD_MAX, when living pins of PIN_FOUND have been pushed
// out since the last look; 1 again when none has for one idle. Before hold_ticks grows, all slots are to
// be tidied (with `foreign`): else one whose time was over would be changing again; and guarded (ring_guard), as one
// may be over until it has grown. So before a policy with a longer idle.
uint32_t ring_hold(uint32_t hold, uint64_t pushed_out, uint64_t quiet_jiffies,
		   uint64_t idle_jiffies);
