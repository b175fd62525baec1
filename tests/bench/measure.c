// SPDX-License-Identifier: GPL-2.0-only
// Runs subjects in turn and subtracts the time that setting the source takes.
#include "tests/bench/measure.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/base/mem.h"

#define RUN_NS    25000000 // of one subject in one round, after the warm-up
#define RUN_MIN   2048
#define CALIBRATE 2048
#define CHECKS    64

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

double measure_median(double *at, size_t n)
{
	qsort(at, n, sizeof(*at), compare);
	return n % 2 ? at[n / 2] : (at[n / 2 - 1] + at[n / 2]) / 2;
}

double measure_min(const double *at, size_t n)
{
	double least = at[0];

	for (size_t i = 1; i < n; i++)
		least = at[i] < least ? at[i] : least;
	return least;
}

struct series {
	struct subject *subject;
	uint32_t packets; // of one round
	double *ns;       // per packet, by round
};

static void check(const struct row_goal *goal, struct draw *d, const struct subject *s,
		  enum answer answer)
{
	uint32_t wanted = answer == ANSWER_DROP   ? XDP_DROP
			  : answer == ANSWER_SEND ? XDP_TX
						  : XDP_PASS;
	uint32_t verdict;

	draw_target(d, s->program);
	for (int i = 0; i < CHECKS && answer != ANSWER_ANY; i++) {
		draw_run(d, 1, &verdict);
		if (verdict != wanted)
			bench_fail(EPROTO, "%s: '%s' returns %u instead of %u", goal->id, s->name,
				   verdict, wanted);
	}
}

static void calibrate(struct draw *d, struct series *s)
{
	double ns;

	draw_target(d, s->subject->program);
	draw_run(d, CALIBRATE, NULL);
	ns = (double)draw_run(d, CALIBRATE, NULL) / CALIBRATE;
	ns = RUN_NS / (ns > 1 ? ns : 1);
	s->packets = ns < RUN_MIN ? RUN_MIN : ns > BENCH_SOURCES ? BENCH_SOURCES : (uint32_t)ns;
}

// The warm-up brings the subject's tables back into the caches, which the others have filled.
static double run_once(struct draw *d, const struct series *s)
{
	draw_target(d, s->subject->program);
	draw_run(d, s->packets / 3, NULL);
	return (double)draw_run(d, s->packets, NULL) / s->packets;
}

static void run_rounds(size_t rounds, struct draw *d, struct series *series, size_t n)
{
	for (size_t s = 0; s < n; s++)
		calibrate(d, &series[s]);
	for (size_t round = 0; round < rounds; round++)
		for (size_t s = 0; s < n; s++) {
			struct series *next = &series[(s + round) % n];

			next->ns[round] = run_once(d, next);
		}
}

static struct row row_of(const struct row_goal *goal, const struct series *s,
			 const struct series *base, size_t rounds)
{
	CLEANUP_FREE double *net = mem_zalloc(rounds, sizeof(*net));
	struct row row = {.goal = goal, .subject = s->subject->name, .baseline = "draw"};

	for (size_t r = 0; r < rounds; r++)
		net[r] = s->ns[r] - base->ns[r];
	row.base_ns = measure_min(base->ns, rounds);
	row.net_min = measure_min(s->ns, rounds) - row.base_ns;
	row.net_median = measure_median(net, rounds);
	return row;
}

// The row of the subject has the ratio to the peer that the goal names. Each peer has a row as well.
static void report(const struct bench *b, const struct row_goal *goal, const struct series *series,
		   size_t n)
{
	struct row own = row_of(goal, &series[1], &series[0], b->rounds);

	for (size_t s = 2; goal->peer && s < n; s++)
		if (!strcmp(series[s].subject->name, goal->peer))
			own.ratio = own.net_min /
				    row_of(goal, &series[s], &series[0], b->rounds).net_min;
	report_row(b->report, &own);
	for (size_t s = 2; s < n; s++) {
		struct row peer = row_of(goal, &series[s], &series[0], b->rounds);

		peer.is_peer = true;
		peer.ratio = own.net_min / peer.net_min;
		report_row(b->report, &peer);
	}
}

void measure(const struct bench *b, const struct row_goal *goal, struct draw *d, enum answer answer,
	     struct subject *const *subjects, size_t n)
{
	struct series series[MEASURE_SUBJECTS + 1] = {0};
	struct subject empty;
	size_t used = 1;

	if (draw_what(d)->sent)
		subject_sender(draw_what(d)->grow, &empty);
	else
		subject_empty(&empty);
	series[0].subject = &empty;
	for (size_t s = 0; s < n; s++) {
		if (!subjects[s]->skipped)
			series[used++].subject = subjects[s];
	}
	for (size_t s = 0; s < used; s++) {
		series[s].ns = mem_zalloc(b->rounds, sizeof(double));
		if (s)
			check(goal, d, series[s].subject, answer);
	}
	run_rounds(b->rounds, d, series, used);
	report(b, goal, series, used);
	for (size_t s = 0; s < n; s++)
		if (subjects[s]->skipped)
			report_skipped(b->report, goal, subjects[s]->name, subjects[s]->skipped);
	for (size_t s = 0; s < used; s++)
		free(series[s].ns);
	subject_free(&empty);
}
