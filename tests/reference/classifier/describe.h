// SPDX-License-Identifier: GPL-2.0-only
// Which kinds of tables a policy has been given.
#pragma once

#include "ctl/base/text.h"
#include "ctl/table/image.h"

// Replaces the text by words as "words=2 cell=1 source4=bits destination6=nodes
// destination6-hosts=lines"; see the tables in describe.c for all words.
void describe_tables(const struct image *i, struct text *ret);
// Does the text have each of the words? Prints those that it has not.
bool describe_has(const char *described, const char *words);
