// SPDX-License-Identifier: GPL-2.0-only
// Chooses packets at the edges of rules, and states what the rules decide for them.
#include <search.h>
#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/mac.h"
#include "ctl/base/vec.h"
#include "ctl/import/print_sets.h"
#include "ctl/import/steps.h"

#define LINES    4000 // a policy has 4096
#define TRIES    20000
#define OF_FIELD 4           // edges of a field, each with its neighbour
#define NEAR4    0xcb007109u // 203.0.113.9
#define SELF4    0xc000020au // 192.0.2.10
#define MAC      0x020000000001ull

struct edge_packet {
	address_number f[MATCH_FIELDS];
	uint8_t family, flags;
	unsigned on;
	bool established;
};

struct printing {
	const struct import_rules *steps;
	const struct import_options *options;
	enum step_action last;
	struct text *ret;
	size_t lines, tries;
	struct arena arena; // of the lines
	void *seen;         // a tree of the lines
};

static bool matches(const struct match *m, const struct edge_packet *p)
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
	return true;
}

// The destination has to be an address of this host; which, is known later.
static bool to_self(const struct printing *p)
{
	return !p->options->forward;
}

// NULL in *ret: the default. False: the address of this host decides.
static bool decide(const struct printing *p, const struct edge_packet *packet,
		   const struct import_rule **ret)
{
	*ret = NULL;
	for (size_t i = 0; i < p->steps->n && !*ret; i++) {
		const struct import_rule *s = &p->steps->at[i];
		struct match m = s->match;

		if (s->action >= STEP_COUNT)
			continue;
		if (to_self(p) && m.f[MATCH_DST].n) {
			m.f[MATCH_DST] = (struct values){0};
			if (matches(&m, packet))
				return false;
		} else if (matches(&m, packet)) {
			*ret = s;
		}
	}
	return true;
}

// ---- packets ------------------------------------------------------------------------------------

static address_number usual(enum match_field field, const struct edge_packet *p)
{
	static const uint64_t low6 = 9, high6 = 0x20010db801130000, self6 = 0x20010db800000000;
	bool v4 = p->family == MATCH_V4;

	switch (field) {
	case MATCH_SRC:
		return v4 ? NEAR4 : (address_number)high6 << 64 | low6;
	case MATCH_DST:
		return v4 ? SELF4 : (address_number)self6 << 64 | 10;
	case MATCH_PROTO:
		return 6;
	case MATCH_SPORT:
	case MATCH_DPORT:
		return 40000;
	case MATCH_TYPE:
		return v4 ? 8 : 128;
	case MATCH_TTL:
		return 64;
	case MATCH_MAC:
		return MAC;
	default:
		return 0;
	}
}

static bool is_icmp(const struct edge_packet *p)
{
	return p->f[MATCH_PROTO] == (p->family == MATCH_V4 ? 1 : 58);
}

static bool has_ports(const struct edge_packet *p)
{
	address_number proto = p->f[MATCH_PROTO];

	return proto == 6 || proto == 17 || proto == 132;
}

static struct edge_packet inside(const struct match *m)
{
	struct edge_packet p = {.family = m->families & MATCH_V4 ? MATCH_V4 : MATCH_V6, .flags = 2};

	while (p.on < 63 && !(m->on >> p.on & 1))
		p.on++;
	for (int i = 0; i < MATCH_FIELDS; i++) {
		p.f[i] = usual((enum match_field)i, &p);
		if (!values_have(&m->f[i], p.f[i]))
			p.f[i] = m->f[i].at[0].first;
	}
	if (m->flagged)
		p.flags = m->flags;
	p.established = m->established;
	return p;
}

static bool is_listed(const char *const *list, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], text))
			return true;
	return false;
}

// Where Weir passes packets of a router to itself.
static bool is_own(const struct printing *p, const struct edge_packet *packet)
{
	address_number dst = packet->f[MATCH_DST];
	bool v4 = packet->family == MATCH_V4;
	struct addr a = interval_addr(dst, v4 ? 4 : 6);
	addr_text text;

	if (v4 ? dst >> 28 == 0xe || dst == UINT32_MAX : dst >> 118 == 0x3fa || dst >> 120 == 0xff)
		return true;
	addr_format(&a, text);
	return is_listed(p->options->own, p->options->n_own, text) ||
	       is_listed(p->options->broadcasts, p->options->n_broadcasts, text);
}

// Packets that no host sends, or that are decided before the rules.
static bool is_usable(const struct printing *p, const struct edge_packet *packet)
{
	address_number src = packet->f[MATCH_SRC], proto = packet->f[MATCH_PROTO];
	address_number type = packet->f[MATCH_TYPE];
	bool v4 = packet->family == MATCH_V4;

	if (to_self(p) ? !v4 || packet->f[MATCH_DST] != SELF4 : is_own(p, packet))
		return false;
	if (v4 && (src >> 24 == 0 || src >> 24 == 127 || src >> 24 >= 224))
		return false;
	if (!v4 && (src <= 1 || src >> 120 == 0xff))
		return false;
	if ((v4 ? proto == 58 : proto == 1) || proto == 0 || proto == 43 || proto == 44 ||
	    proto == 60 || proto == 51 || proto == 135)
		return false;
	if (is_icmp(packet) && (v4 ? type == 3 || type == 5 || type == 11 || type == 12
				   : type < 128 || (type >= 130 && type <= 137) || type == 143))
		return false; // essential, or with another packet inside
	return packet->f[MATCH_TTL] > 0 && packet->f[MATCH_DSCP] == 0;
}

