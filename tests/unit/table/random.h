// SPDX-License-Identifier: GPL-2.0-only
// Random policies that use every field, and packets aimed at their boundaries.
#pragma once

#include "tests/unit/table/made.h"

struct random_shape {
	unsigned rules, sets, prefixes; // most of each; prefixes: of one set and family
	unsigned dense;                 // rules give a field once in so many times
};

// Few different upper bits, so that prefixes nest, touch and repeat.
static inline uint32_t random_addr4(uint64_t *s)
{
	uint32_t addr = (uint32_t)unit_random(s);

	switch (unit_below(s, 4)) {
	case 0:
		return 0x0a000000 | (addr & 0xff);
	case 1:
		return 0x0a000000 | (addr & 0x3ffff);
	case 2:
		return addr & 1 ? 0xffffffff << (addr >> 1 & 15) : addr >> 8 & 15;
	default:
		return addr;
	}
}

static inline void random_addr6(uint64_t *s, uint64_t to[2])
{
	unsigned kind = unit_below(s, 4);

	to[0] = kind == 3 ? unit_random(s) : 0x20010db800000000ull | (unit_random(s) & 0xffff);
	to[1] = kind == 0   ? unit_random(s) & 15
		: kind == 1 ? ~(unit_random(s) & 15)
			    : unit_random(s);
	if (kind == 2 && !unit_below(s, 4))
		to[0] = to[1] = unit_below(s, 2) ? ~0ull : 0;
}

static inline unsigned random_length(uint64_t *s, int family)
{
	static const uint8_t length4[] = {0, 1, 8, 15, 16, 17, 18, 19, 23, 24, 25, 29, 30, 31, 32};
	static const uint8_t length6[] = {0,  1,  15, 16,  17,  21,  22,  32,  48, 63,
					  64, 65, 96, 123, 124, 125, 126, 127, 128};

	if (!unit_below(s, 3))
		return family == 4 ? 32 : 128;
	return family == 4 ? length4[unit_below(s, ARRAY_SIZE(length4))]
			   : length6[unit_below(s, ARRAY_SIZE(length6))];
}

static inline void random_set(struct made *m, uint64_t *s, unsigned prefixes)
{
	struct resolved_addresses *a =
		made_addresses(m, NULL, unit_below(s, 5) ? unit_below(s, prefixes) : 0,
			       unit_below(s, 5) ? unit_below(s, prefixes) : 0);

	a->at = made_at(m, m->r.n_addresses);
	for (size_t i = 0; i < a->n4; i++)
		((struct resolved_prefix4 *)a->v4)[i] =
			made_prefix4(random_addr4(s), random_length(s, 4), unit_below(s, 4) > 0);
	for (size_t i = 0; i < a->n6; i++) {
		uint64_t addr[2];

		random_addr6(s, addr);
		((struct resolved_prefix6 *)a->v6)[i] =
			made_prefix6(addr[0], addr[1], random_length(s, 6), unit_below(s, 4) > 0);
	}
	made_sort(a);
}

// Sorted, disjoint, not adjacent.
static inline struct resolved_ranges random_ranges(struct made *m, uint64_t *s, unsigned max)
{
	struct range16 *at = made_alloc(m, 4, sizeof(*at));
	size_t n = 0, wanted = unit_below(s, 4);
	unsigned from = unit_below(s, 3) ? unit_below(s, max) : 0;

	for (; n < wanted && from <= max; n++) {
		unsigned last = from + (unit_below(s, 2) ? 0 : unit_below(s, max));

		last = last > max || !unit_below(s, 8) ? max : last;
		at[n] = (struct range16){(uint16_t)from, (uint16_t)last};
		from = last + 2 + unit_below(s, max);
	}
	return (struct resolved_ranges){true, at, n};
}

