// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy "adaptive": finds the group size that pays, for each hardware
 * queue, by trial.
 * - A sample covers 16 to 24 round trips of what is in flight, at least 512
 *   requests; after a change of size, a quarter of that, which does not count.
 *   What counts is its time per request.  How long it is, is drawn: or the gaps
 *   of a load that pauses would always fall on samples of the same size.
 * - Start as "always", with 32.  Try a quarter of 32, half of any size, then
 *   twice; nothing while the time varies by more than 1/16.
 * - Samples of the two sizes alternate, so that a drift of the load falls on
 *   both: 3 to 16 pairs, until it is clear which is better, by two standard
 *   errors, or one if the trial loses 6%.  The smaller size must gain half a
 *   percent more than chance may, after 16 pairs by one error: if the load
 *   comes when it comes, there is only chance.
 * - If no size is better, park for 256 samples, then try again; for twice as
 *   long each time, up to 4096.
 * - A time that is off by a quarter, beyond what it varies by, is measured once
 *   more.  Four in a row are another load: start anew.
 */
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "blk-plug-adaptive.h"

enum {
	ONE		= 65536,
	LARGEST		= BLK_PLUG_ADAPTIVE_MAX_GROUP,
	ALL		= 2 * LARGEST - 1,	/* sizes, as a mask */
	ROUND_TRIPS	= 16,
	MIN_EPOCH	= 512,
	MAX_IN_FLIGHT	= 2048,		/* more would take too long */
	FIRST		= 8,		/* samples, to know what it varies by */
	NOISY		= 16,
	MIN_PAIRS	= 3,
	MAX_PAIRS	= 16,
	MIN_PATIENCE	= 256,
	MAX_PATIENCE	= 4096,
	MAX_OUTLIERS	= 4,
	GAIN		= ONE / 200,
	LOSS		= 6 * ONE / 100,
	SURE		= 4,		/* square of 2 standard errors */
};

static void plug_use(struct blk_plug_adaptive *a, unsigned int group)
{
	/* let what was in flight before come back first */
	a->settle = group != a->group;
	a->group = group;
}

/* Compare with that size, or park. */
static void plug_try(struct blk_plug_adaptive *a, unsigned int trial)
{
	plug_use(a, a->from);
	a->trial = trial;
	a->pairs = 0;
	a->sum = 0;
	a->squares = 0;
	if (trial)
		return;
	a->tried = 0;
	a->parked = a->patience;
	a->patience = min(2 * a->patience, MAX_PATIENCE);
}

/* Which size has not lost yet? */
static void plug_next(struct blk_plug_adaptive *a)
{
	/* sizes that no plug fills make no difference: start below them */
	unsigned int filled = roundup_pow_of_two(a->fill);
	unsigned int most = min(a->from, filled);
	unsigned int left = ALL & ~a->tried;
	unsigned int quarter = a->from == LARGEST ? most / 4 & left : 0;
	unsigned int twice = a->from <= filled ? 2 * a->from & left : 0;
	bool noisy = a->dev > a->time / NOISY;

	plug_try(a, noisy ? 0 : quarter ?: (most / 2 & left) ?: twice);
}

/* Does the smaller size gain what it must?  In standard errors, squared. */
static s64 plug_sure(const struct blk_plug_adaptive *a)
{
	bool smaller = a->trial < a->from;
	s64 n = a->pairs, diff = (smaller ? a->sum : -a->sum) - n * GAIN;
	s64 dev = div64_u64(a->dev * ONE, a->time);
	/* few pairs tell too little: count what was seen before as well */
	s64 var = a->squares - div64_s64(a->sum * a->sum, n) + 2 * dev * dev;

	return div64_s64(diff < 0 ? -diff * diff : diff * diff, var + 1);
}

/* After each pair: is one of the two sizes better, or does it go on? */
static void plug_in_trial(struct blk_plug_adaptive *a, u64 time)
{
	s64 gain, sure;

	if (a->group == a->from) {
		a->last = time;
		plug_use(a, a->trial);
		return;
	}
	gain = ONE - (s64)min(div64_u64(time * ONE, a->last), 2 * ONE);
	a->sum += gain;
	a->squares += gain * gain;
	a->pairs++;
	sure = plug_sure(a);
	if ((a->pairs < MIN_PAIRS && a->sum >= -LOSS * a->pairs) ||
	    (a->pairs < MAX_PAIRS && sure >= 0 && sure < SURE)) {
		plug_use(a, a->from);
		return;
	}
	a->tried |= a->trial;
	if (sure > 0 ? a->trial < a->from : a->trial > a->from) {
		a->tried = a->from;
		a->from = a->trial;
		a->time = time;
	}
	plug_next(a);
}

/* Mean and mean deviation, as TCP has them of the round trip time. */
static void plug_learn(struct blk_plug_adaptive *a, u64 time)
{
	a->outliers = 0;
	/* samples of a trial follow each other too regularly to tell */
	if (!a->time)
		a->dev = time / 32;
	else if (!a->trial)
		a->dev = (7 * a->dev + abs_diff(time, a->time)) / 8;
	a->time = a->time ? (7 * a->time + time) / 8 : time;
}

static void plug_take(struct blk_plug_adaptive *a, u64 time)
{
	bool best = a->group == a->from;
	u64 off = a->time ? abs_diff(time, a->time) : 0;

	if (a->settle) {
		a->settle = false;
	} else if (!time || (off > a->time / 4 + 4 * a->dev &&
			     (best || !a->outliers))) {
		if (++a->outliers >= MAX_OUTLIERS)
			blk_plug_adaptive_init(a, a->delay);
	} else {
		if (best)
			plug_learn(a, time);
		if (a->trial)
			plug_in_trial(a, time);
		else if (!--a->parked)
			plug_next(a);
	}
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
		.parked = delay + FIRST,
		.patience = MIN_PATIENCE,
	};
}

/* Requests until the next sample.  In a trial, both sizes have the same. */
static void plug_epoch(struct blk_plug_adaptive *a, u32 in_flight)
{
	u32 length = ROUND_TRIPS * min(in_flight, MAX_IN_FLIGHT);

	/* what is in flight varies; there may be little just now */
	if (!a->trial)
		a->length = max3(length, a->length - a->length / 8, MIN_EPOCH);
	a->random = a->random * 1664525 + 1013904223;
	a->epoch = a->length + (a->random >> 24) * a->length / 512;
	/* for a transition a short sample will do */
	if (a->settle)
		a->epoch /= 4;
}

void blk_plug_adaptive_decide(struct blk_plug_adaptive *a,
			      const struct blk_plug_adaptive_sample *s)
{
	/* below a minute for each: the arithmetic needs 16 bits more */
	u64 time = s->ns >> 36 < s->nr ? div64_u64(s->ns * 256, s->nr) : 0;

	if (time && s->flushes && a->group == a->from)
		a->fill = clamp((s->nr + s->flushes / 2) / s->flushes, 1,
				LARGEST);
	plug_take(a, time);
	plug_epoch(a, s->in_flight);
}

#ifdef CONFIG_BLK_PLUG_ADAPTIVE_KUNIT_TEST
#include "tests/blk_plug_adaptive_kunit.c"
#endif
