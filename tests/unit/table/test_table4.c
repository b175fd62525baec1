// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/table4*.c through common/table4.h, against a search in the regions.
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl/table/tables.h"

// Counts the accesses of a look-up.
static unsigned loads;
#undef TABLE_AT
#define TABLE_AT(v, name) (loads++, (const uint8_t *)(v)->at + (v)->constant[name].value)

#include "ctl/table/table4.h"
#include "ctl/table/table4_parts.h"

#ifdef __SANITIZE_ADDRESS__
#define MANY   100000 // the same code, and the run stays short
#define ROUNDS 8
#else
#define MANY   1000000
#define ROUNDS 24
#endif

#define SIDE SIDE_DESTINATION // not the first
#define SEED 0xfeedfacecafebeefull

// ---- regions ------------------------------------------------------------------------------------

static uint32_t first_of(const struct regions *r, size_t i)
{
	return (uint32_t)(r->at[i].hi >> 32);
}

static policy_row region_row(const struct regions *r, uint32_t addr)
{
	size_t low = 0, high = r->n;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (first_of(r, middle) <= addr)
			low = middle;
		else
			high = middle;
	}
	return r->at[low].row;
}

struct edge {
	uint64_t at;
	bool begins;
	unsigned set;
};

static int edge_compare(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

// Ranges of up to 16 sets, which may overlap.
struct ranges {
	struct edge *at;
	size_t n, cap;
};

static void add_range(struct ranges *l, uint64_t first, uint64_t size, unsigned set)
{
	vec_push(l, ((struct edge){first, true, set}));
	vec_push(l, ((struct edge){first + size, false, set}));
}

static void add_prefix(struct ranges *l, uint32_t addr, unsigned len, unsigned set)
{
	uint64_t size = 1ull << (32 - len);

	add_range(l, addr & ~(size - 1), size, set);
}

// The row: 1 and a bit for each set that has the address. Empties the list.
static struct regions regions_of(struct ranges *l)
{
	unsigned members[16] = {0}, row = 1;
	struct regions r = {0};

	if (l->n)
		qsort(l->at, l->n, sizeof(*l->at), edge_compare);
	for (size_t i = 0; i < l->n; i++) {
		const struct edge *e = &l->at[i];

		if (!i && e->at)
			regions_add(&r, 0, row);
		members[e->set] += e->begins ? 1 : -1u;
		row = (row & ~(2u << e->set)) | (members[e->set] ? 2u << e->set : 0);
		if (e->at >> 32)
			break;
		if (i + 1 == l->n || l->at[i + 1].at != e->at)
			regions_add(&r, key_of4((uint32_t)e->at), row);
	}
	if (!r.n)
		regions_add(&r, 0, row);
	vec_free(l);
	return r;
}

// ---- tables -------------------------------------------------------------------------------------

static uint64_t number_of(const struct tables *t, int name)
{
	return t->constant[SIDE_CONSTANT(SIDE, name)].value;
}

static uint32_t row_of(const struct tables *t, uint32_t addr)
{
	return (uint32_t)table4_row(t, SIDE, addr, false);
}

static void assert_row(const struct tables *t, const struct regions *r, uint32_t addr)
{
	uint32_t row = row_of(t, addr);

	if (row != region_row(r, addr))
		fail_msg("kind %u, lines %u: %08x has row %u instead of %u",
			 (unsigned)number_of(t, T4_KIND), (unsigned)number_of(t, H4_KIND), addr,
			 row, region_row(r, addr));
}

// Around every edge, as many addresses near it, and anywhere.
static void assert_rows(const struct tables *t, const struct regions *r, uint64_t *s)
{
	assert_row(t, r, 0);
	assert_row(t, r, UINT32_MAX);
	for (size_t i = 0; i < r->n; i++) {
		uint32_t first = first_of(r, i);

		assert_row(t, r, first - 1);
		assert_row(t, r, first);
		assert_row(t, r, first + 1);
		assert_row(t, r, first ^ (1u << unit_below(s, 32)));
		assert_row(t, r, (first & ~0xffffu) | (uint16_t)unit_random(s));
		assert_row(t, r, (uint32_t)unit_random(s));
	}
}

static struct tables chosen(const struct regions *r)
{
	struct tables t = {0};

	tables_add(&t, 1); // tables of another side come first
	assert_int_equal(table4_build(&t, SIDE, r, SEED), 0);
	return t;
}

// Random bytes, all or one in 64: any answer, and no access outside, which the sanitizers would
// report.
static void assert_contained(const struct tables *t, uint64_t *s)
{
	struct tables damaged = *t;

	damaged.at = malloc(t->n);
	memcpy(damaged.at, t->at, t->n);
	for (size_t i = 0; i < t->n; i += 1 + unit_below(s, 127))
		damaged.at[i] = (uint8_t)unit_random(s);
	for (unsigned i = 0; i < 2000; i++)
		assert_true(row_of(&damaged, (uint32_t)unit_random(s)) <= INT32_MAX);
	for (size_t i = 0; i + 8 <= t->n; i += 8)
		memcpy(damaged.at + i, &(uint64_t){unit_random(s)}, 8);
	for (unsigned i = 0; i < 2000; i++)
		assert_true(row_of(&damaged, (uint32_t)unit_random(s)) <= INT32_MAX);
	free(damaged.at);
}

static void set_kind(struct tables *t, enum table4_kind kind)
{
	tables_number(t, SIDE_CONSTANT(SIDE, H4_KIND), HOSTS4_NONE);
	tables_number(t, SIDE_CONSTANT(SIDE, T4_KIND), kind);
}

static struct spans4 spans_of(const struct regions *r)
{
	struct spans4 s = {0};

	for (size_t i = 0; i < r->n; i++)
		spans4_add(&s, first_of(r, i), r->at[i].row);
	return s;
}

static void with_ranges(const struct regions *r, enum table4_kind kind, bool damage, uint64_t *s)
{
	struct spans4 spans = spans_of(r);
	struct plan4 plan = ranges4_plan(&spans, kind);
	struct tables t = {0};

	if (plan.kind) {
		set_kind(&t, kind);
		ranges4_build(&spans, &plan, &t, SIDE);
		assert_in_range(t.n, plan.bytes, plan.bytes + (size_t)2 * TABLE_ALIGN);
		assert_rows(&t, r, s);
		if (damage)
			assert_contained(&t, s);
	}
	vec_free(&spans);
	tables_free(&t);
}

static void with_bits(const struct regions *r, bool damage, uint64_t *s)
{
	struct spans4 spans = spans_of(r);
	struct plan4 plan = bits4_plan(&spans);
	struct tables t = {0};

	if (plan.kind) {
		set_kind(&t, T4_BITS);
		bits4_build(&spans, &plan, &t, SIDE);
		assert_in_range(t.n, plan.bytes, plan.bytes + (size_t)2 * TABLE_ALIGN);
		assert_rows(&t, r, s);
		if (damage)
			assert_contained(&t, s);
	}
	vec_free(&spans);
	tables_free(&t);
}

// Lines, whether they pay or not, above T4_WIDE, which holds whatever is left.
static void with_lines(const struct regions *r, bool damage, uint64_t *s)
{
	struct spans4 spans = spans_of(r), under = {0};
	struct tables t = {0};
	struct hosts4 hosts;
	struct plan4 plan;

	hosts4_find(&spans, &hosts);
	if (hosts.list.n) {
		hosts4_build(&hosts, SEED, &t, SIDE, &under);
		assert_in_range(t.n, hosts4_bytes(&hosts), hosts4_bytes(&hosts));
		plan = ranges4_plan(&under, T4_WIDE);
		tables_number(&t, SIDE_CONSTANT(SIDE, T4_KIND), T4_WIDE);
		ranges4_build(&under, &plan, &t, SIDE);
		assert_rows(&t, r, s);
		if (damage)
			assert_contained(&t, s);
	}
	hosts4_free(&hosts);
	vec_free(&spans);
	vec_free(&under);
	tables_free(&t);
}

// Every kind that can hold the regions, and the one that is chosen. Frees the regions.
static void check(struct regions *r, bool damage, uint64_t *s)
{
	struct tables t = chosen(r);

	assert_rows(&t, r, s);
	if (damage)
		assert_contained(&t, s);
	with_ranges(r, T4_RANGES, damage, s);
	with_ranges(r, T4_LONG, damage, s);
	with_ranges(r, T4_WIDE, damage, s);
	with_bits(r, damage, s);
	with_lines(r, damage, s);
	tables_free(&t);
	vec_free(r);
}

// ---- shapes -------------------------------------------------------------------------------------

// Where the ranges of a set are.
static uint32_t random_addr(uint64_t *s, unsigned near)
{
	uint32_t any = (uint32_t)unit_random(s);

	return near ? (0xc0a80000 & ~0u << (32 - near)) | (any >> near) : any;
}

// Prefixes of the lengths min … max in `sets` sets.
static struct regions prefixes(uint64_t *s, size_t n, unsigned min, unsigned max, unsigned near,
			       unsigned sets)
{
	struct ranges l = {0};

	for (size_t i = 0; i < n; i++)
		add_prefix(&l, random_addr(s, near), min + unit_below(s, max - min + 1),
			   unit_below(s, sets));
	return regions_of(&l);
}

// Runs of up to `longest` addresses.
static struct regions runs(uint64_t *s, size_t n, unsigned longest, unsigned near, unsigned sets)
{
	struct ranges l = {0};

	for (size_t i = 0; i < n; i++)
		add_range(&l, random_addr(s, near), 1 + unit_below(s, longest),
			  unit_below(s, sets));
	return regions_of(&l);
}

// `rows` rows and more, of which few are frequent; any distance between two edges.
static struct regions scattered(uint64_t *s, size_t n, policy_row lowest, unsigned rows)
{
	struct regions r = {0};
	uint64_t at = 0;

	for (size_t i = 0; i < n && at <= UINT32_MAX; i++) {
		regions_add(&r, key_of4((uint32_t)at),
			    lowest + unit_below(s, unit_below(s, 2) ? rows : 3));
		at += 1 + (unit_random(s) >> (40 + unit_below(s, 24)));
	}
	return r;
}

static void test_shapes(void **state)
{
	uint64_t s = 1;

	for (int round = 0; round < ROUNDS; round++) {
		bool damage = round % 4 == 0;
		unsigned n = 1 + unit_below(&s, 300), sets = 1 + unit_below(&s, 4);
		struct regions r[] = {
			prefixes(&s, n, 8, 32, 0, sets),
			prefixes(&s, n, 24, 24, 16 * unit_below(&s, 2), 1),
			prefixes(&s, n, 1, 32, 16, sets),
			prefixes(&s, n / 8, 0, 32, 24, sets),
			runs(&s, n, 6, 24, sets),
			runs(&s, n, 4, 0, 1),
			runs(&s, n, 200, 16, sets),
			scattered(&s, n, 1, 300),
			scattered(&s, n, 32700, 100),
			scattered(&s, n, INT32_MAX - 4, 5),
		};

		for (size_t i = 0; i < sizeof(r) / sizeof(r[0]); i++)
			check(&r[i], damage, &s);
	}
}

// One region to three, also at both ends.
static void test_few(void **state)
{
	static const uint64_t edges[] = {0,          1,          0x0a000000, 0x0a000001,
					 0x0b000000, 0xfffffffe, 0xffffffff, 1ull << 32};
	uint64_t s = 2;

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		for (size_t k = i + 1; k < sizeof(edges) / sizeof(edges[0]); k++) {
			struct ranges l = {0};
			struct regions r;
			struct tables t;

			add_range(&l, edges[i], edges[k] - edges[i], 0);
			r = regions_of(&l);
			t = chosen(&r);
			assert_int_equal(number_of(&t, T4_KIND), r.n == 1 ? T4_ALL : T4_ONE);
			assert_int_equal(number_of(&t, H4_KIND), HOSTS4_NONE);
			assert_int_equal(t.n, 1);
			tables_free(&t);
			check(&r, false, &s);
		}
	}
}

