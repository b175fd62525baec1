// SPDX-License-Identifier: GPL-2.0-only
// Turns aims into frames: as aimed, off by one, of a special kind, or broken.
#include <string.h>

#include "gen.h"
#include "names.h"

/* One step off what the rule allows. */
static void nudge_addr(struct gen *gen, struct addr *addr)
{
	u128 one = (u128)1 << (128 - addr_bits(addr->family));

	if (rng_chance(&gen->rng, 70))
		addr->value += rng_chance(&gen->rng, 50) ? one : ~one + 1;
	else
		addr->value ^= one << rng_below(&gen->rng, addr_bits(addr->family));
	addr->value &= addr_mask(addr_bits(addr->family));
}

static void nudge_tags(struct gen *gen, struct build_spec *spec)
{
	if (spec->tags_len == 0)
		spec->tags[spec->tags_len++] = (struct build_tag){.type = 0x8100, .tci = 7};
	else if (rng_chance(&gen->rng, 50))
		spec->tags[0].tci ^= (uint16_t)(1U << rng_below(&gen->rng, 12));
	else
		spec->tags_len--;
}

static void nudge_fragment(struct gen *gen, struct build_spec *spec)
{
	spec->fragment = (enum build_fragment)rng_below(&gen->rng, spec->family == 6 ? 4 : 3);
	spec->offset = 1;
	spec->fragment_at = spec->ext_len;
	if (spec->fragment != BUILD_WHOLE && spec->ext_len == 8)
		spec->fragment_at = --spec->ext_len;
}

static uint16_t step(struct gen *gen, uint16_t value)
{
	return (uint16_t)(rng_chance(&gen->rng, 50) ? value + 1 : value - 1);
}

static void nudge_length(struct gen *gen, struct build_spec *spec)
{
	spec->length = spec->length ? step(gen, (uint16_t)spec->length) : 61;
}

static void nudge_type(struct gen *gen, struct build_spec *spec)
{
	if (rng_chance(&gen->rng, 60))
		spec->type = (uint8_t)step(gen, spec->type);
	else
		spec->code = (uint8_t)step(gen, spec->code);
}

/* The fields a step can be taken in. */
enum step {
	STEP_SRC,
	STEP_DST,
	STEP_SPORT,
	STEP_DPORT,
	STEP_FLAGS,
	STEP_TYPE,
	STEP_TTL,
	STEP_DSCP,
	STEP_LENGTH,
	STEP_PROTO,
	STEP_FRAGMENT,
	STEPS,
};

static void nudge_ip(struct gen *gen, struct build_spec *spec, enum step which)
{
	switch (which) {
	case STEP_SRC:
		nudge_addr(gen, &spec->src);
		break;
	case STEP_DST:
		nudge_addr(gen, &spec->dst);
		break;
	case STEP_SPORT:
		spec->sport = step(gen, spec->sport);
		break;
	case STEP_DPORT:
		spec->dport = step(gen, spec->dport);
		break;
	case STEP_FLAGS:
		spec->flags ^= (uint8_t)(1U << rng_below(&gen->rng, 8));
		break;
	case STEP_TYPE:
		nudge_type(gen, spec);
		break;
	case STEP_TTL:
		spec->ttl = (uint8_t)step(gen, spec->ttl);
		break;
	case STEP_DSCP:
		spec->dscp = (uint8_t)step(gen, spec->dscp) & 63;
		break;
	case STEP_LENGTH:
		nudge_length(gen, spec);
		break;
	case STEP_PROTO:
		spec->proto = (uint8_t)(rng_chance(&gen->rng, 50) ? 17 : rng_below(&gen->rng, 256));
		break;
	default:
		nudge_fragment(gen, spec);
		break;
	}
}

/* Mostly a field that the rule looks at. */
static enum step pick_step(struct gen *gen, const struct gen_rule *rule)
{
	const bool given[STEPS] = {
		[STEP_SRC] = rule->from.given,
		[STEP_DST] = rule->to.given,
		[STEP_SPORT] = rule->sport.given,
		[STEP_DPORT] = rule->dport.given,
		[STEP_FLAGS] = rule->flags_given,
		[STEP_TYPE] = rule->types[0].given || rule->types[1].given,
		[STEP_TTL] = rule->ttl.given,
		[STEP_DSCP] = rule->dscp.given,
		[STEP_LENGTH] = rule->length.given,
		[STEP_PROTO] = rule->proto.given,
		[STEP_FRAGMENT] = rule->fragment,
	};
	enum step which = (enum step)rng_below(&gen->rng, STEPS);

