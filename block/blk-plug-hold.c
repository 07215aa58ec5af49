// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policies: what a plug holds, and for how long.
 *
 * A plug does three things: it keeps tags and a clock reading for the whole
 * submission, it looks for a merge for each bio, and it holds requests so that
 * one doorbell carries many.  Every mode keeps the first.  The control law for
 * the other two is:
 *
 * - always: each bio looks for a merge; requests are held until there are 32
 *   (64 from several queues), the newest is 128 KiB large, or the plug ends.
 *
 * - never: no bio looks for a merge; each request is issued as it comes.
 *
 * - seq-small: a bio looks for a merge if it is small and adjoins the newest
 *   request, which takes two comparisons to find out, or if nothing is held to
 *   compare it with.  Small requests that adjoin each other are held as under
 *   "always".  All others leave in groups: of 8 up to 16 KiB, of 4 up to 32
 *   KiB, of 2 up to 64 KiB, above that one by one.
 *
 * - adaptive: requests leave in groups of the size that blk-plug-adaptive.c has
 *   found for their hardware queue.  While merges are found, each bio looks for
 *   one, and a full group waits for a bio that has found none: so no merge that
 *   "always" makes is lost, whatever the group size.  While none are found,
 *   only the bios of one plug in 32 look; in the others a group leaves as soon
 *   as it is full.
 *
 * - Some queues keep the lookup and the hold in every mode: an elevator merges
 *   and sorts what the plug has held; a ->queue_rq() that may sleep must not be
 *   called in the middle of a submission; a driver without ->queue_rqs() takes
 *   no groups.  So does a plug that holds requests of several queues: sending
 *   out one queue's group would push out requests that another queue still
 *   wants to merge.
 *
 * - The policy sends requests out in the order in which they came, even if the
 *   mode has changed since.  A busy device may change the order, but does so in
 *   every mode and without a plug, too.
 */
#include <linux/blkdev.h>
#include <linux/sizes.h>
#include <kunit/visibility.h>

#include <trace/events/blk_plug_policy.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-count.h"
#include "blk-plug-hold.h"

enum {
	/* Half of BLK_PLUG_FLUSH_SIZE: merging two of these fills a hold. */
	SMALL_BYTES	= SZ_64K,

	/* How rarely "always" reads the clock for small requests. */
	REQUESTS_PER_CLOCK = BLK_MAX_REQUEST_COUNT,
};

unsigned int blk_plug_policy_group_size(enum blk_plug_policy_mode mode,
					unsigned int bytes, bool sequential)
{
	if (mode == BLK_PLUG_POLICY_NEVER)
		return 1;
	if (mode != BLK_PLUG_POLICY_SEQ_SMALL ||
	    (sequential && bytes < SMALL_BYTES))
		return BLK_PLUG_POLICY_NO_GROUP;
	if (bytes <= BLK_PLUG_POLICY_FULL_GROUP_BYTES)
		return BLK_PLUG_POLICY_GROUP;
	if (bytes >= BLK_PLUG_POLICY_GROUP_BYTES)
		return 1;
	/* round the size up to a power of two, to spare a division */
	return BLK_PLUG_POLICY_GROUP_BYTES >> fls(bytes - 1);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_group_size);

/* Other operations merge by rules other than contiguity. */
static bool blk_plug_policy_is_data(enum req_op op)
{
	return op == REQ_OP_READ || op == REQ_OP_WRITE ||
		op == REQ_OP_ZONE_APPEND;
}

/*
 * Is @bio small, and does it adjoin the newest request in the plug?  Also true
 * where that cannot be told: the lookup then ends at once in the plug, and
 * still finds requests that a busy device has left in a software queue.
 */
static bool blk_plug_policy_seq_small(struct request_queue *q, struct bio *bio)
{
	struct blk_plug *plug = current->plug;
	struct request *newest;

	if (!blk_plug_policy_is_data(bio_op(bio)))
		return true;
	/* the newest request may be another queue's: look as "always" does */
	if (!plug || plug->multiple_queues)
		return true;
	if (bio->bi_iter.bi_size >= SMALL_BYTES)
		return false;
	newest = plug->rq_count ? plug->mq_list.tail : NULL;
	return !newest || (newest->q == q &&
		blk_plug_policy_adjoins(newest, bio->bi_iter.bi_sector,
					bio_end_sector(bio)));
}

