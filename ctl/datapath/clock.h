// SPDX-License-Identifier: GPL-2.0-only
// Converts between jiffies64, the clock of expiries in the datapath, and wall-clock seconds, the
// clock of files.
#pragma once

#include <stdint.h>

#include "ctl/base/err.h"

// One reading of both clocks, to convert between them with.
struct clock {
	uint64_t jiffies;
	uint64_t wall_ms; // milliseconds since 1970
	uint32_t hz;      // jiffies a second
};

uint32_t clock_hz(void); // jiffies a second of this kernel

// Loads the program that reads jiffies64; *ret_fd is to be pinned or closed. 0 or -errno with err
// set.
int clock_load(int *ret_fd, struct err *err);
// Runs it. 0 or -errno with err set.
int clock_read(int prog_fd, struct clock *ret, struct err *err);

// The id of this boot: 36 characters of /proc/sys/kernel/random/boot_id; "" when it cannot be read.
#define CLOCK_BOOT 37
void clock_boot(char ret[CLOCK_BOOT]);

// UINT64_MAX is "never" on both sides and 0 is "absent"; a time that has passed becomes jiffy 1.
uint64_t clock_to_jiffies(const struct clock *c, uint64_t wall_s);
uint64_t clock_to_wall_s(const struct clock *c, uint64_t jiffies);
// Jiffies from now, never 0 for ms > 0.
uint64_t clock_after_ms(const struct clock *c, uint64_t ms);
// Milliseconds from now until jiffies; 0 when that has passed.
uint64_t clock_ms_until(const struct clock *c, uint64_t jiffies);
// Milliseconds since jiffies; 0 when that is in the future.
uint64_t clock_ms_since(const struct clock *c, uint64_t jiffies);
