// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/lines.c, alone and as compile() uses it.
#include "tests/unit/table/random.h"

#include "ctl/table/lines.h"

static const struct compile_options options = {.seed = 42, .hz = 250};

static policy_row line_row(const struct table_arrays *t, int family, uint64_t seed, uint32_t first,
			   uint32_t count, address_key key)
{
	uint64_t hi = (uint64_t)(key >> 64), lo = (uint64_t)key;
	struct policy_line6 line6;

	if (family == 4) {
		uint32_t addr = (uint32_t)(hi >> 32);
		const struct policy_line4 *line =
			&t->lines.at[first + policy_line_of4(addr, seed, count)];

		for (int i = 0; i < POLICY_LINE4; i++)
			if (line->key[i] == addr && line->row[i])
				return line->row[i];
		return 0;
	}
	memcpy(&line6, &t->lines.at[first + policy_line_of6(hi, lo, seed, count)], sizeof(line6));
	for (int i = 0; i < POLICY_LINE6; i++)
		if (line6.key[i][0] == hi && line6.key[i][1] == lo && line6.row[i])
			return line6.row[i];
	return 0;
}

static policy_row region_row(const struct regions *r, address_key key)
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

// n hosts of random rows up to `rows`, far from one another, row 1 between them.
static struct regions scattered(int family, size_t n, policy_row rows, uint64_t *s)
{
	struct regions r = {0};
	address_key host = (address_key)1 << key_host_shift(family), at = 0;

	regions_add(&r, 0, 1);
	for (size_t i = 0; i < n; i++) {
		at += host * (LINES_RUN + 2 + unit_below(s, 1000));
		regions_add(&r, at, 2 + unit_below(s, rows - 1));
		regions_add(&r, at + host, 1);
	}
	return r;
}

// Each host is in a line or in the rest, with its row; nothing else is in the rest. Returns how many
// stayed in the rest.
static size_t check(const struct regions *r, int family, uint64_t seed)
{
	size_t hosts = lines_count(r, family), stayed = 0;
	struct table_arrays t = {0};
	struct regions rest;
	uint32_t first, count;

	vec_push(&t.lines, (struct policy_line4){0}); // lines of another side come first
	lines_build(r, family, hosts, seed, &t, &rest, &first, &count);
	assert_int_equal(first, 1);
	assert_int_equal(t.lines.n, 1 + count);
	for (size_t i = 0; i < r->n; i++) {
		address_key key = region_first(&r->at[i]);
		policy_row row = line_row(&t, family, seed, first, count, key);

		if (!lines_hosts(r, i, family)) {
			assert_int_equal(row, 0);
			assert_int_equal(region_row(&rest, key), r->at[i].row);
			continue;
		}
		stayed += !row;
		assert_int_equal(row ? row : region_row(&rest, key), r->at[i].row);
		assert_true(!row || region_row(&rest, key) == 1);
	}
	assert_int_equal(rest.n, 1 + 2 * stayed);
	vec_free(&rest);
	vec_free(&t.lines);
	return stayed;
}

static void test_load_and_overflow(void **state)
{
	(void)state;
	const size_t n = 50000;
	uint64_t s = 5;

	for (int family = 4; family <= 6; family += 2) {
		struct regions r = scattered(family, n, 60000, &s);
		size_t stayed = check(&r, family, 99);

		print_message("IPv%d: %zu of %zu hosts found no room in their line\n", family,
			      stayed, n);
		assert_true(stayed > 0 && stayed < n / 25);
		vec_free(&r);
	}
}

static void test_rows_of_more_than_16_bits(void **state)
{
	(void)state;
	uint64_t s = 6;
	struct regions r = {0};
	address_key host = key_of4(1);

	regions_add(&r, 0, 1);
	for (uint32_t i = 1; i <= 1000; i++) {
		regions_add(&r, key_of4(i * 100), i % 2 ? UINT16_MAX : UINT16_MAX + 1);
		regions_add(&r, key_of4(i * 100) + host, 1);
	}
	assert_in_range(check(&r, 4, 1), 500, 520);
	vec_free(&r);
	r = scattered(6, 100, 60000, &s);
	assert_in_range(check(&r, 6, 1), 0, 20);
	vec_free(&r);
}

