/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug statistics: what plugs do with a hardware queue's requests, and how
 * the requests come back.  Mechanism only: nothing here decides anything.
 *
 * Every hook in the I/O path is one of the inline gates below, a patched-out
 * branch until some queue is counted.
 *
 * What happens per request is counted per CPU, what happens per batch is
 * counted by an atomic in one of two cache line groups of the hardware queue,
 * one for those who submit and one for those who complete.  Both are exact,
 * however many CPUs share the queue.
 */
#ifndef BLK_PLUG_STAT_H
#define BLK_PLUG_STAT_H

#include <linux/blk-mq.h>
#include <linux/cache.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>
#include <linux/tracepoint-defs.h>

#include "blk-mq.h"

struct seq_file;

/**
 * enum blk_plug_stat_mode - what is counted on a queue
 * @BLK_PLUG_STAT_OFF:	nothing
 * @BLK_PLUG_STAT_COUNT: everything that needs no clock
 * @BLK_PLUG_STAT_TIME:	also for how long plugs hold requests, which takes one
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
 * The counters, in groups by who writes them.  What each means is said where
 * it is shown, in blk_plug_stat_rows[].
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

	/* per batch, by who submits */
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

	/* per batch, by who completes */
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
 * @base:	the counters when they were last reset; they themselves only
 *		grow, so that a reset disturbs nobody
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
DECLARE_TRACEPOINT(blk_plug_stat_no_batch);

/**
 * blk_plug_stat_unregister - stop counting on the queue of a disk that goes
 * @q: any request queue, whose debugfs files are gone already
 *
 * Context: Process context, may sleep.  Takes cpus_read_lock(), but not for a
 *	queue that is not counted.
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

/* Pure, and not static for the sake of their unit tests. */
unsigned int blk_plug_stat_bucket(unsigned int nr, unsigned int buckets);
enum blk_plug_stat_id blk_plug_stat_no_batch(struct blk_mq_alloc_data *data);

/* The files in debugfs; see blk-mq-debugfs.c */
int blk_plug_stat_hctx_show(void *data, struct seq_file *m);
ssize_t blk_plug_stat_hctx_write(void *data, const char __user *buf,
				 size_t count, loff_t *ppos);
int blk_plug_stat_enabled_show(void *data, struct seq_file *m);
ssize_t blk_plug_stat_enabled_write(void *data, const char __user *buf,
				    size_t count, loff_t *ppos);

void __blk_plug_stat_flush(struct blk_plug *plug, enum blk_plug_stat_id reason);
void __blk_plug_stat_no_batch(struct blk_mq_alloc_data *data);
void __blk_plug_stat_completion_batch(struct blk_mq_hw_ctx *hctx,
				      unsigned int nr);

/*
 * The gates test this first, and follow no pointer before: what they load for
 * the next test would be loaded with nothing counted, too.
 */
static inline bool blk_plug_stat_on(void)
{
	return static_branch_unlikely(&blk_plug_stat_key);
}

/* The counters per CPU of a hardware queue, if its queue is counted. */
static inline struct blk_plug_stat_cpu __percpu *
blk_plug_stat_cpu(const struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hctx->plug_stat_cpu);
}

/* All of its counters, likewise. */
static inline struct blk_plug_stat *
blk_plug_stat_of(const struct blk_mq_hw_ctx *hctx)
{
	return blk_plug_stat_cpu(hctx) ? hctx->plug_stat : NULL;
}

static inline void blk_plug_stat_add_submit(struct blk_plug_stat *stat,
					    enum blk_plug_stat_id id, long nr)
{
	atomic_long_add(nr, &stat->submit[id - BLK_PLUG_STAT_SUBMIT]);
}

/**
 * blk_plug_stat_start - a request has been claimed for an operation
 * @rq: request, that so far nobody else knows
 *
 * Marks it, so that its end is counted exactly if its start was.
 */
static inline void blk_plug_stat_start(struct request *rq)
{
	struct blk_plug_stat_cpu __percpu *cpu;

	if (!blk_plug_stat_on())
		return;
	cpu = blk_plug_stat_cpu(rq->mq_hctx);
	if (cpu) {
		rq->rq_flags |= RQF_PLUG_STAT;
		this_cpu_inc(cpu->nr[BLK_PLUG_STAT_REQUESTS]);
	}
}

/**
 * blk_plug_stat_end - a request is being freed
 * @rq: request, which still has its hardware queue
 *
 * Context: Any.
 */
static inline void blk_plug_stat_end(struct request *rq)
{
	struct blk_plug_stat_cpu __percpu *cpu;

	if (!blk_plug_stat_on() || !(rq->rq_flags & RQF_PLUG_STAT))
		return;
	cpu = blk_plug_stat_cpu(rq->mq_hctx);
	if (cpu)
		this_cpu_inc(cpu->nr[BLK_PLUG_STAT_COMPLETIONS]);
}

/**
 * blk_plug_stat_completion_batch - requests were completed together
 * @hctx: their hardware queue
 * @nr: their number
 *
 * Context: Any.
 */
static inline void blk_plug_stat_completion_batch(struct blk_mq_hw_ctx *hctx,
						  unsigned int nr)
{
	if (blk_plug_stat_on())
		__blk_plug_stat_completion_batch(hctx, nr);
}

/**
 * blk_plug_stat_plug - a plug gets its first request
 * @rq: request
 */
