// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy "adaptive": finds the group size that pays, per hardware
 * queue.
 *
 * What a hold costs, and what a group saves, depends on the device, the
 * submitter and how they fall into step; averages do not tell.  So it is tried:
 *
 * - A sample covers some 16 round trips of what is in flight, and at least 512
 *   completions.  It has two figures: the time per request, which is what
 *   counts, but is noisy, since how a submitter's batches fall into step with
 *   their completions changes slowly; and the mean response time, which hardly
 *   is noisy, but promises too much where the CPU is the limit or where the
 *   step was the gain.
 *
 * - Start as "always", with 32.  Measure until samples no longer drift, then
 *   try a quarter of the group size, then half of it; below 32 also twice it,
 *   and now and then 32 again.
 *
 * - A trial wins if its time per request is shorter by more than chance, or if
 *   its response time is, and the time per request does not contradict that
 *   by more than chance.  To be smaller, a group must gain half a percent; to
 *   be larger, it may lose a quarter, since it saves doorbells.  A single
 *   sample ends a trial that is clearly slower.
 *
 * - Who has won remains on trial for 16 samples before it is the measure of
 *   others.
 *
 * - If nothing is better, park: for 128 samples, twice as long each time, up to
 *   4096.  A trial that was slower than what it is compared with parks at once:
 *   it may have broken a step that takes long to find again.
 *
 * - If two samples in a row differ from those before by a quarter, the load is
 *   another one: start anew.  A sample that makes no sense is ignored, eight in
 *   a row mean "always".
 *
 * - Bios look for a merge where the plug can not tell while one in 16 flushes
 *   ends in a merged request.  A plug's first request leaves at once, on an idle
 *   queue, if there is nothing to merge and a shorter hold has been found to
 *   pay.
 */
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <kunit/visibility.h>

#include "blk-plug-adaptive.h"

#define ONE	65536
#define PERMILLE(x)	((s64)(x) * ONE / 1000)

enum {
	/* Completions per sample: enough round trips to average, to follow. */
	ROUND_TRIPS	= 16,
	MIN_EPOCH	= 512,
	MAX_EPOCH	= 32768,

	/* After a change, what was in flight has to come back first. */
	SETTLE_TRIPS	= 4,
	MIN_SETTLE	= 64,

	/* Samples in a block; two blocks that agree are a measurement. */
	BLOCK		= 3,
	MAX_BLOCKS	= 8,

	/* Samples of a trial: to decide, to give up, to be sure. */
	MIN_TRIAL	= 4,
	MAX_TRIAL	= 8,
	HOME_TRIAL	= 12,
	PROVEN		= 16,

	/* Samples that the measure remembers, when parked. */
	MEMORY		= 32,
	MIN_PATIENCE	= 128,
	MAX_PATIENCE	= 4096,

	MAX_ODD		= 2,
	MAX_BAD		= 8,

	/* Lookups pay if one flush in so many ends in a merged request. */
	MERGE_YIELD	= 16,
};

/* Levels of significance: 4 times the square of a number of standard errors. */
enum {
	SIGMA_2		= 16,
	SIGMA_2_5	= 25,
	SIGMA_3		= 36,
	SIGMA_4		= 64,
};

enum step { QUARTER, HALF, DOUBLE, HOME };

enum verdict { UNDECIDED, YES, NO, SLOWER };

/* What the trial gains over the base, and the variances of these figures. */
struct gain {
	s64 time, time_var;
	s64 wait, wait_var;
};

static void arm_add(struct blk_plug_adaptive_arm *arm, s64 time, s64 wait)
{
	arm->time += time;
	arm->time_sq += time * time;
	arm->wait += wait;
	arm->wait_sq += wait * wait;
	arm->nr++;
}

static void arm_merge(struct blk_plug_adaptive_arm *to,
		      const struct blk_plug_adaptive_arm *from)
{
	to->time += from->time;
	to->time_sq += from->time_sq;
	to->wait += from->wait;
	to->wait_sq += from->wait_sq;
	to->nr += from->nr;
}

static void arm_halve(struct blk_plug_adaptive_arm *arm)
{
	arm->time /= 2;
	arm->time_sq /= 2;
	arm->wait /= 2;
	arm->wait_sq /= 2;
	arm->nr /= 2;
}

static void arm_clear(struct blk_plug_adaptive_arm *arm)
{
	*arm = (struct blk_plug_adaptive_arm){};
}

/* No fewer than two samples; not below what a few samples can tell. */
static s64 variance(s64 sum, s64 squares, s64 nr)
{
	s64 floor = PERMILLE(2) * PERMILLE(2);

	if (nr < 2)
		return floor;
	return max(div64_s64(squares * nr - sum * sum, nr * (nr - 1)), floor);
}

