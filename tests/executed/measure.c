// SPDX-License-Identifier: GPL-2.0-only
// Takes the place of the bench's measure(): counts what Weir and the floors execute for packets of
// the row, and compares verdict and frame of each with the kernel's.
#include "tests/bench/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>

#include "ctl/base/mem.h"
#include "ctl/datapath/clock.h"
#include "tests/executed/counts.h"
#include "tests/executed/emulate.h"

#define PACKETS  31
#define LOOPBACK 1

// The most that samples cost a packet that is not chosen.
#define SAMPLED_MOST  20u
#define SAMPLED_LINES 1u

struct answered {
	uint32_t verdict, bytes;
	uint8_t frame[FRAME_MOST];
};

static void ask_kernel(int program, const uint8_t *frame, size_t bytes, struct answered *ret)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame, .data_size_in = (uint32_t)bytes,
		    .data_out = ret->frame, .data_size_out = sizeof(ret->frame), .repeat = 1);

	if (bpf_prog_test_run_opts(program, &opts))
		bench_fail(errno, "cannot run a packet");
	ret->verdict = opts.retval;
	ret->bytes = opts.data_size_out;
}

// State that the row leaves for later packets, such as pins of flows, is then in the maps.
static void warm_up(int program, struct draw *d)
{
	struct answered answered;
	const uint8_t *frame;

	for (size_t i = 0; i < 2 * PACKETS; i++) {
		size_t bytes = draw_packet(d, i % PACKETS, &frame);

		ask_kernel(program, frame, bytes, &answered);
	}
}

static uint64_t jiffies(void)
{
	struct err err = {0};
	struct clock now;
	CLEANUP_FD int program = -1;

	if (clock_load(&program, &err) || clock_read(program, &now, &err))
		bench_die(&err);
	return now.jiffies;
}

static bool expected(enum answer answer, uint32_t verdict)
{
	switch (answer) {
	case ANSWER_DROP:
		return verdict == XDP_DROP;
	case ANSWER_PASS:
		return verdict == XDP_PASS;
	case ANSWER_SEND:
		return verdict == XDP_TX;
	case ANSWER_ANY:
		return true;
	}
	return false;
}

// NULL, or how they differ; the caller frees it.
static char *difference(const struct emulation *ours, const struct answered *kernel)
{
	if (ours->verdict != kernel->verdict)
		return mem_printf("emulation returns %u, the kernel %u", ours->verdict,
				  kernel->verdict);
	if (ours->bytes != kernel->bytes)
		return mem_printf("emulation leaves %zu bytes, the kernel %u", ours->bytes,
				  kernel->bytes);
	for (size_t i = 0; i < ours->bytes; i++)
		if (ours->frame[i] != kernel->frame[i])
			return mem_printf("emulation leaves 0x%02x in byte %zu, the kernel 0x%02x",
					  ours->frame[i], i, kernel->frame[i]);
	return NULL;
}

// NULL, or why the packet could not be counted; the caller frees it.
static char *count_packet(struct machine *m, int program, struct draw *d, size_t n,
			  enum answer answer, struct emulation *ret)
{
	struct answered kernel;
	struct emulation ours;
	const uint8_t *frame;
	size_t bytes = draw_packet(d, n, &frame);
	const char *why = emulate(m, program, frame, bytes, &ours);
	char *differs;

	if (why)
		return mem_strdup(why);
	ask_kernel(program, frame, bytes, &kernel);
	differs = difference(&ours, &kernel);
	if (differs)
		return differs;
	if (!expected(answer, kernel.verdict))
		return mem_printf("the verdict is %u, which the row does not expect",
				  kernel.verdict);
	*ret = ours;
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

// The cost of a program for packets of a row.
struct taken {
	struct count count;
	struct machine *machine;
};

static uint64_t median(uint64_t *at)
{
	qsort(at, PACKETS, sizeof(*at), compare);
	return at[PACKETS / 2];
}

// NULL, or why the packets could not be counted; the caller frees it, and the machine in any case.
static char *count_packets(struct draw *d, enum answer answer, int program, struct taken *ret)
{
	uint64_t executed[PACKETS], lines[PACKETS], large[PACKETS];
	struct emulation one = {0};

	warm_up(program, d);
	ret->machine = emulate_new(jiffies(), LOOPBACK);
	for (size_t i = 0; i < PACKETS; i++) {
		char *why = count_packet(ret->machine, program, d, i, answer, &one);

		if (why)
			return why;
		executed[i] = one.executed;
		lines[i] = one.lines;
		large[i] = one.large;
	}
	ret->count = (struct count){
		.median = median(executed), .lines = median(lines), .large = median(large)};
	ret->count.least = executed[0];
	ret->count.most = executed[PACKETS - 1];
	return NULL;
}

// Compares Weir's program with its budget; other programs are only shown.
static struct count count(struct report *r, const char *id, struct draw *d, enum answer answer,
			  int program, bool weir)
{
	struct taken taken = {0};
	CLEANUP_FREE char *why = count_packets(d, answer, program, &taken);
	const struct machine *m = taken.machine;

	if (why)
		counts_fail(r, id, why);
	else if (weir)
		counts_add(r, id, &taken.count, m->helpers, m->n_helpers);
	else
		counts_show(r, id, &taken.count, m->helpers, m->n_helpers);
	emulate_free(taken.machine);
	return taken.count;
}

static bool is_dearer(const struct count *on, const struct count *off)
{
	return on->median > off->median + SAMPLED_MOST || on->lines > off->lines + SAMPLED_LINES;
}

// While samples are taken, but not of these packets. A pin that has become older in the meantime
// costs more instructions: then packets without samples are counted again.
static void count_sampled(struct report *r, const char *row, struct draw *d, enum answer answer,
			  const struct subject *weir, struct count off)
{
	CLEANUP_FREE char *id = mem_printf("%s/sampled", row);
	CLEANUP_FD int program = subject_weir_policy(weir);
	struct count on;

	subject_weir_sample(weir, 1);
	on = count(r, id, d, answer, program, false);
	subject_weir_sample(weir, 0);
	if (is_dearer(&on, &off))
		off = count(r, row, d, answer, program, false);
	if (!is_dearer(&on, &off))
		return;
	counts_fail(
		r, id,
		mem_printf("%llu instructions and %llu cache lines more while samples are taken: "
			   "at most %u and %u",
			   (unsigned long long)(on.median - off.median),
			   (unsigned long long)(on.lines - off.lines), SAMPLED_MOST,
			   SAMPLED_LINES));
}

static void count_floor(struct report *r, const char *row, struct draw *d, enum answer answer,
			const struct subject *floor)
{
	CLEANUP_FREE char *id = mem_printf("%s/%s", row, floor->name);

	count(r, id, d, answer, subject_load(floor, 0), false);
}

void measure(const struct bench *b, const struct row_goal *goal, struct draw *d, enum answer answer,
	     struct subject *const *subjects, size_t n)
{
	CLEANUP_FD int program = -1;
	struct count off;

	if (!bench_wants(b, goal->id))
		return;
	if (subjects[0]->skipped) {
		counts_fail(b->report, goal->id, subjects[0]->skipped);
		return;
	}
	program = subject_weir_policy(subjects[0]);
	off = count(b->report, goal->id, d, answer, program, true);
	count_sampled(b->report, goal->id, d, answer, subjects[0], off);
	for (size_t i = 1; i < n; i++)
		if (subjects[i]->loads)
			count_floor(b->report, goal->id, d, answer, subjects[i]);
}
