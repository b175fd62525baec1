// SPDX-License-Identifier: GPL-2.0-only
// States what the rules decide for packets at the edges of their values.
#include <search.h>
#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/mac.h"
#include "ctl/base/vec.h"
#include "ctl/import/print_sets.h"
#include "ctl/import/probe.h"

#define LINES    4000 // a policy has 4096
#define TRIES    20000
#define OF_FIELD 4 // edges of a field, each with its neighbour
#define SYN      2
#define PORT     40000 // where a line names none

struct printing {
	struct probing probing;
	enum step_action last;
	bool *shown; // by rule: has it a line?
	struct text *ret;
	size_t lines, tries;
	struct arena arena; // of the lines
	void *seen;         // a tree of the lines
};

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

static void print_options(const struct printing *p, const struct probe_packet *packet,
			  struct text *t)
{
	const char *word = import_word_of(packet->family == MATCH_V4 ? KIND_TYPE4 : KIND_TYPE6,
					  (uint32_t)packet->f[MATCH_TYPE]);
	const struct import_options *options = p->probing.options;
	mac_text mac;

	if (probe_is_icmp(packet) && word)
		text_addf(t, " type %s", word);
	else if (probe_is_icmp(packet))
		text_addf(t, " type %u", (unsigned)packet->f[MATCH_TYPE]);
	if (probe_is_icmp(packet) && packet->f[MATCH_CODE])
		text_addf(t, " code %u", (unsigned)packet->f[MATCH_CODE]);
	if (packet->f[MATCH_PROTO] == 6 && packet->flags != SYN)
		print_flags(t, packet->flags);
	if (packet->f[MATCH_MAC] != probe_usual(&p->probing, MATCH_MAC, packet))
		text_addf(t, " mac %s", mac_format((uint64_t)packet->f[MATCH_MAC], mac));
	if (packet->f[MATCH_TTL] != probe_usual(&p->probing, MATCH_TTL, packet))
		text_addf(t, " ttl %u", (unsigned)packet->f[MATCH_TTL]);
	if (packet->on && packet->on < options->n_interfaces)
		text_addf(t, " on %s", options->interfaces[packet->on]);
	text_add(t, packet->established ? " established" : "");
}

static bool has_ports(const struct probe_packet *p)
{
	address_number proto = p->f[MATCH_PROTO];

	return proto == 6 || proto == 17 || proto == 132;
}

static void print_end(const struct probe_packet *p, const char *word, enum match_field address,
		      enum match_field port, bool self, struct text *t)
{
	struct interval one = {p->f[address], p->f[address]};

	text_addf(t, " %s ", word);
	if (self)
		text_add(t, "self");
	else
		interval_print(&one, p->family, t);
	if (has_ports(p) && p->f[port] != PORT)
		text_addf(t, " port %u", (unsigned)p->f[port]);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void forget_line(void *line)
{
}

static void keep_line(struct printing *p, const char *line)
{
	if (tfind(line, &p->seen, compare_lines))
		return;
	tsearch(arena_strdup(&p->arena, line), &p->seen, compare_lines);
	text_add(p->ret, line);
	p->lines++;
}

static void print_line(struct printing *p, const struct probe_packet *packet)
{
	static const char *const verdicts[] = {"pass", "drop", "reject"};
	const struct import_rule *s;
	const char *word = import_word_of(KIND_PROTO, (uint32_t)packet->f[MATCH_PROTO]);
	CLEANUP_TEXT struct text t = {0};

	if (!probe_is_usable(&p->probing, packet) || p->lines >= LINES || p->tries++ >= TRIES)
		return;
	if (!probe_decide(&p->probing, packet, &s) || (!s && probe_is_essential(packet)))
		return;
	text_addf(&t, "expect %s via ", verdicts[s ? s->action : p->last]);
	text_addf(&t, s ? "\"%s\"" : "default", s ? s->name : "");
	if (word)
		text_addf(&t, " %s", word);
	else
		text_addf(&t, " %u", (unsigned)packet->f[MATCH_PROTO]);
	print_end(packet, "from", MATCH_SRC, MATCH_SPORT, false, &t);
	print_end(packet, "to", MATCH_DST, MATCH_DPORT, probe_to_self(&p->probing), &t);
	print_options(p, packet, &t);
	text_addc(&t, '\n');
	keep_line(p, text_get(&t));
	if (s)
		p->shown[s - p->probing.steps->at] = true;
}

static void print_with(struct printing *p, struct probe_packet packet, enum match_field field,
		       address_number value)
{
	packet.f[field] = value;
	print_line(p, &packet);
}

static void print_edges(struct printing *p, const struct match *m,
			const struct probe_packet *packet, enum match_field field)
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

static void print_rule(struct printing *p, const struct import_rule *rule)
{
	static const enum match_field fields[] = {MATCH_SRC,   MATCH_DST, MATCH_SPORT,
						  MATCH_DPORT, MATCH_TTL, MATCH_MAC};
	struct probe_packet packet;

	probe_find(&p->probing, rule, &packet);
	print_line(p, &packet);
	for (size_t k = 0; k < ARRAY_SIZE(fields); k++)
		print_edges(p, &rule->match, &packet, fields[k]);
}

// The rules that precede those of the ruleset: policy_print.
static size_t print_scope(struct printing *p)
{
	const struct import_options *options = p->probing.options;
	struct probe_packet packet = {.family = MATCH_V4};
	struct interval source = {probe_usual(&p->probing, MATCH_SRC, &packet), 0};

	source.last = source.first;
	text_addf(p->ret, "expect pass via \"to %s\" tcp from ",
		  options->forward ? "this host" : "other hosts");
	interval_print(&source, MATCH_V4, p->ret);
	text_addf(p->ret, " to %s\n", options->forward ? "self" : "not self");
	if (p->last != STEP_DROP)
		return 1;
	text_add(p->ret, "expect pass via \"not IP\" ethertype arp\n");
	return 2;
}

struct expects_counts expects_print(const struct import_rules *steps,
				    const struct import_options *options, enum step_action last,
				    struct text *ret)
{
	struct printing p = {.last = last, .ret = ret};
	struct expects_counts counts = {0};

	probe_begin(&p.probing, steps, options);
	p.shown = arena_zalloc(&p.arena, steps->n + 1, sizeof(*p.shown));
	counts.rules = counts.shown = print_scope(&p);
	vec_each (steps, s)
		if (s->action < STEP_COUNT)
			print_rule(&p, s);
	for (size_t i = 0; i < steps->n; i++) {
		counts.rules += steps->at[i].action != STEP_NOTE;
		counts.shown += p.shown[i];
	}
	tdestroy(p.seen, forget_line);
	arena_free(&p.arena);
	return counts;
}
