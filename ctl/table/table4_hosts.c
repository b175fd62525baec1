// SPDX-License-Identifier: GPL-2.0-only
// Hosts in buckets of 64 bytes: a keyed hash selects the bucket and, with a seed of the bucket, the
// slot.
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "ctl/table/table4_parts.h"

#define LINE_BYTES 64
// Up to so many neighbouring addresses with the same row are hosts; more are a prefix.
#define RUN_MAX 4
// Seeds tried for a bucket before one of its hosts is given up.
#define SEEDS_MAX 4096

// How full buckets are. At `load` hundredths of a host per bucket on average, every 240th (one row)
// or 60th (rows) host finds `most` hosts in its bucket. More would fit, but only after hundreds of
// seeds each.
struct shape4 {
	enum hosts4_kind kind;
	uint32_t slots, most, load;
};

static const struct shape4 shapes[] = {
	[HOSTS4_ONE] = {HOSTS4_ONE, HOSTS4_ONE_SLOTS, 12, 650},
	[HOSTS4_ROWS] = {HOSTS4_ROWS, HOSTS4_ROWS_SLOTS, 9, 550},
};

// ---- which addresses are hosts ------------------------------------------------------------------

static uint64_t span_size(const struct spans4 *s, size_t i)
{
	return (uint64_t)span4_last(s, i) - s->at[i].first + 1;
}

static bool is_small(const struct spans4 *s, size_t i)
{
	return span_size(s, i) <= RUN_MAX && s->at[i].row <= UINT16_MAX;
}

// The row of the first span that is not of hosts; 0: all are.
static policy_row first_row(const struct spans4 *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (!is_small(s, i))
			return s->at[i].row;
	return 0;
}

// Between two hosts there may be a few addresses that have the row of the rest anyway.
void hosts4_find(const struct spans4 *s, struct hosts4 *ret)
{
	policy_row row = first_row(s);

	*ret = (struct hosts4){.one = true};
	if (!row)
		return;
	spans4_add(&ret->rest, 0, row);
	for (size_t i = 0; i < s->n; i++) {
		uint32_t addr = s->at[i].first;

		if (!is_small(s, i)) {
			row = s->at[i].row;
			spans4_add(&ret->rest, addr, row);
			continue;
		}
		if (s->at[i].row == row)
			continue;
		for (uint64_t n = span_size(s, i); n; n--)
			vec_push(&ret->list, ((struct host4){addr++, s->at[i].row}));
		ret->one &= ret->list.at[0].row == s->at[i].row;
	}
}

void hosts4_free(struct hosts4 *h)
{
	vec_free(&h->list);
	vec_free(&h->rest);
}

static const struct shape4 *shape_of(const struct hosts4 *h)
{
	return &shapes[h->one ? HOSTS4_ONE : HOSTS4_ROWS];
}

static uint32_t lines_of(const struct hosts4 *h)
{
	return (uint32_t)((h->list.n * 100 + shape_of(h)->load - 1) / shape_of(h)->load);
}

size_t hosts4_bytes(const struct hosts4 *h)
{
	return (size_t)lines_of(h) * LINE_BYTES;
}

// ---- buckets ------------------------------------------------------------------------------------

struct lines4 {
	const struct hosts4 *hosts;
	const struct shape4 *shape;
	uint64_t seed;
	uint32_t n;
	uint32_t *first; // n + 1: the hosts of a bucket, as indexes of `order`
	uint32_t *order; // hosts, bucket by bucket
	bool *left;      // by host: has no slot
	uint8_t *to;     // n lines
};

struct line4 {
	uint32_t host[HOSTS4_ONE_SLOTS];
	uint64_t hash[HOSTS4_ONE_SLOTS];
	uint32_t n, seed;
};

static uint32_t line_of(const struct lines4 *l, uint32_t addr)
{
	return (uint32_t)hosts4_line(hosts4_hash(addr, l->seed), l->n);
}

// Sorts the hosts by their buckets.
static void order_hosts(struct lines4 *l)
{
	const struct host4 *host = l->hosts->list.at;
	size_t n = l->hosts->list.n;
	CLEANUP_FREE uint32_t *line = mem_zalloc(n, sizeof(*line));

	l->first = mem_zalloc((size_t)l->n + 1, sizeof(*l->first));
	l->order = mem_zalloc(n, sizeof(*l->order));
	for (size_t i = 0; i < n; i++) {
		line[i] = line_of(l, host[i].addr);
		l->first[line[i]]++;
	}
	for (uint32_t i = 0, sum = 0; i <= l->n; i++)
		l->first[i] = sum += l->first[i];
	for (size_t i = n; i-- > 0;)
		l->order[--l->first[line[i]]] = (uint32_t)i;
}

// Does each host of the bucket have a different slot? Without branches: the first collision cannot
// be predicted.
static bool seed_parts(const struct line4 *line, uint32_t seed, uint32_t slots)
{
	uint32_t used = 0, sum = 0;

	for (uint32_t i = 0; i < line->n; i++) {
		uint32_t bit = 1u << hosts4_slot(line->hash[i], seed, slots);

		used |= bit;
		sum += bit;
	}
	return used == sum;
}

