// SPDX-License-Identifier: GPL-2.0-only
// Fills the rings of services from their members, changes them and counts their slots.
#include "ctl/table/lb_ring.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"

static struct ring_backend backend_of(const struct lb_member *m, bool kept)
{
	struct ring_backend b = {
		.port = m->port,
		.id = m->id,
		.state = kept ? BACKEND_UP : (uint8_t)lb_member_state(m),
		.backup = m->backup,
	};

	lb_member_address(m, &b.addr);
	return b;
}

// While a weight ramps, all weights of the service are multiplied by this number, so that small
// ones have sixteenths too. A ring is the same for all multiples of its weights. docs/ring.md
// specifies it.
static uint32_t ramp_factor(const struct lb_state *b, const struct lb_service *s)
{
	uint32_t most = 1;
	bool ramps = false;

	for (uint32_t i = 0; i < s->n_members; i++) {
		const struct lb_member *m = &b->members[s->first_member + i];

		if (m->gone)
			continue;
		ramps = ramps || lb_member_ramp(m) < LB_RAMP;
		most = lb_member_weight(m) > most ? lb_member_weight(m) : most;
	}
	if (!ramps)
		return 1;
	return POLICY_WEIGHT_MAX / most < LB_RAMP ? POLICY_WEIGHT_MAX / most : LB_RAMP;
}

static uint32_t ramped_weight(const struct lb_member *m, uint32_t factor)
{
	uint32_t weight = lb_member_weight(m) * factor * lb_member_ramp(m) / LB_RAMP;

	return weight || !lb_member_weight(m) ? weight : 1;
}

// The members in the form for ring_elect(), without removed ones. ret has room for all.
static size_t backends_of(const struct lb_state *b, const struct lb_service *s,
			  struct ring_backend *ret)
{
	CLEANUP_FREE bool *kept = mem_zalloc(s->n_members, sizeof(*kept));
	uint32_t factor = ramp_factor(b, s);
	size_t n = 0;

	lb_service_keep(b, s, kept);
	for (uint32_t i = 0; i < s->n_members; i++) {
		const struct lb_member *m = &b->members[s->first_member + i];

		if (m->gone)
			continue;
		ret[n] = backend_of(m, kept[i]);
		ret[n++].weight = ramped_weight(m, factor);
	}
	return n;
}

// The same as the policy has them.
static size_t configured(const struct lb_state *b, const struct lb_service *s,
			 struct ring_backend *ret)
{
	size_t n = 0;

	for (uint32_t i = 0; i < s->n_members; i++) {
		const struct lb_member *m = &b->members[s->first_member + i];

		if (m->gone)
			continue;
		ret[n] = backend_of(m, true);
		ret[n++].weight = m->weight;
	}
	return n;
}

// The members that count, with their weights: a ring ignores members without weight.
static size_t elected_of(const struct lb_state *b, const struct lb_service *s,
			 struct ring_backend *ret)
{
	size_t n = backends_of(b, s, ret), kept = 0;

	ring_elect(ret, n, ret);
	for (size_t i = 0; i < n; i++)
		if (ret[i].weight)
			ret[kept++] = ret[i];
	return kept;
}

void lb_member_states(const struct lb_state *b, const struct lb_service *s, uint8_t *ret)
{
	CLEANUP_FREE struct ring_backend *backends = mem_zalloc(s->n_members, sizeof(*backends));
	size_t n = backends_of(b, s, backends), at = 0;

	ring_elect(backends, n, backends);
	for (uint32_t i = 0; i < s->n_members; i++) {
		const struct lb_member *m = &b->members[s->first_member + i];
		const struct ring_backend *elected = m->gone ? NULL : &backends[at++];

		ret[i] = elected ? elected->state : (uint8_t)lb_member_state(m);
		if (elected && !elected->weight && ret[i] == BACKEND_UP)
			ret[i] = BACKEND_DRAIN;
	}
}

void lb_ring_cleanup(struct lb_ring *ring)
{
	free(TAKE_PTR(ring->backends));
	free(TAKE_PTR(ring->owners));
}

bool lb_ring_fill(const struct lb_state *b, const struct lb_service *s, struct lb_ring *ret)
{
	ret->backends = mem_zalloc(s->n_members, sizeof(*ret->backends));
	ret->owners = mem_zalloc(s->size, sizeof(*ret->owners));
	ret->n = elected_of(b, s, ret->backends);
	return ring_fill(&s->key, ret->backends, ret->n, s->size, ret->owners) == 0;
}

