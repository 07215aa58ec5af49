// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy "adaptive": finds the group size that pays, for each hardware
 * queue.
 *
 * What a hold costs and what a group saves depend on the device, on the
 * submitter and on how the two keep time with each other.  No average tells
 * these apart, so try sizes and compare them.
 *
 * - A sample covers 16 round trips of what is in flight, and at least 512 I/Os.
 *   It has two figures.  The time per I/O is what counts, but may vary by some
 *   percent from one sample to the next, since batches that return together are
 *   submitted together.  The mean response time varies much less, but misses
 *   the time before submission: waiting for the CPU, or for a turn.  The time
 *   is per I/O, not per request: losing a merge shortens the time per request,
 *   but makes I/O slower.
 *
 * - Measure: start as "always", with 32.  Take samples in blocks of 3 until two
 *   blocks agree.
 *
 * - Try: a quarter of 32, half of any size, and twice any size below 32.  A
 *   trial takes 6 samples.  It ends at once if the time per I/O is longer by
 *   more than 3%, beyond chance, or if the response time shows that it gains
 *   too little.  It wins if the time per I/O is shorter by half a percent,
 *   beyond chance.  As that takes long to show, it also wins if the response
 *   time is shorter by half a percent and the time per I/O is no longer, after
 *   6 more samples if need be.  A larger group saves doorbells, so it may lose
 *   a quarter of a percent.  The next trials are compared with the winner.
 *
 * - Park: if no size is better, keep this one for 256 samples, then try again.
 *   Wait for twice as long each time, up to 4096 samples.
 *
 * - If four samples in a row differ by a quarter from those before, beyond
 *   chance, the load has changed: start anew.  Do the same if they make no
 *   sense or lack a response time, or if two blocks of a measurement differ
 *   by a quarter.  If the load has gone that far slowly, measure again
 *   before the next trial.
 *
 * - All bios look for a merge while more than one in 32 finds one.  Otherwise
 *   only those of every 32nd plug do.
 */
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <kunit/visibility.h>

#include "blk-plug-adaptive.h"

#define ONE	65536

/*
 * Tuned with plugsim, a simulator that draws devices and loads.  Over 1200 of
 * these the loss against the best fixed size is 0.13%, that of "always" 0.49%.
 */
enum {
	/*
	 * Length of a sample: round trips, so that batches fall into step (8
	 * lose 17% in the worst case), and the least number of I/Os (256 add
	 * 0.02 points to the mean loss).  Short enough to learn within 50 ms.
	 */
	ROUND_TRIPS	= 16,
	MIN_EPOCH	= 512,

	/* A measurement takes two blocks of samples, a trial two or four. */
	BLOCK		= 3,
	TRIAL		= 2 * BLOCK,

	/* Samples parked: 128 cost 0.01 points more; trials should be rare. */
	MIN_PATIENCE	= 256,
	MAX_PATIENCE	= 4096,

	/* Odd samples in a row that mean a new load; with 2, stalls do. */
	MAX_ODD		= 4,

	/* What a smaller group must gain; 1% adds 0.015 points of mean loss. */
	GAIN		= ONE / 200,

	/* The loss that ends a trial; the difference that means a new load. */
	LOSS		= 3 * ONE / 100,
	FAR		= ONE / 4,

	/* Standard errors beyond chance; 3 cost 0.01 points more. */
	SIGMAS		= 2,

	/* Least deviation to assume, as few samples may show less: 0.2%. */
	LEAST_SIGMA	= ONE / 500,
};

/* Once there are enough samples, halve the weight of the old ones. */
static void blk_plug_adaptive_add(struct blk_plug_adaptive_arm *arm,
				  const s64 *value)
{
	int i, divisor = arm->nr < 2 * TRIAL ? 1 : 2;

	arm->nr = arm->nr / divisor + 1;
	for (i = 0; i < BLK_PLUG_ADAPTIVE_FIGURES; i++) {
		arm->sum[i] = div_s64(arm->sum[i], divisor) + value[i];
		arm->squares[i] = div_s64(arm->squares[i], divisor) +
			value[i] * value[i];
	}
}

static s64 blk_plug_adaptive_mean(const struct blk_plug_adaptive_arm *arm,
				  enum blk_plug_adaptive_figure figure)
{
	return div64_s64(arm->sum[figure], arm->nr);
}