// Three regions with three rows are not T4_ONE.
static void test_three_rows(void **state)
{
	uint64_t s = 3;
	struct regions r = {0};

	regions_add(&r, 0, 1);
	regions_add(&r, key_of4(0x0a000000), 2);
	regions_add(&r, key_of4(0x0b000000), 3);
	check(&r, true, &s);
}

// Each address of a /16 has another row than its neighbours: of few rows, 300, and 70,000.
static void test_full_slot(void **state)
{
	static const unsigned rows[] = {2, 3, 300, 70000};
	uint64_t s = 4;

	for (size_t k = 0; k < 4; k++) {
		struct regions r = {0};

		regions_add(&r, 0, 1);
		for (uint32_t i = 0; i < 65536; i++)
			regions_add(&r, key_of4(0x0a000000 + i), 1 + (i + 1) % rows[k]);
		regions_add(&r, key_of4(0x0a010000), 1);
		check(&r, false, &s);
	}
}

static void test_70000_rows(void **state)
{
	uint64_t s = 5;

	for (uint32_t step = 1; step <= 60000; step = step * 7 + 3) {
		struct regions r = {0};
		struct tables t;

		for (uint32_t i = 0; i < 70000; i++)
			regions_add(&r, key_of4(i * step), 1 + i);
		t = chosen(&r);
		assert_int_equal(number_of(&t, T4_KIND), T4_WIDE);
		tables_free(&t);
		check(&r, false, &s);
	}
}

