// SPDX-License-Identifier: GPL-2.0
/*
 * The plug policy "adaptive": feeds a hardware queue's counters to the
 * controller, and publishes what it decides.
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

#include <trace/events/blk_plug_policy.h>

enum {
	/*
	 * A CPU reports its I/Os each time it has sent out this many.  With one
	 * CPU, a sample of 512 ends at most a quarter late; each further CPU
	 * may hold as many back.
	 */
	FOLD			= 128,
};

static const char *const state_names[BLK_PLUG_ADAPTIVE_STATES] = {
	[BLK_PLUG_ADAPTIVE_MEASURE]	= "measure",
	[BLK_PLUG_ADAPTIVE_TRY]		= "try",
	[BLK_PLUG_ADAPTIVE_PARKED]	= "parked",
};

/* On while any queue is on "adaptive"; counts these queues. */
DEFINE_STATIC_KEY_FALSE(blk_plug_loop_key);
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_key);

static struct blk_plug_loop *
blk_plug_loop_prepare(struct blk_mq_hw_ctx *hctx, struct blk_plug_loop *loop)
{
	struct request_queue *q = hctx->queue;

	memset(loop, 0, sizeof(*loop));
	spin_lock_init(&loop->lock);
	blk_plug_adaptive_init(&loop->controller, 0);
	loop->decision = BLK_PLUG_ADAPTIVE_MAX_GROUP;
	/* a queue without plugs never takes a sample: spare it the cost */
	loop->sparse = true;
	/* make renew() note where the counters stand */
	loop->resets = READ_ONCE(q->plug_policy_resets) - 1;
	loop->cpu = q->plug_loop_cpu;
	return loop;
}

static int blk_plug_loop_alloc_hctx(struct blk_mq_hw_ctx *hctx)
{
	gfp_t gfp = GFP_NOIO | __GFP_NOWARN | __GFP_NORETRY;
	struct blk_plug_loop *loop;

	if (hctx->plug_loop)
		return 0;
	loop = kmalloc_node(sizeof(*loop), gfp, hctx->numa_node);
	if (!loop)
		return -ENOMEM;
	/* submitters look at it without a lock, and must see all of it */
	smp_store_release(&hctx->plug_loop, blk_plug_loop_prepare(hctx, loop));
	return 0;
}

/* A driver that takes no groups, or may sleep, does as under "always". */
static bool blk_plug_loop_useful(const struct request_queue *q)
{
	return q->mq_ops->queue_rqs &&
		!(q->tag_set->flags & BLK_MQ_F_BLOCKING);
}

int blk_plug_loop_alloc(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	if (!blk_plug_loop_useful(q))
		return 0;
	if (!q->plug_loop_cpu)
		q->plug_loop_cpu = __alloc_percpu_gfp(HCTX_MAX_TYPES *
				sizeof(*q->plug_loop_cpu),
				__alignof__(*q->plug_loop_cpu), GFP_NOIO);
	if (!q->plug_loop_cpu)
		return -ENOMEM;
	queue_for_each_hw_ctx(q, hctx, i)
		if (blk_plug_loop_alloc_hctx(hctx))
			return -ENOMEM;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_alloc);

void blk_plug_loop_free(struct request_queue *q)
{
	free_percpu(q->plug_loop_cpu);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_free);

void blk_plug_loop_init_hctx(struct blk_mq_hw_ctx *hctx)
{
	if (hctx->plug_loop)
		blk_plug_loop_prepare(hctx, hctx->plug_loop);
	else if (hctx->queue->plug_loop_cpu)
		blk_plug_loop_alloc_hctx(hctx);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_init_hctx);

void blk_plug_loop_free_hctx(struct blk_mq_hw_ctx *hctx)
{
	kfree(hctx->plug_loop);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_free_hctx);

