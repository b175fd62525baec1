// SPDX-License-Identifier: GPL-2.0-only
// Plans the services of a policy around those that run: settings, members, numbers, slots.

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/table/lb_plan_warn.h"
#include "ctl/table/lb_ring.h"

struct plan {
	const struct lb_plan_options *o;
	struct diag *diag;
	struct hash_key key;
	struct lb_state running; // without expired overrides; empty: none
	struct lb_state *b;      // grows; has room for all
	struct lb_ids used;      // numbers that are not free
	uint32_t last;           // the number that was taken last
	bool full, failed;
};

// A service while it is planned.
struct turn {
	const struct resolved_service *from;
	struct lb_service *s;
	const struct lb_service *was; // of this name
	bool continues;               // the running one
	struct lb_ids named;          // numbers of the policy's members
};

#define WAIT_MS 3000

// ---- numbers ------------------------------------------------------------------------------------

// Begins above the highest number in use, so that numbers rest before they are reused.
static void lb_plan_numbers(struct plan *p)
{
	lb_ids_of(&p->running, &p->used);
	for (size_t i = 0; p->o->busy && i < SERVICE_BACKENDS / 64; i++)
		p->used.bits[i] |= p->o->busy->bits[i];
	for (uint32_t id = 1; id < SERVICE_BACKENDS; id++)
		if (lb_ids_has(&p->used, id))
			p->last = id;
}

static void refuse_full(const struct plan *p, const struct resolved_service *from)
{
	if (p->o->room)
		diag_error(
			p->diag, from->at,
			"apply it without --confirm to make room for the next trial",
			"service '%s': a trial has only as many numbers for services and backends as "
			"the %u of the active policy",
			from->name, p->o->room - 1);
	else
		diag_error(p->diag, from->at,
			   "the numbers of removed backends become free when their connections end",
			   "service '%s': all %d numbers for services and backends are in use",
			   from->name, SERVICE_BACKENDS - 1);
}

static uint16_t lb_plan_number(struct plan *p, const struct resolved_service *from)
{
	uint32_t room = p->o->room ? p->o->room : SERVICE_BACKENDS;

	for (uint32_t i = 1; !p->full && i <= room; i++) {
		uint32_t id = (p->last + i) % room;

		if (id == BACKEND_NONE || lb_ids_has(&p->used, id))
			continue;
		lb_ids_add(&p->used, id);
		p->last = id;
		return (uint16_t)id;
	}
	if (!p->full)
		refuse_full(p, from);
	p->full = p->failed = true;
	return BACKEND_NONE;
}

static bool is_nat(uint8_t mode)
{
	return service_mode_does((enum service_mode)mode) & MODE_NAT;
}

// ---- members ------------------------------------------------------------------------------------

static struct lb_member member_of(const struct resolved_backend *from, uint8_t mode)
{
	struct lb_member m = {
		.backup = from->backup,
		.health = BACKEND_UP,
		.override = BACKEND_UP,
		.weight = from->weight,
	};

	if (service_mode_does(mode) & MODE_PORT)
		m.port = from->port;
	if (from->here)
		return m;
	m.family = from->addr.family;
	memcpy(m.addr, from->addr.bytes, sizeof(m.addr));
	return m;
}

static bool same_backend(const struct lb_member *m, uint8_t family, const uint8_t addr[16],
			 uint16_t port)
{
	return m->family == family && m->port == port && !memcmp(m->addr, addr, sizeof(m->addr));
}

static const struct lb_member *running_member(const struct plan *p, const struct turn *t,
					      const struct lb_member *m)
{
	const struct lb_member *at;

	for (uint32_t i = 0; t->was && i < t->was->n_members; i++) {
		at = &p->running.members[t->was->first_member + i];
		if (same_backend(at, m->family, m->addr, m->port))
			return at;
	}
	return NULL;
}

