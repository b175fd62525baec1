// SPDX-License-Identifier: GPL-2.0-only
// Rows "hosts" and "lpm": one rule with one set, of addresses or of prefixes, from small to large.
#include <stdlib.h>

#include "ctl/base/mem.h"
#include "tests/bench/measure.h"
#include "tests/bench/policy.h"

struct kind_goal {
	struct row_goal goal;
	enum kind kind;
};

struct set_case {
	const char *id; // prefix of the ids
	uint8_t family;
	bool hosts;
	size_t n;
	struct kind_goal rows[3]; // goal.id NULL: end
};

static const struct set_case cases[] = {
	{"hosts-1k",
	 4,
	 true,
	 1000,
	 {{{.id = "hosts-1k",
	    .what = "1,000 addresses, random present",
	    .reach = {{0.75, {"kernel-hash"}}}},
	   KIND_PRESENT}}},
	{"hosts-10k",
	 4,
	 true,
	 10000,
	 {{{.id = "hosts-10k",
	    .what = "10,000 addresses, random present",
	    .reach = {{0.45, {"kernel-hash"}}}},
	   KIND_PRESENT}}},
	{"hosts-100k",
	 4,
	 true,
	 100000,
	 {{{.id = "hosts-100k",
	    .large = true,
	    .what = "100,000 addresses, random present",
	    .reach = {{0.4, {"kernel-hash"}}}},
	   KIND_PRESENT}}},
	{"hosts-1m",
	 4,
	 true,
	 1000000,
	 {{{.id = "hosts-1m",
	    .large = true,
	    .what = "1,000,000 addresses, random present",
	    .reach = {{0.2, {"kernel-hash"}}}},
	   KIND_PRESENT},
	  {{.id = "hosts-1m-absent", .large = true, .what = "1,000,000 addresses, random absent"},
	   KIND_ABSENT},
	  {{.id = "hosts-1m-mix",
	    .large = true,
	    .what = "1,000,000 addresses, every other source present"},
	   KIND_MIX}}},
	{"hosts-100k-v6",
	 6,
	 true,
	 100000,
	 {{{.id = "hosts-100k-v6",
	    .large = true,
	    .what = "100,000 IPv6 addresses, random present",
	    .reach = {{0.6, {"kernel-hash"}}}},
	   KIND_PRESENT}}},
	{"lpm-1k",
	 4,
	 false,
	 1000,
	 {{{.id = "lpm-1k", .what = "1,000 prefixes, random present"}, KIND_PRESENT}}},
	{"lpm-10k",
	 4,
	 false,
	 10000,
	 {{{.id = "lpm-10k",
	    .what = "10,000 prefixes, random present",
	    .reach = {{0.12, {"kernel-lpm"}}}},
	   KIND_PRESENT}}},
	{"lpm-100k",
	 4,
	 false,
	 100000,
	 {{{.id = "lpm-100k",
	    .large = true,
	    .what = "100,000 prefixes, random present",
	    .reach = {{0.12, {"kernel-lpm"}}}},
	   KIND_PRESENT}}},
	{"lpm-1m",
	 4,
	 false,
	 1000000,
	 {{{.id = "lpm-1m",
	    .large = true,
	    .what = "1,000,000 prefixes, random present",
	    .reach = {{0.06, {"kernel-lpm"}}}},
	   KIND_PRESENT},
	  {{.id = "lpm-1m-absent", .large = true, .what = "1,000,000 prefixes, random absent"},
	   KIND_ABSENT},
	  {{.id = "lpm-1m-mix",
	    .large = true,
	    .what = "1,000,000 prefixes, every other source present"},
	   KIND_MIX}}},
	{"lpm-100k-v6",
	 6,
	 false,
	 100000,
	 {{{.id = "lpm-100k-v6",
	    .large = true,
	    .what = "100,000 IPv6 prefixes, random present",
	    .reach = {{0.35, {"kernel-lpm"}}}},
	   KIND_PRESENT}}},
};

static void weir_with_set(const struct bench *b, const struct set *s, struct subject *ret)
{
	CLEANUP_FREE char *list = mem_printf("%s/set.txt", b->folder);
	CLEANUP_FREE char *path = mem_printf("%s/set.weir", b->folder);

	set_write(s, list);
	policy_text("interface lo\nset s { file \"set.txt\" }\ndrop from @s\n", path);
	subject_weir(&(struct weir_options){.policy = path}, ret);
}

static void measure_kind(const struct bench *b, const struct kind_goal *row, const struct set *s,
			 struct subject *const *subjects, size_t n)
{
	CLEANUP_FREE struct addr *sources = mem_zalloc(BENCH_SOURCES, sizeof(*sources));
	enum answer answer = row->kind == KIND_ABSENT    ? ANSWER_PASS
			     : row->kind == KIND_PRESENT ? ANSWER_DROP
							 : ANSWER_ANY;
	struct draw *d;

	set_draw(&s, 1, row->kind, BENCH_SOURCES, 23, sources);
	d = draw_new(&(struct draw_options){.family = s->family, .sources = sources});
	measure(b, &row->goal, d, answer, subjects, n);
	draw_free(d);
}

static bool wants_case(const struct bench *b, const struct set_case *c)
{
	for (size_t r = 0; r < ARRAY_SIZE(c->rows) && c->rows[r].goal.id; r++)
		if (bench_wants_row(b, &c->rows[r].goal))
			return true;
	return false;
}

static void run_case(const struct bench *b, const void *of)
{
	const struct set_case *c = of;
	CLEANUP_SUBJECT struct subject weir, map, floor, all = {0}, ip = {0}, padded = {0};
	struct subject *subjects[] = {&weir, &map, &floor, &all, &ip, &padded};
	CLEANUP_SET struct set s = {0};
	const struct set *sets[] = {&s};
	size_t n = 3;

	(c->hosts ? set_hosts : set_prefixes)(c->family, c->n, c->n + c->family, &s);
	weir_with_set(b, &s, &weir);
	(c->hosts ? subject_hash : subject_lpm)(&s, &map);
	subject_floor_filter(&s, &floor);
	if (c->hosts) {
		subject_xdp_filter("all", sets, 1, &all);
		subject_xdp_filter("ip", sets, 1, &ip);
		n += 2;
	}
	if (c->hosts && c->family == 4) {
		subject_floor_padded(&s, &padded);
		n++;
	}
	for (size_t r = 0; r < ARRAY_SIZE(c->rows) && c->rows[r].goal.id; r++)
		measure_kind(b, &c->rows[r], &s, subjects, n);
}

static void run(const struct bench *b)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (wants_case(b, &cases[i]))
			bench_try(b, cases[i].id, run_case, &cases[i]);
}

const struct family hosts_family = {"hosts, lpm", run};