	for (int tries = rng_chance(&gen->rng, 85) ? 12 : 0; tries && !given[which]; tries--)
		which = (enum step)rng_below(&gen->rng, STEPS);
	return which;
}

static void nudge(struct gen *gen, const struct gen_rule *rule, struct build_spec *spec,
		  struct gen_packet *packet)
{
	unsigned int roll = rng_below(&gen->rng, 100);

	if (roll < (rule->vlan.given ? 20 : 5))
		nudge_tags(gen, spec);
	else if (roll < (rule->on.given ? 30 : 8))
		packet->iface = gen->ifaces.v[rng_below(&gen->rng, (unsigned int)gen->ifaces.len)];
	else if (roll < (rule->over || rule->under || rule->probability ? 45 : 11))
		packet->over = !packet->over;
	else if (roll < (rule->established ? 45 : 12))
		packet->established = !packet->established;
	else if (spec->family)
		nudge_ip(gen, spec, pick_step(gen, rule));
	else if (rng_chance(&gen->rng, 50))
		spec->ethertype = step(gen, spec->ethertype);
	else
		nudge_length(gen, spec);
}

void gen_aimed(struct gen *gen, const struct gen_rule *rule, bool nudged,
	       struct gen_packet *ret_packet)
{
	struct build_spec spec;

	aim_at(gen, rule, &spec, ret_packet);
	if (nudged)
		nudge(gen, rule, &spec, ret_packet);
	build_frame(&spec, &ret_packet->frame);
}

/* Special kinds: what essentials and neighbour discovery are about, and what is nearly that. */

static struct addr address(const char *text)
{
	struct addr addr = {.family = 4};

	addr_parse(text, &addr);
	return addr;
}

static void make_nd(struct gen *gen, struct build_spec *spec)
{
	static const char *const sources[] = {"fe80::1", "::", "2001:db8::1", "fd00::5"};

	spec->family = 6;
	spec->proto = PROTO_ICMP6;
	spec->src = address(sources[rng_below(&gen->rng, 4)]);
	spec->dst = address(rng_chance(&gen->rng, 50) ? "ff02::1" : "fe80::2");
	spec->type = (uint8_t)rng_between(&gen->rng, 132, 138);
	spec->ttl = rng_chance(&gen->rng, 75) ? 255 : (uint8_t)rng_between(&gen->rng, 253, 254);
	spec->length = rng_chance(&gen->rng, 50) ? 72 : 64;
	if (rng_chance(&gen->rng, 15))
		spec->fragment = rng_chance(&gen->rng, 50) ? BUILD_ATOMIC : BUILD_FIRST;
	if (rng_chance(&gen->rng, 10))
		spec->ext_len = 1;
}

static void make_mld(struct gen *gen, struct build_spec *spec)
{
	static const uint8_t types[] = {130, 131, 132, 143, 129, 142, 144};

	make_nd(gen, spec);
	spec->type = types[rng_below(&gen->rng, sizeof(types))];
	spec->ttl = 1;
	spec->ext_len = 1; /* router alert */
}

static void make_icmp_error(struct gen *gen, struct build_spec *spec)
{
	spec->family = rng_chance(&gen->rng, 50) ? 4 : 6;
	spec->proto = spec->family == 4 ? PROTO_ICMP : PROTO_ICMP6;
	spec->src = gen_site_addr(gen, spec->family);
	spec->dst = gen_site_addr(gen, spec->family);
	spec->type = (uint8_t)rng_below(&gen->rng, spec->family == 4 ? 14 : 6);
	spec->code = (uint8_t)rng_below(&gen->rng, 6);
	spec->ttl = 60;
	spec->length = 100;
}

