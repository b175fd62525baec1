// SPDX-License-Identifier: GPL-2.0-only
// Makes one list of rules, of which the first match decides, from the chains of a hook.
//
// A chain that another one calls is written at the place of the call, narrowed to the packets of
// the call. A packet has to be accepted by all base chains of the hook: after an `accept`, the next
// base chain follows, narrowed to its packets.
#include <errno.h>
#include <string.h>

#include "ctl/import/condition.h"
#include "ctl/import/condition_ct.h"
#include "ctl/import/translation.h"
#include "ctl/import/words.h"

#define DEPTH 16 // nested calls, as in the kernel
#define BASES 16 // base chains of a hook

enum chain_end {
	FLOW_ON,    // some packets reach the next rule
	FLOW_LEFT,  // all return to the caller
	FLOW_ENDED, // all are decided
};

static enum chain_end walk_chain(struct translation *w, const struct nft_chain *chain,
				 struct match m, size_t base);
static void walk_base(struct translation *w, size_t i, struct match m, const char *name);

// ---- verdicts -----------------------------------------------------------------------------------

// The last base chain lets the packet pass, all others hand it to the next one. Drops of the next
// one are valid in any case, so that the conditions so far need not be exact.
static uint8_t accept_packets(struct translation *w, const struct at_rule *at, struct match m,
			      bool log)
{
	const char *name = emit_name(w, at);
	uint8_t outcome;

	if (at->base + 1 >= w->bases.n)
		return emit_pass(w, m, name, log);
	emit_fit(w, &m, false);
	outcome = m.omitted ? OUTCOME_LACKING : m.loose ? OUTCOME_WIDER : OUTCOME_EXACT;
	m.loose = m.omitted = false;
	w->tracked |= m.established;
	walk_base(w, at->base + 1, m, name);
	return outcome;
}

static void rewrites(struct translation *w, const struct at_rule *at,
		     const struct matches *alternatives)
{
	uint8_t outcome = 0;

	if (!w->nat)
		return;
	vec_each (alternatives, a) {
		struct match m = *a;

		// The first packet of a connection decides for all others.
		if (m.flagged || m.f[MATCH_TTL].n || m.f[MATCH_DSCP].n || m.f[MATCH_MAC].n)
			match_omit(&m);
		m.flagged = false;
		m.f[MATCH_TTL] = m.f[MATCH_DSCP] = m.f[MATCH_MAC] = (struct values){0};
		outcome |= emit_pass(w, m, emit_name(w, at), false);
	}
	emit_outcome(w, at, outcome);
}

static void decide(struct translation *w, const struct at_rule *at,
		   const struct matches *alternatives, enum step_action action, bool log)
{
	uint8_t outcome = 0;

	vec_each (alternatives, m) {
		if (w->nat && m->rewrites) {
			rewrites(w, at, alternatives);
			return;
		}
		if (w->nat)
			continue;
		if (action == STEP_PASS)
			outcome |= accept_packets(w, at, *m, log);
		else
			outcome |= emit_drop(w, action, *m, emit_name(w, at), log);
	}
	if (outcome)
		emit_outcome(w, at, outcome);
}

static enum chain_end call(struct translation *w, const struct at_rule *at,
			   const struct matches *alternatives, const char *target, bool conditional,
			   bool returns)
{
	const struct nft_chain *chain = ruleset_chain(w->ruleset, at->chain->family,
						      at->chain->table, target ? target : "");
	enum chain_end flow = FLOW_ENDED;

	if (!chain || w->depth >= DEPTH) {
		w->code = err_input(w->err, "%.100s %zu of table '%.100s': %s '%.100s'",
				    at->chain->name, at->number, at->chain->table,
				    chain ? "too many calls of chains, up to" : "no chain",
				    target ? target : "");
		return FLOW_ENDED;
	}
	vec_each (alternatives, m) {
		if (w->code)
			break;
		if (walk_chain(w, chain, *m, at->base) == FLOW_ENDED)
			continue;
		flow = returns ? FLOW_ON : FLOW_LEFT;
		if (!returns && conditional)
			vec_push(&w->returned, *m);
	}
	return conditional ? FLOW_ON : flow;
}

static enum chain_end take_back(struct translation *w, const struct matches *alternatives,
				bool conditional)
{
	if (!conditional)
		return FLOW_LEFT;
	vec_each (alternatives, m)
		vec_push(&w->returned, *m);
	return FLOW_ON;
}

static bool is_rewrite(const char *key)
{
	return !strcmp(key, "dnat") || !strcmp(key, "redirect") || !strcmp(key, "tproxy");
}