// ---- hosts --------------------------------------------------------------------------------------

// If there are only hosts, they are in buckets, however few or many; addresses between them have
// the row of all others.
static void test_only_hosts(void **state)
{
	uint64_t s = 6;

	for (uint32_t n = 3; n <= 30000; n *= 100) {
		struct ranges l = {0};
		struct regions r;
		struct tables t;

		for (uint32_t i = 0; i < n; i++)
			add_range(&l, 0xc0000201 + 2 * i * (n / 3), 1, 0);
		r = regions_of(&l);
		t = chosen(&r);
		assert_int_equal(number_of(&t, H4_KIND), HOSTS4_ONE);
		assert_int_equal(number_of(&t, H4_NONE), 1);
		if (n == 3) {
			assert_int_equal(number_of(&t, T4_KIND), T4_ALL);
			assert_int_equal(t.n, 64 + 64);
		}
		tables_free(&t);
		check(&r, n == 3, &s);
	}
}

// Hosts in a prefix and outside: no single row is around them.
static void test_hosts_and_prefix(void **state)
{
	uint64_t s = 7;
	struct ranges l = {0};
	struct regions r;
	struct tables t;

	add_prefix(&l, 0x0a000000, 8, 0);
	for (uint32_t i = 0; i < 1000; i++)
		add_range(&l, (uint32_t)unit_random(&s), 1, 1);
	for (uint32_t i = 0; i < 1000; i++)
		add_range(&l, 0x0a000000 | (uint32_t)(unit_random(&s) >> 40), 1, 1);
	r = regions_of(&l);
	t = chosen(&r);
	assert_int_equal(number_of(&t, H4_KIND), HOSTS4_ROWS);
	assert_int_equal(number_of(&t, H4_NONE), 0);
	assert_int_equal(number_of(&t, T4_KIND), T4_RANGES); // some host had no place
	tables_free(&t);
	check(&r, true, &s);
}

