// SPDX-License-Identifier: GPL-2.0-only
// Runs subjects in turn and subtracts the time that setting the source takes.
#include "tests/bench/measure.h"

#include <errno.h>
#include <stdlib.h>

#include "ctl/base/mem.h"

#define RUN_NS    25000000 // runs of one subject in one round, after the warm-up
#define RUN_MIN   2048
#define LASTING   1000000000
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
	uint32_t packets;          // of one round
	double *ns[SUBJECT_LOADS]; // per packet, by load and round
};

static void check(const struct row_goal *goal, struct draw *d, const struct subject *s,
		  enum answer answer)
{
	uint32_t wanted = answer == ANSWER_DROP   ? XDP_DROP
			  : answer == ANSWER_SEND ? XDP_TX
						  : XDP_PASS;
	uint32_t verdict;

	for (size_t i = 0; i < CHECKS && answer != ANSWER_ANY; i++) {
		draw_target(d, subject_load(s, i));
		draw_run(d, 1, &verdict);
		if (verdict != wanted)
			bench_fail(EPROTO, "%s: '%s' returns %u instead of %u", goal->id, s->name,
				   verdict, wanted);
	}
}

static void calibrate(struct draw *d, struct series *s)
{
	double ns;

	draw_target(d, subject_load(s->subject, 0));
	draw_run(d, CALIBRATE, NULL);
	ns = (double)draw_run(d, CALIBRATE, NULL) / CALIBRATE;
	ns = RUN_NS / (ns > 1 ? ns : 1);
	s->packets = ns < RUN_MIN ? RUN_MIN : ns > BENCH_SOURCES ? BENCH_SOURCES : (uint32_t)ns;
}

// Long enough that a limit for each second is reached as in traffic of that rate.
static double run_lasting(const struct draw *d)
{
	uint64_t ns = 0, packets = 0;

	for (; ns < LASTING; packets += BENCH_SOURCES)
		ns += draw_run(d, BENCH_SOURCES, NULL);
	return (double)ns / (double)packets;
}

// The warm-up brings the subject's tables back into the caches, which the others have filled.
static double run_once(struct draw *d, const struct series *s, size_t load, bool lasting)
{
	draw_target(d, subject_load(s->subject, load));
	if (lasting)
		return run_lasting(d);
	draw_run(d, s->packets / 3, NULL);
	return (double)draw_run(d, s->packets, NULL) / s->packets;
}

static void run_rounds(size_t rounds, struct draw *d, struct series *series, size_t n, bool lasting)
{
	for (size_t s = 0; s < n; s++)
		calibrate(d, &series[s]);
	for (size_t round = 0; round < rounds; round++)
		for (size_t load = 0; load < SUBJECT_LOADS; load++)
			for (size_t s = 0; s < n; s++) {
				struct series *next = &series[(s + round) % n];

				next->ns[load][round] = run_once(d, next, load, lasting);
			}
}

static double least_of_all(const struct series *s, size_t rounds)
{
	double least[SUBJECT_LOADS];

	for (size_t load = 0; load < SUBJECT_LOADS; load++)
		least[load] = measure_min(s->ns[load], rounds);
	return measure_min(least, SUBJECT_LOADS);
}

// The medians over the loads of the minimum, and of the median, over the rounds of each.
static struct figures net_of(const struct series *s, const struct series *base, size_t rounds)
{
	CLEANUP_FREE double *net = mem_zalloc(rounds, sizeof(*net));
	double least[SUBJECT_LOADS], middle[SUBJECT_LOADS], base_ns = least_of_all(base, rounds);

	for (size_t load = 0; load < SUBJECT_LOADS; load++) {
		for (size_t r = 0; r < rounds; r++)
			net[r] = s->ns[load][r] - base->ns[load][r];
		least[load] = measure_min(s->ns[load], rounds) - base_ns;
		middle[load] = measure_median(net, rounds);
	}
	return (struct figures){measure_median(least, SUBJECT_LOADS),
				measure_median(middle, SUBJECT_LOADS)};
}

static void measure_all(size_t rounds, struct draw *d, struct series *series, size_t n,
			bool lasting)
{
	for (size_t s = 0; s < n; s++)
		for (size_t load = 0; load < SUBJECT_LOADS; load++)
			series[s].ns[load] = mem_zalloc(rounds, sizeof(double));
	run_rounds(rounds, d, series, n, lasting);
}

static void free_series(struct series *series, size_t n)
{
	for (size_t s = 0; s < n; s++)
		for (size_t load = 0; load < SUBJECT_LOADS; load++)
			free(series[s].ns[load]);
}

static void baseline_of(const struct draw *d, struct subject *ret)
{
	const struct draw_options *o = draw_what(d);

	if (o->sent)
		subject_sender(o->grow, ret);
	else
		subject_empty(ret);
}

struct row {
	const struct row_goal *goal;
	struct draw *d;
	enum answer answer;
	struct subject *const *subjects;
	size_t n;
};

static void measure_row(const struct bench *b, const void *of)
{
	const struct row *row = of;
	struct subject *const *subjects = row->subjects;
	struct draw *d = row->d;
	struct series series[MEASURE_SUBJECTS + 1] = {0};
	struct result results[MEASURE_SUBJECTS] = {0};
	CLEANUP_SUBJECT struct subject baseline = {0};
	size_t used = 1;

	baseline_of(d, &baseline);
	series[0].subject = &baseline;
	for (size_t s = 0; s < row->n; s++) {
		if (subjects[s]->skipped)
			continue;
		check(row->goal, d, subjects[s], row->answer);
		series[used++].subject = subjects[s];
	}
	measure_all(b->rounds, d, series, used, row->goal->lasting);
	for (size_t s = 0, next = 1; s < row->n; s++) {
		results[s] = (struct result){.subject = subjects[s]->name,
					     .skipped = subjects[s]->skipped};
		if (results[s].skipped)
			continue;
		results[s].baseline = "draw";
		results[s].base_ns = least_of_all(&series[0], b->rounds);
		results[s].net = net_of(&series[next++], &series[0], b->rounds);
	}
	report_row(b->report, row->goal, results, row->n);
	free_series(series, used);
}

// The packets of large tables one after the other without a pause, which no goal is for, and then
// spaced.
static void measure_both(const struct bench *b, const struct row *row)
{
	CLEANUP_FREE char *id = mem_printf("%s-spaced", row->goal->id);
	CLEANUP_FREE char *what = mem_printf("%s; spaced", row->goal->what);
	const struct row_goal plain = {.id = row->goal->id, .what = row->goal->what};
	struct row_goal spaced = *row->goal;
	struct row part = *row;

	spaced.id = id;
	spaced.what = what;
	part.goal = &plain;
	if (bench_wants(b, plain.id))
		bench_try(b, plain.id, measure_row, &part);
	if (!bench_wants(b, spaced.id))
		return;
	part.goal = &spaced;
	draw_space(row->d, true);
	bench_try(b, spaced.id, measure_row, &part);
	draw_space(row->d, false);
}

void measure(const struct bench *b, const struct row_goal *goal, struct draw *d, enum answer answer,
	     struct subject *const *subjects, size_t n)
{
	const struct row row = {goal, d, answer, subjects, n};

	if (goal->large)
		measure_both(b, &row);
	else if (bench_wants(b, goal->id))
		bench_try(b, goal->id, measure_row, &row);
}
