// SPDX-License-Identifier: GPL-2.0-only
// Finds the place of each object of the document.
#include "ctl/import/ruleset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/import/words.h"

#define DORMANT 1000 // tables

struct first {
	const char *key;
	const struct json *value;
};

static void take_first(void *ctx, const char *key, const struct json *value)
{
	struct first *f = ctx;

	if (!f->key)
		*f = (struct first){key, value};
}

const char *ruleset_key(const struct json *object, const struct json **ret_value)
{
	struct first f = {0};

	if (json_kind(object) == JSON_IS_OBJECT)
		json_each(object, take_first, &f);
	*ret_value = f.value;
	return f.key ? f.key : "";
}

uint8_t ruleset_families(const char *family)
{
	if (!strcmp(family, "inet"))
		return MATCH_BOTH;
	if (!strcmp(family, "ip"))
		return MATCH_V4;
	return !strcmp(family, "ip6") ? MATCH_V6 : 0;
}

// ---- names --------------------------------------------------------------------------------------

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_chain(const struct nft_chain *a, const struct nft_chain *b)
{
	int order = compare_text(a->name, b->name);

	order = order ? order : compare_text(a->table, b->table);
	return order ? order : compare_text(a->family, b->family);
}

static int compare_chains(const void *a, const void *b)
{
	const struct nft_chain *x = *(struct nft_chain *const *)a,
			       *y = *(struct nft_chain *const *)b;
	int order = compare_chain(x, y);

	return order ? order : x < y ? -1 : x > y;
}

const struct nft_chain *ruleset_chain(const struct ruleset *r, const char *family,
				      const char *table, const char *name)
{
	const struct nft_chain wanted = {.family = family, .table = table, .name = name};
	size_t low = 0, high = r->chains_by_name.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = compare_chain(&wanted, r->chains_by_name.at[middle]);

		if (!order)
			return r->chains_by_name.at[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static int compare_sets(const void *a, const void *b)
{
	static const char *const keys[] = {"name", "table", "family"};
	const struct nft_set *x = a, *y = b;
	int order = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && !order; i++)
		order = compare_text(json_get_string(x->json, keys[i]),
				     json_get_string(y->json, keys[i]));
	return order;
}

struct set_name {
	const char *family, *table, *name;
};

static int compare_set_name(const void *key, const void *item)
{
	const struct set_name *wanted = key;
	const struct json *j = ((const struct nft_set *)item)->json;
	int order = compare_text(wanted->name, json_get_string(j, "name"));

	order = order ? order : compare_text(wanted->table, json_get_string(j, "table"));
	return order ? order : compare_text(wanted->family, json_get_string(j, "family"));
}

static struct nft_set *find_set(const struct ruleset *r, const char *family, const char *table,
				const char *name)
{
	const struct set_name wanted = {family, table, name};

	return r->sets_by_name.n ? bsearch(&wanted, r->sets_by_name.at, r->sets_by_name.n,
					   sizeof(*r->sets_by_name.at), compare_set_name)
				 : NULL;
}

static const struct nft_set *set_of(const struct ruleset *r, const struct json *set)
{
	return find_set(r, json_get_string(set, "family"), json_get_string(set, "table"),
			json_get_string(set, "name"));
}

const struct json *ruleset_set(const struct ruleset *r, const struct nft_chain *user,
			       const char *name)
{
	const struct nft_set *set = find_set(r, user->family, user->table, name);

	return set ? set->json : NULL;
}

size_t ruleset_fillers(const struct ruleset *r, const struct json *set)
{
	const struct nft_set *known = set_of(r, set);

	return known ? known->fillers : 0;
}

bool ruleset_shrinks(const struct ruleset *r, const struct json *set)
{
	const struct nft_set *known = set_of(r, set);

	return known && known->shrinks;
}

// ---- chains -------------------------------------------------------------------------------------

static int add_chain(struct ruleset *r, const struct json *j, size_t i, struct err *err)
{
	struct nft_chain c = {
		.family = json_get_string(j, "family"),
		.table = json_get_string(j, "table"),
		.name = json_get_string(j, "name"),
		.type = json_get_string(j, "type"),
		.hook = json_get_string(j, "hook"),
		.drops = text_same(json_get_string(j, "policy"), "drop"),
		.object = i,
	};

	if (!c.family || !c.table || !c.name)
		return err_input(err, "object %zu is a chain without family, table or name", i);
	vec_push(&r->chains, c);
	return 0;
}

// Versions of nft print other words for "dormant".
static bool is_dormant(const struct json *flags)
{
	bool many = json_kind(flags) == JSON_IS_ARRAY;

	for (size_t i = 0; i < (many ? json_length(flags) : flags ? 1 : 0); i++) {
		const struct json *flag = many ? json_at(flags, i) : flags;
		const char *word = json_kind(flag) == JSON_IS_STRING ? json_text(flag) : "";

		if (strcmp(word, "owner") != 0 && strcmp(word, "persist") != 0)
			return true;
	}
	return false;
}

static int index_chains(struct ruleset *r, struct err *err)
{
	vec_each (&r->chains, c)
		vec_push(&r->chains_by_name, c);
	if (r->chains.n)
		qsort(r->chains_by_name.at, r->chains_by_name.n, sizeof(*r->chains_by_name.at),
		      compare_chains);
	for (size_t i = 1; i < r->chains_by_name.n; i++) {
		const struct nft_chain *c = r->chains_by_name.at[i];

		if (!compare_chain(r->chains_by_name.at[i - 1], c))
			return err_input(
				err, "object %zu: chain '%.100s' exists twice in table '%.100s'",
				c->object, c->name, c->table);
	}
	return 0;
}

// The chains of a table that is dormant have no hook.
static void hook_chain(struct ruleset *r, struct nft_chain *c)
{
	vec_each (&r->dormant, table)
		c->dormant |= text_same(json_get_string(*table, "name"), c->table) &&
			      text_same(json_get_string(*table, "family"), c->family);
	if (c->dormant) {
		c->type = c->hook = NULL;
		return;
	}
	r->nat |= text_same(c->type, "nat");
	if (text_same(c->hook, "prerouting") && !text_same(c->type, "nat"))
		vec_push(&r->early, c);
}

static int index_names(struct ruleset *r, struct err *err)
{
	int code = index_chains(r, err);

	if (code)
		return code;
	vec_each (&r->chains, c)
		hook_chain(r, c);
	vec_each (&r->sets, set)
		vec_push(&r->sets_by_name, ((struct nft_set){.json = *set}));
	if (r->sets.n)
		qsort(r->sets_by_name.at, r->sets_by_name.n, sizeof(*r->sets_by_name.at),
		      compare_sets);
	return 0;
}

// ---- what the rules do besides verdicts ---------------------------------------------------------

static bool is_in(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text_same(list[i], word))
			return true;
	return false;
}

