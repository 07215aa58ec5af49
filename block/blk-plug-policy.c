// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy of a queue: its mode, and why it may not be followed.
 * blk-plug-hold.c says what the modes do.
 */
#include <linux/blkdev.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <kunit/visibility.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-loop.h"
#include "blk-plug-policy.h"

#include <trace/events/blk_plug_policy.h>

const char *const blk_plug_policy_names[BLK_PLUG_POLICY_NR] = {
	[BLK_PLUG_POLICY_ALWAYS]	= "always",
	[BLK_PLUG_POLICY_NEVER]		= "never",
	[BLK_PLUG_POLICY_SEQ_SMALL]	= "seq-small",
	[BLK_PLUG_POLICY_ADAPTIVE]	= "adaptive",
};

/* The flag that stands for a mode; "always" is the absence of all. */
static const unsigned int mode_flag[BLK_PLUG_POLICY_NR] = {
	[BLK_PLUG_POLICY_NEVER]		= QUEUE_FLAG_PLUG_NEVER,
	[BLK_PLUG_POLICY_SEQ_SMALL]	= QUEUE_FLAG_PLUG_SEQ_SMALL,
	[BLK_PLUG_POLICY_ADAPTIVE]	= QUEUE_FLAG_PLUG_ADAPTIVE,
};

/* On while any queue is in a mode other than "always". */
DEFINE_STATIC_KEY_FALSE(blk_plug_policy_key);
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_key);

/* Keeps the count in blk_plug_policy_key in step with the queues' flags. */
static DEFINE_MUTEX(blk_plug_policy_lock);

int blk_plug_policy_parse(const char *text)
{
	return sysfs_match_string(blk_plug_policy_names, text);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_parse);

int blk_plug_policy_set(struct request_queue *q,
			enum blk_plug_policy_mode mode)
{
	enum blk_plug_policy_mode old;
	int ret = 0;

	mutex_lock(&blk_plug_policy_lock);
	old = blk_plug_policy_get(q);
	if (old == mode)
		goto unlock;
	if (mode == BLK_PLUG_POLICY_ADAPTIVE) {
		ret = blk_plug_loop_alloc(q);
		if (ret)
			goto unlock;
		blk_plug_loop_restart(q);
		static_branch_inc(&blk_plug_loop_key);
	}
	/*
	 * Submitters look at the flags without a lock.  In between they see no
	 * flag, and hold for a moment, which is correct in every mode.
	 */
	if (old != BLK_PLUG_POLICY_ALWAYS)
		blk_queue_flag_clear(mode_flag[old], q);
	else
		static_branch_inc(&blk_plug_policy_key);
	if (mode != BLK_PLUG_POLICY_ALWAYS)
		blk_queue_flag_set(mode_flag[mode], q);
	else
		static_branch_dec(&blk_plug_policy_key);
	if (old == BLK_PLUG_POLICY_ADAPTIVE)
		static_branch_dec(&blk_plug_loop_key);
	if (q->disk)
		trace_blk_plug_policy_mode(disk_devt(q->disk),
					   blk_plug_policy_names[old],
					   blk_plug_policy_names[mode]);
unlock:
	mutex_unlock(&blk_plug_policy_lock);
	return ret;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_set);

void blk_plug_policy_register(struct request_queue *q)
{
	if (!queue_is_mq(q) || !(q->limits.features & BLK_FEAT_CHEAP_SUBMIT))
		return;
	if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_NEVER))
		blk_plug_policy_set(q, BLK_PLUG_POLICY_NEVER);
	else if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_SEQ_SMALL))
		blk_plug_policy_set(q, BLK_PLUG_POLICY_SEQ_SMALL);
	else if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_ADAPTIVE))
		blk_plug_policy_set(q, BLK_PLUG_POLICY_ADAPTIVE);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_register);

void blk_plug_policy_unregister(struct request_queue *q)
{
	/* The mode can no longer change, so most disks need no lock. */
	if (blk_plug_policy_get(q) != BLK_PLUG_POLICY_ALWAYS)
		blk_plug_policy_set(q, BLK_PLUG_POLICY_ALWAYS);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_unregister);

enum blk_plug_policy_why
blk_plug_policy_fallback(const struct request_queue *q)
{
	/* debugfs, too, asks while the elevator may be switched */
	if (READ_ONCE(q->elevator))
		return BLK_PLUG_POLICY_ELEVATOR;
	if (q->tag_set->flags & BLK_MQ_F_BLOCKING)
		return BLK_PLUG_POLICY_BLOCKING;
	if (!q->mq_ops->queue_rqs)
		return BLK_PLUG_POLICY_NO_QUEUE_RQS;
	return BLK_PLUG_POLICY_AS_SET;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_fallback);
