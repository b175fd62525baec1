// SPDX-License-Identifier: GPL-2.0-only
// Changes by another answer for a name of the policy: addresses leave, return, are released.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctl/base/mem.h"
#include "ctl/control/environment.h"

#define NOW 1000000

struct world {
	struct environment_name name;
	struct environment_followed last;
};

static struct addr addr_of(const char *text)
{
	struct addr addr;

	assert_int_equal(addr_parse(text, strlen(text), &addr, NULL), 0);
	return addr;
}

// "192.0.2.1 2001:db8::1": sorted, as answers are.
static void answer(struct world *w, const char *words, uint64_t now, struct dns_answer how)
{
	struct addr addrs[8];
	char copy[256], *rest = NULL;

	snprintf(copy, sizeof(copy), "%s", words);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		addrs[how.n++] = addr_of(word);
	how.addrs = addrs;
	environment_follow(&w->name, &how, now, &w->last);
}

static void check(const struct world *w, const char *current, const char *leaving)
{
	char text[512] = "";
	addr_text addr;

	for (size_t n = 0; n < w->name.n; n++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", n ? " " : "",
			 addr_format(&w->name.addrs[n], addr));
	assert_string_equal(text, current);
	text[0] = '\0';
	for (size_t n = 0; n < w->name.leaving.n; n++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s until %llu",
			 n ? ", " : "", addr_format(&w->name.leaving.at[n].addr, addr),
			 (unsigned long long)w->name.leaving.at[n].until_s - NOW);
	assert_string_equal(text, leaving);
}

static void counts(const struct world *w, size_t added, size_t leaving, size_t back,
		   size_t released)
{
	assert_int_equal(w->last.added, added);
	assert_int_equal(w->last.leaving, leaving);
	assert_int_equal(w->last.back, back);
	assert_int_equal(w->last.released, released);
}

static int make(void **state)
{
	*state = mem_new(struct world);
	((struct world *)*state)->name.name = mem_strdup("moving.lab");
	return 0;
}

static int end(void **state)
{
	environment_free_name(&((struct world *)*state)->name);
	mem_cleanup_free(state);
	return 0;
}

#define TTL(s) ((struct dns_answer){.ttl_s = (s)})

static void test_unchanged(void **state)
{
	struct world *w = *state;

	answer(w, "192.0.2.1 192.0.2.2", NOW, TTL(5));
	counts(w, 2, 0, 0, 0);
	answer(w, "192.0.2.1 192.0.2.2", NOW + 5, TTL(5));
	counts(w, 0, 0, 0, 0);
	check(w, "192.0.2.1 192.0.2.2", "");
	assert_int_equal(w->name.answered_s, NOW + 5);
	assert_true(environment_name_ends(&w->name, NOW) == UINT64_MAX);
}

static void test_leaves_and_is_released(void **state)
{
	struct world *w = *state;

	answer(w, "192.0.2.1", NOW, TTL(5));
	answer(w, "192.0.2.2", NOW, TTL(5));
	counts(w, 1, 1, 0, 0);
	check(w, "192.0.2.2", "192.0.2.1 until 60");
	answer(w, "192.0.2.2", NOW + 59, TTL(5));
	counts(w, 0, 0, 0, 0);
	check(w, "192.0.2.2", "192.0.2.1 until 60");
	assert_int_equal(environment_name_ends(&w->name, NOW + 59), 1);
	answer(w, "192.0.2.2", NOW + 60, TTL(5));
	counts(w, 0, 0, 0, 1);
	check(w, "192.0.2.2", "");
}

static void test_comes_back(void **state)
{
	struct world *w = *state;

	answer(w, "192.0.2.1", NOW, TTL(5));
	answer(w, "192.0.2.2", NOW, TTL(5));
	answer(w, "192.0.2.1", NOW + 90,
	       TTL(5)); // after its grace time, but still active
	counts(w, 0, 1, 1, 0);
	check(w, "192.0.2.1", "192.0.2.2 until 150");
}

static void test_grace_is_twice_the_longer_ttl(void **state)
{
	struct world *w = *state;

	answer(w, "192.0.2.1", NOW, TTL(300));
	answer(w, "192.0.2.2", NOW, TTL(5));
	check(w, "192.0.2.2", "192.0.2.1 until 600");
	answer(w, "192.0.2.3", NOW, TTL(86400));
	check(w, "192.0.2.3", "192.0.2.1 until 600, 192.0.2.2 until 7200");
}

static void test_a_family_without_an_answer_stays(void **state)
{
	struct world *w = *state;
	struct dns_answer half = {.ttl_s = 5, .v6_failed = true};

	answer(w, "192.0.2.1 2001:db8::1", NOW, TTL(5));
	answer(w, "192.0.2.2", NOW, half);
	counts(w, 1, 1, 0, 0);
	check(w, "192.0.2.2 2001:db8::1", "192.0.2.1 until 60");
	answer(w, "192.0.2.2", NOW, TTL(5));
	check(w, "192.0.2.2", "192.0.2.1 until 60, 2001:db8::1 until 60");
}

static void test_a_clock_that_was_set_back(void **state)
{
	struct world *w = *state;

	answer(w, "192.0.2.1", NOW + 50000, TTL(5));
	answer(w, "192.0.2.2", NOW + 50000, TTL(5));
	answer(w, "192.0.2.2", NOW, TTL(5));
	counts(w, 0, 0, 0, 0);
	check(w, "192.0.2.2", "192.0.2.1 until 60");
}

// A zone gives another answer each time: the addresses that leave last are kept.
static void test_few_leave_at_once(void **state)
{
	struct world *w = *state;
	struct addr addrs[500] = {0};
	struct dns_answer all = {.addrs = addrs, .n = ARRAY_SIZE(addrs), .ttl_s = 5};
	size_t released = 0;

	for (uint8_t turn = 0; turn < 10; turn++) {
		for (uint16_t a = 0; a < ARRAY_SIZE(addrs); a++)
			addrs[a] = (struct addr){
				4, {192, turn, (uint8_t)(a / 256), (uint8_t)(a % 256)}};
		environment_follow(&w->name, &all, (uint64_t)NOW + turn, &w->last);
		released += w->last.released;
	}
	assert_int_equal(w->name.leaving.n, NAME_LEAVING_MAX);
	assert_int_equal(released, 9 * ARRAY_SIZE(addrs) - NAME_LEAVING_MAX);
	assert_int_equal(environment_name_ends(&w->name, NOW + 9), 58);
	vec_each (&w->name.leaving, one)
		assert_true(one->addr.bytes[1] >= 6);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_unchanged),
		TEST(test_leaves_and_is_released),
		TEST(test_comes_back),
		TEST(test_grace_is_twice_the_longer_ttl),
		TEST(test_a_family_without_an_answer_stays),
		TEST(test_a_clock_that_was_set_back),
		TEST(test_few_leave_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
