// SPDX-License-Identifier: GPL-2.0-only
// Finds the place of each object of the document.
#include "ctl/import/ruleset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/mem.h"

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

static bool is_at(const struct json *object, const char *family, const char *table)
{
	return text_same(json_get_string(object, "family"), family) &&
	       text_same(json_get_string(object, "table"), table);
}

const struct nft_chain *ruleset_chain(const struct ruleset *r, const char *family,
				      const char *table, const char *name)
{
	vec_each (&r->chains, c)
		if (!strcmp(c->name, name) && !strcmp(c->table, table) &&
		    !strcmp(c->family, family))
			return c;
	return NULL;
}

const struct json *ruleset_set(const struct ruleset *r, const struct nft_chain *user,
			       const char *name)
{
	vec_each (&r->sets, s)
		if (is_at(*s, user->family, user->table) &&
		    text_same(json_get_string(*s, "name"), name))
			return *s;
	return NULL;
}

size_t ruleset_fillers(const struct ruleset *r, const struct json *set)
{
	const char *name = json_get_string(set, "name"), *used;
	const struct json *value;
	size_t n = 0;

	vec_each (&r->chains, c) {
		if (!is_at(set, c->family, c->table))
			continue;
		vec_each (&c->rules, rule) {
			const struct json *expr = json_get(*rule, "expr");

			for (size_t i = 0; i < json_length(expr); i++) {
				ruleset_key(json_at(expr, i), &value);
				used = json_get_string(value, "set");
				n += used && text_same(used + (used[0] == '@'), name);
			}
		}
	}
	return n;
}

static int add_chain(struct ruleset *r, const struct json *j, size_t i, struct err *err)
{
	struct nft_chain c = {
		.family = json_get_string(j, "family"),
		.table = json_get_string(j, "table"),
		.name = json_get_string(j, "name"),
		.type = json_get_string(j, "type"),
		.hook = json_get_string(j, "hook"),
		.drops = text_same(json_get_string(j, "policy"), "drop"),
	};

	if (!c.family || !c.table || !c.name)
		return err_input(err, "object %zu is a chain without family, table or name", i);
	if (ruleset_chain(r, c.family, c.table, c.name))
		return err_input(err, "object %zu: chain '%.100s' exists twice in table '%.100s'",
				 i, c.name, c.table);
	r->nat |= text_same(c.type, "nat");
	r->facts.early |=
		c.drops && (text_same(c.hook, "prerouting") || text_same(c.hook, "ingress"));
	vec_push(&r->chains, c);
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

static int note_effects(struct ruleset *r, const struct nft_chain *chain, const struct json *expr,
			struct err *err)
{
	static const char *const sources[] = {"masquerade", "snat", "xt"};
	static const char *const early[] = {"prerouting", "ingress"};
	const struct json *value;

	r->facts.early |=
		is_in(chain->hook, early, ARRAY_SIZE(early)) && !text_same(chain->type, "nat");
	for (size_t n = 0; n < json_length(expr); n++) {
		const char *key = ruleset_key(json_at(expr, n), &value);
		int code;

		r->facts.untracks |= !strcmp(key, "notrack");
		r->facts.masquerades |= is_in(key, sources, ARRAY_SIZE(sources));
		if (strcmp(key, "mangle"))
			continue;
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
	return note_effects(r, chain, expr, err);
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
	if (!strcmp(kind, "chain"))
		return add_chain(r, j, i, err);
	if (!strcmp(kind, "rule"))
		return rules ? add_rule(r, j, i, err) : 0;
	if (!strcmp(kind, "set") || !strcmp(kind, "map"))
		vec_push(&r->sets, j);
	r->facts.helpers |= !strcmp(kind, "ct helper");
	r->offloads |= !strcmp(kind, "flowtable");
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
	for (size_t i = 0; i < 2 * json_length(objects); i++) {
		size_t n = i % json_length(objects);

		code = add_object(ret, json_at(objects, n), n + 1, i != n, err);
		if (code)
			return code;
	}
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
	json_free(r->document);
	*r = (struct ruleset){0};
}
