// SPDX-License-Identifier: GPL-2.0-only
// Services and their members: look-ups, states, and the form that the datapath reads.
#include "ctl/table/lb_state.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "common/decap.h"
#include "ctl/base/mem.h"
#include "ctl/base/num.h"

void lb_state_free(struct lb_state *b)
{
	if (!b)
		return;
	free(b->services);
	free(b->members);
	free(b->slots);
	free(b);
}

void lb_state_cleanup(struct lb_state **b)
{
	lb_state_free(*b);
}

// ---- members ------------------------------------------------------------------------------------

enum backend_state lb_member_state(const struct lb_member *m)
{
	if (m->override == BACKEND_DOWN)
		return BACKEND_DOWN;
	if (m->override == BACKEND_DRAIN)
		return m->health == BACKEND_UP ? BACKEND_DRAIN : BACKEND_FAILING;
	if (m->health != BACKEND_UP)
		return (enum backend_state)m->health;
	return m->gone || m->waits ? BACKEND_DRAIN : BACKEND_UP;
}

bool lb_member_waits(const struct lb_member *m)
{
	return m->waits && !m->gone && m->override == BACKEND_UP && m->health == BACKEND_UP;
}

uint32_t lb_member_ramp(const struct lb_member *m)
{
	return m->weighed || m->missing >= LB_RAMP ? LB_RAMP : LB_RAMP - m->missing;
}

uint32_t lb_member_weight(const struct lb_member *m)
{
	return m->weighed ? m->override_weight : m->weight;
}

void lb_member_address(const struct lb_member *m, struct addr *ret)
{
	*ret = (struct addr){.family = m->family};
	memcpy(ret->bytes, m->addr, sizeof(ret->bytes));
}

static bool has_expired(const struct lb_member *m, uint64_t wall_s)
{
	return m->until_s && m->until_s <= wall_s;
}

bool lb_member_expire(struct lb_member *m, uint64_t wall_s)
{
	if (!has_expired(m, wall_s))
		return false;
	m->override = BACKEND_UP;
	m->until_s = 0;
	return true;
}

static bool has_waited(const struct lb_member *m, uint64_t now)
{
	return m->waits && m->waits <= now;
}

size_t lb_state_expire(struct lb_state *b, uint64_t wall_s)
{
	size_t changed = 0;

	for (size_t i = 0; i < b->n_members; i++)
		changed += lb_member_expire(&b->members[i], wall_s);
	return changed;
}

size_t lb_state_end_waits(struct lb_state *b, uint64_t now, bool *ret_services)
{
	size_t ended = 0;

	for (size_t n = 0; n < b->n_services; n++) {
		const struct lb_service *s = &b->services[n];

		for (uint32_t i = 0; i < s->n_members; i++) {
			struct lb_member *m = &b->members[s->first_member + i];

			if (!has_waited(m, now))
				continue;
			m->waits = 0;
			ended++;
			if (ret_services)
				ret_services[n] = true;
		}
	}
	return ended;
}

bool lb_service_is_due(const struct lb_state *b, const struct lb_service *s, uint64_t now,
		       uint64_t wall_s)
{
	for (uint32_t i = 0; i < s->n_members; i++) {
		const struct lb_member *m = &b->members[s->first_member + i];

		if (has_expired(m, wall_s) || has_waited(m, now))
			return true;
	}
	return s->torn;
}

// ---- services -----------------------------------------------------------------------------------

static uint32_t longest_idle(const struct lb_service *s)
{
	return s->idle_tcp > s->idle_udp ? s->idle_tcp : s->idle_udp;
}

uint64_t lb_state_pin_bytes(const struct lb_state *b)
{
	uint64_t bytes = 0;

	for (size_t n = 0; n < b->n_services; n++)
		if (!(service_mode_does((enum service_mode)b->services[n].mode) & MODE_NAT))
			bytes += (uint64_t)b->services[n].buckets * sizeof(struct pin_bucket);
	return bytes;
}

// Each connection has its own backend, so a slot decides only for new ones.
static bool is_nat(const struct lb_service *s)
{
	return service_mode_does((enum service_mode)s->mode) & MODE_NAT;
}

struct ring_rules lb_service_rules(const struct lb_service *s, uint64_t now, uint32_t hz)
{
	(void)hz; // a service's times are jiffies
	return (struct ring_rules){
		.now = now,
		.hold_ticks = slot_ticks(longest_idle(s), s->hold),
		.move = (s->udp_move && s->protocols == SERVICE_UDP) || is_nat(s),
	};
}

void lb_service_value(const struct lb_service *s, uint32_t hz, struct service *ret)
{
	uint32_t shift = pin_shift(hz);

	*ret = (struct service){
		.key = ring_flow_key(&s->key),
		.size = s->size,
		.first_slot = s->first_slot,
		.buckets = s->buckets,
		.hold_ticks = slot_ticks(longest_idle(s), s->hold),
		.life_tcp = (uint16_t)pin_life(s->idle_tcp, shift),
		.life_udp = (uint16_t)pin_life(s->idle_udp, shift),
		.life_most = (uint16_t)pin_life(longest_idle(s), shift),
		.linger = (uint16_t)pin_linger(s->idle_tcp, hz, shift),
		.id = s->id,
		.mode = s->mode,
		.hash = s->hash,
		.udp_move = s->udp_move,
		.pin_shift = (uint8_t)shift,
		.path_ticks = (uint16_t)pin_ticks((uint64_t)SERVICE_PATH_S * hz, shift),
	};
}

