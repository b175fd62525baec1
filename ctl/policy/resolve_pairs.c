// SPDX-License-Identifier: GPL-2.0-only
// Resolves sets of pairs, and rules that use one: their addresses and ports, of which the matrix
// knows each by itself.
#include <stdlib.h>

#include "common/limits-policy.h"
#include "ctl/base/addr_explain.h"
#include "ctl/base/mem.h"
#include "ctl/policy/resolver.h"

typedef VEC(struct resolved_pair) pairs_vec;

static int compare(const void *a, const void *b)
{
	const struct resolved_pair *x = a, *y = b;
	int order = addr_compare(&x->addr, &y->addr);

	return order ? order : (int)x->first - y->first;
}

// Sorted; the ports of an address neither overlap nor touch.
static void merge(struct resolved_pair *at, size_t *n)
{
	size_t kept = 0;

	if (*n)
		qsort(at, *n, sizeof(*at), compare);
	for (size_t i = 0; i < *n; i++) {
		struct resolved_pair *last = kept ? &at[kept - 1] : NULL;

		if (last && !addr_compare(&last->addr, &at[i].addr) &&
		    at[i].first <= (uint32_t)last->last + 1)
			last->last = at[i].last > last->last ? at[i].last : last->last;
		else
			at[kept++] = at[i];
	}
	*n = kept;
}

static bool read_pair(struct resolver *r, const struct ast_item *item, struct resolved_pair *ret)
{
	bool mapped;
	addr_text spelling;

	if (addr_parse(item->word, strlen(item->word), &ret->addr, &mapped) < 0) {
		diag_error(r->diag, item->at, "a pair has one address: 192.0.2.1 port 80",
			   "'%.60s' is not an address", item->word);
		return false;
	}
	if (mapped)
		diag_warning(r->diag, item->at, NULL, "'%s' is read as %s", item->word,
			     addr_format(&ret->addr, spelling));
	ret->first = item->port_first;
	ret->last = item->port_last;
	return true;
}

static uint32_t host4(const struct addr *a)
{
	return (uint32_t)a->bytes[0] << 24 | (uint32_t)a->bytes[1] << 16 |
	       (uint32_t)a->bytes[2] << 8 | a->bytes[3];
}

static uint64_t half(const uint8_t *bytes)
{
	uint64_t n = 0;

	for (int i = 0; i < 8; i++)
		n = n << 8 | bytes[i];
	return n;
}

// The addresses of all pairs, as a list of hosts.
static uint32_t add_addresses(struct resolver *r, const struct ast_set *set,
			      const struct resolved_pair *at, size_t n)
{
	struct ast_item place = {.at = set->at, .line = set->line};
	struct resolved_addresses to = {
		.at = set->at, .place = resolve_place(r, &place), .fixed = true};
	struct resolved_prefix4 *v4 = arena_zalloc(&r->r->memory, n, sizeof(*v4));
	struct resolved_prefix6 *v6 = arena_zalloc(&r->r->memory, n, sizeof(*v6));
	struct place p = to.place;

	for (size_t i = 0; i < n; i++) {
		const struct addr *a = &at[i].addr;

		if (i && !addr_compare(a, &at[i - 1].addr))
			continue;
		if (a->family == 4)
			v4[to.n4++] = (struct resolved_prefix4){host4(a), p.line, p.file, 32, true};
		else
			v6[to.n6++] = (struct resolved_prefix6){
				half(a->bytes), half(a->bytes + 8), p.line, p.file, 128, true};
	}
	to.v4 = v4;
	to.v6 = v6;
	vec_push(&r->addresses, to);
	vec_push(&r->facts, ((struct address_facts){0}));
	return (uint32_t)r->addresses.n - 1;
}

// False: the matrix would have a row for each of too many ranges.
static bool add_ports(struct resolver *r, const struct ast_set *set, const struct resolved_pair *at,
		      size_t n, struct resolved_ranges *ret)
{
	CLEANUP_FREE struct stretch *all = mem_zalloc(n, sizeof(*all));
	CLEANUP(ranges_free) struct ranges ranges = {0};
	CLEANUP(edges_free) struct edges edges = {0};

	for (size_t i = 0; i < n; i++)
		all[i] = (struct stretch){.first = at[i].first, .last = at[i].last};
	edges_of(all, n, &edges);
	edges_ranges(&edges, &ranges);
	if (ranges.n > POLICY_SET_ITEMS) {
		diag_error(r->diag, set->at, "divide the set, and write a rule for each part",
			   "the ports of set '@%s' are %zu separate ranges; the limit is %d",
			   set->name, ranges.n, POLICY_SET_ITEMS);
		return false;
	}
	ret->given = true;
	ret->n = ranges.n;
	ret->at = arena_copy(&r->r->memory, ranges.at, ranges.n, sizeof(*ranges.at));
	return true;
}

