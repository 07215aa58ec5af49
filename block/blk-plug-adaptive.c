// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy "adaptive": finds the group size that pays, per hardware
 * queue.
 *
 * What a hold costs, and what a group saves, depends on the device, the
 * submitter and how they fall into step; averages do not tell.  So it is tried:
 *
 * - A sample covers some 16 round trips of what is in flight.  It has two
 *   figures: the time per request, which is what counts, but varies by 5% where
 *   latency does, since how batches fall into step changes slowly; and the mean
 *   response time, which varies little, but promises too much where the CPU is
 *   the limit or where the step was the gain.
 *
 * - Start as "always", with 32.  Measure until samples no longer drift, then
 *   try a quarter of the group size, then half of it; below 32 also twice it.
 *
 * - A trial wins if its time per request is shorter by more than chance, or if
 *   its response time is, and the time per request does not contradict that
 *   by more than chance.  To be smaller, a group must gain half a percent; to
 *   be larger, it may lose a quarter, since it saves doorbells.  A sample that
 *   is clearly slower ends a trial, even that of the transition.
 *
 * - Who has won remains on trial for 16 samples before it is the measure of
 *   others.  A gain of more than a third of the speed is doubted: first see
 *   whether it was not the load that changed.
 *
 * - If nothing is better, park: for 128 samples, twice as long each time, up to
 *   4096, then try again, also the smallest and the largest group.  A trial
 *   that was slower than what it is compared with parks at once: it may have
 *   broken a step that takes long to find again.  For the same reason nothing
 *   smaller is tried before the first park while the time per request hardly
 *   varies; and two fast samples of a small group are a reason to try 32.
 *
 * - If two samples in a row differ from those before by a quarter, and by more
 *   than these vary, the load is another one: start anew.  A sample that makes
 *   no sense is ignored, eight in a row mean "always".
 *
 * - Bios look for a merge where the plug can not tell while one in 16 flushes
 *   ends in a merged request.  A plug's first request leaves at once if not
 *   more is in flight than a plug holds, so that the queue was idle, there is
 *   nothing to merge, and a shorter hold has been found to pay.
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
#define IN_STEP		PERMILLE(3)

enum {
	/*
	 * Requests per sample: 16 round trips of what is in flight, so that
	 * batches have fallen into step; with many in flight fewer will do.
	 */
	ROUND_TRIPS	= 16,
	FEW_TRIPS	= 4,
	MIN_EPOCH	= 512,
	ENOUGH		= 2048,
	MAX_EPOCH	= 32768,

	/* After a change, what was in flight has to come back first. */
	SETTLE_TRIPS	= 4,
	MIN_SETTLE	= 64,

	/*
	 * Samples in a block.  Two blocks that agree are a measurement, but for
	 * the first: a submitter takes a while to fall into step.
	 */
	BLOCK		= 3,
	BLOCKS		= 2,
	FIRST_BLOCKS	= 4,
	MAX_BLOCKS	= 8,

	/* Samples of a trial: to decide, to give up, to be sure. */
	MIN_TRIAL	= 4,
	MAX_TRIAL	= 8,
	LONG_TRIAL	= 16,
	PROVEN		= 16,

	/* Samples that the measure remembers, when parked. */
	MEMORY		= 32,
	MIN_PATIENCE	= 128,
	MAX_PATIENCE	= 4096,

	MIN_STEPS	= 2,
	MAX_ODD		= 2,
	MAX_BAD		= 8,

	/* One sample in so many shows whether bios merge that leave alone. */
	PAIR_EVERY	= 16,

	/* Lookups pay if one flush in so many ends in a merged request. */
	MERGE_YIELD	= 16,
};

/* Levels of significance: 4 times the square of a number of standard errors. */
enum {
	SIGMA_1_5	= 9,
	SIGMA_2		= 16,
	SIGMA_2_5	= 25,
	SIGMA_3		= 36,
	SIGMA_4		= 64,
};

enum step { QUARTER, HALF, DOUBLE, HOME, SINGLE, STEPS };

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

