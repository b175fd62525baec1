// SPDX-License-Identifier: GPL-2.0-only
// Reads a clock of the kernel as one number. Each unit is rounded down.
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t time_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t time_us(clockid_t clock)
{
	return time_ns(clock) / 1000;
}

static inline uint64_t time_ms(clockid_t clock)
{
	return time_ns(clock) / 1000000;
}

static inline uint64_t time_s(clockid_t clock)
{
	return time_ns(clock) / 1000000000;
}
