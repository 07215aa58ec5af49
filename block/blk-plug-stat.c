// SPDX-License-Identifier: GPL-2.0
/*
 * Plug statistics, in debugfs:
 *
 *	block/<disk>/plug_stats_enabled	1 to count, 0 (the default) not to
 *	block/<disk>/hctx<N>/plug_stats		a line for each counter
 *
 * All is counted per CPU, without atomics, and is exact, however many CPUs
 * share a hardware queue.  The memory is allocated when counting is first asked
 * for, and stays for as long as the hardware queue: the counters only grow.
 */
#include <linux/blkdev.h>
#include <linux/kstrtox.h>
#include <linux/seq_file.h>
#include <linux/wait.h>
#include <kunit/visibility.h>

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
	[BLK_PLUG_STAT_FLUSH_FULL]		= "flush_full",
	[BLK_PLUG_STAT_FLUSH_POLICY]		= "flush_policy",
	[BLK_PLUG_STAT_FLUSH_FINISH]		= "flush_finish",
	[BLK_PLUG_STAT_FLUSH_SCHEDULE]		= "flush_schedule",
	[BLK_PLUG_STAT_FLUSH_REQUESTS]		= "flush_requests",
	[BLK_PLUG_STAT_MERGE_TRIED]		= "merge_tried",
	[BLK_PLUG_STAT_MERGE_FOUND]		= "merge_found",
	[BLK_PLUG_STAT_COMPLETION_BATCHES]	= "completion_batches",
	[BLK_PLUG_STAT_BATCH_COMPLETIONS]	= "batch_completions",
};

#define CREATE_TRACE_POINTS
#include <trace/events/blk_plug_stat.h>

/*
 * On while any queue is counted; counts these queues.  Who changes it waits for
 * cpu_hotplug_lock, under which a CPU that goes waits for I/O: so no queue may
 * be frozen then.  That of rq-qos was, which is why it gave its key up in
 * 370ac285f23a.
 */
DEFINE_STATIC_KEY_FALSE(blk_plug_stat_key);
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_key);

static bool blk_plug_stat_counts(const struct request_queue *q)
{
	return test_bit(QUEUE_FLAG_PLUG_STAT, &q->queue_flags);
}

/* Is there no older request for the same hardware queue in the plug? */
static bool blk_plug_stat_oldest(struct blk_plug *plug,
				 const struct request *rq)
{
	const struct request *older;

	rq_list_for_each(&plug->mq_list, older)
		if (older->mq_hctx == rq->mq_hctx)
			break;
	return older == rq;
}

/*
 * Count a plug of one queue for the hardware queue of its oldest request.  It
 * is rare that others go elsewhere, and not worth a look at each of them.
 */
void __blk_plug_stat_flush(struct blk_plug *plug, enum blk_plug_stat_id reason)
{
	const struct request *rq = rq_list_peek(&plug->mq_list);

	if (!plug->multiple_queues) {
		__blk_plug_stat(rq->mq_hctx, reason, 1);
		__blk_plug_stat(rq->mq_hctx, BLK_PLUG_STAT_FLUSH_REQUESTS,
				plug->rq_count);
		return;
	}

	rq_list_for_each(&plug->mq_list, rq) {
		if (blk_plug_stat_oldest(plug, rq))
			__blk_plug_stat(rq->mq_hctx, reason, 1);
		__blk_plug_stat(rq->mq_hctx, BLK_PLUG_STAT_FLUSH_REQUESTS, 1);
	}
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_stat_flush);

void __blk_plug_stat_no_batch(const struct blk_mq_alloc_data *data,
			      enum blk_plug_stat_id reason)
{
	if (blk_plug_stat_counts(data->q))
		trace_blk_plug_stat_no_batch(data->hctx, data->nr_tags,
					     blk_plug_stat_rows[reason]);
	__blk_plug_stat(data->hctx, reason, 1);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_stat_no_batch);

static int blk_plug_stat_alloc(struct blk_mq_hw_ctx *hctx)
{
	struct blk_plug_stat __percpu *stat;

	if (READ_ONCE(hctx->plug_stat))
		return 0;
	/* not by I/O: it may have to wait until the queue is not frozen */
	stat = alloc_percpu_gfp(struct blk_plug_stat, GFP_NOIO | __GFP_NOWARN);
	if (!stat)
		return -ENOMEM;
	if (cmpxchg(&hctx->plug_stat, NULL, stat))
		free_percpu(stat);
	return 0;
}

void blk_plug_stat_init_hctx(struct blk_mq_hw_ctx *hctx)
{
	/* if there is no memory, this one is not counted */
	if (blk_plug_stat_counts(hctx->queue))
		blk_plug_stat_alloc(hctx);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_init_hctx);

void blk_plug_stat_free_hctx(struct blk_mq_hw_ctx *hctx)
{
	free_percpu(hctx->plug_stat);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_free_hctx);

/*
 * Wait while the queue is frozen, but not if the disk goes: its removal freezes
 * the queue and waits for writers of this file.  No other freeze does: with a
 * hardware queue only the files of hctx<N> go.  An add_disk() that fails may
 * wait for the writer, too, so that this can be killed.
 */
static int blk_plug_stat_enter(struct request_queue *q)
{
	while (!percpu_ref_tryget(&q->q_usage_counter)) {
		if (wait_event_killable(q->mq_freeze_wq,
					!READ_ONCE(q->mq_freeze_depth) ||
					test_bit(GD_DEAD, &q->disk->state)))
			return -EINTR;
		if (test_bit(GD_DEAD, &q->disk->state))
			return -ENODEV;
	}
	return 0;
}

void blk_plug_stat_disable(struct request_queue *q)
{
	if (test_and_clear_bit(QUEUE_FLAG_PLUG_STAT, &q->queue_flags))
		static_branch_dec(&blk_plug_stat_key);
}

/*
 * Hardware queues are added and go only while the queue is frozen, which it is
 * not as long as this holds a reference.  Those that were added before are
 * found here; those that are added later find the flag, in
 * blk_plug_stat_init_hctx().  So no lock is needed that others might not get.
 */
static int blk_plug_stat_enable(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;
	bool on;
	int ret;

	/* takes cpus_read_lock(), so do it without that reference */
	static_branch_inc(&blk_plug_stat_key);
	on = test_and_set_bit(QUEUE_FLAG_PLUG_STAT, &q->queue_flags);
	if (on)
		static_branch_dec(&blk_plug_stat_key);

	ret = blk_plug_stat_enter(q);
	if (!ret) {
		queue_for_each_hw_ctx(q, hctx, i) {
			ret = blk_plug_stat_alloc(hctx);
			if (ret)
				break;
		}
		blk_queue_exit(q);
	}
	if (ret && !on)
		blk_plug_stat_disable(q);
	return ret;
}

static unsigned long blk_plug_stat_sum(struct blk_plug_stat __percpu *stat,
				       enum blk_plug_stat_id id)
{
	unsigned long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		/* they go on counting: any recent value will do */
		sum += data_race(per_cpu_ptr(stat, cpu)->nr[id]);
	return sum;
}

int blk_plug_stat_hctx_show(void *data, struct seq_file *m)
{
	const struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_stat __percpu *stat = READ_ONCE(hctx->plug_stat);
	enum blk_plug_stat_id id;

	for (id = 0; id < BLK_PLUG_STAT_NR; id++)
		seq_printf(m, "%s %lu\n", blk_plug_stat_rows[id],
			   stat ? blk_plug_stat_sum(stat, id) : 0);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_hctx_show);

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
