// SPDX-License-Identifier: GPL-2.0-only
// Resolved policies, written or random, and their plain evaluation, rule by rule.
#pragma once

#include "tests/unit/base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/base/vec.h"
#include "ctl/table/compile.h"
#include "tests/unit/table/lookup.h"

// All memory is allocated once and freed at the end; arrays do not move.
struct made {
	struct resolved r;
	VEC(void *) memory;
	struct diag *diag;
	const struct diag_file *file;
};

static inline void *made_alloc(struct made *m, size_t n, size_t size)
{
	void *at = mem_zalloc(n, size);

	vec_push(&m->memory, at);
	return at;
}

#define MADE_TEXT 8192

static inline struct diag_at made_at(const struct made *m, size_t line)
{
	return (struct diag_at){m->file, (uint32_t)(line - 1), 1}; // a line is one byte long
}

// Room for n rules (line i + 1 of "made.weir" is rule i) and n_sets sets.
static inline void made_init(struct made *m, size_t n, size_t n_sets)
{
	char text[MADE_TEXT];

	*m = (struct made){.diag = diag_new()};
	memset(text, '\n', sizeof(text));
	m->file = diag_add_file(m->diag, "made.weir", text, sizeof(text));
	m->r.files = made_alloc(m, 1, sizeof(*m->r.files));
	m->r.files[0].name = "made.weir";
	m->r.n_files = 1;
	m->r.rules = made_alloc(m, n, sizeof(*m->r.rules));
	m->r.n_rules = n;
	for (size_t i = 0; i < n; i++) {
		char *identity = made_alloc(m, 32, 1);

		snprintf(identity, 32, "rule %zu", i);
		m->r.rules[i].identity = identity;
		m->r.rules[i].action = ACTION_DROP;
		m->r.rules[i].at = made_at(m, i + 1);
		m->r.rules[i].place.line = (uint32_t)i + 1;
	}
	m->r.addresses = made_alloc(m, n_sets, sizeof(*m->r.addresses));
}

static inline void made_free(struct made *m)
{
	vec_each (&m->memory, at)
		free(*at);
	vec_free(&m->memory);
	diag_free(m->diag);
}

static inline struct resolved_address made_set(size_t index)
{
	return (struct resolved_address){RESOLVED_SET, (uint32_t)index};
}

static inline struct resolved_ranges made_range(struct made *m, uint16_t first, uint16_t last)
{
	struct range16 *at = made_alloc(m, 1, sizeof(*at));

	*at = (struct range16){first, last};
	return (struct resolved_ranges){true, at, 1};
}

// ---- sets ---------------------------------------------------------------------------------------

static inline int made_compare4(const void *a, const void *b)
{
	const struct resolved_prefix4 *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->len - y->len;
}

static inline int made_compare6(const void *a, const void *b)
{
	const struct resolved_prefix6 *x = a, *y = b;

	if (x->hi != y->hi)
		return x->hi < y->hi ? -1 : 1;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->len - y->len;
}

static inline uint64_t made_mask64(unsigned len)
{
	return len == 0 ? 0 : len >= 64 ? ~0ull : ~0ull << (64 - len);
}

static inline struct resolved_prefix4 made_prefix4(uint32_t addr, unsigned len, bool in)
{
	return (struct resolved_prefix4){
		.addr = addr & (uint32_t)(made_mask64(len) >> 32), .len = (uint8_t)len, .in = in};
}

static inline struct resolved_prefix6 made_prefix6(uint64_t hi, uint64_t lo, unsigned len, bool in)
{
	return (struct resolved_prefix6){.hi = hi & made_mask64(len),
					 .lo = lo & made_mask64(len > 64 ? len - 64 : 0),
					 .len = (uint8_t)len,
					 .in = in};
}

// Adds a set with n4 and n6 prefixes; the caller fills and made_sort()s them.
static inline struct resolved_addresses *made_addresses(struct made *m, const char *name, size_t n4,
							size_t n6)
{
	struct resolved_addresses *s = &m->r.addresses[m->r.n_addresses++];

	s->name = name;
	s->v4 = made_alloc(m, n4, sizeof(*s->v4));
	s->v6 = made_alloc(m, n6, sizeof(*s->v6));
	s->n4 = n4;
	s->n6 = n6;
	return s;
}

