/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The controller of the plug policy "adaptive".  From samples of what a
 * hardware queue did, it decides how many requests plugs send out at a time.
 * Pure: no clock, no lock, nothing of the block layer, so that simulators in
 * user space build the same file.  Its top has the control law.
 */
#ifndef BLK_PLUG_ADAPTIVE_H
#define BLK_PLUG_ADAPTIVE_H

#include <linux/types.h>

/* What a plug holds under "always". */
#define BLK_PLUG_ADAPTIVE_MAX_GROUP	32

/* What a hardware queue did in an epoch. */
struct blk_plug_adaptive_sample {
	u64 ns;			/* length of the epoch */
	u32 nr;			/* requests that plugs sent out */
	u32 flushes;		/* how many times they did so */
	u32 in_flight;		/* requests not completed at its end */
};

/* The caller of blk_plug_adaptive_decide() needs @group and @epoch alone. */
struct blk_plug_adaptive {
	u8 group;	/* requests that a plug sends out at a time, 1 to 32 */
	u8 from;	/* the best size so far */
	u8 trial;	/* the size that is compared with it; 0: none */
	u8 tried;	/* bit mask of the sizes that have lost against from */
	u8 fill;	/* mean number of requests that a plug sent out */
	bool settle;	/* the next sample covers a transition */
	u8 outliers;	/* samples in a row that do not fit those before */
	u8 pairs;	/* samples of trial, each after one of from */
	u16 delay;	/* samples until the first trial */
	u16 patience;	/* samples to park for the next time */
	u16 parked;	/* samples until the next trial */
	u32 epoch;	/* requests to send out until the next sample is due */
	u32 length;	/* the same, before chance is added */
	u32 random;	/* state of that chance */
	u64 time;	/* mean time per request of from, in ns / 256 */
	u64 dev;	/* mean deviation from that */
	u64 last;	/* the last sample of from, in ns / 256 */
	s64 sum;	/* of what trial gains, over the pairs, in 1/65536 */
	s64 squares;	/* of the squares of that */
};

/* Start as "always"; with different delays, out of step with each other. */
void blk_plug_adaptive_init(struct blk_plug_adaptive *a, unsigned int delay);

/* Take a sample, and decide what to do next.  The caller has @a to itself. */
void blk_plug_adaptive_decide(struct blk_plug_adaptive *a,
			      const struct blk_plug_adaptive_sample *s);

#endif /* BLK_PLUG_ADAPTIVE_H */
