// SPDX-License-Identifier: GPL-2.0-only
// Which entries weir list shows, and in which order: WHAT, --origin, --list, --blocked, --allowed,
// --out, --sort, --top.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/entries/items.h"
#include "ctl/control/entries/listing.h"

// Lines of the option table of list.
#define OPTION_CHOICE                                                                           \
	{.name = "origin", .arg = "NAME", .help = "entries of origin NAME"},                    \
		{.name = "list",                                                                \
		 .arg = "NAME",                                                                 \
		 .help = "entries of the list NAME (block --sync NAME)"},                       \
		{.name = "blocked", .help = "block entries only"},                              \
		{.name = "allowed", .help = "allow entries only"},                              \
		{.name = "out", .help = "entries of outgoing connections only"},                \
		{.name = "sort",                                                                \
		 .arg = "KEY",                                                                  \
		 .help = "order by packets, bytes (most first), age (newest), left (soonest)"}, \
	{                                                                                       \
		.name = "top", .arg = "N",                                                      \
		.help = "the first N entries of this order (default: packets)"                  \
	}

// A word of the command line, and whether an entry was found for it.
struct choice_what {
	const char *word;
	size_t first, end; // its items
	bool found;
};

struct list_choice {
	unsigned kinds;            // bits 1 << enum overlay_kind
	const char *origin, *list; // NULL: any
	struct items items;
	VEC(char *) names; // names of the items in the form of the records; NULL for a prefix
	VEC(struct choice_what) whats;
	const struct choice_order *order; // NULL: by address
	size_t top;                       // BEST_ALL without --top
};

int choice_read(const struct args *args, struct list_choice *ret, struct err *err);
void choice_free(struct list_choice *c);
// Whether an entry of this prefix and kind may be shown, whoever owns it: for struct entries.
entries_wanted choice_wants;
// Whether the entry, which choice_wants, is shown; marks the words that name it.
bool choice_takes(struct list_choice *c, const struct entry *entry);
// Whether the order depends on the counters.
bool choice_counts(const struct list_choice *c);
// The place of an entry in the order, smaller is earlier; only with an order.
uint64_t choice_rank(const struct list_choice *c, const struct entry *entry);
// -ENOENT if no entry was found for one of the words.
int choice_missed(const struct list_choice *c, const char *instance, struct err *err);
