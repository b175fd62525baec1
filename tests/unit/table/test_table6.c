// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of the tables of IPv6 addresses: what common/table6.h reads against a search in the
// regions.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/table/table6_nodes.h"
#include "ctl/table/tables.h"

// Each access of a look-up is counted.
static size_t loads;
#undef TABLE_AT
#define TABLE_AT(v, name) (loads++, (const uint8_t *)(v)->at + (v)->constant[name].value)

#include "ctl/table/table6.h"
#include "ctl/table/table6_hosts.h"

#ifdef __SANITIZE_ADDRESS__
#define MANY   100000 // the same code, and the run stays short
#define ROUNDS 150
#else
#define MANY   1000000
#define ROUNDS 600
#endif

#define SEED 0xfeedfacecafebeefull

static policy_row naive_row(const struct regions *r, address_key key)
{
	size_t low = 0, high = r->n;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (region_first(&r->at[middle]) <= key)
			low = middle;
		else
			high = middle;
	}
	return r->at[low].row;
}

static uint32_t row_of(const struct tables *t, address_key key)
{
	return (uint32_t)table6_row(t, SIDE_DESTINATION, (uint64_t)(key >> 64), (uint64_t)key,
				    false);
}

static void check_address(const struct regions *r, const struct tables *t, address_key key)
{
	uint32_t row = row_of(t, key), expected = naive_row(r, key);

	if (row != expected)
		print_message("%016llx:%016llx\n", (unsigned long long)(key >> 64),
			      (unsigned long long)key);
	assert_int_equal(row, expected);
}

static address_key random_key(uint64_t *s)
{
	return key_of6(unit_random(s), unit_random(s));
}

// `at` with the last bits random.
static address_key near(address_key at, unsigned bits, uint64_t *s)
{
	return at ^ (random_key(s) & (((address_key)1 << bits) - 1));
}

// Both sides of an edge, and random addresses, also with the same first 112, 64, 48 and 16 bits.
static void check_edges(const struct regions *r, const struct tables *t, uint64_t *s)
{
	size_t step = r->n / 20000 + 1; // of very many some

	for (size_t i = 0; i < r->n; i += step) {
		address_key first = region_first(&r->at[i]);

		check_address(r, t, first);
		check_address(r, t, first - 1);
		check_address(r, t, first + 1);
		check_address(r, t, near(first, 16, s));
		check_address(r, t, near(first, 64, s));
		check_address(r, t, near(first, 80, s));
		check_address(r, t, near(first, 112, s));
		check_address(r, t, random_key(s));
	}
	check_address(r, t, (address_key)-1);
	check_address(r, t, 0);
}

static void check_built(const struct regions *r, struct tables *t, uint64_t *s)
{
	check_edges(r, t, s);
	assert_true(t->n <= TABLES_BYTES_MAX);
	tables_free(t);
}

static void check_chosen(const struct regions *r, uint64_t *s)
{
	struct tables t = {0};

	tables_add(&t, 1 + unit_below(s, 100)); // something is there already
	assert_int_equal(table6_build(&t, SIDE_DESTINATION, r, SEED), 0);
	check_built(r, &t, s);
}

static void check_nodes(const struct regions *r, enum table6_kind kind, uint64_t *s)
{
	struct table6_nodes nodes;
	struct tables t = {0};

	assert_int_equal(table6_nodes_build(r, TABLES_BYTES_MAX, &nodes), 0);
	if (kind == TABLE6_WIDE || table6_nodes_are_narrow(&nodes)) {
		assert_int_equal(table6_nodes_add(&nodes, &t, SIDE_DESTINATION, kind), 0);
		tables_number(&t, SIDE_CONSTANT(SIDE_DESTINATION, H6_LINES_N), 0);
		check_built(r, &t, s);
	}
	table6_nodes_free(&nodes);
}

