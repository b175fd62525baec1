// SPDX-License-Identifier: GPL-2.0-only
// Single values, prefixes, ranges, lists and named sets.
#include "ctl/import/value.h"

#include <search.h>
#include <string.h>

#include "ctl/base/addr.h"
#include "ctl/base/mac.h"

static address_number number_of(const struct addr *a)
{
	address_number n = 0;

	for (unsigned i = 0; i < addr_bits(a) / 8; i++)
		n = n << 8 | a->bytes[i];
	return n;
}

static int read_address(const char *text, uint8_t families, address_number *ret)
{
	struct addr a;
	bool mapped = false;

	if (addr_parse(text, strlen(text), &a, &mapped) || mapped ||
	    a.family != (families == MATCH_V4 ? 4 : 6))
		return VALUE_UNKNOWN;
	*ret = number_of(&a);
	return 0;
}

static int read_mac(const char *text, address_number *ret)
{
	uint64_t mac;

	if (mac_parse(text, strlen(text), &mac))
		return VALUE_UNKNOWN;
	*ret = mac;
	return 0;
}

// The greatest number of a list.
static address_number last_of(enum import_kind kind, uint8_t families)
{
	if (kind == KIND_ADDRESS)
		return match_max(MATCH_SRC, families);
	return kind == KIND_MAC ? match_max(MATCH_MAC, families) : (address_number)65535;
}

static int read_one(const struct json *j, enum import_kind kind, uint8_t families,
		    address_number *ret)
{
	const char *text = json_text(j);
	uint32_t number;

	if (json_kind(j) == JSON_IS_NUMBER && kind != KIND_ADDRESS && kind != KIND_MAC) {
		*ret = json_number(j);
		return 0;
	}
	if (json_kind(j) != JSON_IS_STRING)
		return VALUE_UNKNOWN;
	if (kind == KIND_ADDRESS)
		return read_address(text, families, ret);
	if (kind == KIND_MAC)
		return read_mac(text, ret);
	if (!import_word(kind, text, &number))
		return VALUE_UNKNOWN;
	*ret = number;
	return 0;
}

static int read_prefix(const struct json *j, enum import_kind kind, uint8_t families,
		       struct interval *ret)
{
	unsigned bits = families == MATCH_V4 ? 32 : 128;
	uint64_t len = json_get_u64(j, "len");
	address_number first, hosts;
	int code = read_one(json_get(j, "addr"), kind, families, &first);

	if (code || kind != KIND_ADDRESS || len > bits ||
	    json_kind(json_get(j, "len")) != JSON_IS_NUMBER)
		return VALUE_UNKNOWN;
	hosts = len == bits ? 0 : match_max(MATCH_SRC, families) >> len;
	*ret = (struct interval){first & ~hosts, first | hosts};
	return 0;
}

static int read_interval(const struct json *j, enum import_kind kind, uint8_t families,
			 struct interval *ret)
{
	const struct json *value;
	const char *key = ruleset_key(j, &value);
	int code;

	if (!strcmp(key, "elem"))
		return read_interval(json_get(value, "val"), kind, families, ret);
	if (!strcmp(key, "prefix"))
		return read_prefix(value, kind, families, ret);
	if (!strcmp(key, "range")) {
		code = read_one(json_at(value, 0), kind, families, &ret->first);
		return code ? code : read_one(json_at(value, 1), kind, families, &ret->last);
	}
	code = read_one(j, kind, families, &ret->first);
	ret->last = ret->first;
	return code;
}

// Newer versions of nft print a single flag without an array.
static bool has_flag(const struct json *set, const char *word)
{
	const struct json *flags = json_get(set, "flags");

	if (json_kind(flags) == JSON_IS_STRING && !strcmp(json_text(flags), word))
		return true;
	for (size_t i = 0; i < json_length(flags); i++)
		if (text_same(json_text(json_at(flags, i)), word))
			return true;
	return false;
}

// Older versions of nft print no flag "dynamic".
bool value_changes(const struct ruleset *r, const struct json *set)
{
	return json_get(set, "timeout") || has_flag(set, "dynamic") || has_flag(set, "timeout") ||
	       ruleset_fillers(r, set);
}

bool value_expires(const struct json *element)
{
	const struct json *elem = json_get(element, "elem");

	return json_get(elem, "timeout") || json_get(elem, "expires");
}

const struct json *value_elements(const struct value_place *place, const struct json *j)
{
	const struct json *value;
	const char *text = json_kind(j) == JSON_IS_STRING ? json_text(j) : "";

	if (text[0] == '@')
		return ruleset_set(place->ruleset, place->chain, text + 1);
	if (!strcmp(ruleset_key(j, &value), "set"))
		return value;
	return j;
}

static int add(const struct json *j, enum import_kind kind, uint8_t families, address_number max,
	       struct interval *ret)
{
	int code = read_interval(j, kind, families, ret);

