// SPDX-License-Identifier: GPL-2.0-only
// A configuration of keepalived as a tree of lines.
#pragma once

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/policy/arena.h"

#define NODE_WORDS 16

struct node {
	const char *words[NODE_WORDS]; // further words are left out; NULL after the last
	size_t n;
	unsigned line;
	bool cut;      // it has more words
	bool block;    // it has a block, which may be empty
	struct nodes { // lines of its block
		struct node *at;
		size_t n, cap;
	} inside;
};

// *ret is zero before; the words are in the arena. 0, or -EINVAL with err set.
int nodes_read(const char *text, size_t len, struct arena *arena, struct nodes *ret,
	       struct err *err);
void nodes_free(struct nodes *nodes);
// The last line of the block that begins with the keyword, or with `other` if that is not NULL:
// keepalived takes the last one. NULL: the block has no such line.
const struct node *node_last(const struct node *n, const char *keyword, const char *other);
size_t node_count(const struct node *n, const char *keyword);
