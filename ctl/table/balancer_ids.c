// SPDX-License-Identifier: GPL-2.0-only
// Which numbers of backends are in use: none is given again while something names it.
#include "ctl/table/balancer.h"

bool balancer_ids_has(const struct balancer_ids *ids, uint32_t id)
{
	return ids->bits[id / 64] >> id % 64 & 1;
}

void balancer_ids_add(struct balancer_ids *ids, uint32_t id)
{
	if (id != BACKEND_NONE)
		ids->bits[id / 64] |= 1ull << id % 64;
}

void balancer_ids_of(const struct balancer *b, struct balancer_ids *ids)
{
	for (size_t i = 0; i < b->n_services; i++)
		balancer_ids_add(ids, b->services[i].row);
	for (size_t i = 0; i < b->n_members; i++)
		balancer_ids_add(ids, b->members[i].id);
	for (size_t i = 0; i < b->n_slots; i++) {
		uint64_t slot = __atomic_load_n(&b->slots[i], __ATOMIC_RELAXED);

		balancer_ids_add(ids, slot_owner(slot));
		balancer_ids_add(ids, slot_former(slot));
	}
}

void balancer_ids_of_pins(const struct ring_pins *pins, struct balancer_ids *ids)
{
	for (size_t i = 0; i < pins->n; i++) {
		uint64_t pin = __atomic_load_n(&pins->words[i], __ATOMIC_RELAXED);

		if (pin && pin_lives(pin, pins->time, pins->idle_ticks, pins->linger_ticks))
			balancer_ids_add(ids, pin_backend(pin));
	}
}

void balancer_new_ids(const struct balancer *b, const struct balancer *running,
		      struct balancer_ids *ret)
{
	struct balancer_ids before = {0}, now = {0};

	balancer_ids_of(b, &now);
	if (running)
		balancer_ids_of(running, &before);
	for (size_t i = 0; i < SERVICE_BACKENDS / 64; i++)
		ret->bits[i] = now.bits[i] & ~before.bits[i];
}