/*
 * Is a difference between @arm and @nr other samples more than chance?  Take
 * the variance of @arm, since a trial has too few samples for one of its own,
 * but no less than a few samples can tell.
 */
static bool blk_plug_adaptive_sure(const struct blk_plug_adaptive_arm *arm,
				   enum blk_plug_adaptive_figure figure,
				   s64 diff, s32 nr)
{
	s64 n = arm->nr, sum = arm->sum[figure], var = 0;

	if (n > 1)
		var = div64_s64(arm->squares[figure] * n - sum * sum,
				n * (n - 1));
	var = max(var, LEAST_SIGMA * LEAST_SIGMA);
	var = div64_s64(var, n) + div64_s64(var, nr);
	return diff > 0 && diff * diff > SIGMAS * SIGMAS * var;
}

/* By how much is the trial better? */
static s64 blk_plug_adaptive_gain(const struct blk_plug_adaptive *a,
				  enum blk_plug_adaptive_figure figure)
{
	return blk_plug_adaptive_mean(&a->base, figure) -
		blk_plug_adaptive_mean(&a->trial, figure);
}

/* What a trial must gain.  A larger group saves doorbells, so it may lose. */
static s64 blk_plug_adaptive_need(const struct blk_plug_adaptive *a)
{
	return a->group < a->from ? GAIN : -GAIN / 2;
}

static bool blk_plug_adaptive_no_longer(const struct blk_plug_adaptive *a)
{
	return blk_plug_adaptive_gain(a, BLK_PLUG_ADAPTIVE_TIME) >
		min(blk_plug_adaptive_need(a), 0);
}

/* Is the trial good so far?  If it still is at the end, it wins. */
static bool blk_plug_adaptive_good(const struct blk_plug_adaptive *a)
{
	const struct blk_plug_adaptive_arm *base = &a->base;
	s64 time = blk_plug_adaptive_gain(a, BLK_PLUG_ADAPTIVE_TIME);
	s64 wait = blk_plug_adaptive_gain(a, BLK_PLUG_ADAPTIVE_WAIT);
	s64 need = blk_plug_adaptive_need(a);
	s32 nr = a->trial.nr;

	if (blk_plug_adaptive_sure(base, BLK_PLUG_ADAPTIVE_TIME, -time - LOSS,
				   nr))
		return false;
	if (nr > 1 && blk_plug_adaptive_sure(base, BLK_PLUG_ADAPTIVE_TIME,
					     time - need, nr))
		return true;
	if (blk_plug_adaptive_sure(base, BLK_PLUG_ADAPTIVE_WAIT, need - wait,
				   nr))
		return false;
	/* the time per I/O varies more: give it twice as long to show */
	return nr < TRIAL ||
		(wait > need &&
		 (nr < 2 * TRIAL || blk_plug_adaptive_no_longer(a)));
}

static void blk_plug_adaptive_use(struct blk_plug_adaptive *a,
				  unsigned int group)
{
	a->group = group;
	/* let what was in flight before come back first */
	a->settle = true;
	a->trial = (struct blk_plug_adaptive_arm){};
}

/* Try a size that has not been tried, or park. */
static void blk_plug_adaptive_next(struct blk_plug_adaptive *a)
{
	/* sizes that no plug fills make no difference: start below them */
	unsigned int group = min(a->group, roundup_pow_of_two(a->fill));
	bool largest = a->group == BLK_PLUG_ADAPTIVE_MAX_GROUP;
	unsigned int groups[] = {
		largest ? group / 4 : 0,
		group / 2,
		largest ? 0 : 2 * a->group,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		if (!groups[i] || a->tried & groups[i])
			continue;
		a->state = BLK_PLUG_ADAPTIVE_TRY;
		a->from = a->group;
		blk_plug_adaptive_use(a, groups[i]);
		return;
	}
	a->state = BLK_PLUG_ADAPTIVE_PARKED;
	a->parked = a->patience;
	a->patience = min(2 * a->patience, MAX_PATIENCE);
}

/* The trial has won: compare the next ones with it. */
static void blk_plug_adaptive_won(struct blk_plug_adaptive *a)
{
	a->tried = a->from;
	a->patience = MIN_PATIENCE;
	a->base = a->trial;
	blk_plug_adaptive_next(a);
}

