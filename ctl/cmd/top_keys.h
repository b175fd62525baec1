// SPDX-License-Identifier: GPL-2.0-only
// The keys of weir top --by, and the table of each.
#pragma once

#include "ctl/cmd/command.h"
#include "ctl/control/sampled_reading.h"

struct geo_look;

struct top_keys {
	bool by[SAMPLED_BY_COUNT];
	bool all;                  // --by all: a database may be missing
	size_t most;               // rows of a table; BEST_ALL: any number
	struct geo_look *looks[2]; // countries, autonomous systems; if the keys have them
};

// The option --by, "source,port"; "all": each key, country and asn if there is a database. 0 or
// -EINVAL with err set.
int top_keys_read(struct top_keys *k, const char *words, struct err *err);
// Opens the databases that the keys need. 0 or -errno with err set.
int top_keys_open(struct top_keys *k, struct err *err);
void top_keys_free(struct top_keys *k);
// The places of sources by these databases; ctx: the keys.
bool top_keys_place(void *ctx, enum geo_kind kind, const struct addr *a, struct geo *ret);

struct top_keys_view {
	double seconds; // in the window; 0: no rates
	bool counts;    // also the numbers of packets and bytes
};
// Shows the rows, a table for each key.
void top_keys_show(const struct top_keys *k, struct out *o, const struct sampled_reading *r,
		   const struct top_keys_view *view);
