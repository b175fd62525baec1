// SPDX-License-Identifier: GPL-2.0-only
// The list that is being made.
#pragma once

#include "ctl/base/addr.h"
#include "ctl/base/err.h"
#include "ctl/base/text.h"
#include "ctl/base/vec.h"

struct addrlist_options {
	const char *source; // for the head of the list
	const char *set;    // the name, where there are several sets; NULL: there is one
	unsigned column;    // the number from 1; 0: the one with an address
	uint64_t now_s;     // the time, for entries that expire
};

struct addrlist_counts {
	size_t entries;    // prefixes in the list
	size_t duplicates; // that are not repeated
	size_t skipped;    // lines without an address
	size_t expiring;   // entries with a timeout, which a list file cannot have
};

struct addrlist {
	uint64_t now_s; // of the options
	VEC(struct prefix) at;
	struct text notes; // comments for the head, a line each
	struct addrlist_counts counts;
};

// Adds an address, prefix or range, which is in this line. 0, or -EINVAL with err set.
int addrlist_add(struct addrlist *l, const char *text, size_t len, unsigned line, struct err *err);
// Adds the prefixes in order, each once, after a head. 0, or -EINVAL with err set if it is empty.
int addrlist_print(struct addrlist *l, const struct addrlist_options *options, struct text *ret,
		   struct addrlist_counts *counts, struct err *err);
// A comment with the command for an entry that expires.
void addrlist_note_expiring(struct addrlist *l, const char *set, const char *entry,
			    uint64_t seconds);
void addrlist_free(struct addrlist *l);
#define CLEANUP_ADDRLIST CLEANUP(addrlist_free)
