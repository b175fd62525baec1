// SPDX-License-Identifier: GPL-2.0-only
// The parser's tools for tokens: the next one, names, choices of words, and errors at a token.

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/policy/names.h"
#include "ctl/policy/parser.h"

#define SHOWN_MAX 60 // longer words are cut in messages; the line with the caret shows them

const struct token *parse_next(struct parser *p)
{
	const struct token *t = p->at;

	if (t->kind != TOKEN_EOF)
		p->at++;
	return t;
}

bool parse_is(const struct parser *p, enum token_kind kind)
{
	return p->at->kind == kind;
}

bool parse_is_word(const struct parser *p, const char *word)
{
	return p->at->kind == TOKEN_WORD && !strcmp(p->at->text, word);
}

bool parse_accept(struct parser *p, enum token_kind kind)
{
	if (!parse_is(p, kind))
		return false;
	parse_next(p);
	return true;
}

bool parse_accept_word(struct parser *p, const char *word)
{
	if (!parse_is_word(p, word))
		return false;
	parse_next(p);
	return true;
}

bool parse_at_end(const struct parser *p)
{
	return parse_is(p, TOKEN_END) || parse_is(p, TOKEN_EOF) ||
	       (p->in_block && parse_is(p, TOKEN_CLOSE));
}

bool parse_starts_statement(const struct token *t)
{
	if (!t->first || t->kind == TOKEN_STRING)
		return t->first;
	return t->kind == TOKEN_WORD && keyword_is_statement(t->text);
}

static void describe(const struct token *t, char *buf, size_t size)
{
	static const char *const signs[] = {
		[TOKEN_COMMA] = "','", [TOKEN_EQUALS] = "'='", [TOKEN_OPEN] = "'{'",
		[TOKEN_CLOSE] = "'}'", [TOKEN_END] = "';'",    [TOKEN_EOF] = "the end of the file",
	};
	const char *quote = t->kind == TOKEN_STRING ? "\"" : "'";
	const char *sign = t->kind == TOKEN_DEFINE ? "$" : t->kind == TOKEN_SET ? "@" : "";

	if (t->text)
		snprintf(buf, size, "%s%s%.*s%s%s", quote, sign, SHOWN_MAX, t->text,
			 strlen(t->text) > SHOWN_MAX ? "..." : "", quote);
	else
		snprintf(buf, size, "%s", t->newline ? "the end of the line" : signs[t->kind]);
}

bool parse_expected(struct parser *p, const char *what, const char *hint)
{
	char found[SHOWN_MAX + 16];

	if (parse_is(p, TOKEN_BAD))
		return false;
	describe(p->at, found, sizeof(found));
	diag_error(p->diag, p->at->at, hint, "expected %s, found %s", what, found);
	return false;
}

bool parse_fail(struct parser *p, struct diag_at at, const char *hint, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	diag_error(p->diag, at, hint, "%s", text);
	return false;
}

bool parse_once(struct parser *p, struct diag_at *first, const struct token *t, const char *where)
{
	if (first->file)
		return parse_fail(p, t->at, NULL, "duplicate '%s' in this %s", t->text, where);
	*first = t->at;
	return true;
}

bool parse_room(struct parser *p, size_t n, size_t max, struct diag_at at, const char *what)
{
	if (n < max)
		return true;
	diag_error(p->diag, at, NULL, "more than %zu %s", max, what);
	return false;
}

struct diag_at parse_span(struct diag_at first, struct diag_at last)
{
	if (first.file == last.file && last.offset >= first.offset)
		first.len = last.offset + last.len - first.offset;
	return first;
}

bool parse_name(struct parser *p, const char *what, const struct token **ret)
{
	static const char hint[] = "a name is a letter and up to 30 letters, digits, '_' or '-'";

	if (!parse_is(p, TOKEN_WORD))
		return parse_expected(p, what, NULL);
	if (keyword_is(p->at->text))
		return parse_fail(p, p->at->at, NULL, "'%s' is a keyword and cannot be a name",
				  p->at->text);
	if (!lex_is_name(p->at->text))
		return parse_fail(p, p->at->at, hint, "'%.*s' is not a name", SHOWN_MAX,
				  p->at->text);
	*ret = parse_next(p);
	return true;
}

static const char *ifname_problem(const char *name, bool pattern)
{
	size_t len = strlen(name), star = strcspn(name, "*");

	if (keyword_is(name))
		return "is a keyword and cannot be a name";
	if (len > POLICY_IFNAME)
		return "is too long for an interface: at most 15 characters";
	if (strpbrk(name, "/:") || !strcmp(name, ".") || !strcmp(name, ".."))
		return "cannot be an interface";
	if (star < len && !pattern)
		return "is a pattern; a single interface is required here";
	if (star + 1 < len)
		return "is not a pattern: '*' is allowed only at the end";
	return NULL;
}

bool parse_ifname(struct parser *p, bool pattern, const struct token **ret)
{
	const char *problem;

	if (!parse_is(p, TOKEN_WORD))
		return parse_expected(p, "an interface", NULL);
	problem = ifname_problem(p->at->text, pattern);
	if (problem)
		return parse_fail(p, p->at->at, NULL, "'%.*s' %s", SHOWN_MAX, p->at->text, problem);
	*ret = parse_next(p);
	return true;
}

bool parse_string(struct parser *p, const char *what, const struct token **ret)
{
	if (!parse_is(p, TOKEN_STRING))
		return parse_expected(p, what, parse_is(p, TOKEN_WORD) ? "in double quotes" : NULL);
	*ret = parse_next(p);
	return true;
}

// "default accept": the word of Weir for it, if it is one of the choice.
static const char *choice_hint(const struct parser *p, const struct choice *choice)
{
	const char *hint = parse_is(p, TOKEN_WORD) ? names_foreign(p->at->text, false) : NULL;

	for (size_t i = 0; hint && i < choice->n; i++)
		if (!strcmp(hint + strcspn(hint, " ") + 1, choice_word(choice, i)))
			return hint;
	return NULL;
}

static bool expected_choice(struct parser *p, const struct choice *choice, const char *other)
{
	CLEANUP(text_free) struct text what = {0};
	size_t last = choice->n - 1;

	for (size_t i = 0; i < choice->n; i++) {
		const char *word = choice_word(choice, i);

		if (what.len && *word)
			text_add(&what, i == last && !other ? " or " : ", ");
		text_add(&what, word);
	}
	if (other)
		text_addf(&what, " or %s", other);
	return parse_expected(p, text_get(&what), choice_hint(p, choice));
}

bool parse_choice(struct parser *p, const struct choice *choice, const char *other, uint8_t *ret)
{
	for (size_t i = 0; i < choice->n; i++) {
		if (!choice->words[i] || !parse_accept_word(p, choice->words[i]))
			continue;
		*ret = (uint8_t)i;
		return true;
	}
	return expected_choice(p, choice, other);
}
