// SPDX-License-Identifier: GPL-2.0-only
// Fills the tables by which packets find ends and sources.
#include "ctl/table/nat_names.h"

#include <errno.h>
#include <stdbool.h>

#include "ctl/table/nat_near.h"

#define STEPS 64 // others that move, at most

// A table of numbers, 0 for none, in which each number has a cell on either side.
struct cuckoo {
	struct nat_table *t;
	int family; // of sources
	uint32_t (*cell)(const struct cuckoo *c, uint32_t number, int side);
	uint32_t (*get)(const struct cuckoo *c, int side, uint32_t cell);
	void (*set)(const struct cuckoo *c, int side, uint32_t cell, uint32_t number);
};

static uint32_t end_cell(const struct cuckoo *c, uint32_t number, int side)
{
	const struct nat_end *e = &c->t->end[number];

	return (uint32_t)nat_end_cell(nat_mix((int)e->family, e->vip, e->port_proto), side);
}

static uint32_t end_get(const struct cuckoo *c, int side, uint32_t cell)
{
	return c->t->end_at[side][cell];
}

static void end_set(const struct cuckoo *c, int side, uint32_t cell, uint32_t number)
{
	__atomic_store_n(&c->t->end_at[side][cell], (uint16_t)number, __ATOMIC_RELEASE);
}

static uint32_t source_cell(const struct cuckoo *c, uint32_t number, int side)
{
	const struct nat_block *b = &c->t->block[c->family == 6][number - 1];

	return (uint32_t)nat_source_cell(nat_mix(c->family, b->source, 0), side);
}

static uint32_t source_get(const struct cuckoo *c, int side, uint32_t cell)
{
	return c->t->source_at[c->family == 6][side][cell];
}

static void source_set(const struct cuckoo *c, int side, uint32_t cell, uint32_t number)
{
	__atomic_store_n(&c->t->source_at[c->family == 6][side][cell], (uint8_t)number,
			 __ATOMIC_RELEASE);
}

// ---- both ---------------------------------------------------------------------------------------

// Numbers that must move, the first to the cell of the second, and so on: the last cell is free.
struct nat_moves {
	uint32_t cell[STEPS];
	size_t n;
};

// From the cell of `number` on `side`. false: too many would move.
static bool find_path(const struct cuckoo *c, uint32_t number, int side, struct nat_moves *ret)
{
	for (ret->n = 0; ret->n < STEPS; side = !side) {
		uint32_t cell = c->cell(c, number, side);

		ret->cell[ret->n++] = cell;
		number = c->get(c, side, cell);
		if (!number)
			return true;
	}
	return false;
}

// The last one moves first. side: of the first cell.
static void follow_path(const struct cuckoo *c, uint32_t number, int side,
			const struct nat_moves *p)
{
	for (size_t i = p->n - 1; i > 0; i--) {
		int from = (int)((i - 1) % 2) ^ side;

		c->set(c, !from, p->cell[i], c->get(c, from, p->cell[i - 1]));
	}
	c->set(c, side, p->cell[0], number);
}

static int put(const struct cuckoo *c, uint32_t number)
{
	struct nat_moves path[2];
	bool found[2];
	int side;

	for (side = 0; side < 2; side++)
		found[side] = find_path(c, number, side, &path[side]);
	if (!found[0] && !found[1])
		return -ENOSPC;
	side = found[1] && (!found[0] || path[1].n < path[0].n);
	follow_path(c, number, side, &path[side]);
	return 0;
}

static void take(const struct cuckoo *c, uint32_t number)
{
	for (int side = 0; side < 2; side++) {
		uint32_t cell = c->cell(c, number, side);

		if (c->get(c, side, cell) == number)
			c->set(c, side, cell, 0);
	}
}

static struct cuckoo ends_of(struct nat_table *t)
{
	return (struct cuckoo){t, 0, end_cell, end_get, end_set};
}

static struct cuckoo sources_of(struct nat_table *t, int family)
{
	return (struct cuckoo){t, family, source_cell, source_get, source_set};
}

int nat_end_put(struct nat_table *t, uint32_t number)
{
	const struct cuckoo c = ends_of(t);

	return put(&c, number);
}

void nat_end_take(struct nat_table *t, uint32_t number)
{
	const struct cuckoo c = ends_of(t);

	take(&c, number);
}

int nat_source_put(struct nat_table *t, int family, uint32_t block)
{
	const struct cuckoo c = sources_of(t, family);
	int code = put(&c, block + 1);

	if (code)
		return code;
	nat_near_put((uint64_t *)t->near, family, t->block[family == 6][block].source, 0);
	return 0;
}

void nat_source_take(struct nat_table *t, int family, uint32_t block)
{
	const struct cuckoo c = sources_of(t, family);

	take(&c, block + 1);
}
