// SPDX-License-Identifier: GPL-2.0-only
// Finds the numbers of backends that are in use: none is reused while a slot or a pin names it.
#include "ctl/table/lb_state.h"

bool lb_ids_has(const struct lb_ids *ids, uint32_t id)
{
	return ids->bits[id / 64] >> id % 64 & 1;
}

void lb_ids_add(struct lb_ids *ids, uint32_t id)
{
	if (id != BACKEND_NONE)
		ids->bits[id / 64] |= 1ull << id % 64;
}

void lb_ids_of(const struct lb_state *b, struct lb_ids *ids)
{
	for (size_t i = 0; i < b->n_services; i++)
		lb_ids_add(ids, b->services[i].id);
	for (size_t i = 0; i < b->n_members; i++)
		lb_ids_add(ids, b->members[i].id);
	for (size_t i = 0; i < b->n_slots; i++) {
		uint64_t slot = __atomic_load_n(&b->slots[i], __ATOMIC_RELAXED);

		lb_ids_add(ids, slot_owner(slot));
		lb_ids_add(ids, slot_former(slot));
	}
}

void lb_ids_of_pins(const struct ring_pins *pins, struct lb_ids *ids)
{
	for (size_t i = 0; i < pins->n; i++) {
		uint64_t pin = __atomic_load_n(&pins->words[i], __ATOMIC_RELAXED);

		if (pin && pin_lives(pin, pins->time, pins->life, pins->linger))
			lb_ids_add(ids, pin_backend(pin));
	}
}

void lb_ids_new(const struct lb_state *b, const struct lb_state *running, struct lb_ids *ret)
{
	struct lb_ids before = {0}, now = {0};

	lb_ids_of(b, &now);
	if (running)
		lb_ids_of(running, &before);
	for (size_t i = 0; i < SERVICE_BACKENDS / 64; i++)
		ret->bits[i] = now.bits[i] & ~before.bits[i];
}