static enum chain_end verdict(struct translation *w, const struct at_rule *at,
			      const struct matches *m, const char *key, const struct json *value,
			      bool conditional, bool log)
{
	if (!strcmp(key, "jump") || !strcmp(key, "goto"))
		return call(w, at, m, json_get_string(value, "target"), conditional,
			    !strcmp(key, "jump"));
	if (!strcmp(key, "return"))
		return take_back(w, m, conditional);
	if (!strcmp(key, "accept") || !strcmp(key, "queue") || !strcmp(key, "synproxy"))
		decide(w, at, m, STEP_PASS, log);
	else if (!strcmp(key, "drop"))
		decide(w, at, m, STEP_DROP, log);
	else if (!strcmp(key, "reject"))
		decide(w, at, m, STEP_REJECT, log);
	else if (is_rewrite(key))
		rewrites(w, at, m);
	else
		return FLOW_ON;
	return conditional ? FLOW_ON : FLOW_ENDED;
}

// ---- rules --------------------------------------------------------------------------------------

struct rule_reading {
	struct condition_place place;
	struct matches alternatives;
	bool conditional, log, decided;
	bool foreign; // ends with a target of iptables that nft does not know
	enum chain_end flow;
};

static void narrow(struct translation *w, struct rule_reading *r, struct matches *with)
{
	struct match before = r->alternatives.at[0];
	bool single = r->alternatives.n == 1, exact = with->n && !with->at[0].loose;

	vec_each (with, m)
		emit_work(w, match_size(m) * r->alternatives.n);
	vec_each (&r->alternatives, m)
		emit_work(w, match_size(m) * with->n);
	if (w->code) {
		vec_free(with);
		return;
	}
	matches_meet(w->arena, &r->alternatives, with);
	vec_free(with);
	if (!single || !exact || r->alternatives.n != 1 ||
	    !match_covers(&r->alternatives.at[0], &before))
		r->conditional = true;
}

static bool is_wildcard(const struct json *key)
{
	return json_kind(key) == JSON_IS_STRING && !strcmp(json_text(key), "*");
}

static bool is_final(const char *verdict)
{
	return !strcmp(verdict, "accept") || !strcmp(verdict, "drop") || !strcmp(verdict, "reject");
}

// The other keys come before "*". Where they do not decide all their packets, "*" is for fewer
// packets than the rules after them.
static void read_pair(struct translation *w, const struct at_rule *at, struct rule_reading *r,
		      const struct json *key, const struct json *pair, bool decided)
{
	const struct json *value, *of = json_at(pair, 0);
	const char *word = ruleset_key(json_at(pair, 1), &value);
	struct matches m = {0}, equal = {0};

	r->place.values.drops = !strcmp(word, "drop") || !strcmp(word, "reject");
	vec_each (&r->alternatives, a)
		vec_push(&m, *a);
	if (is_wildcard(of))
		condition_key(&r->place, key, &equal);
	else
		condition_equals(&r->place, key, of, &equal);
	vec_each (&equal, e) {
		e->loose |= is_wildcard(of) && !decided;
		emit_work(w, match_size(e) * m.n);
	}
	matches_meet(w->arena, &m, &equal);
	verdict(w, at, &m, word, value, true, r->log);
	vec_free(&m);
	vec_free(&equal);
}

// In a map that changes, any packet may be accepted.
static bool is_certain(const struct ruleset *r, const struct json *map)
{
	const struct json *list = json_get(map, "elem");

	if (json_kind(map) != JSON_IS_OBJECT)
		return map;
	for (size_t i = 0; i < json_length(list); i++)
		if (value_expires(json_at(json_at(list, i), 0)))
			return false;
	return !value_changes(r, map);
}

static void read_vmap(struct translation *w, const struct at_rule *at, struct rule_reading *r,
		      const struct json *vmap)
{
	const struct json *list = value_elements(&r->place.values, json_get(vmap, "data")), *value;
	bool decided = true;

	r->conditional = r->decided = true;
	emit_work(w, json_length(json_get(list, "elem")));
	if (!is_certain(w->ruleset, list)) {
		vec_each (&r->alternatives, m)
			match_omit(m);
		verdict(w, at, &r->alternatives, "accept", NULL, true, r->log);
		return;
	}
	list = json_kind(list) == JSON_IS_OBJECT ? json_get(list, "elem") : list;
	for (size_t i = 0; i < 2 * json_length(list) && !w->code; i++) {
		const struct json *pair = json_at(list, i % json_length(list));

		emit_work(w, 10);
		if (is_wildcard(json_at(pair, 0)) != (i >= json_length(list)))
			continue;
		read_pair(w, at, r, json_get(vmap, "key"), pair, decided);
		decided &= is_final(ruleset_key(json_at(pair, 1), &value));
	}
}

