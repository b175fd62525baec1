// SPDX-License-Identifier: GPL-2.0-only
// Plans the services of a policy around those that run: their settings and their slots.
#include "ctl/table/lb_plan_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

// ---- the service --------------------------------------------------------------------------------

static bool has_proto(const struct resolved_service *from, unsigned proto)
{
	return from->proto.bits[proto / 64] >> proto % 64 & 1;
}

static uint8_t protocols_of(const struct resolved_service *from)
{
	return (uint8_t)((has_proto(from, 6) ? SERVICE_TCP : 0) |
			 (has_proto(from, 17) ? SERVICE_UDP : 0) |
			 (has_proto(from, 132) ? SERVICE_SCTP : 0));
}

static uint32_t jiffies_of(uint64_t ms, uint32_t hz)
{
	return (uint32_t)((ms * hz + 999) / 1000);
}

static struct lb_service described(const struct plan *p, const struct resolved_service *from)
{
	struct lb_service s = {
		.key = p->key,
		.size = from->ring,
		.first_slot = (uint32_t)p->b->n_slots,
		.buckets = (uint32_t)((from->pins + SERVICE_PIN_WORDS - 1) / SERVICE_PIN_WORDS),
		.first_member = (uint32_t)p->b->n_members,
		.hold = 1,
		.keep = (uint16_t)from->keep,
		.mode = from->mode,
		.checked = from->check.kind != CHECK_NONE,
		.hash = from->hash_source ? SERVICE_HASH_SOURCE : SERVICE_HASH_TUPLE,
		.protocols = protocols_of(from),
	};

	memcpy(s.name, from->name, strnlen(from->name, LB_NAME - 1));
	if (s.protocols & (SERVICE_TCP | SERVICE_SCTP))
		s.idle_tcp = jiffies_of(from->idle_tcp_ms, p->o->hz);
	if (s.protocols & SERVICE_UDP) {
		s.idle_udp = jiffies_of(from->idle_udp_ms, p->o->hz);
		s.udp_move = from->udp_move;
	}
	return s;
}

static bool all_stable(const uint64_t *slots, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		if (slot_former(slots[i]))
			return false;
	return true;
}

// During a trial the previous ring must find new pins, so both rings use the same pins. In a ring
// that is not stable a flow may be pinned at any time until the switch.
static void inherit_pins(struct plan *p, const struct turn *t)
{
	bool pinned = (p->o->pinned && p->o->pinned[t->was - p->running.services]) ||
		      !all_stable(p->running.slots + t->was->first_slot, t->was->size);
	uint64_t pins = (uint64_t)t->was->buckets * SERVICE_PIN_WORDS;

	if (t->s->buckets == t->was->buckets || (!pinned && !p->o->trial))
		return;
	if (t->from->pins_given)
		lb_plan_warn_pins(p->diag, t->from, pins, !pinned);
	t->s->buckets = t->was->buckets;
}

static void inherit(struct plan *p, const struct turn *t)
{
	t->s->id = t->was->id;
	t->s->hold = t->was->hold;
	t->s->pushed = t->was->pushed;
	t->s->pushed_at = t->was->pushed_at;
	inherit_pins(p, t);
}

// ---- slots --------------------------------------------------------------------------------------

// With a longer hold a slot that has expired without a write would be changing again.
static void close_expired(uint64_t *slots, uint32_t size, const struct ring_rules *before)
{
	for (uint32_t i = 0; i < size; i++)
		slots[i] = ring_tidy(slots[i], true, before);
}

static void inherit_slots(struct plan *p, const struct turn *t)
{
	uint64_t *slots = p->b->slots + t->s->first_slot;
	struct ring_rules before = lb_service_rules(t->was, p->o->now, p->o->hz);
	struct ring_rules rules = lb_service_rules(t->s, p->o->now, p->o->hz);

	memcpy(slots, p->running.slots + t->was->first_slot, t->s->size * sizeof(*slots));
	if (rules.hold_ticks > before.hold_ticks)
		close_expired(slots, t->s->size, &before);
}

