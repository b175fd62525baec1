// SPDX-License-Identifier: GPL-2.0-only
// Sets and rules as they apply to an address.
#include "ctl/control/explain_rules.h"

#include <stdlib.h>

#include "ctl/policy/fields.h"

// The lists are sorted by address, then length.
static int compare4(const void *key, const void *element)
{
	const struct resolved_prefix4 *a = key, *b = element;

	return a->addr != b->addr ? (a->addr < b->addr ? -1 : 1) : (int)a->len - (int)b->len;
}

static int compare6(const void *key, const void *element)
{
	const struct resolved_prefix6 *a = key, *b = element;

	if (a->hi != b->hi)
		return a->hi < b->hi ? -1 : 1;
	return a->lo != b->lo ? (a->lo < b->lo ? -1 : 1) : (int)a->len - (int)b->len;
}

static uint64_t read_be(const uint8_t *at, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | at[i];
	return value;
}

// This very prefix, if the list has it.
static bool find4(const struct resolved_addresses *list, const struct prefix *p, bool *ret_in,
		  struct place *ret)
{
	const struct resolved_prefix4 key = {.addr = (uint32_t)read_be(p->addr.bytes, 4),
					     .len = p->len};
	const struct resolved_prefix4 *found =
		list->n4 ? bsearch(&key, list->v4, list->n4, sizeof(key), compare4) : NULL;

	if (!found)
		return false;
	*ret_in = found->in;
	*ret = (struct place){found->file, found->line};
	return true;
}

static bool find6(const struct resolved_addresses *list, const struct prefix *p, bool *ret_in,
		  struct place *ret)
{
	const struct resolved_prefix6 key = {.hi = read_be(p->addr.bytes, 8),
					     .lo = read_be(p->addr.bytes + 8, 8),
					     .len = p->len};
	const struct resolved_prefix6 *found =
		list->n6 ? bsearch(&key, list->v6, list->n6, sizeof(key), compare6) : NULL;

	if (!found)
		return false;
	*ret_in = found->in;
	*ret = (struct place){found->file, found->line};
	return true;
}

// The longest prefix around p decides: each length is looked up, as a list may have a million.
bool explain_holds(const struct resolved_addresses *list, const struct prefix *p,
		   struct explain_entry *ret)
{
	struct explain_entry found = {.list = list};
	bool four = p->addr.family == 4;

	for (unsigned len = p->addr.family ? p->len + 1u : 0; len--;) {
		struct prefix outer = prefix_of(&p->addr, (uint8_t)len);
		bool in = false;

		if (!(four ? find4 : find6)(list, &outer, &in, &found.place))
			continue;
		found.prefix = outer;
		if (in)
			*ret = found;
		return in;
	}
	return false;
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

// ---- rules --------------------------------------------------------------------------------------

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
