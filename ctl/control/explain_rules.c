// SPDX-License-Identifier: GPL-2.0-only
// Sets and rules as they apply to an address.
#include "ctl/control/explain_rules.h"

#include "ctl/policy/fields.h"

static struct prefix prefix_of4(const struct resolved_prefix4 *p)
{
	struct prefix result = {.addr.family = 4, .len = p->len};

	for (int i = 0; i < 4; i++)
		result.addr.bytes[i] = (uint8_t)(p->addr >> (24 - 8 * i));
	return result;
}

static struct prefix prefix_of6(const struct resolved_prefix6 *p)
{
	struct prefix result = {.addr.family = 6, .len = p->len};

	for (int i = 0; i < 8; i++) {
		result.addr.bytes[i] = (uint8_t)(p->hi >> (56 - 8 * i));
		result.addr.bytes[8 + i] = (uint8_t)(p->lo >> (56 - 8 * i));
	}
	return result;
}

// Keeps the longest: the lists are in preorder, so the last one that contains p.
static void see(const struct prefix *outer, const struct prefix *p, bool in, struct place place,
		bool *held, struct explain_entry *found)
{
	if (!prefix_contains(outer, p))
		return;
	found->prefix = *outer;
	found->place = place;
	*held = in;
}

bool explain_holds(const struct resolved_addresses *list, const struct prefix *p,
		   struct explain_entry *ret)
{
	struct explain_entry found = {.list = list};
	bool held = false;

	for (size_t i = 0; p->addr.family == 4 && i < list->n4; i++) {
		struct prefix outer = prefix_of4(&list->v4[i]);
		struct place place = {list->v4[i].file, list->v4[i].line};

		see(&outer, p, list->v4[i].in, place, &held, &found);
	}
	for (size_t i = 0; p->addr.family == 6 && i < list->n6; i++) {
		struct prefix outer = prefix_of6(&list->v6[i]);
		struct place place = {list->v6[i].file, list->v6[i].line};

		see(&outer, p, list->v6[i].in, place, &held, &found);
	}
	if (held)
		*ret = found;
	return held;
}

void explain_add_place(struct text *t, const struct resolved *r, struct place place)
{
	if (place.line && place.file < r->n_files)
		text_addf(t, "%s:%u", r->files[place.file].name, place.line);
	else
		text_add(t, "command line");
}

void explain_add_entry(struct text *t, const struct resolved *r, const struct explain_entry *e)
{
	addr_text prefix;

	if (e->list->name)
		text_addf(t, "@%s ", e->list->name);
	explain_add_place(t, r, e->place);
	text_addf(t, " %s", prefix_format(&e->prefix, prefix));
}

// ---- rules ----------------------------------------------------------------------------------------

// Does the rule ask for anything but this side's address?
static bool asks_for_more(const struct resolved_rule *rule, enum ast_field side)
{
	for (enum ast_field field = 0; field < AST_RULE_FIELDS; field++)
		if (field_is_condition(rule, field) || (field != side && field_given(rule, field)))
			return true;
	return false;
}

enum explain_scope explain_scope(const struct resolved *r, const struct resolved_rule *rule,
				 const struct prefix *p, bool to, struct explain_entry *ret)
{
	const struct resolved_address *side = to ? &rule->to : &rule->from;

	ret->list = NULL;
	if (rule->impossible)
		return EXPLAIN_NONE;
	if (side->kind == RESOLVED_SET && !explain_holds(&r->addresses[side->index], p, ret))
		return EXPLAIN_NONE;
	if (asks_for_more(rule, to ? AST_TO : AST_FROM))
		return EXPLAIN_SOME;
	return EXPLAIN_ALL;
}

size_t explain_decider(const struct resolved *r, size_t first, size_t last, const struct prefix *p,
		       bool to, size_t *ret_before)
{
	size_t before = 0, i;

	for (i = first; i < last; i++) {
		const struct resolved_rule *rule = &r->rules[i];
		struct explain_entry entry;
		enum explain_scope scope = EXPLAIN_NONE;

		if (rule->action != ACTION_COUNT)
			scope = explain_scope(r, rule, p, to, &entry);
		if (scope == EXPLAIN_ALL)
			break;
		before += scope == EXPLAIN_SOME;
	}
	*ret_before = before;
	return i;
}
