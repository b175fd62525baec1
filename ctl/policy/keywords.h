// SPDX-License-Identifier: GPL-2.0-only
// The keywords of the language: words that are reserved in every position.
#pragma once

#include <stdbool.h>

// Statements that begin with a word of their own; parse_NAME parses them. Rules begin with "always"
// or an action.
#define STATEMENTS(X) \
	X(interface)  \
	X(define)     \
	X(set)        \
	X(service)    \
	X(default) X(malformed) X(essentials) X(fragments) X(seed) X(include) X(expect) X(version)

bool keyword_is(const char *word);

// Can the word begin a statement or a rule?
bool keyword_is_statement(const char *word);
// The word nearest to this one that can, or NULL.
const char *keyword_nearest_statement(const char *word);
