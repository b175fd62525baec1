// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/trie.c (through image_match) and walk.c, against a search in the regions.
#include "tests/unit/base/unit.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/table/image.h"
#include "ctl/table/trie.h"
#include "ctl/table/walk.h"

#define ROWS 64

// An image whose row r has the word r, so that a match tells the row.
struct found {
	struct image image;
	uint64_t rows[ROWS];
	struct table_arrays tables;
};

static void found_build(struct found *f, const struct regions *r, int family)
{
	struct policy_side *side = &f->image.config.side[FIELD_SOURCE];
	uint32_t direct;

	memset(f, 0, sizeof(*f));
	// Each array has something before the trie.
	vec_push(&f->tables.fields, 0);
	vec_push(&f->tables.nodes, (struct policy_node){0});
	direct = trie_build(r, family, &f->tables);
	*side = (struct policy_side){
		.trie4 = family == 4, .trie6 = family == 6, .direct4 = direct, .direct6 = direct};
	for (uint64_t n = 0; n < ROWS; n++)
		f->rows[n] = n;
	f->image.config.words = 1;
	f->image.config.use[FIELD_SOURCE] = 1;
	f->image.rows = f->rows;
	f->image.n_rows = ROWS;
	f->image.n_rules = 64;
	f->image.fields = f->tables.fields.at;
	f->image.n_fields = f->tables.fields.n;
	f->image.nodes = f->tables.nodes.at;
	f->image.n_nodes = f->tables.nodes.n;
}

static void found_free(struct found *f)
{
	vec_free(&f->tables.fields);
	vec_free(&f->tables.nodes);
}

static uint64_t trie_row(const struct found *f, int family, address_key key)
{
	struct image_packet p = {.family = (uint8_t)family};
	uint64_t word;

	for (int i = 0; i < 16; i++)
		p.source[i] = (uint8_t)(key >> (120 - 8 * i));
	assert_true(image_match(&f->image, &p, &word));
	return word;
}

static policy_row brute_row(const struct regions *r, address_key key)
{
	policy_row row = 0;

	for (size_t i = 0; i < r->n && region_first(&r->at[i]) <= key; i++)
		row = r->at[i].row;
	return row;
}

// Both sides of every edge of every region, and as many random addresses.
static void compare(const struct regions *r, int family, uint64_t *s)
{
	address_key host = (address_key)1 << key_host_shift(family);
	struct regions back = {0};
	struct found f;

	found_build(&f, r, family);
	for (size_t i = 0; i < r->n; i++) {
		address_key first = region_first(&r->at[i]);
		address_key any = key_of6(unit_random(s), unit_random(s)) & ~(host - 1);

		assert_int_equal(trie_row(&f, family, first), r->at[i].row);
		assert_int_equal(trie_row(&f, family, first - host), brute_row(r, first - host));
		assert_int_equal(trie_row(&f, family, first + host), brute_row(r, first + host));
		assert_int_equal(trie_row(&f, family, any), brute_row(r, any));
	}
	walk_side(&f.image, &f.image.config.side[FIELD_SOURCE], family, &back);
	assert_int_equal(back.n, r->n);
	for (size_t i = 0; i < r->n; i++) {
		assert_true(region_first(&back.at[i]) == region_first(&r->at[i]));
		assert_int_equal(back.at[i].row, r->at[i].row);
	}
	vec_free(&back);
	found_free(&f);
}

