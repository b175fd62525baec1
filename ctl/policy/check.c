// SPDX-License-Identifier: GPL-2.0-only
// Checks the statements of a policy: names first, since everything else needs them, then rules,
// services, expectations.
#include "ctl/policy/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/limits-policy.h"
#include "common/limits-service.h"
#include "ctl/base/mem.h"
#include "ctl/base/pattern.h"
#include "ctl/policy/checker.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/names.h"
#include "ctl/policy/words.h"

#define SHOWN_MAX 60

// k: what is checked, with `c` and `ok`.
#define fail(k, at, hint, ...) (diag_error((k)->c->diag, at, hint, __VA_ARGS__), (k)->ok = false)

struct rule_check {
	struct checker *c;
	struct ast_rule *ast;
	bool ok;
};

static bool has(const struct rule_check *k, enum ast_field field)
{
	return k->ast->fields[field].given;
}

static bool has_word(const struct rule_check *k, enum ast_field field)
{
	return k->ast->field_at[field].file;
}

static void check_sides(struct rule_check *k)
{
	const struct ast_list *lists = k->ast->fields;

	if (has(k, AST_FROM) && !check_addresses(k->c, &lists[AST_FROM], SIDE_FROM))
		k->ok = false;
	if (has(k, AST_TO) && !check_addresses(k->c, &lists[AST_TO], SIDE_TO))
		k->ok = false;
}

// ---- frames -------------------------------------------------------------------------------------

// Later fragments are decided before the rules.
static void check_fragment(struct rule_check *k)
{
	const struct ast *a = k->c->ast;

	if (k->ast->quick && has_word(k, AST_FRAGMENT) && a->fragments.n)
		fail(k, k->ast->field_at[AST_FRAGMENT], NULL,
		     "the policy decides fragments before quick rules (%s)",
		     diag_place(k->c->diag, a->fragments.at[0].at, false));
}

static void check_frame(struct rule_check *k)
{
	static const char hint[] =
		"'ethertype' combines with on, vlan, mac, length, over, probability and modifiers";
	const struct ast_rule *a = k->ast;

	if (!has(k, AST_ETHERTYPE))
		return;
	for (enum ast_field field = 0; field < AST_RULE_FIELDS; field++)
		if (has_word(k, field) && !fields[field].frame)
			fail(k, a->field_at[field], hint,
			     "rules with 'ethertype' do not match fields of the IP header");
	if (a->action == ACTION_REJECT)
		fail(k, a->at, "use drop", "'reject' does not work with 'ethertype'");
}

// ---- conditions and modifiers -------------------------------------------------------------------

// The connections of sockets of this host are counted.
static void check_counted_here(struct rule_check *k)
{
	static const char hint[] = "nft counts them: add @conns { ip saddr ct count over 50 } drop";
	const struct ast_list *to = &k->ast->fields[AST_TO];

	vec_each (&to->items, item) {
		bool self = item->kind == AST_WORD && item->as_address == AST_SELF;
		bool service = item->kind == AST_WORD && item->as_address == AST_LABEL;

		if (service || (self && (to->negated || item->negated)))
			fail(k, item->at, hint,
			     "connections are counted for listeners of this host, not for packets "
			     "that %s",
			     service ? "a service sends on" : "are forwarded");
	}
}

static void check_connections(struct rule_check *k)
{
	const struct ast_limit *a = &k->ast->limit;

	if (a->per != PER_SOURCE && a->per != PER_SOURCE_PORT)
		fail(k, a->at, "connections per source", "connections are counted per source");
	if (a->burst)
		fail(k, a->burst_at, NULL, "'burst' needs a rate");
	if (has_word(k, AST_FRAGMENT))
		fail(k, k->ast->field_at[AST_FRAGMENT], NULL,
		     "connections are counted when a SYN arrives, not a later fragment");
	if (has(k, AST_ETHERTYPE))
		fail(k, k->ast->field_at[AST_ETHERTYPE], "leave out 'ethertype'",
		     "connections are counted for TCP, not for frames");
	check_counted_here(k);
}