// Hosts whose rows do not fit into a line stay in the table.
static void test_hosts_of_large_rows(void **state)
{
	uint64_t s = 8;
	struct regions r = {0};
	struct tables t;

	regions_add(&r, 0, 1);
	for (uint32_t i = 1; i <= 20000; i++) {
		regions_add(&r, key_of4(i * 100), UINT16_MAX + i % 2);
		regions_add(&r, key_of4(i * 100 + 1), 1);
	}
	t = chosen(&r);
	assert_int_equal(number_of(&t, T4_KIND), T4_WIDE);
	tables_free(&t);
	check(&r, false, &s);
}

// Some hosts have no place, also neighbours: they are under the lines, in spans like all others.
static void test_seeds(void **state)
{
	uint64_t s = 9;

	for (unsigned seed = 0; seed < 20; seed++) {
		struct regions r = runs(&s, 3000, 1 + seed % 4, 16 * (seed % 2), 1 + seed % 3);
		struct spans4 spans = spans_of(&r), under = {0};
		struct tables t = {0};
		struct hosts4 hosts;

		hosts4_find(&spans, &hosts);
		hosts4_build(&hosts, seed, &t, SIDE, &under);
		assert_true(under.n > 1);
		assert_int_equal(under.at[0].first, 0);
		for (size_t i = 1; i < under.n; i++) {
			assert_true(under.at[i].first > under.at[i - 1].first);
			assert_true(under.at[i].row != under.at[i - 1].row);
		}
		vec_free(&spans);
		vec_free(&under);
		hosts4_free(&hosts);
		tables_free(&t);
		check(&r, false, &s);
	}
}

