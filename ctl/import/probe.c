// SPDX-License-Identifier: GPL-2.0-only
// Searches packets that a rule decides, from the edges of its values and of the rules before it.
#include "ctl/import/probe.h"

#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/vec.h"
#include "ctl/policy/names.h"

#define WORK     8000000     // comparisons with rules, less than a second
#define BLOCKERS 16          // rules before the rule that are avoided
#define VALUES   16          // intervals of a field that are tried
#define SELF4    0xc000020au // 192.0.2.10
#define MAC      0x020000000001ull
#define SYN      2

static bool matches(const struct match *m, const struct probe_packet *p)
{
	if (!(m->families & p->family) || !(m->on >> p->on & 1) || m->fragment)
		return false;
	if (m->established && !p->established)
		return false;
	// Dynamic sets are empty.
	if ((m->untracked && p->established) || m->in[0] || m->in[1])
		return false;
	if (m->flagged && (p->f[MATCH_PROTO] != 6 || (p->flags & m->mask) != m->flags))
		return false;
	for (int i = 0; i < MATCH_FIELDS; i++)
		if (!values_have(&m->f[i], p->f[i]))
			return false;
	for (int i = 0; i < 2; i++)
		if (m->pairs[i] &&
		    !pairs_have(m->pairs[i], p->f[MATCH_SRC + i], p->f[MATCH_SPORT + i]))
			return false;
	return true;
}

bool probe_to_self(const struct probing *p)
{
	return !p->options->forward;
}

// Multicast and broadcast.
static bool is_for_many(address_number dst, bool v4)
{
	return v4 ? dst >> 28 == 0xe || dst == UINT32_MAX : dst >> 120 == 0xff;
}

// Can no address of this host be the destination?
static bool excludes_self(const struct match *m)
{
	const struct values *dst = &m->f[MATCH_DST];
	bool v4 = m->families == MATCH_V4;

	for (size_t i = 0; i < dst->n; i++)
		if (!is_for_many(dst->at[i].first, v4) || !is_for_many(dst->at[i].last, v4))
			return false;
	return dst->n;
}

enum probe_answer { OTHERS, DECIDES, MAY_DECIDE };

static enum probe_answer decides(const struct probing *p, const struct match *m,
				 const struct probe_packet *packet)
{
	struct match any;

	if (!probe_to_self(p) || !m->f[MATCH_DST].n)
		return matches(m, packet) ? DECIDES : OTHERS;
	if (excludes_self(m))
		return OTHERS;
	any = *m;
	any.f[MATCH_DST] = (struct values){0};
	any.pairs[1] = NULL;
	return matches(&any, packet) ? MAY_DECIDE : OTHERS;
}

bool probe_decide(const struct probing *p, const struct probe_packet *packet,
		  const struct import_rule **ret)
{
	*ret = NULL;
	vec_each (p->steps, s) {
		enum probe_answer d =
			s->action < STEP_COUNT ? decides(p, &s->match, packet) : OTHERS;

		if (d == OTHERS)
			continue;
		*ret = s;
		return d == DECIDES;
	}
	return true;
}

// ---- packets ------------------------------------------------------------------------------------

bool probe_is_icmp(const struct probe_packet *p)
{
	return p->f[MATCH_PROTO] == (p->family == MATCH_V4 ? 1 : 58);
}

static bool is_discovery(const struct probe_packet *p)
{
	return p->family == MATCH_V6 && probe_is_icmp(p) &&
	       names_is_neighbour_discovery((uint8_t)p->f[MATCH_TYPE]);
}

