// SPDX-License-Identifier: GPL-2.0-only
// Plans the members of a service: which of them continue, with which state, and their numbers.
#include "ctl/table/lb_plan_parts.h"

#include <string.h>

#define WAIT_MS 3000

// ---- numbers ------------------------------------------------------------------------------------

// Begins above the highest number in use, so that numbers rest before they are reused.
void lb_plan_numbers(struct plan *p)
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

uint16_t lb_plan_number(struct plan *p, const struct resolved_service *from)
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

void lb_plan_members(struct plan *p, struct turn *t)
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

void lb_plan_gone(struct plan *p, struct turn *t)
{
	struct lb_ids kept = {0};

	lb_ids_of(
		&(struct lb_state){.slots = p->b->slots + t->s->first_slot, .n_slots = t->s->size},
		&kept);
	for (uint32_t i = 0; i < t->was->n_members; i++) {
		const struct lb_member *m = &p->running.members[t->was->first_member + i];

		if (lb_ids_has(&t->named, m->id))
			continue;
		if (p->o->trial || lb_ids_has(&kept, m->id) ||
		    (p->o->busy && lb_ids_has(p->o->busy, m->id)))
			add_member(p, t, m)->gone = 1;
	}
}
