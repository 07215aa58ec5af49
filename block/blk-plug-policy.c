// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy of a queue: its mode, why it may not be followed, and the
 * files that show both.  blk-plug-hold.c says what the modes do.
 */
#include <linux/blkdev.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <kunit/visibility.h>

#include "blk.h"
#include "blk-plug-loop.h"
#include "blk-plug-policy.h"

static const char *const mode_names[BLK_PLUG_POLICY_NR] = {
	[BLK_PLUG_POLICY_ALWAYS]	= "always",
	[BLK_PLUG_POLICY_NEVER]		= "never",
	[BLK_PLUG_POLICY_SEQ_SMALL]	= "seq-small",
	[BLK_PLUG_POLICY_ADAPTIVE]	= "adaptive",
};

DEFINE_STATIC_KEY_FALSE(blk_plug_policy_key);
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_key);

/* Keeps the count in blk_plug_policy_key in step with the queues' modes. */
static DEFINE_MUTEX(blk_plug_policy_lock);

void blk_plug_policy_set(struct request_queue *q,
			 enum blk_plug_policy_mode mode)
{
	enum blk_plug_policy_mode old;

	mutex_lock(&blk_plug_policy_lock);
	old = blk_plug_policy_get(q);
	if (mode == BLK_PLUG_POLICY_ADAPTIVE && old != mode)
		blk_plug_loop_restart(q);
	/* submitters look at it without a lock: any mode may follow another */
	WRITE_ONCE(q->plug_policy, mode);
	if (!old && mode)
		static_branch_inc(&blk_plug_policy_key);
	else if (old && !mode)
		static_branch_dec(&blk_plug_policy_key);
	mutex_unlock(&blk_plug_policy_lock);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_set);

const char *blk_plug_policy_fallback(const struct request_queue *q)
{
	/* it merges and sorts what the plug has held */
	if (READ_ONCE(q->elevator))
		return "elevator";
	/* ->queue_rq() may sleep, and stall the submission */
	if (q->tag_set->flags & BLK_MQ_F_BLOCKING)
		return "blocking-driver";
	/* takes no groups */
	if (!q->mq_ops->queue_rqs)
		return "no-queue_rqs";
	return NULL;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_fallback);

void blk_plug_policy_register(struct request_queue *q)
{
	if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_ADAPTIVE) &&
	    queue_is_mq(q) && q->mq_ops->queue_rqs)
		blk_plug_policy_set(q, BLK_PLUG_POLICY_ADAPTIVE);
}

void blk_plug_policy_unregister(struct request_queue *q)
{
	/* The mode can no longer change, so most disks need no lock. */
	if (blk_plug_policy_get(q))
		blk_plug_policy_set(q, BLK_PLUG_POLICY_ALWAYS);
}

ssize_t blk_plug_policy_show(struct gendisk *disk, char *page)
{
	enum blk_plug_policy_mode set = blk_plug_policy_get(disk->queue);
	ssize_t len = 0;
	int i;

	for (i = 0; i < BLK_PLUG_POLICY_NR; i++)
		len += sysfs_emit_at(page, len, i == set ? "%s[%s]" : "%s%s",
				     i ? " " : "", mode_names[i]);
	return len + sysfs_emit_at(page, len, "\n");
}

ssize_t blk_plug_policy_store(struct gendisk *disk, const char *page,
			      size_t count)
{
	int mode = sysfs_match_string(mode_names, page);

	if (mode < 0)
		return mode;
	blk_plug_policy_set(disk->queue, mode);
	return count;
}

ssize_t blk_plug_policy_fallback_show(struct gendisk *disk, char *page)
{
	return sysfs_emit(page, "%s\n",
			  blk_plug_policy_fallback(disk->queue) ?: "none");
}
