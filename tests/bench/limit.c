// SPDX-License-Identifier: GPL-2.0-only
// Rows "limit": a rate for each source.
#include "ctl/base/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/policy.h"

#define SOURCES 100000
#define ROOM    131072 // in the table per source and in the LRU map

static const struct row_goal known = {
	.id = "limit-source",
	.large = true,
	.what = "a rate for each source, 100,000 sources, not exceeded",
	.reach = {{0.5, {"kernel-lru"}}, {2.0, {"floor-limit"}}}};
static const struct row_goal flood = {.id = "limit-source-flood",
				      .large = true,
				      .what = "a rate for each source, every packet from a new one",
				      .reach = {{0.15, {"kernel-lru"}}}};

static struct draw *draw_known(void)
{
	CLEANUP_FREE struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	CLEANUP_SET struct set s = {0};
	const struct set *sets[] = {&s};

	set_hosts(4, SOURCES, 43, &s);
	set_draw(sets, 1, KIND_PRESENT, BENCH_SOURCES, 47, sources);
	return draw_new(&(struct draw_options){.family = 4, .sources = sources});
}

static void run(const struct bench *b)
{
	CLEANUP_FREE char *path = mem_printf("%s/limit.weir", b->folder);
	CLEANUP_SUBJECT struct subject weir = {0}, lru = {0}, floor = {0};
	struct subject *subjects[] = {&weir, &lru, &floor};
	struct draw *listed, *endless;

	if (!bench_wants_row(b, &known) && !bench_wants_row(b, &flood))
		return;
	listed = draw_known();
	endless = draw_new(&(struct draw_options){.family = 4, .flood = true});
	policy_text("interface lo\ndrop over 1M/s per source max 131072\n", path);
	subject_weir(&(struct weir_options){.policy = path}, &weir);
	subject_lru(ROOM, &lru);
	subject_floor_limit(&floor);
	measure(b, &known, listed, ANSWER_PASS, subjects, ARRAY_SIZE(subjects));
	measure(b, &flood, endless, ANSWER_PASS, subjects, ARRAY_SIZE(subjects));
	draw_free(listed);
	draw_free(endless);
}

const struct family limit_family = {"limit", run};
