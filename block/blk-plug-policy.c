// SPDX-License-Identifier: GPL-2.0
/*
 * Plug policy: how many requests a plug holds, chosen per queue.
 *
 * Whatever the mode, a plug takes tags and reads the clock for many I/Os at
 * once, and a bio may join the newest request that the plug holds.
 *
 * - always: requests are held until there are 32 (64 from several queues), the
 *   newest is 128 KiB large, or the plug ends.
 * - never: the request of each bio is issued as it comes; so no bio finds one
 *   to join.  Passthrough requests are held as under "always".
 * - seq-small: as under "always", small requests that continue each other.  All
 *   others leave in groups of at most 8 requests and 128 KiB, if all are as
 *   large as the first.
 * - adaptive: requests, large ones as well, leave in groups of the size that
 *   blk-plug-adaptive.c has found for their hardware queue.
 *
 * A full group waits for a bio that has joined none of its requests, and leaves
 * then.  So no merge that "always" makes is lost, whatever the size.
 *
 * Some queues do as under "always" in every mode: an elevator merges and sorts
 * what the plug has held; a ->queue_rq() that may sleep would stall the
 * submission more often; a driver without ->queue_rqs() takes no groups.  So
 * does a plug that holds requests of several hardware queues: one's group would
 * push out what another wants to merge.  ("never" does as ever, unless the plug
 * holds requests of several request queues.)
 *
 * The group is chosen at the plug's first request, not in blk_start_plug(),
 * since that does not know what queue the I/O is for.
 */
#include <linux/blkdev.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <trace/events/block.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-adaptive.h"
#include "blk-plug-policy.h"

enum {
	/* of "seq-small": chosen by a model, not measured on a device */
	GROUP		= 8,
	/* merging two of these fills a hold */
	SMALL_BYTES	= BLK_PLUG_FLUSH_SIZE / 2,
	/* a CPU reports its requests each time it has sent out this many */
	STEP		= 128,
	/* samples apart, not to measure the trials of other hardware queues */
	DELAYS		= 8,
	DELAY		= 5,
	PIN_AS_IT_IS	= U8_MAX,
};

/*
 * blk_mq_ctx::plug_sent has requests in its lower half, flushes in the upper.
 * The lower wraps once in 4 billion; a flush is then counted too many.
 */
#define FLUSH		BIT_ULL(32)

/*
 * What "adaptive" knows of a hardware queue.  Submitters read @group and @next
 * without the lock; @group in a line that is written only if it changes.
 */
struct blk_plug_tune {
	u8 group;	/* requests that plugs send out at a time */
	u8 pinned;	/* the same, set by hand; 0: not */

	/* what CPUs have sent, added up in steps */
	atomic_t summed ____cacheline_aligned_in_smp;
	u32 next;	/* value of summed at which the next sample is due */
	spinlock_t lock;
	/* the counters and the time when the last sample ended */
	struct blk_plug_adaptive_sample total;
	struct blk_plug_adaptive_sample sample;		/* the last one */
	struct blk_plug_adaptive controller;
};

/* Why a queue does as under "always" in any mode, in one word; or NULL. */
static const char *blk_plug_policy_fallback(const struct request_queue *q)
{
	if (READ_ONCE(q->elevator))
		return "elevator";
	if (q->tag_set->flags & BLK_MQ_F_BLOCKING)
		return "blocking-driver";
	if (!q->mq_ops->queue_rqs)
		return "no-queue_rqs";
	return NULL;
}

static u8 blk_plug_policy_seq_small_group(const struct request *rq)
{
	enum req_op op = req_op(rq);

	/* a discard's size, say, tells nothing of the work that it makes */
	if ((op != REQ_OP_READ && op != REQ_OP_WRITE &&
	     op != REQ_OP_ZONE_APPEND && !blk_op_is_passthrough(op)) ||
	    blk_plug_policy_fallback(rq->q))
		return BLK_PLUG_POLICY_NO_GROUP;
	return clamp(BLK_PLUG_FLUSH_SIZE / max(blk_rq_bytes(rq), 1u), 1, GROUP);
}

