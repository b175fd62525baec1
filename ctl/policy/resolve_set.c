// SPDX-License-Identifier: GPL-2.0-only
// Resolves sets and address lists.
#include <stdlib.h>
#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/policy/resolver.h"

struct build { // a set or list that is being built
	struct resolver *r;
	enum policy_use use;
	struct cidr_set own;        // its own items
	VEC(struct cidr_set) parts; // the sets and files that it names
	struct leaves_about about;
};

static void over_limit(struct resolver *r, struct diag_at at, size_t more)
{
	r->prefixes += more;
	if (r->prefixes <= POLICY_PREFIXES || r->too_many)
		return;
	r->too_many = true;
	diag_error(r->diag, at, NULL, "more than %u prefixes in the sets and lists of one policy",
		   POLICY_PREFIXES);
}

// ---- items --------------------------------------------------------------------------------------

static void add_addrs(struct cidr_set *s, const struct addr *addrs, size_t n, bool negated,
		      struct place place)
{
	for (size_t i = 0; i < n; i++) {
		struct prefix p = prefix_of(&addrs[i], 128);

		cidr_add(s, &p, negated, place);
	}
}

static void add_self(struct build *b, const struct ast_item *item, bool negated)
{
	size_t n;
	const struct addr *self = resolve_own(b->r, item->at, &n);

	add_addrs(&b->own, self, n, negated, resolve_place(b->r, item));
	b->about.asked = true;
	b->about.fixed = false;
}

// Does this use exclude addresses? Addresses of exceptions are kept, or the list would match more.
static bool leaves_out(enum policy_use use, const struct ast_item *item, bool negated)
{
	return use != POLICY_WHOLE && !negated && !item->wide;
}

// A name of which only `expect` lines exclude every address is used as a whole: other rules decide.
static void add_host(struct build *b, const struct host *host, const struct leaf *leaf,
		     struct place place)
{
	bool open = leaves_out(b->use, leaf->item, leaf->negated) &&
		    (host->use == POLICY_DROPPED || host->n_open);

	add_addrs(&b->own, open ? host->open : host->addrs, open ? host->n_open : host->n,
		  leaf->negated, place);
	b->about.asked = true;
	b->about.fixed = false;
}

static void add_name(struct build *b, uint32_t number, const struct leaf *leaf, struct place place)
{
	const struct host *host = &b->r->hosts.at[number];

	add_host(b, host, leaf, place);
	b->about.broken |= host->failed;
}

static void add_file(struct build *b, uint32_t number, const struct leaf *leaf)
{
	const struct list_file *file = &b->r->lists.at[number];
	bool negated = leaf->negated;

	vec_push(&b->parts, cidr_member(&file->list.set, negated));
	b->about.listed = true;
	b->about.fixed = false;
	vec_each (&file->list.names, name) {
		const struct host *host = resolve_host(b->r, name->name);
		struct place place = {.file = file->file, .line = name->line};

		add_host(b, host, leaf, place);
	}
}

static void add_set(struct build *b, uint32_t number, bool negated)
{
	const struct set_value *set = &b->r->sets[number];

	bool open = b->use != POLICY_WHOLE && !negated && set->split;

	vec_push(&b->parts, cidr_member(open ? &set->open : &set->whole, negated));
	b->about.broken |= set->broken;
	b->about.listed |= set->listed;
	b->about.asked |= set->asked;
	b->about.fixed &= set->fixed;
}

static void add_geo(struct build *b, uint32_t number, bool negated, struct place place)
{
	const struct geo_item *geo = &b->r->geos.at[number];

	for (size_t i = 0; i < geo->n; i++)
		cidr_add(&b->own, &geo->prefixes[i], negated, place);
	b->about.broken |= geo->failed;
	b->about.fixed = false;
}

