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

/* The counters of a hardware queue. */
enum blk_plug_stat_id {
	/* tags that were taken several at once, and how many times; singly */
	BLK_PLUG_STAT_TAGS_BATCHED,
	BLK_PLUG_STAT_TAG_BATCHES,
	BLK_PLUG_STAT_TAGS_SINGLE,
	/*
	 * Why a plug that wanted several got none: the queue uses its share of
	 * a tag set; the map is too small, or used in turn; no tag is free, or
	 * a task waits for one; the elevator limits the depth
	 */
	BLK_PLUG_STAT_NO_BATCH_SHARED,
	BLK_PLUG_STAT_NO_BATCH_DEPTH,
	BLK_PLUG_STAT_NO_BATCH_BUSY,
	BLK_PLUG_STAT_NO_BATCH_SCHEDULER,
	/*
	 * Why a plug was flushed: it held enough requests, or a large one; a
	 * policy wanted it; the submission was over; the task went to sleep
	 */
	BLK_PLUG_STAT_FLUSH_FULL,
	BLK_PLUG_STAT_FLUSH_POLICY,
	BLK_PLUG_STAT_FLUSH_FINISH,
	BLK_PLUG_STAT_FLUSH_SCHEDULE,
	BLK_PLUG_STAT_FLUSH_REQUESTS,	/* that these flushes sent out */
	/* bios compared with a request in a plug, and merged */
	BLK_PLUG_STAT_MERGE_TRIED,
	BLK_PLUG_STAT_MERGE_FOUND,
	/* times that requests completed together, and requests that did */
	BLK_PLUG_STAT_COMPLETION_BATCHES,
	BLK_PLUG_STAT_BATCH_COMPLETIONS,
	BLK_PLUG_STAT_NR,
};

/* What one CPU has counted for a hardware queue. */
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

static __always_inline void blk_plug_stat(const struct blk_mq_hw_ctx *hctx,
					  enum blk_plug_stat_id id,
					  unsigned int nr)
{
	if (blk_plug_stat_on())
		__blk_plug_stat(hctx, id, nr);
}

/* A plug is about to send out what it holds, if anything. */
static __always_inline void blk_plug_stat_flush(struct blk_plug *plug,
						enum blk_plug_stat_id reason)
{
	if (blk_plug_stat_on() && plug->rq_count)
		__blk_plug_stat_flush(plug, reason);
}

/* A plug wanted several tags at once, and gets none: returns 0. */
static __always_inline unsigned int
blk_plug_stat_no_batch(const struct blk_mq_alloc_data *data,
		       enum blk_plug_stat_id reason)
{
	if (blk_plug_stat_on())
		__blk_plug_stat_no_batch(data, reason);
	return 0;
}

/* A new or reused hardware queue, of a queue that is frozen or new. */
void blk_plug_stat_init_hctx(struct blk_mq_hw_ctx *hctx);
void blk_plug_stat_free_hctx(struct blk_mq_hw_ctx *hctx);

/* Takes cpus_read_lock() if the queue is counted. */
void blk_plug_stat_disable(struct request_queue *q);

/* The files in debugfs; see blk-mq-debugfs.c */
int blk_plug_stat_hctx_show(void *data, struct seq_file *m);
int blk_plug_stat_enabled_show(void *data, struct seq_file *m);
ssize_t blk_plug_stat_enabled_write(void *data, const char __user *buf,
				    size_t count, loff_t *ppos);

#endif /* BLK_PLUG_STAT_H */
