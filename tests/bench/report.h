// SPDX-License-Identifier: GPL-2.0-only
// The table on standard output, each row as soon as it is measured, and build/bench.json.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOUNDS 3

// A goal: at most `factor` times the sum of the named rows (rows of shares: at least). It is
// reached if it holds for the minima and for the medians.
struct bound {
	double factor; // 0: no bound
	// A program of the same row; a row, for Weir in it; or "ROW/PROGRAM". Rows come before the
	// one that names them. Without names, the factor is in nanoseconds.
	const char *of[2];
};

struct row_goal {
	const char *id;
	const char *what;
	struct bound reach[BOUNDS];
	uint64_t reach_kb; // peak memory, at most; 0: no goal
	bool share;        // the bounds are about the share of the empty program's packets
	bool all_succeed;  // no command may fail
	bool lasting;      // a round is a second: a program has a limit for each second
	bool large;        // its tables are: a row ID-spaced follows, which the goals are for
};

struct figures {
	double min, median;
};

// The result of a row for one program.
struct result {
	const char *subject;
	const char *skipped;  // the reason; NULL: it was measured
	struct figures net;   // ns
	const char *baseline; // NULL: nothing is subtracted
	double base_ns;
	struct figures share; // live rows
	double pps;           // live rows
	uint64_t peak_kb;
	size_t failed;   // commands
	size_t repeated; // rounds of live rows, which had lost packets
};

struct report;
// The file is written after each row, so that it is whole whenever the bench ends.
struct report *report_new(int cpu, size_t rounds, const char *path);
// results[0] is Weir's. If it was skipped, the product has refused the row.
void report_row(struct report *r, const struct row_goal *goal, const struct result *results,
		size_t n);
// A row, or what several rows have in common, was not measured.
void report_failure(struct report *r, const char *id, const char *why);
// The last lines of the table and of the file. False: something was not measured for a failure.
bool report_end(struct report *r);
void report_free(struct report *r);
