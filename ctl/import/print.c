// SPDX-License-Identifier: GPL-2.0-only
// Prints the rules in the language of weir-policy(5).
#include <search.h>
#include <string.h>

#include "ctl/base/vec.h"
#include "ctl/import/print_sets.h"
#include "ctl/import/steps.h"

#define ITEMS 16 // longer lists of addresses are sets

struct policy_printer {
	struct text rules;
	struct policy_sets sets;
	const struct import_options *options;
};

// ---- the end, names -----------------------------------------------------------------------------

static bool is_bare(const struct import_rule *s)
{
	const struct match *m = &s->match;

	for (int i = 0; i < MATCH_FIELDS; i++)
		if (m->f[i].n)
			return false;
	return m->on == ~0ull && !m->flagged && !m->established && !m->untracked && !m->in[0] &&
	       !m->in[1] && !m->fragment && !s->log && s->action <= STEP_DROP;
}

// The rules at the end that decide everything of a family.
static size_t find_tail(const struct import_rules *steps, enum step_action verdict[2],
			uint8_t *ret_known)
{
	size_t i = steps->n;
	uint8_t known = 0;

	for (; i; i--) {
		const struct import_rule *s = &steps->at[i - 1];

		if (s->action == STEP_NOTE)
			continue;
		if (!is_bare(s))
			break;
		for (unsigned f = 0; f < 2; f++)
			if (s->match.families & 1u << f)
				verdict[f] = s->action;
		known |= s->match.families;
	}
	*ret_known = known;
	return i;
}

static void remove_tail(struct import_rules *steps, size_t tail)
{
	size_t kept = tail;

	for (size_t i = tail; i < steps->n; i++)
		if (steps->at[i].action == STEP_NOTE)
			steps->at[kept++] = steps->at[i];
	steps->n = kept;
}

static enum step_action make_default(struct import_rules *steps)
{
	enum step_action verdict[2] = {STEP_PASS, STEP_PASS};
	uint8_t known;
	size_t tail = find_tail(steps, verdict, &known);
	struct import_rule rest = {.action = STEP_PASS, .match = match_any};

	if (known != MATCH_BOTH)
		return STEP_PASS; // everything else has a rule
	remove_tail(steps, tail);
	if (verdict[0] == verdict[1])
		return verdict[0];
	rest.match.families = verdict[0] == STEP_PASS ? MATCH_V4 : MATCH_V6;
	rest.name = rest.match.families == MATCH_V4 ? "IPv4" : "IPv6";
	vec_push(steps, rest);
	return STEP_DROP;
}

struct used_name {
	const char *name;
	unsigned next; // number of the next rule of this name
};

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct used_name *)a)->name, ((const struct used_name *)b)->name);
}

static void keep_names(void *name)
{
}

static const char *use_name(void **names, const char *name, struct arena *arena)
{
	struct used_name first = {name, 2};
	struct used_name *used = arena_copy(arena, &first, 1, sizeof(first));
	struct used_name *known = *(struct used_name **)tsearch(used, names, compare_names);

	while (*(struct used_name **)tsearch(used, names, compare_names) != used)
		used->name = arena_printf(arena, "%s (%u)", name, known->next++);
	return used->name;
}

// Gives every rule a name of its own: "in 1", "in 1 (2)".
static void name_steps(struct import_rules *steps, struct arena *arena)
{
	static const char *const others[] = {"to this host", "to other hosts", "not IP"};
	void *names = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		use_name(&names, others[i], arena);
	vec_each (steps, s)
		if (s->action != STEP_NOTE)
			s->name = use_name(&names, s->name, arena);
	tdestroy(names, keep_names);
}

static struct values one(struct arena *arena, uint32_t n)
{
	struct interval v = {n, n};

	return (struct values){.at = arena_copy(arena, &v, 1, sizeof(v)), .n = 1};
}

static bool drops_family(const struct import_rules *steps, enum step_action last, uint8_t family)
{
	vec_each (steps, s)
		if ((s->action == STEP_DROP || s->action == STEP_REJECT) &&
		    s->match.families & family)
			return true;
	return last == STEP_DROP;
}

static void put_first(struct import_rules *steps, const struct import_rule *first)
{
	struct import_rules with = {0};

	vec_push(&with, *first);
	vec_each (steps, s)
		if (s->action == STEP_NOTE || !match_covers(&first->match, &s->match))
			vec_push(&with, *s);
	vec_free(steps);
	*steps = with;
}

