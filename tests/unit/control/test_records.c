// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/entries/records.h: each operation by example.
#include "tests/unit/base/unit.h"

#include <stdio.h>
#include <string.h>

#include "ctl/base/text.h"
#include "ctl/control/entries/records.h"

#define FROM (1u << OVERLAY_BLOCK_FROM)
#define TO   (1u << OVERLAY_BLOCK_TO)
#define ALL  ((1u << OVERLAY_KINDS) - 1)

static struct prefix prefix(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse_quiet(text, strlen(text), &p, NULL), 0);
	return p;
}

static struct owner named(char *origin, char *list, char *name)
{
	return (struct owner){.origin = origin, .list = list, .name = name, .by = (char *)"root"};
}

static uint32_t add_owner(struct records *r, const char *origin, const char *list, const char *name)
{
	struct owner h = named((char *)origin, (char *)list, (char *)name);

	return records_owner(r, &h);
}

static struct records_change add(struct records *r, const char *what, uint8_t kind, uint32_t owner,
				 uint64_t until_s)
{
	struct reference reference = {prefix(what), kind, owner, until_s};
	struct records_change change;

	records_add(r, &reference, 1, &change);
	return change;
}

static void assert_change(struct records_change change, size_t added, size_t extended,
			  size_t unchanged, size_t shortened, size_t removed)
{
	assert_int_equal(change.added, added);
	assert_int_equal(change.extended, extended);
	assert_int_equal(change.unchanged, unchanged);
	assert_int_equal(change.shortened, shortened);
	assert_int_equal(change.removed, removed);
}

static uint64_t until_of(const struct records *r, const char *what, uint8_t kind)
{
	struct prefix p = prefix(what);
	size_t n;
	const struct reference *found = records_find(r, &p, kind, &n);

	assert_non_null(found);
	assert_int_equal(n, 1);
	return found->until_s;
}

// Prints the records without strings, one "KIND PREFIX OWNER UNTIL;" each.
static void assert_store(const struct records *r, const char *want)
{
	struct text t = {0};
	addr_text buf;

	vec_each (&r->list, record)
		text_addf(&t, "%u %s %u %lld;", record->kind, prefix_format(&record->prefix, buf),
			  record->owner, (long long)record->until_s);
	assert_string_equal(text_get(&t), want);
	text_free(&t);
}

static void test_empty(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	struct prefix p = prefix("192.0.2.1");
	struct owner who = {0};
	struct records_change change;
	struct record_list entries;
	size_t n;

	records_add(&r, NULL, 0, &change);
	assert_change(change, 0, 0, 0, 0, 0);
	records_replace(&r, &who, ALL, NULL, 0, &change);
	assert_change(change, 0, 0, 0, 0, 0);
	records_remove(&r, &who, ALL, NULL, 0, &n);
	assert_int_equal(n, 0);
	records_remove(&r, &who, ALL, &p, 1, &n);
	assert_int_equal(n, 0);
	assert_null(records_find(&r, &p, 0, &n));
	assert_int_equal(n, 0);
	records_entries(&r, &r.list, &entries);
	assert_int_equal(entries.n, 0);
	free(entries.at);
}

static void test_later_expiry_wins(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	uint32_t h = add_owner(&r, "", "", "");

	assert_change(add(&r, "192.0.2.1", 0, h, 100), 1, 0, 0, 0, 0);
	assert_change(add(&r, "192.0.2.1", 0, h, 100), 0, 0, 1, 0, 0);
	assert_change(add(&r, "192.0.2.1", 0, h, 50), 0, 0, 1, 0, 0);
	assert_int_equal(until_of(&r, "192.0.2.1", 0), 100);
	assert_change(add(&r, "192.0.2.1", 0, h, 101), 0, 1, 0, 0, 0);
	assert_change(add(&r, "192.0.2.1", 0, h, RECORD_NEVER), 0, 1, 0, 0, 0);
	assert_change(add(&r, "192.0.2.1", 0, h, 200), 0, 0, 1, 0, 0);
	assert_int_equal(until_of(&r, "192.0.2.1", 0), RECORD_NEVER);
	assert_change(add(&r, "192.0.2.1", OVERLAY_ALLOW_TO, h, 5), 1, 0, 0, 0, 0);
	assert_change(add(&r, "192.0.2.0/31", 0, h, 5), 1, 0, 0, 0, 0);
}

