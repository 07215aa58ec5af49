/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The controller of the plug policy "adaptive": from samples of what a hardware
 * queue did, how many requests its plugs should send out at a time.
 *
 * Pure: no clock, no lock, no allocation, nothing of the block layer.  The
 * kernel, its KUnit tests and a simulator in user space build the same file.
 * The control law is at the top of blk-plug-adaptive.c.
 */
#ifndef BLK_PLUG_ADAPTIVE_H
#define BLK_PLUG_ADAPTIVE_H

#include <linux/types.h>

enum {
	/* What a plug holds under "always". */
	BLK_PLUG_ADAPTIVE_MAX_GROUP	= 32,
};

/**
 * struct blk_plug_adaptive_sample - what a hardware queue did in an epoch
 * @ns:		how long it was, in ns
 * @wait_ns:	sum of the response times of @waits requests, in ns, from when
 *		they were claimed for an I/O, the time in the plug included
 * @nr:		requests that plugs sent out
 * @waits:	requests that completed and whose response time was taken
 * @flushes:	times that plugs sent out requests
 * @merged:	of @flushes, those whose newest request had been merged
 */
struct blk_plug_adaptive_sample {
	u64 ns;
	u64 wait_ns;
	u32 nr;
	u32 waits;
	u32 flushes;
	u32 merged;
};

/**
 * enum blk_plug_adaptive_state - what the controller is doing
 * @BLK_PLUG_ADAPTIVE_MEASURE:	collects samples of the group size in use
 * @BLK_PLUG_ADAPTIVE_TRY:	tries another one
 * @BLK_PLUG_ADAPTIVE_PARKED:	has found none better, and waits
 * @BLK_PLUG_ADAPTIVE_STATES:	number of states
 */
enum blk_plug_adaptive_state {
	BLK_PLUG_ADAPTIVE_MEASURE,
	BLK_PLUG_ADAPTIVE_TRY,
	BLK_PLUG_ADAPTIVE_PARKED,
	BLK_PLUG_ADAPTIVE_STATES,
};

/**
 * struct blk_plug_adaptive_figure - what samples have of one figure
 * @sum:	of differences from the controller's reference, in 1/65536 of it
 * @squares:	sum of the squares of these
 * @nr:		number of samples
 */
struct blk_plug_adaptive_figure {
	s64 sum;
	s64 squares;
	s32 nr;
};

/**
 * struct blk_plug_adaptive_arm - the samples of one group size
 * @time:	times per request
 * @wait:	mean response times
 */
struct blk_plug_adaptive_arm {
	struct blk_plug_adaptive_figure time;
	struct blk_plug_adaptive_figure wait;
};

/**
 * struct blk_plug_adaptive - the controller's state
 * @group:	requests that a plug sends out at a time, 1 to
 *		%BLK_PLUG_ADAPTIVE_MAX_GROUP
 * @merge:	is a bio worth a lookup where the plug can not tell?
 * @first:	does a plug's first request leave at once?
 * @pair:	does a plug begin with two, which shows whether they merge?
 * @state:	&enum blk_plug_adaptive_state
 * @epoch:	requests to be sent out until the next sample is wanted
 * @from:	the group size before the present trial
 * @step:	what the present trial is
 * @tried:	bits of the steps that need not be tried from here
 * @settle:	the next sample is of a transition
 * @odd:	samples in a row that do not fit what was seen when parked
 * @bad:	samples in a row that make no sense
 * @blocks:	of samples that were taken for the present measurement
 * @wanted:	samples that make one
 * @fill:	mean number of requests that a plug sent out at a time
 * @plug:	what it was when last @group was the largest: a whole plug's
 * @samples:	a counter
 * @steps:	samples in a row that may have fallen into step
 * @doubted:	a gain that was too large was gone back on
 * @in_flight:	mean number of requests that have not completed
 * @patience:	samples to be parked for, the next time
 * @parked:	samples until the next trial
 * @time_ref:	time per request that others are compared with, in ns / 256
 * @wait_ref:	response time that others are compared with, likewise
 * @base:	samples of the group size that is compared with
 * @trial:	samples of the one that is tried
 *
 * @group, @merge, @first and @pair are for others to read, @epoch for who calls
 * blk_plug_adaptive_decide(), the rest for nobody.
 */
struct blk_plug_adaptive {
	u8 group;
	bool merge;
	bool first;
	bool pair;
	u8 state;
	u32 epoch;

	u8 from;
	u8 step;
	u8 tried;
	bool settle;
	u8 odd;
	u8 bad;
	u8 blocks;
	u8 wanted;
	u8 fill;
	u8 plug;
	u8 samples;
	u8 steps;
	bool doubted;
	u32 in_flight;
	u16 patience;
	u16 parked;
	u64 time_ref;
	u64 wait_ref;
	struct blk_plug_adaptive_arm base;
	struct blk_plug_adaptive_arm trial;
};

/**
 * blk_plug_adaptive_init - start as "always"
 * @a: controller
 */
void blk_plug_adaptive_init(struct blk_plug_adaptive *a);

/**
 * blk_plug_adaptive_decide - take a sample, and decide what to do next
 * @a: controller
 * @s: what happened since the last call
 *
 * Context: Any, but @a is the caller's alone.
 * Return: true if @group, @merge, @first or @pair has changed.
 */
bool blk_plug_adaptive_decide(struct blk_plug_adaptive *a,
			      const struct blk_plug_adaptive_sample *s);

#endif /* BLK_PLUG_ADAPTIVE_H */
