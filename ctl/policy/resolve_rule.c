// SPDX-License-Identifier: GPL-2.0-only
// Resolves rules: addresses and ports, `to SERVICE`, rules that match nothing, the order.
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/names.h"
#include "ctl/policy/ranges.h"
#include "ctl/policy/resolver.h"

struct rule_work {
	struct resolver *r;
	const struct ast_rule *ast;
	struct resolved_rule *to;
};

// ---- to SERVICE ---------------------------------------------------------------------------------

// The service that is the only item of this list, or NULL.
static const struct resolved_service *service_of(const struct rule_work *w)
{
	struct leaves leaves = {0};
	const struct ast_item *item = NULL;
	uint32_t number = INDEX_NONE;

	expand(&w->r->expander, &w->ast->fields[AST_TO], POLICY_LIST_ITEMS, NULL, &leaves);
	if (leaves.all.n == 1)
		item = leaves.all.at[0].item;
	if (item && item->kind == AST_WORD && item->as_address == AST_LABEL)
		number = index_find(&w->r->ast->service_index, item->word);
	leaves_free(&leaves);
	if (number == INDEX_NONE || w->r->ast->services.at[number].broken)
		return NULL;
	return &w->r->r->services[number];
}

static void narrow_protos(struct rule_work *w, const struct resolved_service *s)
{
	struct resolved_bits *proto = &w->to->proto;
	uint64_t any = 0;

	for (unsigned i = 0; i < 4; i++) {
		proto->bits[i] =
			proto->given ? proto->bits[i] & s->proto.bits[i] : s->proto.bits[i];
		any |= proto->bits[i];
	}
	proto->given = true;
	if (!any)
		diag_error(w->r->diag, w->ast->fields[AST_TO].at, NULL,
			   "service '%s' has none of this rule's protocols (%s)", s->name,
			   diag_place(w->r->diag, s->at, false));
}

static void narrow_ports(struct rule_work *w, const struct resolved_service *s)
{
	struct ranges ports = {0}, theirs = {0};

	if (s->any_port)
		return;
	for (size_t i = 0; i < s->ports.n; i++)
		vec_push(&theirs, s->ports.at[i]);
	for (size_t i = 0; i < w->to->dport.n; i++)
		vec_push(&ports, w->to->dport.at[i]);
	if (w->to->dport.given)
		ranges_intersect(&theirs, &ports);
	w->to->dport.given = true;
	w->to->dport.n = theirs.n;
	w->to->dport.at = arena_copy(&w->r->r->memory, theirs.at, theirs.n, sizeof(*theirs.at));
	if (!theirs.n)
		diag_error(w->r->diag, w->ast->fields[AST_TO].at, NULL,
			   "service '%s' has none of this rule's ports (%s)", s->name,
			   diag_place(w->r->diag, s->at, false));
	ranges_free(&ports);
	ranges_free(&theirs);
}

static void resolve_to(struct rule_work *w)
{
	const struct resolved_service *s = service_of(w);

	if (!s) {
		w->to->to =
			resolve_address(w->r, &w->ast->fields[AST_TO], resolve_use_of_rule(w->ast));
		return;
	}
	w->to->to = (struct resolved_address){RESOLVED_SET, s->vip};
	narrow_protos(w, s);
	narrow_ports(w, s);
}

// ---- rules that match nothing -------------------------------------------------------------------

static const struct resolved_addresses *set_of(const struct rule_work *w,
					       const struct resolved_address *a)
{
	return a->kind == RESOLVED_SET ? &w->r->addresses.at[a->index] : NULL;
}

// Families that the addresses and protocols of the rule allow: 1 for IPv4, 2 for IPv6.
static unsigned families_of(const struct resolved_addresses *s)
{
	return s ? (s->n4 ? 1u : 0) | (s->n6 ? 2u : 0) : 3;
}

static unsigned icmp_families(const struct resolved_rule *rule)
{
	unsigned families = 0;

	if (!rule->icmp.given)
		return 3;
	for (size_t i = 0; i < rule->icmp.n; i++)
		families |= rule->icmp.at[i].family == 4 ? 1 : 2;
	return families;
}

// Does the default drop what this rule would have passed?
static bool default_drops(const struct rule_work *w)
{
	const struct resolved *r = w->r->r;

	for (size_t i = 0; i < r->n_interfaces; i++)
		if (r->interfaces[i].default_drop &&
		    (!w->to->on.given || w->to->on.bits[0] >> i & 1))
			return true;
	return !r->n_interfaces && r->default_drop;
}

static void report_impossible(struct rule_work *w, struct diag_at at, const char *what)
{
	w->to->impossible = true;
	if (w->to->action == ACTION_PASS && default_drops(w))
		diag_error(w->r->diag, at, NULL,
			   "%s: this pass rule matches nothing, and the default is drop", what);
	else
		diag_warning(w->r->diag, at, NULL, "%s: this rule matches nothing", what);
}

static bool is_broken(const struct rule_work *w, const struct resolved_address *a)
{
	return a->kind == RESOLVED_SET && w->r->facts.at[a->index].broken;
}

