// SPDX-License-Identifier: GPL-2.0-only
// Shared by the parts of resolve.
#pragma once

#include <string.h>

#include "ctl/policy/ast.h"
#include "ctl/policy/cidr.h"
#include "ctl/policy/domain.h"
#include "ctl/policy/env.h"
#include "ctl/policy/expand.h"
#include "ctl/policy/list.h"
#include "ctl/policy/resolved.h"
#include "ctl/policy/services.h"
#include "ctl/policy/value.h"

enum value_kind {
	VALUE_NONE,
	VALUE_PREFIXES,
	VALUE_SELF,
	VALUE_HOST,
	VALUE_SET,
	VALUE_FILE,
	VALUE_GEO,
};

struct item_value {      // the value of an item of an address list; equal items share one
	uint8_t kind;    // enum value_kind
	bool broken;     // an error was found in it
	uint32_t number; // number of the host, set, list file or geo_item
	const struct prefix *prefixes; // VALUE_PREFIXES
	size_t n;
};

struct list_file {
	const char *key;             // path and options
	const struct ast_item *item; // where it was named first
	struct list list;            // sorted; empty when it was refused
	bool refused;
	uint16_t file; // of locations
};

struct host { // a name of the policy
	const char *name;
	struct diag_at at; // first location in the policy; for lists, of the file element
	struct place place;
	uint32_t list;  // number of the list file that has it, INDEX_NONE: the policy itself
	bool tolerated; // in a lax list: no answer is not an error
	enum policy_use use;
	struct diag_at
		dropped_at; // POLICY_DROPPED: the item of a drop or reject rule, or of its set
	struct addr *addrs; // sorted, without unspecified and loopback ones
	size_t n;
	struct addr *open; // which of addrs drop and reject rules have
	size_t n_open;
	bool failed; // no answer
	uint32_t ttl_s;
	bool stale;
};

struct geo_item { // a country or autonomous system of the policy
	struct geo geo;
	struct diag_at at; // first place
	struct prefix *prefixes;
	size_t n;
	bool failed; // no answer
};

struct set_value {
	struct cidr_set whole;
	struct cidr_set open; // if split: without what drop and reject rules leave out
	bool split;
	enum policy_use use;
	bool fixed, listed, asked, broken;
	uint32_t address; // index into `addresses`
};

struct address_facts {
	uint8_t not_families; // families in the list whose "not" this is; 1: IPv4, 2: IPv6
	bool broken;          // an error was found in it: that it is empty is not reported again
};

struct resolver {
	struct ast *ast;
	const struct policy_env *env;
	struct diag *diag;
	struct resolved *r;
	struct expander expander;
	struct arena scratch;

	struct services services;
	bool services_read, services_failed;

	VEC(struct item_value) items;
	struct index item_index; // by spelling
	struct index list_index; // by path and options
	bool feeds_left_out;     // the policy has errors already: no feed is fetched
	VEC(struct list_file) lists;
	struct index host_index;
	VEC(struct host) hosts;
	VEC(struct geo_item) geos; // one for each value of that kind
	struct addr *own;
	size_t n_own;
	bool own_read;

	struct set_value *sets;     // by number of the ast
	struct index address_index; // lists by their text
	VEC(struct resolved_addresses) addresses;
	VEC(struct address_facts) facts; // for each
	VEC(struct resolved_file) files;
	VEC(struct resolved_pair_set) pairs;
	size_t all_pairs;                // so far
	VEC(struct resolved_edges) macs; // the lists of MAC addresses, each once
	size_t edges;                    // of these lists
	bool too_many_macs;              // more than POLICY_MACS, which has been reported
	size_t prefixes;                 // so far
	bool too_many;                   // more than POLICY_PREFIXES, which has been reported
};

static inline struct place resolve_at(const struct resolver *r, struct diag_at at, uint32_t line)
{
	// The diag may have had files before; the files of a policy are consecutive.
	if (!at.file)
		return (struct place){0};
	return (struct place){.file = (uint16_t)(at.file->index - r->ast->files.at[0]->index),
			      .line = line};
}

static inline struct place resolve_place(const struct resolver *r, const struct ast_item *item)
{
	return resolve_at(r, item->at, item->line);
}

// For a list that is used at `use`.
static inline struct value resolve_value(struct resolver *r, struct diag_at use)
{
	return (struct value){.diag = r->diag, .expander = &r->expander, .r = r->r, .use = use};
}

// The dynamic set of that name; n_dynamics: none, or too many, which is an error already.
static inline uint32_t resolve_dynamic(const struct resolved *r, const char *name)
{
	uint32_t i = 0;

	while (i < r->n_dynamics && strcmp(r->dynamics[i].name, name) != 0)
		i++;
	return i;
}

