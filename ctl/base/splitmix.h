// SPDX-License-Identifier: GPL-2.0-only
// A sequence of random numbers from a seed: the same seed gives the same numbers.
#pragma once

#include <stdint.h>

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
static inline uint64_t splitmix64(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ull;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}
