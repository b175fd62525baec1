// SPDX-License-Identifier: GPL-2.0-only
// Parses rules: an action, then fields, conditions and modifiers in any order.
#include <stdio.h>
#include <string.h>

#include "ctl/base/diag_nearest.h"
#include "ctl/base/mac.h"
#include "ctl/base/mem.h"
#include "ctl/base/text.h"
#include "ctl/policy/fields.h"
#include "ctl/policy/names.h"
#include "ctl/policy/parser.h"

#include "common/limits.h"

#define SHOWN_MAX 60

// Each parses what follows the keyword `t`, which is passed.
typedef bool clause_fn(struct parser *p, struct ast_rule *rule, const struct token *t);

static bool parse_list_of(struct parser *p, struct ast_rule *rule, const struct token *t,
			  enum ast_field which, const struct domain *domain)
{
	return parse_once(p, &rule->field_at[which], t, "rule") &&
	       parse_list(p, domain, &rule->fields[which]);
}

static bool parse_ports(struct parser *p, struct ast_rule *rule, enum ast_field which)
{
	const struct token *t = parse_next(p);

	return parse_list_of(p, rule, t, which, &domain_port);
}

static bool is_mac(const struct token *t)
{
	uint64_t mac;

	return t->kind == TOKEN_WORD && !mac_parse(t->text, strcspn(t->text, "-"), &mac);
}

// ( "from"|"to" ) ( list [ "port" list ] | "port" list )
static bool parse_side(struct parser *p, struct ast_rule *rule, const struct token *t,
		       enum ast_field address, enum ast_field port)
{
	if (!parse_once(p, &rule->field_at[address], t, "rule"))
		return false;
	if (parse_is_word(p, "mac") && is_mac(&p->at[1]))
		return parse_fail(p, t->at,
				  address == AST_FROM ? "omit 'from'"
						      : "only the source's MAC address is matched",
				  "'%s' takes no MAC address", t->text);
	if (!parse_is_word(p, "port") && !parse_list(p, &domain_address, &rule->fields[address]))
		return false;
	return !parse_is_word(p, "port") || parse_ports(p, rule, port);
}

static bool parse_from(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	return parse_side(p, rule, t, AST_FROM, AST_SPORT);
}

static bool parse_to(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	return parse_side(p, rule, t, AST_TO, AST_DPORT);
}

// Without from or to: the destination's, if no address has been given that it could belong to.
static bool parse_port(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	if (rule->field_at[AST_FROM].file || rule->field_at[AST_TO].file)
		return parse_fail(
			p, t->at,
			"write 'from … port P' for the source, 'to … port P' for the destination",
			"ambiguous 'port': of the source or of the destination?");
	return parse_list_of(p, rule, t, AST_DPORT, &domain_port);
}

static bool parse_type(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	if (!parse_list_of(p, rule, t, AST_TYPE, &domain_type))
		return false;
	t = p->at;
	return !parse_accept_word(p, "code") || parse_list_of(p, rule, t, AST_CODE, &domain_code);
}

static bool parse_code(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	return parse_fail(p, t->at, "write type NAME code NUMBER", "'code' must follow its type");
}

static bool parse_tcp_flags(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	return parse_once(p, &rule->field_at[AST_FLAGS], t, "rule") &&
	       parse_flags(p, &rule->fields[AST_FLAGS], &rule->fields[AST_FLAGS_MASK]);
}

static bool parse_probability(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	uint64_t millionths;

	if (!parse_once(p, &rule->field_at[AST_PROBABILITY], t, "rule") ||
	    !parse_percent(p, &millionths))
		return false;
	if (!millionths)
		return parse_fail(p, p->at[-1].at, NULL, "a probability of 0%% matches nothing");
	rule->probability = ((millionths << 32) + 50000000) / 100000000;
	return true;
}

