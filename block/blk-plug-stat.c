// SPDX-License-Identifier: GPL-2.0
/*
 * Plug statistics, in debugfs:
 *
 *	block/<disk>/plug_stats_enabled	1 to count, 0 (the default) not to
 *	block/<disk>/hctx<N>/plug_stats		a line for each counter
 *
 * Each CPU counts by itself, for the hardware queue that it is mapped to.  The
 * memory is allocated when counting is first asked for, and stays for as long
 * as the queue: the counters only grow.
 */
#include <linux/blkdev.h>
#include <linux/kstrtox.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>
#include <trace/events/block.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-stat.h"

static const char *const blk_plug_stat_rows[BLK_PLUG_STAT_NR] = {
	[BLK_PLUG_STAT_TAGS_BATCHED]		= "tags_batched",
	[BLK_PLUG_STAT_TAG_BATCHES]		= "tag_batches",
	[BLK_PLUG_STAT_TAGS_SINGLE]		= "tags_single",
	[BLK_PLUG_STAT_NO_BATCH_SHARED]		= "no_batch_shared",
	[BLK_PLUG_STAT_NO_BATCH_DEPTH]		= "no_batch_depth",
	[BLK_PLUG_STAT_NO_BATCH_BUSY]		= "no_batch_busy",
	[BLK_PLUG_STAT_NO_BATCH_SCHEDULER]	= "no_batch_scheduler",
	[BLK_PLUG_STAT_FLUSHES]			= "flushes",
	[BLK_PLUG_STAT_FLUSH_REQUESTS]		= "flush_requests",
	[BLK_PLUG_STAT_DOORBELLS]		= "doorbells",
};

/* What one CPU has counted for a queue. */
struct blk_plug_stat {
	unsigned long nr[HCTX_MAX_TYPES][BLK_PLUG_STAT_NR];
};

/*
 * On while any queue is counted; counts these queues.  Changing the key takes
 * cpus_read_lock().  CPU offline holds it for write while it drains I/O: never
 * change the key with a queue frozen, as rq-qos did before 370ac285f23a.  With
 * one that is being removed that is fine: its requests fail.
 */
DEFINE_STATIC_KEY_FALSE(blk_plug_stat_key);
EXPORT_SYMBOL_GPL(blk_plug_stat_key);

static bool blk_plug_stat_counts(const struct request_queue *q)
{
	return test_bit(QUEUE_FLAG_PLUG_STAT, &q->queue_flags);
}

void __blk_plug_stat(const struct blk_mq_hw_ctx *hctx, enum blk_plug_stat_id id,
		     unsigned int nr)
{
	struct blk_plug_stat __percpu *stat = READ_ONCE(hctx->queue->plug_stat);

	if (stat && blk_plug_stat_counts(hctx->queue))
		this_cpu_add(stat->nr[hctx->type][id], nr);
}

/*
 * A plug is about to send out what it holds.  For each run of requests of one
 * hardware queue, count the requests, and a flush if the run is the first one.
 */
void __blk_plug_stat_flush(struct blk_plug *plug)
{
	const struct request *run = rq_list_peek(&plug->mq_list), *rq, *oldest;
	unsigned int nr = 0;

	rq_list_for_each(&plug->mq_list, rq) {
		nr++;
		if (rq->rq_next && rq->rq_next->mq_hctx == rq->mq_hctx)
			continue;
		rq_list_for_each(&plug->mq_list, oldest)
			if (oldest->mq_hctx == rq->mq_hctx)
				break;
		__blk_plug_stat(rq->mq_hctx, BLK_PLUG_STAT_FLUSHES,
				oldest == run);
		__blk_plug_stat(rq->mq_hctx, BLK_PLUG_STAT_FLUSH_REQUESTS, nr);
		run = rq->rq_next;
		nr = 0;
	}
}

void __blk_plug_stat_no_batch(const struct blk_mq_alloc_data *data,
			      enum blk_plug_stat_id reason)
{
	if (blk_plug_stat_counts(data->q))
		trace_block_tag_batch_refused(data->hctx,
					      current->plug->announced ?
					      data->nr_tags : 0,
					      blk_plug_stat_rows[reason]);
	__blk_plug_stat(data->hctx, reason, 1);
}

void __blk_mq_count_doorbell(const struct blk_mq_hw_ctx *hctx)
{
	if (hctx)
		__blk_plug_stat(hctx, BLK_PLUG_STAT_DOORBELLS, 1);
}
EXPORT_SYMBOL_GPL(__blk_mq_count_doorbell);

void blk_plug_stat_disable(struct request_queue *q)
{
	if (test_and_clear_bit(QUEUE_FLAG_PLUG_STAT, &q->queue_flags))
		static_branch_dec(&blk_plug_stat_key);
}

static int blk_plug_stat_enable(struct request_queue *q)
{
	struct blk_plug_stat __percpu *stat;

	/* the queue may be frozen, and its disk be what we swap to */
	stat = alloc_percpu_gfp(struct blk_plug_stat, GFP_NOIO | __GFP_NOWARN);
	if (!stat)
		return -ENOMEM;
	if (cmpxchg(&q->plug_stat, NULL, stat))
		free_percpu(stat);
	static_branch_inc(&blk_plug_stat_key);
	if (test_and_set_bit(QUEUE_FLAG_PLUG_STAT, &q->queue_flags))
		static_branch_dec(&blk_plug_stat_key);
	return 0;
}

/* This file goes before CPUs are mapped to hardware queues anew. */
int blk_plug_stat_hctx_show(void *data, struct seq_file *m)
{
	const struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_stat __percpu *stat = READ_ONCE(hctx->queue->plug_stat);
	enum blk_plug_stat_id id;
	unsigned int i;

	for (id = 0; id < BLK_PLUG_STAT_NR; id++) {
		unsigned long sum = 0;

		for (i = 0; stat && i < hctx->nr_ctx; i++)
			/* they go on counting: any recent value will do */
			sum += data_race(per_cpu_ptr(stat, hctx->ctxs[i]->cpu)->
					 nr[hctx->type][id]);
		seq_printf(m, "%s %lu\n", blk_plug_stat_rows[id], sum);
	}
	return 0;
}

int blk_plug_stat_enabled_show(void *data, struct seq_file *m)
{
	seq_printf(m, "%d\n", blk_plug_stat_counts(data));
	return 0;
}

ssize_t blk_plug_stat_enabled_write(void *data, const char __user *buf,
				    size_t count, loff_t *ppos)
{
	unsigned int on;
	int ret;

	/* kstrtobool() would take whatever begins like a number */
	ret = kstrtouint_from_user(buf, count, 0, &on);
	if (ret)
		return ret;
	if (on > 1)
		return -EINVAL;
	if (on)
		ret = blk_plug_stat_enable(data);
	else
		blk_plug_stat_disable(data);
	return ret ?: count;
}

#ifdef CONFIG_BLK_PLUG_STAT_KUNIT_TEST
#include "tests/blk_plug_stat_kunit.c"
#endif
