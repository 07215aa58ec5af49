/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The controller of the plug policy "adaptive".  From samples of what a
 * hardware queue did, it decides how many requests plugs send out at a time,
 * and whether bios look for a merge.
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

	/*
	 * Lookups pay if more than one in this many finds a merge; 16 to 64 do
	 * equally well.  If not, one plug in this many still looks, to find out
	 * when that changes.
	 */
	BLK_PLUG_ADAPTIVE_RARE		= 32,

	/* This many merges in one plug are no accident: look again at once. */
	BLK_PLUG_ADAPTIVE_SEQUENTIAL	= 4,
};

/**
 * struct blk_plug_adaptive_sample - what a hardware queue did in an epoch
 * @ns:		length of the epoch, in ns
 * @wait_ns:	sum of the response times of @waits requests, in ns, from when
 *		an I/O claims the request, so that time in the plug counts
 * @nr:		I/Os that plugs sent out, including merged ones
 * @waits:	requests that completed and whose response time was taken
 * @flushes:	times that plugs sent out requests
 * @merged:	of @nr, I/Os that joined a request
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
 * enum blk_plug_adaptive_figure - the figures of a sample
 * @BLK_PLUG_ADAPTIVE_TIME:	time per I/O
 * @BLK_PLUG_ADAPTIVE_WAIT:	mean response time
 * @BLK_PLUG_ADAPTIVE_FIGURES:	number of figures
 */
enum blk_plug_adaptive_figure {
	BLK_PLUG_ADAPTIVE_TIME,
	BLK_PLUG_ADAPTIVE_WAIT,
	BLK_PLUG_ADAPTIVE_FIGURES,
};

/**
 * struct blk_plug_adaptive_arm - the samples of one group size
 * @nr:		number of samples
 * @sum:	by figure: sum of the differences from blk_plug_adaptive::ref,
 *		in 1/65536 of it
 * @squares:	by figure: sum of the squares of these differences
 */
struct blk_plug_adaptive_arm {
	s32 nr;
	s64 sum[BLK_PLUG_ADAPTIVE_FIGURES];
	s64 squares[BLK_PLUG_ADAPTIVE_FIGURES];
};

/**
 * struct blk_plug_adaptive - the controller's state
 * @group:	requests that a plug sends out at a time, 1 to
 *		%BLK_PLUG_ADAPTIVE_MAX_GROUP
 * @merge:	are lookups for merges worth their cost?
 * @state:	&enum blk_plug_adaptive_state
 * @pinned:	@group was set by hand and must not change
 * @epoch:	I/Os to send out until the next sample is due
 * @from:	the group size before the current trial
 * @tried:	bit mask of the group sizes that have lost against @group
 * @settle:	the next sample covers a transition
 * @odd:	samples in a row that do not fit what was seen before
 * @fill:	mean number of requests that a plug sent out at a time
 * @patience:	samples to park for the next time
 * @parked:	samples until the next trial
 * @in_flight:	mean number of I/Os that have not completed
 * @ref:	the reference for each figure, in ns / 256
 * @base:	samples of the group size that trials are compared with
 * @trial:	samples of the size on trial, or of a block while measuring
 *
 * Anyone may read @group and @merge; @epoch and @state are for the caller of
 * blk_plug_adaptive_decide(), the rest is for debugfs at most.
 */
struct blk_plug_adaptive {
	u8 group;
	bool merge;
	u8 state;
	bool pinned;
	u32 epoch;

	u8 from;
	u8 tried;
	bool settle;
	u8 odd;
	u8 fill;
	u16 patience;
	u16 parked;
	u32 in_flight;
	u64 ref[BLK_PLUG_ADAPTIVE_FIGURES];
	struct blk_plug_adaptive_arm base;
	struct blk_plug_adaptive_arm trial;
};

/**
 * blk_plug_adaptive_init - start as "always"
 * @a: controller
 * @pinned: group size to keep, 0 to find one
 */
void blk_plug_adaptive_init(struct blk_plug_adaptive *a, unsigned int pinned);

/**
 * blk_plug_adaptive_decide - take a sample, and decide what to do next
 * @a: controller
 * @s: what happened since the last call
 *
 * Context: Any.  The caller has @a to itself.
 * Return: true if @group or @merge has changed.
 */
bool blk_plug_adaptive_decide(struct blk_plug_adaptive *a,
			      const struct blk_plug_adaptive_sample *s);

#endif /* BLK_PLUG_ADAPTIVE_H */
