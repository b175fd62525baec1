// SPDX-License-Identifier: GPL-2.0-only
// Interleaved measurement: every subject in turn on the same packets, round after round.
#pragma once

#include <linux/bpf.h>

#include "tests/bench/bench.h"
#include "tests/bench/draw.h"
#include "tests/bench/report.h"
#include "tests/bench/subject.h"

#define MEASURE_SUBJECTS 8

// The verdict that a subject must return. Otherwise the bench ends, as it would measure something
// else.
enum answer {
	ANSWER_DROP,
	ANSWER_PASS,
	ANSWER_SEND,
	ANSWER_ANY,
};

// Does nothing if the row is not requested. Where its tables are large, measures it back to back
// and spaced. subjects[0] is Weir, the others are peers. A skipped subject gets a line with the
// reason.
void measure(const struct bench *b, const struct row_goal *goal, struct draw *d, enum answer answer,
	     struct subject *const *subjects, size_t n);

// Minimum and median; the median sorts the array.
double measure_median(double *at, size_t n);
double measure_min(const double *at, size_t n);
