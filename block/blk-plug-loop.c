// SPDX-License-Identifier: GPL-2.0
/*
 * From a hardware queue's counters to the controller of "adaptive", and back.
 */
#include <linux/blkdev.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <kunit/visibility.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-loop.h"
#include "blk-plug-policy.h"

#include <trace/events/blk_plug_policy.h>

static const char *const state_names[BLK_PLUG_ADAPTIVE_STATES] = {
	[BLK_PLUG_ADAPTIVE_MEASURE]	= "measure",
	[BLK_PLUG_ADAPTIVE_TRY]		= "try",
	[BLK_PLUG_ADAPTIVE_PARKED]	= "parked",
};

/* On while any queue is on "adaptive": its count is the number of these. */
DEFINE_STATIC_KEY_FALSE(blk_plug_loop_key);
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_key);

void blk_plug_loop_init_hctx(struct blk_mq_hw_ctx *hctx)
{
	gfp_t gfp = GFP_NOIO | __GFP_NOWARN | __GFP_NORETRY | __GFP_ZERO;
	struct blk_plug_loop *loop = hctx->plug_loop;

	if (!loop)
		loop = kmalloc_node(sizeof(*loop), gfp, hctx->numa_node);
	else
		memset(loop, 0, sizeof(*loop));
	hctx->plug_loop = loop;
	if (!loop)
		return;
	spin_lock_init(&loop->lock);
	blk_plug_adaptive_init(&loop->controller);
	loop->decision = BLK_PLUG_ADAPTIVE_MAX_GROUP;
	loop->resets = READ_ONCE(hctx->queue->plug_policy_resets);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_init_hctx);

void blk_plug_loop_free_hctx(struct blk_mq_hw_ctx *hctx)
{
	kfree(hctx->plug_loop);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_free_hctx);

/* The loop of a hardware queue whose policy is "adaptive". */
static struct blk_plug_loop *blk_plug_loop_of(const struct blk_mq_hw_ctx *hctx)
{
	return blk_plug_policy_get(hctx->queue) == BLK_PLUG_POLICY_ADAPTIVE ?
		hctx->plug_loop : NULL;
}

static void blk_plug_loop_publish(struct blk_plug_loop *loop)
{
	const struct blk_plug_adaptive *c = &loop->controller;
	unsigned int decision = loop->pinned ?: c->group;

	if (!c->merge)
		decision |= BLK_PLUG_LOOP_RANDOM;
	if (c->first && !loop->pinned)
		decision |= BLK_PLUG_LOOP_FIRST;
	if (c->pair || loop->pinned == 1)
		decision |= BLK_PLUG_LOOP_PAIR;
	/* submitters have it in their caches: leave it there */
	if (decision != loop->decision)
		WRITE_ONCE(loop->decision, decision);
}

/*
 * The counters are not read at one moment: a batch may be in one and not yet in
 * another.  Then it is in the next sample, and both are off by that batch.
 */
static void blk_plug_loop_read(struct blk_plug_loop *loop,
			       struct blk_plug_adaptive_sample *total)
{
	total->waits = atomic_read(&loop->waits);
	total->wait_ns = atomic64_read(&loop->wait_ns);
	total->flushes = atomic_read(&loop->flushes);
	total->nr = atomic_read(&loop->flushed);
	total->merged = atomic_read(&loop->merged);
	total->ns = ktime_get_ns();
}

static void
blk_plug_loop_difference(struct blk_plug_adaptive_sample *d,
			 const struct blk_plug_adaptive_sample *now,
			 const struct blk_plug_adaptive_sample *then)
{
	d->ns = now->ns - then->ns;
	d->wait_ns = now->wait_ns - then->wait_ns;
	d->nr = now->nr - then->nr;
	d->waits = now->waits - then->waits;
	d->flushes = now->flushes - then->flushes;
	d->merged = now->merged - then->merged;
}

/* Forget what was learnt before the last restart. */
static void blk_plug_loop_renew(const struct blk_mq_hw_ctx *hctx,
				struct blk_plug_loop *loop)
{
	unsigned int resets = READ_ONCE(hctx->queue->plug_policy_resets);

