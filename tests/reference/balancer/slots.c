// SPDX-License-Identifier: GPL-2.0-only
// The words of an active ring and the rules for changing them.
#include "slots.h"

#define TICKS_MASK ((UINT64_C(1) << 36) - 1)
#define AGE_MAX    ((UINT64_C(1) << 35) - 1)

uint64_t slot_word(struct slot slot)
{
	return (uint64_t)slot.owner << 50 | (uint64_t)slot.former << 36 | slot.since;
}

uint64_t slot_hold_ticks(uint64_t idle, uint64_t hold)
{
	return (idle * hold + SLOT_TICK - 1) / SLOT_TICK;
}

static uint64_t clock_ticks(const struct slot_clock *clock)
{
	return clock->now / SLOT_TICK & TICKS_MASK;
}

enum slot_class slot_class(struct slot slot, const struct slot_clock *clock)
{
	uint64_t age = (clock_ticks(clock) - slot.since) & TICKS_MASK;

	if (!slot.former)
		return SLOT_STABLE;
	if (slot.former == slot.owner)
		return SLOT_PINS_ONLY;
	return age > clock->hold_ticks && age <= AGE_MAX ? SLOT_PINS_ONLY : SLOT_CHANGING;
}

static struct slot slot_since_now(uint16_t owner, uint16_t former, const struct slot_clock *clock)
{
	return (struct slot){owner, former, clock_ticks(clock)};
}

struct slot slot_step(struct slot slot, uint16_t owner, const struct slot_clock *clock)
{
	if (!owner || owner == slot.owner)
		return slot;
	if (clock->never_changing)
		return (struct slot){owner, 0, 0};
	if (!slot.owner)
		return slot_since_now(owner, owner, clock);
	if (slot_class(slot, clock) != SLOT_CHANGING)
		return slot_since_now(owner, slot.owner, clock);
	if (owner == slot.former)
		return slot_since_now(owner, owner, clock);
	return (struct slot){owner, slot.former, slot.since};
}

struct slot slot_tidy(struct slot slot, bool others, const struct slot_clock *clock)
{
	if (slot_class(slot, clock) != SLOT_PINS_ONLY)
		return slot;
	if (!others)
		return (struct slot){slot.owner, 0, 0};
	if (slot.former == slot.owner)
		return slot;
	return slot_since_now(slot.owner, slot.owner, clock);
}

/* A slot without an owner has no flows to keep, and one that never changes has no pins. */
struct slot slot_before_trial(struct slot slot, uint16_t owner, const struct slot_clock *clock)
{
	if (slot.former || !slot.owner || owner == slot.owner || clock->never_changing)
		return slot;
	return slot_since_now(slot.owner, slot.owner, clock);
}
