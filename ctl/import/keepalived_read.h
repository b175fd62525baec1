// SPDX-License-Identifier: GPL-2.0-only
// A configuration of keepalived as a tree of lines.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/policy/arena.h"

#define NODE_WORDS 16

struct node {
	const char *words[NODE_WORDS]; // further words are left out
	size_t n;
	unsigned line;
	struct nodes { // lines of its block
		struct node *at;
		size_t n, cap;
	} inside;
};

// *ret is zero before; the words are in the arena. 0, or -EINVAL with err set.
int nodes_read(const char *text, size_t len, struct arena *arena, struct nodes *ret,
	       struct err *err);
void nodes_free(struct nodes *nodes);
// The word `i` of the first line that begins with the keyword; NULL: none has it.
const char *node_value(const struct node *n, const char *keyword, size_t i);