address_number probe_usual(const struct probing *p, enum match_field field,
			   const struct probe_packet *packet)
{
	bool v4 = packet->family == MATCH_V4;

	switch (field) {
	case MATCH_SRC:
		return p->source[!v4];
	case MATCH_DST:
		return v4 ? SELF4 : (address_number)0x20010db800000000 << 64 | 10;
	case MATCH_PROTO:
		return 6;
	case MATCH_SPORT:
	case MATCH_DPORT:
		return 40000;
	case MATCH_TYPE:
		return v4 ? 8 : 128;
	case MATCH_TTL:
		return is_discovery(packet) ? 255 : 64; // RFC 4861 section 6.1
	case MATCH_MAC:
		return MAC;
	default:
		return 0;
	}
}

static bool is_listed(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], text))
			return true;
	return false;
}

// Where Weir passes packets of a router to itself.
static bool is_own(const struct probing *p, const struct probe_packet *packet)
{
	address_number dst = packet->f[MATCH_DST];
	bool v4 = packet->family == MATCH_V4;
	struct addr a = interval_addr(dst, v4 ? 4 : 6);
	addr_text text;

	if (is_for_many(dst, v4) || (!v4 && dst >> 118 == 0x3fa))
		return true;
	addr_format(&a, text);
	return is_listed(p->options->own, p->options->n_own, text) ||
	       is_listed(p->options->broadcasts, p->options->n_broadcasts, text);
}

static bool is_source(address_number src, bool v4)
{
	if (v4)
		return src >> 24 != 0 && src >> 24 != 127 && src >> 24 < 224;
	return src > 1 && src >> 120 != 0xff;
}

// Not those that headers of extensions have, nor the ICMP of the other family.
static bool is_protocol(address_number proto, bool v4)
{
	if (proto == (v4 ? 58 : 1) || (v4 && proto == 51))
		return false;
	return proto != 0 && proto != 43 && proto != 44 && proto != 60 && proto != 135;
}

bool probe_is_usable(const struct probing *p, const struct probe_packet *packet)
{
	bool v4 = packet->family == MATCH_V4;

	if (probe_to_self(p) ? packet->f[MATCH_DST] != probe_usual(p, MATCH_DST, packet)
			     : is_own(p, packet))
		return false;
	if (packet->established && packet->f[MATCH_PROTO] != 6 && packet->f[MATCH_PROTO] != 17)
		return false;
	return is_source(packet->f[MATCH_SRC], v4) && is_protocol(packet->f[MATCH_PROTO], v4) &&
	       packet->f[MATCH_TTL] > 0 && packet->f[MATCH_DSCP] == 0;
}

bool probe_is_essential(const struct probe_packet *p)
{
	address_number type = p->f[MATCH_TYPE], sport = p->f[MATCH_SPORT];
	bool v4 = p->family == MATCH_V4, udp = p->f[MATCH_PROTO] == 17;

	if (probe_is_icmp(p) && v4)
		return type == 3 || type == 11 || type == 12;
	if (probe_is_icmp(p))
		return type < 128 || (type >= 130 && type <= 137) || type == 143;
	return udp && ((sport == 67 && p->f[MATCH_DPORT] == 68) ||
		       (!v4 && sport == 547 && p->f[MATCH_DPORT] == 546));
}

// ---- the first packet ---------------------------------------------------------------------------

// Does a rule list addresses that include this one? A whole family is no list.
static bool is_named(const struct probing *p, address_number src, uint8_t family)
{
	vec_each (p->steps, s) {
		const struct values *v = &s->match.f[MATCH_SRC];
		bool whole = v->n == 1 && !v->at[0].first &&
			     v->at[0].last == match_max(MATCH_SRC, family);

		if (s->action < STEP_COUNT && s->match.families & family && v->n && !whole &&
		    values_have(v, src))
			return true;
	}
	return false;
}

static address_number find_source(const struct probing *p, const address_number *candidates,
				  size_t n, uint8_t family)
{
	for (size_t i = 0; i < n; i++)
		if (!is_named(p, candidates[i], family))
			return candidates[i];
	return candidates[0];
}

