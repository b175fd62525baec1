// SPDX-License-Identifier: GPL-2.0-only
// The bench: families of rows. Each row measures some programs in turn on the same packets.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/err.h"

struct report;
struct row_goal;

struct bench {
	struct report *report;
	const char *weir; // the program, for the rows that run commands
	char *folder;     // for policies and lists, removed at the end
	size_t rounds;
	int cpu;            // on which packets run
	const char *katran; // folder of Katran's objects; NULL: its rows are left out
	// Prefixes of the requested ids; n 0: all rows.
	const char *const *wanted;
	size_t wanted_n;
};

// True if the row is requested; bench_wants_row: or, where its tables are large, its spaced one.
bool bench_wants(const struct bench *b, const char *id);
bool bench_wants_row(const struct bench *b, const struct row_goal *goal);

// One file each. `run` adds the rows to the report.
struct family {
	const char *name;
	void (*run)(const struct bench *b);
};
extern const struct family root_family, filter_family, hosts_family, overlay_family, limit_family,
	balance_family, katran_family, live_family, control_family, entries_family, commands_family;

// Makes the folder and a network namespace, and binds the thread to the CPU. Undone at exit.
void bench_begin(struct bench *b);
int bench_last_cpu(void);      // among the CPUs that the process may use
void bench_use_all_cpus(void); // for rows that run commands; they come last

// Runs a part of the bench: a row, or rows that have their tables in common. A bench_die() inside
// ends only this part: the report gets a failed row `id`. Parts may contain others. Resources of
// the part are then kept until the end of the bench.
typedef void bench_part(const struct bench *b, const void *of);
void bench_try(const struct bench *b, const char *id, bench_part *part, const void *of);

// Ends the part, or without one the bench with status 2: a requirement is missing.
_Noreturn void bench_die(const struct err *err);
__attribute__((format(printf, 2, 3))) _Noreturn void bench_fail(int code, const char *fmt, ...);

// CPU time of the thread: time of other threads on the CPU does not count.
uint64_t bench_cpu_ns(void);
uint64_t bench_now_ns(void); // monotonic
