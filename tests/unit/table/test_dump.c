// SPDX-License-Identifier: GPL-2.0-only
// Unit tests of ctl/table/dump.c: the text of a small policy, and that seeds do not show.
#include "tests/unit/table/random.h"

static char *dumped(struct made *m, uint64_t seed, struct image **ret)
{
	const struct compile_options options = {.seed = seed, .hz = 250, .keep_regions = true};
	struct image *i = NULL;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_int_equal(compile(&m->r, &options, m->diag, &i), 0);
	image_dump(i, f);
	fclose(f);
	if (ret)
		*ret = i;
	else
		image_free(i);
	return text;
}

static void small_policy(struct made *m)
{
	struct resolved_addresses *a;

	made_init(m, 3, 1);
	m->r.n_always = 1;
	m->r.default_drop = true;
	m->r.fragments[17] = TREAT_DROP;
	a = made_addresses(m, "office", 3, 1);
	((struct resolved_prefix4 *)a->v4)[0] = made_prefix4(0x0a000000, 8, true);
	((struct resolved_prefix4 *)a->v4)[1] = made_prefix4(0x0a000005, 32, false);
	((struct resolved_prefix4 *)a->v4)[2] = made_prefix4(0xc0000201, 32, true);
	((struct resolved_prefix6 *)a->v6)[0] = made_prefix6(0x20010db800000000ull, 0, 32, true);
	m->r.rules[0].from = made_set(0);
	m->r.rules[0].action = ACTION_PASS;
	m->r.rules[1].dport = made_range(m, 80, 81);
	m->r.rules[1].limit = (struct resolved_limit){.given = true,
						      .count = 10,
						      .period_ms = 1000,
						      .burst = 5,
						      .per = PER_SOURCE,
						      .mask4 = 32,
						      .mask6 = 64,
						      .max = 64};
	m->r.rules[2].vlan = made_range(m, 7, 4095);
	m->r.rules[2].log = (struct resolved_log){true, 1, 1000, 128};
}

static void test_text(void **state)
{
	static const char wanted[] =
		"rules 3 always 1 meters 0 bucket-lines 16 logs 1\n"
		"default-drop 0x1 conditions\n"
		"fragments proto 17-17 drop\n"
		"fragments ip6 drop\n"
		"rule 0 made.weir:1 'rule 0' pass\n"
		"rule 1 made.weir:2 'rule 1' drop over packets cost 26214400>>0 tolerance 131072000"
		" per source mask 32/64 table 0 lines 16\n"
		"rule 2 made.weir:3 'rule 2' drop log 0 every 250 snap 128\n"
		"matrix of rules: words 1 rows 5 fields source dport vlan\n"
		"source ipv4 regions 7\n"
		"  0.0.0.0-9.255.255.255 r4\n"
		"  10.0.0.0-10.0.0.4 r1\n"
		"  10.0.0.5 r4\n"
		"  10.0.0.6-10.255.255.255 r1\n"
		"  11.0.0.0-192.0.2.0 r4\n"
		"  192.0.2.1 r1\n"
		"  192.0.2.2-255.255.255.255 r4\n"
		"source ipv6 regions 3\n"
		"  ::-2001:db7:ffff:ffff:ffff:ffff:ffff:ffff r4\n"
		"  2001:db8::/32 r1\n"
		"  2001:db9::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff r4\n"
		"dport\n"
		"  0-79 r2\n"
		"  80-81 r1\n"
		"  82-65535 r2\n"
		"dport none r2\n"
		"vlan\n"
		"  0-6 r3\n"
		"  7-4095 r1\n"
		"r1: 0-2\n"
		"r2: 0 2\n"
		"r3: 0-1\n"
		"r4: 1-2\n";
	struct made m;
	char *text;

	small_policy(&m);
	text = dumped(&m, 1, NULL);
	assert_string_equal(text, wanted);
	free(text);
	made_free(&m);
}

// Some hosts have no room in their line; the seed decides which.
static void test_seeds_do_not_show(void **state)
{
	const struct random_shape shape = {20, 6, 3000, 2};
	uint64_t s = 31;
	bool differ = false;

	for (int round = 0; round < 5; round++) {
		struct image *x, *y;
		struct made m;
		char *a, *b;

		random_policy(&m, &s, &shape);
		a = dumped(&m, 1, &x);
		b = dumped(&m, 0x123456789abcdefull, &y);
		differ |= x->tables.n == y->tables.n &&
			  memcmp(x->tables.at, y->tables.at, x->tables.n) != 0;
		assert_string_equal(a, b);
		free(a);
		free(b);
		image_free(x);
		image_free(y);
		made_free(&m);
	}
	assert_true(differ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_seeds_do_not_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
