// SPDX-License-Identifier: GPL-2.0-only
// Rows "overlay": addresses blocked in the overlay, with a policy that has no rules.
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/policy.h"

struct overlay_case {
	size_t n;
	struct row_goal present, absent; // absent.id NULL: no such row
};

static const struct overlay_case cases[] = {
	{100000,
	 {.id = "overlay-100k",
	  .large = true,
	  .what = "100,000 blocked addresses, random present",
	  .reach = {{0.35, {"kernel-hash"}}}},
	 {.id = "overlay-100k-absent",
	  .large = true,
	  .what = "100,000 blocked addresses, random absent",
	  .reach = {{0.70, {"kernel-hash"}}}}},
	{1000000,
	 {.id = "overlay-1m",
	  .large = true,
	  .what = "1,000,000 blocked addresses, random present",
	  .reach = {{0.75, {"kernel-hash"}}}},
	 {0}},
};

static void measure_kind(const struct bench *b, const struct row_goal *goal, enum kind kind,
			 const struct set *s, struct subject *const *subjects, size_t n)
{
	CLEANUP_FREE struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	struct draw *d;

	set_draw(&s, 1, kind, BENCH_SOURCES, 31, sources);
	d = draw_new(&(struct draw_options){.family = 4, .sources = sources});
	measure(b, goal, d, kind == KIND_PRESENT ? ANSWER_DROP : ANSWER_PASS, subjects, n);
	draw_free(d);
}

static void run_case(const struct bench *b, const void *of)
{
	const struct overlay_case *c = of;
	CLEANUP_FREE char *path = mem_printf("%s/empty.weir", b->folder);
	CLEANUP_SUBJECT struct subject weir, hash, all, floor;
	struct subject *subjects[] = {&weir, &hash, &all, &floor};
	CLEANUP_SET struct set s = {0};
	const struct set *sets[] = {&s};

	set_hosts(4, c->n, 41, &s);
	policy_text("interface lo\ndefault pass\n", path);
	subject_weir(&(struct weir_options){.policy = path, .blocked = &s}, &weir);
	subject_hash(&s, &hash);
	subject_xdp_filter("all", sets, 1, &all);
	subject_floor_overlay(&s, &floor);
	if (bench_wants_row(b, &c->present))
		measure_kind(b, &c->present, KIND_PRESENT, &s, subjects, ARRAY_SIZE(subjects));
	if (c->absent.id && bench_wants_row(b, &c->absent))
		measure_kind(b, &c->absent, KIND_ABSENT, &s, subjects, ARRAY_SIZE(subjects));
}

static void run(const struct bench *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (bench_wants_row(b, &cases[i].present) ||
		    (cases[i].absent.id && bench_wants_row(b, &cases[i].absent)))
			bench_try(b, cases[i].present.id, run_case, &cases[i]);
}

const struct family overlay_family = {"overlay", run};
