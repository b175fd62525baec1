// SPDX-License-Identifier: GPL-2.0-only
// The words of an active ring and the rules for changing them (docs/ring.md, "Changing a ring").
#ifndef REF_SLOTS_H
#define REF_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

/* How many jiffies `since` counts as one. */
#define SLOT_TICK 16

enum slot_class { SLOT_STABLE, SLOT_PINS_ONLY, SLOT_CHANGING };

struct slot {
	uint16_t owner;  /* 0: no backend */
	uint16_t former; /* 0: stable */
	uint64_t since;  /* ticks, 36 bits */
};

/* Values that all slots of a service have in common at one time. */
struct slot_clock {
	uint64_t now; /* jiffies */
	uint64_t hold_ticks;
	bool never_changing; /* only UDP, with `udp move` */
};

uint64_t slot_word(struct slot slot);
uint64_t slot_hold_ticks(uint64_t idle, uint64_t hold);
enum slot_class slot_class(struct slot slot, const struct slot_clock *clock);

/* The slot that is to have this owner: rules 1 to 6. */
struct slot slot_step(struct slot slot, uint16_t owner, const struct slot_clock *clock);

/* The slot after tidying; others: one of its live pins names a backend other than the owner. */
struct slot slot_tidy(struct slot slot, bool others, const struct slot_clock *clock);

/* The slot of the previous ring, with this owner on trial. */
struct slot slot_before_trial(struct slot slot, uint16_t owner, const struct slot_clock *clock);

#endif
