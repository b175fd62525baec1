// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/control/explain_rules.h: which rules and lines know an address, and in what
// words.
#include "ctl/base/addr_explain.h"
#include "tests/unit/base/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctl/base/mem.h"
#include "ctl/control/explain_rules.h"
#include "ctl/policy/resolve.h"
#include "ctl/policy/rule_text.h"

static const char policy[] = "interface eth0\n"
			     "set feeds { 203.0.112.0/22, not 203.0.113.0/28, 203.0.113.7,\n"
			     "            2001:db8:bad::/48, file \"list.txt\" }\n"
			     "set slow dynamic max 100 expire 1m\n"
			     "always pass from 198.51.100.7\n"
			     "count from @feeds\n"
			     "drop from @feeds proto udp\n"
			     "\"feeds\" drop from @feeds\n"
			     "pass from not 10.0.0.0/8 to 192.0.2.1 port 22\n"
			     "drop to 192.0.2.0/24, 2001:db8:1::/64\n"
			     "drop from @slow\n"
			     "drop from any\n";

static int read_text(void *ctx, const char *path, size_t max, char **ret_text, size_t *ret_length,
		     struct err *err)
{
	const char *text = strcmp(path, "list.txt") ? ctx : "# header\n192.0.2.128/25\n";

	*ret_text = mem_strdup(text);
	*ret_length = strlen(text);
	return 0;
}

struct loaded {
	struct diag *diag;
	struct resolved *r;
};

static struct loaded load(const char *text)
{
	struct source_reader files = {.read = read_text, .ctx = (void *)text};
	struct policy_env env = {.files = &files};
	struct loaded l = {.diag = diag_new()};

	l.r = policy_load("p.weir", &env, NULL, 0, l.diag);
	if (!l.r)
		diag_print(l.diag, stderr, false);
	assert_non_null(l.r);
	return l;
}

static void unload(struct loaded *l)
{
	resolved_free(l->r);
	diag_free(l->diag);
}

static struct prefix prefix(const char *text)
{
	struct prefix p;
	struct err err;

	assert_int_equal(prefix_parse(text, strlen(text), &p, NULL, &err), 0);
	return p;
}

static const struct {
	const char *address, *entry; // NULL: the set does not hold it
} entries[] = {
	{"203.0.112.1", "@feeds p.weir:2 203.0.112.0/22"},
	{"203.0.115.255", "@feeds p.weir:2 203.0.112.0/22"},
	{"203.0.116.0", NULL},
	{"203.0.111.255", NULL},
	{"203.0.113.1", NULL},
	{"203.0.113.7", "@feeds p.weir:2 203.0.113.7"},
	{"203.0.113.16", "@feeds p.weir:2 203.0.112.0/22"},
	{"203.0.113.0/24", "@feeds p.weir:2 203.0.112.0/22"},
	{"203.0.0.0/16", NULL},
	{"192.0.2.127", NULL},
	{"192.0.2.129", "@feeds list.txt:2 192.0.2.128/25"},
	{"2001:db8:bad:1::1", "@feeds p.weir:3 2001:db8:bad::/48"},
	{"2001:db8:bae::", NULL},
};

static void test_entries(void **state)
{
	struct loaded l = load(policy);

	assert_string_equal(l.r->addresses[0].name, "feeds");
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		struct prefix p = prefix(entries[i].address);
		struct explain_entry entry;
		struct text t = {0};
		bool held = explain_holds(&l.r->addresses[0], &p, &entry);

		assert_int_equal(held, entries[i].entry != NULL);
		if (held)
			explain_add_entry(&t, l.r, &entry);
		assert_string_equal(text_get(&t), held ? entries[i].entry : "");
		text_free(&t);
	}
	unload(&l);
}