static bool parse_field(struct parser *p, struct ast_rule *rule, size_t which)
{
	const struct field *f = &fields[which];
	const struct token *t = parse_next(p);

	if (!parse_once(p, &rule->field_at[which], t, "rule"))
		return false;
	switch (f->form) {
	case FORM_WORD:
	case FORM_EITHER:
		return true;
	case FORM_SPAN:
		return parse_number_span(p, f->what, f->max, &rule->spans[which]);
	default:
		return parse_list(p, f->domain, &rule->fields[which]);
	}
}

static clause_fn *find_clause(const struct token *t);

// "not" before a field that does not take it there.
static bool refuse_not(struct parser *p, const struct token *t, size_t field)
{
	CLEANUP_FREE char *first = NULL;

	if (field == AST_RULE_FIELDS || fields[field].form != FORM_WORD)
		return parse_fail(p, t->at,
				  "write not established, or FIELD not VALUE: proto not tcp",
				  "'not' follows the field that it negates");
	first = mem_printf("write a rule with %s first: later rules match the other packets",
			   fields[field].keyword);
	return parse_fail(p, t->at, first, "'%s' cannot be negated", fields[field].keyword);
}

// "not" before a word; lists have it after their keyword.
static bool parse_not(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	size_t field = parse_is(p, TOKEN_WORD) ? field_find(p->at->text) : AST_RULE_FIELDS;

	if (field == AST_RULE_FIELDS && !parse_at_end(p) &&
	    !(parse_is(p, TOKEN_WORD) && find_clause(p->at)))
		return parse_fail(p, t->at, "items of a list are separated by ','",
				  "expected a field, a condition or a modifier, found 'not'");
	if (field == AST_RULE_FIELDS || fields[field].form != FORM_EITHER)
		return refuse_not(p, t, field);
	rule->negated[field] = true;
	return parse_field(p, rule, field);
}

// ---- over, under --------------------------------------------------------------------------------

// "rule" | "source" [ "and" "port" ] | "destination"
static bool parse_per(struct parser *p, struct ast_limit *limit)
{
	limit->has_per = true;
	if (!parse_choice(p, &choice_pers, NULL, &limit->per))
		return false;
	if (!parse_accept_word(p, "and"))
		return true;
	if (limit->per != PER_SOURCE)
		return parse_fail(p, p->at[-1].at, "per source and port",
				  "'and' must follow 'per source'");
	limit->per = PER_SOURCE_PORT;
	return parse_accept_word(p, "port") || parse_expected(p, "port", "per source and port");
}

static bool parse_limit_max(struct parser *p, struct ast_limit *limit)
{
	uint64_t n;

	if (!parse_count(p, "a number of entries", 1, POLICY_RATE_MAX, &n))
		return false;
	limit->has_max = true;
	limit->max = (uint32_t)n;
	return true;
}

static bool parse_limit_mask(struct parser *p, struct ast_limit *limit)
{
	limit->has_mask = true;
	return parse_mask(p, &limit->mask4, &limit->mask6);
}

// { "burst" COUNT | "per" … | "mask" MASK | "max" COUNT }
static bool parse_limit_words(struct parser *p, struct ast_limit *limit)
{
	struct diag_at per_at = {0};
	bool ok = true;

	while (ok) {
		const struct token *t = p->at;

		if (parse_accept_word(p, "burst"))
			ok = parse_once(p, &limit->burst_at, t, "rate") &&
			     parse_count(p, "a burst", 1, POLICY_RATE_BITS, &limit->burst);
		else if (parse_accept_word(p, "per"))
			ok = parse_once(p, &per_at, t, "rate") && parse_per(p, limit);
		else if (parse_accept_word(p, "mask"))
			ok = parse_once(p, &limit->mask_at, t, "rate") &&
			     parse_limit_mask(p, limit);
		else if (parse_accept_word(p, "max"))
			ok = parse_once(p, &limit->max_at, t, "rate") && parse_limit_max(p, limit);
		else
			break;
	}
	return ok;
}