void __blk_plug_policy_first_rq(struct blk_plug *plug, struct request *rq)
{
	const struct blk_plug_tune *tune = rq->mq_hctx->plug_tune;
	unsigned int group;

	if (blk_plug_policy_get(rq->q) == BLK_PLUG_POLICY_SEQ_SMALL) {
		plug->policy.group = blk_plug_policy_seq_small_group(rq);
		return;
	}
	if (!tune || READ_ONCE(rq->q->elevator))
		return;
	plug->policy.counts = !plug->policy.mixed;
	group = READ_ONCE(tune->group);
	/* the plug is full by then anyway */
	if (group < BLK_MAX_REQUEST_COUNT)
		plug->policy.group = group;
}

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

/* Drop the cached clock reading once in 32 requests, or behind a large one. */
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

	/* The requests are gone when this returns: do not touch them then. */
	blk_mq_flush_plug_list(plug, false);
	blk_plug_policy_sent(plug, nr, bytes);
}

void __blk_plug_policy_flush_group(struct blk_plug *plug,
				   const struct request *rq)
{
	if (blk_plug_policy_get(rq->q) != BLK_PLUG_POLICY_SEQ_SMALL ||
	    !blk_plug_policy_sequential(plug->mq_list.tail, rq))
		blk_plug_policy_flush(plug);
}

bool __blk_plug_policy_issue_now(struct blk_plug *plug, struct request *rq)
{
	if (blk_rq_is_passthrough(rq) || blk_plug_policy_fallback(rq->q))
		return false;
	if (plug->rq_count) {
		/* may hold older requests of this queue: do not overtake */
		if (plug->multiple_queues)
			return false;
		/* passthrough, or from before the mode was set: send it out */
		if (plug->mq_list.tail->q == rq->q)
			blk_plug_policy_flush(plug);
	}
	blk_plug_policy_sent(plug, 1, blk_rq_bytes(rq));
	return true;
}

static u64 __percpu *plug_tune_counter(const struct blk_mq_hw_ctx *hctx)
{
	return &hctx->queue->queue_ctx->plug_sent[hctx->type];
}

/*
 * Tags that a plug has taken ahead count as well.  Where hardware queues share
 * one map, so does what the others have: the epochs are longer than need be.
 */
static unsigned int plug_tune_in_flight(struct blk_mq_hw_ctx *hctx)
{
	if (hctx->flags & BLK_MQ_F_TAG_QUEUE_SHARED)
		return __blk_mq_active_requests(hctx);
	return sbitmap_weight(&hctx->tags->bitmap_tags.sb);
}

/* Not at one moment: a flush may show in part, the rest in the next sample. */
static struct blk_plug_adaptive_sample
plug_tune_read(struct blk_mq_hw_ctx *hctx)
{
	struct blk_plug_adaptive_sample total = { .ns = ktime_get_ns() };
	u64 __percpu *counter = plug_tune_counter(hctx);
	unsigned int i;

	/* hctx->cpumask leaves out isolated CPUs, which submit as well */
	for (i = 0; i < hctx->nr_ctx; i++) {
		u64 sent = READ_ONCE(*per_cpu_ptr(counter, hctx->ctxs[i]->cpu));

		total.nr += sent;
		total.flushes += sent / FLUSH;
	}
	return total;
}

/* Let submitters follow the controller, until its next sample is due. */
static void plug_tune_publish(struct blk_plug_tune *tune)
{
	const struct blk_plug_adaptive *c = &tune->controller;

	if (tune->group != c->group)
		WRITE_ONCE(tune->group, c->group);
	WRITE_ONCE(tune->next, atomic_read(&tune->summed) + c->epoch);
}

/* Begin anew, from what is counted now.  hctx->tags may be NULL. */
static void plug_tune_begin(struct blk_mq_hw_ctx *hctx,
			    struct blk_plug_tune *tune)
{
	blk_plug_adaptive_init(&tune->controller,
			       hctx->queue_num % DELAYS * DELAY);
	if (tune->pinned)
		tune->controller.group = tune->pinned;
	tune->sample = (struct blk_plug_adaptive_sample){};
	tune->total = plug_tune_read(hctx);
	plug_tune_publish(tune);
}

