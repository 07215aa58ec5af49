// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy "adaptive": finds the group size that pays, for each hardware
 * queue, by trial.
 * - A sample covers 16 round trips of what is in flight, and at least 512
 *   requests; after a change of size, a quarter of that, which does not count.
 *   What counts is its time per request.
 * - Start as "always", with 32.  Try a quarter of 32, twice any size below 32
 *   and half of any size; after a smaller size has won, half of that first.
 * - Samples of the two sizes alternate, so that a drift of the load falls on
 *   both.  A smaller size must gain half a percent; a larger one saves
 *   doorbells, so it may lose a quarter.  It takes 3 pairs or more, until the
 *   difference is more than chance; after 8 the mean decides.
 * - If no size is better, park for 256 samples, then try again.  Wait for twice
 *   as long each time, up to 4096 samples.
 * - If a size gets slower, while parked, than what it won against, 8 samples of
 *   32 follow.  If these are faster, by 3% beyond chance, 32 stays.
 * - If the time per request is off by a quarter in four samples in a row,
 *   beyond what it varies by, the load has changed: start anew.
 */
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <kunit/visibility.h>

#include "blk-plug-adaptive.h"

#define ONE	65536

enum {
	LARGEST		= BLK_PLUG_ADAPTIVE_MAX_GROUP,
	ROUND_TRIPS	= 16,
	MIN_EPOCH	= 512,
	MAX_IN_FLIGHT	= 2048,		/* more would take too long */
	MIN_PAIRS	= 3,
	MAX_PAIRS	= 8,
	MIN_PATIENCE	= 256,
	MAX_PATIENCE	= 4096,
	MAX_ODD		= 4,
	GAIN		= ONE / 200,
	LOSS		= 3 * ONE / 100,	/* ends a trial after 2 pairs */
	SIGMAS		= 2,		/* standard errors beyond chance */
};

static void plug_use(struct blk_plug_adaptive *a, unsigned int group)
{
	/* let what was in flight before come back first */
	a->settle = group != a->group;
	a->group = group;
}

/* Compare with a size that has not lost yet, or park. */
static void plug_next(struct blk_plug_adaptive *a)
{
	/* sizes that no plug fills make no difference: start below them */
	unsigned int filled = roundup_pow_of_two(a->fill);
	unsigned int most = min(a->from, filled);
	unsigned int sizes[] = {
		a->tried > a->from ? most / 2 : 0,
		a->from < LARGEST && a->from <= filled ? 2 * a->from : 0,
		a->from == LARGEST ? most / 4 : 0,
		most / 2,
	};
	int i;

	plug_use(a, a->from);
	a->pairs = 0;
	a->sum = 0;
	a->squares = 0;
	for (a->trial = 0, i = 0; !a->trial && i < ARRAY_SIZE(sizes); i++)
		a->trial = sizes[i] & ~a->tried;
	if (!a->trial) {
		a->parked = a->patience;
		a->patience = min(2 * a->patience, MAX_PATIENCE);
	}
}

static void plug_end(struct blk_plug_adaptive *a, bool won)
{
	a->tried = won ? a->from : a->tried | a->trial;
	if (won) {
		a->promise = min(a->promise ?: a->time, a->time);
		a->from = a->trial;
		a->time = 0;
	}
	plug_next(a);
}

/* Does the mean gain differ from @need by more than chance? */
static bool plug_sure(const struct blk_plug_adaptive *a, s64 need)
{
	s64 n = a->pairs, diff = a->sum - need * n;
	s64 dev = div64_u64(a->dev * ONE, a->time);
	/* a few pairs tell too little: count what was seen before as well */
	s64 var = a->squares - div64_s64(a->sum * a->sum, n) + 2 * dev * dev;

	return diff * diff > SIGMAS * SIGMAS * var;
}

/* After each pair: has the trial won or lost, or does it go on? */
static void plug_judge(struct blk_plug_adaptive *a)
{
	s64 need = a->trial < a->from ? GAIN : -GAIN / 2;
	s64 gain = div64_s64(a->sum, a->pairs);
	bool done;

	if (a->pairs < MIN_PAIRS)
		done = a->pairs > 1 && gain < -LOSS && plug_sure(a, -LOSS);
	else
		done = a->pairs >= MAX_PAIRS || plug_sure(a, need);
	if (done)
		plug_end(a, gain > need);
	else
		plug_use(a, a->from);
}

