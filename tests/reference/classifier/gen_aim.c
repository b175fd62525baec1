// SPDX-License-Identifier: GPL-2.0-only
// Chooses a packet that satisfies a rule, at the edges of what the rule allows.
#include "gen.h"
#include "names.h"

/* At the first, the last or some address of an item; outside by one where it is an exception. */
static struct addr item_addr(struct gen *gen, const struct gen_item *item, bool outside)
{
	u128 one = (u128)1 << (128 - addr_bits(item->lo.family));
	u128 high = rng_next(&gen->rng);
	u128 within = (high << 64 | rng_next(&gen->rng)) & addr_mask(addr_bits(item->lo.family));
	struct addr addr = rng_chance(&gen->rng, 50) ? item->lo : item->hi;

	if (outside)
		addr.value += addr.value == item->lo.value ? ~one + 1 : one;
	else if (rng_chance(&gen->rng, 35) && item->hi.value - item->lo.value + one != 0)
		addr.value = item->lo.value + within % (item->hi.value - item->lo.value + one);
	addr.value &= addr_mask(addr_bits(item->lo.family));
	return addr;
}

static bool pick_addr(struct gen *gen, const struct gen_addrs *addrs, unsigned int family,
		      struct addr *ret_addr)
{
	for (int tries = 0; addrs->items.len && tries < 12; tries++) {
		unsigned int at = rng_below(&gen->rng, (unsigned int)addrs->items.len);
		const struct gen_item *item = &addrs->items.v[at];
		bool outside = (item->negative != addrs->negated) && rng_chance(&gen->rng, 75);

		if (item->set >= 0) {
			if (pick_addr(gen, &gen->sets.v[item->set].addrs, family, ret_addr))
				return true;
			continue;
		}
		if (item->lo.family != family)
			continue;
		*ret_addr = item_addr(gen, item, outside);
		return true;
	}
	return false;
}

static struct addr aim_addr(struct gen *gen, const struct gen_addrs *addrs, unsigned int family)
{
	struct addr addr;

	if (addrs->given && !(addrs->negated && rng_chance(&gen->rng, 50)) &&
	    pick_addr(gen, addrs, family, &addr))
		return addr;
	return gen_site_addr(gen, family);
}

static bool in_ranges(const struct gen_numbers *numbers, uint32_t value)
{
	bool in = false;

	for (size_t i = 0; i < numbers->ranges.len; i++) {
		const struct gen_range *range = &numbers->ranges.v[i];

		if (value >= range->lo && value <= range->hi) {
			if (range->negative)
				return false;
			in = true;
		}
	}
	return in;
}

/* A value the list takes, mostly at an edge; any value if that does not work out. */
static uint32_t aim_number(struct gen *gen, const struct gen_numbers *numbers, uint32_t max)
{
	bool anything = rng_chance(&gen->rng, 10);
	uint32_t value = 0;

	for (int tries = 0; tries < 30; tries++) {
		unsigned int at = rng_below(&gen->rng, (unsigned int)numbers->ranges.len);
		const struct gen_range *range = &numbers->ranges.v[at];
		bool outside = range->negative != numbers->negated;

		value = rng_chance(&gen->rng, 50) ? range->lo : range->hi;
		if (rng_chance(&gen->rng, 25))
			value = rng_between(&gen->rng, range->lo, range->hi);
		if (outside && !anything)
			value = rng_chance(&gen->rng, 50) ? range->lo - 1 : range->hi + 1;
		if (outside && !anything && rng_chance(&gen->rng, 30))
			value = rng_below(&gen->rng, max + 1);
		if (value <= max && (anything || in_ranges(numbers, value) != numbers->negated))
			return value;
	}
	return value <= max ? value : max;
}

static uint8_t usual_proto(struct gen *gen, unsigned int family)
{
	static const uint8_t others[] = {47, 50, 51, 2, 4, 41, 89, 136, 33, 59, 253, 135};
	unsigned int roll = rng_below(&gen->rng, 100);

	if (roll < 42)
		return PROTO_TCP;
	if (roll < 72)
		return PROTO_UDP;
	if (roll < 78)
		return PROTO_SCTP;
	if (roll < 88)
		return family == 4 ? PROTO_ICMP : PROTO_ICMP6;
	return others[rng_below(&gen->rng, sizeof(others))];
}

