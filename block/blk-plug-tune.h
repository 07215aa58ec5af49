/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tunes the plug policy "adaptive": samples what a hardware queue's plugs send
 * out and what is in flight, asks the controller, publishes its decision.
 *
 * Submitters count on their own CPU, once per flush, in struct blk_mq_ctx, and
 * report to the hardware queue once in 128 requests.  Nothing is done when
 * requests complete: what is in flight is read from the map of tags.
 */
#ifndef BLK_PLUG_TUNE_H
#define BLK_PLUG_TUNE_H

#include <linux/atomic.h>
#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/spinlock.h>

#include "blk-plug-adaptive.h"
#include "blk-plug-policy.h"

struct seq_file;

/*
 * What every plug reads comes first, and is written only if it changes: a line
 * that all CPUs have in their caches.  Submitters read @group and @next without
 * the lock, and only try to take it.
 */
struct blk_plug_tune {
	u8 group;	/* requests that plugs send out at a time */
	u8 pinned;	/* the same, set by hand; 0: not */

	/* what CPUs have sent, added up in steps */
	atomic_t summed ____cacheline_aligned_in_smp;
	u32 next;	/* value of summed at which the next sample is due */
	spinlock_t lock;
	/* the counters and the time when the last sample ended */
	struct blk_plug_adaptive_sample total;
	struct blk_plug_adaptive_sample sample;		/* the last one */
	struct blk_plug_adaptive controller;
};

#ifdef CONFIG_BLK_PLUG_POLICY

struct blk_plug_tune *blk_plug_tune_alloc(struct blk_mq_hw_ctx *hctx);
void __blk_plug_tune_count_flush(const struct blk_plug *plug);

/*
 * The first call allocates it; it stays for as long as the hardware queue.  The
 * caller holds q_usage_counter.  NULL if there is no memory, or the queue can
 * have no policy.
 */
static inline struct blk_plug_tune *
blk_plug_tune_get(struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hctx->plug_tune) ?: blk_plug_tune_alloc(hctx);
}

/*
 * A plug is about to send out what it holds.  A plug of several queues counts
 * nothing: it is filled as under "always".
 */
static inline void blk_plug_tune_count_flush(const struct blk_plug *plug)
{
	if (blk_plug_policy_on() && plug->policy.counts)
		__blk_plug_tune_count_flush(plug);
}

/* Forget what was learnt about a queue, unless it is frozen. */
void blk_plug_tune_restart(struct request_queue *q);

/* A new or reused hardware queue, whose CPUs have been mapped. */
void blk_plug_tune_init_hctx(struct blk_mq_hw_ctx *hctx);
void blk_plug_tune_free_hctx(struct blk_mq_hw_ctx *hctx);

/* <debugfs>/block/<disk>/hctx<N>/plug_adaptive */
int blk_plug_tune_show(void *data, struct seq_file *m);
ssize_t blk_plug_tune_write(void *data, const char __user *buf, size_t count,
			    loff_t *ppos);

#else /* CONFIG_BLK_PLUG_POLICY */

static inline void blk_plug_tune_count_flush(const struct blk_plug *plug) { }
static inline void blk_plug_tune_init_hctx(struct blk_mq_hw_ctx *hctx) { }
static inline void blk_plug_tune_free_hctx(struct blk_mq_hw_ctx *hctx) { }

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* BLK_PLUG_TUNE_H */
