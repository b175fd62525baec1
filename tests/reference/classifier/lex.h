// SPDX-License-Identifier: GPL-2.0-only
// Cuts a policy text into tokens.
#ifndef REF_LEX_H
#define REF_LEX_H

#include <stddef.h>

#include "mem.h"

enum token_kind {
	TOKEN_WORD,
	TOKEN_STRING,
	TOKEN_DEFINE, /* $name */
	TOKEN_SET,    /* @name */
	TOKEN_COMMA,
	TOKEN_OPEN,
	TOKEN_CLOSE,
	TOKEN_EQUAL,
	TOKEN_NEWLINE, /* never directly after a comma */
	TOKEN_SEMICOLON,
	TOKEN_EOF,
	TOKEN_BAD, /* text is the complaint; the last token */
};

struct token {
	enum token_kind kind;
	const char *text; /* without quotes, $ or @ */
	unsigned int line;
};

/* The tokens, ending in TOKEN_EOF or TOKEN_BAD. */
struct token *lex(struct pool *pool, const char *text, size_t len);

#endif
