// SPDX-License-Identifier: GPL-2.0-only
// The rules of slots, for one slot and for whole rings.
#include "ctl/table/ring_step.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

static uint64_t pins_only(uint32_t owner, const struct ring_rules *rules)
{
	return slot_pack(owner, owner, slot_time(rules->now));
}

uint64_t ring_step(uint64_t slot, uint32_t new_owner, const struct ring_rules *rules)
{
	uint32_t owner = slot_owner(slot), former = slot_former(slot);

	if (new_owner == BACKEND_NONE || new_owner == owner)
		return slot;
	if (rules->move)
		return slot_pack(new_owner, BACKEND_NONE, 0);
	if (owner == BACKEND_NONE)
		return pins_only(new_owner, rules);
	if (slot_phase(slot, rules->now, rules->hold_ticks) != SLOT_CHANGING)
		return slot_pack(new_owner, owner, slot_time(rules->now));
	if (new_owner == former)
		return pins_only(new_owner, rules);
	return slot_pack(new_owner, former, slot_since(slot));
}

uint64_t ring_tidy(uint64_t slot, bool foreign, const struct ring_rules *rules)
{
	uint32_t owner = slot_owner(slot);

	if (slot_phase(slot, rules->now, rules->hold_ticks) != SLOT_PINS_ONLY)
		return slot;
	if (!foreign)
		return slot_pack(owner, BACKEND_NONE, 0);
	return slot_former(slot) == owner ? slot : pins_only(owner, rules);
}

// A slot that is changing stays so: what it pins, to former or owner, is found in both rings.
uint64_t ring_trial(uint64_t slot, const struct ring_rules *rules)
{
	if (slot_phase(slot, rules->now, rules->hold_ticks) != SLOT_STABLE || rules->move ||
	    slot_owner(slot) == BACKEND_NONE)
		return slot;
	return pins_only(slot_owner(slot), rules);
}

// ---- whole rings --------------------------------------------------------------------------------

static bool bit(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

// Programs read the word at any time.
static size_t store(uint64_t *slot, uint64_t value)
{
	if (*slot == value)
		return 0;
	__atomic_store_n(slot, value, __ATOMIC_RELEASE);
	return 1;
}

size_t ring_change(uint64_t *slots, const uint16_t *owners, uint32_t size,
		   const struct ring_rules *rules)
{
	size_t changed = 0;

	for (uint32_t i = 0; i < size; i++)
		changed += store(&slots[i], ring_step(slots[i], owners[i], rules));
	return changed;
}

size_t ring_tidy_all(uint64_t *slots, const uint64_t *foreign, uint32_t size,
		     const struct ring_rules *rules)
{
	size_t changed = 0;

	for (uint32_t i = 0; i < size; i++)
		changed += store(&slots[i], ring_tidy(slots[i], bit(foreign, i), rules));
	return changed;
}

size_t ring_extend(uint64_t *slots, uint32_t size, uint64_t end, const struct ring_rules *rules)
{
	size_t changed = 0;

	for (uint32_t i = 0; i < size; i++) {
		uint32_t owner = slot_owner(slots[i]), former = slot_former(slots[i]);

		if (slot_phase(slots[i], rules->now, rules->hold_ticks) == SLOT_CHANGING)
			changed += store(&slots[i], slot_pack(owner, former, slot_time(end)));
	}
	return changed;
}

size_t ring_guard(uint64_t *slots, uint32_t size, uint32_t ticks, const struct ring_rules *rules)
{
	uint64_t now = slot_time(rules->now), least = rules->hold_ticks;
	size_t changed = 0;

	least = least > ticks ? least - ticks : 0; // the age that leaves so many
	for (uint32_t i = 0; i < size; i++) {
		uint64_t age = (now - slots[i]) & SLOT_SINCE;

		if (slot_phase(slots[i], rules->now, rules->hold_ticks) == SLOT_CHANGING &&
		    age > least && age <= SLOT_SINCE / 2)
			changed += store(&slots[i], slot_pack(slot_owner(slots[i]),
							      slot_former(slots[i]), now - least));
	}
	return changed;
}

// ---- pins ---------------------------------------------------------------------------------------

// A program may have changed the pin since it was read: then it is alive.
static void free_pin(uint64_t *word, uint64_t pin)
{
	__atomic_compare_exchange_n(word, &pin, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// A pin of a service that hashes by source: only its backend is known.
static void mark_by_backend(const uint64_t *living, const uint64_t *slots, uint32_t size,
			    uint64_t *ret_foreign)
{
	uint32_t one = BACKEND_NONE, n = 0;

	for (uint32_t id = 1; id < SERVICE_BACKENDS; id++)
		if (bit(living, id)) {
			one = id;
			n++;
		}
	for (uint32_t i = 0; i < size; i++)
		if (n > 1 || (n == 1 && slot_owner(slots[i]) != one))
			ret_foreign[i / 64] |= 1ull << i % 64;
}

// Results of a walk.
struct sight {
	const uint64_t *slots;
	uint32_t size;
	uint64_t *foreign;
	uint64_t living[SERVICE_BACKENDS / 64]; // backends that living pins name
	size_t n;
};

static void see(const struct ring_pins *pins, uint64_t *word, uint64_t pin, struct sight *s)
{
	uint32_t backend = pin_backend(pin), slot = hash_scale(pin_flow(pin), s->size);

	if (!pin_lives(pin, pins->time, pins->life, pins->linger)) {
		free_pin(word, pin);
		return;
	}
	s->n++;
	s->living[backend / 64] |= 1ull << backend % 64;
	if (pins->hash == SERVICE_HASH_TUPLE && slot_owner(s->slots[slot]) != backend)
		s->foreign[slot / 64] |= 1ull << slot % 64;
}

size_t ring_walk(const struct ring_pins *pins, const uint64_t *slots, uint32_t size,
		 uint64_t *ret_foreign)
{
	struct sight s = {.slots = slots, .size = size, .foreign = ret_foreign};

	memset(ret_foreign, 0, (size + 63) / 64 * sizeof(*ret_foreign));
	for (size_t i = 0; i < pins->n; i++) {
		uint64_t pin = __atomic_load_n(&pins->words[i], __ATOMIC_RELAXED);

		if (pin)
			see(pins, &pins->words[i], pin, &s);
	}
	if (pins->hash == SERVICE_HASH_SOURCE)
		mark_by_backend(s.living, slots, size, ret_foreign);
	return s.n;
}

uint32_t ring_hold(uint32_t hold, uint64_t pushed_out, uint64_t quiet_jiffies,
		   uint64_t idle_jiffies)
{
	if (pushed_out)
		return hold * 2 < SERVICE_HOLD_MAX ? hold * 2 : SERVICE_HOLD_MAX;
	return quiet_jiffies >= idle_jiffies ? 1 : hold;
}
