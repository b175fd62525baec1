// SPDX-License-Identifier: GPL-2.0-only
// Plans what a policy needs of the table of connections: numbers of ends, blocks, and what is done
// with each end (docs/nat.md).
//
// The table belongs to the instance, and what is in it outlives the policy: an end and a block keep
// their numbers as long as they are in the table. Pure: control/nat_apply reads and writes the
// table.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/nat.h"
#include "ctl/base/diag.h"
#include "ctl/policy/resolved.h"
#include "ctl/table/lb_state.h"

// The blocks of a mode and family that take new connections.
struct nat_list {
	uint8_t n;
	uint8_t at[NAT_BLOCKS];
};

// The demand of a policy. It is in a pinned array: WEIR_LAYOUT covers its layout.
struct nat_wish {
	uint64_t near[NAT_NEAR_WORDS];         // bits of its backends in nat (nat_near.h)
	uint32_t life;                         // ticks, the longest idle
	struct nat_list list[2][2];            // [1]: of fullnat; [1]: of IPv6
	struct nat_block block[2][NAT_BLOCKS]; // sources, complete for listed blocks
	uint32_t pad;
};
_Static_assert(sizeof(struct nat_wish) ==
		       8 * NAT_NEAR_WORDS + 4 + 4 * 256 + 2 * 16 * NAT_BLOCKS + 4,
	       "layout");

// A bit for each block of a family.
struct nat_set {
	uint64_t bits[(NAT_BLOCKS + 63) / 64];
};
bool nat_set_has(const struct nat_set *s, uint32_t block);
void nat_set_add(struct nat_set *s, uint32_t block);

struct nat_plan_options {
	const struct nat_table *table; // as it is; NULL: empty
	struct nat_set exist[2];       // its blocks; [1]: of IPv6
	// By the number of an end: 1: its connections may live. NULL: none do.
	const uint8_t *kept;
	const size_t (*living)[NAT_BLOCKS]; // connections by family and block; NULL: not known
	uint32_t hz;
	bool force; // a cell without room forgets its oldest block
	bool trial; // the programs stay for kept ends, whose connections continue after the trial
};

struct nat_plan {
	struct nat_use use[NAT_ENDS];
	struct nat_end end[NAT_ENDS]; // also new ones
	struct nat_wish wish;
};

// Plans the services of r in modes nat and fullnat; lb has them in the same order (NULL: r has no
// services). An end that the table has keeps its number, and so does a block with its source; nat
// uses its own blocks again before new ones. An end whose service is in another mode now is
// NAT_USE_FORMER while `kept`. Refused with an error at the service: more than NAT_ENDS - 1 ends;
// more than NAT_BLOCKS blocks of a family; a change that needs a ninth block in a cell, unless
// `force`. *ret NULL: no service needs the table, nor does a kept end on trial. 0, or -EINVAL with
// errors queued. The caller frees *ret.
int nat_plan(const struct resolved *r, const struct lb_state *lb, const struct nat_plan_options *o,
	     struct diag *d, struct nat_plan **ret);

// How many blocks take new connections, of both modes and families; their places and bytes.
size_t nat_wish_blocks(const struct nat_wish *w);
uint64_t nat_wish_places(const struct nat_wish *w);
uint64_t nat_wish_bytes(const struct nat_wish *w);
