/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Plug statistics: what plugs batch, and why they do not, per hardware queue.
 * Mechanism only: nothing here decides anything.
 */
#ifndef BLK_PLUG_STAT_H
#define BLK_PLUG_STAT_H

#include <linux/blk-mq.h>
#include <linux/jump_label.h>
#include <linux/percpu.h>

struct blk_mq_alloc_data;
struct seq_file;

/**
 * enum blk_plug_stat_id - the counters of a hardware queue
 * @BLK_PLUG_STAT_TAGS_BATCHED:		tags that were taken several at once
 * @BLK_PLUG_STAT_TAG_BATCHES:		times that they were
 * @BLK_PLUG_STAT_TAGS_SINGLE:		times that a single tag was asked for
 * @BLK_PLUG_STAT_NO_BATCH_SHARED:	a plug wanted several tags, but this
 *					queue uses its share of a tag set
 * @BLK_PLUG_STAT_NO_BATCH_DEPTH:	the map of tags is too small, or is used
 *					in turn
 * @BLK_PLUG_STAT_NO_BATCH_BUSY:	no tag is free, or a task waits for one
 * @BLK_PLUG_STAT_NO_BATCH_SCHEDULER:	the elevator limits the depth
 * @BLK_PLUG_STAT_FLUSH_FULL:		a plug was flushed as it held enough
 *					requests, or a large one
 * @BLK_PLUG_STAT_FLUSH_POLICY:		a policy wanted it
 * @BLK_PLUG_STAT_FLUSH_FINISH:		the submission was over
 * @BLK_PLUG_STAT_FLUSH_SCHEDULE:	the task went to sleep
 * @BLK_PLUG_STAT_FLUSH_REQUESTS:	requests that these flushes sent out
 * @BLK_PLUG_STAT_MERGE_TRIED:		bios compared with a request in a plug
 * @BLK_PLUG_STAT_MERGE_FOUND:		of these, bios that were merged
 * @BLK_PLUG_STAT_COMPLETION_BATCHES:	times that requests completed together
 * @BLK_PLUG_STAT_BATCH_COMPLETIONS:	requests that did
 * @BLK_PLUG_STAT_NR:			number of counters
 */
enum blk_plug_stat_id {
	BLK_PLUG_STAT_TAGS_BATCHED,
	BLK_PLUG_STAT_TAG_BATCHES,
	BLK_PLUG_STAT_TAGS_SINGLE,
	BLK_PLUG_STAT_NO_BATCH_SHARED,
	BLK_PLUG_STAT_NO_BATCH_DEPTH,
	BLK_PLUG_STAT_NO_BATCH_BUSY,
	BLK_PLUG_STAT_NO_BATCH_SCHEDULER,
	BLK_PLUG_STAT_FLUSH_FULL,
	BLK_PLUG_STAT_FLUSH_POLICY,
	BLK_PLUG_STAT_FLUSH_FINISH,
	BLK_PLUG_STAT_FLUSH_SCHEDULE,
	BLK_PLUG_STAT_FLUSH_REQUESTS,
	BLK_PLUG_STAT_MERGE_TRIED,
	BLK_PLUG_STAT_MERGE_FOUND,
	BLK_PLUG_STAT_COMPLETION_BATCHES,
	BLK_PLUG_STAT_BATCH_COMPLETIONS,
	BLK_PLUG_STAT_NR,
};

/**
 * struct blk_plug_stat - what one CPU has counted for a hardware queue
 * @nr: by &enum blk_plug_stat_id
 */
struct blk_plug_stat {
	unsigned long nr[BLK_PLUG_STAT_NR];
};

DECLARE_STATIC_KEY_FALSE(blk_plug_stat_key);

void __blk_plug_stat_flush(struct blk_plug *plug, enum blk_plug_stat_id reason);
void __blk_plug_stat_no_batch(const struct blk_mq_alloc_data *data,
			      enum blk_plug_stat_id reason);

/* A branch that is patched out until some queue is counted. */
static __always_inline bool blk_plug_stat_on(void)
{
	return IS_ENABLED(CONFIG_BLK_PLUG_STAT) &&
		static_branch_unlikely(&blk_plug_stat_key);
}

static inline void __blk_plug_stat(const struct blk_mq_hw_ctx *hctx,
				   enum blk_plug_stat_id id, unsigned int nr)
{
#ifdef CONFIG_BLK_PLUG_STAT
	struct blk_plug_stat __percpu *stat = READ_ONCE(hctx->plug_stat);

	if (stat && test_bit(QUEUE_FLAG_PLUG_STAT, &hctx->queue->queue_flags))
		this_cpu_add(stat->nr[id], nr);
#endif
}

/**
 * blk_plug_stat - count what happens on a hardware queue
 * @hctx: hardware queue
 * @id: counter
 * @nr: what to add
 *
 * Context: Any.
 */
static __always_inline void blk_plug_stat(const struct blk_mq_hw_ctx *hctx,
					  enum blk_plug_stat_id id,
					  unsigned int nr)
{
	if (blk_plug_stat_on())
		__blk_plug_stat(hctx, id, nr);
}

/**
 * blk_plug_stat_flush - a plug is about to send out what it holds
 * @plug: plug, which may be empty
 * @reason: one of %BLK_PLUG_STAT_FLUSH_FULL ... %BLK_PLUG_STAT_FLUSH_SCHEDULE
 *
 * Context: Task context of the submitter.
 */
static __always_inline void blk_plug_stat_flush(struct blk_plug *plug,
						enum blk_plug_stat_id reason)
{
	if (blk_plug_stat_on() && plug->rq_count)
		__blk_plug_stat_flush(plug, reason);
}

/**
 * blk_plug_stat_no_batch - a plug wanted several tags at once, and gets none
 * @data: what it wanted
 * @reason: one of %BLK_PLUG_STAT_NO_BATCH_SHARED ...
 *	%BLK_PLUG_STAT_NO_BATCH_SCHEDULER
 *
 * Context: Process context.
 * Return: 0
 */
static __always_inline unsigned int
blk_plug_stat_no_batch(const struct blk_mq_alloc_data *data,
		       enum blk_plug_stat_id reason)
{
	if (blk_plug_stat_on())
		__blk_plug_stat_no_batch(data, reason);
	return 0;
}

/**
 * blk_plug_stat_init_hctx - prepare a new or reused hardware queue
 * @hctx: hardware queue, of a queue that is frozen or new
 *
 * Context: Process context.
 */
void blk_plug_stat_init_hctx(struct blk_mq_hw_ctx *hctx);

/**
 * blk_plug_stat_free_hctx - free a hardware queue's counters
 * @hctx: hardware queue that nobody uses any more
 */
void blk_plug_stat_free_hctx(struct blk_mq_hw_ctx *hctx);

/**
 * blk_plug_stat_disable - stop counting on a queue
 * @q: any request queue; if its disk goes, its debugfs files are gone already
 *
 * Context: Process context, may sleep.  Takes cpus_read_lock() if the queue is
 *	counted.
 */
void blk_plug_stat_disable(struct request_queue *q);

/* The files in debugfs; see blk-mq-debugfs.c */
int blk_plug_stat_hctx_show(void *data, struct seq_file *m);
int blk_plug_stat_enabled_show(void *data, struct seq_file *m);
ssize_t blk_plug_stat_enabled_write(void *data, const char __user *buf,
				    size_t count, loff_t *ppos);

#endif /* BLK_PLUG_STAT_H */