static void plug_tune_sample(struct blk_mq_hw_ctx *hctx,
			     struct blk_plug_tune *tune)
{
	struct blk_plug_adaptive_sample total = plug_tune_read(hctx);

	/* the counters wrap */
	tune->sample = (struct blk_plug_adaptive_sample){
		.ns = total.ns - tune->total.ns,
		.nr = total.nr - tune->total.nr,
		.flushes = total.flushes - tune->total.flushes,
		.in_flight = plug_tune_in_flight(hctx),
	};
	tune->total = total;
	if (!tune->pinned)
		blk_plug_adaptive_decide(&tune->controller, &tune->sample);
	trace_block_plug_sample(hctx, &tune->sample, tune->group,
				&tune->controller);
	plug_tune_publish(tune);
}

static bool plug_tune_due(const struct blk_plug_tune *tune, u32 summed)
{
	return (s32)(summed - READ_ONCE(tune->next)) >= 0;
}

/* Out of line: registers need not be saved for most flushes. */
static noinline void plug_tune_note(struct blk_mq_hw_ctx *hctx)
{
	struct blk_plug_tune *tune = hctx->plug_tune;

	/* the policy may have been off when the plug got its first request */
	if (!tune || !plug_tune_due(tune, atomic_add_return(STEP,
							    &tune->summed)))
		return;
	/* If the lock is taken, leave the sample to others. */
	if (!spin_trylock(&tune->lock))
		return;
	/* the previous holder may just have taken it */
	if (plug_tune_due(tune, atomic_read(&tune->summed)))
		plug_tune_sample(hctx, tune);
	spin_unlock(&tune->lock);
}

void __blk_plug_policy_count_flush(const struct blk_plug *plug)
{
	struct blk_mq_hw_ctx *hctx = plug->mq_list.head->mq_hctx;
	unsigned int nr = plug->rq_count;
	u64 sent;

	sent = this_cpu_add_return(*plug_tune_counter(hctx), FLUSH + nr);
	/* has it passed a multiple?  A plug holds fewer than that. */
	if ((sent & (STEP - 1)) < nr)
		plug_tune_note(hctx);
}

/* If there is no memory, the hardware queue does as under "always". */
void blk_plug_policy_alloc_hctx(struct blk_mq_hw_ctx *hctx, gfp_t gfp)
{
	struct blk_plug_tune *tune;

	if (!hctx->queue->mq_ops->queue_rqs || hctx->flags & BLK_MQ_F_BLOCKING)
		return;
	tune = kzalloc_node(sizeof(*tune), gfp, hctx->numa_node);
	if (!tune)
		return;
	spin_lock_init(&tune->lock);
	plug_tune_begin(hctx, tune);
	hctx->plug_tune = tune;
}

/* Begin anew, with @pin from now on: a group size, 0, or PIN_AS_IT_IS. */
static void plug_tune_anew(struct blk_mq_hw_ctx *hctx, unsigned int pin)
{
	struct blk_plug_tune *tune = hctx->plug_tune;

	if (!tune)
		return;
	spin_lock(&tune->lock);
	if (pin != PIN_AS_IT_IS)
		tune->pinned = pin;
	plug_tune_begin(hctx, tune);
	spin_unlock(&tune->lock);
}

/* It may have been another hardware queue before: nothing of that is kept. */
void blk_plug_policy_map_hctx(struct blk_mq_hw_ctx *hctx)
{
	plug_tune_anew(hctx, 0);
}

/*
 * If the queue is frozen, keep the old state.  Do not wait: its disk may be
 * about to go, which waits for whoever writes to its files.
 */
static void plug_tune_restart(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	if (!percpu_ref_tryget(&q->q_usage_counter))
		return;
	queue_for_each_hw_ctx(q, hctx, i)
		if (hctx)
			plug_tune_anew(hctx, PIN_AS_IT_IS);
	percpu_ref_put(&q->q_usage_counter);
}