static void make_dhcp(struct gen *gen, struct build_spec *spec)
{
	static const char *const sources[] = {"fe80::1", "febf:ffff::1", "fec0::1", "2001:db8::1",
					      "fe7f::1"};
	bool swapped = rng_chance(&gen->rng, 20);

	spec->family = rng_chance(&gen->rng, 50) ? 4 : 6;
	spec->proto = rng_chance(&gen->rng, 90) ? PROTO_UDP : PROTO_TCP;
	spec->src = address("192.0.2.1");
	spec->dst = address("255.255.255.255");
	if (spec->family == 6) {
		spec->src = address(sources[rng_below(&gen->rng, 5)]);
		spec->dst = address("fe80::9");
	}
	spec->sport = rng_chance(&gen->rng, spec->family == 4 ? 85 : 15) ? 67 : 547;
	spec->dport = spec->sport == 67 ? 68 : 546;
	if (swapped) {
		uint16_t port = spec->sport;

		spec->sport = spec->dport;
		spec->dport = port;
	}
	spec->ttl = 64;
	spec->length = 120;
	if (rng_chance(&gen->rng, 10))
		spec->fragment = rng_chance(&gen->rng, 50) ? BUILD_FIRST : BUILD_LATER;
	spec->offset = 10;
}

static void make_ethertype(struct gen *gen, struct build_spec *spec)
{
	static const uint16_t types[] = {0x0806, 0x0806, 0x0806, 0x88cc, 0x888e, 0x8847,
					 0x8848, 0x8863, 0x8864, 0x0026, 0x05dc, 0x0600,
					 0x9100, 0x1234, 0x88f7, 0x8035, 0xffff, 0x0000};

	spec->family = 0;
	spec->ethertype = types[rng_below(&gen->rng, sizeof(types) / sizeof(types[0]))];
	spec->length = rng_chance(&gen->rng, 70) ? 60 : rng_between(&gen->rng, 14, 100);
	if (rng_chance(&gen->rng, 20))
		nudge_tags(gen, spec);
}

static void make_odd_family(struct gen *gen, struct build_spec *spec)
{
	make_icmp_error(gen, spec);
	spec->proto = spec->family == 4 ? PROTO_ICMP6 : PROTO_ICMP;
	spec->length = rng_between(&gen->rng, 40, 60);
}

/* Any address and port: nearly a rule's, or nothing of the kind. */
static void make_stray(struct gen *gen, struct build_spec *spec)
{
	static const struct gen_rule anything = {.families = 3};
	struct gen_packet unused;

	aim_at(gen, &anything, spec, &unused);
}

void gen_special(struct gen *gen, struct gen_packet *ret_packet)
{
	static void (*const makers[])(struct gen * gen, struct build_spec * spec) = {
		make_nd,        make_nd,        make_mld,        make_icmp_error, make_dhcp,
		make_ethertype, make_ethertype, make_odd_family, make_stray,      make_stray,
	};
	struct build_spec spec = {0};

	ret_packet->iface = gen->ifaces.v[rng_below(&gen->rng, (unsigned int)gen->ifaces.len)];
	ret_packet->over = rng_chance(&gen->rng, 8);
	ret_packet->established = rng_chance(&gen->rng, 8);
	makers[rng_below(&gen->rng, sizeof(makers) / sizeof(makers[0]))](gen, &spec);
	build_frame(&spec, &ret_packet->frame);
}

/* Broken: a frame with a byte or its end changed. */

static void put8(struct build_frame *frame, size_t at, unsigned int value)
{
	if (at < frame->len)
		frame->bytes[at] = (uint8_t)value;
}

static void put16(struct build_frame *frame, size_t at, unsigned int value)
{
	put8(frame, at, value >> 8);
	put8(frame, at + 1, value & 0xff);
}

static void truncate_to(struct gen *gen, struct build_frame *frame, size_t least)
{
	if (least < gen->options.min_frame)
		least = gen->options.min_frame;
	if (least < frame->len)
		frame->len =
			rng_between(&gen->rng, (unsigned int)least, (unsigned int)frame->len - 1);
}

static void break_version(struct gen *gen, struct build_frame *frame)
{
	put8(frame, frame->ip, rng_below(&gen->rng, 256));
}

static void break_ip_length(struct gen *gen, struct build_frame *frame, unsigned int family)
{
	size_t left = frame->len - frame->ip - (family == 4 ? 0 : 40);
	unsigned int lengths[] = {0,
				  1,
				  19,
				  20,
				  21,
				  7,
				  (unsigned int)left + 1,
				  (unsigned int)left - 1,
				  (unsigned int)left,
				  65535,
				  rng_below(&gen->rng, 80)};

	put16(frame, frame->ip + (family == 4 ? 2 : 4), lengths[rng_below(&gen->rng, 11)]);
}

