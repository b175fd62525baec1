// SPDX-License-Identifier: GPL-2.0-only
// The table of conditions that Weir has. All others are omitted: for a word that is added to the
// language, add a line. Lengths are not here: the hooks see packets that the kernel has put
// together, from fragments or by GRO.
#include "ctl/import/condition.h"

#include <string.h>

#include "ctl/base/vec.h"
#include "ctl/import/condition_ct.h"
#include "ctl/import/condition_meta.h"
#include "ctl/import/condition_pairs.h"

struct known_condition {
	const char *object, *group, *name; // {"payload": {"protocol": "tcp", "field": "dport"}}
	enum match_field field;
	enum import_kind kind;
	uint8_t families;
	uint8_t proto; // 0: any
	bool loose;    // Weir's field has more packets
};

static const struct known_condition forms[] = {
	{"payload", "ip", "saddr", MATCH_SRC, KIND_ADDRESS, MATCH_V4, 0, false},
	{"payload", "ip", "daddr", MATCH_DST, KIND_ADDRESS, MATCH_V4, 0, false},
	{"payload", "ip6", "saddr", MATCH_SRC, KIND_ADDRESS, MATCH_V6, 0, false},
	{"payload", "ip6", "daddr", MATCH_DST, KIND_ADDRESS, MATCH_V6, 0, false},
	{"payload", "ip", "protocol", MATCH_PROTO, KIND_PROTO, MATCH_V4, 0, false},
	{"payload", "ip6", "nexthdr", MATCH_PROTO, KIND_PROTO, MATCH_V6, 0, true},
	{"payload", "ip", "ttl", MATCH_TTL, KIND_NUMBER, MATCH_V4, 0, false},
	{"payload", "ip6", "hoplimit", MATCH_TTL, KIND_NUMBER, MATCH_V6, 0, false},
	{"payload", "ip", "dscp", MATCH_DSCP, KIND_DSCP, MATCH_V4, 0, false},
	{"payload", "ip6", "dscp", MATCH_DSCP, KIND_DSCP, MATCH_V6, 0, false},
	{"payload", "tcp", "sport", MATCH_SPORT, KIND_NUMBER, MATCH_BOTH, 6, false},
	{"payload", "tcp", "dport", MATCH_DPORT, KIND_NUMBER, MATCH_BOTH, 6, false},
	{"payload", "udp", "sport", MATCH_SPORT, KIND_NUMBER, MATCH_BOTH, 17, false},
	{"payload", "udp", "dport", MATCH_DPORT, KIND_NUMBER, MATCH_BOTH, 17, false},
	{"payload", "sctp", "sport", MATCH_SPORT, KIND_NUMBER, MATCH_BOTH, 132, false},
	{"payload", "sctp", "dport", MATCH_DPORT, KIND_NUMBER, MATCH_BOTH, 132, false},
	{"payload", "th", "sport", MATCH_SPORT, KIND_NUMBER, MATCH_BOTH, 0, false},
	{"payload", "th", "dport", MATCH_DPORT, KIND_NUMBER, MATCH_BOTH, 0, false},
	{"payload", "icmp", "type", MATCH_TYPE, KIND_TYPE4, MATCH_V4, 1, false},
	{"payload", "icmp", "code", MATCH_CODE, KIND_CODE4, MATCH_V4, 1, false},
	{"payload", "icmpv6", "type", MATCH_TYPE, KIND_TYPE6, MATCH_V6, 58, false},
	{"payload", "icmpv6", "code", MATCH_CODE, KIND_CODE6, MATCH_V6, 58, false},
	{"payload", "ether", "saddr", MATCH_MAC, KIND_MAC, MATCH_BOTH, 0, false},
	{"meta", "", "l4proto", MATCH_PROTO, KIND_PROTO, MATCH_BOTH, 0, false},
};

// A payload has a field, everything else a key.
static const char *name_of(const struct json *j)
{
	const char *field = json_get_string(j, "field");

	field = field ? field : json_get_string(j, "key");
	return field ? field : "";
}

static const struct known_condition *find_form(const char *object, const struct json *j)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
		if (!strcmp(forms[i].object, object) && !strcmp(forms[i].name, name_of(j)) &&
		    text_same(json_get_string(j, "protocol"), forms[i].group))
			return &forms[i];
	return NULL;
}

