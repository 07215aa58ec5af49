// SPDX-License-Identifier: GPL-2.0
/*
 * Plug policy: how many requests a plug holds, chosen per queue.
 *
 * Whatever the mode, a plug takes tags and reads the clock for many I/Os at
 * once, and a bio may join the newest request that the plug holds.  The control
 * law is:
 *
 * - always: requests are held until there are 32 (64 from several queues), the
 *   newest is 128 KiB large, or the plug ends.
 *
 * - never: the request of each bio is issued as it comes; so no bio finds one
 *   to join.  Passthrough requests are held as under "always".
 *
 * - seq-small: as under "always", small requests that continue each other.  All
 *   others leave in groups of at most 8 requests and 128 KiB, if all are as
 *   large as the first.
 *
 * - adaptive: requests leave in groups of the size that blk-plug-adaptive.c has
 *   found for their hardware queue.
 *
 * - A full group waits for a bio that has joined none of its requests, and
 *   leaves then.  So no merge that "always" makes is lost, whatever the size.
 *
 * - Some queues do as under "always" in every mode: an elevator merges and
 *   sorts what the plug has held; a ->queue_rq() that may sleep would stall the
 *   submission more often; a driver without ->queue_rqs() takes no groups.  So
 *   does a plug that holds requests of several queues, but for "never".
 *
 * - The policy sends requests out in the order in which they came, even if the
 *   mode has changed since.  A busy device may change the order, but does so in
 *   every mode and without a plug, too.
 *
 * The group is chosen at the plug's first request, not in blk_start_plug(),
 * since that does not know what queue the I/O is for.
 */
#include <linux/blkdev.h>
#include <linux/mutex.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <kunit/visibility.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-tune.h"
#include "blk-plug-policy.h"
#include "blk-plug-stat.h"

enum {
	/* Half of BLK_PLUG_FLUSH_SIZE: merging two of these fills a hold. */
	SMALL_BYTES	= SZ_64K,
};

/* A discard's size says nothing about the work it makes. */
static bool blk_plug_policy_is_data(const struct request *rq)
{
	enum req_op op = req_op(rq);

	return op == REQ_OP_READ || op == REQ_OP_WRITE ||
		op == REQ_OP_ZONE_APPEND || blk_op_is_passthrough(op);
}

static u8 blk_plug_policy_seq_small_group(const struct request *rq)
{
	if (!blk_plug_policy_is_data(rq) || blk_plug_policy_fallback(rq->q))
		return BLK_PLUG_POLICY_NO_GROUP;
	return clamp(BLK_PLUG_POLICY_GROUP_BYTES / max(blk_rq_bytes(rq), 1u),
		     1, BLK_PLUG_POLICY_GROUP);
}

void __blk_plug_policy_first_rq(struct blk_plug *plug, struct request *rq)
{
	const struct blk_plug_tune *tune;
	unsigned int group;

	if (blk_plug_policy_get(rq->q) == BLK_PLUG_POLICY_SEQ_SMALL) {
		plug->policy.group = blk_plug_policy_seq_small_group(rq);
		return;
	}
	tune = blk_plug_tune_get(rq->mq_hctx);
	if (!tune || READ_ONCE(rq->q->elevator))
		return;
	plug->policy.counts = true;
	group = READ_ONCE(tune->group);
	/* the plug is full by then anyway */
	if (group < BLK_MAX_REQUEST_COUNT)
		plug->policy.group = group;
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_first_rq);

/* Is @rq small, does it adjoin the one before it, and does its queue merge? */
static bool blk_plug_policy_sequential(const struct request *prev,
				       const struct request *rq)
{
	sector_t pos = blk_rq_pos(rq);

	return blk_rq_bytes(rq) < SMALL_BYTES && !blk_queue_nomerges(rq->q) &&
		req_op(prev) == req_op(rq) &&
		!blk_op_is_passthrough(req_op(rq)) &&
		(blk_rq_pos(prev) + blk_rq_sectors(prev) == pos ||
		 blk_rq_pos(prev) == pos + blk_rq_sectors(rq));
}

/*
 * Drop the cached clock reading as "always" does: for a request that is large
 * enough to flush the plug, or after as many requests as fill it.
 */
static void blk_plug_policy_sent(struct blk_plug *plug, unsigned int nr,
				 unsigned int bytes)
{
	plug->policy.nr_sent += nr;
	if (bytes < BLK_PLUG_FLUSH_SIZE &&
	    plug->policy.nr_sent < BLK_MAX_REQUEST_COUNT)
		return;
	plug->policy.nr_sent = 0;
	blk_plug_invalidate_ts();
}

static void blk_plug_policy_flush(struct blk_plug *plug)
{
	unsigned int bytes = blk_rq_bytes(plug->mq_list.tail);
	unsigned int nr = plug->rq_count;

	blk_plug_stat_flush(plug, BLK_PLUG_STAT_FLUSH_POLICY);
	/* The requests are gone when this returns: do not touch them then. */
	blk_mq_flush_plug_list(plug, false);
	blk_plug_policy_sent(plug, nr, bytes);
}

void __blk_plug_policy_flush_group(struct blk_plug *plug,
				   const struct request *rq)
{
	const struct request *newest = plug->mq_list.tail;

	/* a bio may still join it: see blk_plug_policy_second_queue() */
	if (newest->q != rq->q)
		return;
	if (blk_plug_policy_get(rq->q) != BLK_PLUG_POLICY_SEQ_SMALL ||
	    !blk_plug_policy_sequential(newest, rq))
		blk_plug_policy_flush(plug);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_flush_group);

bool __blk_plug_policy_issue_now(struct blk_plug *plug, struct request *rq)
{
	if (blk_plug_policy_fallback(rq->q))
		return false;
	if (plug->rq_count) {
		/* may hold older requests of this queue: do not overtake */
		if (plug->multiple_queues)
			return false;
		/* held since before the mode was set: send them out first */
		if (plug->mq_list.tail->q == rq->q)
			blk_plug_policy_flush(plug);
	}
	blk_plug_policy_sent(plug, 1, blk_rq_bytes(rq));
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_issue_now);

static const char *const mode_names[BLK_PLUG_POLICY_NR] = {
	[BLK_PLUG_POLICY_ALWAYS]	= "always",
	[BLK_PLUG_POLICY_NEVER]		= "never",
	[BLK_PLUG_POLICY_SEQ_SMALL]	= "seq-small",
	[BLK_PLUG_POLICY_ADAPTIVE]	= "adaptive",
};

DEFINE_STATIC_KEY_FALSE(blk_plug_policy_key);
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_key);

/*
 * Keeps the count in blk_plug_policy_key in step with the queues' modes.  No
 * queue is frozen when the key is changed; see blk_plug_stat_key.
 */
static DEFINE_MUTEX(blk_plug_policy_lock);

void blk_plug_policy_set(struct request_queue *q,
			 enum blk_plug_policy_mode mode)
{
	enum blk_plug_policy_mode old;

	mutex_lock(&blk_plug_policy_lock);
	old = blk_plug_policy_get(q);
	if (mode == BLK_PLUG_POLICY_ADAPTIVE && old != mode)
		blk_plug_tune_restart(q);
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