// ---- backends -----------------------------------------------------------------------------------

static uint32_t sum_words(uint32_t sum, const void *bytes, size_t n)
{
	uint16_t word;

	for (size_t i = 0; i < n; i += sizeof(word)) {
		memcpy(&word, (const uint8_t *)bytes + i, sizeof(word));
		sum += word;
	}
	return sum;
}

// Bits that are drawn must be zero: they are added to the sum.
static void mask_source(struct backend *b)
{
	struct addr source = {.family = b->family};

	memcpy(source.bytes, b->source, sizeof(b->source));
	source = prefix_of(&source, b->source_len).addr;
	memcpy(b->source, source.bytes, sizeof(b->source));
}

void lb_backend_complete(struct backend *b)
{
	static const uint16_t of4[] = {OUTER_FIRST, OUTER_DF, OUTER_TTL << 8};
	static const uint16_t of6[] = {IPPROTO_UDP, DECAP_PORT}; // in IPv6 only UDP has a checksum
	uint32_t sum = 0;

	b->sum = 0;
	if (b->here || !b->ifindex)
		b->mtu = 0;
	if (!b->family)
		return;
	mask_source(b);
	for (size_t i = 0; b->family == 4 && i < ARRAY_SIZE(of4); i++)
		sum += htons(of4[i]);
	for (size_t i = 0; b->family == 6 && i < ARRAY_SIZE(of6); i++)
		sum += htons(of6[i]);
	sum = sum_words(sum, b->source, sizeof(b->source));
	sum = sum_words(sum, b->addr, sizeof(b->addr));
	sum = (sum & 0xffff) + (sum >> 16);
	b->sum = (uint16_t)((sum & 0xffff) + (sum >> 16));
}

// ---- look-up ------------------------------------------------------------------------------------

struct lb_service *lb_state_find(const struct lb_state *b, const char *name)
{
	for (size_t i = 0; i < b->n_services; i++)
		if (!strcmp(b->services[i].name, name))
			return &b->services[i];
	return NULL;
}

struct lb_member *lb_state_find_member(const struct lb_state *b, const struct lb_service *s,
				       const struct addr *addr, uint16_t port)
{
	static const struct addr here;
	const struct addr *wanted = addr ? addr : &here;

	for (uint32_t i = 0; i < s->n_members; i++) {
		struct lb_member *m = &b->members[s->first_member + i];

		if (m->family == wanted->family && (!port || m->port == port) &&
		    !memcmp(m->addr, wanted->bytes, sizeof(m->addr)))
			return m;
	}
	return NULL;
}

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

// The members of a service.
struct pool_view {
	const struct lb_member *at;
	uint32_t n;
	bool *kept;
};

static bool is_up(const struct lb_member *m, bool backup)
{
	return m->backup == backup && lb_member_state(m) == BACKEND_UP && lb_member_weight(m);
}

// Nothing but its checks keeps new flows from it.
static bool is_doubted(const struct lb_member *m, bool backup)
{
	return m->backup == backup && !m->gone && m->override == BACKEND_UP &&
	       m->health != BACKEND_UP && !m->cut && lb_member_weight(m);
}

static bool is_waiting(const struct lb_member *m, bool backup)
{
	return m->backup == backup && lb_member_waits(m) && lb_member_weight(m);
}

static uint64_t weight_of(const struct pool_view *v, bool backup,
			  bool (*counts)(const struct lb_member *m, bool backup))
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < v->n; i++)
		sum += counts(&v->at[i], backup) ? lb_member_weight(&v->at[i]) : 0;
	return sum;
}

// The doubted one that failed last; of several, the first. NULL: all are kept.
static const struct lb_member *last_failed(const struct pool_view *v)
{
	const struct lb_member *last = NULL;

	for (uint32_t i = 0; i < v->n; i++)
		if (is_doubted(&v->at[i], false) && !v->kept[i] &&
		    (!last || v->at[i].failed > last->failed))
			last = &v->at[i];
	return last;
}

static void keep_share(const struct pool_view *v, uint64_t staying, uint32_t keep)
{
	uint64_t all = staying + weight_of(v, false, is_doubted);
	const struct lb_member *next;

	while (staying * 10000 < all * keep && (next = last_failed(v))) {
		v->kept[next - v->at] = true;
		staying += lb_member_weight(next);
	}
}

static enum lb_flows keep_all(const struct pool_view *v)
{
	bool backup = !weight_of(v, false, is_doubted);
	enum lb_flows flows = LB_FLOWS_LAST;

	for (uint32_t i = 0; i < v->n; i++)
		if ((v->kept[i] = is_doubted(&v->at[i], backup)))
			flows = LB_FLOWS_OPEN;
	return flows;
}

enum lb_flows lb_service_keep(const struct lb_state *b, const struct lb_service *s, bool *ret)
{
	const struct pool_view v = {&b->members[s->first_member], s->n_members, ret};
	uint64_t up = weight_of(&v, false, is_up);
	bool backup = weight_of(&v, true, is_up);

	for (uint32_t i = 0; i < v.n; i++)
		ret[i] = false;
	if (!up && !backup && (weight_of(&v, false, is_waiting) || weight_of(&v, true, is_waiting)))
		return LB_FLOWS_WAIT;
	if (!up && !backup)
		return keep_all(&v);
	if (!backup)
		keep_share(&v, up, s->keep);
	return LB_FLOWS_UP;
}