/* Let submitters follow the controller, until its next sample is due. */
static void blk_plug_loop_publish(struct blk_plug_loop *loop)
{
	const struct blk_plug_adaptive *c = &loop->controller;
	u8 decision = c->group | (c->merge ? 0 : BLK_PLUG_LOOP_RANDOM);
	bool sparse = c->state == BLK_PLUG_ADAPTIVE_PARKED;

	/* all CPUs have these in their caches: write only what changes */
	if (decision != loop->decision)
		WRITE_ONCE(loop->decision, decision);
	if (sparse != loop->sparse)
		WRITE_ONCE(loop->sparse, sparse);
	WRITE_ONCE(loop->next, atomic_read(&loop->folded) + c->epoch);
}

/*
 * The counters are not read at one moment: a batch may show in one and not yet
 * in another.  The rest is then in the next sample, and both are off by that
 * batch.
 */
static void blk_plug_loop_read(const struct blk_mq_hw_ctx *hctx,
			       const struct blk_plug_loop *loop,
			       struct blk_plug_adaptive_sample *total)
{
	const struct blk_plug_loop_cpu *c;
	unsigned long wait = 0;
	unsigned int i;

	*total = (struct blk_plug_adaptive_sample){ .ns = ktime_get_ns() };
	/* hctx->cpumask leaves out isolated CPUs, which submit as well */
	for (i = 0; i < hctx->nr_ctx; i++) {
		c = per_cpu_ptr(loop->cpu, hctx->ctxs[i]->cpu) + hctx->type;
		wait += READ_ONCE(c->wait);
		total->waits += READ_ONCE(c->waits);
		total->flushes += READ_ONCE(c->flushes);
		total->nr += READ_ONCE(c->sent);
		total->merged += READ_ONCE(c->merged);
	}
	total->wait_ns = wait;
}

/* Counters wrap; so does the time in 256 ns, where a long has 32 bits. */
static void
blk_plug_loop_difference(struct blk_plug_adaptive_sample *d,
			 const struct blk_plug_adaptive_sample *now,
			 const struct blk_plug_adaptive_sample *then)
{
	unsigned long wait = now->wait_ns - then->wait_ns;

	d->ns = now->ns - then->ns;
	d->wait_ns = (u64)wait << BLK_PLUG_LOOP_WAIT_SHIFT;
	d->nr = now->nr - then->nr;
	d->waits = now->waits - then->waits;
	d->flushes = now->flushes - then->flushes;
	d->merged = now->merged - then->merged;
}

/* Forget what was learnt and counted before the last restart. */
static void blk_plug_loop_renew(const struct blk_mq_hw_ctx *hctx,
				struct blk_plug_loop *loop)
{
	unsigned int resets = READ_ONCE(hctx->queue->plug_policy_resets);

	if (loop->resets == resets)
		return;
	blk_plug_adaptive_init(&loop->controller, loop->pinned);
	blk_plug_loop_publish(loop);
	blk_plug_loop_read(hctx, loop, &loop->total);
	loop->sample = (struct blk_plug_adaptive_sample){};
	/* from here on submitters follow the decision */
	WRITE_ONCE(loop->resets, resets);
}

static void blk_plug_loop_judge(const struct blk_mq_hw_ctx *hctx,
				struct blk_plug_loop *loop)
{
	struct blk_plug_adaptive *c = &loop->controller;
	unsigned int group = c->group, state = c->state;

	trace_blk_plug_policy_sample(hctx, &loop->sample);
	if (blk_plug_adaptive_decide(c, &loop->sample) || c->state != state)
		trace_blk_plug_policy_decide(hctx, group, c->group,
					     state_names[c->state]);
}

static void blk_plug_loop_sample(const struct blk_mq_hw_ctx *hctx,
				 struct blk_plug_loop *loop)
{
	struct blk_plug_adaptive_sample total;

	if (loop->resets != READ_ONCE(hctx->queue->plug_policy_resets)) {
		blk_plug_loop_renew(hctx, loop);
	} else {
		blk_plug_loop_read(hctx, loop, &total);
		blk_plug_loop_difference(&loop->sample, &total, &loop->total);
		loop->total = total;
		blk_plug_loop_judge(hctx, loop);
		blk_plug_loop_publish(loop);
	}
}

