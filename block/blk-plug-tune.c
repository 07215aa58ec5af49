// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy "adaptive": feeds a hardware queue's counters to the
 * controller, and publishes what it decides.
 */
#include <linux/bits.h>
#include <linux/blkdev.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <kunit/visibility.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-tune.h"
#include "blk-plug-policy.h"

#define CREATE_TRACE_POINTS
#include <trace/events/blk_plug_policy.h>

enum {
	/*
	 * A CPU reports its requests each time it has sent out this many.  With
	 * one CPU, a sample of 512 ends at most a quarter late; each further
	 * CPU may hold as many back.
	 */
	STEP		= 128,

	/*
	 * Hardware queues of one disk that compare at the same time would
	 * measure each other's trials.  So let them begin some samples apart.
	 */
	DELAYS		= 8,
	DELAY		= 5,
};

/* A flush in blk_mq_ctx::plug_sent. */
#define FLUSH		BIT_ULL(32)

/*
 * What CPUs have sent out: in the lower half requests, in the upper half
 * flushes.  The lower half wraps once in 4 billion requests; a flush is then
 * counted too many.
 */
static u64 __percpu *blk_plug_tune_counter(const struct blk_mq_hw_ctx *hctx)
{
	return &hctx->queue->queue_ctx->plug_sent[hctx->type];
}

/*
 * Tags that a plug has taken ahead count as well, since they will be used soon.
 * Where hardware queues share one map, this is what all of them have in flight,
 * and the epochs are longer than need be.
 */
static unsigned int blk_plug_tune_in_flight(struct blk_mq_hw_ctx *hctx)
{
	if (hctx->flags & BLK_MQ_F_TAG_QUEUE_SHARED)
		return __blk_mq_active_requests(hctx);
	return sbitmap_weight(&hctx->tags->bitmap_tags.sb);
}

/*
 * The counters are not read at one moment: a flush may show in one and not yet
 * in another.  The rest is then in the next sample, and both are off by that.
 */
