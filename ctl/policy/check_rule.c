// SPDX-License-Identifier: GPL-2.0-only
// Checks rules: which words fit together, and the values of all fields except addresses and ports.
#include <stdio.h>
#include <string.h>

#include "common/limits-policy.h"
#include "common/limits.h"
#include "ctl/base/mem.h"
#include "ctl/policy/checker.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/names.h"

#define SHOWN_MAX 60

struct rule_check {
	struct checker *c;
	struct ast_rule *ast;
	struct resolved_rule *ret;
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

static struct value value_of(struct rule_check *k, enum ast_field field)
{
	return check_value(k->c, k->ast->field_at[field]);
}

static void fail(struct rule_check *k, struct diag_at at, const char *hint, const char *what)
{
	diag_error(k->c->diag, at, hint, "%s", what);
	k->ok = false;
}

static void keep_ranges(struct rule_check *k, struct ranges *from, struct resolved_ranges *to)
{
	to->given = true;
	to->n = from->n;
	to->at = arena_copy(&k->c->r->memory, from->at, from->n, sizeof(*from->at));
	ranges_free(from);
}

// ---- protocols ------------------------------------------------------------------------------------

// What wants certain protocols: ports, flags, types, established.
struct need {
	uint64_t bits[4];
	const char *what; // "ports"
	struct diag_at at;
};

static void say_protocol(struct rule_check *k, const struct need *need, unsigned proto)
{
	const char *name = names_of_proto((uint8_t)proto);
	struct diag_at at = k->ast->field_at[AST_PROTO];

	if (name)
		diag_error(k->c->diag, at, NULL, "protocol '%s' has no %s", name, need->what);
	else
		diag_error(k->c->diag, at, NULL, "protocol %u has no %s", proto, need->what);
	k->ok = false;
}

// A protocol that the rule names must have what the rule wants; one that is left over by "not" goes.
static void demand(struct rule_check *k, const struct need *need)
{
	struct resolved_bits *proto = &k->ret->proto;
	const struct ast_list *list = &k->ast->fields[AST_PROTO];
	bool named = list->given && !list->negated && k->ok, any = false;

	for (unsigned n = 0; n < 256; n++) {
		if (proto->given && !bits_has(proto->bits, n))
			continue;
		if (bits_has(need->bits, n)) {
			any = true;
			continue;
		}
		if (named) {
			say_protocol(k, need, n);
			return;
		}
	}
	if (!any && k->ok)
		fail(k, need->at, "they belong to different protocols",
		     "no packet can have all that this rule asks for");
	for (unsigned i = 0; i < 4; i++)
		proto->bits[i] = proto->given ? proto->bits[i] & need->bits[i] : need->bits[i];
	proto->given = true;
}

static void demand_all(struct rule_check *k)
{
	struct need ports = {.what = "ports", .at = k->ast->field_at[AST_DPORT]};
	struct need flags = {.what = "TCP flags", .at = k->ast->field_at[AST_FLAGS]};
	struct need established = {.what = "connections", .at = k->ast->field_at[AST_ESTABLISHED]};

	bits_set(ports.bits, PROTO_TCP);
	bits_set(ports.bits, PROTO_UDP);
	bits_set(ports.bits, PROTO_SCTP);
	bits_set(flags.bits, PROTO_TCP);
	bits_set(established.bits, PROTO_TCP);
	bits_set(established.bits, PROTO_UDP);
	if (!ports.at.file)
		ports.at = k->ast->field_at[AST_SPORT];
	if (has(k, AST_SPORT) || has(k, AST_DPORT))
		demand(k, &ports);
	if (has(k, AST_FLAGS))
		demand(k, &flags);
	if (has_word(k, AST_ESTABLISHED))
		demand(k, &established);
}

static void check_proto(struct rule_check *k)
{
	struct value v = value_of(k, AST_PROTO);

	if (has(k, AST_PROTO)) {
		k->ret->proto.given = true;
		if (value_bits(&v, &domain_proto, &k->ast->fields[AST_PROTO], k->ret->proto.bits) <
		    0) {
			k->ok = false;
			return;
		}
	}
	demand_all(k);
}

// ---- ICMP -----------------------------------------------------------------------------------------

static void add_types(struct rule_check *k, uint8_t family, const struct ranges *types,
		      const struct ranges *codes, struct resolved_icmp **at)
{
	for (size_t i = 0; i < types->n; i++)
		for (unsigned type = types->at[i].first; type <= types->at[i].last; type++)
			for (size_t j = 0; j < codes->n; j++)
				*(*at)++ = (struct resolved_icmp){
					.family = family,
					.type = (uint8_t)type,
					.code_first = (uint8_t)codes->at[j].first,
					.code_last = (uint8_t)codes->at[j].last,
				};
	if (types->n)
		bits_set(k->ret->proto.bits, family == 4 ? PROTO_ICMP : PROTO_ICMP6);
}

static size_t count_types(const struct ranges *types)
{
	size_t n = 0;

	for (size_t i = 0; i < types->n; i++)
		n += (size_t)types->at[i].last - types->at[i].first + 1;
	return n;
}

static void fill_icmp(struct rule_check *k, const struct ranges *types4,
		      const struct ranges *types6, const struct ranges *codes)
{
	size_t n = (count_types(types4) + count_types(types6)) * codes->n;
	struct resolved_icmp *at = arena_zalloc(&k->c->r->memory, n, sizeof(*at));

	k->ret->icmp.given = true;
	k->ret->icmp.at = at;
	k->ret->icmp.n = n;
	memset(k->ret->proto.bits, 0, sizeof(k->ret->proto.bits));
	k->ret->proto.given = true;
	add_types(k, 4, types4, codes, &at);
	add_types(k, 6, types6, codes, &at);
}

// The families that the rule's protocols leave; false with an error queued when others are among them.
static bool icmp_families(struct rule_check *k, unsigned *ret)
{
	const struct resolved_bits *proto = &k->ret->proto;
	struct need need = {.what = "ICMP types", .at = k->ast->field_at[AST_TYPE]};

	bits_set(need.bits, PROTO_ICMP);
	bits_set(need.bits, PROTO_ICMP6);
	demand(k, &need);
	*ret = (bits_has(proto->bits, PROTO_ICMP) ? 1u << 4 : 0) |
	       (bits_has(proto->bits, PROTO_ICMP6) ? 1u << 6 : 0);
	return k->ok;
}

static bool check_codes(struct rule_check *k, const struct ranges *types4,
			const struct ranges *types6, struct ranges *ret)
{
	const struct ast_list *type = &k->ast->fields[AST_TYPE];
	struct value v = value_of(k, AST_CODE);

	if (!has(k, AST_CODE)) {
		ranges_add(ret, 0, 255);
		return true;
	}
	if (type->negated || count_types(types4) > 1 || count_types(types6) > 1) {
		fail(k, k->ast->field_at[AST_CODE], "write a rule for each type",
		     "'code' needs one type");
		return false;
	}
	return value_ranges(&v, &domain_code, &k->ast->fields[AST_CODE], ret) == 0;
}

static void warn_neighbour(struct rule_check *k, const struct ranges *types6)
{
	const struct ast_list *type = &k->ast->fields[AST_TYPE];

	if (!type->negated || k->ast->action == ACTION_PASS || k->ast->action == ACTION_COUNT)
		return;
	for (uint16_t t = 133; t <= 136; t++)
		if (ranges_has(types6->at, types6->n, t)) {
			diag_warning(
				k->c->diag, type->at, "name the types that are meant",
				"this takes neighbour discovery too, without which IPv6 stops");
			return;
		}
}

static void check_types(struct rule_check *k)
{
	struct value v = value_of(k, AST_TYPE);
	struct ranges types4 = {0}, types6 = {0}, codes = {0};
	unsigned families, found;

	if (!has(k, AST_TYPE) || !icmp_families(k, &families))
		return;
	if (value_types(&v, &k->ast->fields[AST_TYPE], has(k, AST_PROTO), families, &types4,
			&types6, &found) < 0 ||
	    !check_codes(k, &types4, &types6, &codes)) {
		k->ok = false;
	} else {
		fill_icmp(k, &types4, &types6, &codes);
		warn_neighbour(k, &types6);
	}
	ranges_free(&types4);
	ranges_free(&types6);
	ranges_free(&codes);
}

// ---- the other fields -----------------------------------------------------------------------------

static void check_list(struct rule_check *k, enum ast_field field)
{
	const struct ast_list *list = &k->ast->fields[field];
	const struct domain *domain = fields[field].domain;
	struct value v = value_of(k, field);
	struct resolved_bits *bits = field_place(k->ret, field);
	struct ranges ranges = {0};

	if (fields[field].form == FORM_BITS) {
		bits->given = true;
		if (value_bits(&v, domain, list, bits->bits) < 0)
			k->ok = false;
		return;
	}
	if (value_ranges(&v, domain, list, &ranges) < 0)
		k->ok = false;
	keep_ranges(k, &ranges, field_place(k->ret, field));
}

static void check_span(struct rule_check *k, enum ast_field field)
{
	const struct ast_span *span = &k->ast->spans[field];

	*(struct resolved_span *)field_place(k->ret, field) =
		(struct resolved_span){true, span->first, span->last};
}

static void check_flags(struct rule_check *k)
{
	const struct ast_list *lists = k->ast->fields;
	struct value v = value_of(k, AST_FLAGS);
	struct resolved_flags *flags = &k->ret->flags;

	flags->given = true;
	if (value_flags(&v, &lists[AST_FLAGS], &lists[AST_FLAGS_MASK], &flags->set, &flags->mask) <
	    0)
		k->ok = false;
}

static void check_field(struct rule_check *k, enum ast_field field)
{
	const struct ast_list *list = &k->ast->fields[field];

	switch (fields[field].form) {
	case FORM_ADDRESS:
		if (list->given &&
		    !check_addresses(k->c, list, field == AST_FROM ? SIDE_FROM : SIDE_TO))
			k->ok = false;
		return;
	case FORM_WORD:
		*(bool *)field_place(k->ret, field) = true;
		return;
	case FORM_SPAN:
		check_span(k, field);
		return;
	case FORM_FLAGS:
		check_flags(k);
		return;
	case FORM_PROBABILITY:
		k->ret->probability = (struct resolved_probability){true, k->ast->probability};
		return;
	case FORM_TYPES: // those that depend on protocols, see above and resolve
	case FORM_LIMIT:
		return;
	default:
		if (field != AST_PROTO && field != AST_SPORT && field != AST_DPORT)
			check_list(k, field);
	}
}

static void check_fields(struct rule_check *k)
{
	for (enum ast_field field = 0; field < AST_RULE_FIELDS; field++)
		if (has_word(k, field))
			check_field(k, field);
}

// ---- frames ---------------------------------------------------------------------------------------

static bool only_ip(const struct resolved_ranges *types)
{
	static const struct range16 ip[] = {{0x0800, 0x0800}, {0x86dd, 0x86dd}};

	return ranges_cover(ip, ARRAY_SIZE(ip), types->at, types->n);
}

static void check_frame(struct rule_check *k)
{
	static const char hint[] =
		"'ethertype' goes with on, vlan, length, over, probability and modifiers";
	const struct ast_rule *a = k->ast;

	if (!has(k, AST_ETHERTYPE))
		return;
	for (enum ast_field field = 0; field < AST_RULE_FIELDS; field++)
		if (has_word(k, field) && !fields[field].frame)
			fail(k, a->field_at[field], hint,
			     "a frame is matched without its IP header");
	if (a->action == ACTION_REJECT)
		fail(k, a->at, "use drop", "a frame cannot be rejected");
	if (only_ip(&k->ret->ethertype))
		return;
	if (a->limit.given && a->limit.per != PER_RULE)
		fail(k, a->limit.at, "per rule", "not every frame has an IP address to count by");
	if (a->add.given)
		fail(k, a->add.at, NULL, "not every frame has an IP address to add");
}

// ---- conditions and modifiers ---------------------------------------------------------------------

static void check_limit(struct rule_check *k)
{
	const struct ast_limit *a = &k->ast->limit;
	struct resolved_limit *r = &k->ret->limit;

	if (!a->given)
		return;
	if (a->has_mask && a->per == PER_RULE)
		fail(k, a->mask_at, "per source mask …",
		     "'mask' needs per source or per destination");
	if (a->has_max && a->per == PER_RULE)
		fail(k, a->max_at, "per source max …", "'max' needs per source or per destination");
	*r = (struct resolved_limit){
		.given = true,
		.under = a->under,
		.bits = a->rate.bits,
		.count = a->rate.count,
		.period_ms = a->rate.period_ms,
		.burst = a->burst ? a->burst : a->rate.count,
		.per = a->per,
	};
	if (a->per == PER_RULE)
		return;
	r->mask4 = a->has_mask ? a->mask4 : 32;
	r->mask6 = a->has_mask ? a->mask6 : 64;
	r->max = a->has_max ? a->max : POLICY_RATE_DEFAULT;
}

static void check_log(struct rule_check *k)
{
	const struct ast_log *a = &k->ast->log;

	if (!a->given)
		return;
	k->ret->log = (struct resolved_log){
		.given = true,
		.count = a->rate.given ? a->rate.count : 1,
		.period_ms = a->rate.given ? a->rate.period_ms : 1000,
		.snap = a->snap ? a->snap : WEIR_SNAP_DEFAULT,
	};
}

// The dynamic set of that name; n_dynamics: none (or too many of them, which has been said).
static uint32_t find_dynamic(const struct resolved *r, const char *name)
{
	uint32_t i = 0;

	while (i < r->n_dynamics && strcmp(r->dynamics[i].name, name) != 0)
		i++;
	return i;
}

static bool takes_proto(const struct rule_check *k, unsigned proto)
{
	return !k->ret->proto.given || bits_has(k->ret->proto.bits, proto);
}

// Warns of an 'add source' that a forged packet can trigger.
static void warn_forged(struct rule_check *k)
{
	const struct resolved_flags *flags = &k->ret->flags;
	bool syn = !flags->given || ((flags->set & FLAG_SYN || !(flags->mask & FLAG_SYN)) &&
				     !(flags->set & FLAG_ACK));
	const char *what = NULL;

	if (k->ast->add.destination || has_word(k, AST_ESTABLISHED) || k->ret->ethertype.given)
		return;
	if (takes_proto(k, PROTO_UDP))
		what = "UDP packet";
	else if (takes_proto(k, PROTO_TCP) && syn)
		what = "SYN";
	if (what)
		diag_warning(k->c->diag, k->ast->add.at, NULL,
			     "'add source' on a %s: who forges it gets a third party into '@%s'",
			     what, k->ast->add.set);
}

static void check_add(struct rule_check *k)
{
	const struct ast_add *a = &k->ast->add;
	uint32_t number, dynamic;

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
	dynamic = find_dynamic(k->c->r, a->set);
	if (dynamic == k->c->r->n_dynamics)
		return;
	k->ret->add = (struct resolved_add){
		.given = true,
		.destination = a->destination,
		.dynamic = dynamic,
		.for_ms = a->for_ms ? a->for_ms : k->c->r->dynamics[dynamic].expire_ms,
	};
	warn_forged(k);
}

// ---- warnings about the rule as a whole -----------------------------------------------------------

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
		has(k, AST_ON) ? "default drop on … lets them pass" : "default drop lets them pass",
		"this %s everything, ARP and neighbour discovery apart: ICMP errors and DHCP answers too",
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
	diag_warning(k->c->diag, a->field_at[AST_SPORT], "'to any' says that it is meant",
		     "this is the source port; did you mean 'to port %.*s'?", (int)at.len, words);
}

