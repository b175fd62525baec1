// SPDX-License-Identifier: GPL-2.0-only
// Rows "filter": rules over several fields, without sets and with two sets of prefixes.
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/policy.h"

// Only rules

struct rules_case {
	struct row_goal goal;
	enum rules_shape shape;
	size_t n;
	const char *quick, *first; // a rule before the others: a quick rule, a rule of the policy
};

#define OTHER_RULE "drop proto udp from any port 123 to any length 400-1500"

static const struct rules_case rules_cases[] = {
	{{.id = "filter-1", .what = "one rule, matching", .reach = {{2.5, {"linear"}}}},
	 .shape = RULES_FIELDS,
	 .n = 1},
	{{.id = "filter-64", .what = "64 rules over eight fields, the last one matches"},
	 .shape = RULES_FIELDS,
	 .n = 64},
	{{.id = "filter-quick",
	  .what = "62 rules over eight fields, the last one matches, after a quick rule"},
	 .shape = RULES_FIELDS,
	 .n = 62,
	 .quick = OTHER_RULE},
	{{.id = "filter-written", .what = "the same rules, all of the policy"},
	 .shape = RULES_FIELDS,
	 .n = 62,
	 .first = OTHER_RULE},
	{{.id = "filter-1000",
	  .what = "1000 rules, each from a network of its own; the last one matches"},
	 .shape = RULES_FROM,
	 .n = 1000},
	{{.id = "filter-4096",
	  .what = "4096 rules, each from a network of its own; the last one matches",
	  .reach = {{2.2, {"filter-64"}}, {0.010, {"linear"}}}},
	 .shape = RULES_FROM,
	 .n = 4096},
	{{.id = "filter-4096-worst",
	  .what = "4096 rules, every summary bit set, no match until the last word",
	  .reach = {{2.2, {"filter-64"}}, {0.010, {"linear"}}}},
	 .shape = RULES_WORST,
	 .n = 4096},
};

static struct addr *any_sources(uint8_t family, uint64_t seed)
{
	struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	CLEANUP_SET struct set one = {0};
	const struct set *sets[] = {&one};

	set_hosts(family, 1, seed, &one);
	set_draw(sets, 1, KIND_ABSENT, BENCH_SOURCES, seed, sources);
	return sources;
}

static void run_rules(const struct bench *b, const void *of)
{
	const struct rules_case *c = of;
	CLEANUP_FREE struct addr *sources = any_sources(4, 5);
	CLEANUP_FREE struct bench_rule *linear = mem_zalloc(c->n, sizeof(*linear));
	CLEANUP_FREE char *path = mem_printf("%s/rules.weir", b->folder);
	CLEANUP_SUBJECT struct subject weir = {0}, scan = {0};
	const struct rules rules = {.shape = c->shape,
				    .family = 4,
				    .n = c->n,
				    .first = c->first,
				    .last_matches = true,
				    .linear = linear};
	struct draw *d = draw_new(&(struct draw_options){.family = 4, .sources = sources});

	policy_rules(&rules, path);
	subject_weir(&(struct weir_options){.policy = path, .quick = c->quick}, &weir);
	subject_linear(linear, c->n, &scan);
	measure(b, &c->goal, d, ANSWER_DROP, (struct subject *[]){&weir, &scan}, 2);
	draw_free(d);
}

// Rules and sets

struct sets_case {
	struct row_goal goal;
	uint8_t family;
	bool vlan;
	enum kind kind;
};

#define SETS "64 rules over eight fields, two sets of 10,000 prefixes, "

static const struct sets_case sets_cases[] = {
	{{.id = "filter-64-10k-v4",
	  .what = SETS "IPv4, sources in none",
	  .reach = {{0.22, {"xdp-filter"}}, {1.8, {"floor-filter"}}, {0.12, {"kernel-lpm"}}}},
	 .family = 4,
	 .kind = KIND_ABSENT},
	{{.id = "filter-64-10k-v4-present",
	  .what = SETS "IPv4, sources in one of them",
	  .reach = {{0.22, {"filter-64-10k-v4/xdp-filter"}},
		    {1.8, {"floor-filter"}},
		    {0.12, {"kernel-lpm"}}}},
	 .family = 4,
	 .kind = KIND_PRESENT},
	{{.id = "filter-64-10k-v4-mix", .what = SETS "IPv4, every other source in one of them"},
	 .family = 4,
	 .kind = KIND_MIX},
	{{.id = "filter-64-10k-vlan",
	  .what = SETS "IPv4 in VLAN, sources in none",
	  .reach = {{0.35, {"xdp-filter"}}}},
	 .family = 4,
	 .vlan = true,
	 .kind = KIND_ABSENT},
	{{.id = "filter-64-10k-v6",
	  .what = SETS "IPv6, sources in none",
	  .reach = {{0.30, {"xdp-filter"}}, {0.20, {"kernel-lpm"}}}},
	 .family = 6,
	 .kind = KIND_ABSENT},
	{{.id = "filter-64-10k-v6-present",
	  .what = SETS "IPv6, sources in one of them",
	  .reach = {{0.30, {"filter-64-10k-v6/xdp-filter"}}, {0.20, {"kernel-lpm"}}}},
	 .family = 6,
	 .kind = KIND_PRESENT},
};

