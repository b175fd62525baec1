// SPDX-License-Identifier: GPL-2.0-only
// Turns the user's words into references: names resolved, dangerous answers left out.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/control/entries/items.h"
#include "ctl/control/entries/store.h"
#include "ctl/control/guard.h"
#include "ctl/net/dns.h"
#include "ctl/net/geo_db.h"

struct targets {
	struct items items;
	struct dns_answer *answers; // one for each distinct name in items
	const char **names;
	size_t names_n;
	struct geo *geos; // each country and autonomous system once
	struct geo_ranges *ranges;
	size_t geos_n;
	bool asked; // set by targets_resolve
};

// The verb, its options, and who asks.
struct intent {
	unsigned kinds;   // default kinds, bits 1 << enum overlay_kind, of one verb
	bool allow;       // the verb
	uint64_t until_s; // default expiry, wall clock, RECORD_NEVER
	uint64_t now_s;
	const char *origin, *list, *note, *by; // "" if not given
	bool fleeting;
	uint32_t group; // --group, of addresses; 0: none
};

unsigned kinds_of(bool allow, bool from, bool to);
// All kinds of outgoing calls, and all kinds, of one verb.
unsigned kinds_out(bool allow);
unsigned kinds_all(bool allow);

// Resolves the names of n targets in parallel, each name once, and reads databases for their
// countries. 0 if the resolver worked, else -errno with err set.
int targets_resolve(struct targets *const *list, size_t n, const struct dns_options *options,
		    struct err *err);
// Returns 0 if each name has an address and each country a prefix; else -errno with err set. A name
// without an address is ERR_INPUT, and the error names the first one with its reason; a resolver
// that did not answer is ERR_SYSTEM.
int targets_check_answers(const struct targets *t, struct err *err);
// Drops the answers that must not be blocked (guard_sift), and calls back for each one. A name
// without any answer left is ERR_REFUSED.
int targets_skip(struct targets *t, const struct guard *g, bool wide,
		 void (*skipped)(void *ctx, const char *name, const struct addr *a,
				 const char *why),
		 void *ctx, struct err *err);
void targets_free(struct targets *t);

// Finds the answer for a name of the items.
const struct dns_answer *targets_answer(const struct targets *t, const char *name);
// Finds the prefixes of "country DE"; NULL for another name.
const struct geo_ranges *targets_ranges(const struct targets *t, const char *name);

// Loads the records that the two functions below change. 0 or -errno with err set.
int targets_load(const struct targets *t, const struct intent *intent, struct store *b,
		 struct err *err);
// Adds everything to the store's records. Addresses are added; the addresses of a name, and of a
// --sync list, are replaced by the present ones.
void targets_record(const struct targets *t, const struct intent *intent, struct store *b,
		    struct records_change *ret);
// Removes the references of intent->origin and ->list to the addresses and names.
void targets_unrecord(const struct targets *t, const struct intent *intent, struct store *b,
		      size_t *ret_removed);

// Reads the countries of n targets, for targets_resolve.
int targets_find_ranges(struct targets *const *list, size_t n, struct err *err);
int targets_check_ranges(const struct targets *t, struct err *err);
void targets_free_ranges(struct targets *t);

// Returns the form in which host names are compared: lower case, no final dot; countries unchanged.
// The caller frees it.
char *target_name(const char *name);