// ---- size and speed -----------------------------------------------------------------------------

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// Unicast addresses that a list may contain.
static uint32_t listed_addr(uint64_t *s)
{
	return (1 + unit_below(s, 222)) << 24 | (uint32_t)(unit_random(s) >> 40);
}

// As in lists: half are /24.
static unsigned listed_len(uint64_t *s)
{
	static const uint8_t lens[] = {20, 22, 22, 23, 24, 24, 24, 24,
				       24, 24, 25, 26, 27, 28, 30, 31};

	return lens[unit_below(s, sizeof(lens))];
}

// An address outside of all sets, or inside of one.
static uint32_t measured_addr(const struct regions *r, bool present, uint64_t *s)
{
	for (;;) {
		size_t i = unit_below(s, (unsigned)r->n);
		uint32_t addr = present ? first_of(r, i) : listed_addr(s);

		if ((region_row(r, addr) != 1) == present)
			return addr;
	}
}

// Accesses on average: outside, inside.
static void measure_loads(const struct tables *t, const struct regions *r, uint64_t *s,
			  double ret_mean[2])
{
	const int n = 50000;

	for (int present = 0; present < 2; present++) {
		loads = 0;
		for (int i = 0; i < n; i++)
			assert_true(row_of(t, measured_addr(r, present, s)));
		ret_mean[present] = (double)loads / n;
	}
}

struct bound {
	const char *what;
	size_t n; // of each set
	unsigned sets;
	bool mixed; // lengths; else /24
	enum table4_kind kind;
	double kb, absent, present; // at most
};

static const struct bound bounds[] = {
	{"10,000 /24", 10000, 1, false, T4_RANGES, 210, 1.3, 2.3},
	{"10,000 prefixes", 10000, 1, true, T4_RANGES, 210, 1.3, 2.3},
	{"2 x 10,000 prefixes", 10000, 2, true, T4_RANGES, 300, 1.6, 2.5},
	{"100,000 prefixes", 100000, 1, true, T4_BITS, 6500, 1.1, 2.1},
	{"2 x 100,000 prefixes", 100000, 2, true, T4_LONG, 6000, 1.5, 2.5},
	{"many prefixes", MANY, 1, true, T4_BITS, 16000, 1.3, 2.1},
	{"2 x many prefixes", MANY, 2, true, T4_LONG, 20000, 3.5, 3.5},
};