// Values that an operator makes of those on its right side. False: not an operator of numbers.
static bool operate(struct arena *arena, const char *op, address_number max, struct values *v)
{
	address_number first = v->n ? v->at[0].first : 0, last = v->n ? v->at[v->n - 1].last : 0;

	if (!strcmp(op, "==") || !strcmp(op, "in"))
		return true;
	if (!strcmp(op, "!="))
		*v = match_complement(arena, *v, max);
	else if (!strcmp(op, "<"))
		*v = first ? values_one(arena, 0, first - 1) : (struct values){0};
	else if (!strcmp(op, "<="))
		*v = values_one(arena, 0, first);
	else if (!strcmp(op, ">"))
		*v = last < max ? values_one(arena, last + 1, max) : (struct values){0};
	else if (!strcmp(op, ">="))
		*v = values_one(arena, first, max);
	else
		return false;
	return true;
}

// `nexthdr` is the first header after IPv6, and Weir's protocol the last one.
static bool is_last_header(const struct values *v)
{
	static const uint8_t before[] = {0, 43, 44, 60};

	for (size_t i = 0; i < sizeof(before); i++)
		if (v->n && values_have(v, before[i]))
			return false;
	return true;
}

static bool read_values(const struct condition_place *place, const struct known_condition *form,
			const char *op, const struct json *right, struct values *ret)
{
	bool listed = !strcmp(op, "==") || !strcmp(op, "in");

	if (value_read(&place->values, right, form->kind, form->families, ret) ||
	    ruleset_shrinks(place->values.ruleset, value_elements(&place->values, right)))
		return false;
	// Elements that are left out must not be in the complement.
	if ((ret->part && !listed) || (form->loose && (!listed || !is_last_header(ret))))
		return false;
	if (ret->part && !ret->n) // no drop is certain
		return false;
	return operate(place->values.arena, op, match_max(form->field, form->families), ret);
}

// The set, if its elements that expire become a dynamic set. That is empty until commands fill it,
// so only a drop can ask it.
static const struct json *find_dynamic(const struct condition_place *place,
				       const struct known_condition *form, const char *op,
				       const struct json *right)
{
	bool listed = !strcmp(op, "==") || !strcmp(op, "in");

	if (!place->values.drops || form->kind != KIND_ADDRESS || !listed)
		return NULL;
	return value_dynamic(&place->values, right, form->families);
}

static void add_dynamic(const struct known_condition *form, const struct json *set,
			struct matches *ret)
{
	struct match m = match_any;

	m.families = form->families;
	m.in[form->field == MATCH_DST] = set;
	vec_push(ret, m);
}

static void add_values(const struct condition_place *place, const struct known_condition *form,
		       struct values v, bool part, struct matches *ret)
{
	struct arena *arena = place->values.arena;
	struct match m = match_any;

	m.families = form->families;
	m.loose = form->loose;
	m.parts = (uint16_t)(part ? 1u << form->field : 0);
	if (form->proto)
		match_narrow(arena, &m, MATCH_PROTO, values_one(arena, form->proto, form->proto));
	match_narrow(arena, &m, form->field, v);
	vec_push(ret, m);
}

static void read_form(const struct condition_place *place, const struct known_condition *form,
		      const char *op, const struct json *right, struct matches *ret)
{
	struct values v = {0};
	bool known = read_values(place, form, op, right, &v);
	const struct json *dynamic = v.part ? find_dynamic(place, form, op, right) : NULL;

	if (known)
		add_values(place, form, v, v.part && !dynamic, ret);
	if (dynamic)
		add_dynamic(form, dynamic, ret);
	if (known || dynamic)
		return;
	condition_omit(ret);
	vec_last(ret)->families = form->families;
}

// ---- TCP flags, fragments -----------------------------------------------------------------------

static bool read_flags(const struct json *j, uint8_t *ret)
{
	uint32_t bits;

	if (json_kind(j) == JSON_IS_ARRAY) {
		for (size_t i = 0; i < json_length(j); i++)
			if (!read_flags(json_at(j, i), ret))
				return false;
		return true;
	}
	if (json_kind(j) == JSON_IS_NUMBER)
		bits = (uint32_t)json_number(j);
	else if (json_kind(j) != JSON_IS_STRING || !import_word(KIND_FLAG, json_text(j), &bits))
		return false;
	*ret |= (uint8_t)bits;
	return bits < 256;
}