static bool is_connections(const struct parser *p)
{
	const char *next =
		parse_is(p, TOKEN_WORD) && p->at[1].kind == TOKEN_WORD ? p->at[1].text : "";

	return !strcmp(next, "connections") || !strcmp(next, "connection");
}

// COUNT "connections", COUNT "connection"
static bool parse_connections(struct parser *p, struct ast_limit *limit)
{
	limit->connections = true;
	limit->rate = (struct ast_rate){.given = true, .at = p->at->at};
	if (!parse_count(p, "a number of connections", 1, POLICY_CONNECTIONS, &limit->rate.count))
		return false;
	parse_next(p);
	return true;
}

static bool parse_limit(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	struct ast_limit *limit = &rule->limit;

	if (limit->given)
		return parse_fail(p, t->at, "write two rules", "a rule takes only one rate");
	limit->given = true;
	limit->at = rule->field_at[AST_LIMIT] = t->at;
	limit->under = !strcmp(t->text, "under");
	if (is_connections(p) ? !parse_connections(p, limit) : !parse_rate(p, true, &limit->rate))
		return false;
	return parse_limit_words(p, limit);
}

// ---- modifiers ----------------------------------------------------------------------------------

static bool parse_log(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	if (!parse_once(p, &rule->log.at, t, "rule"))
		return false;
	rule->log.given = true;
	if (parse_is(p, TOKEN_WORD) && p->at->text[0] >= '0' && p->at->text[0] <= '9' &&
	    !parse_rate(p, false, &rule->log.rate))
		return false;
	return !parse_accept_word(p, "snap") ||
	       parse_number(p, "a number of bytes", 1, WEIR_SNAP_MAX, &rule->log.snap);
}

static bool parse_add(struct parser *p, struct ast_rule *rule, const struct token *t)
{
	static const char *const sides[] = {"source", "destination"};
	static const struct choice choice = {sides, ARRAY_SIZE(sides)};
	struct ast_add *add = &rule->add;
	uint8_t side;

	if (!parse_once(p, &add->at, t, "rule") || !parse_choice(p, &choice, NULL, &side))
		return false;
	if (!parse_is(p, TOKEN_SET))
		return parse_expected(p, "a dynamic @set", NULL);
	add->given = true;
	add->destination = side == 1;
	add->set_at = p->at->at;
	add->set = parse_next(p)->text;
	return !parse_accept_word(p, "for") || parse_time(p, "a time", &add->for_ms);
}

// ---- the rule -----------------------------------------------------------------------------------

// Clauses with special syntax. All others are fields, parsed by their form.
static const struct {
	const char *word;
	clause_fn *parse;
} clauses[] = {
	{"from", parse_from},  {"to", parse_to},       {"port", parse_port},
	{"type", parse_type},  {"code", parse_code},   {"flags", parse_tcp_flags},
	{"over", parse_limit}, {"under", parse_limit}, {"probability", parse_probability},
	{"log", parse_log},    {"add", parse_add},     {"not", parse_not},
};

static clause_fn *find_clause(const struct token *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(clauses); i++)
		if (!strcmp(clauses[i].word, t->text))
			return clauses[i].parse;
	return NULL;
}

static const char *nearest_clause(const char *word)
{
	// Words that follow a clause are suggested too.
	static const char *const within[] = {"burst", "per", "mask", "max", "snap", "for"};
	const char *words[ARRAY_SIZE(clauses) + AST_RULE_FIELDS + ARRAY_SIZE(within)];
	size_t n = 0;

	for (size_t i = 0; i < AST_RULE_FIELDS; i++)
		if (fields[i].keyword)
			words[n++] = fields[i].keyword;
	for (size_t i = 0; i < ARRAY_SIZE(clauses); i++)
		words[n++] = clauses[i].word;
	for (size_t i = 0; i < ARRAY_SIZE(within); i++)
		words[n++] = within[i];
	return diag_nearest(word, words, n);
}