static void test_depth(void **state)
{
	uint64_t s = 10;

	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		const struct bound *b = &bounds[i];
		struct ranges l = {0};
		struct regions r;
		struct tables t;
		double mean[2], kb, ms;

		for (size_t k = 0; k < b->n * b->sets; k++)
			add_prefix(&l, listed_addr(&s), b->mixed ? listed_len(&s) : 24,
				   (unsigned)(k % b->sets));
		r = regions_of(&l);
		ms = cpu_ms();
		t = chosen(&r);
		ms = cpu_ms() - ms;
		kb = (double)t.n / 1024;
		measure_loads(&t, &r, &s, mean);
		print_message("%s: %.0f KB, accesses %.2f outside, %.2f inside, built in %.0f ms\n",
			      b->what, kb, mean[0], mean[1], ms);
		assert_int_equal(number_of(&t, T4_KIND), b->kind);
		assert_int_equal(number_of(&t, H4_KIND), HOSTS4_NONE);
		assert_true(kb <= b->kb && mean[0] <= b->absent && mean[1] <= b->present);
		tables_free(&t);
		vec_free(&r);
	}
}

// A million hosts, of one row or of many: under 12 bytes each, one access.
static void test_many_hosts(void **state)
{
	uint64_t s = 11;

	for (unsigned sets = 1; sets <= 12; sets += 11) {
		struct ranges l = {0};
		struct regions r;
		struct tables t;
		double mean[2], ms;

		for (size_t i = 0; i < MANY; i++)
			add_range(&l, listed_addr(&s), 1, unit_below(&s, sets));
		r = regions_of(&l);
		ms = cpu_ms();
		t = chosen(&r);
		ms = cpu_ms() - ms;
		measure_loads(&t, &r, &s, mean);
		print_message("%d hosts, %u sets: %.1f bytes each, accesses %.2f outside, %.2f "
			      "inside, built in %.0f ms\n",
			      MANY, sets, (double)t.n / MANY, mean[0], mean[1], ms);
		assert_int_equal(number_of(&t, H4_KIND), sets == 1 ? HOSTS4_ONE : HOSTS4_ROWS);
		assert_int_equal(number_of(&t, H4_NONE), 1);
		assert_true(t.n <= 12u * MANY + (128u << 10));
		assert_true(mean[0] < 1.1 && mean[1] < 1.1);
		assert_rows(&t, &r, &s);
		tables_free(&t);
		vec_free(&r);
	}
}

static void test_same_again(void **state)
{
	uint64_t s = 12;
	struct regions r = runs(&s, 5000, 1, 0, 2);
	struct tables a = chosen(&r), b = chosen(&r);

	assert_int_equal(a.n, b.n);
	assert_memory_equal(a.at, b.at, a.n);
	assert_memory_equal(a.constant, b.constant, sizeof(a.constant));
	tables_free(&a);
	tables_free(&b);
	vec_free(&r);
}

static void test_too_large(void **state)
{
	uint64_t s = 13;
	struct regions r = prefixes(&s, 100, 8, 32, 0, 1), hosts = runs(&s, 100, 1, 0, 1);
	struct tables t = {.n = TABLES_BYTES_MAX - 100}; // as if others had taken the rest

	assert_int_equal(table4_build(&t, SIDE, &r, SEED), -ENOSPC);
	assert_int_equal(table4_build(&t, SIDE, &hosts, SEED), -ENOSPC);
	assert_null(t.at);
	vec_free(&r);
	vec_free(&hosts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_three_rows),
		cmocka_unit_test(test_full_slot),
		cmocka_unit_test(test_70000_rows),
		cmocka_unit_test(test_only_hosts),
		cmocka_unit_test(test_hosts_and_prefix),
		cmocka_unit_test(test_hosts_of_large_rows),
		cmocka_unit_test(test_seeds),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_many_hosts),
		cmocka_unit_test(test_same_again),
		cmocka_unit_test(test_too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
