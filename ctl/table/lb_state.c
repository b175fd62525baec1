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
		bytes += (uint64_t)b->services[n].buckets * sizeof(struct pin_bucket);
	return bytes;
}

struct ring_rules lb_service_rules(const struct lb_service *s, uint64_t now, uint32_t hz)
{
	(void)hz; // a service's times are jiffies
	return (struct ring_rules){
		.now = now,
		.hold_ticks = slot_ticks(longest_idle(s), s->hold),
		.move = s->udp_move && s->protocols == SERVICE_UDP,
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