// Does the word look like an item of a list, after which a ',' is missing?
static bool is_item(const char *word)
{
	uint8_t flag;

	return keyword_is(word) || !names_flag(word, &flag) || strpbrk(word, "0123456789.:/-_*");
}

static bool unknown_clause(struct parser *p)
{
	const char *near = NULL, *write = NULL;
	char hint[80];

	if ((write = parse_foreign(p)))
		return parse_expected(p, "a field, a condition or a modifier", write);
	if (parse_is(p, TOKEN_WORD) && !keyword_is(p->at->text))
		near = nearest_clause(p->at->text);
	if (!near && parse_is(p, TOKEN_WORD) && !is_item(p->at->text))
		return parse_fail(p, p->at->at, NULL, "unknown word '%.*s' in a rule", SHOWN_MAX,
				  p->at->text);
	if (near)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", near);
	else
		snprintf(hint, sizeof(hint), "items of a list are separated by ','");
	return parse_expected(p, "a field, a condition or a modifier",
			      near || parse_is(p, TOKEN_WORD) ? hint : NULL);
}

static bool parse_clause(struct parser *p, struct ast_rule *rule)
{
	clause_fn *parse = parse_is(p, TOKEN_WORD) ? find_clause(p->at) : NULL;
	size_t field = parse_is(p, TOKEN_WORD) ? field_find(p->at->text) : AST_RULE_FIELDS;

	if (parse)
		return parse(p, rule, parse_next(p));
	if (field < AST_RULE_FIELDS)
		return parse_field(p, rule, field);
	return unknown_clause(p);
}

static bool parse_clauses(struct parser *p, struct ast_rule *rule)
{
	while (!parse_at_end(p)) {
		if (!parse_clause(p, rule))
			return false;
	}
	return true;
}

static bool parse_action(struct parser *p, struct ast_rule *rule)
{
	const struct token *target;

	if (!parse_choice(p, &choice_actions, NULL, &rule->action))
		return false;
	if (rule->action != ACTION_REDIRECT)
		return true;
	if (!parse_ifname(p, false, &target))
		return false;
	rule->redirect = target->text;
	return true;
}

static const char *token_sign(const struct token *t)
{
	return t->kind == TOKEN_DEFINE ? "$" : t->kind == TOKEN_SET ? "@" : "";
}

// The identity of a rule without a name: weir-policy(5), RULES.
static const char *text_of(struct parser *p, const struct token *from)
{
	CLEANUP(text_free) struct text t = {0};

	for (const struct token *at = from; at < p->at; at++) {
		if (at->kind == TOKEN_COMMA)
			text_addc(&t, ',');
		else
			text_addf(&t, "%s%s%s", at > from ? " " : "", token_sign(at), at->text);
	}
	return arena_strdup(&p->ast->strings, text_get(&t));
}

void parse_break_rule(struct ast_rule *rule)
{
	struct ast_rule left = {
		.at = rule->at, .line = rule->line, .name = rule->name, .text = "", .broken = true};

	for (size_t i = 0; i < AST_FIELDS; i++)
		vec_free(&rule->fields[i].items);
	*rule = left;
}

bool parse_rule(struct parser *p)
{
	struct ast_rule rule = {.at = p->at->at, .line = p->at->line};
	const struct token *start;

	if (parse_is(p, TOKEN_STRING))
		rule.name = parse_next(p)->text;
	start = p->at;
	rule.always = parse_accept_word(p, "always");
	if (!parse_action(p, &rule) || !parse_clauses(p, &rule))
		parse_break_rule(&rule);
	else
		rule.text = text_of(p, start);
	if (p->ast->rules.n > POLICY_RULES) { // reported once; nothing more is kept
		parse_break_rule(&rule);
		return true;
	}
	parse_room(p, p->ast->rules.n, POLICY_RULES, rule.at, "rules");
	vec_push(&p->ast->rules, rule);
	return !rule.broken;
}