void check_rule(struct checker *c, struct ast_rule *rule, struct resolved_rule *ret)
{
	struct rule_check k = {.c = c, .ast = rule, .ret = ret, .ok = !rule->broken};

	ret->identity = arena_strdup(&c->r->memory, rule->identity);
	ret->named = rule->name;
	ret->at = rule->at;
	ret->place = check_place(c, rule->at, rule->line);
	ret->always = rule->always;
	ret->action = rule->action;
	ret->redirect = arena_strdup(&c->r->memory, rule->redirect);
	if (!k.ok)
		return;
	check_proto(&k);
	check_types(&k);
	check_fields(&k);
	check_frame(&k);
	check_limit(&k);
	check_log(&k);
	check_add(&k);
	warn_drop_all(&k);
	warn_source_port(&k);
	rule->broken = !k.ok;
}

// ---- identities -----------------------------------------------------------------------------------

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

void check_identities(struct checker *c)
{
	size_t n = c->ast->rules.n;
	CLEANUP_FREE uint32_t *uses = mem_zalloc(n, sizeof(*uses)); // of a text, at its first rule
	struct index taken = {0}, texts = {0};

	for (size_t i = 0; i < n; i++)
		if (c->ast->rules.at[i].name)
			index_add(&taken, c->ast->rules.at[i].name, BY_NAME);
	for (size_t i = 0; i < n; i++) {
		struct ast_rule *rule = &c->ast->rules.at[i];

		rule->identity = rule->name ? rule->name : "";
		if (rule->name || rule->broken)
			continue;
		number_text(c, rule, (uint32_t)i, &uses[index_add(&texts, rule->text, (uint32_t)i)],
			    &taken);
	}
	index_free(&taken);
	index_free(&texts);
}
