// SPDX-License-Identifier: GPL-2.0
/*
 * Response times of a hardware queue's requests, for the policy "adaptive".
 */
#include <linux/blkdev.h>
#include <linux/ktime.h>
#include <kunit/visibility.h>

#include "blk.h"
#include "blk-mq.h"
#include "blk-plug-times.h"

/*
 * Without statistics or an elevator, start_time_ns is set for this alone.  Two
 * kinds of requests may keep the time of an earlier use: passthrough, and those
 * that a plug allocates ahead and frees unused, which never had a segment.
 */
static bool blk_plug_loop_timed(const struct request *rq)
{
	return rq->start_time_ns && rq->nr_phys_segments &&
		!blk_op_is_passthrough(rq->cmd_flags) &&
		(rq->rq_flags & RQF_IO_STAT || !blk_queue_io_stat(rq->q));
}

/*
 * Add a batch, weighted to stand for those that were not picked.  A CPU counts
 * only for the hardware queue that it maps to.  If the interrupts of another
 * one have been moved here, that queue gets no response times, and does as
 * under "always".
 */
static void blk_plug_loop_wait(const struct blk_mq_hw_ctx *hctx,
			       struct blk_plug_loop *loop, u64 ns,
			       unsigned int nr, unsigned int mask)
{
	struct blk_plug_loop_cpu __percpu *cpu = loop->cpu + hctx->type;

	if (this_cpu_read(hctx->queue->queue_ctx->hctxs[hctx->type]) != hctx)
		return;
	this_cpu_add(cpu->wait,
		     (ns * (mask + 1)) >> BLK_PLUG_LOOP_WAIT_SHIFT);
	this_cpu_add(cpu->waits, nr * (mask + 1));
}

/* A mask: one in mask + 1 batches is picked, if each has @nr requests. */
static unsigned int blk_plug_loop_mask(const struct blk_plug_loop *loop,
				       unsigned int nr)
{
	unsigned int mask = 3 >> (fls(nr) - 1);

	if (!READ_ONCE(loop->sparse))
		return mask;
	/* pick more of large batches, or a sample might have none of them */
	return mask ? mask << 3 | 7 : 3;
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
	/* not the plug's cached time, which is that of submission */
	now = ktime_get_ns();
	for (i = 0; i < nr; i++) {
		const struct request *rq = rqs[tags[i]];

		if (blk_plug_loop_timed(rq)) {
			ns += now - rq->start_time_ns;
			waits++;
		}
	}
	blk_plug_loop_wait(hctx, loop, ns, waits, mask);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_loop_completed);

void __blk_plug_loop_freed(struct request *rq)
{
	struct blk_mq_hw_ctx *hctx = rq->mq_hctx;
	struct blk_plug_loop *loop = blk_plug_loop_of(hctx);
	unsigned int mask;

	if (!loop)
		return;
	mask = blk_plug_loop_mask(loop, 1);
	if (blk_plug_loop_picks(rq, mask) && blk_plug_loop_timed(rq))
		blk_plug_loop_wait(hctx, loop,
				   ktime_get_ns() - rq->start_time_ns, 1, mask);
}
EXPORT_SYMBOL_IF_KUNIT(__blk_plug_loop_freed);
