// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/ring.c.
#include "tests/unit/table/pool.h"

#include <errno.h>
#include <time.h>

#include "common/limits-policy.h"

static const uint32_t sizes[] = {4093, 8191, 16381, 32749, 65521, 65537, 131071};
static const size_t counts[] = {2, 3, 4, 5, 7, 10, 30, 100, 300, 1000};
static const struct hash_key key = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};
static uint16_t ring[POLICY_RING_MAX], other[POLICY_RING_MAX];

// ---- golden vectors: docs/ring.md prints them ---------------------------------------------------

static uint64_t digest(const uint16_t *owners, uint32_t size)
{
	CLEANUP_FREE uint8_t *bytes = mem_zalloc(size, 2);

	for (uint32_t i = 0; i < size; i++) {
		bytes[2 * i] = (uint8_t)owners[i];
		bytes[2 * i + 1] = (uint8_t)(owners[i] >> 8);
	}
	return hash_bytes(&key, bytes, 2ull * size, HASH_ROUNDS, HASH_ROUNDS_FINAL);
}

static void test_key(void **state)
{
	struct hash_key k = ring_key("correct horse battery staple", 28);

	assert_int_equal(k.word[0], 0x3531cbaeefe55c95);
	assert_int_equal(k.word[1], 0xc441c95d6521fd4a);
	k = ring_key("", 0);
	assert_int_equal(k.word[0], 0x981e2aaf8ee704bb);
	assert_int_equal(k.word[1], 0xa7f5c42dfaf7a91b);
}

struct golden {
	size_t n;
	uint32_t size;
	unsigned least, weights; // backend i has weight least + i % weights
	uint16_t first[12];
	uint64_t digest, fingerprint;
};

static const struct golden golden[] = {
	{1,
	 4093,
	 1,
	 1,
	 {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	 0xa9a8fde1c90ddde8,
	 0xce8298c1bfd02499},
	{2,
	 4093,
	 1,
	 1,
	 {1, 1, 2, 1, 1, 1, 2, 2, 2, 1, 2, 2},
	 0x9497a308e23510ce,
	 0x6f3aee4031592d8c},
	{3,
	 4093,
	 1,
	 3,
	 {3, 3, 2, 3, 1, 1, 2, 2, 3, 3, 2, 3},
	 0x0648c6c1d00f6545,
	 0x0413847a443177aa},
	{5,
	 16381,
	 1,
	 4,
	 {1, 2, 3, 5, 3, 1, 4, 5, 3, 3, 3, 2},
	 0xcd8353be7213f97e,
	 0xd4ea0d721cb3e056},
	{10,
	 16381,
	 1,
	 1,
	 {10, 2, 10, 5, 3, 6, 8, 5, 7, 7, 8, 9},
	 0xa686ce779034b918,
	 0x7070856cb999bfc0},
	{100,
	 16381,
	 1,
	 7,
	 {90, 41, 13, 13, 70, 6, 27, 63, 12, 97, 7, 63},
	 0x0b39671b9a3ec4c7,
	 0x67ec56ee96bfbda2},
	{37,
	 65537,
	 1,
	 5,
	 {14, 14, 37, 32, 29, 10, 10, 18, 13, 28, 30, 22},
	 0xafccf2aa98316374,
	 0x21eec26384b22797},
	{1000,
	 65537,
	 1,
	 1000,
	 {422, 247, 926, 776, 872, 554, 772, 631, 539, 613, 579, 582},
	 0x56341babde25ac0a,
	 0x267b66f0671a3079},
	{1024,
	 131071,
	 1,
	 2,
	 {515, 242, 342, 631, 551, 80, 404, 247, 372, 153, 584, 376},
	 0xd4fd85b66481702e,
	 0xd3182d6de244878b},
	{300,
	 65537,
	 65236,
	 300,
	 {184, 247, 177, 175, 62, 156, 91, 84, 13, 202, 209, 161},
	 0x43d30c9b92a058e4,
	 0x649927c9c903d524},
};

static void test_golden(void **state)
{
	for (size_t g = 0; g < ARRAY_SIZE(golden); g++) {
		const struct golden *want = &golden[g];
		struct arena p = arena_of(want->n);
		uint64_t mark = 0;

		for (size_t i = 0; i < p.n; i++)
			p.at[i].weight = want->least + (uint32_t)i % want->weights;
		arena_fill(&p, &key, want->size, ring);
		assert_int_equal(
			ring_fingerprint(&key, SERVICE_HASH_TUPLE, want->size, p.at, p.n, &mark),
			0);
		for (size_t i = 0; i < ARRAY_SIZE(want->first); i++)
			assert_int_equal(ring[i], want->first[i]);
		assert_int_equal(digest(ring, want->size), want->digest);
		assert_int_equal(mark, want->fingerprint);
	}
}

// ---- what does not matter -----------------------------------------------------------------------

static void test_order_and_numbers_do_not_matter(void **state)
{
	uint64_t s = 11;

	for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
		struct arena p = arena_of(counts[c]), q;

		for (size_t i = 0; i < p.n; i++)
			p.at[i].weight = unit_below(&s, 20);
		p.at[0].weight = 3;
		q = p;
		for (size_t i = p.n - 1; i > 0; i--) {
			size_t j = unit_below(&s, (unsigned)i + 1);
			struct ring_backend b = q.at[i];

			q.at[i] = q.at[j];
			q.at[j] = b;
		}
		for (size_t i = 0; i < p.n; i++)
			q.at[i].id = (uint16_t)(SERVICE_BACKENDS - q.at[i].id);
		arena_fill(&p, &key, 16381, ring);
		arena_fill(&q, &key, 16381, other);
		for (uint32_t i = 0; i < 16381; i++)
			assert_int_equal(ring[i], SERVICE_BACKENDS - other[i]);
	}
}

