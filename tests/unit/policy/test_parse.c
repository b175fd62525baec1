// SPDX-License-Identifier: GPL-2.0-only Unit tests of quick rules in ctl/policy: their place among
// the rules, their names, and what a text may have.
#include "tests/unit/policy/world.h"

static const char policy[] = "set s { 192.0.2.1 }\n"
			     "\"a\" drop to port 1\n"
			     "\"b\" always drop to port 2\n"
			     "drop to port 3\n"
			     "expect drop via \"a\" tcp from 192.0.2.1 to 192.0.2.2 port 1\n";

static struct resolved *load(struct environment *w, const char *text,
			     const struct policy_quick *quick, size_t n)
{
	w->quick = quick;
	w->n_quick = n;
	return environment_load(w, text);
}

static void test_follow_always(void **state)
{
	static const struct policy_quick quick[] = {
		{.label = "quick 7", .text = "drop from @s"},
		{.label = "quick 3", .name = "NTP", .text = "pass proto udp to port 123"},
	};
	static const char *const order[] = {"b", "quick 7", "NTP", "a", "drop to port 3"};
	struct environment w = {0};
	CLEANUP_RESOLVED struct resolved *r = load(&w, policy, quick, 2);

	assert_non_null(r);
	assert_int_equal(r->n_rules, 5);
	assert_int_equal(r->n_always, 1);
	assert_int_equal(r->n_quick, 2);
	for (size_t n = 0; n < r->n_rules; n++) {
		assert_string_equal(r->rules[n].identity, order[n]);
		assert_int_equal(r->rules[n].quick, n == 1 || n == 2);
	}
	assert_int_equal(r->expects[0].rule, 3);
	assert_string_equal(r->files[r->rules[1].place.file].name, "quick 7");
	assert_string_equal(r->files[r->rules[3].place.file].name, "main");
	environment_free(&w);
}

static void test_a_text_of_the_policy_keeps_its_identity(void **state)
{
	static const struct policy_quick quick = {.label = "quick 1", .text = "drop to port 3"};
	struct environment w = {0};
	CLEANUP_RESOLVED struct resolved *r = load(&w, policy, &quick, 1);

	assert_string_equal(r->rules[1].identity, "quick 1");
	assert_string_equal(r->rules[3].identity, "drop to port 3");
	environment_free(&w);
}

static void test_a_name_of_the_policy(void **state)
{
	static const struct policy_quick quick = {
		.label = "quick 1", .name = "a", .text = "drop to port 9"};
	struct environment w = {0};
	CLEANUP_RESOLVED struct resolved *r = load(&w, policy, &quick, 1);

	assert_string_equal(r->rules[1].identity, "quick 1");
	assert_string_equal(r->rules[2].identity, "a");
	assert_int_equal(r->expects[0].rule, 2);
	environment_free(&w);
}

static void test_without_a_policy(void **state)
{
	static const struct policy_quick quick = {.label = "quick 1", .text = "drop to port 9"};
	struct environment w = {0};
	CLEANUP_RESOLVED struct resolved *r = load(&w, "", &quick, 1);

	assert_int_equal(r->n_rules, 1);
	assert_false(r->default_drop);
	environment_free(&w);
}

static void test_never(void **state)
{
	static const struct policy_quick quick[] = {
		{.label = "quick 1", .text = "drop proto tcp to port 2"},
		{.label = "quick 2", .text = "drop to port 1-9"},
		{.label = "quick 3", .text = "drop to port 4"},
	};
	struct environment w = {0};
	CLEANUP_RESOLVED struct resolved *r = load(&w, policy, quick, 3);

	assert_true(r->rules[1].never); // by "b", which is `always`
	assert_false(r->rules[2].never);
	assert_true(r->rules[3].never);  // by the second
	assert_false(r->rules[4].never); // a quick rule may take everything from the policy
	assert_null(strstr(w.messages, "\"a\" can never match"));
	environment_free(&w);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{"", "expected pass, drop"},
		{"include \"x\"", "expected pass, drop"},
		{"always drop", "cannot be 'always'"},
		{"drop; pass", "expected the end of the rule"},
		{"drop\npass", "expected the end of the rule"},
		{"drop from a.example", "cannot have host names"},
		{"drop to host a", "cannot have host names"},
		{"drop from country DE", "cannot have host names"},
		{"drop from asn 1", "cannot have host names"},
		{"drop from @t", "unknown set '@t'"},
		{"drop fragment", "decides fragments before quick rules (main:1)"},
		{"drop port 80abc", "quick 1:1:11: error"},
	};

	for (size_t n = 0; n < ARRAY_SIZE(bad); n++) {
		const struct policy_quick quick = {.label = "quick 1", .text = bad[n].text};
		struct environment w = {0};

		assert_null(load(&w, "fragments drop\n\"a\" drop to port 1", &quick, 1));
		environment_wants(&w, bad[n].said);
		environment_wants(&w, "quick 1:");
		environment_free(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_follow_always),
		cmocka_unit_test(test_a_text_of_the_policy_keeps_its_identity),
		cmocka_unit_test(test_a_name_of_the_policy),
		cmocka_unit_test(test_without_a_policy),
		cmocka_unit_test(test_never),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