// A field that no condition is about.
static bool is_untested(const struct json *payload)
{
	static const char *const protocols[] = {"ether", "vlan", "arp"};
	static const char *const fields[] = {"ecn", "version", "id", "checksum", "flowlabel"};
	const char *protocol = json_get_string(payload, "protocol");

	return is_in(protocol, protocols, ARRAY_SIZE(protocols)) ||
	       (protocol && is_in(json_get_string(payload, "field"), fields, ARRAY_SIZE(fields)));
}

static int note_rewrite(struct ruleset *r, const struct nft_chain *chain, const struct json *key,
			struct err *err)
{
	static const char *const later[] = {"output", "postrouting"};
	const struct json *payload = json_get(key, "payload");
	const char *field = json_get_string(payload, "field");

	r->facts.zones |= text_same(json_get_string(json_get(key, "ct"), "key"), "zone");
	r->facts.macs |= text_same(json_get_string(payload, "protocol"), "ether");
	if (!payload || is_untested(payload) || is_in(chain->hook, later, ARRAY_SIZE(later)))
		return 0;
	r->facts.dscp |= text_same(field, "dscp");
	r->facts.ttl |= text_same(field, "ttl") || text_same(field, "hoplimit");
	if (text_same(field, "dscp") || text_same(field, "ttl") || text_same(field, "hoplimit"))
		return 0;
	return err_input(err,
			 "rule %zu of chain '%.100s' rewrites the %.50s of packets, so that Weir "
			 "cannot know which rules they meet",
			 chain->rules.n, chain->name, field ? field : "header");
}

static bool is_target(const struct json *xt)
{
	const char *type = json_get_string(xt, "type");

	return !type || !strcmp(type, "target");
}