size_t lb_service_change(struct lb_state *b, size_t service, uint64_t now, uint32_t hz,
			 bool *ret_no_backend)
{
	const struct lb_service *s = &b->services[service];
	CLEANUP_LB_RING struct lb_ring ring = {0};
	struct ring_rules rules = lb_service_rules(s, now, hz);

	*ret_no_backend = !lb_ring_fill(b, s, &ring);
	if (*ret_no_backend)
		return 0;
	return ring_change(b->slots + s->first_slot, ring.owners, s->size, &rules);
}

// ---- figures ------------------------------------------------------------------------------------

static uint64_t slot_at(const struct lb_state *b, const struct lb_service *s, uint32_t i)
{
	return __atomic_load_n(&b->slots[s->first_slot + i], __ATOMIC_RELAXED);
}

void lb_service_owned(const struct lb_state *b, const struct lb_service *s, uint32_t *ret)
{
	memset(ret, 0, SERVICE_BACKENDS * sizeof(*ret));
	for (uint32_t i = 0; i < s->size; i++)
		ret[slot_owner(slot_at(b, s, i))]++;
}

static void count_phases(const struct lb_state *b, const struct lb_service *s,
			 const struct ring_rules *rules, struct lb_service_figures *ret)
{
	for (uint32_t i = 0; i < s->size; i++) {
		uint64_t slot = slot_at(b, s, i);
		enum slot_phase phase = slot_phase(slot, rules->now, rules->hold_ticks);

		ret->stable += phase == SLOT_STABLE;
		ret->changing += phase == SLOT_CHANGING;
		ret->pins_only += phase == SLOT_PINS_ONLY;
	}
}

static uint64_t share_error(const struct lb_state *b, const struct lb_service *s)
{
	CLEANUP_FREE struct ring_backend *elected = mem_zalloc(s->n_members, sizeof(*elected));
	CLEANUP_FREE uint16_t *owners = mem_zalloc(s->size, sizeof(*owners));
	size_t n = elected_of(b, s, elected);

	for (uint32_t i = 0; i < s->size; i++)
		owners[i] = (uint16_t)slot_owner(slot_at(b, s, i));
	return ring_share_error(elected, n, s->size, owners, NULL);
}

void lb_service_figures(const struct lb_state *b, const struct lb_service *s, uint64_t now,
			uint32_t hz, struct lb_service_figures *ret)
{
	CLEANUP_FREE struct ring_backend *backends = mem_zalloc(s->n_members, sizeof(*backends));
	size_t n = backends_of(b, s, backends);
	struct ring_rules rules = lb_service_rules(s, now, hz);

	*ret = (struct lb_service_figures){.share_error = share_error(b, s)};
	count_phases(b, s, &rules, ret);
	ring_fingerprint(&s->key, s->hash, s->size, backends, n, &ret->fingerprint);
	n = configured(b, s, backends);
	ring_fingerprint(&s->key, s->hash, s->size, backends, n, &ret->configuration);
}

// ---- what would be lost -------------------------------------------------------------------------

static uint64_t changes_for(uint64_t slot, const struct ring_rules *rules)
{
	uint64_t age = (slot_time(rules->now) - slot) & SLOT_SINCE;

	if (slot_phase(slot, rules->now, rules->hold_ticks) != SLOT_CHANGING)
		return 0;
	return age <= rules->hold_ticks ? (rules->hold_ticks - age + 1) << SERVICE_SLOT_SHIFT : 0;
}

void lb_service_loss(const struct lb_state *b, const struct lb_service *s, uint64_t now,
		     uint32_t hz, struct lb_service_loss *ret)
{
	CLEANUP_LB_RING struct lb_ring ring = {0};
	struct ring_rules rules = lb_service_rules(s, now, hz);
	bool somebody = lb_ring_fill(b, s, &ring);

	*ret = (struct lb_service_loss){0};
	for (uint32_t i = 0; i < s->size; i++) {
		uint64_t slot = slot_at(b, s, i), more = changes_for(slot, &rules);
		uint32_t owner = somebody ? ring.owners[i] : BACKEND_NONE;

		ret->unsettled += slot_former(slot) != BACKEND_NONE;
		ret->other += !slot_former(slot) && slot_owner(slot) != owner;
		ret->jiffies = more > ret->jiffies ? more : ret->jiffies;
	}
}