static void add_leaf(struct build *b, const struct leaf *leaf)
{
	uint32_t number = resolve_item(b->r, leaf->item); // may move the items
	const struct item_value *value = &b->r->items.at[number];
	struct place place = resolve_place(b->r, leaf->item);

	b->about.broken |= value->broken;
	if (value->broken)
		return;
	switch ((enum value_kind)value->kind) {
	case VALUE_SELF:
		add_self(b, leaf->item, leaf->negated);
		break;
	case VALUE_HOST:
		add_name(b, value->number, leaf, place);
		break;
	case VALUE_GEO:
		add_geo(b, value->number, leaf->negated, place);
		break;
	case VALUE_SET:
		add_set(b, value->number, leaf->negated);
		break;
	case VALUE_FILE:
		add_file(b, value->number, leaf);
		break;
	default:
		for (size_t i = 0; i < value->n; i++)
			cidr_add(&b->own, &value->prefixes[i], leaf->negated, place);
	}
}

// ---- the same with and without "not" ------------------------------------------------------------

struct exception {
	uint32_t value; // number of the item's value
	const struct ast_item *item;
};

static int compare_exceptions(const void *a, const void *b)
{
	const struct exception *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

static bool find_contradictions(struct resolver *r, const struct leaves *leaves)
{
	VEC(struct exception) exceptions = {0};
	bool ok = true;

	vec_each (&leaves->all, leaf)
		if (leaf->negated)
			vec_push(&exceptions,
				 ((struct exception){resolve_item(r, leaf->item), leaf->item}));
	if (exceptions.n)
		qsort(exceptions.at, exceptions.n, sizeof(*exceptions.at), compare_exceptions);
	for (size_t i = 0; exceptions.n && i < leaves->all.n; i++) {
		const struct leaf *leaf = &leaves->all.at[i];
		struct exception key = {.value = resolve_item(r, leaf->item)}, *found;

		found = leaf->negated ? NULL
				      : bsearch(&key, exceptions.at, exceptions.n, sizeof(key),
						compare_exceptions);
		if (!found)
			continue;
		diag_error(r->diag, found->item->at, NULL,
			   "'%.60s' is given with and without 'not' (%s)", leaf->item->word,
			   diag_place(r->diag, leaf->item->at, false));
		ok = false;
	}
	vec_free(&exceptions);
	return ok;
}

// ---- values -------------------------------------------------------------------------------------

// Pairwise, so that many small sets cost no more than their sum times its logarithm.
static struct cidr_set merge_parts(struct build *b)
{
	struct cidr_set ret;

	cidr_sort(&b->own);
	if (cidr_count(&b->own) || !b->parts.n)
		vec_push(&b->parts, b->own);
	else
		cidr_free(&b->own);
	while (b->parts.n > 1) {
		size_t n = 0;

		for (size_t i = 0; i + 1 < b->parts.n; i += 2)
			b->parts.at[n++] = cidr_merge(&b->parts.at[i], &b->parts.at[i + 1]);
		if (b->parts.n % 2)
			b->parts.at[n++] = b->parts.at[b->parts.n - 1];
		b->parts.n = n;
	}
	ret = b->parts.at[0];
	vec_free(&b->parts);
	return ret;
}

struct cidr_set resolve_leaves(struct resolver *r, const struct leaves *leaves, enum policy_use use,
			       struct leaves_about *ret)
{
	struct build b = {.r = r, .use = leaves->negated ? POLICY_WHOLE : use, .about.fixed = true};

	vec_each (&leaves->all, leaf) {
		size_t before = cidr_count(&b.own), parts = b.parts.n, made;

		if (r->too_many)
			break;
		add_leaf(&b, leaf);
		made = cidr_count(&b.own) - before;
		for (size_t i = parts; i < b.parts.n; i++)
			made += cidr_count(&b.parts.at[i]);
		over_limit(r, leaf->item->at, made);
	}
	b.about.broken = !find_contradictions(r, leaves) || b.about.broken || r->too_many;
	*ret = b.about;
	return merge_parts(&b);
}

static bool host_splits(const struct host *host)
{
	return host->n_open < host->n;
}

static bool file_splits(const struct resolver *r, const struct list_file *file)
{
	vec_each (&file->list.names, name)
		if (host_splits(resolve_host(r, name->name)))
			return true;
	return false;
}

// Has the leaf other addresses in drop and reject rules?
static bool splits(struct resolver *r, const struct leaf *leaf)
{
	const struct item_value *value = &r->items.at[resolve_item(r, leaf->item)];

	if (value->broken || !leaves_out(POLICY_DROPPED, leaf->item, leaf->negated))
		return false;
	switch ((enum value_kind)value->kind) {
	case VALUE_HOST:
		return host_splits(&r->hosts.at[value->number]);
	case VALUE_FILE:
		return file_splits(r, &r->lists.at[value->number]);
	case VALUE_SET:
		return r->sets[value->number].split;
	default:
		return false;
	}
}

bool resolve_splits(struct resolver *r, const struct leaves *leaves)
{
	for (size_t n = 0; !leaves->negated && n < leaves->all.n; n++)
		if (splits(r, &leaves->all.at[n]))
			return true;
	return false;
}

// Twice where drop and reject rules leave something out.
static void resolve_values(struct resolver *r, const struct leaves *leaves, struct set_value *value,
			   struct leaves_about *ret)
{
	struct leaves_about open;

	value->whole = resolve_leaves(r, leaves, POLICY_WHOLE, ret);
	value->split = resolve_splits(r, leaves);
	if (value->split)
		value->open = resolve_leaves(r, leaves, POLICY_DROPPED, &open);
}

// Its prefixes from list files, if these are not read.
static void take_known(struct resolver *r, const struct leaves_about *about,
		       struct resolved_addresses *to)
{
	const struct policy_known *known = r->env->known;
	const struct resolved_addresses *found;

	to->fixed = about->fixed;
	to->listed = about->listed;
	to->asked = about->asked;
	if (!known || !about->listed)
		return;
	if (!(found = known->find(known, to->place.file, to->at.offset))) {
		diag_error(r->diag, to->at, NULL, "the addresses of this list are not known");
		return;
	}
	to->empty = found->empty;
	to->v4 = found->v4;
	to->v6 = found->v6;
	to->n4 = found->n4;
	to->n6 = found->n6;
}

static void resolve_one_set(struct resolver *r, uint32_t number)
{
	const struct ast_set *set = &r->ast->sets.at[number];
	struct set_value *value = &r->sets[number];
	struct resolved_addresses *to;
	struct leaves leaves = {0};
	struct leaves_about about;

	if (set->kind == AST_SET_PAIRS)
		resolve_pair_set(r, number);
	else if (set->kind)
		resolve_number_set(r, number);
	if (!ast_set_is_addresses(set))
		return;
	to = &r->addresses.at[value->address];
	value->broken = !set->elements.given ||
			expand_elements(&r->expander, &set->elements, NULL, &leaves) < 0;
	resolve_values(r, &leaves, value, &about);
	value->broken = value->broken || about.broken || set->broken;
	value->fixed = about.fixed;
	value->listed = about.listed;
	value->asked = about.asked;
	leaves_free(&leaves);
	r->facts.at[value->address].broken = value->broken;
	cidr_resolve(&value->whole, false, &r->r->memory, to);
	take_known(r, &about, to);
	if (to->empty && !value->broken)
		diag_warning(r->diag, set->at, NULL,
			     "set '@%s' is empty: rules that name it match nothing", set->name);
}

void resolve_sets(struct resolver *r)
{
	for (size_t i = 0; i < r->ast->sets.n; i++) {
		const struct ast_set *set = &r->ast->sets.at[i];
		struct ast_item place = {.at = set->at, .line = set->line};

		r->sets[i].address = (uint32_t)r->addresses.n;
		if (!ast_set_is_addresses(set))
			continue;
		vec_push(&r->addresses, ((struct resolved_addresses){
						.name = arena_strdup(&r->r->memory, set->name),
						.at = set->at,
						.place = resolve_place(r, &place)}));
		vec_push(&r->facts, ((struct address_facts){0}));
	}
	r->r->n_sets = r->addresses.n;
	// Each set after those that it names. In a loop, which is an error, some come too early.
	vec_each (&r->ast->set_order, number)
		resolve_one_set(r, *number);
}

// ---- lists --------------------------------------------------------------------------------------

static bool is_everything(const struct resolved_addresses *s)
{
	return s->n4 == 1 && s->n6 == 1 && !s->v4[0].len && !s->v6[0].len && s->v4[0].in &&
	       s->v6[0].in;
}

// The key by which equal lists are found, six bytes for each item. Allocated.
static char *key_of(struct resolver *r, const struct leaves *leaves, enum policy_use use)
{
	char *key = mem_zalloc(leaves->all.n * 6 + 2, 1), *at = key;
	bool open = use != POLICY_WHOLE && resolve_splits(r, leaves);

	*at++ = leaves->negated ? '!' : open ? '*' : ' ';
	vec_each (&leaves->all, leaf) {
		uint32_t number = resolve_item(r, leaf->item);

		*at++ = leaf->negated ? '-' : leaf->item->wide ? '*' : '+';
		for (unsigned i = 0; i < 5; i++, number >>= 7)
			*at++ = (char)(0x80 | (number & 0x7f));
	}
	return key;
}

static uint32_t add_list(struct resolver *r, const struct ast_list *list, enum policy_use use,
			 bool broken, const struct leaves *leaves)
{
	CLEANUP_FREE char *key = key_of(r, leaves, use);
	uint32_t number = index_find(&r->address_index, key);
	struct resolved_addresses to = {.at = list->at};
	struct address_facts facts = {0};
	struct leaves_about about;
	struct cidr_set value;

	if (number != INDEX_NONE)
		return number;
	number = (uint32_t)r->addresses.n;
	index_add(&r->address_index, arena_strdup(&r->scratch, key), number);
	to.place = resolve_place(
		r, &(struct ast_item){.at = list->at, .line = list->items.at[0].line});
	value = resolve_leaves(r, leaves, use, &about);
	cidr_resolve(&value, leaves->negated && !cidr_is_empty(&value), &r->r->memory, &to);
	take_known(r, &about, &to);
	facts.broken = about.broken || broken;
	if (leaves->negated)
		facts.not_families = (uint8_t)((value.v4.n ? 1 : 0) | (value.v6.n ? 2 : 0));
	cidr_free(&value);
	vec_push(&r->addresses, to);
	vec_push(&r->facts, facts);
	return number;
}

// A set that is the only item is used unchanged, unless this use excludes addresses.
static bool is_lone_set(struct resolver *r, const struct leaves *leaves, enum policy_use use)
{
	return leaves->all.n == 1 && !leaves->negated && leaves->all.at[0].item->kind == AST_SET &&
	       (use == POLICY_WHOLE || !resolve_splits(r, leaves));
}

static struct resolved_address lone_set(const struct resolver *r, const struct ast_item *item)
{
	uint32_t number = index_find(&r->ast->set_index, item->word);

	if (number == INDEX_NONE || r->ast->sets.at[number].kind)
		return (struct resolved_address){.kind = RESOLVED_ANY};
	if (r->ast->sets.at[number].dynamic)
		return (struct resolved_address){RESOLVED_DYNAMIC,
						 resolve_dynamic(r->r, item->word)};
	return (struct resolved_address){RESOLVED_SET, r->sets[number].address};
}

struct resolved_address resolve_address(struct resolver *r, const struct ast_list *list,
					enum policy_use use)
{
	struct resolved_address ret = {.kind = RESOLVED_ANY};
	struct leaves leaves = {0};
	bool broken;

	broken = expand(&r->expander, list, POLICY_LIST_ITEMS, NULL, &leaves) < 0;
	if (is_lone_set(r, &leaves, use)) {
		ret = lone_set(r, leaves.all.at[0].item);
	} else if (leaves.all.n) {
		ret.kind = RESOLVED_SET;
		ret.index = add_list(r, list, use, broken, &leaves);
	}
	if (ret.kind == RESOLVED_SET && is_everything(&r->addresses.at[ret.index]))
		ret.kind = RESOLVED_ANY;
	leaves_free(&leaves);
	return ret;
}