static void blk_plug_adaptive_lost(struct blk_plug_adaptive *a)
{
	a->tried |= a->group;
	blk_plug_adaptive_use(a, a->from);
	a->state = BLK_PLUG_ADAPTIVE_MEASURE;
}

/* Does the last block differ from the mean of all samples, its own included? */
static bool blk_plug_adaptive_drifts(const struct blk_plug_adaptive *a)
{
	int i;

	for (i = 0; i < BLK_PLUG_ADAPTIVE_FIGURES; i++)
		if (abs(blk_plug_adaptive_mean(&a->base, i) -
			blk_plug_adaptive_mean(&a->trial, i)) > FAR / 2)
			return true;
	return false;
}

static void blk_plug_adaptive_in_measure(struct blk_plug_adaptive *a,
					 const s64 *value)
{
	blk_plug_adaptive_add(&a->base, value);
	blk_plug_adaptive_add(&a->trial, value);
	if (a->trial.nr < BLOCK)
		return;
	if (blk_plug_adaptive_drifts(a)) {
		blk_plug_adaptive_init(a, 0);
		return;
	}
	a->trial = (struct blk_plug_adaptive_arm){};
	if (a->base.nr > BLOCK)
		blk_plug_adaptive_next(a);
}

static void blk_plug_adaptive_in_trial(struct blk_plug_adaptive *a,
				       const s64 *value)
{
	blk_plug_adaptive_add(&a->trial, value);
	if (!blk_plug_adaptive_good(a))
		blk_plug_adaptive_lost(a);
	else if (a->trial.nr >= TRIAL && blk_plug_adaptive_no_longer(a))
		blk_plug_adaptive_won(a);
}

/*
 * Has the load moved far from the reference?  Then half a percent of that is no
 * longer half a percent of the load.
 */
static bool blk_plug_adaptive_stale(const struct blk_plug_adaptive *a)
{
	int i;

	for (i = 0; i < BLK_PLUG_ADAPTIVE_FIGURES; i++)
		if (abs(blk_plug_adaptive_mean(&a->base, i)) > FAR)
			return true;
	return false;
}

/* Measure the same group again, from scratch. */
static void blk_plug_adaptive_measure(struct blk_plug_adaptive *a)
{
	memset(a->ref, 0, sizeof(a->ref));
	a->base = (struct blk_plug_adaptive_arm){};
	a->trial = (struct blk_plug_adaptive_arm){};
	a->state = BLK_PLUG_ADAPTIVE_MEASURE;
}

static void blk_plug_adaptive_in_park(struct blk_plug_adaptive *a,
				      const s64 *value)
{
	blk_plug_adaptive_add(&a->base, value);
	if (--a->parked)
		return;
	a->tried = 0;
	if (blk_plug_adaptive_stale(a))
		blk_plug_adaptive_measure(a);
	else
		blk_plug_adaptive_next(a);
}

/* Is a value far from those before, even for how much these vary? */
static bool blk_plug_adaptive_far(const struct blk_plug_adaptive_arm *arm,
				  enum blk_plug_adaptive_figure figure,
				  s64 value)
{
	s64 diff = value - blk_plug_adaptive_mean(arm, figure);

	return abs(diff) > FAR &&
		blk_plug_adaptive_sure(arm, figure, abs(diff), 1);
}

static bool blk_plug_adaptive_fits(const struct blk_plug_adaptive *a,
				   const s64 *value)
{
	const struct blk_plug_adaptive_arm *arm =
		a->state == BLK_PLUG_ADAPTIVE_TRY ? &a->trial : &a->base;
	int i;

	for (i = 0; i < BLK_PLUG_ADAPTIVE_FIGURES && arm->nr >= BLOCK; i++)
		if (blk_plug_adaptive_far(arm, i, value[i]))
			return false;
	return true;
}

/* Once may be chance; several in a row mean another load. */
static void blk_plug_adaptive_odd(struct blk_plug_adaptive *a)
{
	if (++a->odd >= MAX_ODD)
		blk_plug_adaptive_init(a, 0);
}