// A program receives the answers of DHCP servers before the rules. In IPv6, nft looks for the
// protocol after AH too, and Weir does not.
static void put_exceptions(struct import_rules *steps, enum step_action last, struct arena *arena)
{
	struct import_rule dhcp = {.action = STEP_PASS, .match = match_any, .name = "DHCP"};
	struct import_rule ah = {.action = STEP_PASS, .match = match_any, .name = "AH"};

	dhcp.match.f[MATCH_PROTO] = one(arena, 17);
	dhcp.match.f[MATCH_SPORT] = one(arena, 67);
	dhcp.match.f[MATCH_DPORT] = one(arena, 68);
	ah.match.families = MATCH_V6;
	ah.match.f[MATCH_PROTO] = one(arena, 51);
	if (drops_family(steps, last, MATCH_V6))
		put_first(steps, &ah);
	if (drops_family(steps, last, MATCH_BOTH))
		put_first(steps, &dhcp);
}

enum step_action steps_finish(struct import_rules *steps, struct arena *arena)
{
	enum step_action last = make_default(steps);

	put_exceptions(steps, last, arena);
	name_steps(steps, arena);
	return last;
}

// ---- values -------------------------------------------------------------------------------------

static void print_side(struct policy_printer *p, const struct values *v, uint8_t family)
{
	if (!v->set && v->n <= ITEMS)
		addresses_print(v, family, ", ", &p->rules);
	else
		text_addf(&p->rules, "@%s", policy_set_of(&p->sets, SET_ADDRESSES, v, family));
}

static void print_number(struct text *t, enum import_kind kind, uint32_t n)
{
	const char *word = import_word_of(kind, n);

	if (word)
		text_add(t, word);
	else
		text_addf(t, "%u", n);
}

static void print_numbers(struct text *t, enum import_kind kind, const struct values *v)
{
	for (size_t i = 0; i < v->n; i++) {
		uint32_t first = (uint32_t)v->at[i].first, last = (uint32_t)v->at[i].last;

		text_add(t, i ? ", " : "");
		if (first == last)
			print_number(t, kind, first);
		else
			text_addf(t, "%u-%u", first, last);
	}
}

// Protocols are listed one by one; "not" where that is shorter.
static void print_protocols(struct text *t, const struct values *v)
{
	bool negated = v->n > 1 && !v->at[0].first && v->at[v->n - 1].last == 255;
	unsigned n = 0;

	text_add(t, negated ? "not " : "");
	for (uint32_t i = 0; i < 256; i++)
		if (values_have(v, i) != negated) {
			text_add(t, n++ ? ", " : "");
			print_number(t, KIND_PROTO, i);
		}
}

static void print_bits(struct text *t, uint8_t bits)
{
	for (unsigned i = 0, n = 0; i < 8; i++)
		if (bits & 1u << i)
			text_addf(t, "%s%s", n++ ? "," : "", import_word_of(KIND_FLAG, 1u << i));
}

// ---- rules --------------------------------------------------------------------------------------

static void print_end(struct policy_printer *p, const struct match *m, const char *word,
		      enum match_field address, enum match_field port, const char *any)
{
	struct text *t = &p->rules;

	if (!m->f[address].n && !m->f[port].n && !m->in[address] && !any)
		return;
	text_addf(t, " %s ", word);
	if (m->pairs[address]) {
		text_addf(t, "@%s", policy_set_pairs(&p->sets, m->pairs[address]));
		return;
	}
	if (m->in[address])
		text_addf(t, "@%s", policy_set_dynamic(&p->sets, m->in[address]));
	else if (m->f[address].n)
		print_side(p, &m->f[address], m->families);
	else
		text_add(t, any ? any : "any");
	if (!m->f[port].n)
		return;
	text_add(t, " port ");
	if (m->f[port].set)
		text_addf(t, "@%s", policy_set_of(&p->sets, SET_PORTS, &m->f[port], 0));
	else
		print_numbers(t, KIND_NUMBER, &m->f[port]);
}

