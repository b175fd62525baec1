// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/entries/targets.h: an owner repeats a block of outgoing calls with
// another error, or for other namespaces.
#include "tests/unit/base/unit.h"

#include <string.h>

#include "ctl/control/entries/targets.h"

#define HERE       OVERLAY_BLOCK_OUT
#define REFUSED    OVERLAY_BLOCK_OUT_REFUSED
#define EVERYWHERE OVERLAY_BLOCK_OUT_ALL
#define ADDRESS    "203.0.113.10"

// A command: its kind, expiry, note, and --volatile.
struct command {
	uint8_t kind;
	uint64_t until_s;
	const char *note;
	bool fleeting;
	const char *origin;
};

static struct records_change block(struct store *b, const struct command *c)
{
	const char *word = ADDRESS;
	struct targets t = {0};
	struct records_change change;
	struct intent intent = {
		.kinds = 1u << c->kind,
		.until_s = c->until_s ? c->until_s : RECORD_NEVER,
		.origin = c->origin ? c->origin : "",
		.list = "",
		.note = c->note ? c->note : "",
		.by = "root",
		.fleeting = c->fleeting,
	};

	assert_int_equal(items_add_words(&t.items, &word, 1), 1);
	targets_record(&t, &intent, b, &change);
	targets_free(&t);
	return change;
}

// NULL: none.
static const struct reference *find(const struct store *b, uint8_t kind)
{
	struct prefix p;
	size_t n;

	assert_int_equal(prefix_parse_quiet(ADDRESS, strlen(ADDRESS), &p, NULL), 0);
	return records_find(&b->records, &p, kind, &n);
}

static const struct owner *owner(const struct store *b, uint8_t kind)
{
	return &b->records.owners.at[find(b, kind)->owner];
}

static void test_another_error_replaces(void **state)
{
	struct store b = {0};
	struct records_change change;

	(void)state;
	block(&b, &(struct command){.kind = HERE});
	change = block(&b, &(struct command){.kind = REFUSED});
	assert_int_equal(change.replaced, 1);
	assert_int_equal(change.beside, 0);
	assert_null(find(&b, HERE));
	assert_int_equal(find(&b, REFUSED)->until_s, RECORD_NEVER);
	assert_int_equal(b.records.list.n, 1);
	records_free(&b.records);
}

static void test_the_later_expiry_and_the_note_remain(void **state)
{
	struct store b = {0};

	(void)state;
	block(&b, &(struct command){.kind = HERE, .note = "c2"});
	block(&b, &(struct command){.kind = REFUSED, .until_s = 100});
	assert_null(find(&b, HERE));
	assert_int_equal(find(&b, REFUSED)->until_s, RECORD_NEVER);
	assert_string_equal(owner(&b, REFUSED)->note, "c2");
	block(&b, &(struct command){.kind = HERE, .note = "c3"});
	assert_string_equal(owner(&b, HERE)->note, "c3");
	records_free(&b.records);
}

static void test_a_saved_block_remains_beside_a_fleeting_one(void **state)
{
	struct store b = {0};
	struct records_change change;

	(void)state;
	block(&b, &(struct command){.kind = HERE});
	change = block(&b, &(struct command){.kind = REFUSED, .fleeting = true});
	assert_int_equal(change.replaced, 0);
	assert_int_equal(change.beside, 1);
	assert_non_null(find(&b, HERE));
	assert_false(owner(&b, HERE)->fleeting);
	assert_true(owner(&b, REFUSED)->fleeting);
	change = block(&b, &(struct command){.kind = REFUSED + 1});
	assert_int_equal(change.replaced, 2);
	assert_int_equal(b.records.list.n, 1);
	records_free(&b.records);
}

static void test_a_wider_block_remains(void **state)
{
	struct store b = {0};
	struct records_change change;

	(void)state;
	block(&b, &(struct command){.kind = EVERYWHERE});
	change = block(&b, &(struct command){.kind = HERE});
	assert_int_equal(change.replaced, 0);
	assert_int_equal(change.beside, 1);
	assert_non_null(find(&b, EVERYWHERE));
	assert_non_null(find(&b, HERE));
	change = block(&b, &(struct command){.kind = EVERYWHERE});
	assert_int_equal(change.replaced, 1);
	assert_null(find(&b, HERE));
	records_free(&b.records);
}

// After a block of all namespaces for an hour, the permanent one of this namespace is left.
static void test_a_longer_block_remains_beside_a_wider_one(void **state)
{
	struct store b = {0};

	(void)state;
	block(&b, &(struct command){.kind = HERE});
	block(&b, &(struct command){.kind = EVERYWHERE, .until_s = 100});
	assert_int_equal(find(&b, HERE)->until_s, RECORD_NEVER);
	assert_int_equal(find(&b, EVERYWHERE)->until_s, 100);
	block(&b, &(struct command){.kind = EVERYWHERE});
	assert_null(find(&b, HERE));
	records_free(&b.records);
}

static void test_other_owners_keep_theirs(void **state)
{
	struct store b = {0};
	struct records_change change;

	(void)state;
	block(&b, &(struct command){.kind = HERE, .origin = "jail"});
	change = block(&b, &(struct command){.kind = REFUSED});
	assert_int_equal(change.replaced + change.beside, 0);
	assert_non_null(find(&b, HERE));
	records_free(&b.records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_error_replaces),
		cmocka_unit_test(test_the_later_expiry_and_the_note_remain),
		cmocka_unit_test(test_a_saved_block_remains_beside_a_fleeting_one),
		cmocka_unit_test(test_a_wider_block_remains),
		cmocka_unit_test(test_a_longer_block_remains_beside_a_wider_one),
		cmocka_unit_test(test_other_owners_keep_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