static struct blk_plug_adaptive_sample
blk_plug_tune_read(struct blk_mq_hw_ctx *hctx)
{
	struct blk_plug_adaptive_sample total = { .ns = ktime_get_ns() };
	u64 __percpu *counter = blk_plug_tune_counter(hctx);
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
static void blk_plug_tune_publish(struct blk_plug_tune *tune)
{
	const struct blk_plug_adaptive *c = &tune->controller;

	/* all CPUs have it in their caches: write it only if it changes */
	if (tune->group != c->group)
		WRITE_ONCE(tune->group, c->group);
	WRITE_ONCE(tune->next, atomic_read(&tune->summed) + c->epoch);
}

/*
 * Begin anew, from what is counted now.  No CPU may be mapped to it, so it may
 * have no tags.
 */
static void blk_plug_tune_begin(struct blk_mq_hw_ctx *hctx,
				struct blk_plug_tune *tune)
{
	blk_plug_adaptive_init(&tune->controller,
			       hctx->queue_num % DELAYS * DELAY);
	if (tune->pinned)
		tune->controller.group = tune->pinned;
	tune->sample = (struct blk_plug_adaptive_sample){};
	tune->total = blk_plug_tune_read(hctx);
	blk_plug_tune_publish(tune);
}

static void blk_plug_tune_sample(struct blk_mq_hw_ctx *hctx,
				 struct blk_plug_tune *tune)
{
	struct blk_plug_adaptive_sample total = blk_plug_tune_read(hctx);

	/* the counters wrap */
	tune->sample = (struct blk_plug_adaptive_sample){
		.ns = total.ns - tune->total.ns,
		.nr = total.nr - tune->total.nr,
		.flushes = total.flushes - tune->total.flushes,
		.in_flight = blk_plug_tune_in_flight(hctx),
	};
	tune->total = total;
	if (!tune->pinned)
		blk_plug_adaptive_decide(&tune->controller, &tune->sample);
	trace_blk_plug_policy_sample(hctx, tune);
	blk_plug_tune_publish(tune);
}

static bool blk_plug_tune_due(const struct blk_plug_tune *tune, u32 summed)
{
	return (s32)(summed - READ_ONCE(tune->next)) >= 0;
}

/* If the lock is taken, leave the sample to others. */
static void blk_plug_tune_take_sample(struct blk_mq_hw_ctx *hctx,
				      struct blk_plug_tune *tune)
{
	if (!spin_trylock(&tune->lock))
		return;
	/* the previous holder may just have taken it */
	if (blk_plug_tune_due(tune, atomic_read(&tune->summed)))
		blk_plug_tune_sample(hctx, tune);
	spin_unlock(&tune->lock);
}

/* Out of line: registers need not be saved for most flushes. */
static noinline void blk_plug_tune_note(struct blk_mq_hw_ctx *hctx)
{
	struct blk_plug_tune *tune = READ_ONCE(hctx->plug_tune);

	/* the policy may have been off when the plug got its first request */
	if (tune &&
	    blk_plug_tune_due(tune, atomic_add_return(STEP, &tune->summed)))
		blk_plug_tune_take_sample(hctx, tune);
}

void __blk_plug_tune_count_flush(const struct blk_plug *plug)
{
	struct blk_mq_hw_ctx *hctx = plug->mq_list.head->mq_hctx;
	unsigned int nr = plug->rq_count;
	u64 sent;

	sent = this_cpu_add_return(*blk_plug_tune_counter(hctx), FLUSH + nr);
	/* has it passed a multiple?  A plug holds fewer than that. */
	if ((sent & (STEP - 1)) < nr)
		blk_plug_tune_note(hctx);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_tune_count_flush);

/*
 * In the path of an I/O: so no change of the number of hardware queues can come
 * in between, hardware queues without I/O need no memory, and whoever sets the
 * mode needs none of the locks that others only try to take.
 */
struct blk_plug_tune *blk_plug_tune_alloc(struct blk_mq_hw_ctx *hctx)
{
	struct request_queue *q = hctx->queue;
	struct blk_plug_tune *tune, *other;

	if (blk_plug_policy_fallback(q))
		return NULL;
	tune = kzalloc_node(sizeof(*tune), GFP_NOWAIT, hctx->numa_node);
	if (!tune)
		return NULL;
	spin_lock_init(&tune->lock);
	blk_plug_tune_begin(hctx, tune);
	/* others look at it without a lock, and must see all of it */
	other = cmpxchg(&hctx->plug_tune, NULL, tune);
	if (!other)
		return tune;
	kfree(tune);
	return other;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_tune_alloc);

void blk_plug_tune_init_hctx(struct blk_mq_hw_ctx *hctx)
{
	struct blk_plug_tune *tune = READ_ONCE(hctx->plug_tune);

	if (!tune)
		return;
	spin_lock(&tune->lock);
	blk_plug_tune_begin(hctx, tune);
	spin_unlock(&tune->lock);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_tune_init_hctx);

void blk_plug_tune_restart(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	/*
	 * Do not wait for a queue that is frozen: its disk may go, and wait for
	 * whoever writes to its files.  If CPUs are being mapped to hardware
	 * queues, these begin anew by themselves.  Else what was learnt stays,
	 * which is a start like any other.
	 */
	if (!percpu_ref_tryget(&q->q_usage_counter))
		return;
	queue_for_each_hw_ctx(q, hctx, i)
		if (hctx)
			blk_plug_tune_init_hctx(hctx);
	percpu_ref_put(&q->q_usage_counter);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_tune_restart);

void blk_plug_tune_free_hctx(struct blk_mq_hw_ctx *hctx)
{
	kfree(hctx->plug_tune);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_tune_free_hctx);

static void blk_plug_tune_show_locked(struct seq_file *m,
				      const struct blk_plug_tune *tune)
{
	const struct blk_plug_adaptive_sample *s = &tune->sample;
	const struct blk_plug_adaptive *c = &tune->controller;

	seq_printf(m, "group %u\n", tune->group);
	seq_printf(m, "pinned %u\n", !!tune->pinned);
	seq_printf(m, "from %u\n", c->from);
	seq_printf(m, "trial %u\n", c->trial);
	seq_printf(m, "samples_parked %u\n", c->trial ? 0 : c->parked);
	seq_printf(m, "plug_fill %u\n", c->fill);
	seq_printf(m, "epoch %u\n", c->epoch);
	seq_printf(m, "sample_ns %llu\n", s->ns);
	seq_printf(m, "sample_requests %u\n", s->nr);
	seq_printf(m, "sample_flushes %u\n", s->flushes);
	seq_printf(m, "sample_in_flight %u\n", s->in_flight);
}

/* Nothing, for a hardware queue whose plugs have not asked for a group yet. */
int blk_plug_tune_show(void *data, struct seq_file *m)
{
	const struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_tune *tune = READ_ONCE(hctx->plug_tune);

	if (!tune)
		return 0;
	spin_lock(&tune->lock);
	blk_plug_tune_show_locked(m, tune);
	spin_unlock(&tune->lock);
	return 0;
}

/*
 * A number pins the group size, 0 releases it.  This file goes before CPUs are
 * mapped to hardware queues anew, so no reference to the queue is needed.
 */
ssize_t blk_plug_tune_write(void *data, const char __user *buf, size_t count,
			    loff_t *ppos)
{
	struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_tune *tune;
	unsigned int group;
	int ret;

	ret = kstrtouint_from_user(buf, count, 0, &group);
	if (ret)
		return ret;
	if (group > BLK_PLUG_ADAPTIVE_MAX_GROUP)
		return -EINVAL;
	tune = blk_plug_tune_get(hctx);
	if (!tune)
		return blk_plug_policy_fallback(hctx->queue) ? -EOPNOTSUPP :
							       -ENOMEM;
	spin_lock(&tune->lock);
	tune->pinned = group;
	blk_plug_tune_begin(hctx, tune);
	spin_unlock(&tune->lock);
	return count;
}