// Lines, whether they pay or not.
static void check_lines(const struct regions *r, uint64_t *s)
{
	size_t hosts = table6_hosts_count(r);
	struct table6_nodes nodes;
	struct regions rest;
	struct tables t = {0};

	if (!hosts)
		return;
	assert_int_equal(table6_hosts_build(&t, SIDE_DESTINATION, r, hosts, SEED, &rest), 0);
	assert_int_equal(table6_nodes_build(&rest, TABLES_BYTES_MAX, &nodes), 0);
	assert_int_equal(table6_nodes_add(&nodes, &t, SIDE_DESTINATION, TABLE6_WIDE), 0);
	check_built(r, &t, s);
	table6_nodes_free(&nodes);
	vec_free(&rest);
}

static void check(const struct regions *r, uint64_t *s)
{
	check_chosen(r, s);
	check_nodes(r, TABLE6_NODES, s);
	check_nodes(r, TABLE6_WIDE, s);
	check_lines(r, s);
}

// ---- sets of regions ----------------------------------------------------------------------------

struct edges {
	VEC(address_key) at;
};

static int key_compare(const void *a, const void *b)
{
	const address_key *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void edges_add(struct edges *e, address_key first, address_key last)
{
	vec_push(&e->at, first);
	if (last + 1)
		vec_push(&e->at, last + 1);
}

static address_key host_bits(unsigned len)
{
	return len ? ((address_key)1 << (128 - len)) - 1 : ~(address_key)0;
}

static void edges_add_prefix(struct edges *e, address_key at, unsigned len)
{
	edges_add(e, at & ~host_bits(len), at | host_bits(len));
}

// Regions with random rows 1 … rows. Frees the edges.
static struct regions edges_regions(struct edges *e, policy_row rows, uint64_t *s)
{
	struct regions r = {0};

	vec_push(&e->at, 0);
	qsort(e->at.at, e->at.n, sizeof(*e->at.at), key_compare);
	for (size_t i = 0; i < e->at.n; i++)
		if (!i || e->at.at[i] != e->at.at[i - 1])
			regions_add(&r, e->at.at[i], 1 + (policy_row)(unit_random(s) >> 33) % rows);
	vec_free(&e->at);
	return r;
}

// One of the first 16 bits that registries assign, and random bits.
static address_key assigned_key(uint64_t *s)
{
	static const uint16_t heads[] = {0x2001, 0x2003, 0x2400, 0x2401, 0x2402, 0x2403, 0x2404,
					 0x2405, 0x2406, 0x2407, 0x2600, 0x2601, 0x2602, 0x2603,
					 0x2604, 0x2605, 0x2606, 0x2607, 0x2800, 0x2801, 0x2803,
					 0x2804, 0x2a00, 0x2a01, 0x2a02, 0x2a03, 0x2a04, 0x2a05,
					 0x2a06, 0x2a07, 0x2c0e, 0x2c0f};

	return random_key(s) >> 16 | (address_key)heads[unit_below(s, ARRAY_SIZE(heads))] << 112;
}

struct range {
	address_key first, last;
};

static int range_compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->first != y->first)
		return x->first > y->first ? 1 : -1;
	return (x->last < y->last) - (x->last > y->last); // the longest first
}

typedef unsigned length_maker(uint64_t *s);

// n random prefixes, as one set is: those that overlap are one region. Rows 2 … rows + 1; 1 for the
// others.
static struct regions set_regions(size_t n, length_maker *length, policy_row rows, uint64_t *s)
{
	struct range *range = calloc(n, sizeof(*range));
	struct regions r = {0};
	address_key end = 0;

	for (size_t i = 0; i < n; i++) {
		address_key at = assigned_key(s), host = host_bits(length(s));

		range[i] = (struct range){at & ~host, at | host};
	}
	qsort(range, n, sizeof(*range), range_compare);
	regions_add(&r, 0, 1);
	for (size_t i = 0; i < n; i++) {
		if (range[i].first < end) // in one before it
			continue;
		if (range[i].first != end)
			regions_add(&r, end, 1);
		regions_add(&r, range[i].first, 2 + unit_below(s, rows));
		end = range[i].last + 1;
	}
	regions_add(&r, end, 1);
	free(range);
	return r;
}

static unsigned length_mixed(uint64_t *s)
{
	static const uint8_t lens[] = {32, 36, 40, 44, 48, 48, 48, 48,
				       48, 56, 56, 60, 64, 64, 64, 64};

	return lens[unit_below(s, sizeof(lens))];
}