static bool may_rewrite(const struct nft_chain *chain, const char *name)
{
	static const char *const tables[] = {"raw", "mangle"}, *const prefixes[] = {"DNPT", "SNPT"},
				 *const known[] = {"CT",  "NOTRACK", "TTL",   "HL",
						   "TOS", "DSCP",    "TPROXY"};

	if (is_in(name, prefixes, ARRAY_SIZE(prefixes)))
		return true;
	return is_in(chain->table, tables, ARRAY_SIZE(tables)) && !import_is_harmless(name) &&
	       !is_in(name, known, ARRAY_SIZE(known));
}

// Targets of iptables-nft, of which nft knows the name at most.
static int note_foreign(struct ruleset *r, const struct nft_chain *chain, const struct json *xt,
			struct err *err)
{
	static const char *const tracking[] = {"CT", "NOTRACK"}, *const ttl[] = {"TTL", "HL"},
				 *const dscp[] = {"DSCP", "TOS"};
	const char *name = json_get_string(xt, "name");
	bool ct = !name || is_in(name, tracking, 2);

	if (!is_target(xt))
		return 0;
	if (name && may_rewrite(chain, name))
		return err_input(err,
				 "rule %zu of chain '%.100s': target '%.60s' may rewrite packets, "
				 "so that Weir cannot know which rules they meet",
				 chain->rules.n, chain->name, name);
	r->facts.untracks |= ct;
	r->facts.helpers |= ct;
	r->facts.zones |= ct;
	r->facts.ttl |= !name || is_in(name, ttl, 2);
	r->facts.dscp |= !name || is_in(name, dscp, 2);
	return 0;
}

// May the hook prerouting run the chain?
static bool may_be_early(const struct ruleset *r, const struct nft_chain *chain)
{
	vec_each (&r->early, c)
		if (*c == chain || (!chain->hook && !strcmp((*c)->table, chain->table) &&
				    !strcmp((*c)->family, chain->family)))
			return true;
	return false;
}

static bool diverts(const struct ruleset *r, const struct nft_chain *chain, const char *key,
		    const struct json *value)
{
	const char *name = json_get_string(value, "name");

	if (strcmp(key, "xt"))
		return !strcmp(key, "fwd") || !strcmp(key, "tproxy");
	if (name)
		return !strcmp(name, "TPROXY");
	return is_target(value) && may_be_early(r, chain);
}

static void note_diverter(struct ruleset *r, const struct nft_chain *chain, const char *key,
			  const struct json *value)
{
	if (r->forwards || !diverts(r, chain, key, value))
		return;
	r->diverter = chain->name;
	r->diverter_rule = chain->rules.n;
	r->forwards = !strcmp(key, "fwd");
}

static void note_filler(struct ruleset *r, const struct nft_chain *chain, const struct json *value)
{
	const char *used = json_get_string(value, "set");
	struct nft_set *set;

	used = used ? used : json_get_string(value, "map");
	set = used ? find_set(r, chain->family, chain->table, used + (used[0] == '@')) : NULL;
	if (!set)
		return;
	set->fillers++;
	set->shrinks |= text_same(json_get_string(value, "op"), "delete");
}

struct key_search {
	const char *key;
	bool found;
};

static void search_key(void *ctx, const char *key, const struct json *value);

static bool mentions(const struct json *j, const char *key)
{
	struct key_search s = {.key = key};

	if (json_kind(j) == JSON_IS_OBJECT)
		json_each(j, search_key, &s);
	for (size_t i = 0; json_kind(j) == JSON_IS_ARRAY && i < json_length(j) && !s.found; i++)
		s.found = mentions(json_at(j, i), key);
	return s.found;
}

static void search_key(void *ctx, const char *key, const struct json *value)
{
	struct key_search *s = ctx;

	s->found = s->found || !strcmp(key, s->key) || mentions(value, s->key);
}

// A helper, or an expectation: connections that are related to others.
static bool is_helper(const char *key)
{
	return !strcmp(key, "ct helper") || !strcmp(key, "ct expectation");
}

static int note_effects(struct ruleset *r, const struct nft_chain *chain, const struct json *expr,
			struct err *err)
{
	static const char *const sources[] = {"masquerade", "snat", "xt"};
	const struct json *value;

