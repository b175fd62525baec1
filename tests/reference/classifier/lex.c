// SPDX-License-Identifier: GPL-2.0-only
// Cuts a policy text into tokens.
#include "lex.h"

#include <stdbool.h>
#include <string.h>

struct lexer {
	struct pool *pool;
	const char *at;
	const char *end;
	unsigned int line;
	char *out; /* where the next token's text goes */
	VEC(struct token) tokens;
};

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static bool is_word_byte(char c)
{
	return is_name_byte(c) || (c && strchr(".:/*%+", c));
}

static void add(struct lexer *lexer, enum token_kind kind, const char *text)
{
	*vec_add(lexer->pool, &lexer->tokens) =
		(struct token){.kind = kind, .text = text, .line = lexer->line};
}

static bool bad(struct lexer *lexer, const char *complaint)
{
	add(lexer, TOKEN_BAD, complaint);
	return false;
}

/* Copies len bytes to the texts and steps over them. */
static void add_text(struct lexer *lexer, enum token_kind kind, size_t len)
{
	add(lexer, kind, lexer->out);
	memcpy(lexer->out, lexer->at, len);
	lexer->out[len] = '\0';
	lexer->out += len + 1;
	lexer->at += len;
}

static size_t span(const struct lexer *lexer, bool (*belongs)(char))
{
	const char *end = lexer->at;

	while (end < lexer->end && belongs(*end))
		end++;
	return (size_t)(end - lexer->at);
}

static bool not_quote(char c)
{
	return c != '"' && c != '\n';
}

static bool not_newline(char c)
{
	return c != '\n';
}

static bool lex_string(struct lexer *lexer)
{
	lexer->at++;
	add_text(lexer, TOKEN_STRING, span(lexer, not_quote));
	if (lexer->at == lexer->end || *lexer->at != '"')
		return bad(lexer, "a string without an end");
	lexer->at++;
	return true;
}

static bool lex_ref(struct lexer *lexer, enum token_kind kind)
{
	size_t len;

	lexer->at++;
	len = span(lexer, is_name_byte);
	if (len == 0)
		return bad(lexer, "a reference without a name");
	add_text(lexer, kind, len);
	return true;
}

static void lex_newline(struct lexer *lexer)
{
	bool after_comma =
		lexer->tokens.len && lexer->tokens.v[lexer->tokens.len - 1].kind == TOKEN_COMMA;

	if (!after_comma)
		add(lexer, TOKEN_NEWLINE, "newline");
	lexer->line++;
	lexer->at++;
}

static bool lex_backslash(struct lexer *lexer)
{
	lexer->at++;
	if (lexer->at < lexer->end && *lexer->at == '\r')
		lexer->at++;
	if (lexer->at == lexer->end || *lexer->at != '\n')
		return bad(lexer, "a backslash that is not at the end of a line");
	lexer->line++;
	lexer->at++;
	return true;
}

static bool lex_mark(struct lexer *lexer)
{
	static const struct {
		char mark;
		enum token_kind kind;
		const char *text;
	} marks[] = {
		{',', TOKEN_COMMA, ","}, {'{', TOKEN_OPEN, "{"},      {'}', TOKEN_CLOSE, "}"},
		{'=', TOKEN_EQUAL, "="}, {';', TOKEN_SEMICOLON, ";"},
	};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (marks[i].mark != *lexer->at)
			continue;
		add(lexer, marks[i].kind, marks[i].text);
		lexer->at++;
		return true;
	}
	return bad(lexer, "an unexpected byte");
}

static bool lex_one(struct lexer *lexer)
{
	switch (*lexer->at) {
	case ' ':
	case '\t':
	case '\r':
		lexer->at++;
		return true;
	case '#':
		lexer->at += span(lexer, not_newline);
		return true;
	case '\n':
		lex_newline(lexer);
		return true;
	case '\\':
		return lex_backslash(lexer);
	case '"':
		return lex_string(lexer);
	case '$':
		return lex_ref(lexer, TOKEN_DEFINE);
	case '@':
		return lex_ref(lexer, TOKEN_SET);
	default:
		if (!is_word_byte(*lexer->at))
			return lex_mark(lexer);
		add_text(lexer, TOKEN_WORD, span(lexer, is_word_byte));
		return true;
	}
}

struct token *lex(struct pool *pool, const char *text, size_t len)
{
	struct lexer lexer = {
		.pool = pool,
		.at = text,
		.end = text + len,
		.line = 1,
		.out = pool_alloc(pool,
				  2 * len + 1), /* every text has a byte of its own for '\0' */
	};

	while (lexer.at < lexer.end) {
		if (!lex_one(&lexer))
			return lexer.tokens.v;
	}
	add(&lexer, TOKEN_EOF, "end of file");
	return lexer.tokens.v;
}