static uint8_t aim_proto(struct gen *gen, const struct gen_rule *rule, unsigned int family)
{
	static const uint8_t with_ports[] = {PROTO_TCP, PROTO_UDP, PROTO_SCTP};

	if (rule->types[0].given || rule->types[1].given)
		return family == 4 ? PROTO_ICMP : PROTO_ICMP6;
	if (rule->flags_given)
		return PROTO_TCP;
	if (rule->proto.given && rule->proto.negated && rng_chance(&gen->rng, 50))
		return usual_proto(gen, family);
	if (rule->proto.given)
		return (uint8_t)aim_number(gen, &rule->proto, 255);
	if (rule->sport.given || rule->dport.given)
		return with_ports[rng_below(&gen->rng, 3)];
	if (rule->established)
		return with_ports[rng_below(&gen->rng, 2)];
	return usual_proto(gen, family);
}

static uint16_t usual_port(struct gen *gen)
{
	static const uint16_t usual[] = {53, 80, 443, 22, 1023, 1024, 40000, 67, 68, 546, 547, 0};

	return rng_chance(&gen->rng, 50) ? usual[rng_below(&gen->rng, 12)]
					 : (uint16_t)rng_below(&gen->rng, 65536);
}

static void aim_type(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec)
{
	static const uint8_t usual4[] = {8, 0, 3, 11, 12, 5, 13};
	static const uint8_t usual6[] = {128, 129, 1, 2, 3, 4, 133, 134, 135, 136, 137, 143, 130};
	const struct gen_numbers *types = &rule->types[spec->family == 6];

	spec->type = spec->family == 4 ? usual4[rng_below(&gen->rng, sizeof(usual4))]
				       : usual6[rng_below(&gen->rng, sizeof(usual6))];
	spec->code = rng_chance(&gen->rng, 60) ? 0 : (uint8_t)rng_below(&gen->rng, 7);
	if (types->given)
		spec->type = (uint8_t)aim_number(gen, types, 255);
	if (rule->code.given)
		spec->code = (uint8_t)aim_number(gen, &rule->code, 255);
}

static void aim_transport(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec)
{
	static const uint8_t usual[] = {0x02, 0x12, 0x10, 0x18, 0x11, 0x04, 0x14, 0x29, 0, 0xc2};

	spec->sport = rule->sport.given ? (uint16_t)aim_number(gen, &rule->sport, 65535)
					: usual_port(gen);
	spec->dport = rule->dport.given ? (uint16_t)aim_number(gen, &rule->dport, 65535)
					: usual_port(gen);
	spec->flags = usual[rng_below(&gen->rng, sizeof(usual))];
	if (rng_chance(&gen->rng, 15))
		spec->flags = (uint8_t)rng_below(&gen->rng, 256);
	if (rule->flags_given)
		spec->flags = (uint8_t)((spec->flags & ~rule->flags_mask) | rule->flags_set);
	if (rng_chance(&gen->rng, 20))
		spec->tcp_options = rng_between(&gen->rng, 1, 10);
	aim_type(gen, rule, spec);
}

static void add_exts(struct gen *gen, struct build_spec *spec)
{
	static const uint8_t types[] = {0, 43, 60, 60, 43};

	spec->ext_len = rng_chance(&gen->rng, 70) ? rng_between(&gen->rng, 1, 3)
						  : rng_between(&gen->rng, 4, 8);
	for (unsigned int i = 0; i < spec->ext_len; i++) {
		spec->ext[i].type = types[rng_below(&gen->rng, sizeof(types))];
		spec->ext[i].words =
			rng_chance(&gen->rng, 70) ? 0 : (uint8_t)rng_below(&gen->rng, 5);
	}
	if (rng_chance(&gen->rng, 70))
		spec->ext[0].type = 0;
}

static void aim_fragment(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec)
{
	static const uint16_t offsets[] = {1, 2, 3, 185, 0x1000, 0x1fff};
	unsigned int roll = rng_below(&gen->rng, 100);

	spec->offset = offsets[rng_below(&gen->rng, 6)];
	if (rule->fragment || roll < 3)
		spec->fragment = BUILD_LATER;
	else if (roll < 6)
		spec->fragment = BUILD_FIRST;
	else if (roll < 9 && spec->family == 6)
		spec->fragment = BUILD_ATOMIC;
	else
		return;
	if (spec->ext_len == 8)
		spec->ext_len = 7;
	spec->fragment_at =
		rng_chance(&gen->rng, 70) ? spec->ext_len : rng_below(&gen->rng, spec->ext_len + 1);
}