static void check_limit(struct rule_check *k)
{
	const struct ast_limit *a = &k->ast->limit;

	if (!a->given)
		return;
	if (a->connections) {
		check_connections(k);
		return;
	}
	if (a->has_mask && a->per == PER_RULE)
		fail(k, a->mask_at, "per source mask …",
		     "'mask' needs per source or per destination");
	if (a->has_max && a->per == PER_RULE)
		fail(k, a->max_at, "per source max …", "'max' needs per source or per destination");
}

static void check_add(struct rule_check *k)
{
	const struct ast_add *a = &k->ast->add;
	uint32_t number;

	if (!a->given)
		return;
	number = index_find(&k->c->ast->set_index, a->set);
	if (number == INDEX_NONE) {
		diag_error(k->c->diag, a->set_at, NULL, "unknown set '@%s'%s", a->set,
			   check_suggest(k->c, SPACE_SETS, "@", a->set));
		k->ok = false;
		return;
	}
	if (!k->c->ast->sets.at[number].dynamic) {
		diag_error(k->c->diag, a->set_at, NULL, "'@%s' is not dynamic (%s)", a->set,
			   diag_place(k->c->diag, k->c->ast->sets.at[number].at, false));
		k->ok = false;
		return;
	}
}

// ---- warnings about the rule as a whole ---------------------------------------------------------

static bool is_any(const struct ast_list *list)
{
	return !list->given ||
	       (!list->negated && list->items.n == 1 && list->items.at[0].kind == AST_WORD &&
		!strcmp(list->items.at[0].word, "any"));
}

// "drop on eth0" is not "default drop on eth0", nor is "reject".
static void warn_drop_all(struct rule_check *k)
{
	const struct ast_rule *a = k->ast;

	if ((a->action != ACTION_DROP && a->action != ACTION_REJECT) ||
	    !is_any(&a->fields[AST_FROM]) || !is_any(&a->fields[AST_TO]))
		return;
	for (enum ast_field field = 0; field < AST_RULE_FIELDS; field++)
		if (has_word(k, field) && fields[field].form != FORM_ADDRESS && field != AST_ON)
			return;
	diag_warning(
		k->c->diag, a->at,
		has(k, AST_ON) ? "default drop on … passes them" : "default drop passes them",
		"this %s everything except ARP and neighbour discovery, even ICMP errors and DHCP replies",
		a->action == ACTION_DROP ? "drops" : "rejects");
}

// Warns of 'from X port P' where 'to port P' may be meant.
static void warn_source_port(struct rule_check *k)
{
	const struct ast_rule *a = k->ast;
	struct diag_at at = a->fields[AST_SPORT].at;
	const char *words = at.file ? at.file->text + at.offset : "";

	if (!has(k, AST_SPORT) || a->field_at[AST_TO].file || has(k, AST_DPORT))
		return;
	if (at.len > SHOWN_MAX || memchr(words, '\n', at.len)) {
		words = "P";
		at.len = 1;
	}
	diag_warning(k->c->diag, a->field_at[AST_SPORT],
		     "write 'to any' if the source port is meant",
		     "this is the source port; did you mean 'to port %.*s'?", (int)at.len, words);
}

static void check_rule(struct checker *c, struct ast_rule *rule)
{
	struct rule_check k = {.c = c, .ast = rule, .ok = !rule->broken};

	if (!k.ok)
		return;
	check_sides(&k);
	check_fragment(&k);
	check_frame(&k);
	check_limit(&k);
	check_add(&k);
	warn_drop_all(&k);
	warn_source_port(&k);
	rule->broken = !k.ok;
}

// ---- identities ---------------------------------------------------------------------------------

#define BY_NAME (INDEX_NONE - 1) // no rule has this number

static void number_text(struct checker *c, struct ast_rule *rule, uint32_t number, uint32_t *uses,
			struct index *taken)
{
	do {
		uint32_t n = ++*uses;

		rule->identity = n == 1 ? rule->text
					: arena_printf(&c->ast->strings, "%s #%u", rule->text, n);
	} while (index_add(taken, rule->identity, number) != number);
}