static unsigned length_host(uint64_t *s)
{
	return 128;
}

static unsigned length_any(uint64_t *s)
{
	return unit_below(s, 8) ? 29 + unit_below(s, 36) : 128;
}

// ---- tests --------------------------------------------------------------------------------------

static void check_free(struct regions r, uint64_t *s)
{
	check(&r, s);
	vec_free(&r);
}

static policy_row random_rows(uint64_t *s)
{
	static const policy_row rows[] = {2, 3, 10, 255, 256, 300, 70000, 0x7ffffffe};

	return rows[unit_below(s, ARRAY_SIZE(rows))];
}

// Prefixes of all lengths, hosts, and ranges that are neither; far apart, or within one /16, /48,
// /64 or /112.
static void test_random(void **state)
{
	static const uint8_t within[] = {0, 0, 16, 32, 48, 60, 64, 64, 72, 112, 120};
	uint64_t s = 1;

	for (int round = 0; round < ROUNDS; round++) {
		unsigned n = 1 + unit_below(&s, unit_below(&s, 4) ? 20 : 400);
		unsigned bits = 128 - within[unit_below(&s, sizeof(within))];
		unsigned shapes = 1 + unit_below(&s, 7);
		address_key base = random_key(&s);
		struct edges e = {0};

		for (unsigned i = 0; i < n; i++) {
			address_key at = bits == 128 ? random_key(&s) : near(base, bits, &s);

			if (shapes & 1)
				edges_add_prefix(&e, at, 128);
			if (shapes & 2)
				edges_add_prefix(&e, at, 128 - unit_below(&s, bits));
			if (shapes & 4)
				edges_add(&e, at, at + (random_key(&s) >> unit_below(&s, 128)));
		}
		check_free(edges_regions(&e, random_rows(&s), &s), &s);
	}
}

// All prefixes that contain one address, or whose complement does: the deepest way there is.
static void test_nested(void **state)
{
	uint64_t s = 2;

	for (int round = 0; round < ROUNDS / 10; round++) {
		address_key at = round == 0   ? 0
				 : round == 1 ? ~(address_key)0
				 : round == 2 ? (address_key)1 << 127
				 : round == 3 ? ((address_key)1 << 127) - 1
					      : random_key(&s);
		unsigned step = 1 + (unsigned)round % 5;
		struct edges e = {0};

		for (unsigned len = 0; len <= 128; len += step)
			edges_add_prefix(&e, at, len);
		check_free(edges_regions(&e, random_rows(&s), &s), &s);
	}
}

static unsigned log2_up(unsigned n)
{
	unsigned bits = 0;

	while (1u << bits < n)
		bits++;
	return bits;
}

// Clusters within clusters, so that each table of cells leaves all edges but one in one cell.
static void test_clusters(void **state)
{
	uint64_t s = 3;

	for (unsigned edges = 3; edges < 9; edges++) {
		for (unsigned skip = 1; skip < 12; skip++) {
			address_key at = random_key(&s);
			struct edges e = {0};

			for (unsigned bit = 0; bit < 128; bit += skip)
				edges_add(&e, at ^ (address_key)1 << bit,
					  (at ^ (address_key)1 << bit) +
						  unit_below(&s, 1u << log2_up(edges)));
			check_free(edges_regions(&e, random_rows(&s), &s), &s);
		}
	}
}

// Regions that begin or end at the first and last addresses, and at the ends of words.
static void test_ends(void **state)
{
	static const uint64_t word[] = {0, 1, 2, ~0ull, ~0ull - 1, 1ull << 63, (1ull << 63) - 1};
	uint64_t s = 4;

	for (int round = 0; round < ROUNDS; round++) {
		unsigned n = 1 + unit_below(&s, 12);
		struct edges e = {0};

		for (unsigned i = 0; i < n; i++)
			vec_push(&e.at, key_of6(word[unit_below(&s, ARRAY_SIZE(word))],
						word[unit_below(&s, ARRAY_SIZE(word))]));
		check_free(edges_regions(&e, random_rows(&s), &s), &s);
	}
}