// A backend without weight has no effect; only the ratio of weights counts.
static void test_weightless_and_ratios(void **state)
{
	struct arena p = arena_of(20), q = arena_of(12);

	for (size_t i = 0; i < p.n; i++)
		p.at[i].weight = i < q.n ? 1 + (uint32_t)i % 3 : 0;
	for (size_t i = 0; i < q.n; i++)
		q.at[i].weight = (1 + (uint32_t)i % 3) * 21845;
	arena_fill(&p, &key, 16381, ring);
	arena_fill(&q, &key, 16381, other);
	assert_memory_equal(ring, other, 16381 * sizeof(*ring));
}

// Address, port, seed and size each change the ring.
static void test_what_matters(void **state)
{
	struct hash_key k = key;
	struct arena p = arena_of(10);
	uint32_t same = 0;

	arena_fill(&p, &key, 16381, ring);
	k.word[1] ^= 1;
	arena_fill(&p, &k, 16381, other);
	for (uint32_t i = 0; i < 16381; i++)
		same += ring[i] == other[i];
	assert_in_range(same, 16381 / 10 - 400, 16381 / 10 + 400);
	for (size_t i = 0; i < p.n; i++)
		p.at[i].port = 8080;
	arena_fill(&p, &key, 16381, other);
	assert_memory_not_equal(ring, other, 16381 * sizeof(*ring));
	same = 0;
	for (uint32_t i = 0; i < 16381; i++)
		same += ring[i] == other[i];
	assert_in_range(same, 16381 / 10 - 400, 16381 / 10 + 400);
}