static void check_identities(struct checker *c)
{
	size_t n = c->ast->rules.n;
	CLEANUP_FREE uint32_t *uses = mem_zalloc(n, sizeof(*uses)); // per text, at its first rule
	struct index taken = {0}, texts = {0};

	for (size_t i = 0; i < n; i++)
		if (c->ast->rules.at[i].name)
			index_add(&taken, c->ast->rules.at[i].name, BY_NAME);
	for (size_t i = 0; i < n; i++) {
		struct ast_rule *rule = &c->ast->rules.at[i];

		rule->identity = rule->name ? rule->name : "";
		if (rule->quick)
			rule->text = rule->quick;
		if (rule->name || rule->broken)
			continue;
		number_text(c, rule, (uint32_t)i, &uses[index_add(&texts, rule->text, (uint32_t)i)],
			    &taken);
	}
	index_free(&taken);
	index_free(&texts);
}

// ---- expectations -------------------------------------------------------------------------------

struct expect_check {
	struct checker *c;
	struct ast_expect *ast;
	bool ok;
};

// ---- verdict ------------------------------------------------------------------------------------

static void check_target(struct expect_check *k)
{
	const struct ast_expect *a = k->ast;
	uint32_t number;

	if (a->verdict != EXPECT_SERVICE)
		return;
	number = index_find(&k->c->ast->service_index, a->target);
	if (number == INDEX_NONE)
		fail(k, a->target_at, "pass, drop, reject, redirect INTERFACE, or a service",
		     "unknown service '%s'%s", a->target,
		     check_suggest(k->c, SPACE_SERVICES, "", a->target));
}

static void check_via(struct expect_check *k)
{
	const struct ast_expect *a = k->ast;
	uint32_t number;

	if (a->via != VIA_RULE)
		return;
	number = ast_find_rule(k->c->ast, a->rule);
	if (number != INDEX_NONE && k->c->ast->rules.at[number].quick)
		fail(k, a->via_at, "name a rule of the policy", "'%s' is a quick rule", a->rule);
	if (number == INDEX_NONE)
		fail(k, a->via_at, NULL, "unknown rule '%s'%s", a->rule,
		     check_suggest(k->c, SPACE_RULES, "", a->rule));
}

// ---- packet -------------------------------------------------------------------------------------

static void check_packet(struct expect_check *k)
{
	const struct ast_packet *a = &k->ast->packet;

	if (a->flags.given || a->type.given || a->ttl.given || a->fragment || a->established)
		fail(k, a->at, "a frame takes vlan, mac, length and on",
		     "only an IP packet has these fields");
}

static void check_expect(struct checker *c, struct ast_expect *a)
{
	struct expect_check k = {.c = c, .ast = a, .ok = true};

	check_target(&k);
	check_via(&k);
	if (a->packet.ethertype)
		check_packet(&k);
	else if (!check_addresses(c, &a->packet.from, SIDE_FROM) ||
		 !check_addresses(c, &a->packet.to, SIDE_TO))
		k.ok = false;
	a->broken = !k.ok;
}

// ---- services -----------------------------------------------------------------------------------

struct service_check {
	struct checker *c;
	struct ast_service *ast;
	bool ok;
};

static void fail_service(struct service_check *k, struct diag_at at, const char *hint,
			 const char *what)
{
	diag_error(k->c->diag, at, hint, "service '%s': %s", k->ast->name, what);
	k->ok = false;
}

static bool has_option(const struct service_check *k, enum ast_option option)
{
	return k->ast->option_at[option].file;
}

// "mode dr (same link), ipip or gue (through routers)"
static const char *mode_hint(struct service_check *k)
{
	choice_text same_link, routers;

	return arena_printf(&k->c->ast->strings, "mode %s (same link), %s (through routers)",
			    choice_modes_that(0, MODE_TUNNEL | MODE_LATER, same_link),
			    choice_modes_that(MODE_TUNNEL, MODE_LATER, routers));
}