void probe_begin(struct probing *p, const struct import_rules *steps,
		 const struct import_options *options)
{
	// Nets for documentation and benchmarks.
	static const address_number four[] = {0xcb007109, 0xc6336409, 0xc0000209, 0xc6120009};
	address_number six[4];

	for (unsigned i = 0; i < ARRAY_SIZE(six); i++)
		six[i] = (address_number)(0x20010db801130000 + 0x10000ull * i) << 64 | 9;
	*p = (struct probing){.steps = steps, .options = options};
	p->source[0] = find_source(p, four, ARRAY_SIZE(four), MATCH_V4);
	p->source[1] = find_source(p, six, ARRAY_SIZE(six), MATCH_V6);
}

static bool is_usable_with(const struct probing *p, struct probe_packet packet,
			   enum match_field field, address_number value)
{
	packet.f[field] = value;
	return probe_is_usable(p, &packet);
}

static const uint8_t common_protocols[] = {17, 1, 58, 132, 47, 50};

// A common protocol, or the first that can be sent.
static address_number first_protocol(const struct values *v, bool v4)
{
	for (size_t i = 0; i < ARRAY_SIZE(common_protocols); i++)
		if (values_have(v, common_protocols[i]) && is_protocol(common_protocols[i], v4))
			return common_protocols[i];
	for (address_number n = 0; n < 256; n++)
		if (values_have(v, n) && is_protocol(n, v4))
			return n;
	return v->at[0].first;
}

// One that is not essential, if there is one.
static address_number first_type(const struct values *v, struct probe_packet packet)
{
	for (address_number n = 0; n < 256; n++) {
		packet.f[MATCH_TYPE] = n;
		if (values_have(v, n) && !probe_is_essential(&packet))
			return n;
	}
	return v->at[0].first;
}

static address_number first_value(const struct probing *p, const struct values *v,
				  enum match_field field, const struct probe_packet *packet)
{
	address_number usual = probe_usual(p, field, packet);

	if (values_have(v, usual))
		return usual;
	if (field == MATCH_PROTO)
		return first_protocol(v, packet->family == MATCH_V4);
	if (field == MATCH_TYPE)
		return first_type(v, *packet);
	for (size_t i = 0; i < v->n && i < VALUES; i++) {
		if (is_usable_with(p, *packet, field, v->at[i].first))
			return v->at[i].first;
		if (is_usable_with(p, *packet, field, v->at[i].last))
			return v->at[i].last;
	}
	return v->at[0].first;
}

static struct probe_packet inside(const struct probing *p, const struct match *m, uint8_t family)
{
	struct probe_packet packet = {.family = family,
				      .flags = m->flagged ? m->flags : SYN,
				      .established = m->established};

	while (packet.on < 63 && !(m->on >> packet.on & 1))
		packet.on++;
	for (int i = 0; i < MATCH_FIELDS; i++)
		packet.f[i] = probe_usual(p, (enum match_field)i, &packet);
	for (int i = 0; i < MATCH_FIELDS; i++)
		packet.f[i] = first_value(p, &m->f[i], (enum match_field)i, &packet);
	for (int i = 0; i < 2; i++)
		if (m->pairs[i]) {
			packet.f[MATCH_SRC + i] = m->pairs[i]->at[0].addr;
			packet.f[MATCH_SPORT + i] = m->pairs[i]->at[0].first;
		}
	return packet;
}

// ---- other packets ------------------------------------------------------------------------------

struct probe_search {
	struct probing *p;
	const struct match *m;
	const struct match *blockers[BLOCKERS]; // earlier rules
	size_t n;
	struct probe_packet packet;
};

static bool take(struct probe_search *s, const struct probe_packet *packet)
{
	s->p->work++;
	if (s->p->work > WORK || !matches(s->m, packet) || !probe_is_usable(s->p, packet))
		return false;
	s->p->work += s->n;
	for (size_t i = 0; i < s->n; i++)
		if (decides(s->p, s->blockers[i], packet) != OTHERS)
			return false;
	s->packet = *packet;
	return true;
}

