// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/rates.h: counters that begin again, are new, or go.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/control/rates.h"

#define S 1000000000ull

static void assert_counter(struct counter c, uint64_t packets, uint64_t bytes)
{
	assert_int_equal(c.packets, packets);
	assert_int_equal(c.bytes, bytes);
}

static void test_rate(void **state)
{
	assert_true(rates_of(10, S) == 10.0);
	assert_true(rates_of(10, 4 * S) == 2.5);
	assert_true(rates_of(1, S / 10) == 10.0);
	assert_true(rates_of(7, 0) == 0.0);
}

static void test_moved(void **state)
{
	struct counter few = {5, 500}, many = {9, 900};

	assert_counter(rates_moved(&few, &many), 4, 400);
	assert_counter(rates_moved(&many, &few), 5, 500);                            // began again
	assert_counter(rates_moved(&(struct counter){5, 900}, &few), 5, 500);        // one of both
	assert_counter(rates_moved(&(struct counter){UINT64_MAX, 8}, &few), 5, 500); // wrapped
	assert_counter(rates_moved(&few, &few), 0, 0);
}

// The first count of a row may be years old.
static void test_first_count(void **state)
{
	struct rates_list l = {0};
	struct rates_row *row = rates_add(&l, "eth0", "default", "pass", 1);

	rates_at(&l, 100 * S);
	rates_count(row, &(struct counter){1000000, 64000000});
	assert_int_equal(l.span_ns, 0);
	assert_counter(row->moved, 0, 0);
	rates_at(&l, 104 * S);
	rates_count(row, &(struct counter){1000040, 64002560});
	assert_int_equal(l.span_ns, 4 * S);
	assert_counter(row->moved, 40, 2560);
	rates_at(&l, 103 * S); // never by a monotonic clock; no time instead of much
	assert_int_equal(l.span_ns, 0);
	rates_free(&l);
}

// Another generation: rules keep their counts in any order and place, new ones have none yet.
static void test_inherit(void **state)
{
	struct rates_list old = {0}, fresh = {0};

	rates_at(&old, 10 * S);
	rates_count(rates_add(&old, "ssh", "a:1", "pass", 0), &(struct counter){10, 100});
	rates_count(rates_add(&old, "web", "a:2", "pass", 0), &(struct counter){20, 200});
	rates_count(rates_add(&old, "web", "a:2", "pass", 7), &(struct counter){70, 700});
	rates_add(&fresh, "web", "a:4", "pass", 7);
	rates_add(&fresh, "new", "a:3", "drop", 0);
	rates_add(&fresh, "ssh", "a:2", "drop", 0);
	rates_inherit(&fresh, &old, RATES_RULES);
	rates_at(&fresh, 11 * S);
	assert_int_equal(fresh.span_ns, S);
	rates_count(&fresh.at[0], &(struct counter){71, 710});
	rates_count(&fresh.at[1], &(struct counter){5000, 5000});
	rates_count(&fresh.at[2], &(struct counter){3, 30});
	assert_counter(fresh.at[0].moved, 1, 10);
	assert_counter(fresh.at[1].moved, 0, 0);
	assert_counter(fresh.at[2].moved, 3, 30);
	rates_free(&old);
	rates_free(&fresh);
}

// The reason is part of the name of an interface.
static void test_inherit_names(void **state)
{
	struct rates_list old = {0}, fresh = {0};

	rates_count(rates_add(&old, "eth0", "default", "pass", 1), &(struct counter){10, 100});
	rates_add(&fresh, "eth0", "martian", "drop", 1);
	rates_add(&fresh, "eth0", "default", "pass", 1);
	rates_inherit(&fresh, &old, RATES_INTERFACES);
	assert_false(fresh.at[0].known);
	assert_counter(fresh.at[1].now, 10, 100);
	rates_free(&old);
	rates_free(&fresh);
}

