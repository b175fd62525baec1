// SPDX-License-Identifier: GPL-2.0-only
// Random numbers that are the same everywhere for the same seed (splitmix64, Steele et al. 2014).
#ifndef REF_RNG_H
#define REF_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15U;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

/* 0 .. n-1; 0 for n = 0. */
static inline unsigned int rng_below(struct rng *rng, unsigned int n)
{
	return n ? (unsigned int)((rng_next(rng) >> 32) * n >> 32) : 0;
}

static inline bool rng_chance(struct rng *rng, unsigned int percent)
{
	return rng_below(rng, 100) < percent;
}

#endif
