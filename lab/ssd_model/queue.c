// SPDX-License-Identifier: GPL-2.0
/*
 * Submission and completion, as nvme-pci has them: commands are put into a
 * queue, a doorbell shows them to the device, an interrupt or a poll takes
 * those that are done.
 *
 * Here one lock per queue does for both ways. Nothing but the arithmetic of a
 * whole group is done under it; requests are started before and ended after.
 */
#include <linux/bvec.h>
#include <linux/highmem.h>
#include <linux/ktime.h>

#include "ssd_model.h"

#define SSDM_NEVER	((u64)KTIME_MAX)
/* Not _HARD: on PREEMPT_RT, a spinlock cannot be taken there. */
#define SSDM_TIMER_MODE	HRTIMER_MODE_ABS_PINNED

/* Requests for one queue that were started together */
struct ssdm_group {
	struct rq_list list;		/* the requests */
	unsigned int nr;		/* how many */
	unsigned int ops[SSD_MODEL_OPS];	/* how many of each operation */
	u64 bytes;			/* their length */
};

/* The operation of a request, SSD_MODEL_OPS if the device has no such */
static enum ssd_model_op ssdm_op(const struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return SSD_MODEL_READ;
	case REQ_OP_WRITE:
		return SSD_MODEL_WRITE;
	case REQ_OP_FLUSH:
		return SSD_MODEL_FLUSH;
	default:
		return SSD_MODEL_OPS;
	}
}

static u32 ssdm_bytes(const struct request *rq, enum ssd_model_op op)
{
	return op == SSD_MODEL_FLUSH ? 0 : blk_rq_bytes(rq);
}

/* Makes a request part of a group, unless the device cannot take it. */
static bool ssdm_start(struct ssdm_group *group, struct request *rq)
{
	enum ssd_model_op op = ssdm_op(rq);

	if (unlikely(op == SSD_MODEL_OPS))
		return false;
	blk_mq_start_request(rq);
	group->nr++;
	group->ops[op]++;
	group->bytes += ssdm_bytes(rq, op);
	rq_list_add_tail(&group->list, rq);
	return true;
}

static void ssdm_append(struct rq_list *list, const struct rq_list *more)
{
	if (rq_list_empty(list))
		list->head = more->head;
	else
		list->tail->rq_next = more->head;
	list->tail = more->tail;
}

/* Puts a group into the queue, where the device does not see it yet. */
static void ssdm_queue(struct ssd_model_queue *q,
		       const struct ssdm_group *group)
	__must_hold(&q->lock)
{
	unsigned int op;

	ssdm_append(&q->pending, &group->list);
	q->nr_pending += group->nr;
	for (op = 0; op < SSD_MODEL_OPS; op++)
		q->stats.ops[op] += group->ops[op];
	q->stats.bytes += group->bytes;
}

/*
 * Spends the time of a doorbell, and returns when it is over. The clock is
 * read, as ndelay() rounds up its factor and takes a sixth more on x86.
 */
static u64 ssdm_ring(struct ssd_model_queue *q)
	__must_hold(&q->lock)
{
	u64 now = ktime_get_ns(), end = now + q->dev->doorbell_ns;

	q->stats.doorbells++;
	for (; now < end; now = ktime_get_ns())
		cpu_relax();
	return now;
}

static bool ssdm_less(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct ssd_model_cmd, node)->due <
	       rb_entry(b, struct ssd_model_cmd, node)->due;
}

static void ssdm_admit_one(struct ssd_model_queue *q, struct request *rq,
			   u64 now)
	__must_hold(&q->lock)
{
	struct ssd_model_cmd *cmd = blk_mq_rq_to_pdu(rq);
	struct ssd_model_access access = {
		.op = ssdm_op(rq),
		.seed = q->seed,
		.number = q->number++,
	};

	access.bytes = ssdm_bytes(rq, access.op);
	cmd->due = ssd_model_media_admit(&q->dev->media, &access, now);
	q->stats.latency_sum_ns += cmd->due - now;
	/* What is due at the same time stays in order. */
	rb_add_cached(&cmd->node, &q->tree, ssdm_less);
}

static void ssdm_admit(struct ssd_model_queue *q, u64 now)
	__must_hold(&q->lock)
{
	struct request *rq;

	while ((rq = rq_list_pop(&q->pending)))
		ssdm_admit_one(q, rq, now);
}

static u64 ssdm_due(const struct rb_node *node)
{
	return rb_entry(node, struct ssd_model_cmd, node)->due;
}

/*
 * Sets the timer, if it would fire too late. It may be running on another CPU,
 * waiting for the lock: it will see what is in the queue then.
 */
static void ssdm_arm(struct ssd_model_queue *q, u64 first)
	__must_hold(&q->lock)
{
	/* Pairs with the read in ssdm_poll(). */
	WRITE_ONCE(q->next_due, first);
	if (q->polled || first >= q->fires)
		return;
	q->fires = first;
	hrtimer_start(&q->timer, ns_to_ktime(first), SSDM_TIMER_MODE);
}

