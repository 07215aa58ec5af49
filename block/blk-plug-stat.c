// SPDX-License-Identifier: GPL-2.0
/*
 * The plug statistics' counters: their memory, when they count, and the files
 * that show them.  What is counted where is in blk-plug-count.[ch].
 */
#include <linux/blkdev.h>
#include <linux/kstrtox.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <kunit/visibility.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-stat.h"

/* On while any queue is counted; counts these queues. */
DEFINE_STATIC_KEY_FALSE(blk_plug_stat_key);

/* Protects blk_plug_stat::base, of all hardware queues. */
static DEFINE_MUTEX(blk_plug_stat_base_lock);

#define ROW(row_name, row_id)						\
	[BLK_PLUG_STAT_##row_id] = row_name

/* Names and meanings, in the order of enum blk_plug_stat_id. */
const char *const blk_plug_stat_rows[BLK_PLUG_STAT_NR] = {
	/* requests freed, whether they completed or were merged */
	ROW("completions",		COMPLETIONS),
	/* requests claimed for an operation, through a plug or not */
	ROW("requests",			REQUESTS),
	/* bios compared with a request that the plug holds */
	ROW("merge_attempts",		MERGE_ATTEMPTS),
	ROW("merge_hits",		MERGE_HITS),
	/* calls that ask for a single tag */
	ROW("tags_single",		TAGS_SINGLE),
	/* of these: the plug wants no batch, or has had one */
	ROW("no_batch_budget",		NO_BATCH_BUDGET),
	/* calls of ->queue_rq() */
	ROW("queue_rq_calls",		QUEUE_RQ),

	/* times an empty plug got its first request */
	ROW("plugs",			PLUGS),
	/* the plug was full */
	ROW("flush_count",		FLUSH_COUNT),
	/* a request was large */
	ROW("flush_size",		FLUSH_SIZE),
	/* a policy wanted it */
	ROW("flush_policy",		FLUSH_POLICY),
	/* the submission was over */
	ROW("flush_finish",		FLUSH_FINISH),
	/* the task went to sleep */
	ROW("flush_schedule",		FLUSH_SCHEDULE),
	/* count or size, but the plug's oldest request is another queue's */
	ROW("flush_other_queue",	FLUSH_OTHER_QUEUE),
	/* requests that all these flushes sent out */
	ROW("flush_requests",		FLUSH_REQUESTS),
	/* flushes whose requests all shared one reading of the clock */
	ROW("flush_clock_shared",	FLUSH_CLOCK),
	ROW("tags_batched",		TAGS_BATCHED),
	ROW("tag_batches",		TAG_BATCHES),
	/* calls of ->queue_rqs(), and what was handed to it */
	ROW("queue_rqs_calls",		QUEUE_RQS),
	ROW("queue_rqs_requests",	QUEUE_RQS_REQUESTS),
	/* flushes of 1, 2 to 3, 4 to 7 ... requests */
	ROW("flush_hist_1",		FLUSH_HIST),
	ROW("flush_hist_2",		FLUSH_HIST + 1),
	ROW("flush_hist_4",		FLUSH_HIST + 2),
	ROW("flush_hist_8",		FLUSH_HIST + 3),
	ROW("flush_hist_16",		FLUSH_HIST + 4),
	ROW("flush_hist_32",		FLUSH_HIST + 5),
	ROW("flush_hist_64",		FLUSH_HIST + 6),
	/* this queue uses half of its share of a shared tag set */
	ROW("no_batch_shared",		NO_BATCH_SHARED),
	/* the tag map is too small to take tags ahead, or goes round robin */
	ROW("no_batch_depth",		NO_BATCH_DEPTH),
	/* too few tags are free, or a task waits for one */
	ROW("no_batch_fragmented",	NO_BATCH_FRAGMENTED),
	/* a reserved tag is wanted */
	ROW("no_batch_reserved",	NO_BATCH_RESERVED),
	/* the elevator limits the depth */
	ROW("no_batch_scheduler",	NO_BATCH_SCHEDULER),
	/* flushes whose hold was measured, and the sum of these holds */
	ROW("holds",			HOLDS),
	ROW("hold_us",			HOLD_US),

	/* batches of requests that completed together, and their requests */
	ROW("completion_batches",	BATCHES),
	ROW("batch_completions",	BATCH_COMPLETIONS),
	ROW("batch_hist_1",		BATCH_HIST),
	ROW("batch_hist_2",		BATCH_HIST + 1),
	ROW("batch_hist_4",		BATCH_HIST + 2),
	ROW("batch_hist_8",		BATCH_HIST + 3),
	ROW("batch_hist_16",		BATCH_HIST + 4),
	ROW("batch_hist_32",		BATCH_HIST + 5),
};

#undef ROW

static unsigned long blk_plug_stat_sum(const struct blk_plug_stat *stat,
				       enum blk_plug_stat_id id)
{
	const atomic_long_t *batch = NULL;
	unsigned long sum = 0;
	int cpu;

	if (id >= BLK_PLUG_STAT_COMPLETE)
		batch = &stat->complete[id - BLK_PLUG_STAT_COMPLETE];
	else if (id >= BLK_PLUG_STAT_SUBMIT)
		batch = &stat->submit[id - BLK_PLUG_STAT_SUBMIT];
	if (batch)
		return atomic_long_read(batch);

	for_each_possible_cpu(cpu)
		/* they go on counting: any recent value will do */
		sum += data_race(per_cpu_ptr(stat->cpu, cpu)->nr[id]);
	return sum;
}

/*
 * Includes requests that a plug still holds.  Never less than what is in
 * flight; while I/O runs it may be more.
 */
static unsigned long
blk_plug_stat_in_flight(const struct blk_mq_hw_ctx *hctx)
{
	const struct blk_plug_stat *stat = blk_plug_stat_of(hctx);
	unsigned long done;

	if (!stat)
		return 0;
	done = blk_plug_stat_sum(stat, BLK_PLUG_STAT_COMPLETIONS);
	/* whatever ended before has started, on whatever CPU */
	smp_rmb();
	return blk_plug_stat_sum(stat, BLK_PLUG_STAT_REQUESTS) - done;
}

static void blk_plug_stat_free(struct blk_plug_stat *stat)
{
	if (stat)
		free_percpu(stat->cpu);
	kfree(stat);
}

static struct blk_plug_stat *blk_plug_stat_alloc(int node, gfp_t gfp)
{
	struct blk_plug_stat *stat = kzalloc_node(sizeof(*stat), gfp, node);

	if (!stat)
		return NULL;
	stat->cpu = alloc_percpu_gfp(struct blk_plug_stat_cpu, gfp);
	if (stat->cpu)
		return stat;
	kfree(stat);
	return NULL;
}

/* The caller makes sure that nothing is in flight and nobody counts. */
static void blk_plug_stat_clear(struct blk_plug_stat *stat)
{
	int cpu;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(stat->cpu, cpu), 0, sizeof(*stat->cpu));
	memset(stat->base, 0, sizeof(stat->base));
	memset(stat->submit, 0, sizeof(stat->submit));
	memset(stat->complete, 0, sizeof(stat->complete));
}