// Sorts prefixes and removes duplicates.
static inline void made_sort(struct resolved_addresses *s)
{
	struct resolved_prefix4 *v4 = (struct resolved_prefix4 *)s->v4;
	struct resolved_prefix6 *v6 = (struct resolved_prefix6 *)s->v6;
	size_t n = 0;

	qsort(v4, s->n4, sizeof(*v4), made_compare4);
	for (size_t i = 0; i < s->n4; i++)
		if (!n || made_compare4(&v4[n - 1], &v4[i]))
			v4[n++] = v4[i];
	s->n4 = n;
	n = 0;
	qsort(v6, s->n6, sizeof(*v6), made_compare6);
	for (size_t i = 0; i < s->n6; i++)
		if (!n || made_compare6(&v6[n - 1], &v6[i]))
			v6[n++] = v6[i];
	s->n6 = n;
	s->empty = !s->n4 && !s->n6;
}

// ---- packets and their plain evaluation ---------------------------------------------------------

struct made_packet {
	uint8_t family;                     // 4, 6; 0: not IP
	uint64_t source[2], destination[2]; // host order; IPv4 in [0]
	uint8_t proto, fragment;
	bool has_l4;
	uint16_t sport, dport;
	uint8_t flags, type, code;
	bool neighbour;
	uint16_t vlan, ethertype;
	uint32_t iface; // number + 1
};

static inline bool made_has_ports(const struct made_packet *p)
{
	return p->has_l4 && (p->proto == 6 || p->proto == 17 || p->proto == 132);
}

static inline bool made_in_ranges(const struct resolved_ranges *r, unsigned value)
{
	for (size_t i = 0; i < r->n; i++)
		if (value >= r->at[i].first && value <= r->at[i].last)
			return true;
	return false;
}

static inline bool made_in_set(const struct resolved_addresses *s, int family,
			       const uint64_t addr[2])
{
	int longest = -1;
	bool in = false;

	for (size_t i = 0; family == 4 && i < s->n4; i++) {
		const struct resolved_prefix4 *p = &s->v4[i];

		if ((addr[0] & made_mask64(p->len) >> 32) == p->addr && p->len > longest) {
			longest = p->len;
			in = p->in;
		}
	}
	for (size_t i = 0; family == 6 && i < s->n6; i++) {
		const struct resolved_prefix6 *p = &s->v6[i];
		unsigned low = p->len > 64 ? p->len - 64u : 0;

		if ((addr[0] & made_mask64(p->len)) == p->hi &&
		    (addr[1] & made_mask64(low)) == p->lo && p->len > longest) {
			longest = p->len;
			in = p->in;
		}
	}
	return in;
}

static inline bool made_in_address(const struct resolved *r, const struct resolved_address *a,
				   int family, const uint64_t addr[2])
{
	return a->kind != RESOLVED_SET || made_in_set(&r->addresses[a->index], family, addr);
}

static inline bool made_in_types(const struct resolved_rule *rule, const struct made_packet *p)
{
	if (!p->has_l4 || (p->proto != 1 && p->proto != 58))
		return false;
	for (size_t i = 0; i < rule->icmp.n; i++) {
		const struct resolved_icmp *icmp = &rule->icmp.at[i];

		if (icmp->family == (p->proto == 58 ? 6 : 4) && icmp->type == p->type &&
		    p->code >= icmp->code_first && p->code <= icmp->code_last)
			return true;
	}
	return false;
}

