// SPDX-License-Identifier: GPL-2.0-only
// Reads the elements of a set of pairs once, though many rules may refer to it.
#include "ctl/import/condition_pairs.h"

#include <search.h>
#include <string.h>

#include "ctl/base/vec.h"

#define PAIRS_MAX 8192 // rules with larger sets take too long

// A set with its pairs, as rules read them.
struct known_pairs {
	const struct json *list;
	struct pair_key key;
	bool drops;
	struct pairs *pairs; // NULL: fewer than two, or not certain
	bool part;           // without the elements that change
	struct pair_elements others;
};

static int compare_known(const void *a, const void *b)
{
	const struct known_pairs *x = a, *y = b;

	if (x->list != y->list)
		return (uintptr_t)x->list < (uintptr_t)y->list ? -1 : 1;
	if (x->key.families != y->key.families)
		return (int)x->key.families - (int)y->key.families;
	if (x->key.port != y->key.port)
		return x->key.port - y->key.port;
	return (int)x->drops - (int)y->drops;
}

// A value of one part: false also for prefixes of addresses.
static bool read_part(const struct condition_place *place, const struct json *part,
		      enum import_kind kind, uint8_t families, struct interval *ret)
{
	struct values v;

	if (value_read(&place->values, part, kind, families, &v) || v.n != 1 || v.part)
		return false;
	*ret = v.at[0];
	return kind != KIND_ADDRESS || ret->first == ret->last;
}

static bool read_pair(const struct condition_place *place, const struct pair_key *key,
		      const struct json *element, struct addr_port *ret)
{
	const struct json *parts, *elem = json_get(element, "elem");
	struct interval addr, ports;

	if (elem)
		element = json_get(elem, "val");
	if (strcmp(ruleset_key(element, &parts), "concat") || json_length(parts) != 2 ||
	    !read_part(place, json_at(parts, (size_t)!key->port), KIND_ADDRESS, key->families,
		       &addr) ||
	    !read_part(place, json_at(parts, (size_t)key->port), KIND_NUMBER, MATCH_BOTH, &ports))
		return false;
	*ret = (struct addr_port){addr.first, (uint16_t)ports.first, (uint16_t)ports.last};
	return true;
}

static void read_elements(const struct condition_place *place, const struct json *elements,
			  struct known_pairs *ret)
{
	size_t n = json_length(elements), n_pairs = 0;
	struct addr_port *pairs = arena_zalloc(place->values.arena, n + 1, sizeof(*pairs));
	const struct json **others = arena_zalloc(place->values.arena, n + 1, sizeof(*others));

	for (size_t i = 0; i < n; i++) {
		const struct json *element = json_at(elements, i);

		if (value_expires(element))
			ret->part = true;
		else if (read_pair(place, &ret->key, element, &pairs[n_pairs]))
			n_pairs++;
		else
			others[ret->others.n_others++] = element;
	}
	ret->others.others = others;
	if (n_pairs >= 2 && n_pairs <= PAIRS_MAX)
		ret->pairs = pairs_make(place->values.arena, pairs, n_pairs,
					ret->key.families == MATCH_V4 ? 4 : 6);
}

// A drop by a set that changes has the elements that stay.
static void read_set(const struct condition_place *place, struct known_pairs *ret)
{
	const struct ruleset *r = place->values.ruleset;
	bool named = json_kind(ret->list) == JSON_IS_OBJECT && json_get(ret->list, "name");

	ret->part = named && value_changes(r, ret->list);
	if (named && (ruleset_shrinks(r, ret->list) || json_get(ret->list, "timeout")))
		return;
	read_elements(place, named ? json_get(ret->list, "elem") : ret->list, ret);
	if (ret->part && !ret->drops)
		ret->pairs = NULL;
	else if (ret->pairs && named && !ret->part && !ret->others.n_others)
		ret->pairs->set = json_get_string(ret->list, "name");
}

static const struct known_pairs *read_once(const struct condition_place *place,
					   const struct pair_key *key, const struct json *list)
{
	struct known_pairs wanted = {.list = list, .key = *key, .drops = place->values.drops};
	struct value_cache *cache = place->values.cache;
	struct known_pairs *known;
	void *found = cache ? tfind(&wanted, &cache->pairs, compare_known) : NULL;

	if (found)
		return *(struct known_pairs **)found;
	known = arena_copy(place->values.arena, &wanted, 1, sizeof(wanted));
	read_set(place, known);
	if (cache)
		tsearch(known, &cache->pairs, compare_known);
	return known;
}

bool condition_pairs(const struct condition_place *place, const struct pair_key *key,
		     const struct json *list, struct pair_elements *ret, struct matches *matches)
{
	const struct known_pairs *known = read_once(place, key, list);
	struct arena *arena = place->values.arena;
	struct match m = match_any;

	if (!known->pairs)
		return false;
	m.families = key->families;
	m.parts = known->part ? MATCH_PART_PAIRS : 0;
	if (key->proto)
		match_narrow(arena, &m, MATCH_PROTO, values_one(arena, key->proto, key->proto));
	match_narrow_pairs(arena, &m, key->side, known->pairs);
	vec_push(matches, m);
	*ret = known->others;
	return true;
}