// ---- lines --------------------------------------------------------------------------------------

static void print_flags(struct text *t, uint8_t flags)
{
	text_add(t, " flags ");
	for (unsigned i = 0, n = 0; i < 8; i++)
		if (flags & 1u << i)
			text_addf(t, "%s%s", n++ ? "," : "", import_word_of(KIND_FLAG, 1u << i));
	if (!flags)
		text_add(t, "none");
}

static void print_options(const struct printing *p, const struct edge_packet *packet,
			  struct text *t)
{
	const char *word = import_word_of(packet->family == MATCH_V4 ? KIND_TYPE4 : KIND_TYPE6,
					  (uint32_t)packet->f[MATCH_TYPE]);
	mac_text mac;

	if (is_icmp(packet) && word)
		text_addf(t, " type %s", word);
	else if (is_icmp(packet))
		text_addf(t, " type %u", (unsigned)packet->f[MATCH_TYPE]);
	if (is_icmp(packet) && packet->f[MATCH_CODE])
		text_addf(t, " code %u", (unsigned)packet->f[MATCH_CODE]);
	if (packet->f[MATCH_PROTO] == 6 && packet->flags != 2)
		print_flags(t, packet->flags);
	if (packet->f[MATCH_MAC] != MAC)
		text_addf(t, " mac %s", mac_format((uint64_t)packet->f[MATCH_MAC], mac));
	if (packet->f[MATCH_TTL] != 64)
		text_addf(t, " ttl %u", (unsigned)packet->f[MATCH_TTL]);
	if (packet->on && packet->on < p->options->n_interfaces)
		text_addf(t, " on %s", p->options->interfaces[packet->on]);
	text_add(t, packet->established ? " established" : "");
}

static void print_end(const struct edge_packet *p, const char *word, enum match_field address,
		      enum match_field port, bool self, struct text *t)
{
	struct interval one = {p->f[address], p->f[address]};

	text_addf(t, " %s ", word);
	if (self)
		text_add(t, "self");
	else
		interval_print(&one, p->family, t);
	if (has_ports(p) && p->f[port] != 40000)
		text_addf(t, " port %u", (unsigned)p->f[port]);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep_lines(void *line)
{
}

static void print_line(struct printing *p, const struct edge_packet *packet)
{
	static const char *const verdicts[] = {"pass", "drop", "reject"};
	const struct import_rule *s;
	const char *word = import_word_of(KIND_PROTO, (uint32_t)packet->f[MATCH_PROTO]);
	CLEANUP_TEXT struct text t = {0};

	if (!is_usable(p, packet) || p->lines >= LINES || p->tries++ >= TRIES)
		return;
	if (!decide(p, packet, &s))
		return;
	text_addf(&t, "expect %s via ", verdicts[s ? s->action : p->last]);
	text_addf(&t, s ? "\"%s\"" : "default", s ? s->name : "");
	if (word)
		text_addf(&t, " %s", word);
	else
		text_addf(&t, " %u", (unsigned)packet->f[MATCH_PROTO]);
	print_end(packet, "from", MATCH_SRC, MATCH_SPORT, false, &t);
	print_end(packet, "to", MATCH_DST, MATCH_DPORT, to_self(p), &t);
	print_options(p, packet, &t);
	text_addc(&t, '\n');
	if (tfind(text_get(&t), &p->seen, compare_lines))
		return;
	tsearch(arena_strdup(&p->arena, text_get(&t)), &p->seen, compare_lines);
	text_add(p->ret, text_get(&t));
	p->lines++;
}

static void print_with(struct printing *p, struct edge_packet packet, enum match_field field,
		       address_number value)
{
	packet.f[field] = value;
	print_line(p, &packet);
}

static void print_edges(struct printing *p, const struct match *m, const struct edge_packet *packet,
			enum match_field field)
{
	const struct values *v = &m->f[field];
	address_number max = match_max(field, packet->family);

	for (size_t i = 0; i < v->n && i < OF_FIELD; i++) {
		const struct interval *one = &v->at[i];

		print_with(p, *packet, field, one->first);
		print_with(p, *packet, field, one->last);
		if (one->first)
			print_with(p, *packet, field, one->first - 1);
		if (one->last < max)
			print_with(p, *packet, field, one->last + 1);
	}
}

void expects_print(const struct import_rules *steps, const struct import_options *options,
		   enum step_action last, struct text *ret)
{
	static const enum match_field fields[] = {MATCH_SRC,   MATCH_DST, MATCH_SPORT,
						  MATCH_DPORT, MATCH_TTL, MATCH_MAC};
	struct printing p = {.steps = steps, .options = options, .last = last, .ret = ret};

	for (size_t i = 0; i < steps->n; i++) {
		const struct match *m = &steps->at[i].match;
		struct edge_packet packet;

		if (steps->at[i].action >= STEP_COUNT)
			continue;
		packet = inside(m);
		print_line(&p, &packet);
		for (size_t k = 0; k < ARRAY_SIZE(fields); k++)
			print_edges(&p, m, &packet, fields[k]);
	}
	tdestroy(p.seen, keep_lines);
	arena_free(&p.arena);
}