static bool blk_plug_loop_due(const struct blk_plug_loop *loop, u32 folded)
{
	return (s32)(folded - READ_ONCE(loop->next)) >= 0;
}

/* If the lock is taken, leave the sample to others. */
static void blk_plug_loop_take_sample(const struct blk_mq_hw_ctx *hctx,
				      struct blk_plug_loop *loop)
{
	if (!spin_trylock(&loop->lock))
		return;
	/* the previous holder may just have taken it */
	if (blk_plug_loop_due(loop, atomic_read(&loop->folded)))
		blk_plug_loop_sample(hctx, loop);
	spin_unlock(&loop->lock);
}

/* Let bios look for merges at once: the next sample may be far off. */
static void blk_plug_loop_merges(struct blk_plug_loop *loop)
{
	if (!(READ_ONCE(loop->decision) & BLK_PLUG_LOOP_RANDOM) ||
	    !spin_trylock(&loop->lock))
		return;
	WRITE_ONCE(loop->decision, loop->decision & BLK_PLUG_LOOP_GROUP);
	spin_unlock(&loop->lock);
}

void blk_plug_loop_sent(struct blk_mq_hw_ctx *hctx, unsigned int nr,
			unsigned int merged)
{
	struct blk_plug_loop *loop = blk_plug_loop_of(hctx);
	struct blk_plug_loop_cpu __percpu *cpu;
	u32 sent, before;

	if (!loop)
		return;
	cpu = loop->cpu + hctx->type;
	if (nr)
		this_cpu_inc(cpu->flushes);
	if (merged)
		this_cpu_add(cpu->merged, merged);
	if (merged >= BLK_PLUG_ADAPTIVE_SEQUENTIAL)
		blk_plug_loop_merges(loop);
	sent = this_cpu_add_return(cpu->sent, nr + merged);
	before = sent - nr - merged;
	sent = round_down(sent, FOLD);
	before = round_down(before, FOLD);
	if (sent != before &&
	    blk_plug_loop_due(loop, atomic_add_return(sent - before,
						      &loop->folded)))
		blk_plug_loop_take_sample(hctx, loop);
}
EXPORT_SYMBOL_IF_KUNIT(blk_plug_loop_sent);

static void blk_plug_loop_show_sample(struct seq_file *m,
				      const struct blk_plug_adaptive_sample *s)
{
	seq_printf(m, "sample_ns %llu\n", s->ns);
	seq_printf(m, "sample_ios %u\n", s->nr);
	seq_printf(m, "sample_ns_per_io %llu\n",
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
	struct blk_plug_loop *loop = blk_plug_loop_of(hctx);

	if (!loop) {
		seq_puts(m, "state off\n");
		return 0;
	}
	spin_lock(&loop->lock);
	blk_plug_loop_renew(hctx, loop);
	blk_plug_loop_show_locked(m, loop);
	spin_unlock(&loop->lock);
	return 0;
}

/* A number pins the group size, 0 releases it. */
static void blk_plug_loop_pin(const struct blk_mq_hw_ctx *hctx,
			      struct blk_plug_loop *loop, unsigned int group)
{
	spin_lock(&loop->lock);
	blk_plug_loop_renew(hctx, loop);
	blk_plug_adaptive_init(&loop->controller, group);
	WRITE_ONCE(loop->pinned, group);
	blk_plug_loop_publish(loop);
	spin_unlock(&loop->lock);
}

ssize_t blk_plug_loop_write(void *data, const char __user *buf, size_t count,
			    loff_t *ppos)
{
	struct blk_mq_hw_ctx *hctx = data;
	struct blk_plug_loop *loop = READ_ONCE(hctx->plug_loop);
	unsigned int group;
	int ret;

	ret = kstrtouint_from_user(buf, count, 0, &group);
	if (ret)
		return ret;
	if (group > BLK_PLUG_ADAPTIVE_MAX_GROUP)
		return -EINVAL;
	/* never on "adaptive" so far, or it can do nothing for this queue */
	if (!loop)
		return -EOPNOTSUPP;
	blk_plug_loop_pin(hctx, loop, group);
	return count;
}