static void plug_in_trial(struct blk_plug_adaptive *a, u64 time)
{
	s64 gain;

	if (a->group == a->from) {
		a->last = time;
		plug_use(a, a->trial);
		return;
	}
	gain = ONE - (s64)min(div64_u64(time * ONE, a->last), 2 * ONE);
	a->sum += gain;
	a->squares += gain * gain;
	a->pairs++;
	plug_judge(a);
}

/* Is a time per request far from those before, even for how they vary? */
static bool plug_far(const struct blk_plug_adaptive *a, u64 time)
{
	return a->time && abs_diff(time, a->time) > a->time / 4 + 4 * a->dev;
}

/* Mean and mean deviation, as TCP has them of the round trip time. */
static void plug_learn(struct blk_plug_adaptive *a, u64 time)
{
	a->odd = 0;
	if (!a->time) {
		a->time = time;
		a->dev = time / 32;
	}
	a->dev = (7 * a->dev + abs_diff(time, a->time)) / 8;
	a->time = (7 * a->time + time) / 8;
	/* what is expected of a size rises with what it does */
	a->promise = min(a->promise, a->time + a->time / 8);
}

/* Once may be chance; several in a row mean another load. */
static void plug_odd(struct blk_plug_adaptive *a)
{
	if (++a->odd >= MAX_ODD)
		blk_plug_adaptive_init(a, a->delay);
}

/*
 * Is a size that has won slower now than what it won against?  Either the load
 * has changed, or the size is slow only in the long run, which no pair shows.
 */
static bool plug_slow(const struct blk_plug_adaptive *a)
{
	return a->from < LARGEST &&
	       a->time > a->promise + a->promise / 32 + a->dev;
}

/* Tell which, by samples of 32.  A pause in one of them is not its fault. */
static void plug_look(struct blk_plug_adaptive *a, u64 time)
{
	a->sum += min(time, a->time + a->time / 4);
	if (++a->pairs < MAX_PAIRS)
		return;
	/* plug_slow() has seen that the time is above the deviation */
	if (a->sum < MAX_PAIRS * (31 * a->time / 32 - 3 * a->dev / 4)) {
		a->from = LARGEST;
		a->time = 0;
	}
	a->tried = 2 * LARGEST - 1;
	a->promise = min(a->time, div_u64(a->sum, MAX_PAIRS));
	plug_next(a);
}

static void plug_in_park(struct blk_plug_adaptive *a, u64 time)
{
	if (a->group != a->from) {
		plug_look(a, time);
	} else if (plug_slow(a)) {
		plug_use(a, LARGEST);
	} else if (!--a->parked) {
		a->tried = 0;
		plug_next(a);
	}
}

static void plug_take(struct blk_plug_adaptive *a, u64 time)
{
	if (a->settle) {
		a->settle = false;
		return;
	}
	if (a->group == a->from) {
		if (plug_far(a, time)) {
			plug_odd(a);
			return;
		}
		plug_learn(a, time);
	}
	if (a->trial)
		plug_in_trial(a, time);
	else
		plug_in_park(a, time);
}

void blk_plug_adaptive_init(struct blk_plug_adaptive *a, unsigned int delay)
{
	*a = (struct blk_plug_adaptive){
		.group = LARGEST,
		.from = LARGEST,
		.epoch = MIN_EPOCH,
		.settle = true,
		.fill = 1,
		.delay = delay,
		.parked = delay + 1,
		.patience = MIN_PATIENCE,
	};
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_adaptive_init);

void blk_plug_adaptive_decide(struct blk_plug_adaptive *a,
			      const struct blk_plug_adaptive_sample *s)
{
	if (s->flushes && a->group == a->from)
		a->fill = clamp((s->nr + s->flushes / 2) / s->flushes, 1,
				LARGEST);
	a->epoch = max(ROUND_TRIPS * min(s->in_flight, MAX_IN_FLIGHT),
		       MIN_EPOCH);
	/* 2^36 ns is a minute; the arithmetic needs 24 bits more */
	if (s->nr && s->ns >= s->nr / 256 + 1 && !(s->ns >> 36))
		plug_take(a, div64_u64(s->ns * 256, s->nr));
	else
		plug_odd(a);
	/* for a transition a short sample will do */
	if (a->settle)
		a->epoch /= 4;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_adaptive_decide);
