// SPDX-License-Identifier: GPL-2.0-only
// Services and their members one at a time: found, judged, written as the datapath sees them.
#include "ctl/table/balancer.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

void balancer_free(struct balancer *b)
{
	if (!b)
		return;
	free(b->services);
	free(b->members);
	free(b->slots);
	free(b);
}

void balancer_cleanup(struct balancer **b)
{
	balancer_free(*b);
}

// ---- members ------------------------------------------------------------------------------------

enum backend_state balancer_state(const struct balancer_member *m)
{
	if (m->health == BACKEND_DOWN || m->hand == BACKEND_DOWN)
		return BACKEND_DOWN;
	if (m->health == BACKEND_DRAIN || m->hand == BACKEND_DRAIN || m->gone)
		return BACKEND_DRAIN;
	return BACKEND_UP;
}

uint32_t balancer_weight(const struct balancer_member *m)
{
	return m->weighed ? m->hand_weight : m->weight;
}

void balancer_address(const struct balancer_member *m, struct addr *ret)
{
	*ret = (struct addr){.family = m->family};
	memcpy(ret->bytes, m->addr, sizeof(ret->bytes));
}

bool balancer_expire_member(struct balancer_member *m, uint64_t wall_s)
{
	if (!m->until_s || m->until_s > wall_s)
		return false;
	m->hand = BACKEND_UP;
	m->until_s = 0;
	return true;
}

size_t balancer_expire(struct balancer *b, uint64_t wall_s)
{
	size_t changed = 0;

	for (size_t i = 0; i < b->n_members; i++)
		changed += balancer_expire_member(&b->members[i], wall_s);
	return changed;
}

// ---- services -----------------------------------------------------------------------------------

static uint32_t longest_idle(const struct balancer_service *s)
{
	return s->idle_tcp > s->idle_udp ? s->idle_tcp : s->idle_udp;
}

struct ring_rules balancer_rules(const struct balancer_service *s, uint64_t now, uint32_t hz)
{
	(void)hz; // a service's times are jiffies
	return (struct ring_rules){
		.now = now,
		.hold_ticks = slot_ticks(longest_idle(s), s->hold),
		.move = s->udp_move && s->protocols == SERVICE_UDP,
	};
}

void balancer_row(const struct balancer_service *s, uint32_t hz, struct service *ret)
{
	uint32_t shift = pin_shift(hz);

	*ret = (struct service){
		.key = s->key,
		.size = s->size,
		.first_slot = s->first_slot,
		.buckets = s->buckets,
		.hold_ticks = slot_ticks(longest_idle(s), s->hold),
		.idle_tcp = (uint16_t)pin_ticks(s->idle_tcp, shift),
		.idle_udp = (uint16_t)pin_ticks(s->idle_udp, shift),
		.idle_most = (uint16_t)pin_ticks(longest_idle(s), shift),
		.linger = (uint16_t)pin_linger(s->idle_tcp, hz, shift),
		.row = s->row,
		.mode = s->mode,
		.hash = s->hash,
		.protocols = s->protocols,
		.udp_move = s->udp_move,
		.pin_shift = (uint8_t)shift,
		.path_ticks = (uint16_t)pin_ticks((uint64_t)SERVICE_PATH_S * hz, shift),
	};
}

// ---- look-up ------------------------------------------------------------------------------------

struct balancer_service *balancer_find(const struct balancer *b, const char *name)
{
	for (size_t i = 0; i < b->n_services; i++)
		if (!strcmp(b->services[i].name, name))
			return &b->services[i];
	return NULL;
}

struct balancer_member *balancer_find_member(const struct balancer *b,
					     const struct balancer_service *s,
					     const struct addr *addr, uint16_t port)
{
	static const struct addr here;
	const struct addr *wanted = addr ? addr : &here;

	for (uint32_t i = 0; i < s->n_members; i++) {
		struct balancer_member *m = &b->members[s->first_member + i];

		if (m->family == wanted->family && (!port || m->port == port) &&
		    !memcmp(m->addr, wanted->bytes, sizeof(m->addr)))
			return m;
	}
	return NULL;
}
