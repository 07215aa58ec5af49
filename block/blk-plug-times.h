/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Response times for the policy "adaptive", counted on the CPU that completes.
 *
 * While the controller compares, they are taken of every batch of at least 4
 * completions; while it is parked, of one in 4.  The clock is read once per
 * such batch.  Where requests complete in smaller batches, it is read at most
 * once per 4 requests on average.
 */
#ifndef BLK_PLUG_TIMES_H
#define BLK_PLUG_TIMES_H

#include <linux/blk-mq.h>
#include <linux/hash.h>

#include "blk-plug-loop.h"

#ifdef CONFIG_BLK_PLUG_POLICY

void __blk_plug_loop_completed(struct blk_mq_hw_ctx *hctx, const int *tags,
			       int nr);
void __blk_plug_loop_freed(struct request *rq);

/*
 * Is @rq one of those whose response time is taken?  One in @mask + 1 is, by
 * chance: the low bits of a time are as good as a die, and need no counter.
 * The tag tells requests apart that share the plug's clock reading.
 */
static inline bool blk_plug_loop_picks(const struct request *rq,
				       unsigned int mask)
{
	return !(hash_32((u32)rq->start_time_ns + rq->tag, 32) >> 16 & mask);
}

/**
 * blk_plug_loop_times - is a start time needed even without statistics?
 * @q: the request's queue, for which iostats is off
 *
 * Context: Any.
 * Return: true if response times will be taken from it.
 */
static inline bool blk_plug_loop_times(const struct request_queue *q)
{
	return blk_plug_loop_on() &&
		test_bit(QUEUE_FLAG_PLUG_ADAPTIVE, &q->queue_flags);
}

/**
 * blk_plug_loop_completed - requests have completed together
 * @hctx: their hardware queue
 * @tags: their tags, which have not been put yet
 * @nr: their number
 *
 * Context: Any.
 */
static inline void blk_plug_loop_completed(struct blk_mq_hw_ctx *hctx,
					   const int *tags, int nr)
{
	if (blk_plug_loop_on())
		__blk_plug_loop_completed(hctx, tags, nr);
}

/**
 * blk_plug_loop_freed - a request is freed on its own
 * @rq: request, which still has its hardware queue
 *
 * Context: Any.
 */
static inline void blk_plug_loop_freed(struct request *rq)
{
	if (blk_plug_loop_on() && blk_plug_loop_picks(rq, 3))
		__blk_plug_loop_freed(rq);
}

#else /* CONFIG_BLK_PLUG_POLICY */

static inline bool blk_plug_loop_times(const struct request_queue *q)
{
	return false;
}

static inline void blk_plug_loop_completed(struct blk_mq_hw_ctx *hctx,
					   const int *tags, int nr)
{
}

static inline void blk_plug_loop_freed(struct request *rq)
{
}

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_TIMES_H */