/* The base's variance serves for both: the trial has too few samples. */
static struct gain gain(const struct blk_plug_adaptive_arm *base,
			const struct blk_plug_adaptive_arm *trial)
{
	s64 time = variance(base->time, base->time_sq, base->nr);
	s64 wait = variance(base->wait, base->wait_sq, base->nr);

	return (struct gain){
		.time = div64_s64(base->time, base->nr) -
			div64_s64(trial->time, trial->nr),
		.time_var = div64_s64(time, base->nr) +
			div64_s64(time, trial->nr),
		.wait = div64_s64(base->wait, base->nr) -
			div64_s64(trial->wait, trial->nr),
		.wait_var = div64_s64(wait, base->nr) +
			div64_s64(wait, trial->nr),
	};
}

/* Is @diff above 0 by more than chance? */
static bool above(s64 diff, s64 var, unsigned int level)
{
	return diff > 0 && 4 * diff * diff > level * var;
}

static s64 needed(const struct blk_plug_adaptive *a)
{
	return a->group < a->from ? PERMILLE(5) : -PERMILLE(5) / 2;
}

static enum verdict verdict(const struct blk_plug_adaptive *a)
{
	struct gain g = gain(&a->base, &a->trial);
	s64 need = needed(a);

	if (above(-g.time - PERMILLE(30), g.time_var, SIGMA_4))
		return SLOWER;
	if (a->trial.nr < 2)
		return UNDECIDED;
	if (above(g.time - need, g.time_var, SIGMA_3))
		return YES;
	if (a->step == HOME)
		return a->trial.nr < HOME_TRIAL ? UNDECIDED : NO;
	if (above(-g.time, g.time_var, SIGMA_2_5))
		return SLOWER;
	if (above(need - g.time, g.time_var, SIGMA_2_5) ||
	    above(g.wait - g.time, g.time_var + g.wait_var, SIGMA_2_5) ||
	    above(need - g.wait, g.wait_var, SIGMA_3))
		return NO;
	if (a->trial.nr < MIN_TRIAL)
		return UNDECIDED;
	if (above(g.wait - need, g.wait_var, SIGMA_2))
		return YES;
	if (a->trial.nr < MAX_TRIAL)
		return UNDECIDED;
	return g.wait > need ? YES : NO;
}

static void change_group(struct blk_plug_adaptive *a, unsigned int group)
{
	a->group = group;
	a->settle = true;
}

static void measure(struct blk_plug_adaptive *a)
{
	a->state = BLK_PLUG_ADAPTIVE_MEASURE;
	a->blocks = 0;
	arm_clear(&a->base);
	arm_clear(&a->trial);
}

static void park(struct blk_plug_adaptive *a)
{
	a->state = BLK_PLUG_ADAPTIVE_PARKED;
	a->odd = 0;
	a->parked = a->patience;
	a->patience = min(2 * a->patience, MAX_PATIENCE);
}

/* What a step leads to; 0 if it leads nowhere. */
static unsigned int candidate(const struct blk_plug_adaptive *a, enum step step)
{
	/* a group that no plug fills is as good as the plug */
	unsigned int group = min(a->group, rounddown_pow_of_two(a->fill));

	switch (step) {
	case QUARTER:
		return group / 4;
	case HALF:
		return group / 2;
	case DOUBLE:
		return a->group < BLK_PLUG_ADAPTIVE_MAX_GROUP ?
			2 * a->group : 0;
	case HOME:
		return 2 * a->group < BLK_PLUG_ADAPTIVE_MAX_GROUP ?
			BLK_PLUG_ADAPTIVE_MAX_GROUP : 0;
	}
	return 0;
}

/* Try what has not been tried, or park. */
static void try_next(struct blk_plug_adaptive *a)
{
	unsigned int group;

	for (a->step = QUARTER; a->step <= HOME; a->step++) {
		group = candidate(a, a->step);
		if (!group || a->tried & BIT(a->step))
			continue;
		a->from = a->group;
		a->state = BLK_PLUG_ADAPTIVE_TRY;
		arm_clear(&a->trial);
		change_group(a, group);
		return;
	}
	park(a);
}

/* A block of samples is complete: does it agree with those before? */
static void measured(struct blk_plug_adaptive *a)
{
	struct gain g;
	bool drifts = false;

	if (a->base.nr) {
		g = gain(&a->base, &a->trial);
		drifts = above(abs(g.time), g.time_var, SIGMA_2_5);
	}
	if (drifts)
		arm_clear(&a->base);
	arm_merge(&a->base, &a->trial);
	arm_clear(&a->trial);
	if (a->base.nr >= 2 * BLOCK || ++a->blocks >= MAX_BLOCKS)
		try_next(a);
}

/* The trial has stood the test: it is the measure of others. */
static void proven(struct blk_plug_adaptive *a)
{
	a->tried = BIT(QUARTER) | BIT(HOME);
	if (a->step == HALF)
		a->tried |= BIT(DOUBLE);
	else if (a->step != QUARTER)
		a->tried |= BIT(HALF);
	a->patience = a->step == HOME ? a->patience : MIN_PATIENCE;
	a->base = a->trial;
	try_next(a);
}