static void find_impossible(struct rule_work *w)
{
	const struct resolved_addresses *from = set_of(w, &w->to->from),
					*to = set_of(w, &w->to->to);

	if (is_broken(w, &w->to->from) || is_broken(w, &w->to->to))
		w->to->impossible = true;
	else if (from && from->empty)
		report_impossible(w, w->ast->fields[AST_FROM].at, "no address remains");
	else if (to && to->empty)
		report_impossible(w, w->ast->fields[AST_TO].at, "no address remains");
	else if (!(families_of(from) & families_of(to)))
		report_impossible(w, w->to->at, "'from' and 'to' have no address family in common");
	else if (!(families_of(from) & families_of(to) & icmp_families(w->to)))
		report_impossible(w, w->ast->fields[AST_TYPE].at,
				  "these types do not exist in the family of the addresses");
}

// Warns of "not 192.0.2.0/24": it matches all of IPv6, unless another field of the rule excludes
// IPv6.
static void warn_one_family(struct rule_work *w, enum ast_field field, struct resolved_address a,
			    unsigned others)
{
	const struct ast_list *list = &w->ast->fields[field];
	unsigned has = a.kind == RESOLVED_SET ? w->r->facts.at[a.index].not_families : 0;

	if (has == 1 && others & 2)
		diag_warning(w->r->diag, list->at, "add IPv6 addresses, or leave out 'not'",
			     "this list has only IPv4 addresses: 'not' matches every IPv6 packet");
	else if (has == 2 && others & 1)
		diag_warning(w->r->diag, list->at, "add IPv4 addresses, or leave out 'not'",
			     "this list has only IPv6 addresses: 'not' matches every IPv4 packet");
}

// False: the list has an error.
static bool resolve_port_field(struct rule_work *w, enum ast_field field,
			       struct resolved_ranges *ret)
{
	return !w->ast->fields[field].given ||
	       resolve_ports(w->r, &w->ast->fields[field], w->ast->field_at[field],
			     w->to->proto.bits, ret) == 0;
}

static void resolve_rule(struct rule_work *w)
{
	struct resolved_rule *to = w->to;
	unsigned icmp = icmp_families(to);
	bool sport = resolve_port_field(w, AST_SPORT, &to->sport);
	bool dport = resolve_port_field(w, AST_DPORT, &to->dport);

	to->from = resolve_address(w->r, &w->ast->fields[AST_FROM], resolve_use_of_rule(w->ast));
	resolve_to(w);
	sport = resolve_pairs(w->r, w->ast, AST_FROM,
			      &(struct pairs_end){&to->from, &to->sport, &to->from_pairs}) &&
		sport;
	dport = resolve_pairs(w->r, w->ast, AST_TO,
			      &(struct pairs_end){&to->to, &to->dport, &to->to_pairs}) &&
		dport;
	find_impossible(w);
	to->impossible = to->impossible || !sport || !dport;
	warn_one_family(w, AST_FROM, to->from, icmp & families_of(set_of(w, &to->to)));
	warn_one_family(w, AST_TO, to->to, icmp & families_of(set_of(w, &to->from)));
}

// ---- the order ----------------------------------------------------------------------------------

static void order_rules(struct resolved *r)
{
	struct resolved_rule *ordered = arena_zalloc(&r->memory, r->n_rules, sizeof(*ordered));
	size_t n = 0;

	for (size_t i = 0; i < r->n_rules; i++)
		if (r->rules[i].always)
			ordered[n++] = r->rules[i];
	r->n_always = n;
	for (size_t i = 0; i < r->n_rules; i++)
		if (r->rules[i].quick)
			ordered[n++] = r->rules[i];
	r->n_quick = n - r->n_always;
	for (size_t i = 0; i < r->n_rules; i++)
		if (!r->rules[i].always && !r->rules[i].quick)
			ordered[n++] = r->rules[i];
	r->rules = ordered;
}

static void fill_rule(struct rule_work *w, uint32_t number)
{
	const struct ast_rule *a = w->ast;
	struct resolved_rule *to = w->to;

	to->identity = arena_strdup(&w->r->r->memory, a->identity);
	to->named = a->name;
	to->at = a->at;
	to->place = resolve_at(w->r, a->at, a->line);
	to->text_index = number;
	to->always = a->always;
	to->quick = a->quick;
	to->action = a->action;
	to->redirect = arena_strdup(&w->r->r->memory, a->redirect);
}

void resolve_rules(struct resolver *r)
{
	size_t n = r->ast->rules.n;

	r->r->n_rules = n;
	r->r->rules = arena_zalloc(&r->r->memory, n, sizeof(*r->r->rules));
	for (size_t i = 0; i < n; i++) {
		struct rule_work w = {.r = r, .ast = &r->ast->rules.at[i], .to = &r->r->rules[i]};

		fill_rule(&w, (uint32_t)i);
		if (w.ast->broken || !resolve_fields(r, w.ast, w.to))
			w.to->impossible = true; // nothing more is reported about it
		else
			resolve_rule(&w);
	}
	order_rules(r->r);
}
