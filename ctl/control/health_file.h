// SPDX-License-Identifier: GPL-2.0-only
// The health of backends as the agent last wrote it: for the next agent, and for commands that show
// it.
//
// It is in /run/weir/NAME/health. Rings do not depend on it: what counts is in the kernel.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "ctl/base/err.h"
#include "ctl/base/vec.h"
#include "ctl/control/health_apply.h"
#include "ctl/table/lb_state.h"

#define HEALTH_WHY 96

#define HEALTH_CHANGES 32

// Since the agent started; without checks that could not be made.
struct health_counts {
	uint64_t checks, failed;
	uint64_t last_ms, took_us;           // the last check; last_ms 0: none yet
	bool good;                           // its result
	uint64_t changed_ms[HEALTH_CHANGES]; // times of the last changes of the state; 0: none
};
// The state is another one.
void health_changed(struct health_counts *c, uint64_t now_ms);
// How often it was, in the last 24 hours; HEALTH_CHANGES: as often, or more.
unsigned health_changes(const struct health_counts *c, uint64_t now_ms);

struct health_record {
	char service[LB_NAME];
	struct addr addr; // family 0: here
	uint16_t port;
	struct health health;
	char why[HEALTH_WHY]; // reason of the last check that failed
	struct health_counts counts;
};

struct health_records {
	struct health_record *at;
	size_t n, cap;
};

// No file: no records. 0 or -errno with err set.
int health_file_read(const char *instance, struct health_records *ret, struct err *err);
int health_file_write(const char *instance, const struct health_records *records, struct err *err);
// The record of a backend, probably the one with the index `guess`; NULL: it has none.
const struct health_record *health_file_find(const struct health_records *records, size_t guess,
					     const char *service, const struct addr *addr,
					     uint16_t port);
// Milliseconds of the clock that the records have.
uint64_t health_now_ms(void);
