// SPDX-License-Identifier: GPL-2.0-only
// The interleaved run: every subject in turn on the same packets, round after round.
#pragma once

#include <linux/bpf.h>

#include "tests/bench/bench.h"
#include "tests/bench/draw.h"
#include "tests/bench/report.h"
#include "tests/bench/subject.h"

#define MEASURE_SUBJECTS 8

// What a subject has to answer; ends the bench otherwise, because it then measures something else.
enum answer {
	ANSWER_DROP,
	ANSWER_PASS,
	ANSWER_SEND,
	ANSWER_ANY,
};

// subjects[0] is the one that the row is about, the others are peers. Those that are skipped get a row that
// says so.
void measure(const struct bench *b, const struct row_goal *goal, struct draw *d, enum answer answer,
	     struct subject *const *subjects, size_t n);

// Minimum and median; sorts.
double measure_median(double *at, size_t n);
double measure_min(const double *at, size_t n);