static int key_compare(const void *a, const void *b)
{
	const address_key *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

// Regions from the edges of n prefixes of the given lengths around few addresses.
static void random_regions(struct regions *r, int family, const uint8_t *lengths, size_t n_lengths,
			   size_t n, uint64_t *s)
{
	address_key *edge = calloc(2 * n + 1, sizeof(*edge));

	for (size_t i = 0; i < n; i++) {
		unsigned len = lengths[unit_below(s, (unsigned)n_lengths)];
		address_key size = len ? (address_key)1 << (128 - len) : 0;
		address_key at = key_of6(unit_random(s), unit_random(s));

		if (unit_below(s, 3)) // near others
			at = (at & (family == 4 ? (address_key)0xfff << 96 : 0xfff)) |
			     (address_key)0xc0a8 << 112;
		edge[2 * i] = at & (len ? ~(size - 1) : 0);
		edge[2 * i + 1] = edge[2 * i] + size;
	}
	qsort(edge, 2 * n + 1, sizeof(*edge), key_compare); // one is 0
	for (size_t i = 0; i <= 2 * n; i++)
		if (!i || edge[i] != edge[i - 1])
			regions_add(r, edge[i], 1 + unit_below(s, ROWS - 1));
	free(edge);
}

static void test_lengths(void **state)
{
	(void)state;
	static const uint8_t length4[] = {0, 1, 8, 15, 16, 17, 18, 19, 23, 24, 25, 29, 30, 31, 32};
	static const uint8_t length6[] = {0,  1,  15, 16, 17, 18,  19,  21,  22,  23,  32,  48,
					  63, 64, 65, 96, 99, 100, 123, 124, 125, 126, 127, 128};
	uint64_t s = 11;

	for (int round = 0; round < 60; round++) {
		struct regions r4 = {0}, r6 = {0};

		random_regions(&r4, 4, length4, sizeof(length4), 1 + unit_below(&s, 400), &s);
		compare(&r4, 4, &s);
		random_regions(&r6, 6, length6, sizeof(length6), 1 + unit_below(&s, 400), &s);
		compare(&r6, 6, &s);
		vec_free(&r4);
		vec_free(&r6);
	}
}

static void test_one_length(void **state)
{
	(void)state;
	uint64_t s = 12;

	for (uint8_t len = 0; len <= 128; len++) {
		struct regions r4 = {0}, r6 = {0};

		if (len <= 32) {
			random_regions(&r4, 4, &len, 1, 30, &s);
			compare(&r4, 4, &s);
		}
		random_regions(&r6, 6, &len, 1, 30, &s);
		compare(&r6, 6, &s);
		vec_free(&r4);
		vec_free(&r6);
	}
}

// First and last addresses of the whole space, alone.
static void test_ends(void **state)
{
	(void)state;
	uint64_t s = 13;

	for (int family = 4; family <= 6; family += 2) {
		address_key host = (address_key)1 << key_host_shift(family);
		struct regions r = {0};

		regions_add(&r, 0, 1);
		regions_add(&r, host, 2);
		regions_add(&r, -host, 3);
		compare(&r, family, &s);
		vec_free(&r);
	}
}

// Single addresses and edges that differ in the first bits only: the last stride must not shift them out.
static void test_far_apart(void **state)
{
	(void)state;
	uint64_t s = 14;

	for (int family = 4; family <= 6; family += 2) {
		address_key host = (address_key)1 << key_host_shift(family);

		for (unsigned mask = 2; mask < 256; mask += 2) {
			struct regions r = {0};

			regions_add(&r, 0, 1);
			for (unsigned bit = 1; bit < 8; bit++) {
				address_key quarter = (address_key)(bit / 2) << 126;

				if (mask >> bit & 1)
					regions_add(&r, quarter + bit % 2 * host, 1 + bit);
			}
			compare(&r, family, &s);
			vec_free(&r);
		}
	}
}

// All 65,536 single addresses of a /16 differ from their neighbours.
static void test_full_nodes(void **state)
{
	(void)state;
	struct regions r = {0};
	struct found f;

	for (uint32_t i = 0; i < 65536; i++)
		regions_add(&r, i ? key_of4(0x0a000000 + i) : 0, 1 + i % 61);
	found_build(&f, &r, 4);
	for (uint32_t i = 0; i < 65536; i++)
		assert_int_equal(trie_row(&f, 4, key_of4(0x0a000000 + i)), 1 + i % 61);
	found_free(&f);
	vec_free(&r);
}

// A /24 ends in one node.
static void test_size(void **state)
{
	(void)state;
	struct regions r = {0};
	struct found f;

	regions_add(&r, 0, 1);
	regions_add(&r, key_of4(0xc0000200), 2);
	regions_add(&r, key_of4(0xc0000300), 1);
	found_build(&f, &r, 4);
	assert_int_equal(f.image.n_nodes, 1 + 1);
	assert_int_equal(f.image.n_fields, 1 + (1 << POLICY_DIRECT4_BITS) + 3);
	found_free(&f);
	vec_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lengths),    cmocka_unit_test(test_one_length),
		cmocka_unit_test(test_ends),       cmocka_unit_test(test_far_apart),
		cmocka_unit_test(test_full_nodes), cmocka_unit_test(test_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