/* Is the time per request much shorter, if only a longer trial can tell? */
static bool promising(const struct blk_plug_adaptive *a, const struct gain *g)
{
	return a->trial.nr < LONG_TRIAL && g->time > PERMILLE(30) &&
		above(g->time, g->time_var, SIGMA_1_5);
}

static enum verdict verdict(const struct blk_plug_adaptive *a)
{
	struct gain g = gain(&a->base, &a->trial);
	s64 need = needed(a);

	if (above(-g.time - PERMILLE(30), g.time_var, SIGMA_4))
		return SLOWER;
	if (a->trial.nr < 2)
		return UNDECIDED;
	if (above(g.time - need, g.time_var,
		  a->trial.nr < LONG_TRIAL ? SIGMA_3 : SIGMA_2_5))
		return YES;
	if (a->step == HOME)
		return a->trial.nr < LONG_TRIAL ? UNDECIDED : NO;
	if (above(-g.time, g.time_var, SIGMA_2_5))
		return SLOWER;
	if (promising(a, &g))
		return UNDECIDED;
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
	a->time_ref = 0;
	a->wait_ref = 0;
	arm_clear(&a->base);
	arm_clear(&a->trial);
}

static void go_back(struct blk_plug_adaptive *a)
{
	change_group(a, a->from);
	measure(a);
}

static void park(struct blk_plug_adaptive *a)
{
	a->state = BLK_PLUG_ADAPTIVE_PARKED;
	a->doubted = false;
	a->homed = false;
	a->waited = true;
	a->odd = 0;
	a->parked = a->patience;
	a->patience = min(2 * a->patience, MAX_PATIENCE);
}

/* What a step leads to; 0 if it leads nowhere. */
static unsigned int candidate(const struct blk_plug_adaptive *a, enum step step)
{
	/* a group that no plug fills is as good as the plug */
	unsigned int group = min(a->group, roundup_pow_of_two(a->fill));

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
	case SINGLE:
		return group > 2;
	case STEPS:
		break;
	}
	return 0;
}

/*
 * Does the time per request hardly vary, though more is in flight than a plug
 * holds?  Then the CPU or the device is the limit, or batches return in step
 * with their submission.  A smaller group will hardly help, and may break the
 * step: there is no hurry to try one.
 */
static bool in_step(const struct blk_plug_adaptive *a)
{
	const struct blk_plug_adaptive_arm *b = &a->base;

	return a->in_flight > 2 * a->plug &&
		variance(b->time, b->time_sq, b->nr) <= IN_STEP * IN_STEP;
}

/* Try what has not been tried, or park. */
static void try_next(struct blk_plug_adaptive *a)
{
	unsigned int group;

	for (a->step = QUARTER; a->step < STEPS; a->step++) {
		group = candidate(a, a->step);
		if (!group || a->tried & BIT(a->step))
			continue;
		if (group < a->group && !a->waited && in_step(a))
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
		drifts = above(abs(g.time), g.time_var, SIGMA_2_5) ||
			abs(g.time) > ONE / 4 || abs(g.wait) > ONE / 4;
	}
	if (drifts)
		arm_clear(&a->base);
	arm_merge(&a->base, &a->trial);
	arm_clear(&a->trial);
	if (++a->blocks >= MAX_BLOCKS || a->base.nr >= a->wanted) {
		a->wanted = BLOCKS * BLOCK;
		try_next(a);
	}
}

/* The trial has stood the test: it is the measure of others. */
static void proven(struct blk_plug_adaptive *a)
{
	a->tried = BIT(QUARTER) | BIT(HOME) | BIT(SINGLE);
	if (a->step == HALF)
		a->tried |= BIT(DOUBLE);
	else if (a->step != QUARTER)
		a->tried |= BIT(HALF);
	a->patience = a->step == HOME ? a->patience : MIN_PATIENCE;
	a->doubted = false;
	a->base = a->trial;
	try_next(a);
}

