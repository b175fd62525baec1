// SPDX-License-Identifier: GPL-2.0-only
// A ruleset of nft as its JSON has it: tables, chains, sets and rules, found by name.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/json.h"
#include "ctl/base/vec.h"
#include "ctl/import/match.h"
#include "ctl/import/options.h"

struct nft_chain {
	const char *family, *table, *name;
	const char *type, *hook;        // NULL: not a base chain
	bool drops;                     // the policy of a base chain
	VEC(const struct json *) rules; // in order
	size_t first;                   // number of its first rule in the ruleset, from 0
	size_t object;                  // its number in the document
	bool dormant;                   // its table is: the kernel does not run it
};

// A set or map, and what rules do to it.
struct nft_set {
	const struct json *json;
	size_t fillers; // rules that add elements or remove them
	bool shrinks;   // a rule removes elements
};

struct ruleset {
	struct json *document;
	VEC(struct nft_chain) chains;
	VEC(const struct json *) sets;       // sets and maps
	VEC(const struct json *) dormant;    // tables
	VEC(const struct nft_chain *) early; // base chains of hook prerouting
	VEC(struct nft_chain *) chains_by_name;
	VEC(struct nft_set) sets_by_name;
	size_t n_rules;
	struct import_facts facts;
	bool nat;       // has a chain of type nat
	bool redirects; // a rule rewrites destinations
	bool offloads;  // has a flow table, whose packets skip the hook forward
	bool stateful;  // a rule reads connection tracking
	// A rule that takes packets from the hooks of the ruleset; NULL: none.
	const char *diverter;
	size_t diverter_rule;
	bool forwards; // it takes them from the hook input too
};

// *ret is zero before. 0, or -EINVAL with err set.
int ruleset_read(const char *text, size_t len, struct ruleset *ret, struct err *err);
void ruleset_free(struct ruleset *r);
#define CLEANUP_RULESET CLEANUP(ruleset_free)

// NULL: it does not exist.
const struct nft_chain *ruleset_chain(const struct ruleset *r, const char *family,
				      const char *table, const char *name);
const struct json *ruleset_set(const struct ruleset *r, const struct nft_chain *user,
			       const char *name);
// How many rules add elements to the set or remove them.
size_t ruleset_fillers(const struct ruleset *r, const struct json *set);
// Does a rule remove elements?
bool ruleset_shrinks(const struct ruleset *r, const struct json *set);
uint8_t ruleset_families(const char *family); // MATCH_…; 0: not a family of IP packets

// The key of an object with one key, and its value.
const char *ruleset_key(const struct json *object, const struct json **ret_value);
