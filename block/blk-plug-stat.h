/* SPDX-License-Identifier: GPL-2.0 */
/* Plug statistics: what plugs batch, and why they do not. */
#ifndef BLK_PLUG_STAT_H
#define BLK_PLUG_STAT_H

#include <linux/blk-mq.h>

struct blk_mq_alloc_data;
struct seq_file;

/* The counters of a hardware queue. */
enum blk_plug_stat_id {
	/* tags that were taken several at once, and how many times; singly */
	BLK_PLUG_STAT_TAGS_BATCHED,
	BLK_PLUG_STAT_TAG_BATCHES,
	BLK_PLUG_STAT_TAGS_SINGLE,
	/* why a plug that wanted several got none: */
	BLK_PLUG_STAT_NO_BATCH_SHARED,	/* the queue's share is in use */
	BLK_PLUG_STAT_NO_BATCH_DEPTH,	/* the map is small, or used in turn */
	BLK_PLUG_STAT_NO_BATCH_BUSY,	/* none is free, or a task waits */
	BLK_PLUG_STAT_NO_BATCH_SCHEDULER, /* the elevator limits the depth */
	/* times that a plug sent out what it held, and requests that it did */
	BLK_PLUG_STAT_FLUSHES,
	BLK_PLUG_STAT_FLUSH_REQUESTS,
	BLK_PLUG_STAT_DOORBELLS,	/* if the driver counts them */
	BLK_PLUG_STAT_NR,
};

/* A branch that is patched out until some queue is counted. */
static __always_inline bool blk_plug_stat_on(void)
{
	return IS_ENABLED(CONFIG_BLK_PLUG_STAT) &&
		static_branch_unlikely(&blk_plug_stat_key);
}

void __blk_plug_stat(const struct blk_mq_hw_ctx *hctx, enum blk_plug_stat_id id,
		     unsigned int nr);
void __blk_plug_stat_flush(struct blk_plug *plug);
void __blk_plug_stat_no_batch(const struct blk_mq_alloc_data *data,
			      enum blk_plug_stat_id reason);

static __always_inline void blk_plug_stat(const struct blk_mq_hw_ctx *hctx,
					  enum blk_plug_stat_id id,
					  unsigned int nr)
{
	if (blk_plug_stat_on())
		__blk_plug_stat(hctx, id, nr);
}

/* A plug that wanted several tags at once gets none: returns 0. */
static __always_inline unsigned int
blk_plug_stat_no_batch(const struct blk_mq_alloc_data *data,
		       enum blk_plug_stat_id reason)
{
	if (blk_plug_stat_on())
		__blk_plug_stat_no_batch(data, reason);
	return 0;
}

/* Takes cpus_read_lock() if the queue is counted. */
void blk_plug_stat_disable(struct request_queue *q);

/* The files in debugfs; see blk-mq-debugfs.c */
int blk_plug_stat_hctx_show(void *data, struct seq_file *m);
int blk_plug_stat_enabled_show(void *data, struct seq_file *m);
ssize_t blk_plug_stat_enabled_write(void *data, const char __user *buf,
				    size_t count, loff_t *ppos);

#endif /* BLK_PLUG_STAT_H */
