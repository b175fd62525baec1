// SPDX-License-Identifier: GPL-2.0-only
// Changes of the references of names by another answer, and answers that are ignored.
#include "tests/unit/base/unit.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/control/entries/targets.h"
#include "ctl/control/refresh.h"

#define NOW  1000000
#define FROM OVERLAY_BLOCK_FROM

struct world {
	struct records records;
	struct guard guard;
	struct refresh_name name;
	struct dns_answer answer;
	struct geo_ranges ranges;
	size_t changed;
};

static struct prefix prefix(const char *text)
{
	struct prefix p;

	assert_int_equal(prefix_parse_quiet(text, strlen(text), &p, NULL), 0);
	return p;
}

static uint32_t add_owner(struct world *w, const char *origin, const char *name, const char *note)
{
	struct owner owner = {.origin = (char *)origin, .name = (char *)name, .note = (char *)note};

	return records_owner(&w->records, &owner);
}

static void hold(struct world *w, uint32_t owner, const char *what, uint8_t kind, uint64_t until_s)
{
	struct reference reference = {prefix(what), kind, owner, until_s};
	struct records_change change;

	records_add(&w->records, &reference, 1, &change);
}

static void protect(struct world *w, const char *what, enum guard_level level)
{
	vec_push(&w->guard, ((struct guarded){.addr = prefix(what).addr, .level = level}));
	snprintf(vec_last(&w->guard)->what, sizeof(w->guard.at->what), "the default gateway");
}

static void add_address(struct world *w, const struct addr *a)
{
	w->answer.addrs = mem_realloc(w->answer.addrs, w->answer.n + 1, sizeof(*a));
	w->answer.addrs[w->answer.n++] = *a;
}

static void follow(struct world *w)
{
	struct refresh_wish wish = {.name = &w->name, .answer = &w->answer};

	if (w->ranges.prefixes.n)
		wish = (struct refresh_wish){.name = &w->name, .ranges = &w->ranges};
	w->name.added = w->name.leaving = w->name.back = w->name.released = 0;
	w->name.error = 0;
	w->changed = refresh_follow(&w->records, &wish, 1, &w->guard, NOW);
}

// "192.0.2.1 2001:db8::1": sorted, as answers are.
static void answer(struct world *w, const char *words)
{
	char copy[512], *rest = NULL;

	w->answer.n = 0;
	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		struct prefix host = prefix(word);

		add_address(w, &host.addr);
	}
	follow(w);
}

static void database(struct world *w, const char *words)
{
	char copy[512], *rest = NULL;

	w->ranges.prefixes.n = 0;
	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		vec_push(&w->ranges.prefixes, prefix(word));
	follow(w);
}

// Compares the addresses of an owner, with the seconds left: "192.0.2.1 60, 192.0.2.2".
static void check(const struct world *w, const char *origin, const char *wanted)
{
	char text[1024] = "";
	addr_text addr;

	vec_each (&w->records.list, r) {
		size_t len = strlen(text);

		if (strcmp(w->records.owners.at[r->owner].origin, origin) != 0)
			continue;
		snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "",
			 prefix_format(&r->prefix, addr));
		len = strlen(text);
		if (r->until_s != RECORD_NEVER)
			snprintf(text + len, sizeof(text) - len, " %llu",
				 (unsigned long long)r->until_s - NOW);
	}
	assert_string_equal(text, wanted);
}

static int make(void **state)
{
	struct world *w = *state = mem_new(struct world);

	w->name.name = (char *)"moving.lab";
	w->answer.ttl_s = 2;
	return 0;
}

static int end(void **state)
{
	struct world *w = *state;

	records_free(&w->records);
	guard_free(&w->guard);
	vec_free(&w->ranges.prefixes);
	free(w->answer.addrs);
	mem_cleanup_free(state);
	return 0;
}

static void an_old_address_leaves(void **state)
{
	struct world *w = *state;

	hold(w, add_owner(w, "a", "moving.lab", ""), "192.0.2.1", FROM, RECORD_NEVER);
	answer(w, "192.0.2.1");
	assert_int_equal(w->changed, 0);
	answer(w, "192.0.2.2 2001:db8::2");
	check(w, "a", "192.0.2.1 60, 192.0.2.2, 2001:db8::2");
	assert_int_equal(w->name.added, 2);
	assert_int_equal(w->name.leaving, 1);
	answer(w, "192.0.2.2 2001:db8::2");
	assert_int_equal(w->changed, 0);
	answer(w, "192.0.2.1 192.0.2.2");
	check(w, "a", "192.0.2.1, 192.0.2.2, 2001:db8::2 60");
	assert_int_equal(w->name.back, 1);
}

static void a_huge_ttl_is_an_hour_of_grace(void **state)
{
	struct world *w = *state;

	hold(w, add_owner(w, "a", "moving.lab", ""), "192.0.2.1", FROM, RECORD_NEVER);
	w->answer.ttl_s = INT32_MAX;
	answer(w, "192.0.2.2");
	check(w, "a", "192.0.2.1 7200, 192.0.2.2");
}