static u64 ssdm_first_due(const struct ssd_model_queue *q)
{
	const struct rb_node *node = rb_first_cached(&q->tree);

	return node ? ssdm_due(node) : SSDM_NEVER;
}

/* An instant device: what has been admitted is due. */
static void ssdm_admit_fifo(struct ssd_model_queue *q, u64 now)
	__must_hold(&q->lock)
{
	ssdm_append(&q->ready, &q->pending);
	q->nr_ready += q->nr_pending;
	rq_list_init(&q->pending);
	ssdm_arm(q, min(now, q->next_due));
}

static void ssdm_admit_timed(struct ssd_model_queue *q, u64 now)
	__must_hold(&q->lock)
{
	struct ssd_model_dev *dev = q->dev;

	if (dev->media.shared) {
		/* Another queue's doorbell may have been later. */
		spin_lock(&dev->media_lock);
		ssdm_admit(q, now);
		spin_unlock(&dev->media_lock);
	} else {
		ssdm_admit(q, now);
	}
	ssdm_arm(q, ssdm_first_due(q));
}

/* Shows the device what is pending, of which there must be something. */
static void ssdm_doorbell(struct ssd_model_queue *q)
	__must_hold(&q->lock)
{
	u64 now = ssdm_ring(q);

	q->stats.commands += q->nr_pending;
	q->stats.inflight += q->nr_pending;
	if (q->dev->media.instant)
		ssdm_admit_fifo(q, now);
	else
		ssdm_admit_timed(q, now);
	q->nr_pending = 0;
}

static blk_status_t ssdm_queue_rq(struct blk_mq_hw_ctx *hctx,
				  const struct blk_mq_queue_data *bd)
{
	struct ssd_model_queue *q = hctx->driver_data;
	struct ssdm_group group = {};
	unsigned long flags;

	if (!ssdm_start(&group, bd->rq))
		return BLK_STS_NOTSUPP;
	spin_lock_irqsave(&q->lock, flags);
	ssdm_queue(q, &group);
	if (bd->last)
		ssdm_doorbell(q);
	spin_unlock_irqrestore(&q->lock, flags);
	return BLK_STS_OK;
}