	if (code)
		return code;
	return ret->first > ret->last || ret->last > max ? VALUE_UNKNOWN : 0;
}

static int read_list(const struct value_place *place, const struct json *list,
		     enum import_kind kind, uint8_t families, struct values *ret)
{
	bool many = json_kind(list) == JSON_IS_ARRAY;
	size_t n = many ? json_length(list) : 1;
	address_number max = last_of(kind, families);
	struct interval *at = arena_zalloc(place->arena, n + 1, sizeof(*at));
	size_t kept = 0;
	bool part = false;

	if (place->cache)
		place->cache->work += n;
	for (size_t i = 0; i < n; i++) {
		const struct json *j = many ? json_at(list, i) : list;
		int code = add(j, kind, families, max, &at[kept]);

		if (code)
			return code;
		kept += !value_expires(j);
		part |= value_expires(j);
	}
	if (part && !place->drops)
		return VALUE_CHANGES;
	*ret = (struct values){.at = at, .n = match_sort(at, kept), .part = part};
	return 0;
}

static int read_set(const struct value_place *place, const struct json *list, enum import_kind kind,
		    uint8_t families, struct values *ret)
{
	bool changes = value_changes(place->ruleset, list);
	int code;

	if (changes && !place->drops)
		return VALUE_CHANGES;
	// With a timeout of the set, every element has one.
	if (!json_get(list, "elem") || json_get(list, "timeout")) {
		*ret = (struct values){.part = changes};
		return 0;
	}
	code = read_list(place, json_get(list, "elem"), kind, families, ret);
	if (code)
		return code;
	ret->part |= changes;
	if ((kind == KIND_ADDRESS || kind == KIND_NUMBER || kind == KIND_MAC) && !ret->part)
		ret->set = json_get_string(list, "name");
	return 0;
}

// ---- dynamic sets -------------------------------------------------------------------------------

static bool may_expire(const struct json *set)
{
	const struct json *list = json_get(set, "elem");

	if (json_get(set, "timeout") || has_flag(set, "timeout"))
		return true;
	for (size_t i = 0; i < json_length(list); i++)
		if (value_expires(json_at(list, i)))
			return true;
	return false;
}

const struct json *value_dynamic(const struct value_place *place, const struct json *j,
				 uint8_t families)
{
	struct value_cache *c = place->cache;
	bool named = json_kind(j) == JSON_IS_STRING && json_text(j)[0] == '@';
	const struct json *set = named ? value_elements(place, j) : NULL;
	const char *type = families == MATCH_V4 ? "ipv4_addr" : "ipv6_addr";

	if (!c || !set || !text_same(json_get_string(set, "type"), type) ||
	    ruleset_fillers(place->ruleset, set))
		return NULL;
	for (size_t i = 0; i < c->n_dynamic; i++)
		if (c->dynamic[i] == set)
			return set;
	if (c->n_dynamic == VALUE_DYNAMIC || !may_expire(set))
		return NULL;
	c->dynamic[c->n_dynamic++] = set;
	return set;
}

// ---- each set once ------------------------------------------------------------------------------

struct known_set {
	const struct json *list;
	enum import_kind kind;
	uint8_t families;
	bool drops;
	int code;
	struct values values;
};

static int compare_known(const void *a, const void *b)
{
	const struct known_set *x = a, *y = b;

	if (x->list != y->list)
		return (uintptr_t)x->list < (uintptr_t)y->list ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->families != y->families)
		return x->families < y->families ? -1 : 1;
	return (int)x->drops - (int)y->drops;
}

static void keep_known(void *known)
{
}

void value_cache_free(struct value_cache *c)
{
	tdestroy(c->sets, keep_known);
	tdestroy(c->pairs, keep_known);
	*c = (struct value_cache){0};
}

static int read_set_once(const struct value_place *place, const struct json *list,
			 enum import_kind kind, uint8_t families, struct values *ret)
{
	const struct known_set wanted = {
		.list = list, .kind = kind, .families = families, .drops = place->drops};
	struct known_set *known;
	void *found;

	if (!place->cache)
		return read_set(place, list, kind, families, ret);
	found = tfind(&wanted, &place->cache->sets, compare_known);
	if (!found) {
		known = arena_copy(place->arena, &wanted, 1, sizeof(wanted));
		known->code = read_set(place, list, kind, families, &known->values);
		tsearch(known, &place->cache->sets, compare_known);
	} else {
		known = *(struct known_set **)found;
	}
	if (!known->code)
		*ret = known->values;
	return known->code;
}

int value_read(const struct value_place *place, const struct json *j, enum import_kind kind,
	       uint8_t families, struct values *ret)
{
	const struct json *list = value_elements(place, j);

	if (!list)
		return VALUE_UNKNOWN;
	if (json_kind(j) != JSON_IS_STRING || json_text(j)[0] != '@')
		return read_list(place, list, kind, families, ret);
	return read_set_once(place, list, kind, families, ret);
}
