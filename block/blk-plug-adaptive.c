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
 * - A trial takes 16 samples, or fewer if it can hardly win.  It wins if its
 *   time per request is shorter by more than chance, or if its response time
 *   is, and the time per request does not contradict that by more than chance;
 *   then it is the measure of others.  To be smaller, a group must gain half a
 *   percent; to be larger, it may lose a quarter, since it saves doorbells.  A
 *   sample that is clearly slower ends a trial, even that of the transition.  A
 *   gain of more than a third of the speed is doubted: first see whether it was
 *   not the load that changed.
 *
 * - If nothing is better, park: for 128 samples, twice as long each time, up to
 *   4096, then try again, also the smallest and the largest group.  A trial
 *   that was slower than what it is compared with parks at once: it may have
 *   broken a step that takes long to find again.  For the same reason two fast
 *   samples of a small group are a reason to try 32.
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

	/* Samples of a trial; of its first half, in which it need not gain. */
	TRIAL		= 16,
	HALF_TRIAL	= 8,

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
	SIGMA_2_5	= 25,
	SIGMA_3		= 36,
	SIGMA_4		= 64,
};

enum step { QUARTER, HALF, DOUBLE, HOME, SINGLE, STEPS };

enum verdict { GOOD, TOO_GOOD, BAD, SLOWER };

/* The difference of two means, and its variance. */
struct gain {
	s64 mean, var;
};

static void add(struct blk_plug_adaptive_figure *f, s64 value)
{
	f->sum += value;
	f->squares += value * value;
	f->nr++;
}

static void pool(struct blk_plug_adaptive_figure *to,
		 const struct blk_plug_adaptive_figure *from)
{
	to->sum += from->sum;
	to->squares += from->squares;
	to->nr += from->nr;
}

static void halve(struct blk_plug_adaptive_figure *f)
{
	f->sum /= 2;
	f->squares /= 2;
	f->nr /= 2;
}

static s64 mean(const struct blk_plug_adaptive_figure *f)
{
	return div64_s64(f->sum, f->nr);
}

/* No fewer than two samples; not below what a few samples can tell. */
static s64 variance(const struct blk_plug_adaptive_figure *f)
{
	s64 floor = PERMILLE(2) * PERMILLE(2), nr = f->nr;

	if (nr < 2)
		return floor;
	return max(div64_s64(f->squares * nr - f->sum * f->sum,
			     nr * (nr - 1)), floor);
}

/* The base's variance serves for both: the trial has too few samples. */
static struct gain gain(const struct blk_plug_adaptive_figure *base,
			const struct blk_plug_adaptive_figure *trial)
{
	s64 var = variance(base);

	return (struct gain){
		.mean = mean(base) - mean(trial),
		.var = div64_s64(var, base->nr) + div64_s64(var, trial->nr),
	};
}

/* Is @diff above 0 by more than chance? */
static bool above(s64 diff, s64 var, unsigned int level)
{
	return diff > 0 && 4 * diff * diff > level * var;
}

/* What is the trial like so far?  If good to the end, it wins. */
static enum verdict verdict(const struct blk_plug_adaptive *a)
{
	struct gain time = gain(&a->base.time, &a->trial.time);
	struct gain wait = gain(&a->base.wait, &a->trial.wait);
	s64 need = a->group < a->from ? PERMILLE(5) : -PERMILLE(5) / 2;
	s32 nr = a->trial.time.nr;

