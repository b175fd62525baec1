// SPDX-License-Identifier: GPL-2.0-only
// The statements of the language: the parsers of short ones, and the table of all.
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/policy/names.h"
#include "ctl/policy/parser.h"

typedef bool statement_fn(struct parser *p);

// Names after a keyword ("interface eth0, eth1") as one list.
static bool parse_ifnames(struct parser *p, struct ast_list *ret)
{
	const struct token *name, *comma = NULL;

	ret->given = true;
	do {
		struct ast_item item = {.kind = AST_WORD};

		if (comma && (!parse_is(p, TOKEN_WORD) || parse_starts_statement(p->at)))
			return parse_fail(p, comma->at, NULL, "a list cannot end with a comma");
		if (!parse_ifname(p, true, &name))
			return false;
		item.at = name->at;
		item.line = name->line;
		item.word = name->text;
		vec_push(&ret->items, item);
		comma = p->at;
	} while (parse_accept(p, TOKEN_COMMA));
	ret->at = parse_span(ret->items.at[0].at, p->at[-1].at);
	return true;
}

static bool parse_interface_words(struct parser *p, struct ast_interface *iface)
{
	iface->has_mode = parse_accept_word(p, "mode");
	if (iface->has_mode && !parse_choice(p, &choice_attach, NULL, &iface->mode))
		return false;
	iface->optional = parse_accept_word(p, "optional");
	return true;
}

static bool parse_interface(struct parser *p)
{
	struct ast_interface words = {0};
	struct ast_list names = {0};
	bool ok;

	parse_next(p);
	ok = parse_ifnames(p, &names) && parse_interface_words(p, &words);
	vec_each (&names.items, item) {
		struct ast_interface *iface = vec_add(&p->ast->interfaces);

		*iface = words;
		iface->at = item->at;
		iface->line = item->line;
		iface->name = item->word;
	}
	vec_free(&names.items);
	return ok;
}

static bool parse_define(struct parser *p)
{
	struct ast_define define = {.line = p->at->line};
	const struct token *name;
	bool ok;

	parse_next(p);
	if (!parse_name(p, "the name of a definition", &name))
		return false;
	define.at = name->at;
	define.name = name->text;
	if (p->ast->defines.n >= POLICY_DEFINES)
		return parse_room(p, p->ast->defines.n, POLICY_DEFINES, name->at, "definitions");
	ok = parse_accept(p, TOKEN_EQUALS) ? parse_list(p, &domain_define, &define.list)
					   : parse_expected(p, "'='", NULL);
	vec_push(&p->ast->defines, define);
	return ok;
}

static bool parse_dynamic_max(struct parser *p, struct ast_set *set)
{
	uint64_t n;

	if (!parse_count(p, "a number of entries", 1, POLICY_RATE_MAX, &n))
		return false;
	set->has_max = true;
	set->max = (uint32_t)n;
	return true;
}

static bool parse_dynamic(struct parser *p, struct ast_set *set)
{
	struct diag_at max = {0}, expire = {0}, mask = {0}, count = {0};
	bool ok = true;

	set->dynamic = true;
	while (ok && !parse_at_end(p)) {
		const struct token *t = p->at;

		if (parse_accept_word(p, "max"))
			ok = parse_once(p, &max, t, "set") && parse_dynamic_max(p, set);
		else if (parse_accept_word(p, "expire"))
			ok = parse_once(p, &expire, t, "set") &&
			     parse_time(p, "a time", &set->expire_ms);
		else if (parse_accept_word(p, "mask"))
			ok = parse_once(p, &mask, t, "set") &&
			     parse_mask(p, &set->mask4, &set->mask6);
		else if (parse_accept_word(p, "count"))
			ok = parse_once(p, &count, t, "set");
		else
			return parse_expected(p, "max, expire, mask or count", NULL);
	}
	set->count = count.file;
	set->has_expire = expire.file;
	set->has_mask = mask.file;
	return ok;
}

// The word after the name of a set of numbers.
static uint8_t parse_kind(struct parser *p)
{
	for (uint8_t kind = 0; kind < AST_SET_KINDS; kind++)
		if (set_kinds[kind].word && parse_accept_word(p, set_kinds[kind].word))
			return kind;
	return AST_SET_ADDRESSES;
}

static bool expected_open(struct parser *p, const struct set_kind *kind)
{
	char hint[96];

	snprintf(hint, sizeof(hint), "write set NAME %s { %s }", kind->word, kind->example);
	return parse_expected(p, "'{'", hint);
}