static inline void random_types(struct made *m, uint64_t *s, struct resolved_rule *rule)
{
	static const uint8_t types[] = {0, 3, 8, 128, 132, 133, 134, 136, 137, 255};
	struct resolved_icmp *icmp = made_alloc(m, 2 * ARRAY_SIZE(types), sizeof(*icmp));
	size_t n = 0;

	for (uint8_t family = 4; family <= 6; family = (uint8_t)(family + 2)) {
		for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
			uint8_t first = unit_below(s, 2) ? 0 : (uint8_t)unit_below(s, 4);
			uint8_t last = unit_below(s, 2) ? 255 : (uint8_t)(first + unit_below(s, 4));

			if (!unit_below(s, 3))
				icmp[n++] = (struct resolved_icmp){family, types[i], first, last};
		}
	}
	rule->icmp.given = true;
	rule->icmp.at = icmp;
	rule->icmp.n = n;
}

static inline void random_l4(struct made *m, uint64_t *s, struct resolved_rule *rule)
{
	rule->proto.given = true;
	switch (unit_below(s, 4)) {
	case 0:
		random_types(m, s, rule);
		rule->proto.bits[0] = 1ull << 1 | 1ull << 58;
		return;
	case 1:
		rule->flags = (struct resolved_flags){true, 0, (uint8_t)unit_random(s)};
		rule->flags.set = rule->flags.mask & (uint8_t)unit_random(s);
		rule->proto.bits[0] = 1 << 6;
		return;
	case 2:
		rule->sport = random_ranges(m, s, 65535);
		break;
	default:
		rule->dport = random_ranges(m, s, 65535);
	}
	rule->proto.bits[0] = unit_below(s, 2) ? 1ull << 6 | 1ull << 17 : 1ull << 17;
	rule->proto.bits[2] = unit_below(s, 2) ? 1ull << (132 - 128) : 0;
}

static inline struct resolved_address random_side(struct made *m, uint64_t *s, unsigned dense)
{
	if (unit_below(s, dense) || !m->r.n_addresses)
		return (struct resolved_address){unit_below(s, 8) ? RESOLVED_ANY : RESOLVED_DYNAMIC,
						 0};
	return made_set(unit_below(s, (unsigned)m->r.n_addresses));
}

static inline void random_rule(struct made *m, uint64_t *s, struct resolved_rule *rule,
			       unsigned dense)
{
	rule->impossible = !unit_below(s, 12);
	if (!unit_below(s, 2 * dense)) {
		rule->on.given = true;
		rule->on.bits[0] = unit_random(s);
	}
	if (!unit_below(s, 2 * dense))
		rule->vlan = random_ranges(m, s, 4095);
	if (!unit_below(s, 4 * dense)) {
		rule->ethertype = random_ranges(m, s, 65535);
		if (unit_below(s, 2))
			return; // else it has fields that nothing must look at
	}
	rule->from = random_side(m, s, dense);
	rule->to = random_side(m, s, dense);
	if (!unit_below(s, dense)) {
		random_l4(m, s, rule);
	} else if (!unit_below(s, dense)) {
		rule->proto.given = true;
		for (int i = 0; i < 4; i++)
			rule->proto.bits[i] = unit_random(s);
	}
	rule->fragment = !unit_below(s, 4 * dense);
}

static inline void random_policy(struct made *m, uint64_t *s, const struct random_shape *shape)
{
	unsigned sets = unit_below(s, shape->sets + 1);

	made_init(m, 1 + unit_below(s, shape->rules), sets);
	for (unsigned i = 0; i < sets; i++)
		random_set(m, s, shape->prefixes);
	for (size_t i = 0; i < m->r.n_rules; i++)
		random_rule(m, s, &m->r.rules[i], shape->dense);
}

// ---- packets ------------------------------------------------------------------------------------

static inline uint16_t random_edge(uint64_t *s, const struct resolved_ranges *r, unsigned max)
{
	const struct range16 *at;
	unsigned value;

	if (!r->n || !unit_below(s, 4))
		return (uint16_t)(unit_random(s) & max);
	at = &r->at[unit_below(s, (unsigned)r->n)];
	value = (unit_below(s, 2) ? at->first : at->last) + unit_below(s, 3) - 1u;
	return (uint16_t)(value & max);
}

