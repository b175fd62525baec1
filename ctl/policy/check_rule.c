// SPDX-License-Identifier: GPL-2.0-only
// Checks rules: which words fit together.

#include <string.h>

#include "ctl/policy/checker.h"
#include "ctl/policy/fields.h"

#define SHOWN_MAX 60

#define fail(k, at, hint, ...) (diag_error((k)->c->diag, at, hint, __VA_ARGS__), (k)->ok = false)

struct rule_check {
	struct checker *c;
	struct ast_rule *ast;
	bool ok;
};

static bool has(const struct rule_check *k, enum ast_field field)
{
	return k->ast->fields[field].given;
}

static bool has_word(const struct rule_check *k, enum ast_field field)
{
	return k->ast->field_at[field].file;
}

static void check_sides(struct rule_check *k)
{
	const struct ast_list *lists = k->ast->fields;

	if (has(k, AST_FROM) && !check_addresses(k->c, &lists[AST_FROM], SIDE_FROM))
		k->ok = false;
	if (has(k, AST_TO) && !check_addresses(k->c, &lists[AST_TO], SIDE_TO))
		k->ok = false;
}

// ---- frames -------------------------------------------------------------------------------------

// Later fragments are decided before the rules.
static void check_fragment(struct rule_check *k)
{
	const struct ast *a = k->c->ast;

	if (k->ast->quick && has_word(k, AST_FRAGMENT) && a->fragments.n)
		fail(k, k->ast->field_at[AST_FRAGMENT], NULL,
		     "the policy decides fragments before quick rules (%s)",
		     diag_place(k->c->diag, a->fragments.at[0].at, false));
}

static void check_frame(struct rule_check *k)
{
	static const char hint[] =
		"'ethertype' combines with on, vlan, mac, length, over, probability and modifiers";
	const struct ast_rule *a = k->ast;

	if (!has(k, AST_ETHERTYPE))
		return;
	for (enum ast_field field = 0; field < AST_RULE_FIELDS; field++)
		if (has_word(k, field) && !fields[field].frame)
			fail(k, a->field_at[field], hint,
			     "rules with 'ethertype' do not match fields of the IP header");
	if (a->action == ACTION_REJECT)
		fail(k, a->at, "use drop", "'reject' does not work with 'ethertype'");
}

// ---- conditions and modifiers -------------------------------------------------------------------

// The connections of sockets of this host are counted.
static void check_counted_here(struct rule_check *k)
{
	static const char hint[] = "nft counts them: add @conns { ip saddr ct count over 50 } drop";
	const struct ast_list *to = &k->ast->fields[AST_TO];

	vec_each (&to->items, item) {
		bool self = item->kind == AST_WORD && item->as_address == AST_SELF;
		bool service = item->kind == AST_WORD && item->as_address == AST_LABEL;

		if (service || (self && (to->negated || item->negated)))
			fail(k, item->at, hint,
			     "connections are counted for listeners of this host, not for packets "
			     "that %s",
			     service ? "a service sends on" : "are forwarded");
	}
}

static void check_connections(struct rule_check *k)
{
	const struct ast_limit *a = &k->ast->limit;

	if (a->per != PER_SOURCE && a->per != PER_SOURCE_PORT)
		fail(k, a->at, "connections per source", "connections are counted per source");
	if (a->burst)
		fail(k, a->burst_at, NULL, "'burst' needs a rate");
	if (has_word(k, AST_FRAGMENT))
		fail(k, k->ast->field_at[AST_FRAGMENT], NULL,
		     "connections are counted when a SYN arrives, not a later fragment");
	if (has(k, AST_ETHERTYPE))
		fail(k, k->ast->field_at[AST_ETHERTYPE], "leave out 'ethertype'",
		     "connections are counted for TCP, not for frames");
	check_counted_here(k);
}