	if (loop->resets == resets)
		return;
	blk_plug_adaptive_init(&loop->controller);
	blk_plug_loop_publish(loop);
	/* from here on the decision counts */
	WRITE_ONCE(loop->resets, resets);
}

static void blk_plug_loop_decide(const struct blk_mq_hw_ctx *hctx,
				 struct blk_plug_loop *loop)
{
	struct blk_plug_adaptive *c = &loop->controller;
	unsigned int group, state;

	blk_plug_loop_renew(hctx, loop);
	group = c->group;
	state = c->state;
	trace_blk_plug_policy_sample(hctx, &loop->sample);
	if (loop->pinned)
		blk_plug_adaptive_init(c);
	else if (blk_plug_adaptive_decide(c, &loop->sample) ||
		 c->state != state)
		trace_blk_plug_policy_decide(hctx, group, c->group,
					     state_names[c->state]);
}

static void blk_plug_loop_sample(const struct blk_mq_hw_ctx *hctx,
				 struct blk_plug_loop *loop)
{
	struct blk_plug_adaptive_sample total;

	blk_plug_loop_read(loop, &total);
	blk_plug_loop_difference(&loop->sample, &total, &loop->total);
	loop->total = total;
	blk_plug_loop_decide(hctx, loop);
	blk_plug_loop_publish(loop);
	WRITE_ONCE(loop->sparse, loop->controller.state ==
		   BLK_PLUG_ADAPTIVE_PARKED);
	WRITE_ONCE(loop->next, total.nr + loop->controller.epoch);
}

static bool blk_plug_loop_due(const struct blk_plug_loop *loop, u32 flushed)
{
	return (s32)(flushed - READ_ONCE(loop->next)) >= 0;
}

/* Who finds the lock taken leaves the sample to others. */
static void blk_plug_loop_take_sample(const struct blk_mq_hw_ctx *hctx,
				      struct blk_plug_loop *loop)
{
	if (!spin_trylock(&loop->lock))
		return;
	/* the holder before may have just taken it */
	if (blk_plug_loop_due(loop, atomic_read(&loop->flushed)))
		blk_plug_loop_sample(hctx, loop);
	spin_unlock(&loop->lock);
}

void __blk_plug_loop_flush(const struct request *newest, unsigned int nr)
{
	struct blk_plug_loop *loop = blk_plug_loop_of(newest->mq_hctx);

	if (!loop)
		return;
	atomic_inc(&loop->flushes);
	if (newest->bio != newest->biotail)
		atomic_inc(&loop->merged);
	if (blk_plug_loop_due(loop, atomic_add_return(nr, &loop->flushed)))
		blk_plug_loop_take_sample(newest->mq_hctx, loop);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_loop_flush);

/* Without statistics start_time_ns is set for the sake of this alone. */
static bool blk_plug_loop_timed(const struct request *rq)
{
	return rq->rq_flags & RQF_IO_STAT ||
		(!blk_queue_io_stat(rq->q) && rq->start_time_ns);
}

/* One batch stands for all those that were not picked. */
static void blk_plug_loop_wait(struct blk_plug_loop *loop, u64 ns,
			       unsigned int nr, unsigned int mask)
{
	atomic64_add(ns * (mask + 1), &loop->wait_ns);
	atomic_add(nr * (mask + 1), &loop->waits);
}

/* One in so many batches, less one, of which each has @nr requests. */
static unsigned int blk_plug_loop_mask(const struct blk_plug_loop *loop,
				       unsigned int nr)
{
	unsigned int mask = 3 >> (fls(nr) - 1);

	return READ_ONCE(loop->sparse) ? mask << 3 | 7 : mask;
}