static void test_order(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	uint32_t b = add_owner(&r, "b", "", ""), a = add_owner(&r, "a", "z", "");
	uint32_t list = add_owner(&r, "b", "l", ""), name = add_owner(&r, "b", "", "n");
	struct reference references[] = {
		{prefix("2001:db8::1"), 0, a, 1},  {prefix("192.0.2.0/24"), 3, b, 2},
		{prefix("192.0.2.0"), 0, list, 3}, {prefix("192.0.2.0"), 0, name, 4},
		{prefix("192.0.2.0"), 0, b, 5},    {prefix("192.0.2.0"), 0, a, 6},
		{prefix("0.0.0.0/0"), 0, b, 7},    {prefix("192.0.2.0/24"), 0, b, 8},
	};
	struct records_change change;

	records_add(&r, references, ARRAY_SIZE(references), &change);
	assert_change(change, 8, 0, 0, 0, 0);
	assert_store(&r, "0 0.0.0.0/0 0 7;0 192.0.2.0/24 0 8;3 192.0.2.0/24 0 2;0 192.0.2.0 1 6;"
			 "0 192.0.2.0 0 5;0 192.0.2.0 3 4;0 192.0.2.0 2 3;0 2001:db8::1 1 1;");
}

static void test_repetitions_in_one_change(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	uint32_t a = add_owner(&r, "x", "", ""), b = add_owner(&r, "x", "", "");
	struct reference references[] = {
		{prefix("192.0.2.1"), 0, a, 5},
		{prefix("192.0.2.1"), 0, b, 9},
		{prefix("192.0.2.1"), 0, a, 7},
	};
	struct records_change change;

	records_add(&r, references, ARRAY_SIZE(references), &change);
	assert_change(change, 1, 0, 0, 0, 0);
	assert_store(&r, "0 192.0.2.1 0 9;");
}

// Adds a reference to one address by an owner with this note; returns the note of the record.
static const char *note_after(struct records *r, const char *note, bool fleeting)
{
	struct owner h = {.note = (char *)note, .fleeting = fleeting};
	uint32_t id = records_owner(r, &h);

	add(r, "192.0.2.1", 0, id, 100);
	assert_int_equal(r->list.n, 1);
	return r->owners.at[r->list.at[0].owner].note;
}

static void test_newer_note_wins(void **state)
{
	CLEANUP_RECORDS struct records r = {0};

	assert_string_equal(note_after(&r, "", false), "");
	assert_string_equal(note_after(&r, "one", false), "one");
	assert_string_equal(note_after(&r, "", false), "one");
	assert_int_equal(r.list.at[0].owner, 1);
	assert_string_equal(note_after(&r, "two", false), "two");
}

static void test_kept_stays_kept(void **state)
{
	CLEANUP_RECORDS struct records r = {0};

	assert_string_equal(note_after(&r, "live", true), "live");
	assert_string_equal(note_after(&r, "live 2", true), "live 2");
	assert_string_equal(note_after(&r, "", false), "");
	assert_string_equal(note_after(&r, "live 3", true), "");
	assert_false(r.owners.at[r.list.at[0].owner].fleeting);
}

static void test_owner_of_nulls(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	struct owner none = {.since_s = 7};
	uint32_t h = records_owner(&r, &none);
	size_t removed;

	assert_string_equal(r.owners.at[h].origin, "");
	assert_string_equal(r.owners.at[h].by, "");
	add(&r, "192.0.2.1", 0, h, 1);
	records_remove(&r, &none, ALL, NULL, 0, &removed);
	assert_int_equal(removed, 1);
	// An owner of the records themselves may be copied although the array moves.
	for (unsigned i = 0; i < 100; i++)
		records_owner(&r, &r.owners.at[0]);
	assert_int_equal(r.owners.at[100].since_s, 7);
}

