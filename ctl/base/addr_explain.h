// SPDX-License-Identifier: GPL-2.0-only
// Explains why a word is not an address, prefix or range, and suggests the probable meaning.
//
// Called only after a parser has rejected the word, so it may be slow.
#pragma once

#include <stddef.h>

#include "ctl/base/err.h"

// Sentence and hint for a word that prefix_parse (range_parse) refused. Always -EINVAL.
int addr_explain(const char *text, size_t len, struct err *err);
int addr_explain_range(const char *text, size_t len, struct err *err);