static struct regions regions_of(const uint32_t (*edge)[2], size_t n)
{
	struct regions r = {0};

	for (size_t i = 0; i < n; i++)
		regions_add(&r, key_of4(edge[i][0]), edge[i][1]);
	return r;
}

// Runs of up to LINES_RUN are hosts, also at both ends of the address space; larger regions are not.
static void test_what_is_a_host(void **state)
{
	(void)state;
	static const uint32_t edge[][2] = {{0, 2},   {1, 1},   {100, 2},       {104, 1},
					   {200, 2}, {205, 1}, {0xfffffffe, 7}};
	static const unsigned hosts[] = {1, 0, 4, 0, 0, 0, 2};
	struct regions r = regions_of(edge, ARRAY_SIZE(edge)), rest;
	struct table_arrays t = {0};
	uint32_t first, count;

	for (size_t i = 0; i < r.n; i++)
		assert_int_equal(lines_hosts(&r, i, 4), hosts[i]);
	assert_int_equal(lines_count(&r, 4), 7);
	lines_build(&r, 4, 7, 3, &t, &rest, &first, &count);
	assert_int_equal(line_row(&t, 4, 3, first, count, 0), 2);
	assert_int_equal(line_row(&t, 4, 3, first, count, key_of4(103)), 2);
	assert_int_equal(line_row(&t, 4, 3, first, count, key_of4(0xffffffff)), 7);
	assert_true(region_first(&rest.at[0]) == 0);
	assert_int_equal(region_row(&rest, key_of4(50)), 1);
	assert_int_equal(region_row(&rest, key_of4(202)), 2);
	vec_free(&rest);
	vec_free(&r);
	r = (struct regions){0};
	regions_add(&r, 0, 5); // everything is one region and no host
	assert_int_equal(lines_count(&r, 4) + lines_count(&r, 6), 0);
	vec_free(&r);
	vec_free(&t.lines);
}

// Among prefixes up to LINES_FEW4 hosts stay in the trie; with one more, or where there are no prefixes, all
// are in lines.
static void test_few_hosts(void **state)
{
	(void)state;
	for (size_t k = 0; k < 4; k++) {
		bool prefix = k / 2;
		size_t n = LINES_FEW4 + k % 2;
		bool lines = !prefix || n > LINES_FEW4;
		struct resolved_addresses *a;
		struct image *i = NULL;
		struct made m;

		made_init(&m, 1, 1);
		a = made_addresses(&m, "hosts", n + prefix, 0);
		for (size_t h = 0; h < n; h++)
			((struct resolved_prefix4 *)a->v4)[h] =
				made_prefix4((uint32_t)(0x0a000000 + h * 16), 32, true);
		if (prefix)
			((struct resolved_prefix4 *)a->v4)[n] = made_prefix4(0x0b000000, 16, true);
		m.r.rules[0].to = made_set(0);
		assert_int_equal(compile(&m.r, &options, m.diag, &i), 0);
		assert_int_equal(i->config.side[FIELD_DESTINATION].lines4, lines);
		assert_int_equal(i->n_lines, lines ? 10 : 0);
		assert_int_equal(i->config.side[FIELD_DESTINATION].trie4, prefix);
		assert_int_equal(i->n_nodes > 0, !lines);
		assert_false(i->config.side[FIELD_DESTINATION].trie6);
		assert_false(i->config.use[FIELD_SOURCE]);
		image_free(i);
		made_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_and_overflow),
		cmocka_unit_test(test_rows_of_more_than_16_bits),
		cmocka_unit_test(test_what_is_a_host),
		cmocka_unit_test(test_few_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
