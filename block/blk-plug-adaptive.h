/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The controller of the plug policy "adaptive".  From samples of what a
 * hardware queue did, it decides how many requests plugs send out at a time.
 *
 * Pure: no clock, no lock, no allocation, nothing of the block layer.  The
 * kernel, its KUnit tests and simulators in user space build the same file.
 * The control law is at the top of blk-plug-adaptive.c.
 */
#ifndef BLK_PLUG_ADAPTIVE_H
#define BLK_PLUG_ADAPTIVE_H

#include <linux/types.h>

/* What a plug holds under "always". */
#define BLK_PLUG_ADAPTIVE_MAX_GROUP	32

/**
 * struct blk_plug_adaptive_sample - what a hardware queue did in an epoch
 * @ns:		length of the epoch, in ns
 * @nr:		requests that plugs sent out
 * @flushes:	how many times they did so
 * @in_flight:	requests that had not completed at its end
 */
struct blk_plug_adaptive_sample {
	u64 ns;
	u32 nr;
	u32 flushes;
	u32 in_flight;
};

/**
 * struct blk_plug_adaptive - the controller's state
 * @group:	requests that a plug sends out at a time, 1 to
 *		%BLK_PLUG_ADAPTIVE_MAX_GROUP
 * @from:	the best size so far
 * @trial:	the size that is compared with it; 0: none
 * @tried:	bit mask of the sizes that have lost against @from
 * @fill:	mean number of requests that a plug sent out at a time
 * @settle:	the next sample covers a transition
 * @odd:	samples in a row that do not fit what was seen before
 * @pairs:	samples of @trial, each of which follows one of @from
 * @delay:	samples until the first trial
 * @patience:	samples to park for the next time
 * @parked:	samples until the next trial
 * @epoch:	requests to send out until the next sample is due
 * @length:	the same, before chance is added
 * @random:	state of that chance
 * @time:	mean time per request of @from, in ns / 256
 * @dev:	mean deviation from that
 * @promise:	@from is in doubt where @time is above this; 0: none
 * @last:	the last sample of @from, in ns / 256
 * @sum:	sum over the pairs of what @trial gains, in 1/65536
 * @squares:	sum of the squares of that
 *
 * @group and @epoch are for the caller of blk_plug_adaptive_decide(); the rest
 * is for those who show it at most.
 */
struct blk_plug_adaptive {
	u8 group;
	u8 from;
	u8 trial;
	u8 tried;
	u8 fill;
	bool settle;
	u8 odd;
	u8 pairs;
	u16 delay;
	u16 patience;
	u16 parked;
	u32 epoch;
	u32 length;
	u32 random;
	u64 time;
	u64 dev;
	u64 promise;
	u64 last;
	s64 sum;
	s64 squares;
};

/**
 * blk_plug_adaptive_init - start as "always"
 * @a: controller
 * @delay: samples until the first trial, to keep controllers out of step that
 *	start at the same time
 */
void blk_plug_adaptive_init(struct blk_plug_adaptive *a, unsigned int delay);

/**
 * blk_plug_adaptive_decide - take a sample, and decide what to do next
 * @a: controller
 * @s: what happened since the last call
 *
 * Context: Any.  The caller has @a to itself.
 */
void blk_plug_adaptive_decide(struct blk_plug_adaptive *a,
			      const struct blk_plug_adaptive_sample *s);

#endif /* BLK_PLUG_ADAPTIVE_H */
