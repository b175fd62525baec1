// SPDX-License-Identifier: GPL-2.0-only
// Finds backends that do not answer, only by their counters: the packets since the last evaluation.
//
// A client whose backend answers sends at least as much again as what opens its connection. So a
// backend is silent if, of at least LOOK_PACKETS packets since the last look, nine of ten open
// connections: the others are the rest of older connections. Then the counters of now are the new
// look, with this verdict; with fewer packets look and verdict stay. Before the first look there
// are only the sums since the counters began.
//
// /run/weir/NAME/looks has the looks. Concurrent commands need no lock: each reads the file before
// the counters, so the saved evaluation is older than the counters, and each evaluation has a
// separate verdict.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/base/vec.h"
#include "ctl/table/lb_state.h"

#define LOOK_PACKETS 10
// Openings may be younger than the answers to them: shorter ones make no backend silent.
#define LOOK_SILENT_MS 500

struct look_count {
	uint64_t packets, opened;
};

struct look {
	char service[LB_NAME];
	struct addr addr; // family 0: here
	uint16_t port, id;
	struct look_count at;     // the counters
	uint64_t at_ms;           // wall clock; 0: there was no evaluation
	bool silent;              // the verdict
	struct look_count judged; // which packets it is about: those since then
	uint64_t since_ms;        // wall clock; 0: since the counters began
};

struct look_list {
	struct look *at;
	size_t n, cap;
};

struct looks {
	char *path;
	uint32_t progs_id;            // identity of the instance of these counters
	struct look_list before, now; // evaluations of the file, and of this command
	size_t next;                  // where in `before` the next one probably is
	bool changed;
};

// Lower counters than at the last evaluation have restarted: that evaluation does not count.
// gets_flows: if false, silence means nothing. True: the evaluation has changed.
bool look_judge(struct look *l, const struct look_count *now, bool gets_flows, uint64_t now_ms);

// Called before any counter is read. If the file is missing, damaged or of another instance, there
// was no evaluation.
void looks_open(const char *instance, uint32_t progs_id, struct looks *ret);
// Looks at one backend; *ret belongs to l, until the next call.
const struct look *looks_at(struct looks *l, const struct lb_service *s, const struct lb_member *m,
			    const struct look_count *now, bool gets_flows, uint64_t now_ms);
// For the next command: the backends of this one. If the file cannot be written, that one has the
// look before.
void looks_save(const struct looks *l);
void looks_free(struct looks *l);
#define CLEANUP_LOOKS CLEANUP(looks_free)