static void lost(struct blk_plug_adaptive *a, enum verdict verdict)
{
	a->tried |= BIT(a->step);
	if (verdict == SLOWER)
		a->tried |= BIT(QUARTER) | BIT(HALF) | BIT(HOME) | BIT(SINGLE);
	go_back(a);
}

/*
 * Too good to be true?  It may have been the load that changed.  Go back once,
 * to see whether things there are as they were.
 */
static bool doubtful(const struct blk_plug_adaptive *a)
{
	return !a->doubted && gain(&a->base, &a->trial).time > ONE / 4;
}

static void doubt(struct blk_plug_adaptive *a)
{
	a->doubted = true;
	go_back(a);
}

static void judge(struct blk_plug_adaptive *a)
{
	enum verdict v = verdict(a);

	if (v == YES && doubtful(a))
		doubt(a);
	else if (v == NO || v == SLOWER)
		lost(a, v);
	else if (a->state == BLK_PLUG_ADAPTIVE_PROVE && a->trial.nr >= PROVEN)
		proven(a);
	else if (v == YES)
		a->state = BLK_PLUG_ADAPTIVE_PROVE;
}

/* Is a figure far from those before, also for how much these vary? */
static bool far(s64 value, s64 sum, s64 squares, s64 nr)
{
	s64 diff = abs(value - div64_s64(sum, nr));

	return diff > ONE / 4 && above(diff, variance(sum, squares, nr),
				       SIGMA_4);
}

/*
 * Does a sample fit those before, of the same group size?  If not twice in a
 * row, the load has changed.
 */
static bool fits(struct blk_plug_adaptive *a,
		 const struct blk_plug_adaptive_arm *b, s64 time, s64 wait)
{
	if (b->nr < BLOCK || (!far(time, b->time, b->time_sq, b->nr) &&
			      !far(wait, b->wait, b->wait_sq, b->nr))) {
		a->odd = 0;
		return true;
	}
	if (++a->odd >= MAX_ODD)
		blk_plug_adaptive_init(a);
	return false;
}

/*
 * Is a sample of small groups faster than those before by an eighth?  Then it
 * may have fallen into step by chance, in which large ones would keep it.
 */
static bool fell_into_step(const struct blk_plug_adaptive *a, s64 time)
{
	const struct blk_plug_adaptive_arm *b = &a->base;
	s64 gain = div64_s64(b->time, b->nr) - time;

	return a->group < BLK_PLUG_ADAPTIVE_MAX_GROUP && gain > ONE / 8 &&
		above(gain, variance(b->time, b->time_sq, b->nr), SIGMA_1_5);
}

static void stay_parked(struct blk_plug_adaptive *a, s64 time, s64 wait)
{
	a->steps = fell_into_step(a, time) ? a->steps + 1 : 0;
	if (!a->homed && a->steps >= MIN_STEPS) {
		a->homed = true;
		a->tried = (u8)~BIT(HOME);
		try_next(a);
		return;
	}
	if (!fits(a, &a->base, time, wait))
		return;
	if (a->base.nr >= MEMORY)
		arm_halve(&a->base);
	arm_add(&a->base, time, wait);
	if (--a->parked)
		return;
	/* A large step may do harm, and was for finding the region. */
	a->tried = a->group < BLK_PLUG_ADAPTIVE_MAX_GROUP ? BIT(QUARTER) : 0;
	try_next(a);
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

/*
 * The sample of a transition tells little, but enough to end a trial that does
 * serious harm.
 */
static void settled(struct blk_plug_adaptive *a, u64 value, u32 nr)
{
	/* a plug's worth of requests is there or not, at both ends */
	s64 harm = ONE / 8 + 2 * ONE * a->plug / nr, time, mean, var;

	a->settle = false;
	if (a->state != BLK_PLUG_ADAPTIVE_TRY || a->trial.nr)
		return;
	time = relative(value, &a->time_ref);
	mean = div64_s64(a->base.time, a->base.nr);
	var = variance(a->base.time, a->base.time_sq, a->base.nr);
	if (above(time - mean - harm, ROUND_TRIPS / SETTLE_TRIPS * var,
		  SIGMA_4))
		lost(a, SLOWER);
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
		if (!fits(a, &a->trial, time, wait))
			break;
		arm_add(&a->trial, time, wait);
		judge(a);
		break;
	case BLK_PLUG_ADAPTIVE_PARKED:
		stay_parked(a, time, wait);
		break;
	}
}

