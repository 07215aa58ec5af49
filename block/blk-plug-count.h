/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug statistics: the hooks that count.  Each is an inline gate: a branch that
 * is patched out until some queue is counted.
 */
#ifndef BLK_PLUG_COUNT_H
#define BLK_PLUG_COUNT_H

#include <linux/blk-mq.h>
#include <linux/percpu.h>
#include <linux/tracepoint-defs.h>

#include "blk-mq.h"
#include "blk-plug-stat.h"

#ifdef CONFIG_BLK_PLUG_STAT

DECLARE_TRACEPOINT(blk_plug_stat_no_batch);

/* Pure, and not static so that unit tests can call them. */
unsigned int blk_plug_stat_bucket(unsigned int nr, unsigned int buckets);
enum blk_plug_stat_id blk_plug_stat_no_batch(struct blk_mq_alloc_data *data);

void __blk_plug_stat_flush(struct blk_plug *plug, enum blk_plug_stat_id reason);
void __blk_plug_stat_no_batch(struct blk_mq_alloc_data *data);
void __blk_plug_stat_completion_batch(struct blk_mq_hw_ctx *hctx,
				      unsigned int nr);

/*
 * The gates test this first, before they follow any pointer: while nothing is
 * counted, nothing is loaded for the tests that come next.
 */
static inline bool blk_plug_stat_on(void)
{
	return static_branch_unlikely(&blk_plug_stat_key);
}

static inline void blk_plug_stat_add_submit(struct blk_plug_stat *stat,
					    enum blk_plug_stat_id id, long nr)
{
	atomic_long_add(nr, &stat->submit[id - BLK_PLUG_STAT_SUBMIT]);
}

/**
 * blk_plug_stat_start - a request has been claimed for an operation
 * @rq: request, which nobody else knows yet
 *
 * Marks it, so that its end is counted if and only if its start was.
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
 * @plug: plug, which may be empty
 * @reason: one of %BLK_PLUG_STAT_FLUSH_COUNT ... %BLK_PLUG_STAT_FLUSH_SCHEDULE;
 *	also the first if a request is large, which is found out here
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
 * blk_plug_stat_single_tag - a single tag is about to be taken
 * @data: as it was when a batch failed, if one was wanted
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
 * blk_plug_stat_queue_rqs - ->queue_rqs() is about to be called
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
 * blk_plug_stat_queue_rq - ->queue_rq() is about to be called
 * @hctx: its hardware queue
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
#endif /* BLK_PLUG_COUNT_H */