// At, before or after an edge of one of the set's prefixes.
static inline void random_address(uint64_t *s, const struct resolved *r,
				  const struct resolved_address *from, int family, uint64_t to[2])
{
	const struct resolved_addresses *set =
		from->kind == RESOLVED_SET ? &r->addresses[from->index] : NULL;
	int step = (int)unit_below(s, 3) - 1;
	bool last = unit_below(s, 2);

	if (family == 4) {
		to[0] = random_addr4(s);
		to[1] = 0;
		if (set && set->n4 && unit_below(s, 5)) {
			const struct resolved_prefix4 *p =
				&set->v4[unit_below(s, (unsigned)set->n4)];

			to[0] = last ? p->addr | ~(made_mask64(p->len) >> 32) : p->addr;
			to[0] = (uint32_t)(to[0] + (uint64_t)step);
		}
		return;
	}
	random_addr6(s, to);
	if (set && set->n6 && unit_below(s, 5)) {
		const struct resolved_prefix6 *p = &set->v6[unit_below(s, (unsigned)set->n6)];
		unsigned low = p->len > 64 ? p->len - 64u : 0;
		unsigned __int128 key = (unsigned __int128)p->hi << 64 | p->lo;

		if (last)
			key |= (unsigned __int128)~made_mask64(p->len) << 64 | ~made_mask64(low);
		key += (unsigned __int128)step;
		to[0] = (uint64_t)(key >> 64);
		to[1] = (uint64_t)key;
	}
}

static inline void random_payload(uint64_t *s, const struct resolved_rule *rule,
				  struct made_packet *p)
{
	static const uint8_t protos[] = {6, 6, 17, 1, 58, 58, 132, 47};

	p->proto = unit_below(s, 4) ? protos[unit_below(s, ARRAY_SIZE(protos))]
				    : (uint8_t)unit_random(s);
	p->fragment = unit_below(s, 3) ? 0 : (uint8_t)unit_below(s, 3);
	p->has_l4 = p->fragment != 2;
	p->sport = random_edge(s, &rule->sport, 65535);
	p->dport = random_edge(s, &rule->dport, 65535);
	p->flags =
		rule->flags.given && unit_below(s, 2) ? rule->flags.set : (uint8_t)unit_random(s);
	p->type = (uint8_t)unit_random(s);
	p->code = (uint8_t)unit_below(s, 6);
	if (rule->icmp.n && unit_below(s, 4)) {
		const struct resolved_icmp *icmp =
			&rule->icmp.at[unit_below(s, (unsigned)rule->icmp.n)];

		p->proto = unit_below(s, 2) ? 58 : 1;
		p->type = icmp->type;
		p->code = (uint8_t)(unit_below(s, 2) ? icmp->code_first : icmp->code_last + 1);
	}
	p->neighbour = p->family == 6 && p->proto == 58 && !p->fragment && p->type >= 133 &&
		       p->type <= 136 && unit_below(s, 2);
}

static inline struct made_packet random_packet(uint64_t *s, const struct resolved *r)
{
	const struct resolved_rule *rule = &r->rules[unit_below(s, (unsigned)r->n_rules)];
	struct made_packet p = {.family = unit_below(s, 2) ? 4 : 6};

	p.iface = unit_below(s, 65);
	p.vlan = random_edge(s, &rule->vlan, 4095);
	p.ethertype = p.family == 4 ? 0x0800 : 0x86dd;
	if (!unit_below(s, 8)) {
		p.ethertype = random_edge(s, &rule->ethertype, 65535);
		p.family = p.ethertype == 0x0800 ? 4 : p.ethertype == 0x86dd ? 6 : 0;
	}
	random_address(s, r, &rule->from, p.family, p.source);
	random_address(s, r, &rule->to, p.family, p.destination);
	if (p.family)
		random_payload(s, rule, &p);
	return p;
}