static bool is_in(const char *word, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

static void check_part(void *ctx, const char *key, const struct json *value);

// A value that does not depend on the packet. Else nft ends the rule for packets that do not have
// the field, or whose key a map lacks.
static bool is_constant(const struct json *j)
{
	bool constant = true;

	if (json_kind(j) == JSON_IS_OBJECT)
		json_each(j, check_part, &constant);
	for (size_t i = 0; json_kind(j) == JSON_IS_ARRAY && i < json_length(j); i++)
		constant = constant && is_constant(json_at(j, i));
	return constant;
}

static void check_part(void *ctx, const char *key, const struct json *value)
{
	static const char *const parts[] = {"packets", "bytes", "name",   "addr", "dev",
					    "flags",   "port",  "family", "|",    "&",
					    "^",       "range", "prefix", "len"};
	bool *constant = ctx;
	bool mark = !strcmp(key, "meta") && text_same(json_get_string(value, "key"), "mark");

	*constant =
		*constant && (mark || (is_in(key, parts, ARRAY_SIZE(parts)) && is_constant(value)));
}

static bool is_without_effect(const char *key, const struct json *j)
{
	static const char *const keys[] = {"counter",   "comment",    "notrack",
					   "ct helper", "ct timeout", "masquerade",
					   "snat",      "secmark",    "dup"};
	const struct json *to = json_get(j, "key");

	if (!strcmp(key, "mangle"))
		return (json_get(to, "meta") || json_get(to, "ct")) &&
		       is_constant(json_get(j, "value"));
	return is_in(key, keys, ARRAY_SIZE(keys)) && is_constant(j);
}

static bool is_verdict(const char *key)
{
	static const char *const keys[] = {"accept", "drop", "reject", "queue",   "synproxy",
					   "jump",   "goto", "return", "continue"};

	return is_in(key, keys, ARRAY_SIZE(keys)) || is_rewrite(key);
}

// Targets that let the next rule see the packet unchanged.
static bool is_foreign_target(const char *key, const struct json *j)
{
	const char *type = json_get_string(j, "type"), *name = json_get_string(j, "name");

	if (strcmp(key, "xt") || (type && strcmp(type, "target")))
		return false;
	return !name || !import_is_harmless(name);
}

// nft does not print the family or protocol that an answer implies.
static void narrow_reject(struct translation *w, struct rule_reading *r, const char *type)
{
	struct matches with = {0};
	struct match m = match_any;

	if (text_same(type, "icmp"))
		m.families = MATCH_V4;
	else if (text_same(type, "icmpv6"))
		m.families = MATCH_V6;
	else if (text_same(type, "tcp reset"))
		match_narrow(w->arena, &m, MATCH_PROTO, values_one(w->arena, 6, 6));
	vec_push(&with, m);
	narrow(w, r, &with);
}

// The rule ends if the set is full, or by the limit of its element. Rates are not translated: Weir
// charges packets that the ruleset drops before they reach the limit.
static void read_filler(struct translation *w, struct rule_reading *r, const struct json *j)
{
	struct matches with = {0};

	condition_key(&r->place, json_get(j, "elem"), &with);
	vec_each (&with, m)
		match_omit(m);
	narrow(w, r, &with);
}

static void read_expression(struct translation *w, const struct at_rule *at, struct rule_reading *r,
			    const char *key, const struct json *j)
{
	struct matches with = {0};

	if (!strcmp(key, "reject"))
		narrow_reject(w, r, json_get_string(j, "type"));
	if (is_verdict(key)) {
		r->flow = verdict(w, at, &r->alternatives, key, j, r->conditional, r->log);
		r->decided = true;
	} else if (!strcmp(key, "match")) {
		condition_read(&r->place, j, &with);
		narrow(w, r, &with);
	} else if (!strcmp(key, "vmap")) {
		read_vmap(w, at, r, j);
	} else if (!strcmp(key, "log")) {
		r->log = true;
	} else if (!strcmp(key, "set")) {
		read_filler(w, r, j);
	} else if (!is_without_effect(key, j)) {
		r->foreign |= is_foreign_target(key, j);
		condition_omit(&with);
		narrow(w, r, &with);
	}
}

// A rule that only logs.
static void add_log(struct translation *w, const struct at_rule *at, const struct rule_reading *r)
{
	uint8_t outcome = 0;

	if (!r->log || r->decided || w->nat)
		return;
	vec_each (&r->alternatives, m)
		outcome |= emit_count(w, *m, emit_name(w, at));
	emit_outcome(w, at, outcome);
}

static bool will_drop(const struct json *expr)
{
	const struct json *value;
	const char *key = ruleset_key(json_at(expr, json_length(expr) - 1), &value);

	return json_length(expr) && (!strcmp(key, "drop") || !strcmp(key, "reject"));
}

static enum chain_end walk_rule(struct translation *w, const struct at_rule *at,
				const struct match *m)
{
	const struct json *expr = json_get(at->rule, "expr"), *value;
	struct rule_reading r = {
		.place = {{w->ruleset, at->chain, w->arena, will_drop(expr), &w->cache},
			  w->options},
	};

	emit_work(w, 10);
	vec_push(&r.alternatives, *m);
	for (size_t i = 0; i < json_length(expr) && r.alternatives.n && !w->code; i++) {
		const char *key = ruleset_key(json_at(expr, i), &value);

		read_expression(w, at, &r, key, value);
		emit_work(w, w->cache.work);
		w->cache.work = 0;
	}
	if (r.foreign && !r.decided && w->nat)
		rewrites(w, at, &r.alternatives); // perhaps
	else if (r.foreign && !r.decided)
		decide(w, at, &r.alternatives, STEP_PASS, false); // perhaps
	add_log(w, at, &r);
	vec_free(&r.alternatives);
	return r.flow;
}

static enum chain_end walk_chain(struct translation *w, const struct nft_chain *chain,
				 struct match m, size_t base)
{
	size_t returned = w->returned.n;
	enum chain_end flow = FLOW_ON;

	w->depth++;
	for (size_t i = 0; i < chain->rules.n && flow == FLOW_ON && !w->code; i++) {
		struct at_rule at = {chain, chain->rules.at[i], i + 1, base};

		flow = walk_rule(w, &at, &m);
	}
	w->depth--;
	if (flow == FLOW_ENDED && w->returned.n > returned)
		flow = FLOW_ON; // some have returned before
	w->returned.n = returned;
	return flow;
}

// ---- base chains --------------------------------------------------------------------------------

static void follow_base(struct translation *w, size_t i, struct match m, const char *name)
{
	const struct nft_chain *chain = w->bases.at[i];
	size_t guarded = w->guarded;

	w->guarded = w->returned.n;
	if (walk_chain(w, chain, m, i) != FLOW_ENDED && !w->code) {
		const char *policy =
			arena_printf(w->arena, "%s policy", emit_clean(w->arena, chain->name));

		if (chain->drops)
			emit_drop(w, STEP_DROP, m, policy, false);
		else
			walk_base(w, i + 1, m, name ? name : policy);
	}
	w->guarded = guarded;
}

// name: of the rule that has accepted the packets; NULL: none has.
static void walk_base(struct translation *w, size_t i, struct match m, const char *name)
{
	struct match part = m, rest = m;

	if (w->code || m.never)
		return;
	if (i >= w->bases.n) {
		if (!w->nat)
			emit_pass(w, m, name ? name : "other family", false);
		return;
	}
	part.families &= ruleset_families(w->bases.at[i]->family);
	rest.families &= (uint8_t)~ruleset_families(w->bases.at[i]->family);
	if (part.families)
		follow_base(w, i, part, name);
	if (rest.families)
		walk_base(w, i + 1, rest, name);
}

#define LOOKS 100000

static bool accepts(struct translation *w, const struct nft_chain *chain, unsigned depth);

static bool accepts_in(struct translation *w, const struct nft_chain *chain,
		       const struct json *expr, unsigned depth)
{
	static const char *const accepting[] = {"accept", "vmap", "queue", "synproxy", "xt"};
	const struct json *value;

	for (size_t i = 0; i < json_length(expr); i++) {
		const char *key = ruleset_key(json_at(expr, i), &value);
		const char *target = json_get_string(value, "target");
		const struct nft_chain *called =
			target ? ruleset_chain(w->ruleset, chain->family, chain->table, target)
			       : NULL;

		for (size_t k = 0; k < ARRAY_SIZE(accepting); k++)
			if (!strcmp(key, accepting[k]))
				return true;
		if (called && accepts(w, called, depth + 1))
			return true;
	}
	return false;
}

// True also where that would take too long.
static bool accepts(struct translation *w, const struct nft_chain *chain, unsigned depth)
{
	vec_each (&chain->rules, rule)
		if (depth > DEPTH || w->looks++ > LOOKS ||
		    accepts_in(w, chain, json_get(*rule, "expr"), depth))
			return true;
	return false;
}

static bool is_base(const struct nft_chain *c, const char *type, const char *hook)
{
	return text_same(c->hook, hook) && text_same(c->type, type) && ruleset_families(c->family);
}

// The order of base chains changes no verdict. Chains that accept nothing come first: they are
// written once.
static void find_bases(struct translation *w, const char *type, const char *hook)
{
	w->bases.n = 0;
	for (int pass = 0; pass < 2; pass++)
		vec_each (&w->ruleset->chains, c)
			if (is_base(c, type, hook) && accepts(w, c, 0) == pass)
				vec_push(&w->bases, c);
}

static void walk_nat(struct translation *w)
{
	w->nat = true;
	find_bases(w, "nat", "prerouting");
	for (size_t i = 0; i < w->bases.n && !w->code; i++) {
		struct match m = match_any;

		m.families = ruleset_families(w->bases.at[i]->family);
		walk_chain(w, w->bases.at[i], m, i);
		w->returned.n = 0;
	}
	w->nat = false;
}

static void add_established(struct translation *w, const char *name)
{
	struct matches m = {0};

	condition_established(w->arena, true, &m);
	vec_each (&m, one)
		emit_pass(w, *one, name, false);
	vec_free(&m);
}

// Packets that the ruleset accepts before the chains of the hook, or rewrites.
static void walk_others(struct translation *w)
{
	walk_nat(w);
	if (w->ruleset->nat && w->options->facts.masquerades)
		add_established(w, "masquerade");
	if (w->ruleset->offloads && w->options->forward)
		add_established(w, "flow table");
	w->tracked = false;
}

// True: the ruleset decides about some packets elsewhere, or by what Weir does not see.
static bool refuse(struct translation *w)
{
	const struct ruleset *r = w->ruleset;
	const struct import_facts *facts = &w->options->facts;
	bool forward = w->options->forward;

	if (r->forwards || (forward && r->diverter))
		w->code = err_input(w->err,
				    "rule %zu of chain '%.100s' takes packets from the hook %s",
				    r->diverter_rule, r->diverter, forward ? "forward" : "input");
	else if (forward && facts->diverts)
		w->code = err_input(w->err, "a rule with target TPROXY takes packets from the hook "
					    "forward");
	else if (facts->zones && ((r->nat && facts->masquerades) || (r->offloads && forward)))
		w->code = err_input(w->err,
				    "zones of connection tracking with %s: Weir knows "
				    "connections of the default zone only",
				    r->nat && facts->masquerades ? "rewritten sources"
								 : "a flow table");
	else if (facts->helpers && r->nat && (facts->masquerades || r->redirects))
		w->code = err_input(w->err, "helpers of connection tracking with rewritten "
					    "addresses: Weir does not know the connections that a "
					    "helper expects");
	return w->code;
}

static void count_outcomes(const struct translation *w, struct import_counts *ret)
{
	for (size_t i = 0; i < w->ruleset->n_rules; i++) {
		uint8_t outcome = w->outcomes[i];

		if (outcome & OUTCOME_LEFT)
			ret->omitted++;
		else if (outcome & (OUTCOME_WIDER | OUTCOME_LACKING))
			ret->widened++;
		else if (outcome)
			ret->translated++;
		ret->lacking += !(outcome & OUTCOME_LEFT) && outcome & OUTCOME_LACKING;
	}
}

static void walk_hook(struct translation *w)
{
	const char *hook = w->options->forward ? "forward" : "input";

	if (!w->bases.n)
		w->code = err_input(w->err,
				    "no chain of type filter and hook %s in a table of family "
				    "ip, ip6 or inet",
				    hook);
	else if (w->bases.n > BASES)
		w->code = err_input(w->err, "hook %s: at most %d chains of type filter, not %zu",
				    hook, BASES, w->bases.n);
	else
		walk_base(w, 0, match_any, NULL);
}

int translate(const struct ruleset *ruleset, const struct import_options *options,
	      struct arena *arena, struct import_rules *ret, struct import_counts *counts,
	      struct err *err)
{
	struct translation w = {.ruleset = ruleset,
				.options = options,
				.arena = arena,
				.steps = ret,
				.outcomes = arena_zalloc(arena, ruleset->n_rules + 1, 1),
				.err = err};

	if (!refuse(&w))
		walk_others(&w);
	find_bases(&w, "filter", options->forward ? "forward" : "input");
	if (!w.code)
		walk_hook(&w);
	if (!w.code)
		count_outcomes(&w, counts);
	vec_free(&w.bases);
	vec_free(&w.returned);
	value_cache_free(&w.cache);
	return w.code;
}