// The result must be equal to the look-up of ctl/policy.
static void test_entries_agree(void **state)
{
	struct loaded l = load(policy);
	uint64_t seed = 7;

	for (int i = 0; i < 20000; i++) {
		struct addr a = {4,
				 {203, 0, (uint8_t)(111 + unit_below(&seed, 6)),
				  (uint8_t)unit_below(&seed, 256)}};
		struct prefix p = prefix_of(&a, 32);
		struct explain_entry entry;

		assert_int_equal(explain_holds(&l.r->addresses[0], &p, &entry),
				 resolved_contains(&l.r->addresses[0], &a, NULL));
	}
	unload(&l);
}

static const struct {
	const char *address;
	bool to;
	const char *scopes; // decisions of the rules in their order: N none, s some, A all
} scopes[] = {
	{"198.51.100.7", false, "ANNNsssA"}, {"203.0.112.1", false, "NAsAsssA"},
	{"203.0.113.1", false, "NNNNsssA"},  {"10.1.2.3", false, "NNNNNssA"},
	{"192.0.2.1", true, "sssssAsA"},     {"192.0.3.1", true, "ssssNNsA"},
	{"2001:db8:1::5", true, "ssssNAsA"},
};

static void test_scopes(void **state)
{
	struct loaded l = load(policy);

	assert_int_equal(l.r->n_rules, 8);
	for (size_t i = 0; i < ARRAY_SIZE(scopes); i++) {
		struct prefix p = prefix(scopes[i].address);
		char got[16] = "";

		for (size_t rule = 0; rule < l.r->n_rules; rule++) {
			struct explain_entry entry;

			got[rule] = "NsA"[explain_scope(l.r, &l.r->rules[rule], &p, scopes[i].to,
							&entry)];
		}
		assert_string_equal(got, scopes[i].scopes);
	}
	unload(&l);
}

static const struct {
	const char *address;
	bool to;
	size_t rule, before;
} deciders[] = {
	{"198.51.100.7", false, 0, 0},
	{"203.0.112.1", false, 3, 1}, // `count` continues
	{"203.0.113.1", false, 7, 3},
	{"192.0.2.1", true, 5, 4},
};

static void test_deciders(void **state)
{
	struct loaded l = load(policy);

	for (size_t i = 0; i < ARRAY_SIZE(deciders); i++) {
		struct prefix p = prefix(deciders[i].address);
		size_t before;

		assert_int_equal(explain_decider(l.r, 0, l.r->n_rules, &p, deciders[i].to, &before),
				 deciders[i].rule);
		assert_int_equal(before, deciders[i].before);
	}
	unload(&l);
}

static const struct {
	const char *rule, *conditions;
} conditions[] = {
	{"drop proto tcp to port 22", ""},
	{"drop proto tcp length 40", "length 40"},
	{"drop length 0-100 ttl 1", "length 0-100, ttl 1"},
	{"drop dscp 0, cs1, ef", "dscp 0,8,46"},
	{"drop established proto tcp", "established"},
	{"drop not established ttl 3", "ttl 3, not established"},
	{"drop unroutable ttl 3", "ttl 3, unroutable"},
	{"drop probability 33.3%", "probability 33.3%"},
	{"drop over 10/s per source", "over 10/s per source"},
	{"drop under 5/min per destination", "under 5/min per destination"},
	{"drop over 2/h", "over 2/h"},
	{"drop over 100mbit/s", "over 100mbit/s"},
	{"drop over 1500kbit/s", "over 1500kbit/s"},
	{"drop over 9bit/s", "over 9bit/s"},
	{"drop from @slow", "from @slow"},
	{"drop to @slow over 1/s length 1-2", "to @slow, length 1-2, over 1/s"},
};

static void test_conditions(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(conditions); i++) {
		CLEANUP_FREE char *text = mem_printf("set slow dynamic\n%s\n", conditions[i].rule);
		struct loaded l = load(text);
		struct text t = {0};

		text_add(&t, "-");
		rule_text_conditions(&t, l.r, &l.r->rules[0]);
		assert_string_equal(text_get(&t) + 1, conditions[i].conditions);
		text_free(&t);
		unload(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_entries),    cmocka_unit_test(test_entries_agree),
		cmocka_unit_test(test_scopes),     cmocka_unit_test(test_deciders),
		cmocka_unit_test(test_conditions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
