// SPDX-License-Identifier: GPL-2.0
/*
 * Plug statistics: what is counted per batch, and why a batch ended or did not
 * come about.
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <kunit/visibility.h>

#define CREATE_TRACE_POINTS
#include <trace/events/blk_plug_stat.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-count.h"

unsigned int blk_plug_stat_bucket(unsigned int nr, unsigned int buckets)
{
	return nr ? min_t(unsigned int, ilog2(nr), buckets - 1) : 0;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_bucket);

/* The reason: a counter's name without the prefix of its group. */
static const char *blk_plug_stat_reason(enum blk_plug_stat_id id,
					const char *group)
{
	return blk_plug_stat_rows[id] + strlen(group);
}

static void blk_plug_stat_hold(struct blk_plug_stat *stat,
			       const struct blk_plug *plug)
{
	u64 since = READ_ONCE(plug->cur_ktime);

	if (!since)
		return;
	blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_FLUSH_CLOCK, 1);
	if (READ_ONCE(stat->mode) == BLK_PLUG_STAT_TIME) {
		u64 ns = ktime_get_ns() - since;

		blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_HOLDS, 1);
		ns = div_u64(ns + NSEC_PER_USEC / 2, NSEC_PER_USEC);
		blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_HOLD_US, ns);
	}
}

static void blk_plug_stat_flush_hctx(const struct blk_plug *plug,
				     const struct blk_mq_hw_ctx *hctx,
				     unsigned int nr,
				     enum blk_plug_stat_id reason)
{
	struct blk_plug_stat *stat = blk_plug_stat_of(hctx);
	unsigned int bucket;

	if (!stat)
		return;
	trace_blk_plug_stat_flush(hctx, nr,
				  blk_plug_stat_reason(reason, "flush_"));
	bucket = blk_plug_stat_bucket(nr, BLK_PLUG_STAT_FLUSH_BUCKETS);
	blk_plug_stat_add_submit(stat, reason, 1);
	blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_FLUSH_REQUESTS, nr);
	blk_plug_stat_add_submit(stat, BLK_PLUG_STAT_FLUSH_HIST + bucket, 1);
	blk_plug_stat_hold(stat, plug);
}

/*
 * How many requests are for the hardware queue of @first; 0 if @first is not
 * the oldest of these.
 */
static unsigned int blk_plug_stat_same_hctx(struct blk_plug *plug,
					    const struct request *first)
{
	const struct request *rq;
	unsigned int nr = 0;

	rq_list_for_each(&plug->mq_list, rq) {
		if (rq->mq_hctx != first->mq_hctx)
			continue;
		if (!nr && rq != first)
			return 0;
		nr++;
	}
	return nr;
}

/*
 * Count a plug of one queue for the hardware queue of its oldest request.  It
 * is rare that others go elsewhere, and not worth a look at each of them.
 */
void __blk_plug_stat_flush(struct blk_plug *plug, enum blk_plug_stat_id reason)
{
	const struct request *rq, *oldest = rq_list_peek(&plug->mq_list);
	enum blk_plug_stat_id others;

	/* as blk_add_rq_to_plug() tests; done here to keep it out of there */
	if (reason == BLK_PLUG_STAT_FLUSH_COUNT &&
	    plug->rq_count < BLK_MAX_REQUEST_COUNT << plug->multiple_queues)
		reason = BLK_PLUG_STAT_FLUSH_SIZE;

	if (!plug->multiple_queues) {
		blk_plug_stat_flush_hctx(plug, oldest->mq_hctx, plug->rq_count,
					 reason);
		return;
	}

	others = reason <= BLK_PLUG_STAT_FLUSH_SIZE ?
		BLK_PLUG_STAT_FLUSH_OTHER_QUEUE : reason;
	rq_list_for_each(&plug->mq_list, rq) {
		unsigned int nr = blk_plug_stat_same_hctx(plug, rq);

		if (nr)
			blk_plug_stat_flush_hctx(plug, rq->mq_hctx, nr,
						 rq->q == oldest->q ?
						 reason : others);
	}
}

/* Has the queue used the half of its share that batches may take? */
static bool blk_plug_stat_share_used(struct blk_mq_hw_ctx *hctx)
{
	return hctx->flags & BLK_MQ_F_TAG_QUEUE_SHARED &&
		__blk_mq_active_requests(hctx) >=
		hctx_fair_share(hctx, &hctx->tags->bitmap_tags) / 2;
}

/*
 * Why tags are not taken at once: the first reason that applies.  "fragmented"
 * is what remains: too few tags are free, or a task waits for one.
 */
enum blk_plug_stat_id blk_plug_stat_no_batch(struct blk_mq_alloc_data *data)
{
	struct blk_mq_tags *tags = blk_mq_tags_from_data(data);
	const struct sbitmap *map = &tags->bitmap_tags.sb;

	if (data->nr_tags <= 1)
		return BLK_PLUG_STAT_NO_BATCH_BUDGET;
	if (data->shallow_depth)
		return BLK_PLUG_STAT_NO_BATCH_SCHEDULER;
	if (data->flags & BLK_MQ_REQ_RESERVED)
		return BLK_PLUG_STAT_NO_BATCH_RESERVED;
	/* a batch leaves half of each word to others */
	if (map->round_robin || min(map->depth, 1U << map->shift) < 2)
		return BLK_PLUG_STAT_NO_BATCH_DEPTH;
	if (!(data->rq_flags & RQF_SCHED_TAGS) &&
	    blk_plug_stat_share_used(data->hctx))
		return BLK_PLUG_STAT_NO_BATCH_SHARED;
	return BLK_PLUG_STAT_NO_BATCH_FRAGMENTED;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_no_batch);

void __blk_plug_stat_no_batch(struct blk_mq_alloc_data *data)
{
	enum blk_plug_stat_id reason = blk_plug_stat_no_batch(data);
	const char *name = blk_plug_stat_reason(reason, "no_batch_");

	trace_blk_plug_stat_no_batch(data->hctx, data->nr_tags, name);
	/* the caller has counted the most common reason */
	if (reason != BLK_PLUG_STAT_NO_BATCH_BUDGET)
		blk_plug_stat_add_submit(data->hctx->plug_stat, reason, 1);
}

void __blk_plug_stat_completion_batch(struct blk_mq_hw_ctx *hctx,
				      unsigned int nr)
{
	struct blk_plug_stat *stat = blk_plug_stat_of(hctx);
	atomic_long_t *complete;
	unsigned int bucket;

	if (!stat)
		return;
	complete = stat->complete - BLK_PLUG_STAT_COMPLETE;
	bucket = blk_plug_stat_bucket(nr, BLK_PLUG_STAT_BATCH_BUCKETS);
	atomic_long_inc(&complete[BLK_PLUG_STAT_BATCHES]);
	atomic_long_add(nr, &complete[BLK_PLUG_STAT_BATCH_COMPLETIONS]);
	atomic_long_inc(&complete[BLK_PLUG_STAT_BATCH_HIST + bucket]);
}
