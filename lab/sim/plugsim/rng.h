/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLUGSIM_RNG_H
#define PLUGSIM_RNG_H

#include <linux/types.h>

/* splitmix64: one word of state, so that any seed is as good as another. */
static inline u64 rng_next(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* From 0 to below n; n of up to 32 bits. */
static inline u64 rng_below(u64 *state, u64 n)
{
	return ((rng_next(state) >> 32) * n) >> 32;
}

/* Above 0, up to 1. */
static inline double rng_part(u64 *state)
{
	return ((rng_next(state) >> 11) + 1.0) / (1ULL << 53);
}

#endif /* PLUGSIM_RNG_H */
