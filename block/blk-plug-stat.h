/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug statistics: what plugs do with a hardware queue's requests, and how the
 * requests come back.  Mechanism only: nothing here decides anything.  Code
 * that counts includes blk-plug-count.h.
 *
 * What happens per request is counted per CPU.  What happens per batch is
 * counted by atomics in two groups of cache lines per hardware queue, one for
 * those who submit and one for those who complete.  Both are exact, however
 * many CPUs share the queue.
 */
#ifndef BLK_PLUG_STAT_H
#define BLK_PLUG_STAT_H

#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>

struct seq_file;

/**
 * enum blk_plug_stat_mode - what is counted on a queue
 * @BLK_PLUG_STAT_OFF:	nothing
 * @BLK_PLUG_STAT_COUNT: everything that needs no clock
 * @BLK_PLUG_STAT_TIME:	also how long plugs hold requests, at the cost of a
 *			reading of the clock per flush
 * @BLK_PLUG_STAT_NR_MODES: number of modes
 */
enum blk_plug_stat_mode {
	BLK_PLUG_STAT_OFF,
	BLK_PLUG_STAT_COUNT,
	BLK_PLUG_STAT_TIME,
	BLK_PLUG_STAT_NR_MODES,
};

enum {
	/* Flushes of 1, 2 to 3, 4 to 7 ... 64 and more requests. */
	BLK_PLUG_STAT_FLUSH_BUCKETS	= 7,
	/* Completion batches of 1 ... 32 and more. */
	BLK_PLUG_STAT_BATCH_BUCKETS	= 6,
};

/*
 * The counters, grouped by who writes them.  blk_plug_stat_rows[] says what
 * each means.
 */
enum blk_plug_stat_id {
	/* per request or bio */
	BLK_PLUG_STAT_COMPLETIONS,
	BLK_PLUG_STAT_REQUESTS,
	BLK_PLUG_STAT_MERGE_ATTEMPTS,
	BLK_PLUG_STAT_MERGE_HITS,
	BLK_PLUG_STAT_TAGS_SINGLE,
	BLK_PLUG_STAT_NO_BATCH_BUDGET,
	BLK_PLUG_STAT_QUEUE_RQ,

	/* per batch, on submission */
	BLK_PLUG_STAT_SUBMIT,
	BLK_PLUG_STAT_PLUGS = BLK_PLUG_STAT_SUBMIT,
	BLK_PLUG_STAT_FLUSH_COUNT,
	BLK_PLUG_STAT_FLUSH_SIZE,
	BLK_PLUG_STAT_FLUSH_POLICY,
	BLK_PLUG_STAT_FLUSH_FINISH,
	BLK_PLUG_STAT_FLUSH_SCHEDULE,
	BLK_PLUG_STAT_FLUSH_OTHER_QUEUE,
	BLK_PLUG_STAT_FLUSH_REQUESTS,
	BLK_PLUG_STAT_FLUSH_CLOCK,
	BLK_PLUG_STAT_TAGS_BATCHED,
	BLK_PLUG_STAT_TAG_BATCHES,
	BLK_PLUG_STAT_QUEUE_RQS,
	BLK_PLUG_STAT_QUEUE_RQS_REQUESTS,
	BLK_PLUG_STAT_FLUSH_HIST,
	BLK_PLUG_STAT_NO_BATCH_SHARED =
		BLK_PLUG_STAT_FLUSH_HIST + BLK_PLUG_STAT_FLUSH_BUCKETS,
	BLK_PLUG_STAT_NO_BATCH_DEPTH,
	BLK_PLUG_STAT_NO_BATCH_FRAGMENTED,
	BLK_PLUG_STAT_NO_BATCH_RESERVED,
	BLK_PLUG_STAT_NO_BATCH_SCHEDULER,
	BLK_PLUG_STAT_HOLDS,
	BLK_PLUG_STAT_HOLD_US,

	/* per batch, on completion */
	BLK_PLUG_STAT_COMPLETE,
	BLK_PLUG_STAT_BATCHES = BLK_PLUG_STAT_COMPLETE,
	BLK_PLUG_STAT_BATCH_COMPLETIONS,
	BLK_PLUG_STAT_BATCH_HIST,