static void test_refused(void **state)
{
	static const uint32_t bad[] = {0,     1,     2,     4091,   4092,   4094,      16383,
				       65535, 65536, 65539, 131069, 131072, UINT32_MAX};
	struct arena p = arena_of(3);
	uint64_t mark = 7;

	ring[0] = 4711;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		bool prime = bad[i] == 65539;

		assert_int_equal(ring_size_ok(bad[i]), prime);
		assert_int_equal(ring_fill(&key, p.at, p.n, bad[i], prime ? other : ring),
				 prime ? 0 : -EINVAL);
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		assert_true(ring_size_ok(sizes[i]));
	assert_int_equal(ring_fill(&key, p.at, 0, 4093, ring), -ENOENT);
	p.at[1].addr = p.at[2].addr;
	assert_int_equal(ring_fill(&key, p.at, p.n, 4093, ring), -EINVAL);
	assert_int_equal(ring_fingerprint(&key, 0, 4093, p.at, p.n, &mark), -EINVAL);
	p.at[1].port = 1; // another port is another backend
	assert_int_equal(ring_fill(&key, p.at, p.n, 4093, other), 0);
	p.at[1].id = BACKEND_NONE;
	assert_int_equal(ring_fill(&key, p.at, p.n, 4093, ring), -EINVAL);
	p.at[1].id = SERVICE_BACKENDS;
	assert_int_equal(ring_fill(&key, p.at, p.n, 4093, ring), -EINVAL);
	p = arena_of(3);
	p.at[2].weight = POLICY_WEIGHT_MAX + 1;
	assert_int_equal(ring_fill(&key, p.at, p.n, 4093, ring), -EINVAL);
	for (size_t i = 0; i < p.n; i++)
		p.at[i].weight = 0;
	assert_int_equal(ring_fill(&key, p.at, p.n, 4093, ring), -ENOENT);
	assert_int_equal(ring[0], 4711);
	assert_int_equal(mark, 7);
}

// ---- shares -------------------------------------------------------------------------------------

// No backend is off by a slot, for any weights.
static void check_shares(const struct arena *p, uint32_t size)
{
	uint32_t slots[SERVICE_BACKENDS] = {0}, all = 0;
	uint64_t sum = 0, worst = 0;
	size_t who = 0, said;

	arena_fill(p, &key, size, ring);
	for (uint32_t i = 0; i < size; i++)
		slots[ring[i]]++;
	for (size_t i = 0; i < p->n; i++)
		sum += p->at[i].weight;
	for (size_t i = 0; i < p->n; i++) {
		double exact = (double)size * p->at[i].weight / (double)sum;
		double off = (double)slots[p->at[i].id] - exact;
		uint64_t parts;

		all += slots[p->at[i].id];
		assert_true(off < 1 && off > -1);
		if (!p->at[i].weight)
			continue;
		parts = (uint64_t)((off < 0 ? -off : off) / exact * 1e6);
		if (parts > worst) {
			worst = parts;
			who = i;
		}
	}
	assert_int_equal(all, size);
	assert_in_range(ring_share_error(p->at, p->n, size, ring, &said), worst, worst + 1);
	assert_true(said == who || worst < 2 || p->at[said].weight == p->at[who].weight);
}

static void test_shares(void **state)
{
	uint64_t s = 21;

	for (size_t z = 0; z < ARRAY_SIZE(sizes); z++)
		for (size_t c = 0; c < ARRAY_SIZE(counts); c++)
			for (unsigned kind = 0; kind < 4; kind++) {
				struct arena p = arena_of(counts[c]);

				for (size_t i = 0; i < p.n; i++)
					p.at[i].weight = kind == 0   ? 1
							 : kind == 1 ? 1 + unit_below(&s, 10)
							 : kind == 2 ? unit_below(&s, 65536)
							 : i         ? 1
								     : 65535;
				p.at[p.n - 1].weight += !p.at[p.n - 1].weight;
				check_shares(&p, sizes[z]);
			}
}