static void break_transport(struct gen *gen, struct build_frame *frame, uint8_t proto)
{
	size_t left = frame->len - frame->transport;
	unsigned int lengths[] = {0, 1, 7, 8, 9, (unsigned int)left, (unsigned int)left + 1, 65535};

	if (proto == PROTO_UDP)
		put16(frame, frame->transport + 4, lengths[rng_below(&gen->rng, 8)]);
	else
		put8(frame, frame->transport + 12, rng_below(&gen->rng, 16) << 4);
}

/* Shorter IP payload, with the rest of the frame left as padding or cut off too. */
static void break_payload(struct gen *gen, struct build_frame *frame, unsigned int family)
{
	size_t headers = frame->transport - frame->ip;
	size_t keep = headers + rng_below(&gen->rng, 24);

	if (frame->ip + keep > frame->len)
		keep = frame->len - frame->ip;
	put16(frame, frame->ip + (family == 4 ? 2 : 4),
	      (unsigned int)keep - (family == 4 ? 0 : 40));
	if (rng_chance(&gen->rng, 50) && frame->ip + keep >= gen->options.min_frame)
		frame->len = frame->ip + keep;
}

static void break_ext(struct gen *gen, struct build_frame *frame)
{
	if (frame->transport > frame->ip + 40)
		put8(frame, frame->ip + 41, rng_below(&gen->rng, 256));
	else
		put8(frame, frame->ip + 6, rng_chance(&gen->rng, 50) ? 0 : 60);
}

static void break_fragment(struct gen *gen, struct build_frame *frame)
{
	put16(frame, frame->ip + 6,
	      rng_chance(&gen->rng, 50) ? rng_below(&gen->rng, 65536) : 0x2000);
}

static void break_bytes(struct gen *gen, struct build_frame *frame)
{
	for (unsigned int i = rng_between(&gen->rng, 1, 3); i; i--) {
		size_t at = frame->ip + rng_below(&gen->rng, 64);

		put8(frame, at, rng_below(&gen->rng, 256));
	}
}

static void break_frame(struct gen *gen, struct build_frame *frame, const struct build_spec *spec)
{
	switch (rng_below(&gen->rng, 12)) {
	case 0:
		truncate_to(gen, frame, 0);
		break;
	case 1:
	case 2:
		truncate_to(gen, frame, frame->ip);
		break;
	case 3:
		break_version(gen, frame);
		break;
	case 4:
		break_ip_length(gen, frame, spec->family);
		break;
	case 5:
	case 6:
		break_transport(gen, frame, spec->proto);
		break;
	case 7:
	case 8:
		break_payload(gen, frame, spec->family);
		break;
	case 9:
		if (spec->family == 6)
			break_ext(gen, frame);
		else
			break_fragment(gen, frame);
		break;
	default:
		break_bytes(gen, frame);
		break;
	}
}

/* Too many tags or extension headers. */
static void overfill(struct gen *gen, struct build_spec *spec)
{
	if (spec->family == 6 && rng_chance(&gen->rng, 60)) {
		spec->ext_len = rng_between(&gen->rng, 7, 12);
		for (unsigned int i = 0; i < spec->ext_len; i++)
			spec->ext[i] = (struct build_ext){.type = 60};
	} else {
		spec->tags_len = rng_between(&gen->rng, 4, 6);
		for (unsigned int i = 0; i < spec->tags_len; i++)
			spec->tags[i] = (struct build_tag){.type = 0x8100, .tci = 7};
	}
}

void gen_broken(struct gen *gen, const struct gen_rule *rule, struct gen_packet *ret_packet)
{
	struct build_spec spec;

	aim_at(gen, rule, &spec, ret_packet);
	if (spec.family && rng_chance(&gen->rng, 20))
		spec.fragment = BUILD_FIRST;
	if (rng_chance(&gen->rng, 15)) {
		overfill(gen, &spec);
		build_frame(&spec, &ret_packet->frame);
		return;
	}
	build_frame(&spec, &ret_packet->frame);
	if (spec.family)
		break_frame(gen, &ret_packet->frame, &spec);
	else
		truncate_to(gen, &ret_packet->frame, 0);
}