// The text of a rule can have 64 KiB.
static void test_long_label(void **state)
{
	char longest[RATES_LABEL_MAX + 1], text[1000];
	struct rates_list l = {0};

	memset(longest, 'a', RATES_LABEL_MAX);
	longest[RATES_LABEL_MAX] = '\0';
	rates_add(&l, longest, NULL, NULL, 0);
	assert_string_equal(l.at[0].labels[0], longest);
	memset(text, 'a', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	rates_add(&l, text, text, NULL, 0);
	assert_int_equal(strlen(l.at[1].labels[1]), RATES_LABEL_MAX);
	assert_string_equal(l.at[1].labels[0] + RATES_LABEL_MAX - 5, "aa...");
	rates_free(&l);
}

static void test_sum(void **state)
{
	struct rates_list l = {0}, sums = {0};

	rates_add(&sums, "web", NULL, NULL, 0);
	for (uint64_t n = 0; n < 2; n++)
		rates_add(&l, "web", n ? "b" : "a", NULL, n);
	for (uint64_t turn = 1; turn < 3; turn++) {
		rates_clear(&sums);
		for (size_t n = 0; n < 2; n++) {
			rates_count(&l.at[n], &(struct counter){turn * 3, turn * 30});
			rates_sum(&sums.at[0], &l.at[n]);
		}
	}
	assert_counter(sums.at[0].now, 12, 120);
	assert_counter(sums.at[0].moved, 6, 60);
	rates_free(&l);
	rates_free(&sums);
}

// ---- entries ------------------------------------------------------------------------------------

static struct prefix host(uint32_t n)
{
	struct addr a = addr_from_v4(__builtin_bswap32(n));

	return prefix_of(&a, 32);
}

static struct counter next(struct rates_entries *e, uint32_t n, uint8_t kind, uint64_t packets)
{
	struct prefix p = host(n);

	return rates_entries_next(e, &p, kind, &(struct counter){packets, packets * 10});
}

static void test_entries(void **state)
{
	struct rates_entries e = {0};

	rates_entries_begin(&e);
	assert_counter(next(&e, 1, 0, 100), 0, 0);
	assert_counter(next(&e, 2, 0, 0), 0, 0);
	assert_counter(next(&e, 4, 1, 400), 0, 0);
	rates_entries_end(&e);
	rates_entries_begin(&e);
	assert_counter(next(&e, 0, 0, 5), 5, 50); // new
	assert_counter(next(&e, 1, 0, 101), 1, 10);
	assert_counter(next(&e, 2, 0, 7), 7, 70); // quiet until then
	assert_counter(next(&e, 4, 0, 3), 3, 30); // another kind
	rates_entries_end(&e);
	rates_entries_begin(&e);
	assert_counter(next(&e, 0, 0, 5), 0, 0); // others are gone
	rates_entries_end(&e);
	rates_entries_free(&e);
}

// Counters that a change moves are zero for a moment, and what they have counted is no rate later.
static void test_moved_entries(void **state)
{
	static const uint64_t read[] = {1000000, 0, 1000007, 3, 1000009};
	static const uint64_t rates[] = {0, 0, 7, 0, 2};
	struct rates_entries e = {0};

	for (size_t n = 0; n < ARRAY_SIZE(read); n++) {
		rates_entries_begin(&e);
		assert_counter(next(&e, 1, 0, read[n]), rates[n], rates[n] * 10);
		rates_entries_end(&e);
	}
	rates_entries_free(&e);
}

// An entry that was removed and added again has begun again.
static void test_entry_begins_again(void **state)
{
	static const uint64_t read[] = {400, 2, 5, 9, 0, 0, 3};
	static const uint64_t rates[] = {0, 0, 5, 4, 0, 0, 3};
	struct rates_entries e = {0};

	for (size_t n = 0; n < ARRAY_SIZE(read); n++) {
		rates_entries_begin(&e);
		assert_counter(next(&e, 1, 0, read[n]), rates[n], rates[n] * 10);
		rates_entries_end(&e);
	}
	rates_entries_free(&e);
}

// A first walk without a packet is a reading too. One that has failed is not: the reading before it
// is still known.
static void test_walks(void **state)
{
	struct rates_entries e = {0};

	rates_entries_begin(&e);
	next(&e, 1, 0, 0);
	rates_entries_end(&e);
	rates_entries_begin(&e);
	assert_counter(next(&e, 1, 0, 9), 9, 90);
	rates_entries_begin(&e);
	assert_counter(next(&e, 1, 0, 900), 900, 9000);
	rates_entries_end(&e);
	rates_entries_begin(&e);
	assert_counter(next(&e, 1, 0, 901), 1, 10);
	rates_entries_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rate),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_first_count),
		cmocka_unit_test(test_inherit),
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_walks),
		cmocka_unit_test(test_inherit_names),
		cmocka_unit_test(test_long_label),
		cmocka_unit_test(test_moved_entries),
		cmocka_unit_test(test_entry_begins_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
