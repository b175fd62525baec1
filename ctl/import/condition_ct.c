// SPDX-License-Identifier: GPL-2.0-only
// Conditions of connection tracking. Weir's `established` matches more packets than the kernel's,
// and only in the default zone.
#include "ctl/import/condition_ct.h"

#include <string.h>

#include "ctl/base/vec.h"

static void add_types(struct arena *arena, uint8_t family, const uint8_t (*spans)[2], size_t n,
		      bool loose, struct matches *ret)
{
	struct interval *at = arena_zalloc(arena, n, sizeof(*at));
	struct match m = match_any;
	unsigned proto = family == MATCH_V4 ? 1 : 58;

	for (size_t i = 0; i < n; i++)
		at[i] = (struct interval){spans[i][0], spans[i][1]};
	m.families = family;
	m.loose = loose;
	match_narrow(arena, &m, MATCH_PROTO, values_one(arena, proto, proto));
	match_narrow(arena, &m, MATCH_TYPE, (struct values){.at = at, .n = match_sort(at, n)});
	vec_push(ret, m);
}

static void add_errors(struct arena *arena, struct matches *ret)
{
	static const uint8_t errors4[][2] = {{3, 5}, {11, 12}}, errors6[][2] = {{1, 4}};

	add_types(arena, MATCH_V4, errors4, 2, true, ret);
	add_types(arena, MATCH_V6, errors6, 1, true, ret);
}

// Weir's `established` has TCP and UDP only. The kernel also tracks ICMP requests with their
// answers, and other protocols by address.
void condition_established(struct arena *arena, bool errors, struct matches *ret)
{
	static const uint8_t answers4[][2] = {{0, 0}, {14, 14}, {16, 16}, {18, 18}};
	static const uint8_t answers6[][2] = {{129, 129}, {140, 140}};
	static const uint8_t tracked[] = {1, 6, 17, 58};
	struct match m = match_any;

	m.loose = m.established = true;
	vec_push(ret, m);
	add_types(arena, MATCH_V4, answers4, 4, true, ret);
	add_types(arena, MATCH_V6, answers6, 2, true, ret);
	m.established = false;
	for (size_t i = 0; i < sizeof(tracked); i++)
		match_narrow(
			arena, &m, MATCH_PROTO,
			match_complement(arena, values_one(arena, tracked[i], tracked[i]), 255));
	vec_push(ret, m);
	if (errors)
		add_errors(arena, ret);
}

static const char *const states[] = {"established", "related", "new", "invalid", "untracked"};

static bool read_state(const struct json *j, unsigned *states_seen)
{
	const struct json *set;
	bool known = false;

	if (!strcmp(ruleset_key(j, &set), "set"))
		j = set;
	if (json_kind(j) == JSON_IS_ARRAY) {
		for (size_t i = 0; i < json_length(j); i++)
			if (!read_state(json_at(j, i), states_seen))
				return false;
		return true;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(states); i++)
		if (json_kind(j) == JSON_IS_STRING && !strcmp(json_text(j), states[i])) {
			*states_seen |= 1u << i;
			known = true;
		}
	return known;
}

// A rule that drops invalid packets is omitted, but which packets does it take from later rules?
// A SYN begins a connection, answers and errors of ICMP need one, and all others are invalid only
// with wrong checksums.
static void add_invalid(struct arena *arena, struct matches *ret)
{
	static const uint8_t flags[][2] = {{0, 2}, {18, 18}, {3, 3}, {6, 6}}; // and their mask
	struct match m = match_any;

	m.loose = m.omitted = m.flagged = true;
	match_narrow(arena, &m, MATCH_PROTO, values_one(arena, 6, 6));
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		m.flags = flags[i][0];
		m.mask = flags[i][1];
		vec_push(ret, m);
	}
	m = match_any;
	match_omit(&m);
	for (size_t i = 0; i < 2; i++) {
		m.families = i ? MATCH_V6 : MATCH_V4;
		m.f[MATCH_PROTO] = values_one(arena, i ? 58 : 1, i ? 58 : 1);
		vec_push(ret, m);
	}
}

static bool negates(const char *op, const struct json *right)
{
	return !strcmp(op, "!") || (!strcmp(op, "!=") && json_kind(right) != JSON_IS_ARRAY);
}

// Weir's `not established` has fewer packets than the kernel's, which suits a drop: packets of TCP
// and UDP without a connection. Related ones have none either, where there are expectations.
static bool read_untracked(const struct condition_place *place, const char *op,
			   const struct json *right, unsigned seen, struct matches *ret)
{
	const struct import_facts *facts = &place->options->facts;
	struct match m = match_any;

	if (!place->values.drops || !negates(op, right) || !(seen & 1) || seen & ~3u ||
	    facts->zones || (seen & 2 && facts->helpers))
		return false;
	m.untracked = true;
	vec_push(ret, m);
	return true;
}

// Packets that the kernel leaves untracked by itself: neighbour and listener discovery.
static void read_states(const struct condition_place *place, const char *op,
			const struct json *right, struct matches *ret)
{
	static const uint8_t untracked[][2] = {{130, 136}, {143, 143}};
	const struct import_facts *facts = &place->options->facts;
	unsigned seen = 0;
	bool known = read_state(right, &seen);

	if (known && seen == 8 && place->values.drops && strncmp(op, "!", 1) != 0) {
		add_invalid(place->values.arena, ret);
		return;
	}
	if (known && read_untracked(place, op, right, seen, ret))
		return;
	if (!known || (strcmp(op, "==") && strcmp(op, "in")) || seen & 12 ||
	    (seen & 16 && facts->untracks) || (seen & 2 && facts->helpers) || facts->zones) {
		condition_omit(ret);
		return;
	}
	if (seen & 1)
		condition_established(place->values.arena, seen & 2, ret);
	else if (seen & 2)
		add_errors(place->values.arena, ret);
	if (seen & 16)
		add_types(place->values.arena, MATCH_V6, untracked, 2, true, ret);
}

// The first rules of the policy pass the packets whose destination is rewritten, but their
// answers have this status too, and connections of this host that a chain of hook output rewrites.
static void read_rewritten(const struct condition_place *place, struct matches *ret)
{
	const struct import_facts *facts = &place->options->facts;

	if (facts->zones || facts->helpers)
		condition_omit(ret);
	else
		condition_established(place->values.arena, true, ret);
}

void condition_ct(const struct condition_place *place, const struct json *left, const char *op,
		  const struct json *right, struct matches *ret)
{
	bool dnat = text_same(json_get_string(left, "key"), "status") &&
		    text_same(json_text(right), "dnat") && (!strcmp(op, "==") || !strcmp(op, "in"));

	if (text_same(json_get_string(left, "key"), "state"))
		read_states(place, op, right, ret);
	else if (dnat)
		read_rewritten(place, ret);
	else
		condition_omit(ret);
}
