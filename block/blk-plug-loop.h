/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The loop of the plug policy "adaptive": samples what a hardware queue's plugs
 * send out and how long it takes, asks the controller, publishes its decision.
 *
 * Submitters count on their own CPU, per flush, and report to the hardware
 * queue once in 128 I/Os.  Response times come from blk-plug-times.[ch].
 *
 * Knows nothing of plugs and modes: those are a layer above, the controller is
 * one below.
 */
#ifndef BLK_PLUG_LOOP_H
#define BLK_PLUG_LOOP_H

#include <linux/atomic.h>
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/spinlock.h>

#include "blk-plug-adaptive.h"

struct seq_file;

/*
 * Unit of the sum of response times.  It may wrap, but not within one sample of
 * 16 rounds of the I/Os in flight: in units of 1 us, 32 bits do for 512 of them
 * with half a second each.
 */
#define BLK_PLUG_LOOP_WAIT_SHIFT	(BITS_PER_LONG == 32 ? 10 : 8)

/* The parts of blk_plug_loop::decision. */
enum {
	/* group size */
	BLK_PLUG_LOOP_GROUP	= 0x3f,
	/* lookups for merges are not worth their cost */
	BLK_PLUG_LOOP_RANDOM	= 0x80,
};

/**
 * struct blk_plug_loop_cpu - what a CPU has counted for a hardware queue
 * @wait:	sum of response times, in 256 ns
 * @waits:	requests in that sum
 * @flushes:	times that a plug sent out requests
 * @sent:	I/Os in these, merged ones included
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
 * @sparse:	a few response times are enough
 * @resets:	request_queue::plug_policy_resets when @controller started
 * @cpu:	request_queue::plug_loop_cpu: counters by type of hardware queue
 * @folded:	I/Os that CPUs have reported
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
 * Submitters already on "adaptive" use it at once.  It is kept until the queue
 * goes.  Allocates nothing for a queue that "adaptive" can do nothing for.
 *
 * Context: Process context.  The caller makes sure that q's hardware queues
 *	stay, and that there is no second caller.
 * Return: 0 or -ENOMEM.
 */
int blk_plug_loop_alloc(struct request_queue *q);

/**
 * blk_plug_loop_free - free what blk_plug_loop_alloc() has allocated
 * @q: queue that nobody uses any more, apart from its hardware queues
 */
void blk_plug_loop_free(struct request_queue *q);

/**
 * blk_plug_loop_init_hctx - prepare a new or reused hardware queue
 * @hctx: hardware queue, on which nothing is in flight
 *
 * If there is no memory for it, its plugs do as under "always".
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
 * Takes effect when a plug is next bound.
 *
 * Context: Any.
 */
static inline void blk_plug_loop_restart(struct request_queue *q)
{
	/* Of two at once, one may be lost, but never both. */
	WRITE_ONCE(q->plug_policy_resets,
		   READ_ONCE(q->plug_policy_resets) + 1);
}

/**
 * blk_plug_loop_decision - what has been decided for a hardware queue
 * @hctx: hardware queue
 *
 * Context: Any.
 * Return: as blk_plug_loop::decision; unless pinned, that of "always" until
 *	something has been learnt.
 */
static inline unsigned int
blk_plug_loop_decision(const struct blk_mq_hw_ctx *hctx)
{
	const struct blk_plug_loop *loop = READ_ONCE(hctx->plug_loop);

	if (!loop)
		return BLK_PLUG_ADAPTIVE_MAX_GROUP;
	/* Reordered, these loads give an old decision, for one filling. */
	if (READ_ONCE(loop->resets) !=
	    READ_ONCE(hctx->queue->plug_policy_resets))
		return READ_ONCE(loop->pinned) ?: BLK_PLUG_ADAPTIVE_MAX_GROUP;
	return READ_ONCE(loop->decision);
}

/**
 * blk_plug_loop_probes - should a plug's bios look for merges anyway?
 * @hctx: hardware queue that has a loop, and on which none have been found
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

/* The loop of a hardware queue for which "adaptive" is in force. */
static inline struct blk_plug_loop *
blk_plug_loop_of(const struct blk_mq_hw_ctx *hctx)
{
	const struct request_queue *q = hctx->queue;

	if (!test_bit(QUEUE_FLAG_PLUG_ADAPTIVE, &q->queue_flags) ||
	    READ_ONCE(q->elevator))
		return NULL;
	return READ_ONCE(hctx->plug_loop);
}

static inline bool blk_plug_loop_on(void)
{
	return static_branch_unlikely(&blk_plug_loop_key);
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

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_LOOP_H */
