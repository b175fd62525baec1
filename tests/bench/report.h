// SPDX-License-Identifier: GPL-2.0-only
// The table on standard output, line by line as it is measured, and build/bench.json.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a row is for and what it shall reach (0: nothing was promised).
struct row_goal {
	const char *id;
	const char *what;
	const char *peer;   // name of the subject that the ratio is to; NULL: none
	double reach_ns;    // net, at most
	double reach_ratio; // to the peer, at most; of live rows at least: share of its packets
	uint64_t reach_kb;  // peak memory, at most
};

struct row {
	const struct row_goal *goal;
	const char *subject; // whose time it is
	bool is_peer;        // then its ratio is that of the row it belongs to, to this peer
	const char *baseline;
	double base_ns; // what was taken off
	double net_min, net_median;
	double ratio; // 0: none
	bool share;   // the ratio is a share of the peer's packets: more is better
	double pps;   // live rows
	uint64_t peak_kb;
};

struct report;
struct report *report_new(int cpu, size_t rounds);
void report_row(struct report *r, const struct row *row);
void report_skipped(struct report *r, const struct row_goal *goal, const char *subject,
		    const char *why);
// Writes the file and the last lines of the table. Ends the bench when it cannot.
void report_write(struct report *r, const char *path);
void report_free(struct report *r);
