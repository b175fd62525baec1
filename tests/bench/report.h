// SPDX-License-Identifier: GPL-2.0-only
// The table on standard output, each line as soon as it is measured, and build/bench.json.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a row measures and its goals (0: no goal).
struct row_goal {
	const char *id;
	const char *what;
	const char *peer;   // subject to which the ratio is; NULL: no ratio
	double reach_ns;    // net, at most
	double reach_ratio; // to the peer, at most; live rows: share of its packets, at least
	uint64_t reach_kb;  // peak memory, at most
};

struct row {
	const struct row_goal *goal;
	const char *subject; // whose time it is
	bool is_peer;        // the ratio is that of the row's subject to this peer
	const char *baseline;
	double base_ns; // subtracted
	double net_min, net_median;
	double ratio; // 0: no ratio
	bool share;   // the ratio is a share of the peer's packets: more is better
	double pps;   // live rows
	uint64_t peak_kb;
};

struct report;
struct report *report_new(int cpu, size_t rounds);
void report_row(struct report *r, const struct row *row);
void report_skipped(struct report *r, const struct row_goal *goal, const char *subject,
		    const char *why);
// Writes the file and the last lines of the table. Ends the bench on failure.
void report_write(struct report *r, const char *path);
void report_free(struct report *r);