static bool makes_sense(const struct blk_plug_adaptive_sample *s)
{
	/* 2^36 ns is a minute; 24 bits more are needed below */
	return s->nr && s->ns >= s->nr / 256 + 1 && !(s->ns >> 36) &&
		(!s->waits || (s->wait_ns >= s->waits / 256 + 1 &&
			       !(div64_u64(s->wait_ns, s->waits) >> 36)));
}

static void observe(struct blk_plug_adaptive *a,
		    const struct blk_plug_adaptive_sample *s)
{
	if (!s->flushes)
		return;
	a->merge = s->merged >= s->flushes / MERGE_YIELD + 1;
	if (a->state == BLK_PLUG_ADAPTIVE_MEASURE ||
	    a->state == BLK_PLUG_ADAPTIVE_PARKED)
		a->fill = clamp((s->nr + s->flushes / 2) / s->flushes, 1,
				BLK_PLUG_ADAPTIVE_MAX_GROUP);
	if (a->group == BLK_PLUG_ADAPTIVE_MAX_GROUP && !a->settle)
		a->plug = a->fill;
}

static u32 epoch(const struct blk_plug_adaptive *a)
{
	if (a->settle)
		return max(SETTLE_TRIPS * a->in_flight, MIN_SETTLE);
	return clamp(ROUND_TRIPS * a->in_flight, MIN_EPOCH,
		     max(FEW_TRIPS * a->in_flight, ENOUGH));
}

static void take(struct blk_plug_adaptive *a,
		 const struct blk_plug_adaptive_sample *s)
{
	u64 time = div64_u64(s->ns * 256, s->nr), wait = 0;

	observe(a, s);
	if (s->waits) {
		wait = div64_u64(s->wait_ns * 256, s->waits);
		/* Little's law */
		a->in_flight = clamp(div64_u64(wait, time), 1,
				     MAX_EPOCH / FEW_TRIPS);
	}
	if (a->settle)
		settled(a, time, s->nr);
	else if (wait)
		step(a, relative(time, &a->time_ref),
		     relative(wait, &a->wait_ref));
	else if (a->state == BLK_PLUG_ADAPTIVE_PARKED)
		step(a, relative(time, &a->time_ref),
		     div64_s64(a->base.wait, a->base.nr));
	a->pair = a->group == 1 && (a->merge || !(++a->samples % PAIR_EVERY));
	a->first = a->group < BLK_PLUG_ADAPTIVE_MAX_GROUP && a->group > 1 &&
		!a->merge && a->in_flight <= a->plug;
	a->epoch = epoch(a);
}

void blk_plug_adaptive_init(struct blk_plug_adaptive *a)
{
	*a = (struct blk_plug_adaptive){
		.group = BLK_PLUG_ADAPTIVE_MAX_GROUP,
		.merge = true,
		.epoch = MIN_EPOCH,
		.settle = true,
		.fill = 1,
		.tried = BIT(SINGLE),
		.wanted = FIRST_BLOCKS * BLOCK,
		.patience = MIN_PATIENCE,
	};
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_adaptive_init);

bool blk_plug_adaptive_decide(struct blk_plug_adaptive *a,
			      const struct blk_plug_adaptive_sample *s)
{
	u8 group = a->group;
	bool merge = a->merge, first = a->first, pair = a->pair;

	if (makes_sense(s)) {
		a->bad = 0;
		take(a, s);
	} else if (++a->bad >= MAX_BAD) {
		blk_plug_adaptive_init(a);
	}
	return a->group != group || a->merge != merge || a->first != first ||
		a->pair != pair;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_adaptive_decide);