static void lost(struct blk_plug_adaptive *a, enum verdict verdict)
{
	a->tried |= BIT(a->step);
	if (verdict == SLOWER)
		a->tried |= BIT(QUARTER) | BIT(HALF) | BIT(HOME);
	change_group(a, a->from);
	measure(a);
}

static void judge(struct blk_plug_adaptive *a)
{
	enum verdict v = verdict(a);

	if (v == NO || v == SLOWER)
		lost(a, v);
	else if (a->state == BLK_PLUG_ADAPTIVE_PROVE && a->trial.nr >= PROVEN)
		proven(a);
	else if (v == YES)
		a->state = BLK_PLUG_ADAPTIVE_PROVE;
}

/* Does a sample fit those before?  They are of the same group size. */
static bool fits(const struct blk_plug_adaptive *a, s64 time, s64 wait)
{
	s64 time_diff = time - div64_s64(a->base.time, a->base.nr);
	s64 wait_diff = wait - div64_s64(a->base.wait, a->base.nr);

	return abs(time_diff) < ONE / 4 && abs(wait_diff) < ONE / 4;
}

static void stay_parked(struct blk_plug_adaptive *a, s64 time, s64 wait)
{
	if (!fits(a, time, wait)) {
		if (++a->odd >= MAX_ODD)
			blk_plug_adaptive_init(a);
		return;
	}
	a->odd = 0;
	if (a->base.nr >= MEMORY)
		arm_halve(&a->base);
	arm_add(&a->base, time, wait);
	if (--a->parked)
		return;
	/* A large step may do harm, and was for finding the region. */
	a->tried = a->group < BLK_PLUG_ADAPTIVE_MAX_GROUP ? BIT(QUARTER) : 0;
	try_next(a);
}

static void step(struct blk_plug_adaptive *a, s64 time, s64 wait)
{
	switch (a->state) {
	case BLK_PLUG_ADAPTIVE_MEASURE:
		arm_add(&a->trial, time, wait);
		if (a->trial.nr >= BLOCK)
			measured(a);
		break;
	case BLK_PLUG_ADAPTIVE_TRY:
	case BLK_PLUG_ADAPTIVE_PROVE:
		arm_add(&a->trial, time, wait);
		judge(a);
		break;
	case BLK_PLUG_ADAPTIVE_PARKED:
		stay_parked(a, time, wait);
		break;
	}
}

/* The difference from a reference, in 1/65536 of it, no more than all of it. */
static s64 relative(u64 value, u64 *ref)
{
	if (!*ref)
		*ref = value;
	if (value >= 2 * *ref)
		return ONE;
	return (s64)div64_u64(value * ONE, *ref) - ONE;
}

static bool makes_sense(const struct blk_plug_adaptive_sample *s)
{
	/* 2^36 ns is a minute; 24 bits more are needed below */
	return s->nr && s->waits && s->waits <= s->nr &&
		s->ns >= s->nr / 256 + 1 && !(s->ns >> 36) &&
		s->wait_ns >= s->waits / 256 + 1 &&
		!(div64_u64(s->wait_ns, s->waits) >> 36);
}

static void observe(struct blk_plug_adaptive *a,
		    const struct blk_plug_adaptive_sample *s)
{
	if (!s->flushes)
		return;
	a->merge = s->merged >= s->flushes / MERGE_YIELD + 1;
	if (a->state == BLK_PLUG_ADAPTIVE_MEASURE ||
	    a->state == BLK_PLUG_ADAPTIVE_PARKED)
		a->fill = clamp(s->flushed / s->flushes, 1,
				BLK_PLUG_ADAPTIVE_MAX_GROUP);
}

static void take(struct blk_plug_adaptive *a,
		 const struct blk_plug_adaptive_sample *s)
{
	u64 time = div64_u64(s->ns * 256, s->nr);
	u64 wait = div64_u64(s->wait_ns * 256, s->waits);
	/* Little's law */
	u32 in_flight = clamp(div64_u64(wait, time), 1, MAX_EPOCH);

	observe(a, s);
	if (a->settle)
		a->settle = false;
	else
		step(a, relative(time, &a->time_ref),
		     relative(wait, &a->wait_ref));
	a->first = a->group < BLK_PLUG_ADAPTIVE_MAX_GROUP && !a->merge;
	a->epoch = a->settle ? max(SETTLE_TRIPS * in_flight, MIN_SETTLE) :
		clamp(ROUND_TRIPS * in_flight, MIN_EPOCH, MAX_EPOCH);
}

void blk_plug_adaptive_init(struct blk_plug_adaptive *a)
{
	*a = (struct blk_plug_adaptive){
		.group = BLK_PLUG_ADAPTIVE_MAX_GROUP,
		.merge = true,
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
	bool merge = a->merge, first = a->first;

	if (makes_sense(s)) {
		a->bad = 0;
		take(a, s);
	} else if (++a->bad >= MAX_BAD) {
		blk_plug_adaptive_init(a);
	}
	return a->group != group || a->merge != merge || a->first != first;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_adaptive_decide);
