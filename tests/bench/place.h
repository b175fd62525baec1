// SPDX-License-Identifier: GPL-2.0-only
// Instances for the rows that run commands: each with a separate device, in the namespace of the
// bench.
#pragma once

#include <stdbool.h>

#include "tests/bench/bench.h"
#include "tests/bench/report.h"
#include "tests/bench/tools.h"

#define PLACE_ROUNDS 5
#define PLACE_MOST   25

struct place;

// `room`: for how many entries, as text; NULL: the default. Ends the bench on failure.
struct place *place_new(const struct bench *b, const char *device, const char *room);
// Also done at exit, for all that are left.
void place_free(struct place *p);
// "weir -n INSTANCE WORDS…": words end with NULL. As tool_run, tool_read and tool_need.
int place_run(const struct place *p, const char *const *words, struct tool_cost *cost);
int place_read(const struct place *p, const char *const *words, struct tool_cost *cost);
void place_need(const struct place *p, const char *const *words, struct tool_cost *cost);

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

// The costs of the rounds of a command. A row that failed once is refused.
struct costs {
	double ns[PLACE_MOST];
	size_t rounds, most; // most 0: PLACE_ROUNDS
	double all_ns;
	uint64_t peak_kb;
	char refused[256]; // its message; empty: it was not
};

// Whether more rounds are due: none after a failure or after a minute.
bool costs_want(const struct costs *c);
// Adds a round: its exit status, the time that counts, and its memory.
void costs_add(struct costs *c, int status, double ns, const struct tool_cost *cost);
// The result of a row. The costs must outlive it.
struct result costs_result(struct costs *c, const char *subject);