static void each_owner_has_its_own_time(void **state)
{
	struct world *w = *state;

	hold(w, add_owner(w, "a", "moving.lab", ""), "192.0.2.1", FROM, NOW + 30);
	hold(w, add_owner(w, "b", "moving.lab", ""), "192.0.2.1", FROM, RECORD_NEVER);
	hold(w, add_owner(w, "c", "other.lab", ""), "192.0.2.1", FROM, RECORD_NEVER);
	answer(w, "192.0.2.2");
	check(w, "a", "192.0.2.1 30, 192.0.2.2 30");
	check(w, "b", "192.0.2.1 60, 192.0.2.2");
	check(w, "c", "192.0.2.1");
}

// A command with another note makes another owner of the same origin, list and name.
static void two_notes_are_one_owner(void **state)
{
	struct world *w = *state;

	hold(w, add_owner(w, "a", "moving.lab", "first"), "192.0.2.1", FROM, RECORD_NEVER);
	hold(w, add_owner(w, "a", "moving.lab", ""), "192.0.2.2", FROM, RECORD_NEVER);
	answer(w, "192.0.2.3");
	check(w, "a", "192.0.2.1 60, 192.0.2.2 60, 192.0.2.3");
}

static void each_direction_follows(void **state)
{
	struct world *w = *state;
	uint32_t owner = add_owner(w, "a", "moving.lab", "");

	hold(w, owner, "192.0.2.1", FROM, RECORD_NEVER);
	hold(w, owner, "192.0.2.1", OVERLAY_BLOCK_TO, NOW + 100);
	answer(w, "192.0.2.2");
	check(w, "a", "192.0.2.1 60, 192.0.2.1 60, 192.0.2.2, 192.0.2.2 100");
}

static void a_failed_family_stays(void **state)
{
	struct world *w = *state;
	uint32_t owner = add_owner(w, "a", "moving.lab", "");

	hold(w, owner, "192.0.2.1", FROM, RECORD_NEVER);
	hold(w, owner, "2001:db8::1", FROM, RECORD_NEVER);
	w->answer.v6_failed = true;
	answer(w, "192.0.2.2");
	check(w, "a", "192.0.2.1 60, 192.0.2.2, 2001:db8::1");
}

static void what_is_protected_is_left_out(void **state)
{
	struct world *w = *state;

	protect(w, "198.51.100.1", GUARD_WARN);
	hold(w, add_owner(w, "a", "moving.lab", ""), "192.0.2.1", FROM, RECORD_NEVER);
	answer(w,
	       "0.0.0.0 10.0.0.1 127.0.0.1 169.254.1.1 192.0.2.2 198.51.100.1 224.0.0.1 :: ::1 fe80::1");
	check(w, "a", "192.0.2.1 60, 192.0.2.2");
	assert_int_equal(w->name.addresses, 1);
}

static void an_answer_of_protected_addresses_alone_is_none(void **state)
{
	struct world *w = *state;

	protect(w, "198.51.100.1", GUARD_REFUSE);
	hold(w, add_owner(w, "a", "moving.lab", ""), "192.0.2.1", FROM, RECORD_NEVER);
	answer(w, "0.0.0.0 127.0.0.1 198.51.100.1 ::");
	assert_int_equal(w->changed, 0);
	assert_int_equal(w->name.error, -EPERM);
	assert_non_null(strstr(w->name.why, "'moving.lab'"));
	check(w, "a", "192.0.2.1");
	answer(w, "192.0.2.2");
	check(w, "a", "192.0.2.1 60, 192.0.2.2");
}

// Private addresses were added with --wide: other private addresses may follow, protected ones may
// not.
static void wide_stays_wide(void **state)
{
	struct world *w = *state;

	protect(w, "10.0.0.254", GUARD_REFUSE);
	hold(w, add_owner(w, "a", "moving.lab", ""), "10.0.0.1", FROM, RECORD_NEVER);
	answer(w, "10.0.0.2 10.0.0.254 127.0.0.1");
	check(w, "a", "10.0.0.1 60, 10.0.0.2");
}

// The address of an entry belongs to the gateway now: this does not prove --wide, and the address
// is removed immediately.
static void a_new_gateway_is_released(void **state)
{
	struct world *w = *state;
	uint32_t owner = add_owner(w, "a", "moving.lab", "");

	hold(w, owner, "192.0.2.1", FROM, RECORD_NEVER);
	hold(w, owner, "192.0.2.2", FROM, RECORD_NEVER);
	protect(w, "192.0.2.1", GUARD_REFUSE);
	answer(w, "10.0.0.1 192.0.2.1 192.0.2.2");
	check(w, "a", "192.0.2.2");
	assert_int_equal(w->name.released, 1);
}

