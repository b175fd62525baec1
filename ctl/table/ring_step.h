// SPDX-License-Identifier: GPL-2.0-only
// Changes the ring in use into another one without moving a flow: the only code that changes a
// slot.
//
// docs/ring.md, "Changing a ring", has the rules.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/service.h"

struct ring_rules {
	uint64_t now;        // jiffies64
	uint32_t hold_ticks; // slot_ticks() of the service: how long its slots are changing
	// `udp move` of a service with udp only, nat or fullnat: slots are always stable
	bool move;
};

// The slot after a change to new_owner. Unchanged if that is the owner already, or BACKEND_NONE: a
// ring without backends keeps its last owners.
uint64_t ring_step(uint64_t slot, uint32_t new_owner, const struct ring_rules *rules);

// The slot in its present phase: pins only if its hold has expired, and stable if in addition no
// living pin of the slot names another backend. `foreign`: one does, or the pins have not been
// read. A packet that found the slot changing may still be pinning its flow. So with real traffic
// this is called with `foreign` first; then wait for those packets (a jiffy), read the pins, and
// call it again.
uint64_t ring_tidy(uint64_t slot, bool foreign, const struct ring_rules *rules);

// The slot of the previous ring while a policy with another owner there is on trial: flows that go
// to the new owner meanwhile are pinned, and must be found again after the trial.
uint64_t ring_trial(uint64_t slot, const struct ring_rules *rules);

// Before a trial until `end`, in jiffies: slots that are changing stay so until then and one hold
// longer, in the previous ring and in the one on trial. If the hold of one expired during the
// trial, that ring would leave flows without a pin that the other ring sends elsewhere. Returns how
// many slots changed.
size_t ring_extend(uint64_t *slots, uint32_t size, uint64_t end, const struct ring_rules *rules);

// Before a change by rules that were read a while ago: slots that are changing stay so for at least
// `ticks` more. If the hold of one expired in between, flows would open without a pin and be moved
// by a change that takes the slot for a changing one. Returns how many slots changed.
size_t ring_guard(uint64_t *slots, uint32_t size, uint32_t ticks, const struct ring_rules *rules);

// ring_step() and ring_tidy() for all slots, each written with one store, and only if it changes.
// Return how many did. foreign: a bit for each slot, bit i % 64 of word i / 64.
size_t ring_change(uint64_t *slots, const uint16_t *owners, uint32_t size,
		   const struct ring_rules *rules);
size_t ring_tidy_all(uint64_t *slots, const uint64_t *foreign, uint32_t size,
		     const struct ring_rules *rules);

// The pins of a service, for a walk.
struct ring_pins {
	uint64_t *words; // buckets × SERVICE_PIN_WORDS
	size_t n;
	uint32_t time; // pin_time() of now
	// Life of pins: pin_life() of the longest idle of the service's protocols; of closed pins
	// pin_linger(). Both are two ticks longer, for packets on their way.
	uint32_t life, linger;
	enum service_hash hash;
};

// Sets the bit of each slot of which a living pin names another backend than its owner, and frees
// expired pins. With SERVICE_HASH_SOURCE the slot of a pin is unknown, and the pin counts for all
// slots. Returns how many pins live. ret_foreign has (size + 63) / 64 words.
size_t ring_walk(const struct ring_pins *pins, const uint64_t *slots, uint32_t size,
		 uint64_t *ret_foreign);

// The hold of a service: doubled, up to SERVICE_HOLD_MAX, if living pins of PIN_FOUND have been
// pushed out since the last visit; 1 again if none has for one idle. Before hold_ticks grows, also
// by a policy with a longer idle, all slots must be tidied (with `foreign`), else an expired one
// would be changing again, and guarded (ring_guard), since one may expire before it has grown.
uint32_t ring_hold(uint32_t hold, uint64_t pushed_out, uint64_t quiet_jiffies,
		   uint64_t idle_jiffies);