static void test_share_error_of_a_ring(void **state)
{
	struct arena p = arena_of(3);
	size_t who = 9;

	for (uint32_t i = 0; i < 4093; i++)
		ring[i] = i < 2047 ? 1 : 2;
	p.at[2].weight = 0;
	assert_in_range(ring_share_error(p.at, 3, 4093, ring, &who), 244, 245); // half a slot
	p.at[2].weight = 1;
	assert_int_equal(ring_share_error(p.at, 3, 4093, ring, &who), 1000000); // gets none
	assert_int_equal(who, 2);
	p.at[0].weight = p.at[1].weight = 1;
	p.at[2].weight = 65535;
	assert_true(ring_share_error(p.at, 3, 4093, ring, &who) > 32000000000);
	p = arena_of(0);
	assert_int_equal(ring_share_error(p.at, 0, 4093, ring, NULL), 0);
}

// Flows are distributed by the shares: 1,000,000 tuples by the hash of flows.
static void test_spread_of_flows(void **state)
{
	const struct flow_key flow = ring_flow_key(&key);
	const unsigned flows = 1000000;
	struct arena p = arena_of(8);
	uint64_t s = 31, hits[9] = {0};

	for (size_t i = 0; i < p.n; i++)
		p.at[i].weight = 1 + (uint32_t)i;
	arena_fill(&p, &key, 16381, ring);
	for (unsigned i = 0; i < flows; i++) {
		uint64_t r = unit_random(&s); // a few clients, their ports in a row
		uint64_t hash = flow_tuple4(&flow, (uint32_t)(r & 0xff), 0x0a0200c0,
					    flow_ports((uint16_t)(32768 + i % 28232), 443), 6);

		hits[ring[slot_of(hash, 16381)]]++;
	}
	for (size_t i = 0; i < p.n; i++) {
		double share = (double)hits[i + 1] / flows, wanted = (double)(i + 1) / 36;

		assert_true(share > wanted - 0.002 && share < wanted + 0.002);
	}
}

// ---- disruption ---------------------------------------------------------------------------------

struct moves {
	double mean, worst; // parts of a hundred of the slots
};

// Slots whose owner changes although neither owner is the changed backend.
static void count_moves(const struct arena *before, const struct arena *after, uint32_t size,
			uint32_t changed, unsigned keys, struct moves *ret)
{
	*ret = (struct moves){0};
	for (unsigned k = 0; k < keys; k++) {
		const struct hash_key seed = {{k, 7}};
		uint32_t moved = 0;
		double part;

		arena_fill(before, &seed, size, ring);
		arena_fill(after, &seed, size, other);
		for (uint32_t i = 0; i < size; i++)
			moved += ring[i] != other[i] && ring[i] != changed && other[i] != changed;
		part = 100.0 * moved / size;
		ret->mean += part / keys;
		ret->worst = part > ret->worst ? part : ret->worst;
	}
}

static void check_disruption(size_t n, uint32_t size, bool weighted, unsigned keys)
{
	struct arena before = arena_of(n), more = arena_of(n + 1), heavier, none;
	struct moves m[3];

	for (size_t i = 0; weighted && i <= n; i++)
		before.at[i].weight = more.at[i].weight = 1 + (uint32_t)i % 5;
	heavier = none = before;
	heavier.at[n / 2].weight *= 2;
	none.at[n / 2].weight = 0;
	count_moves(&before, &more, size, more.at[n].id, keys, &m[0]);
	count_moves(&before, &none, size, before.at[n / 2].id, keys, &m[1]);
	count_moves(&before, &heavier, size, before.at[n / 2].id, keys, &m[2]);
	print_message("%6u slots, %4zu backends%s: moved besides, mean and worst of %u seeds: "
		      "add %.2f %.2f, remove %.2f %.2f, double %.2f %.2f %%\n",
		      size, n, weighted ? " of weights 1-5" : "", keys, m[0].mean, m[0].worst,
		      m[1].mean, m[1].worst, m[2].mean, m[2].worst);
	// Maglev moves a few, not none; a random ring would move nearly all.
	for (size_t i = 0; i < ARRAY_SIZE(m); i++)
		assert_true(m[i].mean < 2 && m[i].worst < 8);
}

static void test_disruption(void **state)
{
	for (size_t c = 0; c < ARRAY_SIZE(counts); c++) {
		check_disruption(counts[c], 16381, false, 8);
		check_disruption(counts[c], 16381, true, 4);
		check_disruption(counts[c], 65537, false, 2);
	}
}

