/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loop of the plug policy "adaptive": what a hardware queue's plugs send
 * out and how long it takes, sampled for the controller, and its decision.
 *
 * Submitters and completers count on their own CPU, per flush and per batch of
 * completions, and tell others once in 128 I/Os.  Response times are taken of
 * every batch of completions while the controller compares, of one in 4 while
 * it is parked.  The clock is read once per sample and per such batch, and on
 * average not more than once in 4 requests where they complete in smaller
 * batches.
 *
 * Knows nothing of plugs and modes: those are above, the controller is below.
 */
#ifndef BLK_PLUG_LOOP_H
#define BLK_PLUG_LOOP_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/hash.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "blk-plug-adaptive.h"

struct seq_file;

/* The parts of blk_plug_loop::decision. */
enum {
	/* requests that leave at a time */
	BLK_PLUG_LOOP_GROUP	= 0x3f,
	/* lookups for merges are not worth their cost */
	BLK_PLUG_LOOP_RANDOM	= 0x80,
};

/**
 * struct blk_plug_loop_cpu - what a CPU has counted for a hardware queue
 * @wait:	sum of response times, in 256 ns
 * @waits:	of so many requests
 * @flushes:	times that a plug sent out requests
 * @sent:	I/Os of these requests
 * @merged:	of @sent, those that joined a request
 *
 * The counters only grow, and wrap.
 */
struct blk_plug_loop_cpu {
	unsigned long wait;
	u32 waits;
	u32 flushes;
	u32 sent;
	u32 merged;
};

/**
 * struct blk_plug_loop - a hardware queue's samples and decision
 * @decision:	%BLK_PLUG_LOOP_GROUP, %BLK_PLUG_LOOP_RANDOM
 * @pinned:	group size that was set by hand, 0: the controller's
 * @sparse:	a response time now and then is enough
 * @resets:	request_queue::plug_policy_resets when @controller started
 * @cpu:	request_queue::plug_loop_cpu: counters by type of hardware queue
 * @folded:	I/Os that CPUs have told of
 * @next:	value of @folded at which the next sample is due
 * @lock:	protects what follows, and writes to what comes before @cpu and
 *		to @next; submitters only try to take it
 * @total:	the counters and the time when the last sample ended
 * @sample:	the last sample
 * @controller:	decides
 *
 * What every plug reads comes first, and is written only if it changes.
 */
struct blk_plug_loop {
	u8 decision;
	u8 pinned;
	bool sparse;
	unsigned int resets;
	struct blk_plug_loop_cpu __percpu *cpu;

	atomic_t folded ____cacheline_aligned_in_smp;
	u32 next;
	spinlock_t lock;	/* for what follows */
	struct blk_plug_adaptive_sample total;
	struct blk_plug_adaptive_sample sample;
	struct blk_plug_adaptive controller;
};

#ifdef CONFIG_BLK_PLUG_POLICY

/* Counts the queues whose policy is "adaptive". */
DECLARE_STATIC_KEY_FALSE(blk_plug_loop_key);

/**
 * blk_plug_loop_alloc - get the memory that a queue on "adaptive" needs
 * @q: blk-mq queue
 *
 * Submitters may already be on "adaptive", and find it at once.  It is kept
 * until the queue goes.  A queue that "adaptive" can do nothing for needs none.
 *
 * Context: Process context.  The caller sees to it that q's hardware queues
 *	stay and that no second caller is there.
 * Return: 0 or -ENOMEM.
 */
int blk_plug_loop_alloc(struct request_queue *q);

/**
 * blk_plug_loop_free - free what blk_plug_loop_alloc() has allocated
 * @q: queue that nobody uses any more, hardware queues apart
 */
void blk_plug_loop_free(struct request_queue *q);

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
	const struct blk_plug_loop *loop = READ_ONCE(hctx->plug_loop);

	if (!loop)
		return BLK_PLUG_ADAPTIVE_MAX_GROUP;
	/* In the wrong order these give an old decision, for one filling. */
	if (READ_ONCE(loop->resets) !=
	    READ_ONCE(hctx->queue->plug_policy_resets))
		return READ_ONCE(loop->pinned) ?: BLK_PLUG_ADAPTIVE_MAX_GROUP;
	return READ_ONCE(loop->decision);
}

/**
 * blk_plug_loop_probes - should a plug's bios look for merges all the same?
 * @hctx: hardware queue on which none have been found, that has a loop
 *
 * Context: Task context of the submitter.
 * Return: true for one plug in %BLK_PLUG_ADAPTIVE_RARE of each CPU.
 */
static inline bool blk_plug_loop_probes(const struct blk_mq_hw_ctx *hctx)
{
	struct blk_plug_loop_cpu __percpu *cpu =
		hctx->plug_loop->cpu + hctx->type;

	return !(this_cpu_read(cpu->flushes) % BLK_PLUG_ADAPTIVE_RARE);
}

/**
 * blk_plug_loop_sent - a plug sends out requests of a hardware queue
 * @hctx: hardware queue
 * @nr: number of requests
 * @merged: number of I/Os that joined one of them
 *
 * Context: Task context of the submitter.
 */
void blk_plug_loop_sent(struct blk_mq_hw_ctx *hctx, unsigned int nr,
			unsigned int merged);

/* <debugfs>/block/<disk>/hctx<N>/plug_adaptive */
int blk_plug_loop_show(void *data, struct seq_file *m);
ssize_t blk_plug_loop_write(void *data, const char __user *buf, size_t count,
			    loff_t *ppos);

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

static inline void blk_plug_loop_free(struct request_queue *q)
{
}

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

static inline void blk_plug_loop_completed(struct blk_mq_hw_ctx *hctx,
					   const int *tags, int nr)
{
}

static inline void blk_plug_loop_freed(struct request *rq)
{
}

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_LOOP_H */