static void aim_header(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec)
{
	static const uint8_t ttls[] = {64, 64, 63, 1, 128, 254, 255};

	spec->ttl = ttls[rng_below(&gen->rng, sizeof(ttls))];
	if (rule->ttl.given)
		spec->ttl = (uint8_t)aim_number(gen, &rule->ttl, 255);
	spec->dscp = rng_chance(&gen->rng, 80) ? 0 : (uint8_t)rng_below(&gen->rng, 64);
	if (rule->dscp.given)
		spec->dscp = (uint8_t)aim_number(gen, &rule->dscp, 63);
	if (rng_chance(&gen->rng, 12))
		spec->options = rng_between(&gen->rng, 1, 10);
	if (rng_chance(&gen->rng, 18))
		add_exts(gen, spec);
	aim_fragment(gen, rule, spec);
}

static void aim_length(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec)
{
	if (rng_chance(&gen->rng, 30))
		spec->length = rng_between(&gen->rng, 60, 140);
	if (rng_chance(&gen->rng, 2))
		spec->length = rng_between(&gen->rng, 140, 1500);
	if (rule->length.given)
		spec->length = aim_number(gen, &rule->length, 1500);
	if (rng_chance(&gen->rng, 15))
		spec->padding = rng_between(&gen->rng, 1, 20);
	if (rule->length.given && rng_chance(&gen->rng, 70))
		spec->padding = spec->options = spec->ext_len = spec->tcp_options = 0;
	if (spec->ext_len < spec->fragment_at)
		spec->fragment_at = spec->ext_len;
}

static void aim_ip(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec)
{
	unsigned int families = rule->families;

	if ((rule->types[0].given || rule->types[1].given) && rng_chance(&gen->rng, 10))
		families = 3; /* also the family that does not know the type */
	if (families == 3)
		families = rng_chance(&gen->rng, 55) ? 1 : 2;
	spec->family = families == 2 ? 6 : 4;
	spec->src = aim_addr(gen, &rule->from, spec->family);
	spec->dst = aim_addr(gen, &rule->to, spec->family);
	spec->proto = aim_proto(gen, rule, spec->family);
	aim_transport(gen, rule, spec);
	aim_header(gen, rule, spec);
	aim_length(gen, rule, spec);
}

static void aim_ethertype(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec)
{
	static const struct gen_rule anything = {.families = 3};
	uint32_t type = aim_number(gen, &rule->ethertype, 0xffff);
	struct gen_rule ip = anything;

	spec->ethertype = (uint16_t)type;
	spec->length = rule->length.given ? aim_number(gen, &rule->length, 1500) : 60;
	if (type != ETHERTYPE_IP4 && type != ETHERTYPE_IP6)
		return;
	ip.families = type == ETHERTYPE_IP4 ? 1 : 2;
	aim_ip(gen, &ip, spec);
	spec->padding = 0;
	if (!rule->length.given)
		return;
	spec->length = aim_number(gen, &rule->length, 1500);
	spec->length -= spec->length > 14 + 4 * spec->tags_len ? 14 + 4 * spec->tags_len : 0;
}

static void add_tag(struct gen *gen, struct build_spec *spec, uint32_t vid)
{
	struct build_tag *tag = &spec->tags[spec->tags_len++];

	tag->type = rng_chance(&gen->rng, 75) ? 0x8100 : 0x88a8;
	tag->tci =
		(uint16_t)(vid | (rng_chance(&gen->rng, 30) ? rng_below(&gen->rng, 16) << 12 : 0));
}

static void aim_tags(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec)
{
	static const uint16_t vids[] = {0, 1, 2, 7, 8, 100, 256, 4094, 4095};
	uint32_t vid = rule->vlan.given ? aim_number(gen, &rule->vlan, 4094)
					: vids[rng_below(&gen->rng, 9)];

	if (rule->vlan.given ? vid == 0 && rng_chance(&gen->rng, 60) : !rng_chance(&gen->rng, 8))
		return;
	add_tag(gen, spec, vid);
	while (spec->tags_len < 4 && rng_chance(&gen->rng, 30))
		add_tag(gen, spec, vids[rng_below(&gen->rng, 9)]);
}

void aim_at(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec,
	    struct gen_packet *packet)
{
	unsigned int iface = rng_below(&gen->rng, (unsigned int)gen->ifaces.len);

	*spec = (struct build_spec){0};
	if (rule->on.given)
		iface = aim_number(gen, &rule->on, (uint32_t)gen->ifaces.len - 1);
	packet->iface = gen->ifaces.v[iface];
	packet->over = (rule->over || rule->probability) ? rng_chance(&gen->rng, 85)
							 : !rule->under && rng_chance(&gen->rng, 8);
	packet->established = rng_chance(&gen->rng, rule->established ? 85 : 8);
	aim_tags(gen, rule, spec);
	if (rule->ethertype.given)
		aim_ethertype(gen, rule, spec);
	else
		aim_ip(gen, rule, spec);
}