static const char *const mode_names[BLK_PLUG_POLICY_NR] = {
	[BLK_PLUG_POLICY_ALWAYS]	= "always",
	[BLK_PLUG_POLICY_NEVER]		= "never",
	[BLK_PLUG_POLICY_SEQ_SMALL]	= "seq-small",
	[BLK_PLUG_POLICY_ADAPTIVE]	= "adaptive",
};

/*
 * Its count is in step with the queues' modes, by the lock.  No queue is frozen
 * when it is changed, but one that is being removed; see blk_plug_stat_key.
 */
DEFINE_STATIC_KEY_FALSE(blk_plug_policy_key);
static DEFINE_MUTEX(blk_plug_policy_lock);

/*
 * Takes effect when a plug next gets its first request, "never" at once.  Takes
 * cpus_read_lock(): the queue must not be frozen.
 */
static void blk_plug_policy_set(struct request_queue *q,
				enum blk_plug_policy_mode mode)
{
	enum blk_plug_policy_mode old;

	mutex_lock(&blk_plug_policy_lock);
	old = blk_plug_policy_get(q);
	if (mode == BLK_PLUG_POLICY_ADAPTIVE && old != mode)
		plug_tune_restart(q);
	/* submitters look at it without a lock: any mode may follow another */
	WRITE_ONCE(q->plug_policy, mode);
	if (!old && mode)
		static_branch_inc(&blk_plug_policy_key);
	else if (old && !mode)
		static_branch_dec(&blk_plug_policy_key);
	mutex_unlock(&blk_plug_policy_lock);
}

void blk_plug_policy_register(struct request_queue *q)
{
	if (IS_ENABLED(CONFIG_BLK_PLUG_POLICY_DEFAULT_ADAPTIVE) &&
	    queue_is_mq(q) && q->mq_ops->queue_rqs)
		blk_plug_policy_set(q, BLK_PLUG_POLICY_ADAPTIVE);
}

void blk_plug_policy_unregister(struct request_queue *q)
{
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

int blk_plug_adaptive_show(void *data, struct seq_file *m)
{
	const struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_tune *tune = hctx->plug_tune;
	struct blk_plug_adaptive_sample s;
	struct blk_plug_adaptive c;
	bool pinned;

	if (!tune)
		return 0;
	spin_lock(&tune->lock);
	s = tune->sample;
	c = tune->controller;
	pinned = tune->pinned;
	spin_unlock(&tune->lock);
	seq_printf(m, "group %u\npinned %u\n", c.group, pinned);
	seq_printf(m, "from %u\ntrial %u\n", c.from, c.trial);
	seq_printf(m, "samples_parked %u\n", c.trial ? 0 : c.parked);
	seq_printf(m, "plug_fill %u\nepoch %u\n", c.fill, c.epoch);
	seq_printf(m, "sample_ns %llu\nsample_requests %u\n", s.ns, s.nr);
	seq_printf(m, "sample_flushes %u\nsample_in_flight %u\n", s.flushes,
		   s.in_flight);
	return 0;
}

/*
 * A number pins the group size, 0 releases it.  This file goes before CPUs are
 * mapped to hardware queues anew, so no reference to the queue is needed.
 */
ssize_t blk_plug_adaptive_write(void *data, const char __user *buf,
				size_t count, loff_t *ppos)
{
	struct blk_mq_hw_ctx *hctx = data;
	unsigned int group;
	int ret;

	ret = kstrtouint_from_user(buf, count, 0, &group);
	if (ret)
		return ret;
	if (group > BLK_PLUG_ADAPTIVE_MAX_GROUP)
		return -EINVAL;
	if (!hctx->plug_tune || blk_plug_policy_fallback(hctx->queue))
		return -EOPNOTSUPP;
	plug_tune_anew(hctx, group);
	return count;
}

#ifdef CONFIG_BLK_PLUG_POLICY_KUNIT_TEST
#include "tests/blk_plug_policy_kunit.c"
#endif
