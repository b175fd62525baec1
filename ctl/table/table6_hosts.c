// SPDX-License-Identifier: GPL-2.0-only
// Puts hosts into buckets: each into the first of its two buckets while there is room, then into
// the second, then by moving others to their other bucket.
//
// Pagh and Rodler, "Cuckoo Hashing", ESA 2001; with two buckets of three slots, more than nine
// tenths of all slots can be used. A factor of the bucket, chosen so that no two hosts collide,
// gives the slot.
#include "ctl/table/table6_hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/table6.h"

// Up to this many hosts among prefixes need no buckets: their nodes stay in the cache.
#define FEW 64
// Hosts per bucket on average, in hundredths. If half full, 6 % of the hosts are in their second
// bucket and cost a second access; above this many buckets memory matters more.
#define LOAD       150
#define LOAD_MOST  275
#define LINES_MANY (1u << 17)
#define MOVES      500 // before a host is left to the nodes

static unsigned region_hosts(const struct regions *r, size_t i)
{
	address_key n = region_end(r, i) - region_first(&r->at[i]);

	return n && n <= TABLE6_RUN ? (unsigned)n : 0;
}

size_t table6_hosts_count(const struct regions *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += region_hosts(r, i);
	return n;
}

// Have all addresses but the hosts the same row?
static bool is_flat(const struct regions *r)
{
	policy_row row = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (region_hosts(r, i))
			continue;
		if (row && r->at[i].row != row)
			return false;
		row = r->at[i].row;
	}
	return true;
}

bool table6_hosts_pay(const struct regions *r, size_t hosts)
{
	return hosts && (hosts > FEW || is_flat(r));
}

struct host6 {
	uint64_t hi, lo, hash;
	uint16_t row;
};

struct lines6 {
	struct table6_line *at;
	uint8_t *used; // slots of each bucket, which are filled from the first on
	size_t n;
	uint64_t seed, random;
	VEC(struct host6) late;   // the first bucket is full
	VEC(address_key) without; // hosts without a slot, sorted at the end
};

static size_t lines_wanted(size_t hosts)
{
	size_t fast = hosts * 100 / LOAD + 1, dense = hosts * 100 / LOAD_MOST + 1;

	if (fast <= LINES_MANY)
		return fast;
	return dense > LINES_MANY ? dense : LINES_MANY;
}

// The other bucket of a host; the same one if both are equal.
static size_t other_line(const struct lines6 *l, uint64_t hash, size_t line)
{
	size_t first = table6_first_line(hash, l->n);

	return line == first ? table6_second_line(hash, l->n) : first;
}

static struct host6 host_at(const struct lines6 *l, size_t line, size_t place)
{
	const uint64_t *key = (const uint64_t *)l->at[line].key[place];
	uint16_t row = l->at[line].row[place];

	return (struct host6){key[0], key[1], table6_hash(key[0], key[1], l->seed), row};
}

static void host_put(struct lines6 *l, size_t line, size_t place, const struct host6 *h)
{
	l->at[line].key[place][0] = h->hi;
	l->at[line].key[place][1] = h->lo;
	l->at[line].row[place] = h->row;
}

static bool line_take(struct lines6 *l, size_t line, const struct host6 *h)
{
	if (l->used[line] == TABLE6_HOSTS)
		return false;
	host_put(l, line, l->used[line]++, h);
	return true;
}

static void leave_out(struct lines6 *l, const struct host6 *h)
{
	vec_push(&l->without, key_of6(h->hi, h->lo));
}

// Moves one host of a full bucket to its other bucket, if that has room, and puts h in its slot.
static bool displace(struct lines6 *l, size_t line, const struct host6 *h)
{
	for (size_t place = 0; place < TABLE6_HOSTS; place++) {
		struct host6 moved = host_at(l, line, place);

		if (!line_take(l, other_line(l, moved.hash, line), &moved))
			continue;
		host_put(l, line, place, h);
		return true;
	}
	return false;
}

static size_t random_place(struct lines6 *l)
{
	l->random = l->random * 6364136223846793005ull + 1442695040888963407ull;
	return (size_t)(l->random >> 33) % TABLE6_HOSTS;
}

// A random walk: h takes the slot of another host, which tries its other bucket.
static void place_late(struct lines6 *l, struct host6 h)
{
	size_t line = table6_second_line(h.hash, l->n);

	for (int move = 0; move < MOVES; move++) {
		size_t place = random_place(l);
		struct host6 next;

		if (line_take(l, line, &h) || displace(l, line, &h))
			return;
		next = host_at(l, line, place);
		host_put(l, line, place, &h);
		h = next;
		line = other_line(l, h.hash, line);
	}
	leave_out(l, &h);
}