// Also applies to a service that starts again: a member that is down stays down, unless it is no
// longer checked. The override of a backend whose line was removed and added again is lost.
static void inherit_member(struct lb_member *m, const struct lb_member *was, bool checked)
{
	if (checked) {
		m->health = was->health;
		m->missing = was->missing;
		m->cut = was->cut;
		m->failed = was->failed;
		m->waits = was->waits;
	}
	if (was->gone)
		return;
	m->override = was->override;
	m->weighed = was->weighed;
	m->override_weight = was->override_weight;
	m->until_s = was->until_s;
}

void lb_member_take_override(struct lb_member *m, const char *service,
			     const struct lb_override *overrides, size_t n, uint64_t wall_s)
{
	for (size_t i = 0; i < n; i++) {
		const struct lb_override *h = &overrides[i];

		if (strcmp(h->service, service) != 0 ||
		    !same_backend(m, h->addr.family, h->addr.bytes, h->port))
			continue;
		m->override = h->state;
		m->weighed = h->weighed;
		m->override_weight = h->weight;
		m->until_s = h->until_s;
		lb_member_expire(m, wall_s);
	}
}

static struct lb_member *add_member(struct plan *p, struct turn *t, const struct lb_member *m)
{
	struct lb_member *to = &p->b->members[p->b->n_members++];

	*to = *m;
	t->s->n_members++;
	return to;
}

// How long a new backend waits for its first check, in jiffies. In a completely new service no
// other backend gets the flows in the meantime; otherwise only an agent that dies or hangs exceeds
// this time.
static uint64_t wait_of(const struct plan *p, const struct turn *t)
{
	uint64_t ms = WAIT_MS + (t->was ? t->from->check.timeout_ms : 0);

	return ms * p->o->hz / 1000;
}

static void lb_plan_members(struct plan *p, struct turn *t)
{
	for (size_t i = 0; i < t->from->n_backends; i++) {
		struct lb_member m = member_of(&t->from->backends[i], t->s->mode);
		const struct lb_member *was = running_member(p, t, &m);

		bool checked = t->from->check.kind != CHECK_NONE;

		if (was)
			inherit_member(&m, was, checked);
		else if (checked && p->o->agent)
			m.waits = p->o->now + wait_of(p, t);
		if (!was || was->gone)
			lb_member_take_override(&m, t->s->name, p->o->overrides, p->o->n_overrides,
						p->o->wall_s);
		m.id = was && t->continues ? was->id : lb_plan_number(p, t->from);
		lb_ids_add(&t->named, m.id);
		add_member(p, t, &m);
	}
}

// A connection of nat may name the backend that the policy has just dropped: it can begin at any
// time until the switch.
static bool may_begin(const struct turn *t, const struct lb_member *m)
{
	return is_nat(t->was->mode) && !m->gone;
}

static void lb_plan_gone(struct plan *p, struct turn *t)
{
	struct lb_ids kept = {0};

	lb_ids_of(
		&(struct lb_state){.slots = p->b->slots + t->s->first_slot, .n_slots = t->s->size},
		&kept);
	for (uint32_t i = 0; i < t->was->n_members; i++) {
		const struct lb_member *m = &p->running.members[t->was->first_member + i];

		if (lb_ids_has(&t->named, m->id))
			continue;
		if (p->o->trial || lb_ids_has(&kept, m->id) || may_begin(t, m) ||
		    (p->o->busy && lb_ids_has(p->o->busy, m->id)))
			add_member(p, t, m)->gone = 1;
	}
}

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

// The array of pins of a service has at least one bucket.
static uint32_t buckets_of(uint64_t pins)
{
	return pins ? (uint32_t)((pins + SERVICE_PIN_WORDS - 1) / SERVICE_PIN_WORDS) : 1;
}

static struct lb_service described(const struct plan *p, const struct resolved_service *from)
{
	struct lb_service s = {
		.key = p->key,
		.size = from->ring,
		.first_slot = (uint32_t)p->b->n_slots,
		.buckets = buckets_of(from->pins),
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