static void set_flags(const struct condition_place *place, uint8_t flags, uint8_t mask,
		      struct matches *ret)
{
	struct match m = match_any;

	if (flags & ~mask || !mask) {
		condition_omit(ret);
		return;
	}
	m.flagged = true;
	m.flags = flags;
	m.mask = mask;
	match_narrow(place->values.arena, &m, MATCH_PROTO, values_one(place->values.arena, 6, 6));
	vec_push(ret, m);
}

// "tcp flags syn" means: one of these. "== syn": these and no other.
static void read_tcp_flags(const struct condition_place *place, const char *op,
			   const struct json *right, struct matches *ret)
{
	uint8_t flags = 0;
	bool known = read_flags(right, &flags);
	bool single = !(flags & (flags - 1));

	if (known && !strcmp(op, "=="))
		set_flags(place, flags, 255, ret);
	else if (known && single && !strcmp(op, "in"))
		set_flags(place, flags, flags, ret);
	else if (known && !strcmp(op, "!"))
		set_flags(place, 0, flags, ret);
	else
		condition_omit(ret);
}

// {"&": [LEFT, MASK]}
static void read_masked(const struct condition_place *place, const struct json *pair,
			const char *op, const struct json *right, struct matches *ret)
{
	uint8_t flags = 0, mask = 0;

	if (is_payload(json_at(pair, 0), "tcp", "flags") && !strcmp(op, "==") &&
	    read_flags(json_at(pair, 1), &mask) && read_flags(right, &flags)) {
		set_flags(place, flags, mask, ret);
		return;
	}
	condition_omit(ret);
	// The kernel puts packets together before the hook input: fragments do not exist there.
	if (is_payload(json_at(pair, 0), "ip", "frag-off"))
		vec_last(ret)->families = MATCH_V4;
}

// ---- conditions ---------------------------------------------------------------------------------

static void read_single(const struct condition_place *place, const struct json *left,
			const char *op, const struct json *right, struct matches *ret)
{
	const struct json *inside;
	const char *object = ruleset_key(left, &inside);
	const struct known_condition *form = find_form(object, inside);

	if (form)
		read_form(place, form, op, right, ret);
	else if (!strcmp(object, "ct"))
		condition_ct(place, inside, op, right, ret);
	else if (is_payload(left, "tcp", "flags"))
		read_tcp_flags(place, op, right, ret);
	else if (!strcmp(object, "&"))
		read_masked(place, inside, op, right, ret);
	else if (!strcmp(object, "meta"))
		condition_meta(place, name_of(inside), op, right, ret);
	else
		condition_omit(ret);
}

// One combination of values: each part of the key has its part of the value.
static void read_parts(const struct condition_place *place, const struct json *parts,
		       const struct json *values, struct matches *ret)
{
	struct matches all = {0};

	vec_push(&all, match_any);
	for (size_t i = 0; i < json_length(parts); i++) {
		struct matches part = {0};

		read_single(place, json_at(parts, i), "==", json_at(values, i), &part);
		matches_meet(place->values.arena, &all, &part);
		vec_free(&part);
	}
	vec_each (&all, m)
		vec_push(ret, *m);
	vec_free(&all);
}

void condition_equals(const struct condition_place *place, const struct json *key,
		      const struct json *value, struct matches *ret)
{
	const struct json *parts, *values;

	if (!strcmp(ruleset_key(value, &values), "elem")) {
		condition_equals(place, key, json_get(values, "val"), ret);
		return;
	}
	if (strcmp(ruleset_key(key, &parts), "concat")) {
		read_single(place, key, "==", value, ret);
		return;
	}
	if (strcmp(ruleset_key(value, &values), "concat") ||
	    json_length(values) != json_length(parts))
		condition_omit(ret);
	else
		read_parts(place, parts, values, ret);
}