// Finds a seed for all hosts of the bucket, or for all but the last ones.
static void find_seed(struct lines4 *l, struct line4 *line, bool overflow)
{
	for (;;) {
		uint32_t seed = overflow ? HOSTS4_OVERFLOW : 0;

		for (uint32_t end = seed + SEEDS_MAX; seed < end; seed++) {
			if (seed_parts(line, seed, l->shape->slots)) {
				line->seed = seed;
				return;
			}
		}
		l->left[line->host[--line->n]] = true;
		overflow = true;
	}
}

static void take_line(struct lines4 *l, uint32_t index, struct line4 *ret)
{
	bool overflow = false;

	ret->n = 0;
	for (uint32_t i = l->first[index]; i < l->first[index + 1]; i++) {
		uint32_t host = l->order[i];

		if (ret->n == l->shape->most) {
			l->left[host] = overflow = true;
			continue;
		}
		ret->host[ret->n] = host;
		ret->hash[ret->n++] = hosts4_hash(l->hosts->list.at[host].addr, l->seed);
	}
	find_seed(l, ret, overflow);
}

// An address that no look-up compares with this slot.
static uint32_t foreign_address(const struct lines4 *l, uint32_t index, uint32_t seed,
				uint32_t slot)
{
	for (uint32_t addr = 0;; addr++) {
		uint64_t hash = hosts4_hash(addr, l->seed);

		if (hosts4_line(hash, l->n) != index ||
		    hosts4_slot(hash, seed, l->shape->slots) != slot)
			return addr;
	}
}

static void put_line(struct lines4 *l, uint32_t index, const struct line4 *line)
{
	struct hosts4_rows *rows = &((struct hosts4_rows *)l->to)[index];
	struct hosts4_one *one = &((struct hosts4_one *)l->to)[index];
	bool is_one = l->shape->kind == HOSTS4_ONE;
	uint32_t *key = is_one ? one->key : rows->key;

	for (uint32_t slot = 0; slot < l->shape->slots; slot++)
		key[slot] = foreign_address(l, index, line->seed, slot);
	for (uint32_t i = 0; i < line->n; i++) {
		const struct host4 *host = &l->hosts->list.at[line->host[i]];
		uint64_t slot = hosts4_slot(line->hash[i], line->seed, l->shape->slots);

		key[slot] = host->addr;
		if (!is_one)
			rows->row[slot] = (uint16_t)host->row;
	}
	*(is_one ? &one->seed : &rows->seed) = line->seed;
}

// The spans without hosts, but for those hosts that are left.
static void add_left(const struct lines4 *l, struct spans4 *ret)
{
	const struct hosts4 *h = l->hosts;
	size_t i = 0;

	for (size_t s = 0; s < h->rest.n; s++) {
		uint32_t last = span4_last(&h->rest, s);

		spans4_add(ret, h->rest.at[s].first, h->rest.at[s].row);
		for (; i < h->list.n && h->list.at[i].addr <= last; i++) {
			const struct host4 *host = &h->list.at[i];

			if (!l->left[i])
				continue;
			// The span may begin with the host, or end with it.
			if (vec_last(ret)->first == host->addr)
				ret->n--;
			spans4_add(ret, host->addr, host->row);
			if (host->addr < last)
				spans4_add(ret, host->addr + 1, h->rest.at[s].row);
		}
	}
}

static void set_constants(const struct lines4 *l, struct tables *t, int side, size_t offset)
{
	const struct hosts4 *h = l->hosts;

	tables_number(t, SIDE_CONSTANT(side, H4_KIND), l->shape->kind);
	tables_address(t, SIDE_CONSTANT(side, H4_LINES), offset);
	tables_number(t, SIDE_CONSTANT(side, H4_LINES_N), l->n);
	tables_number(t, SIDE_CONSTANT(side, H4_SEED), l->seed);
	tables_number(t, SIDE_CONSTANT(side, H4_NONE), h->rest.n == 1 ? h->rest.at[0].row : 0);
	if (h->one)
		tables_number(t, SIDE_CONSTANT(side, H4_IN), h->list.at[0].row);
}

void hosts4_build(const struct hosts4 *h, uint64_t seed, struct tables *t, int side,
		  struct spans4 *ret_under)
{
	struct lines4 l = {.hosts = h, .shape = shape_of(h), .seed = seed | 1, .n = lines_of(h)};
	size_t offset = tables_add(t, hosts4_bytes(h));

	l.to = t->at + offset;
	l.left = mem_zalloc(h->list.n, sizeof(*l.left));
	order_hosts(&l);
	for (uint32_t i = 0; i < l.n; i++) {
		struct line4 line;

		take_line(&l, i, &line);
		put_line(&l, i, &line);
	}
	add_left(&l, ret_under);
	set_constants(&l, t, side, offset);
	free(l.first);
	free(l.order);
	free(l.left);
}
