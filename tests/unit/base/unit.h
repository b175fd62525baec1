// SPDX-License-Identifier: GPL-2.0-only
// Shared by the unit tests: cmocka with its headers, and repeatable random numbers.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// xorshift64*: the same numbers in every run, so that a failure can be repeated.
static inline uint64_t unit_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

static inline unsigned unit_below(uint64_t *state, unsigned bound)
{
	return (unsigned)((unit_random(state) >> 33) % bound);
}