	BLK_PLUG_STAT_NR =
		BLK_PLUG_STAT_BATCH_HIST + BLK_PLUG_STAT_BATCH_BUCKETS,
};

/**
 * struct blk_plug_stat_cpu - what one CPU has counted for a hardware queue
 * @nr: by &enum blk_plug_stat_id, up to %BLK_PLUG_STAT_SUBMIT
 */
struct blk_plug_stat_cpu {
	unsigned long nr[BLK_PLUG_STAT_SUBMIT];
};

/**
 * struct blk_plug_stat - the counters of a hardware queue
 * @mode:	&enum blk_plug_stat_mode
 * @cpu:	what happens per request
 * @base:	values of the counters at the last reset; a reset leaves the
 *		counters alone, so that it disturbs nobody
 * @submit:	what happens per batch that is submitted
 * @complete:	what happens per batch that completes
 */
struct blk_plug_stat {
	unsigned int mode;
	struct blk_plug_stat_cpu __percpu *cpu;
	unsigned long base[BLK_PLUG_STAT_NR];

	atomic_long_t submit[BLK_PLUG_STAT_COMPLETE - BLK_PLUG_STAT_SUBMIT]
		____cacheline_aligned;
	atomic_long_t complete[BLK_PLUG_STAT_NR - BLK_PLUG_STAT_COMPLETE]
		____cacheline_aligned;
};

#ifdef CONFIG_BLK_PLUG_STAT

DECLARE_STATIC_KEY_FALSE(blk_plug_stat_key);

/* The counters' names */
extern const char *const blk_plug_stat_rows[BLK_PLUG_STAT_NR];

/**
 * blk_plug_stat_unregister - stop counting on the queue of a disk that goes
 * @q: any request queue, whose debugfs files are gone already
 *
 * Context: Process context, may sleep.  Takes cpus_read_lock() if the queue is
 *	counted.
 */
void blk_plug_stat_unregister(struct request_queue *q);

/**
 * blk_plug_stat_init_hctx - prepare a new or reused hardware queue
 * @hctx: hardware queue, on which nothing is in flight
 *
 * Context: Process context, the queue may be frozen.
 */
void blk_plug_stat_init_hctx(struct blk_mq_hw_ctx *hctx);

/**
 * blk_plug_stat_free_hctx - free a hardware queue's counters
 * @hctx: hardware queue that nobody uses any more
 */
void blk_plug_stat_free_hctx(struct blk_mq_hw_ctx *hctx);

/* The files in debugfs; see blk-mq-debugfs.c */
int blk_plug_stat_hctx_show(void *data, struct seq_file *m);
ssize_t blk_plug_stat_hctx_write(void *data, const char __user *buf,
				 size_t count, loff_t *ppos);
int blk_plug_stat_enabled_show(void *data, struct seq_file *m);
ssize_t blk_plug_stat_enabled_write(void *data, const char __user *buf,
				    size_t count, loff_t *ppos);

/* The per-CPU counters of a hardware queue, if its queue is counted. */
static inline struct blk_plug_stat_cpu __percpu *
blk_plug_stat_cpu(const struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hctx->plug_stat_cpu);
}

/* All counters of a hardware queue, likewise. */
static inline struct blk_plug_stat *
blk_plug_stat_of(const struct blk_mq_hw_ctx *hctx)
{
	return blk_plug_stat_cpu(hctx) ? hctx->plug_stat : NULL;
}

#else /* CONFIG_BLK_PLUG_STAT */

static inline void blk_plug_stat_unregister(struct request_queue *q)
{
}

static inline void blk_plug_stat_init_hctx(struct blk_mq_hw_ctx *hctx)
{
}

static inline void blk_plug_stat_free_hctx(struct blk_mq_hw_ctx *hctx)
{
}

#endif /* CONFIG_BLK_PLUG_STAT */
#endif /* BLK_PLUG_STAT_H */