static void check_limit(struct rule_check *k)
{
	const struct ast_limit *a = &k->ast->limit;

	if (!a->given)
		return;
	if (a->connections) {
		check_connections(k);
		return;
	}
	if (a->has_mask && a->per == PER_RULE)
		fail(k, a->mask_at, "per source mask …",
		     "'mask' needs per source or per destination");
	if (a->has_max && a->per == PER_RULE)
		fail(k, a->max_at, "per source max …", "'max' needs per source or per destination");
}

static void check_add(struct rule_check *k)
{
	const struct ast_add *a = &k->ast->add;
	uint32_t number;

	if (!a->given)
		return;
	number = index_find(&k->c->ast->set_index, a->set);
	if (number == INDEX_NONE) {
		diag_error(k->c->diag, a->set_at, NULL, "unknown set '@%s'%s", a->set,
			   check_suggest(k->c, SPACE_SETS, "@", a->set));
		k->ok = false;
		return;
	}
	if (!k->c->ast->sets.at[number].dynamic) {
		diag_error(k->c->diag, a->set_at, NULL, "'@%s' is not dynamic (%s)", a->set,
			   diag_place(k->c->diag, k->c->ast->sets.at[number].at, false));
		k->ok = false;
		return;
	}
}

// ---- warnings about the rule as a whole ---------------------------------------------------------

static bool is_any(const struct ast_list *list)
{
	return !list->given ||
	       (!list->negated && list->items.n == 1 && list->items.at[0].kind == AST_WORD &&
		!strcmp(list->items.at[0].word, "any"));
}

// "drop on eth0" is not "default drop on eth0", nor is "reject".
static void warn_drop_all(struct rule_check *k)
{
	const struct ast_rule *a = k->ast;

	if ((a->action != ACTION_DROP && a->action != ACTION_REJECT) ||
	    !is_any(&a->fields[AST_FROM]) || !is_any(&a->fields[AST_TO]))
		return;
	for (enum ast_field field = 0; field < AST_RULE_FIELDS; field++)
		if (has_word(k, field) && fields[field].form != FORM_ADDRESS && field != AST_ON)
			return;
	diag_warning(
		k->c->diag, a->at,
		has(k, AST_ON) ? "default drop on … passes them" : "default drop passes them",
		"this %s everything except ARP and neighbour discovery, even ICMP errors and DHCP replies",
		a->action == ACTION_DROP ? "drops" : "rejects");
}

// Connections of this host decide, but forwarded packets match too.
static void warn_forwarded(struct rule_check *k)
{
	const struct ast_list *to = &k->ast->fields[AST_TO];

	if (!k->ok || !k->ast->limit.connections || !(is_any(to) || to->negated))
		return;
	diag_warning(k->c->diag, k->ast->limit.at,
		     "write 'to self' if only connections to this host are meant",
		     "the number of connections to this host also decides about those that it "
		     "forwards");
}

// Warns of 'from X port P' where 'to port P' may be meant.
static void warn_source_port(struct rule_check *k)
{
	const struct ast_rule *a = k->ast;
	struct diag_at at = a->fields[AST_SPORT].at;
	const char *words = at.file ? at.file->text + at.offset : "";

	if (!has(k, AST_SPORT) || a->field_at[AST_TO].file || has(k, AST_DPORT))
		return;
	if (at.len > SHOWN_MAX || memchr(words, '\n', at.len)) {
		words = "P";
		at.len = 1;
	}
	diag_warning(k->c->diag, a->field_at[AST_SPORT],
		     "write 'to any' if the source port is meant",
		     "this is the source port; did you mean 'to port %.*s'?", (int)at.len, words);
}

void check_rule(struct checker *c, struct ast_rule *rule)
{
	struct rule_check k = {.c = c, .ast = rule, .ok = !rule->broken};

	if (!k.ok)
		return;
	check_sides(&k);
	check_fragment(&k);
	check_frame(&k);
	check_limit(&k);
	check_add(&k);
	warn_drop_all(&k);
	warn_forwarded(&k);
	warn_source_port(&k);
	rule->broken = !k.ok;
}