void __blk_plug_loop_completed(struct blk_mq_hw_ctx *hctx, const int *tags,
			       int nr)
{
	struct blk_plug_loop *loop = blk_plug_loop_of(hctx);
	struct request **rqs = hctx->tags->rqs;
	unsigned int mask;
	u64 now, ns = 0;
	int i, waits = 0;

	if (!loop)
		return;
	mask = blk_plug_loop_mask(loop, nr);
	if (!blk_plug_loop_picks(rqs[tags[0]], mask))
		return;
	/* not the plug's cached time, which would be the submission's */
	now = ktime_get_ns();
	for (i = 0; i < nr; i++) {
		const struct request *rq = rqs[tags[i]];

		if (blk_plug_loop_timed(rq)) {
			ns += now - rq->start_time_ns;
			waits++;
		}
	}
	blk_plug_loop_wait(loop, ns, waits, mask);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_loop_completed);

void __blk_plug_loop_freed(struct request *rq)
{
	struct blk_plug_loop *loop = blk_plug_loop_of(rq->mq_hctx);
	unsigned int mask;

	if (!loop)
		return;
	mask = blk_plug_loop_mask(loop, 1);
	if (blk_plug_loop_picks(rq, mask) && blk_plug_loop_timed(rq))
		blk_plug_loop_wait(loop, ktime_get_ns() - rq->start_time_ns, 1,
				   mask);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_loop_freed);

static void blk_plug_loop_show_sample(struct seq_file *m,
				      const struct blk_plug_adaptive_sample *s)
{
	seq_printf(m, "sample_ns %llu\n", s->ns);
	seq_printf(m, "sample_requests %u\n", s->nr);
	seq_printf(m, "sample_ns_per_request %llu\n",
		   s->nr ? div_u64(s->ns, s->nr) : 0);
	seq_printf(m, "sample_response_ns %llu\n",
		   s->waits ? div_u64(s->wait_ns, s->waits) : 0);
	seq_printf(m, "sample_flushes %u\n", s->flushes);
	seq_printf(m, "sample_merged %u\n", s->merged);
}

static void blk_plug_loop_show_locked(struct seq_file *m,
				      const struct blk_plug_loop *loop)
{
	const struct blk_plug_adaptive *c = &loop->controller;

	seq_printf(m, "group %u\n", loop->decision & BLK_PLUG_LOOP_GROUP);
	seq_printf(m, "pinned %u\n", loop->pinned);
	seq_printf(m, "first_at_once %u\n",
		   !!(loop->decision & BLK_PLUG_LOOP_FIRST));
	seq_printf(m, "lookup %u\n",
		   !(loop->decision & BLK_PLUG_LOOP_RANDOM));
	seq_printf(m, "state %s\n", state_names[c->state]);
	seq_printf(m, "from %u\n", c->from);
	seq_printf(m, "samples_parked %u\n", c->parked);
	seq_printf(m, "plug_fill %u\n", c->fill);
	seq_printf(m, "in_flight %u\n", c->in_flight);
	seq_printf(m, "epoch %u\n", c->epoch);
	blk_plug_loop_show_sample(m, &loop->sample);
}

int blk_plug_loop_show(void *data, struct seq_file *m)
{
	const struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_loop *loop = hctx->plug_loop;

	if (!loop)
		return 0;
	spin_lock(&loop->lock);
	blk_plug_loop_renew(hctx, loop);
	blk_plug_loop_show_locked(m, loop);
	spin_unlock(&loop->lock);
	return 0;
}

/* A number pins the group size, 0 releases it. */
ssize_t blk_plug_loop_write(void *data, const char __user *buf, size_t count,
			    loff_t *ppos)
{
	struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_loop *loop = hctx->plug_loop;
	unsigned int group;
	int ret;

	ret = kstrtouint_from_user(buf, count, 0, &group);
	if (ret)
		return ret;
	if (group > BLK_PLUG_ADAPTIVE_MAX_GROUP)
		return -EINVAL;
	if (!loop)
		return -ENOMEM;
	spin_lock(&loop->lock);
	blk_plug_loop_renew(hctx, loop);
	blk_plug_adaptive_init(&loop->controller);
	WRITE_ONCE(loop->pinned, group);
	blk_plug_loop_publish(loop);
	WRITE_ONCE(loop->sparse, false);
	spin_unlock(&loop->lock);
	return count;
}
