// SPDX-License-Identifier: GPL-2.0-only
// Brings the table of connections into line with the policies that packets can meet: the active
// one, and the previous one while a trial runs (docs/nat.md).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/nat.h"
#include "ctl/base/err.h"
#include "ctl/datapath/instance.h"

struct nat_kept;
struct nat_maps;
struct nat_wish;

// The policies that packets can meet, as far as they need the table.
struct nat_served {
	struct nat_kept *now;    // packets meet it; NULL: it needs no table
	struct nat_kept *other;  // they can meet it when a trial ends; NULL: the same
	uint32_t generations[2]; // their numbers; 0: not known, or the same
};
int nat_served_read(const struct instance *i, struct nat_served *ret, struct err *err);
void nat_served_free(struct nat_served *s);
#define CLEANUP_NAT_SERVED CLEANUP(nat_served_free)
// By the number of an end: 1: one of the policies can begin its connections.
void nat_served_begins(const struct nat_served *s, uint8_t ret[NAT_ENDS]);

// Under the lock, after a switch, after the end of a trial, and before an apply or a walk, in case
// the previous command was interrupted: new connections take the blocks of the policy that packets
// meet; ends that no policy serves are removed with their connections, whose number is added to
// *ret_freed (may be NULL). The call can be repeated. 0 or -errno with err set.
int nat_settle(const struct instance *i, size_t *ret_freed, struct err *err);

// Creates the blocks of the wish that do not exist, with their sources. 0 or -errno with err set.
int nat_make_blocks(struct nat_maps *m, const struct nat_wish *w, struct err *err);