static bool parse_set(struct parser *p)
{
	struct ast_set set = {.line = p->at->line};
	const struct token *name, *open;
	const struct set_kind *kind;
	bool ok;

	parse_next(p);
	if (parse_is(p, TOKEN_SET))
		return parse_expected(p, "the name of a set",
				      "without '@'; write '@' where the set is used");
	if (!parse_name(p, "the name of a set", &name))
		return false;
	set.at = name->at;
	set.name = name->text;
	if (p->ast->sets.n >= POLICY_SETS)
		return parse_room(p, p->ast->sets.n, POLICY_SETS, name->at, "sets");
	set.kind = parse_kind(p);
	kind = &set_kinds[set.kind];
	open = p->at;
	if (parse_accept(p, TOKEN_OPEN))
		ok = parse_elements(p, set_domains[set.kind], open, &set.elements, &set.broken);
	else if (set.kind)
		ok = expected_open(p, kind);
	else if (parse_accept_word(p, "dynamic"))
		ok = parse_dynamic(p, &set);
	else
		ok = parse_expected(p, "'{', ports, macs, pairs or dynamic",
				    "set NAME { ELEMENT, … }");
	set.broken = set.broken || !ok;
	vec_push(&p->ast->sets, set);
	return ok;
}

static bool parse_default(struct parser *p)
{
	static const char *const verdicts[] = {"pass", "drop"};
	static const struct choice choice = {verdicts, ARRAY_SIZE(verdicts)};
	struct ast_default d = {.at = p->at->at, .line = p->at->line};
	uint8_t n;
	bool ok;

	parse_next(p);
	if (!parse_choice(p, &choice, NULL, &n))
		return false;
	d.drop = n == 1;
	ok = !parse_accept_word(p, "on") || parse_ifnames(p, &d.on);
	if (ok)
		vec_push(&p->ast->defaults, d);
	else
		vec_free(&d.on.items);
	return ok;
}

static bool parse_fragments(struct parser *p)
{
	struct ast_fragments f = {.at = p->at->at, .line = p->at->line};
	bool ok;

	parse_next(p);
	if (!parse_choice(p, &choice_treatments, NULL, &f.treatment))
		return false;
	ok = !parse_accept_word(p, "proto") || parse_list(p, &domain_proto, &f.proto);
	if (ok)
		vec_push(&p->ast->fragments, f);
	else
		vec_free(&f.proto.items);
	return ok;
}

// malformed, essentials and seed are allowed once in a policy.
static bool once(struct parser *p, struct ast_setting *setting)
{
	const struct token *t = parse_next(p);

	if (setting->given)
		return parse_fail(p, t->at, NULL,
				  "duplicate '%s' in this policy (the first is at %s)", t->text,
				  diag_place(p->diag, setting->at, false));
	setting->given = true;
	setting->at = t->at;
	return true;
}

static bool parse_malformed(struct parser *p)
{
	static const char *const words[] = {"pass", "drop"};
	static const struct choice choice = {words, ARRAY_SIZE(words)};
	uint8_t n = 0;

	if (!once(p, &p->ast->malformed) || !parse_choice(p, &choice, NULL, &n))
		return false;
	p->ast->malformed.on = n == 1;
	return true;
}

static bool parse_essentials(struct parser *p)
{
	static const char *const words[] = {"filter", "pass"};
	static const struct choice choice = {words, ARRAY_SIZE(words)};
	uint8_t n = 0;

	if (!once(p, &p->ast->essentials) || !parse_choice(p, &choice, NULL, &n))
		return false;
	p->ast->essentials.on = n == 1;
	return true;
}

static bool parse_seed(struct parser *p)
{
	const struct token *text;

	if (!once(p, &p->ast->seed) || !parse_string(p, "a string", &text))
		return false;
	p->ast->seed.text = text->text;
	return true;
}

static bool parse_include(struct parser *p)
{
	parse_next(p);
	return parse_string(p, "the path of a file", &p->include);
}

static bool parse_version(struct parser *p)
{
	return parse_fail(p, p->at->at, NULL, "'version' must be the first statement of a file");
}

#define STATEMENT(name) {#name, parse_##name},

static const struct {
	const char *word;
	statement_fn *parse;
} statements[] = {
	STATEMENTS(STATEMENT){"always", parse_rule},
};

static bool unknown_statement(struct parser *p)
{
	bool word = parse_is(p, TOKEN_WORD);
	const char *write = word ? names_foreign(p->at->text, false) : NULL;
	const char *near = word && !write ? keyword_nearest_statement(p->at->text) : NULL;
	char hint[80];

	if (near)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", near);
	return parse_expected(p, "a statement or a rule", near ? hint : write);
}

bool parse_statement(struct parser *p)
{
	bool action = false;

	for (size_t i = 0; i < choice_actions.n; i++)
		action = action || parse_is_word(p, choice_word(&choice_actions, i));
	if (action || parse_is(p, TOKEN_STRING))
		return parse_rule(p);
	for (size_t i = 0; i < ARRAY_SIZE(statements); i++)
		if (parse_is_word(p, statements[i].word))
			return statements[i].parse(p);
	return unknown_statement(p);
}