// Keys that every packet of the hook has.
static bool is_always_there(const char *object, const struct json *inside)
{
	static const char *const keys[] = {"iif", "iifname", "mark", "nfproto", "protocol"};
	const char *key = name_of(inside);

	if (!strcmp(object, "ct"))
		return !strcmp(key, "state");
	for (size_t i = 0; !strcmp(object, "meta") && i < ARRAY_SIZE(keys); i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

// A header of another protocol may be too short for "th dport".
static void key_of_one(const struct condition_place *place, const struct json *key,
		       struct matches *ret)
{
	const struct json *inside;
	const char *object = ruleset_key(key, &inside);
	const struct known_condition *form = find_form(object, inside);
	struct match m = match_any;

	if (form)
		m.families = form->families;
	if (form && form->proto)
		match_narrow(place->values.arena, &m, MATCH_PROTO,
			     values_one(place->values.arena, form->proto, form->proto));
	if (form ? form->loose || !strcmp(form->group, "th") : !is_always_there(object, inside))
		match_omit(&m);
	vec_push(ret, m);
}

void condition_key(const struct condition_place *place, const struct json *key, struct matches *ret)
{
	const struct json *parts;

	if (!strcmp(ruleset_key(key, &parts), "elem"))
		parts = key = json_get(parts, "val");
	if (strcmp(ruleset_key(key, &parts), "concat")) {
		key_of_one(place, key, ret);
		return;
	}
	vec_push(ret, match_any);
	for (size_t i = 0; i < json_length(parts); i++) {
		struct matches part = {0};

		key_of_one(place, json_at(parts, i), &part);
		matches_meet(place->values.arena, ret, &part);
		vec_free(&part);
	}
}

#define COMBINATIONS 256

static const struct known_condition *form_at(const struct json *parts, size_t i)
{
	const struct json *inside;
	const char *object = ruleset_key(json_at(parts, i), &inside);

	return find_form(object, inside);
}

// Is it `ip daddr . tcp dport`, or another address and a port of the same end?
static bool read_pair_key(const struct json *left, struct pair_key *ret)
{
	const struct json *parts;
	const struct known_condition *first, *second;

	ruleset_key(left, &parts);
	first = form_at(parts, 0);
	second = form_at(parts, 1);
	if (json_length(parts) != 2 || !first || !second)
		return false;
	ret->port = first->kind == KIND_ADDRESS ? 1 : 0;
	if (!ret->port) {
		const struct known_condition *address = second;

		second = first;
		first = address;
	}
	ret->side = first->field == MATCH_DST;
	ret->families = first->families;
	ret->proto = second->proto;
	return first->kind == KIND_ADDRESS &&
	       second->field == (ret->side ? MATCH_DPORT : MATCH_SPORT);
}

// The elements that are no pairs are alternatives of their own.
static void read_pairs(const struct condition_place *place, const struct json *left,
		       const struct pair_elements *e, struct matches *ret)
{
	if (e->n_others > COMBINATIONS) {
		condition_omit(ret);
		return;
	}
	for (size_t i = 0; i < e->n_others; i++)
		condition_equals(place, left, e->others[i], ret);
}

static bool may_expire(const struct json *list)
{
	for (size_t i = 0; i < json_length(list); i++)
		if (value_expires(json_at(list, i)))
			return true;
	return false;
}

static void read_concat(const struct condition_place *place, const struct json *left,
			const char *op, const struct json *right, struct matches *ret)
{
	const struct json *list = value_elements(&place->values, right);
	bool named = json_kind(list) == JSON_IS_OBJECT && json_get(list, "name");
	struct pair_elements elements;
	struct pair_key key;

	if (list && (!strcmp(op, "==") || !strcmp(op, "in")) && read_pair_key(left, &key) &&
	    condition_pairs(place, &key, list, &elements, ret)) {
		read_pairs(place, left, &elements, ret);
		return;
	}
	if (!list || (strcmp(op, "==") && strcmp(op, "in")) ||
	    (named && value_changes(place->values.ruleset, list))) {
		condition_omit(ret);
		return;
	}
	list = named ? json_get(list, "elem") : list;
	if (json_kind(list) != JSON_IS_ARRAY) {
		if (list)
			condition_equals(place, left, list, ret);
		return;
	}
	if (json_length(list) > COMBINATIONS || may_expire(list)) {
		condition_omit(ret);
		return;
	}
	for (size_t i = 0; i < json_length(list); i++)
		condition_equals(place, left, json_at(list, i), ret);
}

void condition_read(const struct condition_place *place, const struct json *j, struct matches *ret)
{
	const struct json *left = json_get(j, "left"), *right = json_get(j, "right"), *inside;
	const char *op = json_get_string(j, "op");

	if (!left || !right || !op)
		condition_omit(ret);
	else if (!strcmp(ruleset_key(left, &inside), "concat"))
		read_concat(place, left, op, right, ret);
	else
		read_single(place, left, op, right, ret);
}