// ---- who counts, fingerprints -------------------------------------------------------------------

static void test_elect(void **state)
{
	struct arena p = arena_of(4), q;

	p.at[2].backup = p.at[3].backup = true;
	p.at[2].weight = 5;
	assert_int_equal(ring_elect(p.at, 4, q.at), 2);
	assert_true(q.at[0].weight == 1 && q.at[1].weight == 1);
	assert_true(!q.at[2].weight && !q.at[3].weight);
	p.at[0].state = BACKEND_DOWN;
	assert_int_equal(ring_elect(p.at, 4, q.at), 1);
	assert_true(!q.at[0].weight && q.at[1].weight == 1 && !q.at[2].weight);
	p.at[1].state = BACKEND_DRAIN;
	assert_int_equal(ring_elect(p.at, 4, q.at), 2);
	assert_true(!q.at[0].weight && !q.at[1].weight && q.at[2].weight == 5 &&
		    q.at[3].weight == 1);
	p.at[1].state = BACKEND_UP;
	p.at[1].weight = 0; // drained in the file
	assert_int_equal(ring_elect(p.at, 4, q.at), 2);
	p.at[2].state = p.at[3].state = BACKEND_DOWN;
	assert_int_equal(ring_elect(p.at, 4, q.at), 0);
	assert_int_equal(ring_elect(p.at, 0, q.at), 0);
}

static uint64_t mark(const struct arena *p, const struct hash_key *k, enum service_hash hash,
		     uint32_t size)
{
	uint64_t r = 0;

	assert_int_equal(ring_fingerprint(k, hash, size, p->at, p->n, &r), 0);
	return r;
}

static void test_fingerprint(void **state)
{
	struct hash_key k = key;
	struct arena p = arena_of(4), q = p;
	uint64_t seen[12], n = 0;

	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	q.at[0] = p.at[3];
	q.at[3] = p.at[0];
	q.at[1].id = 99;
	assert_int_equal(mark(&q, &key, SERVICE_HASH_TUPLE, 16381), seen[0]);
	seen[n++] = mark(&p, &key, SERVICE_HASH_SOURCE, 16381);
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 4093);
	k.word[0]++;
	seen[n++] = mark(&p, &k, SERVICE_HASH_TUPLE, 16381);
	p.at[1].weight = 0;
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	p.at[1].weight = 257;
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	p.at[1].state = BACKEND_DRAIN;
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	p.at[1].state = BACKEND_DOWN;
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	p.at[1].backup = true;
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	p.at[1].port = 80;
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	p.n = 3;
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	p.n = 0;
	seen[n++] = mark(&p, &key, SERVICE_HASH_TUPLE, 16381);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(seen[i] != seen[j]);
}

// ---- time ---------------------------------------------------------------------------------------

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void test_time(void **state)
{
	struct arena p = arena_of(1000);
	double best = 1e9;

	for (size_t i = 0; i < p.n; i++)
		p.at[i].weight = 1 + (uint32_t)i * 65;
	for (int round = 0; round < 9; round++) {
		double begin = cpu_ms(), took;

		arena_fill(&p, &key, 65537, ring);
		took = cpu_ms() - begin;
		best = took < best ? took : best;
	}
	print_message("65537 slots, 1000 backends: filled in %.2f ms\n", best);
	assert_true(arena_slots(ring, 65537, 1000) > arena_slots(ring, 65537, 500));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_order_and_numbers_do_not_matter),
		cmocka_unit_test(test_weightless_and_ratios),
		cmocka_unit_test(test_what_matters),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_share_error_of_a_ring),
		cmocka_unit_test(test_spread_of_flows),
		cmocka_unit_test(test_disruption),
		cmocka_unit_test(test_elect),
		cmocka_unit_test(test_fingerprint),
		cmocka_unit_test(test_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
