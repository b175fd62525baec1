// SPDX-License-Identifier: GPL-2.0-only
// The lexer: every byte of the text belongs to exactly one token, blank or error.
#include "ctl/policy/lex.h"

#include <string.h>

#include "common/limits-policy.h"
#include "ctl/base/mem.h"
#include "ctl/base/punycode.h"

struct lexer {
	const struct diag_file *file;
	struct diag *diag;
	struct arena *arena;
	struct tokens *tokens;
	const char *at, *end;
	uint32_t line;
	bool fresh; // no token on this line yet
};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_letter(c) || is_digit(c) || (c && strchr("_.:/*%+-", c));
}

static bool is_high(char c)
{
	return (unsigned char)c >= 0x80;
}

static bool is_name(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '-';
}

bool lex_is_name(const char *text)
{
	size_t len = strlen(text);

	if (!len || len > POLICY_NAME || !is_letter(text[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (!is_name(text[i]))
			return false;
	return true;
}

static struct diag_at place(const struct lexer *l, const char *start, const char *end)
{
	return (struct diag_at){
		.file = l->file,
		.offset = (uint32_t)(start - l->file->text),
		.len = (uint32_t)(end - start),
	};
}

static struct token *add(struct lexer *l, enum token_kind kind, const char *start)
{
	struct token *t = vec_add(&l->tokens->all);

	*t = (struct token){
		.at = place(l, start, l->at),
		.line = l->line,
		.kind = (uint8_t)kind,
		.first = l->fresh,
	};
	l->fresh = false;
	return t;
}

static bool last_is(const struct lexer *l, enum token_kind kind)
{
	return l->tokens->all.n && vec_last(&l->tokens->all)->kind == kind;
}

static void lex_newline(struct lexer *l)
{
	const char *start = l->at++;
	// The caret of "found the end of the line" is directly after the last word.
	bool silent = !l->tokens->all.n || last_is(l, TOKEN_COMMA) ||
		      (last_is(l, TOKEN_END) && vec_last(&l->tokens->all)->newline);

	if (!silent) {
		struct token *t = add(l, TOKEN_END, start);
		const struct diag_at last = t[-1].at;

		t->at.offset = last.offset + last.len;
		t->at.len = 0;
		t->newline = true;
	}
	l->line++;
	l->fresh = true;
}

static void lex_comment(struct lexer *l)
{
	const char *newline = memchr(l->at, '\n', (size_t)(l->end - l->at));

	l->at = newline ? newline : l->end;
}

// Bytes with which no token begins: a run of such bytes is one error.
static void lex_bad(struct lexer *l)
{
	static const struct {
		char c;
		const char *hint;
	} hints[] = {
		{'!', "write not"},
		{'<', "a set is written @NAME"},
		{'>', "a set is written @NAME"},
		{'\'', "write strings in double quotes"},
		{'(', "lists need no brackets"},
		{'[', "lists need no brackets"},
		{'\\', "'\\' continues a line only as its last character"},
		{'&', "fields of a rule need no 'and'"},
	};
	const char *start = l->at, *hint = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
		if (*start == hints[i].c)
			hint = hints[i].hint;
	do
		l->at++;
	while (l->at < l->end && *l->at == *start);
	if (*start > ' ' && *start < 0x7f)
		diag_error(l->diag, place(l, start, l->at), hint, "unexpected '%c'", *start);
	else
		diag_error(l->diag, place(l, start, l->at), NULL, "unexpected byte 0x%02x",
			   (unsigned char)*start);
	add(l, TOKEN_BAD, start);
}

// A word with letters that are not ASCII: the error shows its form in punycode.
static void lex_foreign(struct lexer *l, const char *start)
{
	struct text name = {0};
	struct diag_at at;

	while (l->at < l->end && (is_word(*l->at) || is_high(*l->at)))
		l->at++;
	at = place(l, start, l->at);
	if (punycode_name(start, at.len, &name) && strchr(text_get(&name), '.')) {
		CLEANUP_FREE char *hint = mem_printf("write %s", text_get(&name));

		diag_error(l->diag, at, hint, "names must be ASCII");
	} else {
		diag_error(l->diag, at, NULL, "words must be ASCII");
	}
	text_free(&name);
	add(l, TOKEN_BAD, start);
}

static void lex_word(struct lexer *l)
{
	const char *start = l->at;

	while (l->at < l->end && is_word(*l->at))
		l->at++;
	if (l->at < l->end && is_high(*l->at)) {
		lex_foreign(l, start);
		return;
	}
	add(l, TOKEN_WORD, start)->text = arena_strndup(l->arena, start, (size_t)(l->at - start));
}

static void lex_reference(struct lexer *l)
{
	const char *start = l->at++;
	struct token *t;

	while (l->at < l->end && is_name(*l->at))
		l->at++;
	t = add(l, *start == '$' ? TOKEN_DEFINE : TOKEN_SET, start);
	t->text = arena_strndup(l->arena, start + 1, (size_t)(l->at - start - 1));
	if (lex_is_name(t->text))
		return;
	diag_error(l->diag, t->at, "a name is a letter and up to 30 letters, digits, '_' or '-'",
		   "expected a name after '%c'", *start);
	t->kind = TOKEN_BAD;
}

static void bad_string(struct lexer *l, const char *start, const char *hint, const char *what)
{
	diag_error(l->diag, place(l, start, l->at), hint, "%s", what);
	add(l, TOKEN_BAD, start);
}

static void lex_string(struct lexer *l)
{
	const char *start = l->at++;
	bool printable = true;
	size_t len;

	while (l->at < l->end && *l->at != '"' && *l->at != '\n') {
		printable = printable && *l->at >= ' ' && *l->at < 0x7f;
		l->at++;
	}
	len = (size_t)(l->at - start - 1);
	if (l->at == l->end || *l->at == '\n') {
		bad_string(l, start, "a string ends on the line where it begins",
			   "unterminated string");
		return;
	}
	l->at++;
	if (!len)
		bad_string(l, start, NULL, "empty string");
	else if (len > POLICY_STRING)
		bad_string(l, start, NULL, "string longer than 255 bytes");
	else if (!printable)
		bad_string(l, start, "printable ASCII only",
			   "string with a byte that is not printable");
	else
		add(l, TOKEN_STRING, start)->text = arena_strndup(l->arena, start + 1, len);
}

// "\" NEWLINE, also with a CR between.
static bool lex_continued(struct lexer *l)
{
	const char *at = l->at + 1;

	while (at < l->end && *at == '\r')
		at++;
	if (at == l->end || *at != '\n')
		return false;
	l->at = at + 1;
	l->line++;
	return true;
}

static void lex_sign(struct lexer *l, enum token_kind kind)
{
	const char *start = l->at++;

	add(l, kind, start);
}

static void lex_one(struct lexer *l)
{
	switch (*l->at) {
	case ' ':
	case '\t':
	case '\r':
		l->at++;
		return;
	case '\n':
		lex_newline(l);
		return;
	case '#':
		lex_comment(l);
		return;
	case '"':
		lex_string(l);
		return;
	case '$':
	case '@':
		lex_reference(l);
		return;
	case ',':
		lex_sign(l, TOKEN_COMMA);
		return;
	case ';':
		lex_sign(l, TOKEN_END);
		return;
	case '=':
		lex_sign(l, TOKEN_EQUALS);
		return;
	case '{':
		lex_sign(l, TOKEN_OPEN);
		return;
	case '}':
		lex_sign(l, TOKEN_CLOSE);
		return;
	default:
		break;
	}
	if (*l->at == '\\' && lex_continued(l))
		return;
	if (is_word(*l->at))
		lex_word(l);
	else if (is_high(*l->at))
		lex_foreign(l, l->at);
	else
		lex_bad(l);
}

void lex(const struct diag_file *file, struct diag *diag, struct arena *arena, struct tokens *ret)
{
	struct lexer l = {
		.file = file,
		.diag = diag,
		.arena = arena,
		.tokens = ret,
		.at = file->text,
		.end = file->text + file->len,
		.line = 1,
		.fresh = true,
	};

	if (file->len >= 3 &&
	    !memcmp(file->text, "\xef\xbb\xbf", 3)) // some editors' byte order mark
		l.at += 3;
	while (l.at < l.end)
		lex_one(&l);
	add(&l, TOKEN_EOF, l.at);
}

void tokens_free(struct tokens *t)
{
	vec_free(&t->all);
}