static void ssdm_commit_rqs(struct blk_mq_hw_ctx *hctx)
{
	struct ssd_model_queue *q = hctx->driver_data;
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	q->stats.commit_rqs++;
	if (q->nr_pending)
		ssdm_doorbell(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

static void ssdm_submit(struct ssd_model_queue *q, struct ssdm_group *group)
{
	unsigned long flags;

	if (!group->nr)
		return;
	spin_lock_irqsave(&q->lock, flags);
	ssdm_queue(q, group);
	ssdm_doorbell(q);
	spin_unlock_irqrestore(&q->lock, flags);
	*group = (struct ssdm_group){};
}

static void ssdm_queue_rqs(struct rq_list *list)
{
	struct ssdm_group group = {};
	struct rq_list refused = {};
	struct ssd_model_queue *q = NULL;
	struct request *rq;

	while ((rq = rq_list_pop(list))) {
		if (q != rq->mq_hctx->driver_data)
			ssdm_submit(q, &group);
		q = rq->mq_hctx->driver_data;
		if (!ssdm_start(&group, rq))
			rq_list_add_tail(&refused, rq);
	}
	ssdm_submit(q, &group);
	*list = refused;
}

static unsigned int ssdm_take_fifo(struct ssd_model_queue *q,
				   struct rq_list *done)
	__must_hold(&q->lock)
{
	unsigned int nr = q->nr_ready;

	*done = q->ready;
	rq_list_init(&q->ready);
	q->nr_ready = 0;
	ssdm_arm(q, SSDM_NEVER);
	return nr;
}

static unsigned int ssdm_take_due(struct ssd_model_queue *q, u64 now,
				  struct rq_list *done)
	__must_hold(&q->lock)
{
	struct ssd_model_cmd *cmd;
	struct rb_node *node;
	unsigned int nr = 0;

	while ((node = rb_first_cached(&q->tree))) {
		cmd = rb_entry(node, struct ssd_model_cmd, node);
		if (cmd->due > now)
			break;
		rb_erase_cached(node, &q->tree);
		rq_list_add_tail(done, blk_mq_rq_from_pdu(cmd));
		nr++;
	}
	ssdm_arm(q, ssdm_first_due(q));
	return nr;
}

/* Takes everything that is due from the device, in order of completion. */
static unsigned int ssdm_take(struct ssd_model_queue *q, u64 now,
			      struct rq_list *done)
	__must_hold(&q->lock)
{
	unsigned int nr;

	if (q->dev->media.instant)
		nr = ssdm_take_fifo(q, done);
	else
		nr = ssdm_take_due(q, now, done);
	q->stats.inflight -= nr;
	return nr;
}

/* What a command does: moves the data, from and to where they are stored. */
static void ssdm_move_data(struct request *rq, u8 *data)
{
	struct req_iterator iter;
	struct bio_vec bv;

	if (ssdm_op(rq) == SSD_MODEL_FLUSH)
		return;
	data += blk_rq_pos(rq) << SECTOR_SHIFT;
	rq_for_each_segment(bv, rq, iter) {
		if (rq_data_dir(rq) == WRITE)
			memcpy_from_bvec(data, &bv);
		else
			memcpy_to_bvec(&bv, data);
		data += bv.bv_len;
	}
}

static void ssdm_complete_one(struct request *rq, struct io_comp_batch *iob)
{
	struct ssd_model_ns *ns = rq->q->queuedata;

	if (ns->data)
		ssdm_move_data(rq, ns->data);
	if (!blk_mq_complete_request_remote(rq) &&
	    !blk_mq_add_to_batch(rq, iob, false, blk_mq_end_request_batch))
		blk_mq_end_request(rq, BLK_STS_OK);
}

static void ssdm_complete(struct rq_list *done, struct io_comp_batch *iob)
{
	struct request *rq;

	while ((rq = rq_list_pop(done)))
		ssdm_complete_one(rq, iob);
}

/* The interrupt */
static enum hrtimer_restart ssdm_interrupt(struct hrtimer *timer)
{
	struct ssd_model_queue *q = container_of(timer, struct ssd_model_queue,
						 timer);
	DEFINE_IO_COMP_BATCH(iob);
	struct rq_list done = {};
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	/*
	 * The timer is set anew with hrtimer_start() under the lock, and not by
	 * the return value: a doorbell may have set it since it fired.
	 */
	q->fires = SSDM_NEVER;
	if (ssdm_take(q, ktime_get_ns(), &done))
		q->stats.interrupts++;
	spin_unlock_irqrestore(&q->lock, flags);

	ssdm_complete(&done, &iob);
	if (!rq_list_empty(&iob.req_list))
		blk_mq_end_request_batch(&iob);
	return HRTIMER_NORESTART;
}

static int ssdm_poll(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	struct ssd_model_queue *q = hctx->driver_data;
	u64 due = READ_ONCE(q->next_due), now;
	struct rq_list done = {};
	unsigned long flags;
	unsigned int nr;

	atomic64_inc(&q->polls);
	if (due == SSDM_NEVER)
		return 0;
	now = ktime_get_ns();
	if (due > now)
		return 0;
	spin_lock_irqsave(&q->lock, flags);
	nr = ssdm_take(q, now, &done);
	q->stats.poll_hits += !!nr;
	spin_unlock_irqrestore(&q->lock, flags);

	ssdm_complete(&done, iob);
	return nr;
}

/*
 * The media is slow, or nobody has polled: what is due is completed here then,
 * or a disk could not be removed once its user is gone.
 */
static enum blk_eh_timer_return ssdm_timeout(struct request *rq)
{
	struct blk_mq_hw_ctx *hctx = rq->mq_hctx;

	if (hctx->type == HCTX_TYPE_POLL)
		ssdm_poll(hctx, NULL);
	if (blk_mq_rq_state(rq) != MQ_RQ_IN_FLIGHT)
		return BLK_EH_DONE;
	return BLK_EH_RESET_TIMER;
}

/* After blk_mq_complete_request_remote() has sent it elsewhere */
static void ssdm_complete_rq(struct request *rq)
{
	blk_mq_end_request(rq, BLK_STS_OK);
}

static void ssdm_map_queues(struct blk_mq_tag_set *set)
{
	struct ssd_model_dev *dev = set->driver_data;
	unsigned int nr[HCTX_MAX_TYPES] = {
		[HCTX_TYPE_DEFAULT] = dev->nr_irq_queues,
		[HCTX_TYPE_POLL] = dev->nr_poll_queues,
	};
	unsigned int type, offset = 0;

	for (type = 0; type < set->nr_maps; type++) {
		struct blk_mq_queue_map *map = &set->map[type];

		map->nr_queues = nr[type];
		map->queue_offset = offset;
		offset += nr[type];
		if (nr[type])
			blk_mq_map_queues(map);
	}
}

static int ssdm_init_hctx(struct blk_mq_hw_ctx *hctx, void *data,
			  unsigned int index)
{
	struct ssd_model_dev *dev = data;

	hctx->driver_data = &dev->queues[index];
	return 0;
}

/* What the block layer calls */
const struct blk_mq_ops ssd_model_mq_ops = {
	.queue_rq	= ssdm_queue_rq,
	.queue_rqs	= ssdm_queue_rqs,
	.commit_rqs	= ssdm_commit_rqs,
	.complete	= ssdm_complete_rq,
	.timeout	= ssdm_timeout,
	.poll		= ssdm_poll,
	.map_queues	= ssdm_map_queues,
	.init_hctx	= ssdm_init_hctx,
};

void ssd_model_queue_init(struct ssd_model_dev *dev, unsigned int index,
			  u64 seed)
{
	struct ssd_model_queue *q = &dev->queues[index];

	q->dev = dev;
	spin_lock_init(&q->lock);
	q->tree = RB_ROOT_CACHED;
	q->next_due = SSDM_NEVER;
	q->fires = SSDM_NEVER;
	q->seed = ssd_model_draw(seed, index, 0);
	q->polled = index >= dev->nr_irq_queues;
	hrtimer_setup(&q->timer, ssdm_interrupt, CLOCK_MONOTONIC,
		      SSDM_TIMER_MODE);
}
