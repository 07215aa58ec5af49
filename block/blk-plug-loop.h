/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loop of the plug policy "adaptive": what a hardware queue's plugs send
 * out and how long it takes, sampled for the controller, and its decision.
 *
 * Requests are counted per flush.  In the long run as many complete, so that
 * nothing needs to be counted there but response times: of every batch of
 * completions while the controller compares, of one in 8 while it is parked.
 * The clock is read once per sample and per such batch, and on average not more
 * than once in 4 requests where they complete in smaller batches.
 */
#ifndef BLK_PLUG_LOOP_H
#define BLK_PLUG_LOOP_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/hash.h>
#include <linux/jump_label.h>
#include <linux/spinlock.h>

#include "blk-plug-adaptive.h"

struct seq_file;

/*
 * The parts of blk_plug_loop::decision, of which blk_plug::policy has the low
 * byte.  There, the group size is 0 while nothing is held, and all bits if what
 * is held is sequential, to be held for as long as without a policy.
 */
enum {
	BLK_PLUG_LOOP_GROUP	= 0x3f,
	/* the plug has held something before, or does: only there */
	BLK_PLUG_LOOP_BEGUN	= 0x40,
	/* no merges have been found lately */
	BLK_PLUG_LOOP_RANDOM	= 0x80,
	/* the first request of a plug leaves at once */
	BLK_PLUG_LOOP_FIRST	= 0x100,
	/* groups are of one, but the first two show whether they merge */
	BLK_PLUG_LOOP_PAIR	= 0x200,
};

/**
 * struct blk_plug_loop - a hardware queue's samples and decision
 * @decision:	group size, %BLK_PLUG_LOOP_RANDOM, %BLK_PLUG_LOOP_FIRST
 * @pinned:	group size that was set by hand, 0: the controller's
 * @flushes:	times that a plug sent out requests
 * @flushed:	these requests
 * @merged:	times that the newest of them had been merged
 * @next:	value of @flushed at which the next sample is due
 * @waits:	requests whose response time was taken
 * @wait_ns:	sum of their response times
 * @sparse:	a response time now and then is enough
 * @lock:	protects what follows, @pinned, and writes to @decision, @next
 *		and @sparse; submitters only try to take it
 * @resets:	request_queue::plug_policy_resets when @controller started
 * @total:	the counters and the time when the last sample ended
 * @sample:	the last sample
 * @controller:	decides
 *
 * The counters only grow, and wrap.  They are in cache lines of their own, by
 * who writes them: submitters, and who completes.
 */
struct blk_plug_loop {
	unsigned int decision;
	unsigned int pinned;

	atomic_t flushes ____cacheline_aligned_in_smp;
	atomic_t flushed;
	atomic_t merged;
	u32 next;

	atomic_t waits ____cacheline_aligned_in_smp;
	atomic64_t wait_ns;
	bool sparse;

	spinlock_t lock ____cacheline_aligned_in_smp;
	unsigned int resets;
	struct blk_plug_adaptive_sample total;
	struct blk_plug_adaptive_sample sample;
	struct blk_plug_adaptive controller;
};

#ifdef CONFIG_BLK_PLUG_POLICY

/* Counts the queues whose policy is "adaptive". */
DECLARE_STATIC_KEY_FALSE(blk_plug_loop_key);

/**
 * blk_plug_loop_init_hctx - prepare a new or reused hardware queue
 * @hctx: hardware queue, on which nothing is in flight
 *
 * Without memory its plugs do as under "always".
 *
 * Context: Process context, the queue may be frozen.
 */
void blk_plug_loop_init_hctx(struct blk_mq_hw_ctx *hctx);

/**
 * blk_plug_loop_free_hctx - free what blk_plug_loop_init_hctx() has allocated
 * @hctx: hardware queue that nobody uses any more
 */
void blk_plug_loop_free_hctx(struct blk_mq_hw_ctx *hctx);

/**
 * blk_plug_loop_restart - forget what was learnt about a queue
 * @q: any request queue
 *
 * Takes effect with the next plug.
 *
 * Context: Any.
 */
static inline void blk_plug_loop_restart(struct request_queue *q)
{
	/* When two come at once, one may be lost: the other is not. */
	WRITE_ONCE(q->plug_policy_resets,
		   READ_ONCE(q->plug_policy_resets) + 1);
}

/**
 * blk_plug_loop_decision - what has been decided for a hardware queue
 * @hctx: hardware queue
 *
 * Context: Any.
 * Return: as blk_plug_loop::decision; that of "always" until something has been
 *	learnt, unless it is pinned.
 */
static inline unsigned int
blk_plug_loop_decision(const struct blk_mq_hw_ctx *hctx)
{
	const struct blk_plug_loop *loop = hctx->plug_loop;

	if (!loop)
		return BLK_PLUG_ADAPTIVE_MAX_GROUP;
	/* In the wrong order these give an old decision, for one filling. */
	if (READ_ONCE(loop->resets) !=
	    READ_ONCE(hctx->queue->plug_policy_resets))
		return READ_ONCE(loop->pinned) ?: BLK_PLUG_ADAPTIVE_MAX_GROUP;
	return READ_ONCE(loop->decision);
}

/* <debugfs>/block/<disk>/hctx<N>/plug_adaptive */
int blk_plug_loop_show(void *data, struct seq_file *m);
ssize_t blk_plug_loop_write(void *data, const char __user *buf, size_t count,
			    loff_t *ppos);

void __blk_plug_loop_flush(const struct request *newest, unsigned int nr);
void __blk_plug_loop_completed(struct blk_mq_hw_ctx *hctx, const int *tags,
			       int nr);
void __blk_plug_loop_freed(struct request *rq);

static inline bool blk_plug_loop_on(void)
{
	return static_branch_unlikely(&blk_plug_loop_key);
}

/*
 * Is @rq one of those whose response time is taken?  One in @mask + 1 is, by
 * chance: the low bits of a time are as good as a die, and need no counter.
 * The tag tells those apart that share the plug's reading of the clock.
 */
static inline bool blk_plug_loop_picks(const struct request *rq,
				       unsigned int mask)
{
	return !(hash_32((u32)rq->start_time_ns + rq->tag, 32) >> 16 & mask);
}

/**
 * blk_plug_loop_times - does a request need a start time without statistics?
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
 * blk_plug_loop_flush - a plug sends out requests
 * @plug: plug, which still holds them
 *
 * Counts them all for the hardware queue of the newest: that others go
 * elsewhere is rare, and then both learn from fewer flushes.
 *
 * Context: Task context of the submitter.
 */
static inline void blk_plug_loop_flush(struct blk_plug *plug)
{
	if (blk_plug_loop_on()) {
		plug->policy &= ~BLK_PLUG_LOOP_GROUP;
		__blk_plug_loop_flush(plug->mq_list.tail, plug->rq_count);
	}
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

static inline void blk_plug_loop_init_hctx(struct blk_mq_hw_ctx *hctx)
{
}

static inline void blk_plug_loop_free_hctx(struct blk_mq_hw_ctx *hctx)
{
}

static inline void blk_plug_loop_restart(struct request_queue *q)
{
}

static inline bool blk_plug_loop_times(const struct request_queue *q)
{
	return false;
}

static inline void blk_plug_loop_flush(struct blk_plug *plug)
{
}

static inline void blk_plug_loop_completed(struct blk_mq_hw_ctx *hctx,
					   const int *tags, int nr)
{
}

static inline void blk_plug_loop_freed(struct request *rq)
{
}

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_LOOP_H */