static void print_conditions(struct policy_printer *p, const struct match *m)
{
	bool v4 = m->families == MATCH_V4;
	const struct {
		const char *word;
		enum match_field field;
		enum import_kind kind;
	} fields[] = {
		{"type", MATCH_TYPE, v4 ? KIND_TYPE4 : KIND_TYPE6},
		{"code", MATCH_CODE, KIND_NUMBER},
		{"ttl", MATCH_TTL, KIND_NUMBER},
		{"dscp", MATCH_DSCP, KIND_DSCP},
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (m->f[fields[i].field].n) {
			text_addf(&p->rules, " %s ", fields[i].word);
			print_numbers(&p->rules, fields[i].kind, &m->f[fields[i].field]);
		}
	if (m->f[MATCH_MAC].n) {
		text_add(&p->rules, " mac ");
		if (m->f[MATCH_MAC].set)
			text_addf(&p->rules, "@%s",
				  policy_set_of(&p->sets, SET_MACS, &m->f[MATCH_MAC], 0));
		else
			macs_print(&m->f[MATCH_MAC], &p->rules);
	}
	if (m->flagged) {
		text_add(&p->rules, " flags ");
		if (m->flags)
			print_bits(&p->rules, m->flags);
		else
			text_add(&p->rules, "none");
		text_addc(&p->rules, '/');
		print_bits(&p->rules, m->mask);
	}
}

static void print_interfaces(struct policy_printer *p, uint64_t on)
{
	for (size_t i = 0, n = 0; on != ~0ull && i < p->options->n_interfaces; i++)
		if (on >> i & 1)
			text_addf(&p->rules, "%s%s", n++ ? ", " : " on ",
				  p->options->interfaces[i]);
}

static bool has_ports(const struct match *m)
{
	return m->f[MATCH_SPORT].n || m->f[MATCH_DPORT].n;
}

static void print_match(struct policy_printer *p, const struct match *m)
{
	bool one = m->families != MATCH_BOTH && !m->f[MATCH_SRC].n && !m->f[MATCH_DST].n &&
		   !m->f[MATCH_TYPE].n;
	const char *any = !one ? NULL : m->families == MATCH_V4 ? "0.0.0.0/0" : "::/0";
	// Beside a dynamic set, the other address has the family.
	const char *to = m->in[MATCH_SRC] && any ? any : has_ports(m) ? "any" : NULL;

	if (m->established || m->untracked)
		text_add(&p->rules, m->untracked ? " not established" : " established");
	if (m->f[MATCH_PROTO].n) {
		text_add(&p->rules, " proto ");
		print_protocols(&p->rules, &m->f[MATCH_PROTO]);
	}
	print_end(p, m, "from", MATCH_SRC, MATCH_SPORT, any);
	print_end(p, m, "to", MATCH_DST, MATCH_DPORT, to);
	print_conditions(p, m);
	print_interfaces(p, m->on);
}

static void print_step(struct policy_printer *p, const struct import_rule *s)
{
	static const char *const actions[] = {"pass", "drop", "reject", "count"};

	if (s->action == STEP_NOTE) {
		text_addf(&p->rules, "# %s\n", s->name);
		return;
	}
	text_addf(&p->rules, "\"%s\" %s", s->name, actions[s->action]);
	print_match(p, &s->match);
	text_add(&p->rules, s->log ? " log\n" : "\n");
}

// ---- the policy ---------------------------------------------------------------------------------

// Packets that the hook does not see. lo is not among the addresses: XDP is not there.
static void print_scope(const struct import_options *options, enum step_action last,
			struct text *ret)
{
	if (options->forward) {
		text_add(ret, "\"to this host\" pass to self, 224.0.0.0/4, 255.255.255.255, "
			      "fe80::/10, ff00::/8");
		for (size_t i = 0; i < options->n_broadcasts; i++)
			text_addf(ret, ", %s", options->broadcasts[i]);
		text_addc(ret, '\n');
	} else {
		text_add(ret, "\"to other hosts\" pass to not self\n");
	}
	if (last == STEP_DROP)
		text_add(ret, "\"not IP\" pass ethertype not ipv4, ipv6\n");
}

void policy_print(const struct import_rules *steps, const struct import_options *options,
		  enum step_action last, struct text *ret)
{
	struct policy_printer p = {.options = options};
	bool drops = last == STEP_DROP;

	vec_each (steps, s) {
		drops |= s->action == STEP_DROP || s->action == STEP_REJECT;
		print_step(&p, s);
	}
	for (size_t i = 0; i < options->n_interfaces; i++)
		text_addf(ret, "interface %s\n", options->interfaces[i]);
	text_addf(ret, "default %s\n", last == STEP_DROP ? "drop" : "pass");
	text_add(ret, "malformed pass # the kernel has its own checks\n");
	if (drops)
		text_add(ret, "fragments pass # the kernel puts them together first\n");
	policy_sets_print(&p.sets, options->now_s, ret);
	print_scope(options, last, ret);
	text_add(ret, text_get(&p.rules));
	text_free(&p.rules);
	vec_free(&p.sets.at);
}