static inline void blk_plug_stat_plug(struct request *rq)
{
	struct blk_plug_stat *stat;

	if (!blk_plug_stat_on())
		return;
	stat = blk_plug_stat_of(rq->mq_hctx);
	if (stat)
		blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_PLUGS, 1);
}

/**
 * blk_plug_stat_flush - a plug is about to send out what it holds
 * @plug: plug, that may be empty
 * @reason: one of %BLK_PLUG_STAT_FLUSH_COUNT ... %BLK_PLUG_STAT_FLUSH_SCHEDULE;
 *	the first also if it is for the size of a request, which shows
 *
 * Context: Task context of the submitter.
 */
static inline void blk_plug_stat_flush(struct blk_plug *plug,
				       enum blk_plug_stat_id reason)
{
	if (blk_plug_stat_on() && plug->rq_count)
		__blk_plug_stat_flush(plug, reason);
}

/**
 * blk_plug_stat_merge - a bio is compared or merged with a request in the plug
 * @rq: request
 * @id: %BLK_PLUG_STAT_MERGE_ATTEMPTS or %BLK_PLUG_STAT_MERGE_HITS
 */
static inline void blk_plug_stat_merge(const struct request *rq,
				       enum blk_plug_stat_id id)
{
	struct blk_plug_stat_cpu __percpu *cpu;

	if (!blk_plug_stat_on())
		return;
	cpu = blk_plug_stat_cpu(rq->mq_hctx);
	if (cpu)
		this_cpu_inc(cpu->nr[id]);
}

/**
 * blk_plug_stat_tags - a batch of tags was taken
 * @hctx: their hardware queue
 * @nr: number of tags
 */
static inline void blk_plug_stat_tags(const struct blk_mq_hw_ctx *hctx,
				      unsigned int nr)
{
	struct blk_plug_stat *stat;

	if (!blk_plug_stat_on())
		return;
	stat = blk_plug_stat_of(hctx);
	if (stat) {
		blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_TAG_BATCHES, 1);
		blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_TAGS_BATCHED, nr);
	}
}

/**
 * blk_plug_stat_single_tag - a single tag is going to be taken
 * @data: as it was when the batch failed, if there was to be one
 */
static inline void blk_plug_stat_single_tag(struct blk_mq_alloc_data *data)
{
	struct blk_plug_stat_cpu __percpu *cpu;

	if (!blk_plug_stat_on())
		return;
	cpu = blk_plug_stat_cpu(data->hctx);
	if (!cpu)
		return;
	this_cpu_inc(cpu->nr[BLK_PLUG_STAT_TAGS_SINGLE]);
	/* without a plug nobody wanted a batch */
	if (!data->cached_rqs)
		return;
	if (data->nr_tags <= 1)
		this_cpu_inc(cpu->nr[BLK_PLUG_STAT_NO_BATCH_BUDGET]);
	if (data->nr_tags > 1 || tracepoint_enabled(blk_plug_stat_no_batch))
		__blk_plug_stat_no_batch(data);
}

/**
 * blk_plug_stat_queue_rqs - ->queue_rqs() is going to be called
 * @rqs: the requests
 * @nr: their number
 */
static inline void blk_plug_stat_queue_rqs(struct rq_list *rqs,
					   unsigned int nr)
{
	struct blk_plug_stat *stat;

	if (!blk_plug_stat_on())
		return;
	stat = blk_plug_stat_of(rq_list_peek(rqs)->mq_hctx);
	if (stat) {
		blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_QUEUE_RQS, 1);
		blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_QUEUE_RQS_REQUESTS,
					 nr);
	}
}

/**
 * blk_plug_stat_queue_rq - ->queue_rq() is going to be called
 * @hctx: for which hardware queue
 */
static inline void blk_plug_stat_queue_rq(const struct blk_mq_hw_ctx *hctx)
{
	struct blk_plug_stat_cpu __percpu *cpu;

	if (!blk_plug_stat_on())
		return;
	cpu = blk_plug_stat_cpu(hctx);
	if (cpu)
		this_cpu_inc(cpu->nr[BLK_PLUG_STAT_QUEUE_RQ]);
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

static inline void blk_plug_stat_start(struct request *rq)
{
}

static inline void blk_plug_stat_end(struct request *rq)
{
}

static inline void blk_plug_stat_completion_batch(struct blk_mq_hw_ctx *hctx,
						  unsigned int nr)
{
}

static inline void blk_plug_stat_plug(struct request *rq)
{
}

static inline void blk_plug_stat_flush(struct blk_plug *plug,
				       enum blk_plug_stat_id reason)
{
}

static inline void blk_plug_stat_merge(const struct request *rq,
				       enum blk_plug_stat_id id)
{
}

static inline void blk_plug_stat_tags(const struct blk_mq_hw_ctx *hctx,
				      unsigned int nr)
{
}

static inline void blk_plug_stat_single_tag(struct blk_mq_alloc_data *data)
{
}

static inline void blk_plug_stat_queue_rqs(struct rq_list *rqs,
					   unsigned int nr)
{
}

static inline void blk_plug_stat_queue_rq(const struct blk_mq_hw_ctx *hctx)
{
}

#endif /* CONFIG_BLK_PLUG_STAT */
#endif /* BLK_PLUG_STAT_H */
