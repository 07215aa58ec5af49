// SPDX-License-Identifier: GPL-2.0
/*
 * queue/plug_policy and queue/plug_policy_fallback in sysfs, and what they come
 * to in each hctx's directory in debugfs.
 */
#include <linux/blkdev.h>
#include <linux/seq_file.h>
#include <linux/string_choices.h>
#include <linux/sysfs.h>

#include "blk-plug-policy.h"

static const char *const why_text[] = {
	[BLK_PLUG_POLICY_AS_SET]	= "as set",
	[BLK_PLUG_POLICY_ELEVATOR]	= "elevator",
	[BLK_PLUG_POLICY_BLOCKING]	= "blocking driver",
	[BLK_PLUG_POLICY_NO_QUEUE_RQS]	= "no queue_rqs",
};

ssize_t blk_plug_policy_show(struct gendisk *disk, char *page)
{
	enum blk_plug_policy_mode set = blk_plug_policy_get(disk->queue);
	ssize_t len = 0;
	int i;

	for (i = 0; i < BLK_PLUG_POLICY_NR; i++)
		len += sysfs_emit_at(page, len, i == set ? "%s[%s]" : "%s%s",
				     i ? " " : "", blk_plug_policy_names[i]);
	return len + sysfs_emit_at(page, len, "\n");
}

/*
 * "adaptive" needs memory for each hardware queue, so these must stay.  Do not
 * wait for the lock: whoever changes their number may wait for a disk to go,
 * which waits for this file.
 */
static int blk_plug_policy_set_adaptive(struct request_queue *q)
{
	int ret;

	if (!down_read_trylock(&q->tag_set->update_nr_hwq_lock))
		return -EBUSY;
	ret = blk_plug_policy_set(q, BLK_PLUG_POLICY_ADAPTIVE);
	up_read(&q->tag_set->update_nr_hwq_lock);
	return ret;
}

ssize_t blk_plug_policy_store(struct gendisk *disk, const char *page,
			      size_t count)
{
	int mode = blk_plug_policy_parse(page);
	int ret;

	if (mode < 0)
		return mode;
	if (mode == BLK_PLUG_POLICY_ADAPTIVE)
		ret = blk_plug_policy_set_adaptive(disk->queue);
	else
		ret = blk_plug_policy_set(disk->queue, mode);
	return ret ?: count;
}

/* One word, and whatever the mode is: what keeps any other than "always" out. */
ssize_t blk_plug_policy_fallback_show(struct gendisk *disk, char *page)
{
	static const char *const word[] = {
		[BLK_PLUG_POLICY_AS_SET]	= "none",
		[BLK_PLUG_POLICY_ELEVATOR]	= "elevator",
		[BLK_PLUG_POLICY_BLOCKING]	= "blocking-driver",
		[BLK_PLUG_POLICY_NO_QUEUE_RQS]	= "no-queue_rqs",
	};

	return sysfs_emit(page, "%s\n",
			  word[blk_plug_policy_fallback(disk->queue)]);
}

static const char *const merge_text[] = {
	[BLK_PLUG_POLICY_ALWAYS]	= "all",
	[BLK_PLUG_POLICY_NEVER]		= "none",
	[BLK_PLUG_POLICY_SEQ_SMALL]	= "small sequential",
	[BLK_PLUG_POLICY_ADAPTIVE]	= "while found",
};

int blk_plug_policy_debugfs_show(void *data, struct seq_file *m)
{
	struct blk_mq_hw_ctx *hctx = data;
	struct request_queue *q = hctx->queue;
	enum blk_plug_policy_mode set = blk_plug_policy_get(q), effect = set;
	enum blk_plug_policy_why why = BLK_PLUG_POLICY_AS_SET;

	if (set != BLK_PLUG_POLICY_ALWAYS)
		why = blk_plug_policy_fallback(q);
	if (why != BLK_PLUG_POLICY_AS_SET)
		effect = BLK_PLUG_POLICY_ALWAYS;
	seq_printf(m, "set: %s\n", blk_plug_policy_names[set]);
	seq_printf(m, "hold: %s (%s)\n", blk_plug_policy_names[effect],
		   why_text[why]);
	if (blk_queue_nomerges(q))
		seq_puts(m, "merge: none (nomerges)\n");
	else
		seq_printf(m, "merge: %s (%s)\n", merge_text[effect],
			   why_text[why]);
	seq_printf(m, "cheap submission: %s\n",
		   str_yes_no(q->limits.features & BLK_FEAT_CHEAP_SUBMIT));
	return 0;
}