static bool has_owner(const uint64_t *slots, uint32_t size)
{
	for (uint32_t i = 0; i < size; i++)
		if (slot_owner(slots[i]) != BACKEND_NONE)
			return true;
	return false;
}

static bool waits(const struct lb_state *b, const struct lb_service *s)
{
	CLEANUP_FREE bool *kept = mem_zalloc(s->n_members, sizeof(*kept));

	return lb_service_keep(b, s, kept) == LB_FLOWS_WAIT;
}

// A service that begins has no pins: its slots are stable at once.
static void plan_slots(struct plan *p, const struct turn *t)
{
	CLEANUP_LB_RING struct lb_ring ring = {0};
	struct ring_rules rules = lb_service_rules(t->s, p->o->now, p->o->hz);
	uint64_t *slots = p->b->slots + t->s->first_slot;

	if (t->continues)
		inherit_slots(p, t);
	if (!lb_ring_fill(p->b, t->s, &ring)) {
		if (!waits(p->b, t->s))
			lb_plan_warn_no_backend(p->diag, t->from, has_owner(slots, t->s->size));
		return;
	}
	lb_plan_warn_share(p->diag, t->from, &ring);
	if (t->continues)
		ring_change(slots, ring.owners, t->s->size, &rules);
	for (uint32_t i = 0; !t->continues && i < t->s->size; i++)
		slots[i] = slot_pack(ring.owners[i], BACKEND_NONE, 0);
}

// ---- the plan -----------------------------------------------------------------------------------

static void plan_service(struct plan *p, const struct resolved_service *from)
{
	struct turn t = {.from = from, .s = &p->b->services[p->b->n_services++]};

	*t.s = described(p, from);
	p->b->n_slots += t.s->size;
	t.was = lb_state_find(&p->running, t.s->name);
	t.continues = t.was && !lb_plan_moves_all(t.s, t.was);
	if (t.was && !t.continues && !p->o->force) {
		lb_plan_refuse(p->diag, from, t.s, t.was);
		p->failed = true;
		return;
	}
	if (t.continues)
		inherit(p, &t);
	else
		t.s->id = lb_plan_number(p, from);
	lb_plan_members(p, &t);
	if (p->full)
		return;
	plan_slots(p, &t);
	if (t.continues)
		lb_plan_gone(p, &t);
}

static struct lb_state *with_room(const struct resolved *r, const struct lb_state *running)
{
	struct lb_state *b = mem_new(struct lb_state);
	size_t members = running->n_members, slots = 0;

	for (size_t i = 0; i < r->n_services; i++) {
		members += r->services[i].n_backends;
		slots += r->services[i].ring;
	}
	b->services = mem_zalloc(r->n_services, sizeof(*b->services));
	b->members = mem_zalloc(members, sizeof(*b->members));
	b->slots = mem_zalloc(slots, sizeof(*b->slots));
	return b;
}

// A copy of the running balancer without the overrides that have expired.
static struct lb_member *expired(struct plan *p)
{
	size_t bytes = p->running.n_members * sizeof(*p->running.members);
	struct lb_member *copy = mem_zalloc(1, bytes);

	if (bytes)
		memcpy(copy, p->running.members, bytes);
	p->running.members = copy;
	lb_state_expire(&p->running, p->o->wall_s);
	lb_state_end_waits(&p->running, p->o->now, NULL);
	return copy;
}

int lb_plan(const struct resolved *r, const struct lb_plan_options *o, struct diag *d,
	    struct lb_state **ret)
{
	struct plan p = {.o = o, .diag = d, .key = o->key};
	CLEANUP_FREE struct lb_member *members = NULL;
	CLEANUP_LB_STATE struct lb_state *b = NULL;

	if (r->seed)
		p.key = ring_key(r->seed, strlen(r->seed));
	if (o->running)
		p.running = *o->running;
	members = expired(&p);
	p.b = b = with_room(r, &p.running);
	lb_plan_numbers(&p);
	for (size_t i = 0; i < r->n_services; i++)
		plan_service(&p, &r->services[i]);
	if (p.failed)
		return -EINVAL;
	*ret = TAKE_PTR(b);
	return 0;
}