static void test_one_row(void **state)
{
	struct regions r = {0};
	struct tables t = {0};
	uint64_t s = 5;

	regions_add(&r, 0, 77);
	assert_int_equal(table6_build(&t, SIDE_SOURCE, &r, SEED), 0);
	assert_int_equal(t.constant[SIDE_CONSTANT(SIDE_SOURCE, T6_KIND)].value, TABLE6_ONE);
	assert_int_equal(t.n, 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(
			table6_row(&t, SIDE_SOURCE, unit_random(&s), unit_random(&s), false), 77);
	tables_free(&t);
	vec_free(&r);
}

// More rows or nodes than the narrow kind holds; the other one takes over at the edge.
static void test_kinds(void **state)
{
	uint64_t s = 6;

	for (policy_row rows = 254; rows <= 257; rows++) {
		struct tables t = {0};
		struct regions r = {0};

		for (policy_row i = 1; i <= rows; i++)
			regions_add(&r, (address_key)(i - 1) << 100, i);
		assert_int_equal(table6_build(&t, SIDE_SOURCE, &r, SEED), 0);
		assert_int_equal(t.constant[SIDE_CONSTANT(SIDE_SOURCE, T6_KIND)].value,
				 rows < 256 ? TABLE6_NODES : TABLE6_WIDE);
		tables_free(&t);
		check_free(r, &s);
	}
	for (uint32_t n = TABLE6_LEAF - 1; n <= TABLE6_LEAF;
	     n++) { // n nodes and the one that is always there
		struct tables t = {0};
		struct regions r = {0};

		for (uint32_t i = 0; i <= n; i++)
			regions_add(&r, i ? ((address_key)i << 112) - ((address_key)1 << 64) : 0,
				    1 + i % 2);
		assert_int_equal(table6_build(&t, SIDE_SOURCE, &r, SEED), 0);
		assert_int_equal(t.constant[SIDE_CONSTANT(SIDE_SOURCE, T6_KIND)].value,
				 n < TABLE6_LEAF ? TABLE6_NODES : TABLE6_WIDE);
		assert_int_equal(t.constant[SIDE_CONSTANT(SIDE_SOURCE, T6_NODES_MASK)].value,
				 n < TABLE6_LEAF ? TABLE6_LEAF - 1 : 2 * TABLE6_LEAF - 1);
		tables_free(&t);
		check_free(r, &s);
	}
}

// Edges at multiples of 2^112 need no node; programs still find one.
static void test_no_node(void **state)
{
	struct regions r = {0};
	uint64_t s = 11;

	regions_add(&r, 0, 1);
	regions_add(&r, (address_key)0x2001 << 112, 2);
	regions_add(&r, (address_key)0x2002 << 112, 1);
	check_free(r, &s);
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

struct figures {
	double bytes;           // nodes of one prefix or host
	double present, absent; // loads per look-up
};

// Builds, prints and measures; absent addresses are random ones of the assigned ranges.
static struct figures measure(const char *what, size_t n, struct regions r, uint64_t *s)
{
	struct tables t = {0};
	struct figures f = {0};
	double start = cpu_ms(), took;
	size_t looked = 0;

	assert_int_equal(table6_build(&t, SIDE_DESTINATION, &r, SEED), 0);
	took = cpu_ms() - start;
	check_edges(&r, &t, s);
	f.bytes = (double)t.n / (double)n;
	loads = 0;
	for (size_t i = 1; i < r.n; i += 1 + unit_below(s, 1 + (unsigned)(r.n / 10000)), looked++)
		if (r.at[i].row != 1)
			row_of(&t, region_first(&r.at[i]));
		else
			looked--;
	f.present = (double)loads / (double)looked;
	loads = 0;
	for (int i = 0; i < 20000; i++)
		row_of(&t, assigned_key(s));
	f.absent = (double)loads / 20000;
	print_message("%s: %.0f ms, %.1f bytes for each, loads %.2f present, %.2f absent\n", what,
		      took, f.bytes, f.present, f.absent);
	tables_free(&t);
	vec_free(&r);
	return f;
}

static void test_sizes(void **state)
{
	uint64_t s = 7;
	struct figures f;

	f = measure("20,000 prefixes", 20000, set_regions(20000, length_mixed, 3, &s), &s);
	assert_true(f.present < 4.5 && f.absent < 3.5);
	f = measure("100,000 prefixes", 100000, set_regions(100000, length_mixed, 1, &s), &s);
	assert_true(f.bytes < 64 && f.present < 4.5 && f.absent < 3.5);
	f = measure("100,000 hosts", 100000, set_regions(100000, length_host, 1, &s), &s);
	assert_true(f.bytes < 50 && f.present < 1.1 && f.absent < 1.05);
	f = measure("many hosts", MANY, set_regions(MANY, length_host, 5, &s), &s);
	assert_true(f.bytes < (MANY == 1000000 ? 24 : 50) && f.present < 1.4 && f.absent < 1.05);
	f = measure("many prefixes", MANY, set_regions(MANY, length_mixed, 1, &s), &s);
	assert_true(f.bytes < 64);
	f = measure("many prefixes and hosts", MANY, set_regions(MANY, length_any, 70000, &s), &s);
	assert_true(f.bytes < 64);
}

static void test_no_room(void **state)
{
	uint64_t s = 8;
	struct regions r = set_regions(1000, length_any, 3, &s);
	struct table6_nodes nodes;
	struct tables t = {0};

	assert_int_equal(table6_nodes_build(&r, 100000, &nodes), -ENOSPC);
	assert_int_equal(table6_nodes_build(&r, 300000, &nodes), -ENOSPC);
	assert_int_equal(table6_nodes_build(&r, 1000000, &nodes), 0);
	table6_nodes_free(&nodes);
	tables_add(&t, TABLES_BYTES_MAX - 4096);
	assert_int_equal(table6_build(&t, SIDE_SOURCE, &r, SEED), -ENOSPC);
	vec_free(&r);
	r = set_regions(1000, length_host, 3, &s);
	assert_int_equal(table6_build(&t, SIDE_SOURCE, &r, SEED), -ENOSPC);
	vec_free(&r);
	tables_free(&t);
}

// Any bytes: nothing outside of the tables is read, which the sanitizers verify.
static void test_damage(void **state)
{
	uint64_t s = 9;

	for (int round = 0; round < ROUNDS; round++) {
		struct regions r = set_regions(200, round % 2 ? length_any : length_host,
					       round % 3 ? 3 : 1000, &s);
		struct tables t = {0};
		uint8_t *exact;

		assert_int_equal(table6_build(&t, SIDE_DESTINATION, &r, SEED), 0);
		exact = malloc(t.n);
		memcpy(exact, t.at, t.n);
		free(t.at);
		t.at = exact;
		for (size_t i = 0; i < t.n; i++)
			if (round % 5 == 0 || !unit_below(&s, 10))
				t.at[i] = (uint8_t)unit_random(&s);
		loads = 0;
		for (size_t i = 0; i < r.n; i++)
			row_of(&t, region_first(&r.at[i]));
		assert_true(loads <= r.n * (2 * TABLE6_STEPS + 3));
		tables_free(&t);
		vec_free(&r);
	}
}

// The same input gives the same bytes; another seed other lines and the same answers.
static void test_seed(void **state)
{
	uint64_t s = 10;
	struct regions r = set_regions(5000, length_host, 3, &s);
	struct tables t[3] = {0};

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(table6_build(&t[i], SIDE_DESTINATION, &r, i / 2), 0);
	assert_int_equal(t[0].n, t[1].n);
	assert_memory_equal(t[0].at, t[1].at, t[0].n);
	assert_true(t[2].n != t[0].n || memcmp(t[0].at, t[2].at, t[0].n));
	check_edges(&r, &t[0], &s);
	check_edges(&r, &t[2], &s);
	for (unsigned i = 0; i < 3; i++)
		tables_free(&t[i]);
	vec_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),   cmocka_unit_test(test_nested),
		cmocka_unit_test(test_clusters), cmocka_unit_test(test_ends),
		cmocka_unit_test(test_one_row),  cmocka_unit_test(test_no_node),
		cmocka_unit_test(test_kinds),    cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_no_room),  cmocka_unit_test(test_damage),
		cmocka_unit_test(test_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
