// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of the bounds: one below is accepted, one above is an error that names the limit.
#include "tests/unit/policy/world.h"

#include "common/limits-policy.h"
#include "ctl/base/text.h"

// Lines made of FORMAT with two numbers below 256 (or the line's number).
struct lines {
	const char *head, *tail;
	void (*put)(struct text *t, unsigned i);
	unsigned max;
	const char *error;
};

static void put_rule(struct text *t, unsigned i)
{
	text_addf(t, "count to 10.0.%u.%u\n", i >> 8, i & 255);
}

static void put_interface(struct text *t, unsigned i)
{
	text_addf(t, "interface eth%u\n", i);
}

static void put_dynamic(struct text *t, unsigned i)
{
	text_addf(t, "set d%u dynamic\n", i);
}

static void put_service(struct text *t, unsigned i)
{
	text_addf(t, "service s%u { vip 10.0.%u.%u; port 80; mode dr; backend here }\n", i, i >> 8,
		  i & 255);
}

static void put_backend(struct text *t, unsigned i)
{
	text_addf(t, "backend 10.0.%u.%u\n", i >> 8, i & 255);
}

static void put_expect(struct text *t, unsigned i)
{
	text_addf(t, "expect pass udp from 10.0.%u.%u to 192.0.2.1\n", i >> 8, i & 255);
}

static void put_address(struct text *t, unsigned i)
{
	text_addf(t, "%s10.0.%u.%u", i ? "," : "", i >> 8, i & 255);
}

static void put_port(struct text *t, unsigned i)
{
	text_addf(t, "%s%u", i ? "," : "", i * 2);
}

static void put_name(struct text *t, unsigned i)
{
	text_addf(t, "%sh%u.example", i ? "," : "", i);
}

static void put_file(struct text *t, unsigned i)
{
	text_addf(t, "%sfile \"l\" min %u", i ? "," : "", i);
}

static void put_pair(struct text *t, unsigned i)
{
	text_addf(t, "%s10.0.%u.%u port %u", i ? "," : "", i >> 8, i & 255, i * 2);
}

static const struct lines all[] = {
	{"", "", put_rule, POLICY_RULES, "more than 4096 rules"},
	{"", "", put_interface, POLICY_INTERFACES, "more than 63 interfaces"},
	{"set p pairs { ", "}\n", put_pair, POLICY_SET_ITEMS, "separate ranges; the limit is 4096"},
	{"", "", put_dynamic, POLICY_DYNAMIC, "more than 8 dynamic sets"},
	{"", "", put_service, POLICY_SERVICES, "more than 1024 services"},
	{"service s { vip 192.0.2.1; port 80; mode dr\n", "}\n", put_backend, POLICY_BACKENDS,
	 "more than 1024 backends in one service"},
	{"", "", put_expect, POLICY_EXPECTS, "more than 4096 expect lines"},
	{"count from ", "\n", put_address, POLICY_LIST_ITEMS, "more than 1024 items in one list"},
	// The definition counts too.
	{"count from $a\ndefine a = ", "\n", put_address, POLICY_LIST_ITEMS - 1,
	 "more than 1024 items in one list"},
	{"count proto tcp to port ", "\n", put_port, 256, "more than 256 items in one list"},
	{"set s { ", "}\n", put_name, POLICY_NAMES, "more than 16384 host names in one policy"},
	{"set s { ", "}\n", put_file, POLICY_FILES - 1, "more than 1024 files in one policy"},
};

static void load(const struct lines *l, unsigned n, bool good)
{
	static char numbers[1 << 16];
	const struct environment_file files[] = {{"l", numbers, 0}, {0}};
	struct environment w = {.files = files};
	struct text text = {0};
	struct resolved *r;

	if (!numbers[0]) // as many good lines as any `min` wants
		for (unsigned i = 0; i < POLICY_FILES; i++)
			snprintf(numbers + strlen(numbers), 16, "192.0.2.1\n");
	text_add(&text, l->head);
	for (unsigned i = 0; i < n; i++)
		l->put(&text, i);
	text_add(&text, l->tail);
	r = environment_load(&w, text_get(&text));
	if (good && !r)
		fail_msg("%u: %s", n, w.messages);
	if (!good && r)
		fail_msg("%u of '%s'", n, l->error);
	if (!good)
		environment_wants(&w, l->error);
	resolved_free(r);
	environment_free(&w);
	text_free(&text);
}

static void test_bounds(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		load(&all[i], all[i].max, true);
		load(&all[i], all[i].max + 1, false);
	}
}

// 1050 sets of 4000 prefixes each.
static void test_prefixes(void **state)
{
	struct environment w = {0};
	struct text text = {0};

	text_add(&text, "define a = ");
	for (unsigned i = 0; i < 4000; i++)
		put_address(&text, i);
	text_add(&text, "\n");
	for (unsigned i = 0; i < 1050; i++)
		text_addf(&text, "set s%u { $a }\n", i);
	assert_null(environment_load(&w, text_get(&text)));
	environment_wants(&w, "prefixes in the sets and lists of one policy");
	environment_free(&w);
	text_free(&text);
}

// The most rules, none of which covers another.
static void test_all_rules(void **state)
{
	struct environment w = {0};
	struct text text = {0};
	struct resolved *r;

	for (unsigned i = 0; i < POLICY_RULES; i++)
		text_addf(&text, "%sdrop to 10.0.%u.%u\n", i % 2 ? "" : "always ", i >> 8, i & 255);
	r = environment_load(&w, text_get(&text));
	assert_non_null(r);
	assert_string_equal(w.messages, "");
	assert_int_equal(r->n_rules, POLICY_RULES);
	assert_int_equal(r->n_always, POLICY_RULES / 2);
	for (size_t i = 0; i < r->n_rules; i++) {
		size_t half = POLICY_RULES / 2;

		assert_int_equal(r->rules[i].text_index, i < half ? 2 * i : 2 * (i - half) + 1);
	}
	resolved_free(r);
	environment_free(&w);
	text_free(&text);
}

// Some of many addresses are used, at most 64 pairs, each packet of one family.
static void test_pairs(void **state)
{
	struct environment w = {0};
	struct text text = {0};
	struct resolved *r;
	unsigned v4 = 0, v6 = 0;

	text_add(&text, "set s { 2001:db8::/64, 2001:db8:2::1, ");
	for (unsigned i = 0; i < 300; i++)
		text_addf(&text, "10.0.%u.%u, ", i >> 7, (i & 127) * 2);
	text_add(&text, "}\nexpect pass tcp from @s to @s\n");
	r = environment_load(&w, text_get(&text));
	assert_non_null(r);
	assert_int_equal(r->expects[0].n_packets, 64);
	for (size_t i = 0; i < 64; i++) {
		const struct resolved_packet *p = &r->expects[0].packets[i];

		assert_int_equal(p->from.family, p->to.family);
		v4 += p->from.family == 4;
		v6 += p->from.family == 6;
		for (size_t j = 0; j < i; j++)
			assert_true(addr_compare(&p->from, &r->expects[0].packets[j].from) ||
				    addr_compare(&p->to, &r->expects[0].packets[j].to));
	}
	assert_int_equal(v6, 9);
	assert_int_equal(v4, 55);
	resolved_free(r);
	environment_free(&w);
	text_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_all_rules),
		cmocka_unit_test(test_pairs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