// The fields of a rule for IP packets only.
static inline bool made_matches_ip(const struct resolved *r, const struct resolved_rule *rule,
				   const struct made_packet *p)
{
	if (!p->family)
		return false;
	if (!made_in_address(r, &rule->from, p->family, p->source) ||
	    !made_in_address(r, &rule->to, p->family, p->destination))
		return false;
	if (rule->sport.given && !(made_has_ports(p) && made_in_ranges(&rule->sport, p->sport)))
		return false;
	if (rule->dport.given && !(made_has_ports(p) && made_in_ranges(&rule->dport, p->dport)))
		return false;
	if (rule->proto.given && !(rule->proto.bits[p->proto / 64] >> (p->proto % 64) & 1))
		return false;
	if (rule->flags.given &&
	    !(p->has_l4 && p->proto == 6 && (p->flags & rule->flags.mask) == rule->flags.set))
		return false;
	if (rule->icmp.given && !made_in_types(rule, p))
		return false;
	return !rule->fragment || p->fragment == 2;
}

static inline bool made_matches(const struct resolved *r, const struct resolved_rule *rule,
				const struct made_packet *p)
{
	if (rule->impossible || (p->neighbour && (!rule->icmp.given || rule->ethertype.given)))
		return false;
	if (rule->on.given && !(p->iface && rule->on.bits[0] >> (p->iface - 1) & 1))
		return false;
	if (rule->vlan.given && !made_in_ranges(&rule->vlan, p->vlan))
		return false;
	if (rule->ethertype.given)
		return made_in_ranges(&rule->ethertype, p->ethertype);
	return made_matches_ip(r, rule, p);
}

// ---- the packet as the tables see it ------------------------------------------------------------

static inline void made_store(uint8_t bytes[16], int family, const uint64_t addr[2])
{
	uint64_t hi = family == 4 ? addr[0] << 32 : addr[0];

	for (int i = 0; i < 8; i++) {
		bytes[i] = (uint8_t)(hi >> (56 - 8 * i));
		bytes[8 + i] = (uint8_t)((family == 4 ? 0 : addr[1]) >> (56 - 8 * i));
	}
}

static inline uint32_t made_l4(const struct made_packet *p)
{
	uint32_t icmp = p->type * 256u + p->code;

	if (!p->has_l4)
		return POLICY_L4_NONE;
	if (p->neighbour)
		return POLICY_L4_NEIGHBOUR + icmp - 133 * 256;
	return p->proto == 6    ? POLICY_L4_FLAGS + p->flags
	       : p->proto == 1  ? POLICY_L4_ICMP + icmp
	       : p->proto == 58 ? POLICY_L4_ICMP6 + icmp
				: POLICY_L4_NONE;
}

static inline struct image_packet made_lookup(const struct made_packet *p)
{
	struct image_packet l = {.family = p->family};

	made_store(l.source, p->family, p->source);
	made_store(l.destination, p->family, p->destination);
	l.index[FIELD_SPORT] = made_has_ports(p) ? p->sport : POLICY_NO_PORT;
	l.index[FIELD_DPORT] = made_has_ports(p) ? p->dport : POLICY_NO_PORT;
	l.index[FIELD_PROTO] = p->fragment * 256u + p->proto;
	l.index[FIELD_L4] = made_l4(p);
	l.index[FIELD_VLAN] = p->vlan;
	l.index[FIELD_IFACE] = p->iface;
	l.index[FIELD_ETHERTYPE] = p->ethertype;
	return l;
}

// Fails the test if image and plain evaluation differ for the packet. True: some rule matched.
static inline bool made_check(const struct resolved *r, const struct image *i,
			      const struct made_packet *p)
{
	struct image_packet l = made_lookup(p);
	uint64_t words[POLICY_WORDS_MAX];
	bool some = false;

	if (!image_match(i, MATRIX_RULES, &l, words))
		fail_msg("a look-up yields row 0");
	for (size_t n = 0; n < r->n_rules; n++) {
		bool got = words[n / 64] >> (n % 64) & 1;

		if (got != made_matches(r, &r->rules[n], p))
			fail_msg("rule %zu: the tables say %d; family %u, source %016llx%016llx, "
				 "proto %u, fragment %u, ports %u %u, type %u, nd %d, ethertype "
				 "%04x, vlan %u, iface %u",
				 n, got, p->family, (unsigned long long)p->source[0],
				 (unsigned long long)p->source[1], p->proto, p->fragment, p->sport,
				 p->dport, p->type, p->neighbour, p->ethertype, p->vlan, p->iface);
		some |= got;
	}
	return some;
}