static void place_all(struct lines6 *l, const struct regions *r)
{
	for (size_t i = 0; i < r->n; i++) {
		unsigned n = region_hosts(r, i);
		address_key key = region_first(&r->at[i]);

		for (; n; n--, key++) {
			struct host6 h = {.hi = (uint64_t)(key >> 64), .lo = (uint64_t)key};

			if (r->at[i].row > UINT16_MAX) {
				leave_out(l, &h);
				continue;
			}
			h.row = (uint16_t)r->at[i].row;
			h.hash = table6_hash(h.hi, h.lo, l->seed);
			if (!line_take(l, table6_first_line(h.hash, l->n), &h))
				vec_push(&l->late, h);
		}
	}
	vec_each (&l->late, h)
		place_late(l, *h);
	vec_free(&l->late);
}

// ---- slots of a bucket --------------------------------------------------------------------------

// Does each host of a bucket get a different slot?
static bool own_fits(const struct host6 *host, size_t n, uint32_t own)
{
	unsigned taken = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned place = 1u << table6_place(host[i].hash, own);

		if (taken & place)
			return false;
		taken |= place;
	}
	return true;
}

// If hosts have equal hashes, one is left out.
static uint16_t find_own(struct lines6 *l, const struct host6 *host, size_t *n)
{
	for (;; leave_out(l, &host[--*n]))
		for (uint32_t own = 1; own <= UINT16_MAX; own += 2)
			if (own_fits(host, *n, own))
				return (uint16_t)own;
}

static void arrange(struct lines6 *l, size_t line)
{
	struct host6 host[TABLE6_HOSTS];
	size_t n = l->used[line];
	uint16_t own;

	for (size_t i = 0; i < n; i++)
		host[i] = host_at(l, line, i);
	own = find_own(l, host, &n);
	memset(l->at[line].key, 0, sizeof(l->at[line].key));
	memset(l->at[line].row, 0, sizeof(l->at[line].row));
	l->at[line].own = own;
	for (size_t i = 0; i < n; i++) {
		size_t first = table6_first_line(host[i].hash, l->n);

		host_put(l, line, table6_place(host[i].hash, own), &host[i]);
		if (first != line)
			l->at[first].elsewhere |= 1ull << (host[i].hash & 63);
	}
}

// ---- the rest -----------------------------------------------------------------------------------

static int key_compare(const void *a, const void *b)
{
	const address_key *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static struct regions rest_of(const struct lines6 *l, const struct regions *r)
{
	struct regions rest = {0};
	size_t without = 0;

	for (size_t i = 0; i < r->n; i++) {
		unsigned n = region_hosts(r, i);
		address_key key = region_first(&r->at[i]);

		if (!n || !i) // the rest begins at 0 in any case
			regions_add(&rest, key, r->at[i].row);
		for (; n; n--, key++) {
			if (without == l->without.n || l->without.at[without] != key)
				continue;
			regions_add(&rest, key, r->at[i].row);
			without++;
		}
	}
	return rest;
}

int table6_hosts_build(struct tables *t, enum table_side side, const struct regions *r,
		       size_t hosts, uint64_t seed, struct regions *ret_rest)
{
	struct lines6 l = {.n = lines_wanted(hosts), .seed = seed, .random = seed};
	size_t bytes = l.n * sizeof(struct table6_line), offset;

	if (t->n + TABLE_ALIGN + bytes > TABLES_BYTES_MAX)
		return -ENOSPC;
	offset = tables_add(t, bytes);
	l.at = (struct table6_line *)(t->at + offset);
	l.used = mem_zalloc(l.n, 1);
	place_all(&l, r);
	for (size_t line = 0; line < l.n; line++)
		arrange(&l, line);
	if (l.without.n)
		qsort(l.without.at, l.without.n, sizeof(*l.without.at), key_compare);
	*ret_rest = rest_of(&l, r);
	vec_free(&l.without);
	free(l.used);
	tables_address(t, SIDE_CONSTANT(side, H6_LINES), offset);
	tables_number(t, SIDE_CONSTANT(side, H6_LINES_N), l.n);
	tables_number(t, SIDE_CONSTANT(side, H6_SEED), seed);
	return 0;
}
