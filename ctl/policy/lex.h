// SPDX-License-Identifier: GPL-2.0-only
// Splits the text of a policy into tokens.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "ctl/base/diag.h"
#include "ctl/base/vec.h"
#include "ctl/policy/arena.h"

enum token_kind {
	TOKEN_WORD,
	TOKEN_STRING, // text is the content of the quotes
	TOKEN_DEFINE, // $NAME, text is NAME
	TOKEN_SET,    // @NAME, text is NAME
	TOKEN_COMMA,
	TOKEN_EQUALS,
	TOKEN_OPEN,  // {
	TOKEN_CLOSE, // }
	TOKEN_END,   // a NEWLINE that ends something, or ";"
	TOKEN_EOF,
	TOKEN_BAD, // an error about it has been queued
};

struct token {
	struct diag_at at;
	const char *text; // for WORD, STRING, DEFINE, SET
	uint32_t line;    // from 1
	uint8_t kind;     // enum token_kind
	bool first;       // only blanks precede it on its line
	bool newline;     // TOKEN_END: a NEWLINE, not ";"
};

struct tokens {
	VEC(struct token) all; // the last one is TOKEN_EOF
};

// Cuts the file into tokens. Other bytes become an error and a TOKEN_BAD. Blanks, comments, and
// line ends after a comma or another line end are skipped. The texts are in the pool.
void lex(const struct diag_file *file, struct diag *diag, struct arena *arena, struct tokens *ret);
void tokens_free(struct tokens *t);

// NAME: a letter and up to 30 letters, digits, '_' or '-'; keywords are not excluded.
bool lex_is_name(const char *text);