static void allowed_names_may_be_anywhere(void **state)
{
	struct world *w = *state;

	hold(w, add_owner(w, "a", "moving.lab", ""), "192.0.2.1", OVERLAY_ALLOW_FROM, RECORD_NEVER);
	answer(w, "10.0.0.1");
	check(w, "a", "10.0.0.1, 192.0.2.1 60");
}

static size_t held(const struct world *w)
{
	return w->records.list.n;
}

static void a_zone_of_its_own_fills_no_table(void **state)
{
	struct world *w = *state;

	hold(w, add_owner(w, "a", "moving.lab", ""), "192.0.2.1", FROM, RECORD_NEVER);
	for (uint32_t round = 0; round < 10; round++) {
		w->answer.n = 0;
		for (uint32_t n = 0; n < 500; n++) {
			struct addr a = addr_from_v4(htobe32(0xcb007100u + round * 512 + n));

			add_address(w, &a);
		}
		follow(w);
		assert_int_equal(w->name.addresses, GUARD_ANSWERS_MAX);
	}
	assert_int_equal(held(w), 5 * GUARD_ANSWERS_MAX);
}

static void a_place_follows_at_once(void **state)
{
	struct world *w = *state;

	w->name.name = (char *)"country DE";
	hold(w, add_owner(w, "a", "country DE", ""), "192.0.2.0/25", FROM, NOW + 500);
	database(w, "192.0.2.0/26 198.51.100.0/24");
	check(w, "a", "192.0.2.0/26 500, 198.51.100.0/24 500");
	assert_int_equal(w->name.added, 2);
	assert_int_equal(w->name.released, 1);
	database(w, "192.0.2.0/26 198.51.100.0/24");
	assert_int_equal(w->changed, 0);
}

static void a_place_that_shrinks_stays(void **state)
{
	struct world *w = *state;
	uint32_t owner = add_owner(w, "a", "country DE", "");

	w->name.name = (char *)"country DE";
	hold(w, owner, "192.0.2.0/24", FROM, RECORD_NEVER);
	hold(w, owner, "2001:db8::/32", FROM, RECORD_NEVER);
	database(w, "192.0.2.0/25 198.51.100.0/24");
	assert_int_equal(w->name.error, -EPERM);
	assert_non_null(strstr(w->name.why, "shrink"));
	check(w, "a", "192.0.2.0/24, 2001:db8::/32");
	database(w,
		 "192.0.2.0/25 2001:db8::/33 2001:db8:8000::/34"); // more than half of one family
	assert_int_equal(w->name.error, -EPERM);
	database(w, "192.0.2.0/25 192.0.2.128/26 2001:db8::/33 2001:db8:8000::/34");
	assert_int_equal(w->name.error, 0);
}

static void a_place_does_not_cut_off_the_gateway(void **state)
{
	struct world *w = *state;
	uint32_t owner = add_owner(w, "a", "country DE", "");

	w->name.name = (char *)"country DE";
	protect(w, "198.51.100.1", GUARD_REFUSE);
	hold(w, owner, "192.0.2.0/24", FROM, RECORD_NEVER);
	database(w, "192.0.2.0/24 198.51.100.0/24");
	assert_int_equal(w->name.error, -EPERM);
	assert_non_null(strstr(w->name.why, "198.51.100.1, the default gateway"));
	check(w, "a", "192.0.2.0/24");
	hold(w, owner, "198.51.100.0/25", FROM, RECORD_NEVER); // as after --force
	database(w, "192.0.2.0/24 198.51.100.0/24");
	check(w, "a", "192.0.2.0/24, 198.51.100.0/24");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_old_address_leaves, make, end),
		cmocka_unit_test_setup_teardown(a_huge_ttl_is_an_hour_of_grace, make, end),
		cmocka_unit_test_setup_teardown(each_owner_has_its_own_time, make, end),
		cmocka_unit_test_setup_teardown(two_notes_are_one_owner, make, end),
		cmocka_unit_test_setup_teardown(each_direction_follows, make, end),
		cmocka_unit_test_setup_teardown(a_failed_family_stays, make, end),
		cmocka_unit_test_setup_teardown(what_is_protected_is_left_out, make, end),
		cmocka_unit_test_setup_teardown(an_answer_of_protected_addresses_alone_is_none,
						make, end),
		cmocka_unit_test_setup_teardown(wide_stays_wide, make, end),
		cmocka_unit_test_setup_teardown(a_new_gateway_is_released, make, end),
		cmocka_unit_test_setup_teardown(allowed_names_may_be_anywhere, make, end),
		cmocka_unit_test_setup_teardown(a_zone_of_its_own_fills_no_table, make, end),
		cmocka_unit_test_setup_teardown(a_place_follows_at_once, make, end),
		cmocka_unit_test_setup_teardown(a_place_that_shrinks_stays, make, end),
		cmocka_unit_test_setup_teardown(a_place_does_not_cut_off_the_gateway, make, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