static bool take_value(struct probe_search *s, enum match_field field, address_number value)
{
	struct probe_packet packet = s->packet;

	packet.f[field] = value;
	return take(s, &packet);
}

// The least value of the rule that is in no blocker is the first of an interval, or follows the
// last of a blocker's.
static bool take_other(struct probe_search *s, enum match_field field)
{
	const struct values *own = &s->m->f[field];

	if (!s->blockers[s->n - 1]->f[field].n)
		return false;
	if (take_value(s, field, probe_usual(s->p, field, &s->packet)))
		return true;
	for (size_t i = 0; field == MATCH_PROTO && i < ARRAY_SIZE(common_protocols); i++)
		if (take_value(s, field, common_protocols[i]))
			return true;
	for (size_t i = 0; i < own->n && i < VALUES; i++)
		if (take_value(s, field, own->at[i].first) || take_value(s, field, own->at[i].last))
			return true;
	for (size_t k = 0; k < s->n; k++) {
		const struct values *v = &s->blockers[k]->f[field];

		for (size_t i = 0; i < v->n && i < VALUES; i++)
			if (v->at[i].last < match_max(field, s->packet.family) &&
			    take_value(s, field, v->at[i].last + 1))
				return true;
	}
	return false;
}

static bool take_other_pair(struct probe_search *s, int side)
{
	const struct pairs *pairs = s->m->pairs[side];
	struct probe_packet packet = s->packet;

	for (size_t i = 0; pairs && i < pairs->n && i < VALUES; i++) {
		packet.f[MATCH_SRC + side] = pairs->at[i].addr;
		packet.f[MATCH_SPORT + side] = pairs->at[i].first;
		if (take(s, &packet))
			return true;
	}
	return false;
}

static bool take_other_flags(struct probe_search *s)
{
	static const uint8_t usual[] = {SYN, 0x10, 0x12, 0x04};
	struct probe_packet packet = s->packet;

	for (size_t i = 0; s->blockers[s->n - 1]->flagged && i < ARRAY_SIZE(usual); i++) {
		packet.flags = usual[i];
		if (take(s, &packet))
			return true;
	}
	return false;
}

static bool take_other_interface(struct probe_search *s)
{
	struct probe_packet packet = s->packet;

	for (packet.on = 0; packet.on < s->p->options->n_interfaces; packet.on++)
		if (take(s, &packet))
			return true;
	return false;
}

static bool escape(struct probe_search *s)
{
	static const enum match_field fields[] = {MATCH_SRC, MATCH_DPORT, MATCH_SPORT, MATCH_TYPE,
						  MATCH_TTL, MATCH_MAC,   MATCH_DST};

	for (int side = 0; side < 2; side++)
		if (take_other_pair(s, side))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (take_other(s, fields[i]))
			return true;
	return take_other_flags(s) || take_other_interface(s) || take_other(s, MATCH_PROTO);
}

static bool search(struct probe_search *s, const struct import_rule *rule)
{
	struct probing *p = s->p;
	const struct import_rule *found;

	while (p->work <= WORK && probe_is_usable(p, &s->packet)) {
		p->work += p->steps->n;
		probe_decide(p, &s->packet, &found);
		if (found == rule)
			return true;
		if (!found || s->n == BLOCKERS)
			return false;
		s->blockers[s->n++] = &found->match;
		if (!escape(s))
			return false;
	}
	return false;
}

bool probe_find(struct probing *p, const struct import_rule *rule, struct probe_packet *ret)
{
	const struct match *m = &rule->match;

	for (int family = MATCH_V4; family <= MATCH_V6; family++) {
		struct probe_search s = {.p = p, .m = m};

		if (!(m->families & family))
			continue;
		s.packet = inside(p, m, (uint8_t)family);
		if (family == MATCH_V4 || m->families == MATCH_V6)
			*ret = s.packet;
		if (!search(&s, rule))
			continue;
		*ret = s.packet;
		return true;
	}
	return false;
}