static void check_needed(struct service_check *k)
{
	static const struct {
		enum ast_option option;
		const char *what, *hint;
	} needed[] = {
		{AST_VIP, "no vip", "vip ADDRESS"},
		{AST_SERVICE_PORT, "no port", "port 80, port 1000-1999, port any"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!has_option(k, needed[i].option))
			fail_service(k, k->ast->at, needed[i].hint, needed[i].what);
	if (!has_option(k, AST_MODE))
		fail_service(k, k->ast->at, mode_hint(k), "no mode");
	if (!k->ast->backends.n)
		fail_service(k, k->ast->at, "backend ADDRESS", "no backend");
}

static void check_options(struct service_check *k)
{
	const struct ast_service *a = k->ast;
	unsigned does = service_mode_does(a->mode);
	choice_text modes;

	if (a->idle_ms > SERVICE_IDLE_MAX_MS)
		fail_service(k, a->option_at[AST_IDLE], NULL, "'idle' must be at most 8h");
	if (a->vip.given && !check_addresses(k->c, &a->vip, SIDE_VIP))
		k->ok = false;
	if (a->source.given && !check_addresses(k->c, &a->source, SIDE_SOURCE))
		k->ok = false;
	if (a->source.given && !(does & MODE_SOURCE) && has_option(k, AST_MODE))
		fail_service(k, a->option_at[AST_SOURCE], NULL,
			     arena_printf(&k->c->ast->strings, "'source' needs mode %s",
					  choice_modes_that(MODE_SOURCE, 0, modes)));
	vec_each (&a->backends, backend) {
		if (backend->has_port && has_option(k, AST_MODE) && !(does & MODE_PORT))
			fail_service(k, backend->at,
				     arena_printf(&k->c->ast->strings,
						  "mode %s can change the port",
						  choice_modes_that(MODE_PORT, 0, modes)),
				     "in this mode backends receive the packet's own port");
	}
}

static void check_body(struct service_check *k)
{
	const struct ast_check *check = &k->ast->check;
	struct pattern *pattern = NULL;
	struct err err = {0};
	int code;

	if (!check->body)
		return;
	code = pattern_new(check->body, &pattern, &err);
	if (code)
		fail_service(k, check->body_at,
			     code == -EINVAL ? "a regular expression of PCRE2, as of grep -P"
					     : NULL,
			     arena_printf(&k->c->ast->strings, "%s", err.text));
	pattern_free(pattern);
}

static void check_health(struct service_check *k)
{
	static const enum ast_option options[] = {AST_LOST, AST_RAMP, AST_KEEP};
	const struct ast_check *check = &k->ast->check;
	bool checks = check->given && check->kind != CHECK_NONE;

	check_body(k);
	if (checks && check->kind != CHECK_EXEC && k->ast->any_port && !check->has_port)
		fail_service(k, check->at, "check tcp port 80",
			     "a check of 'port any' needs a port of its own");
	for (size_t i = 0; i < ARRAY_SIZE(options) && !checks; i++)
		if (has_option(k, options[i]))
			diag_warning(k->c->diag, k->ast->option_at[options[i]], NULL,
				     "service '%s': without 'check' this has no effect",
				     k->ast->name);
}

static void check_service(struct checker *c, struct ast_service *a)
{
	struct service_check k = {.c = c, .ast = a, .ok = !a->broken};

	if (!k.ok)
		return;
	check_needed(&k);
	check_options(&k);
	check_health(&k);
	a->broken = !k.ok;
}

// An empty or truncated text must not replace a policy: a policy without a filter must be explicit.
static void check_empty(const struct checker *c)
{
	const struct ast *a = c->ast;
	struct diag_at at = {.file = a->files.n ? a->files.at[0] : NULL};

	if (a->rules.n == a->n_quick && !a->defaults.n && !a->services.n && !diag_errors(c->diag))
		diag_error(c->diag, at, "write 'default pass' if nothing shall be filtered",
			   "the policy has no rule, no 'default' and no 'service'");
}

void policy_check(struct ast *ast, bool may_be_empty, struct diag *diag)
{
	struct checker c = {.ast = ast, .diag = diag, .expander.ast = ast};

	if (!may_be_empty)
		check_empty(&c);
	check_names(&c);
	check_identities(&c);
	vec_each (&ast->sets, set)
		if (ast_set_is_addresses(set))
			check_addresses(&c, &set->elements, SIDE_SET);
	vec_each (&ast->rules, rule)
		check_rule(&c, rule);
	vec_each (&ast->services, service)
		check_service(&c, service);
	vec_each (&ast->expects, expect)
		check_expect(&c, expect);
	expander_free(&c.expander);
}