bool __blk_plug_policy_may_merge(struct request_queue *q, struct bio *bio)
{
	enum blk_plug_policy_mode mode = blk_plug_policy_get(q);

	if (mode == BLK_PLUG_POLICY_SEQ_SMALL &&
	    blk_plug_policy_seq_small(q, bio))
		return true;
	return mode == BLK_PLUG_POLICY_ALWAYS ||
		blk_plug_policy_fallback(q) != BLK_PLUG_POLICY_AS_SET;
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_may_merge);

/*
 * Drop the cached clock reading if it has served for long enough: for a request
 * that is large enough to flush the plug under "always", or for as many
 * requests as fill it.
 */
static void blk_plug_policy_sent(struct blk_plug *plug, unsigned int nr,
				 unsigned int bytes)
{
	plug->nr_sent += nr;
	if (bytes < BLK_PLUG_FLUSH_SIZE && plug->nr_sent < REQUESTS_PER_CLOCK)
		return;
	plug->nr_sent %= REQUESTS_PER_CLOCK;
	blk_plug_invalidate_ts();
}

/* Send out what @plug holds; @bytes is the size of the newest request. */
static void blk_plug_policy_flush(struct blk_plug *plug, unsigned int bytes)
{
	unsigned int nr = plug->rq_count;

	trace_blk_plug_policy_group(rq_list_peek(&plug->mq_list), nr);
	blk_plug_stat_flush(plug, BLK_PLUG_STAT_FLUSH_POLICY);
	/* The requests are gone when this returns: do not touch them then. */
	blk_mq_flush_plug_list(plug, false);
	blk_plug_policy_sent(plug, nr, bytes);
}

void __blk_plug_policy_make_room(struct blk_plug *plug)
{
	const struct request *newest = plug->mq_list.tail;

	/* the mode may have been changed since the plug was bound */
	if (blk_plug_policy_get(newest->q) == BLK_PLUG_POLICY_ADAPTIVE)
		blk_plug_policy_flush(plug, blk_rq_bytes(newest));
	else
		plug->policy = 0;
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_make_room);

/* nr_merged can count no further: let the hardware queue know now. */
void __blk_plug_policy_many_merged(struct blk_plug *plug)
{
	if (plug->rq_count)
		blk_plug_loop_sent(plug->mq_list.tail->mq_hctx, 0,
				   plug->nr_merged);
	plug->nr_merged = 0;
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_many_merged);

/* How many requests, from @rq on, are for its hardware queue? */
static unsigned int blk_plug_policy_like(const struct request *rq)
{
	const struct blk_mq_hw_ctx *hctx = rq->mq_hctx;
	unsigned int nr = 0;

	for (; rq; rq = rq->rq_next)
		nr += rq->mq_hctx == hctx;
	return nr;
}

/*
 * Count each hardware queue once, at its first request.  Nobody knows whose
 * requests were joined, so take the newest one's queue.  That does no harm:
 * such plugs are filled as under "always", and nothing is compared.
 */
static void blk_plug_policy_count_mixed(const struct blk_plug *plug,
					unsigned int merged)
{
	const struct blk_mq_hw_ctx *newest = plug->mq_list.tail->mq_hctx;
	const struct request *rq, *first;

	for (rq = plug->mq_list.head; rq; rq = rq->rq_next) {
		first = plug->mq_list.head;
		while (first->mq_hctx != rq->mq_hctx)
			first = first->rq_next;
		if (first != rq)
			continue;
		blk_plug_loop_sent(rq->mq_hctx, blk_plug_policy_like(rq),
				   rq->mq_hctx == newest ? merged : 0);
	}
}

void __blk_plug_policy_flushed(struct blk_plug *plug)
{
	unsigned int merged = plug->nr_merged, policy = plug->policy;

	/* an empty plug is bound anew, but remembers that bios did not merge */
	plug->policy &= BLK_PLUG_POLICY_RANDOM;
	plug->nr_merged = 0;
	if (policy & BLK_PLUG_POLICY_MIXED)
		blk_plug_policy_count_mixed(plug, merged);
	else if (policy)
		blk_plug_loop_sent(plug->mq_list.tail->mq_hctx, plug->rq_count,
				   merged);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_flushed);