static bool read_pairs(struct resolver *r, const struct ast_set *set, pairs_vec *ret)
{
	bool ok = !set->broken;

	vec_each (&set->elements.items, item) {
		struct resolved_pair pair;

		if (read_pair(r, item, &pair))
			vec_push(ret, pair);
		else
			ok = false;
	}
	if (ok && !ret->n)
		diag_error(r->diag, set->at, NULL, "set of pairs '@%s' is empty", set->name);
	r->all_pairs += ret->n;
	if (r->all_pairs > POLICY_PAIRS && r->all_pairs - ret->n <= POLICY_PAIRS)
		diag_error(r->diag, set->at, NULL, "the sets have more than %d pairs",
			   POLICY_PAIRS);
	return ok && ret->n && r->all_pairs <= POLICY_PAIRS;
}

void resolve_pair_set(struct resolver *r, uint32_t number)
{
	struct ast_set *set = &r->ast->sets.at[number];
	struct resolved_pair_set to = {.name = arena_strdup(&r->r->memory, set->name)};
	pairs_vec pairs = {0};

	set->broken = !read_pairs(r, set, &pairs);
	if (!set->broken) {
		merge(pairs.at, &pairs.n);
		to.addresses = add_addresses(r, set, pairs.at, pairs.n);
		to.at = arena_copy(&r->r->memory, pairs.at, pairs.n, sizeof(*pairs.at));
		to.n = pairs.n;
		set->broken = !add_ports(r, set, pairs.at, pairs.n, &to.ports);
	}
	r->sets[number].address = (uint32_t)r->pairs.n;
	vec_push(&r->pairs, to);
	vec_free(&pairs);
}

uint32_t resolve_pairs_of(struct resolver *r, const struct ast_list *list, bool *ret_negated)
{
	struct leaves leaves = {0};
	uint32_t number = INDEX_NONE;

	expand(&r->expander, list, POLICY_LIST_ITEMS, NULL, &leaves);
	if (leaves.all.n == 1 && leaves.all.at[0].item->kind == AST_SET)
		number = index_find(&r->ast->set_index, leaves.all.at[0].item->word);
	*ret_negated = leaves.negated;
	leaves_free(&leaves);
	return number != INDEX_NONE && r->ast->sets.at[number].kind == AST_SET_PAIRS ? number
										     : INDEX_NONE;
}

bool resolve_pairs(struct resolver *r, const struct ast_rule *ast, enum ast_field side,
		   const struct pairs_end *ret)
{
	static const struct range16 any = {0, UINT16_MAX};
	enum ast_field port = side == AST_FROM ? AST_SPORT : AST_DPORT;
	const struct resolved_pair_set *set;
	bool negated;
	uint32_t number = resolve_pairs_of(r, &ast->fields[side], &negated);

	if (number == INDEX_NONE)
		return true;
	if (ast->fields[port].given || ast->field_at[AST_FRAGMENT].file) {
		diag_error(r->diag, ast->fields[side].at, NULL,
			   ast->fields[port].given ? "'@%s' has ports: omit 'port'"
						   : "'@%s' has ports, a later fragment has none",
			   r->ast->sets.at[number].name);
		return false;
	}
	if (r->ast->sets.at[number].broken)
		return false;
	set = &r->pairs.at[r->sets[number].address];
	*ret->pairs = (struct resolved_pairs){true, negated, r->sets[number].address};
	if (negated) {
		*ret->address = (struct resolved_address){.kind = RESOLVED_ANY};
		*ret->ports = (struct resolved_ranges){
			true, arena_copy(&r->r->memory, &any, 1, sizeof(any)), 1};
		return true;
	}
	*ret->address = (struct resolved_address){RESOLVED_SET, set->addresses};
	*ret->ports = set->ports;
	return true;
}
