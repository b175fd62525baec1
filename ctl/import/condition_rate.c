// SPDX-License-Identifier: GPL-2.0-only
// Limits, meters and sets with a limit, as rates of Weir.
#include "ctl/import/condition_rate.h"

#include <string.h>

#include "ctl/base/vec.h"

struct rate {
	const struct json *limit;
	const char *per; // with a blank before it
	uint8_t families;
	uint64_t expire_s; // after this time without a packet the bucket is full; 0: never
};

static const struct {
	const char *nft, *weir;
	uint64_t seconds;
} units[] = {{"second", "s", 1}, {"minute", "min", 60}, {"hour", "h", 3600}};

static const char *rate_text(struct arena *arena, const struct rate *r)
{
	const char *unit = json_get_string(r->limit, "per");
	uint64_t rate = json_get_u64(r->limit, "rate"), burst = json_get_u64(r->limit, "burst");

	burst = burst ? burst : 5;
	if (!unit || !rate || rate > 1000000 || burst > 1000000 || json_get(r->limit, "rate_unit"))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		// Weir's bucket is full at least as soon.
		if (!strcmp(units[i].nft, unit) &&
		    (!r->expire_s || r->expire_s * rate >= burst * units[i].seconds))
			return arena_printf(
				arena, "%ju/%s burst %ju%s", (uintmax_t)rate, units[i].weir,
				(uintmax_t)import_burst(burst, rate, units[i].seconds), r->per);
	return NULL;
}

static void add_rate(const struct condition_place *place, const struct rate *r, struct matches *ret)
{
	struct match m = match_any;

	m.families = r->families;
	m.over = json_is_yes(json_get(r->limit, "inv"));
	// A set that is full ends the rule, so that nft accepts the packets of other addresses.
	if (!m.over || !r->per[0])
		m.rate = rate_text(place->values.arena, r);
	if (!m.rate)
		match_omit(&m);
	vec_push(ret, m);
}

// For how long an element stays after its last packet. False: that does not depend on packets.
static bool read_expiry(const struct condition_place *place, const char *key, const struct json *j,
			const struct json *elem, uint64_t *ret_s)
{
	const char *name = json_get_string(j, "set");
	const struct json *set = name ? ruleset_set(place->values.ruleset, place->values.chain,
						    name + (name[0] == '@'))
				      : NULL;
	const struct json *own = json_get(elem, "timeout");

	if (strcmp(key, "set"))
		return !own; // a meter adds elements that later packets do not renew
	if (!set || (own && json_kind(own) != JSON_IS_NUMBER) ||
	    ruleset_fillers(place->values.ruleset, set) != 1)
		return false;
	*ret_s = own ? json_number(own) : json_get_u64(set, "timeout");
	return !*ret_s || text_same(json_get_string(j, "op"), "update");
}

static bool read_per(const struct json *key, struct rate *ret)
{
	static const struct {
		const char *protocol, *field, *per;
		uint8_t families;
	} keys[] = {
		{"ip", "saddr", " per source", MATCH_V4},
		{"ip6", "saddr", " per source mask 32/128", MATCH_V6},
		{"ip", "daddr", " per destination", MATCH_V4},
		{"ip6", "daddr", " per destination mask 32/128", MATCH_V6},
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (is_payload(key, keys[i].protocol, keys[i].field)) {
			ret->per = keys[i].per;
			ret->families = keys[i].families;
			return true;
		}
	return false;
}

// A rate per source and port, and ct count, go here when the language has them.
void condition_rate(const struct condition_place *place, const char *key, const struct json *j,
		    struct matches *ret)
{
	const struct json *elem = json_get(j, strcmp(key, "set") ? "key" : "elem");
	const struct json *stmt = json_get(j, "stmt"), *inside = NULL;
	struct rate r = {.limit = j, .per = "", .families = MATCH_BOTH};

	if (!strcmp(key, "limit")) {
		add_rate(place, &r, ret);
		return;
	}
	stmt = json_kind(stmt) == JSON_IS_ARRAY ? json_at(stmt, 0) : stmt;
	r.limit = json_get(stmt, "limit");
	if (strcmp(ruleset_key(elem, &inside), "elem"))
		inside = NULL;
	if (r.limit && read_per(inside ? json_get(inside, "val") : elem, &r) &&
	    read_expiry(place, key, j, inside, &r.expire_s))
		add_rate(place, &r, ret);
	else
		condition_omit(ret);
}
