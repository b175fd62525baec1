// SPDX-License-Identifier: GPL-2.0-only
// Rows "overlay": addresses blocked in the overlay, with the empty policy.
#include "ctl/base/mem.h"
#include "tests/bench/measure.h"

static const struct row_goal present = {.id = "overlay-100k",
					.what = "100,000 blocked addresses, random present",
					.peer = "kernel-hash",
					.reach_ratio = 1.3};
static const struct row_goal absent = {.id = "overlay-100k-absent",
				       .what = "100,000 blocked addresses, random absent",
				       .peer = "kernel-hash"};

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

static void run(struct bench *b)
{
	CLEANUP_SUBJECT struct subject weir = {0}, hash = {0}, all = {0};
	struct subject *subjects[] = {&weir, &hash, &all};
	CLEANUP_SET struct set s = {0};
	const struct set *sets[] = {&s};

	if (!bench_wants(b, "overlay-100k"))
		return;
	set_hosts(4, 100000, 41, &s);
	subject_weir(&(struct weir_options){.blocked = &s}, &weir);
	subject_hash(&s, &hash);
	subject_xdp_filter("all", sets, 1, &all);
	measure_kind(b, &present, KIND_PRESENT, &s, subjects, 3);
	measure_kind(b, &absent, KIND_ABSENT, &s, subjects, 3);
}

const struct family overlay_family = {"overlay", run};