static void test_replace(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	uint32_t feed = add_owner(&r, "", "feed", ""), other = add_owner(&r, "", "", "");
	struct owner who = {.list = (char *)"feed"};
	struct reference references[] = {
		{prefix("192.0.2.4"), 0, feed, 40},
		{prefix("192.0.2.2"), 0, feed, 25},
		{prefix("192.0.2.3"), 0, feed, 20},
		{prefix("192.0.2.5"), 0, feed, 30},
	};
	struct records_change change;

	add(&r, "192.0.2.1", 0, feed, 10);
	add(&r, "192.0.2.1", 0, other, 10);
	add(&r, "192.0.2.1", OVERLAY_BLOCK_TO, feed, 10);
	add(&r, "192.0.2.2", 0, feed, 20);
	add(&r, "192.0.2.3", 0, feed, 20);
	add(&r, "192.0.2.5", 0, feed, RECORD_NEVER);
	records_replace(&r, &who, FROM, references, ARRAY_SIZE(references), &change);
	assert_change(change, 1, 1, 1, 1, 1);
	assert_store(&r, "0 192.0.2.1 1 10;2 192.0.2.1 0 10;0 192.0.2.2 0 25;0 192.0.2.3 0 20;"
			 "0 192.0.2.4 0 40;0 192.0.2.5 0 30;");
	records_replace(&r, &who, FROM | TO, NULL, 0, &change);
	assert_change(change, 0, 0, 0, 0, 5);
	assert_store(&r, "0 192.0.2.1 1 10;");
}

static void test_remove(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	uint32_t plain = add_owner(&r, "", "", ""), again = add_owner(&r, "", "", "");
	struct owner who = {0}, by_name = {.name = (char *)"x.example"};
	struct prefix prefixes[] = {prefix("192.0.2.2"), prefix("192.0.2.9"), prefix("192.0.2.1")};
	size_t removed;

	add(&r, "192.0.2.1", 0, plain, 10);
	add(&r, "192.0.2.1", 0, add_owner(&r, "", "feed", ""), 10);
	add(&r, "192.0.2.1", 0, add_owner(&r, "", "", "x.example"), 10);
	add(&r, "192.0.2.1", 0, add_owner(&r, "ban", "", ""), 10);
	add(&r, "192.0.2.1", OVERLAY_ALLOW_FROM, plain, 10);
	add(&r, "192.0.2.2", 0, again, 10);
	add(&r, "192.0.2.0/24", 0, plain, 10);
	records_remove(&r, &who, FROM, prefixes, 3, &removed);
	assert_int_equal(removed, 2);
	assert_store(&r, "0 192.0.2.0/24 0 10;0 192.0.2.1 3 10;0 192.0.2.1 2 10;0 192.0.2.1 4 10;"
			 "1 192.0.2.1 0 10;");
	records_remove(&r, &who, FROM, prefixes, 3, &removed);
	assert_int_equal(removed, 0);
	records_remove(&r, &by_name, ALL, NULL, 0, &removed);
	assert_int_equal(removed, 1);
	records_remove(&r, &who, ALL, NULL, 0, &removed);
	assert_int_equal(removed, 2);
	assert_store(&r, "0 192.0.2.1 2 10;0 192.0.2.1 4 10;");
}

static void test_remove_origin(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	size_t removed;

	records_remove_origin(&r, NULL, ALL, &removed);
	assert_int_equal(removed, 0);
	add(&r, "192.0.2.1", 0, add_owner(&r, "", "", ""), 10);
	add(&r, "192.0.2.1", 0, add_owner(&r, "ban", "", ""), 10);
	add(&r, "192.0.2.1", OVERLAY_ALLOW_FROM, add_owner(&r, "ban", "", ""), 10);
	add(&r, "192.0.2.2", 0, add_owner(&r, "ban", "feed", ""), 10);
	add(&r, "192.0.2.3", 0, add_owner(&r, "ban", "", "x.example"), 10);
	add(&r, "192.0.2.4", 0, add_owner(&r, "bans", "", ""), 10);
	add(&r, "192.0.2.5", 0, add_owner(&r, "", "ban", "ban"), 10);
	records_remove_origin(&r, "ban", FROM, &removed);
	assert_int_equal(removed, 3);
	assert_store(&r, "0 192.0.2.1 0 10;1 192.0.2.1 2 10;0 192.0.2.4 5 10;0 192.0.2.5 6 10;");
	records_remove_origin(&r, "", ALL, &removed);
	assert_int_equal(removed, 2);
	records_remove_origin(&r, NULL, FROM, &removed);
	assert_int_equal(removed, 1);
	records_remove_origin(&r, NULL, ALL, &removed);
	assert_int_equal(removed, 1);
	assert_int_equal(r.list.n, 0);
}