void blk_plug_stat_init_hctx(struct blk_mq_hw_ctx *hctx)
{
	gfp_t gfp = GFP_NOIO | __GFP_NOWARN | __GFP_NORETRY;
	unsigned int mode = hctx->queue->plug_stat_mode;

	/* if there is no memory, this one is not counted */
	if (mode && !hctx->plug_stat)
		hctx->plug_stat = blk_plug_stat_alloc(hctx->numa_node, gfp);
	if (hctx->plug_stat) {
		blk_plug_stat_clear(hctx->plug_stat);
		hctx->plug_stat->mode = mode;
		hctx->plug_stat_cpu = mode ? hctx->plug_stat->cpu : NULL;
	}
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_init_hctx);

void blk_plug_stat_free_hctx(struct blk_mq_hw_ctx *hctx)
{
	blk_plug_stat_free(hctx->plug_stat);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_free_hctx);

/* Once allocated, the counters stay for as long as the hardware queue. */
static int blk_plug_stat_alloc_hctxs(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i) {
		struct blk_plug_stat *stat;

		if (READ_ONCE(hctx->plug_stat))
			continue;
		stat = blk_plug_stat_alloc(hctx->numa_node, GFP_KERNEL);
		if (!stat)
			return -ENOMEM;
		if (cmpxchg(&hctx->plug_stat, NULL, stat))
			blk_plug_stat_free(stat);
	}
	return 0;
}

/* Returns the previous mode. */
static unsigned int blk_plug_stat_switch(struct request_queue *q,
					 unsigned int mode)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned int old;
	unsigned long i;

	spin_lock_irq(&q->queue_lock);
	old = q->plug_stat_mode;
	q->plug_stat_mode = mode;
	queue_for_each_hw_ctx(q, hctx, i) {
		struct blk_plug_stat *stat = READ_ONCE(hctx->plug_stat);

		if (!stat)
			continue;
		if (!old && mode)
			blk_plug_stat_clear(stat);
		WRITE_ONCE(stat->mode, mode);
		WRITE_ONCE(hctx->plug_stat_cpu, mode ? stat->cpu : NULL);
	}
	spin_unlock_irq(&q->queue_lock);
	return old;
}