	for (size_t n = 0; n < json_length(expr); n++) {
		const char *key = ruleset_key(json_at(expr, n), &value);
		int code = 0;

		r->facts.untracks |= !strcmp(key, "notrack");
		r->facts.helpers |= is_helper(key);
		r->redirects |= !strcmp(key, "dnat") || !strcmp(key, "redirect");
		r->facts.masquerades |= is_in(key, sources, ARRAY_SIZE(sources));
		r->stateful = r->stateful || mentions(json_at(expr, n), "ct");
		note_diverter(r, chain, key, value);
		note_filler(r, chain, value);
		if (!strcmp(key, "xt"))
			code = note_foreign(r, chain, value, err);
		else if (!strcmp(key, "mangle"))
			code = note_rewrite(r, chain, json_get(value, "key"), err);
		if (code)
			return code;
	}
	return 0;
}

static int add_rule(struct ruleset *r, const struct json *j, size_t i, struct err *err)
{
	const char *family = json_get_string(j, "family"), *table = json_get_string(j, "table");
	const char *name = json_get_string(j, "chain");
	const struct json *expr = json_get(j, "expr");
	struct nft_chain *chain;

	if (!family || !table || !name || json_kind(expr) != JSON_IS_ARRAY)
		return err_input(err, "object %zu is a rule without family, table, chain or expr",
				 i);
	chain = (struct nft_chain *)ruleset_chain(r, family, table, name);
	if (!chain)
		return err_input(
			err,
			"object %zu is a rule of chain '%.100s', which is not in table '%.100s'", i,
			name, table);
	vec_push(&chain->rules, j);
	return chain->dormant ? 0 : note_effects(r, chain, expr, err);
}

// Rules are added after all chains.
static int add_object(struct ruleset *r, const struct json *object, size_t i, bool rules,
		      struct err *err)
{
	const struct json *j;
	const char *kind = ruleset_key(object, &j);

	if (!kind[0] || json_kind(j) != JSON_IS_OBJECT)
		return err_input(err, "object %zu of the ruleset is not {\"KIND\": {…}}", i);
	if (rules && strcmp(kind, "rule"))
		return 0;
	if (!strcmp(kind, "table") && is_dormant(json_get(j, "flags"))) {
		if (r->dormant.n >= DORMANT)
			return err_input(err, "more than %d tables are dormant", DORMANT);
		vec_push(&r->dormant, j);
	}
	if (!strcmp(kind, "chain"))
		return add_chain(r, j, i, err);
	if (!strcmp(kind, "rule"))
		return rules ? add_rule(r, j, i, err) : 0;
	if (!strcmp(kind, "set") || !strcmp(kind, "map"))
		vec_push(&r->sets, j);
	r->facts.helpers |= is_helper(kind);
	r->offloads |= !strcmp(kind, "flowtable");
	return 0;
}

static int read_objects(struct ruleset *r, const struct json *objects, bool rules, struct err *err)
{
	for (size_t i = 0; i < json_length(objects); i++) {
		int code = add_object(r, json_at(objects, i), i + 1, rules, err);

		if (code)
			return code;
	}
	return 0;
}

int ruleset_read(const char *text, size_t len, struct ruleset *ret, struct err *err)
{
	const struct json *objects;
	char why[256] = "";
	int code;

	ret->document = json_parse(text, len, why, sizeof(why));
	if (!ret->document)
		return err_input(err, "not JSON: %s", why);
	objects = json_get(ret->document, "nftables");
	if (json_kind(objects) != JSON_IS_ARRAY)
		return err_input(err, "not a ruleset of nft: there is no array 'nftables'");
	if ((code = read_objects(ret, objects, false, err)))
		return code;
	if ((code = index_names(ret, err)))
		return code;
	if ((code = read_objects(ret, objects, true, err)))
		return code;
	vec_each (&ret->chains, c) {
		c->first = ret->n_rules;
		ret->n_rules += c->rules.n;
	}
	return 0;
}

void ruleset_free(struct ruleset *r)
{
	vec_each (&r->chains, c)
		vec_free(&c->rules);
	vec_free(&r->chains);
	vec_free(&r->sets);
	vec_free(&r->dormant);
	vec_free(&r->early);
	vec_free(&r->chains_by_name);
	vec_free(&r->sets_by_name);
	json_free(r->document);
	*r = (struct ruleset){0};
}