static void blk_plug_adaptive_step(struct blk_plug_adaptive *a,
				   const s64 *value)
{
	if (!blk_plug_adaptive_fits(a, value)) {
		blk_plug_adaptive_odd(a);
		return;
	}
	a->odd = 0;
	if (a->state == BLK_PLUG_ADAPTIVE_MEASURE)
		blk_plug_adaptive_in_measure(a, value);
	else if (a->state == BLK_PLUG_ADAPTIVE_TRY)
		blk_plug_adaptive_in_trial(a, value);
	else
		blk_plug_adaptive_in_park(a, value);
}

/*
 * A sample taken during a transition tells little, but enough to end a trial
 * that does serious harm.
 */
static void blk_plug_adaptive_settled(struct blk_plug_adaptive *a, s64 time)
{
	if (a->state == BLK_PLUG_ADAPTIVE_TRY && time > 0 &&
	    blk_plug_adaptive_far(&a->base, BLK_PLUG_ADAPTIVE_TIME, time))
		blk_plug_adaptive_lost(a);
}

/* The difference from a reference, in 1/65536 of it, and at most all of it. */
static s64 blk_plug_adaptive_relative(u64 value, u64 *ref)
{
	if (!*ref)
		*ref = value;
	if (value >= 2 * *ref)
		return ONE;
	return (s64)div64_u64(value * ONE, *ref) - ONE;
}

static void
blk_plug_adaptive_observe(struct blk_plug_adaptive *a,
			  const struct blk_plug_adaptive_sample *s)
{
	u32 looked = a->merge ? s->nr : s->nr / BLK_PLUG_ADAPTIVE_RARE;

	if (!s->flushes)
		return;
	a->merge = (u64)s->merged * BLK_PLUG_ADAPTIVE_RARE > looked;
	a->fill = clamp((s->nr - min(s->merged, s->nr) + s->flushes / 2) /
			s->flushes, 1, BLK_PLUG_ADAPTIVE_MAX_GROUP);
}

static void blk_plug_adaptive_take(struct blk_plug_adaptive *a,
				   const struct blk_plug_adaptive_sample *s,
				   bool settling)
{
	u64 time = div64_u64(s->ns * 256, s->nr);
	u64 wait = div64_u64(s->wait_ns * 256, s->waits);
	s64 value[BLK_PLUG_ADAPTIVE_FIGURES];

	/* Little's law; samples of more than 32768 I/Os would take too long */
	a->in_flight = clamp(div64_u64(wait, time), 1, 2048);
	/* it may cover a pause or the first burst: no reference for others */
	if (settling && !a->ref[0])
		return;
	value[0] = blk_plug_adaptive_relative(time, &a->ref[0]);
	value[1] = blk_plug_adaptive_relative(wait, &a->ref[1]);
	if (settling)
		blk_plug_adaptive_settled(a, value[BLK_PLUG_ADAPTIVE_TIME]);
	else
		blk_plug_adaptive_step(a, value);
}

static bool blk_plug_adaptive_sensible(const struct blk_plug_adaptive_sample *s)
{
	/* 2^36 ns is a minute; the arithmetic needs 24 bits more */
	return s->nr && s->ns >= s->nr / 256 + 1 && !(s->ns >> 36) &&
		s->waits && s->wait_ns >= s->waits / 256 + 1 &&
		!(div64_u64(s->wait_ns, s->waits) >> 36);
}

void blk_plug_adaptive_init(struct blk_plug_adaptive *a, unsigned int pinned)
{
	*a = (struct blk_plug_adaptive){
		.group = pinned ?: BLK_PLUG_ADAPTIVE_MAX_GROUP,
		.merge = true,
		.pinned = pinned,
		.epoch = MIN_EPOCH,
		.settle = true,
		.fill = 1,
		.patience = MIN_PATIENCE,
	};
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_adaptive_init);

bool blk_plug_adaptive_decide(struct blk_plug_adaptive *a,
			      const struct blk_plug_adaptive_sample *s)
{
	u8 group = a->group;
	bool merge = a->merge, settling = a->settle;

	blk_plug_adaptive_observe(a, s);
	if (a->pinned)
		return a->merge != merge;
	a->settle = false;
	if (blk_plug_adaptive_sensible(s))
		blk_plug_adaptive_take(a, s, settling);
	else
		blk_plug_adaptive_odd(a);
	a->epoch = max(ROUND_TRIPS * a->in_flight, MIN_EPOCH);
	/* for a transition a short sample will do */
	if (a->settle)
		a->epoch /= 4;
	return a->group != group || a->merge != merge;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_adaptive_decide);
