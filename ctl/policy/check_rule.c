// SPDX-License-Identifier: GPL-2.0-only
// Checks rules: which words fit together, and what they are called.
#include <stdio.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/checker.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/names.h"

#define SHOWN_MAX 60

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

static void fail(struct rule_check *k, struct diag_at at, const char *hint, const char *what)
{
	diag_error(k->c->diag, at, hint, "%s", what);
	k->ok = false;
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

static void check_frame(struct rule_check *k)
{
	static const char hint[] =
		"'ethertype' combines with on, vlan, length, over, probability and modifiers";
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

static void check_limit(struct rule_check *k)
{
	const struct ast_limit *a = &k->ast->limit;

	if (!a->given)
		return;
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
	check_frame(&k);
	check_limit(&k);
	check_add(&k);
	warn_drop_all(&k);
	warn_source_port(&k);
	rule->broken = !k.ok;
}

// ---- identities ---------------------------------------------------------------------------------

#define BY_NAME (INDEX_NONE - 1) // no rule has this number

static void number_text(struct checker *c, struct ast_rule *rule, uint32_t number, uint32_t *uses,
			struct index *taken)
{
	do {
		uint32_t n = ++*uses;

		rule->identity = n == 1 ? rule->text
					: arena_printf(&c->ast->strings, "%s #%u", rule->text, n);
	} while (index_add(taken, rule->identity, number) != number);
}

void check_identities(struct checker *c)
{
	size_t n = c->ast->rules.n;
	CLEANUP_FREE uint32_t *uses = mem_zalloc(n, sizeof(*uses)); // per text, at its first rule
	struct index taken = {0}, texts = {0};

	for (size_t i = 0; i < n; i++)
		if (c->ast->rules.at[i].name)
			index_add(&taken, c->ast->rules.at[i].name, BY_NAME);
	for (size_t i = 0; i < n; i++) {
		struct ast_rule *rule = &c->ast->rules.at[i];

		rule->identity = rule->name ? rule->name : "";
		if (rule->name || rule->broken)
			continue;
		number_text(c, rule, (uint32_t)i, &uses[index_add(&texts, rule->text, (uint32_t)i)],
			    &taken);
	}
	index_free(&taken);
	index_free(&texts);
}
