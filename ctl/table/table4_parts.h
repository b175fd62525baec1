// SPDX-License-Identifier: GPL-2.0-only
// Between the parts of the IPv4 tables: the address space, and what each kind takes and builds.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/vec.h"
#include "ctl/table/regions.h"
#include "ctl/table/tables.h"

#include "common/table4.h" // asks what tables.h defines

// The regions of IPv4, smaller: sorted, the first begins at 0, neighbours differ in their rows.
struct span4 {
	uint32_t first;
	policy_row row;
};

struct spans4 {
	struct span4 *at;
	size_t n, cap;
};

static inline uint32_t span4_last(const struct spans4 *s, size_t i)
{
	return i + 1 < s->n ? s->at[i + 1].first - 1 : UINT32_MAX;
}

// Appends, or extends the last one when it has the same row.
static inline void spans4_add(struct spans4 *s, uint32_t first, policy_row row)
{
	if (!s->n || vec_last(s)->row != row)
		vec_push(s, ((struct span4){first, row}));
}

// A kind of table for some spans, its size known.
struct plan4 {
	enum table4_kind kind; // 0: not for these spans
	size_t nodes, tables;  // T4_BITS: `tables` are leaves
	size_t bytes;
};

// T4_RANGES: few nodes, rows of 15 bits. T4_LONG: rows of 15 bits. T4_WIDE: any spans.
struct plan4 ranges4_plan(const struct spans4 *s, enum table4_kind kind);
void ranges4_build(const struct spans4 *s, const struct plan4 *plan, struct tables *t, int side);

// Only for two rows.
struct plan4 bits4_plan(const struct spans4 *s);
void bits4_build(const struct spans4 *s, const struct plan4 *plan, struct tables *t, int side);

struct host4 {
	uint32_t addr;
	policy_row row;
};

// The addresses that buckets can hold, and the spans without them.
struct hosts4 {
	struct {
		struct host4 *at;
		size_t n, cap;
	} list;
	bool one; // all have the same row
	struct spans4 rest;
};

void hosts4_find(const struct spans4 *s, struct hosts4 *ret);
void hosts4_free(struct hosts4 *h);
size_t hosts4_bytes(const struct hosts4 *h);
// Adds the buckets. Hosts without a slot are in *ret_under, with the spans without hosts.
void hosts4_build(const struct hosts4 *h, uint64_t seed, struct tables *t, int side,
		  struct spans4 *ret_under);
