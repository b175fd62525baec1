// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/rules.c: each condition of the language sets a flag that the datapath
// tests, and is dumped.
#include "tests/unit/policy/world.h"

#include "ctl/policy/fields.h"
#include "ctl/table/compile.h"
#include "ctl/table/rules.h"
#include "ctl/table/rules_dump.h"

// A rule with each condition, by field. The test checks that the list is complete.
static const char *const samples[AST_RULE_FIELDS] = {
	[AST_FROM] = "drop from @slow", // an address is a condition if it is a dynamic set
	[AST_TO] = "drop to @slow",           [AST_FROM_PAIRS] = "drop from @web",
	[AST_TO_PAIRS] = "drop to not @web",  [AST_MAC] = "drop mac not 02:00:5e:00:53:01",
	[AST_LENGTH] = "drop length 100-200", [AST_TTL] = "drop ttl 3",
	[AST_DSCP] = "drop dscp 46",          [AST_ESTABLISHED] = "drop established",
	[AST_UNROUTABLE] = "drop unroutable", [AST_PROBABILITY] = "drop probability 25%",
	[AST_LIMIT] = "drop over 10/s",
};

static char *dumped(const struct policy_rule *rule)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	rules_dump_conditions(rule, f);
	fclose(f);
	return text;
}

// Its RULE_CONDITIONS.
static uint32_t check_rule(const struct image *i, const char *keyword)
{
	const struct policy_rule without = {.action = ACTION_DROP};
	CLEANUP_FREE char *with_text = dumped(&i->rules[0]);
	CLEANUP_FREE char *without_text = dumped(&without);
	uint32_t flags = i->rules[0].flags & RULE_CONDITIONS;

	if (!flags || !i->config.conditions)
		fail_msg("'%s' compiles to no flag of RULE_CONDITIONS: it would be ignored",
			 keyword);
	if (!strcmp(with_text, without_text))
		fail_msg("rules_dump_conditions() does not print '%s'", keyword);
	return flags;
}

static uint32_t check_sample(size_t field, const char *rule)
{
	const struct compile_options options = {.seed = 1, .hz = 250};
	CLEANUP_FREE char *policy = mem_printf("set slow dynamic expire 10m\n"
					       "set web pairs { 192.0.2.1 port 80 }\n%s\n",
					       rule);
	struct environment environment = {0};
	struct resolved *r = environment_load(&environment, policy);
	struct image *i = NULL;
	uint32_t flags;

	if (!r)
		fail_msg("%s", environment.messages);
	assert_int_equal(r->n_rules, 1);
	if (!field_is_condition(&r->rules[0], field) || !field_given(&r->rules[0], field))
		fail_msg("the sample for '%s' does not have it", fields[field].keyword);
	assert_int_equal(compile(r, &options, environment.diag, &i), 0);
	flags = check_rule(i, fields[field].keyword);
	image_free(i);
	resolved_free(r);
	environment_free(&environment);
	return flags;
}

// Other flags of the same fields.
static const struct {
	size_t field;
	const char *rule;
} others[] = {
	{AST_ESTABLISHED, "drop not established"},
	{AST_LIMIT, "drop over 5 connections per source"},
};

static void test_every_condition(void **state)
{
	uint32_t seen = 0;

	for (size_t field = 0; field < AST_RULE_FIELDS; field++) {
		uint32_t flags;

		if (!fields[field].condition && fields[field].form != FORM_ADDRESS)
			continue;
		if (!samples[field])
			fail_msg("no sample for '%s': add one to `samples` in " __FILE__,
				 fields[field].keyword);
		flags = check_sample(field, samples[field]);
		if (flags & seen)
			fail_msg("the flag of '%s' is also that of another condition",
				 fields[field].keyword);
		seen |= flags;
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		uint32_t flags = check_sample(others[i].field, others[i].rule);

		assert_false(flags & seen);
		seen |= flags;
	}
	assert_int_equal(seen, RULE_CONDITIONS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_condition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