// resolve_item.c: the number of an item's value; reads it, and queues its errors, the first time.
uint32_t resolve_item(struct resolver *r, struct ast_item *item);

// resolve_list.c: fetches all feeds, before they are read.
void resolve_urls(struct resolver *r);

// The list file of an AST_FILE or AST_URL; read once for equal path and options.
struct list_file *resolve_list(struct resolver *r, const struct ast_item *item);

// resolve_use.c: finds all names and reads all list files.
void resolve_collect(struct resolver *r);

// Finds what names and sets are used for, before names are asked for.
void resolve_uses(struct resolver *r);
static inline enum policy_use resolve_use_of_rule(const struct ast_rule *rule)
{
	return rule->action == ACTION_DROP || rule->action == ACTION_REJECT ? POLICY_DROPPED
									    : POLICY_WHOLE;
}
static inline enum policy_use resolve_use_of_expect(const struct ast_expect *expect)
{
	return expect->verdict == EXPECT_DROP || expect->verdict == EXPECT_REJECT ? POLICY_EXPECTED
										  : POLICY_WHOLE;
}

// resolve_host.c: asks for all names at once, and keeps what may be loaded.
void resolve_hosts(struct resolver *r);
uint32_t resolve_add_host(struct resolver *r, const struct ast_item *item); // its number
// The names of a list file; `item` is where it is named.
void resolve_add_hosts(struct resolver *r, const struct ast_item *item, uint32_t list);
const struct host *resolve_host(const struct resolver *r, const char *name); // in normal form
// Addresses of this host, asked for once; an error is queued at `at`.
const struct addr *resolve_own(struct resolver *r, struct diag_at at, size_t *ret_n);

// resolve_geo.c: asks for all countries and autonomous systems at once.
uint32_t resolve_add_geo(struct resolver *r, const struct ast_item *item, const struct geo *geo);
void resolve_geos(struct resolver *r);

// resolve_set.c
void resolve_sets(struct resolver *r);
// The value of expanded leaves for a use.
struct leaves_about {
	bool fixed;         // it is the same next time
	bool listed, asked; // as of struct resolved_addresses
	bool broken;        // an error was found in it
};
struct cidr_set resolve_leaves(struct resolver *r, const struct leaves *leaves, enum policy_use use,
			       struct leaves_about *ret);
// Has it other addresses in drop and reject rules?
bool resolve_splits(struct resolver *r, const struct leaves *leaves);
// The list as a field of a rule or service.
struct resolved_address resolve_address(struct resolver *r, const struct ast_list *list,
					enum policy_use use);

// resolve_ports.c: reports errors of a set of numbers where it is written. Rules read it again,
// because the numbers of ports depend on the protocol.
void resolve_number_set(struct resolver *r, uint32_t number);
// resolve_pairs.c
void resolve_pair_set(struct resolver *r, uint32_t number);
// The set of pairs that is the only item of a list; INDEX_NONE: it has none.
uint32_t resolve_pairs_of(struct resolver *r, const struct ast_list *list, bool *ret_negated);
struct pairs_end { // what a rule has at one end
	struct resolved_address *address;
	struct resolved_ranges *ports;
	struct resolved_pairs *pairs;
};
// AST_FROM or AST_TO; false with an error queued. Without a set of pairs nothing changes.
bool resolve_pairs(struct resolver *r, const struct ast_rule *ast, enum ast_field side,
		   const struct pairs_end *ret);

int resolve_ports(struct resolver *r, const struct ast_list *list, struct diag_at use,
		  const uint64_t protos[4], struct resolved_ranges *ret);

void resolve_settings(struct resolver *r); // resolve_setting.c: also interfaces and dynamic sets
void resolve_services(struct resolver *r); // resolve_service.c
void resolve_rules(struct resolver *r);    // resolve_rule.c
void resolve_expects(struct resolver *r);  // resolve_expect.c
// Completes a packet that a backend of a service sends, and proves that it is an answer: else an
// error is queued. resolve_answer.c
void resolve_answer(struct resolver *r, const struct ast_expect *ast, uint32_t service,
		    struct resolved_packet *p);

// Parts of these. False with errors queued.
bool resolve_options(struct resolver *r, const struct ast_service *ast,
		     struct resolved_service *ret); // and backends
bool resolve_check(struct resolver *r, const struct ast_service *service,
		   struct resolved_check *ret);
void resolve_overlaps(struct resolver *r); // resolve_overlap.c: an error for each
void resolve_nat(struct resolver *r);      // resolve_nat.c: addresses that modes nat can translate
bool resolve_fields(struct resolver *r, const struct ast_rule *ast,
		    struct resolved_rule *ret); // all but addresses and ports