// Splits the set into two files, prefixes alternating.
static void write_halves(const struct set *s, char *const paths[2])
{
	for (size_t half = 0; half < 2; half++) {
		struct set part = {.at = mem_zalloc(s->n / 2 + 1, sizeof(*part.at))};

		for (size_t i = half; i < s->n; i += 2)
			part.at[part.n++] = s->at[i];
		set_write(&part, paths[half]);
		set_free(&part);
	}
}

static void weir_with_sets(const struct bench *b, const struct set *s, struct subject *ret)
{
	CLEANUP_FREE char *first = mem_printf("%s/first.txt", b->folder);
	CLEANUP_FREE char *second = mem_printf("%s/second.txt", b->folder);
	CLEANUP_FREE char *path = mem_printf("%s/sets.weir", b->folder);
	const struct rules rules = {.shape = RULES_FIELDS,
				    .family = s->family,
				    .n = 62,
				    .set_files = {"first.txt", "second.txt"}};

	write_halves(s, (char *[]){first, second});
	policy_rules(&rules, path);
	subject_weir(&(struct weir_options){.policy = path}, ret);
}

static void run_sets(const struct bench *b, const struct sets_case *c, const struct set *s,
		     struct subject *const *subjects, size_t n)
{
	CLEANUP_FREE struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	enum answer answer = c->kind == KIND_ABSENT    ? ANSWER_PASS
			     : c->kind == KIND_PRESENT ? ANSWER_DROP
						       : ANSWER_ANY;
	struct draw *d;

	set_draw(&s, 1, c->kind, BENCH_SOURCES, 11, sources);
	d = draw_new(
		&(struct draw_options){.family = c->family, .vlan = c->vlan, .sources = sources});
	measure(b, &c->goal, d, answer, subjects, n);
	draw_free(d);
}

static void run_family(const struct bench *b, const void *of)
{
	const uint8_t family = *(const uint8_t *)of;
	CLEANUP_SUBJECT struct subject weir, lpm, all, ip, floor = {0};
	CLEANUP_SET struct set s = {0};
	const struct set *sets[] = {&s};

	set_prefixes(family, 20000, family, &s);
	weir_with_sets(b, &s, &weir);
	subject_lpm(&s, &lpm);
	subject_xdp_filter("all", sets, 1, &all);
	subject_xdp_filter("ip", sets, 1, &ip);
	subject_floor_filter(&s, &floor);
	for (size_t i = 0; i < ARRAY_SIZE(sets_cases); i++) {
		const struct sets_case *c = &sets_cases[i];
		// xdp-filter has the first address of each prefix, so only absent sources are
		// equivalent. The LPM program and the floor do not parse tags.
		struct subject *tagged[] = {&weir, &all, &ip};
		struct subject *absent[] = {&weir, &all, &ip, &lpm, &floor};
		struct subject *present[] = {&weir, &lpm, &floor};

		if (c->family != family || !bench_wants(b, c->goal.id))
			continue;
		if (c->vlan)
			run_sets(b, c, &s, tagged, ARRAY_SIZE(tagged));
		else if (c->kind == KIND_ABSENT)
			run_sets(b, c, &s, absent, ARRAY_SIZE(absent));
		else
			run_sets(b, c, &s, present, ARRAY_SIZE(present));
	}
}

static bool wants_family(const struct bench *b, uint8_t family)
{
	for (size_t i = 0; i < ARRAY_SIZE(sets_cases); i++)
		if (sets_cases[i].family == family && bench_wants(b, sets_cases[i].goal.id))
			return true;
	return false;
}

static void run(const struct bench *b)
{
	static const uint8_t families[] = {4, 6};

	for (size_t i = 0; i < ARRAY_SIZE(rules_cases); i++)
		if (bench_wants(b, rules_cases[i].goal.id))
			bench_try(b, rules_cases[i].goal.id, run_rules, &rules_cases[i]);
	for (size_t i = 0; i < ARRAY_SIZE(families); i++)
		if (wants_family(b, families[i]))
			bench_try(b, families[i] == 4 ? "filter-64-10k-v4" : "filter-64-10k-v6",
				  run_family, &families[i]);
}

const struct family filter_family = {"filter", run};
