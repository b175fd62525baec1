// SPDX-License-Identifier: GPL-2.0-only
// Rows "root": the root program and its jump, without a policy.
#include "ctl/base/mem.h"
#include "tests/bench/measure.h"

static const struct row_goal plain = {.id = "root",
				      .what = "the root program and its tail call alone"};
static const struct row_goal armed = {.id = "root-armed",
				      .what = "the same with the deadline of a trial to check"};

static void run(const struct bench *b)
{
	CLEANUP_SUBJECT struct subject off = {0}, on = {0};
	struct draw *d;

	if (!bench_wants(b, plain.id) && !bench_wants(b, armed.id))
		return;
	d = draw_new(&(struct draw_options){.family = 4, .flood = true});
	subject_weir(&(struct weir_options){.root_only = true}, &off);
	subject_weir(&(struct weir_options){.root_only = true, .armed = true}, &on);
	measure(b, &plain, d, ANSWER_DROP, (struct subject *[]){&off}, 1);
	measure(b, &armed, d, ANSWER_DROP, (struct subject *[]){&on}, 1);
	draw_free(d);
}

const struct family root_family = {"root", run};