static void test_entries(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	uint32_t a = add_owner(&r, "a", "", ""), b = add_owner(&r, "b", "", "");
	uint32_t c = add_owner(&r, "c", "", "");
	struct record_list entries;

	add(&r, "192.0.2.1", 0, a, 10);
	add(&r, "192.0.2.1", 0, b, 30);
	add(&r, "192.0.2.1", 0, c, 20);
	add(&r, "192.0.2.1", 1, b, 5);
	add(&r, "192.0.2.0/24", 0, b, RECORD_NEVER);
	records_entries(&r, &r.list, &entries);
	assert_int_equal(entries.n, 3);
	assert_int_equal(entries.at[0].prefix.len, 24);
	assert_int_equal(entries.at[0].until_s, RECORD_NEVER);
	assert_int_equal(entries.at[1].kind, 0);
	assert_int_equal(entries.at[1].until_s, 30);
	assert_int_equal(entries.at[2].kind, 1);
	assert_int_equal(entries.at[2].until_s, 5);
	free(entries.at);
}

static void test_find(void **state)
{
	CLEANUP_RECORDS struct records r = {0};
	uint32_t a = add_owner(&r, "a", "", ""), b = add_owner(&r, "b", "", "");
	struct prefix here = prefix("192.0.2.1"), absent = prefix("192.0.2.0/31");
	const struct reference *found;
	size_t n = 7;

	add(&r, "192.0.2.1", 2, b, 10);
	add(&r, "192.0.2.1", 2, a, 10);
	add(&r, "192.0.2.1", 3, a, 10);
	found = records_find(&r, &here, 2, &n);
	assert_ptr_equal(found, &r.list.at[0]);
	assert_int_equal(n, 2);
	assert_null(records_find(&r, &here, 0, &n));
	assert_int_equal(n, 0);
	assert_null(records_find(&r, &absent, 2, &n));
}

#define BOOT_A "8f0c2b6e-0d0c-4a53-9d0e-0a6ad6a3f3c1"
#define BOOT_B "8f0c2b6e-0d0c-4a53-9d0e-0a6ad6a3f3c2"

static void check_times(const struct records_clock *then, const struct records_clock *now,
			uint64_t want_until, uint64_t want_since)
{
	int64_t by = records_clock_set_by(then, now);

	assert_int_equal(records_shifted(1060, by), want_until);
	assert_int_equal(records_shifted(900, by), want_since);
	assert_true(records_shifted(RECORD_NEVER, by) == RECORD_NEVER);
	assert_int_equal(records_shifted(0, by), 0);
	assert_true(records_shifted(RECORD_NEVER - 1, by) < RECORD_NEVER);
}

// After ten seconds, with the wall clock set or not; 60 s of the entry were left.
static void test_follows_the_clock(void **state)
{
	static const struct records_clock then = {BOOT_A, 1000, 50}, none = {"", 0, 0};

	check_times(&then, &(struct records_clock){BOOT_A, 1010, 60}, 1060, 900);
	check_times(&then, &(struct records_clock){BOOT_A, 1012, 60}, 1060, 900); // adjtime
	check_times(&then, &(struct records_clock){BOOT_A, 1008, 60}, 1060, 900);
	check_times(&then, &(struct records_clock){BOOT_A, 90010, 60}, 90060, 89900);
	check_times(&then, &(struct records_clock){BOOT_A, 510, 60}, 560, 400);
	check_times(&then, &(struct records_clock){BOOT_A, 20, 60}, 70, 1); // before 1970 is 1970
	check_times(&then, &(struct records_clock){BOOT_B, 90010, 60}, 1060, 900); // another boot
	check_times(&none, &(struct records_clock){BOOT_A, 90010, 60}, 1060, 900); // an older file
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_later_expiry_wins),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_repetitions_in_one_change),
		cmocka_unit_test(test_newer_note_wins),
		cmocka_unit_test(test_kept_stays_kept),
		cmocka_unit_test(test_owner_of_nulls),
		cmocka_unit_test(test_replace),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_remove_origin),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_follows_the_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