/*
 * A request that was marked before counting was last stopped may still be in
 * flight, and its end may or may not have been missed.  So freeze the queue,
 * and start when there is none.
 */
static int blk_plug_stat_enable(struct request_queue *q, unsigned int mode)
{
	unsigned int memflags, old;
	int ret = blk_plug_stat_alloc_hctxs(q);

	if (ret)
		return ret;
	static_branch_inc(&blk_plug_stat_key);
	memflags = blk_mq_freeze_queue(q);
	old = blk_plug_stat_switch(q, mode);
	blk_mq_unfreeze_queue(q, memflags);
	if (old)
		static_branch_dec(&blk_plug_stat_key);
	return 0;
}

static void blk_plug_stat_disable(struct request_queue *q)
{
	if (blk_plug_stat_switch(q, BLK_PLUG_STAT_OFF))
		static_branch_dec(&blk_plug_stat_key);
}

/*
 * Counting starts from 0 with nothing in flight, so the queue is frozen for a
 * moment.  Takes cpus_read_lock(), so no queue may be frozen already, and the
 * lock of the elevator must not be held.
 */
static int blk_plug_stat_set(struct request_queue *q,
			     enum blk_plug_stat_mode mode)
{
	unsigned int memflags;
	int ret = 0;

	/* like everybody who takes this lock: I/O may depend on it */
	memflags = memalloc_noio_save();
	/*
	 * Do not wait: whoever changes the number of hardware queues may wait
	 * for a disk to go, which waits for the files that end up here.
	 */
	if (!down_read_trylock(&q->tag_set->update_nr_hwq_lock)) {
		ret = -EBUSY;
		goto restore;
	}
	if (mode == BLK_PLUG_STAT_OFF)
		blk_plug_stat_disable(q);
	else
		ret = blk_plug_stat_enable(q, mode);
	up_read(&q->tag_set->update_nr_hwq_lock);
restore:
	memalloc_noio_restore(memflags);
	return ret;
}

void blk_plug_stat_unregister(struct request_queue *q)
{
	if (q->plug_stat_mode)
		blk_plug_stat_disable(q);
}

/* <debugfs>/block/<disk>/hctx<N>/plug_stats */
int blk_plug_stat_hctx_show(void *data, struct seq_file *m)
{
	const struct blk_mq_hw_ctx *hctx = data;
	const struct blk_plug_stat *stat = READ_ONCE(hctx->plug_stat);
	enum blk_plug_stat_id id;

	mutex_lock(&blk_plug_stat_base_lock);
	seq_printf(m, "in_flight %lu\n", blk_plug_stat_in_flight(hctx));
	for (id = 0; id < BLK_PLUG_STAT_NR; id++)
		seq_printf(m, "%s %lu\n", blk_plug_stat_rows[id],
			   stat ? blk_plug_stat_sum(stat, id) - stat->base[id]
				: 0);
	mutex_unlock(&blk_plug_stat_base_lock);
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_hctx_show);

ssize_t blk_plug_stat_hctx_write(void *data, const char __user *buf,
				 size_t count, loff_t *ppos)
{
	const struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_stat *stat = READ_ONCE(hctx->plug_stat);
	enum blk_plug_stat_id id;

	if (!stat)
		return count;
	mutex_lock(&blk_plug_stat_base_lock);
	for (id = 0; id < BLK_PLUG_STAT_NR; id++)
		stat->base[id] = blk_plug_stat_sum(stat, id);
	mutex_unlock(&blk_plug_stat_base_lock);
	return count;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_stat_hctx_write);

/* <debugfs>/block/<disk>/plug_stats_enabled */
int blk_plug_stat_enabled_show(void *data, struct seq_file *m)
{
	const struct request_queue *q = data;

	seq_printf(m, "%u\n", READ_ONCE(q->plug_stat_mode));
	return 0;
}

ssize_t blk_plug_stat_enabled_write(void *data, const char __user *buf,
				    size_t count, loff_t *ppos)
{
	unsigned int mode;
	int ret;

	ret = kstrtouint_from_user(buf, count, 0, &mode);
	if (ret)
		return ret;
	if (mode >= BLK_PLUG_STAT_NR_MODES)
		return -EINVAL;
	ret = blk_plug_stat_set(data, mode);
	return ret ?: count;
}