	if (above(-time.mean - PERMILLE(30), time.var, SIGMA_4))
		return SLOWER;
	if (nr < 2)
		return GOOD;
	if (above(time.mean - need, time.var, SIGMA_3))
		return time.mean > ONE / 4 ? TOO_GOOD : GOOD;
	if (a->step == HOME)
		return nr < TRIAL ? GOOD : BAD;
	if (above(-time.mean, time.var, SIGMA_2_5))
		return SLOWER;
	/* much shorter, if only a longer trial can tell */
	if (nr < TRIAL && time.mean > PERMILLE(30) &&
	    above(time.mean, time.var, SIGMA_1_5))
		return GOOD;
	if (above(need - time.mean, time.var, SIGMA_2_5) ||
	    above(wait.mean - time.mean, time.var + wait.var, SIGMA_2_5) ||
	    above(need - wait.mean, wait.var, SIGMA_3))
		return BAD;
	return nr < HALF_TRIAL || wait.mean > need ? GOOD : BAD;
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
	a->base = (struct blk_plug_adaptive_arm){};
	a->trial = (struct blk_plug_adaptive_arm){};
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

/* Try what has not been tried, or park. */
static void try_next(struct blk_plug_adaptive *a)
{
	unsigned int group;

	for (a->step = QUARTER; a->step < STEPS; a->step++) {
		group = candidate(a, a->step);
		if (!group || a->tried & BIT(a->step))
			continue;
		a->from = a->group;
		a->state = BLK_PLUG_ADAPTIVE_TRY;
		a->trial = (struct blk_plug_adaptive_arm){};
		change_group(a, group);
		return;
	}
	park(a);
}

/* Does a block of samples disagree with those before? */
static bool drifts(const struct blk_plug_adaptive *a)
{
	struct gain time, wait;

	if (!a->base.time.nr)
		return false;
	time = gain(&a->base.time, &a->trial.time);
	wait = gain(&a->base.wait, &a->trial.wait);
	return above(abs(time.mean), time.var, SIGMA_2_5) ||
		abs(time.mean) > ONE / 4 || abs(wait.mean) > ONE / 4;
}

/* A block of samples is complete. */
static void measured(struct blk_plug_adaptive *a)
{
	if (drifts(a))
		a->base = (struct blk_plug_adaptive_arm){};
	pool(&a->base.time, &a->trial.time);
	pool(&a->base.wait, &a->trial.wait);
	a->trial = (struct blk_plug_adaptive_arm){};
	if (++a->blocks >= MAX_BLOCKS || a->base.time.nr >= a->wanted) {
		a->wanted = BLOCKS * BLOCK;
		try_next(a);
	}
}

/* The trial has stood the test: it is the measure of others. */
static void won(struct blk_plug_adaptive *a)
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

static void judge(struct blk_plug_adaptive *a)
{
	enum verdict v = verdict(a);

	if (v == TOO_GOOD && !a->doubted) {
		/* go back once, to see whether things there are as they were */
		a->doubted = true;
		go_back(a);
	} else if (v == BAD || v == SLOWER) {
		lost(a, v);
	} else if (a->trial.time.nr >= TRIAL) {
		won(a);
	}
}

/* Is a value far from those before, also for how much these vary? */
static bool far(s64 value, const struct blk_plug_adaptive_figure *f)
{
	s64 diff = abs(value - mean(f));

	return diff > ONE / 4 && above(diff, variance(f), SIGMA_4);
}

/*
 * Does a sample fit those before, of the same group size?  If not twice in a
 * row, the load has changed.
 */
static bool fits(struct blk_plug_adaptive *a,
		 const struct blk_plug_adaptive_arm *b, s64 time, s64 wait)
{
	if (b->time.nr < BLOCK ||
	    (!far(time, &b->time) && !far(wait, &b->wait))) {
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
	s64 gain = mean(&a->base.time) - time;

	return a->group < BLK_PLUG_ADAPTIVE_MAX_GROUP && gain > ONE / 8 &&
		above(gain, variance(&a->base.time), SIGMA_1_5);
}

static void arm_add(struct blk_plug_adaptive_arm *arm, s64 time, s64 wait)
{
	add(&arm->time, time);
	add(&arm->wait, wait);
}

static void stay_parked(struct blk_plug_adaptive *a, s64 time, s64 wait)
{
	a->steps = fell_into_step(a, time) ? a->steps + 1 : 0;
	if (a->steps >= MIN_STEPS) {
		a->tried = (u8)~BIT(HOME);
		try_next(a);
		return;
	}
	if (!fits(a, &a->base, time, wait))
		return;
	if (a->base.time.nr >= MEMORY) {
		halve(&a->base.time);
		halve(&a->base.wait);
	}
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
static void settled(struct blk_plug_adaptive *a, u64 value)
{
	s64 loss;

	a->settle = false;
	if (a->state != BLK_PLUG_ADAPTIVE_TRY)
		return;
	loss = relative(value, &a->time_ref) - mean(&a->base.time);
	if (above(loss - ONE / 8, ROUND_TRIPS / SETTLE_TRIPS *
		  variance(&a->base.time), SIGMA_4))
		lost(a, SLOWER);
}

static void step(struct blk_plug_adaptive *a, s64 time, s64 wait)
{
	switch (a->state) {
	case BLK_PLUG_ADAPTIVE_MEASURE:
		arm_add(&a->trial, time, wait);
		if (a->trial.time.nr >= BLOCK)
			measured(a);
		break;
	case BLK_PLUG_ADAPTIVE_TRY:
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
		settled(a, time);
	else if (wait || a->state == BLK_PLUG_ADAPTIVE_PARKED)
		step(a, relative(time, &a->time_ref), wait ?
		     relative(wait, &a->wait_ref) : mean(&a->base.wait));
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