bool __blk_plug_policy_holds(struct blk_plug *plug, struct request *rq)
{
	struct request *oldest = rq_list_peek(&plug->mq_list);
	struct request_queue *q = rq->q;

	if (blk_plug_policy_fallback(q) != BLK_PLUG_POLICY_AS_SET)
		return true;

	if (oldest && plug->rq_count) {
		/* may hold older requests of this queue: do not overtake */
		if (plug->multiple_queues)
			return true;
		/* held since before the mode was set: send them out first */
		if (oldest->q == q)
			blk_plug_policy_flush(plug, 0);
	}

	blk_plug_policy_sent(plug, 1, blk_rq_bytes(rq));
	return false;
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_holds);

/* Does @rq adjoin the request before it, on a queue that merges? */
static bool blk_plug_policy_sequential(const struct blk_plug *plug,
				       const struct request *rq)
{
	const struct request *prev = plug->mq_list.tail;

	return prev && plug->rq_count && !blk_queue_nomerges(rq->q) &&
		blk_plug_policy_is_data(req_op(rq)) &&
		req_op(prev) == req_op(rq) &&
		blk_plug_policy_adjoins(prev, blk_rq_pos(rq),
					blk_rq_pos(rq) + blk_rq_sectors(rq));
}

/* Does the policy group @rq with what @plug holds? */
static bool blk_plug_policy_groups(const struct blk_plug *plug,
				   const struct request *rq)
{
	enum req_op op = req_op(rq);

	/* A discard's size says nothing about the work it makes. */
	return (blk_plug_policy_is_data(op) || blk_op_is_passthrough(op)) &&
		!plug->multiple_queues && !plug->has_elevator &&
		blk_plug_policy_fallback(rq->q) == BLK_PLUG_POLICY_AS_SET;
}

/*
 * How to fill an empty plug, as its first request decides; 0 if as under
 * "always".
 */
static u8 blk_plug_policy_bind(const struct request *rq)
{
	unsigned int decision = blk_plug_loop_decision(rq->mq_hctx);
	unsigned int group = decision & BLK_PLUG_LOOP_GROUP;

	if (!rq->mq_hctx->plug_loop ||
	    blk_plug_policy_fallback(rq->q) != BLK_PLUG_POLICY_AS_SET)
		return 0;
	/* the plug is full by then anyway */
	if (group >= BLK_MAX_REQUEST_COUNT)
		group = BLK_PLUG_POLICY_SIZE;
	if (decision & BLK_PLUG_LOOP_RANDOM &&
	    !blk_plug_loop_probes(rq->mq_hctx))
		group |= BLK_PLUG_POLICY_RANDOM;
	return group;
}

/* Does @rq complete a group under "adaptive"?  Binds an empty plug. */
static bool blk_plug_policy_adaptive_fills(struct blk_plug *plug,
					   const struct request *rq)
{
	if (!plug->rq_count)
		plug->policy = blk_plug_policy_bind(rq);
	/* while merges are found, a full group waits for more: make_room() */
	return plug->policy & BLK_PLUG_POLICY_RANDOM &&
		plug->rq_count + 1 >= (plug->policy & BLK_PLUG_POLICY_SIZE) &&
		blk_plug_policy_groups(plug, rq);
}

/*
 * Does @rq complete a group?  May bind @plug to its queue.  Not static so that
 * a unit test can call it.
 */
bool blk_plug_policy_fills(struct blk_plug *plug, const struct request *rq)
{
	enum blk_plug_policy_mode mode = blk_plug_policy_get(rq->q);
	unsigned int bytes = blk_rq_bytes(rq);

	if (mode == BLK_PLUG_POLICY_ADAPTIVE)
		return blk_plug_policy_adaptive_fills(plug, rq);
	return blk_plug_policy_groups(plug, rq) &&
		plug->rq_count + 1 >= blk_plug_policy_group_size(mode, bytes,
				blk_plug_policy_sequential(plug, rq));
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_policy_fills);

bool __blk_plug_policy_add(struct blk_plug *plug, struct request *rq)
{
	bool fills = blk_plug_policy_fills(plug, rq);
	unsigned int bytes = blk_rq_bytes(rq);

	rq_list_add_tail(&plug->mq_list, rq);
	plug->rq_count++;
	if (fills)
		blk_plug_policy_flush(plug, bytes);
	return true;
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_policy_add);
