/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM blk_plug_policy

#if !defined(_TRACE_BLK_PLUG_POLICY_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BLK_PLUG_POLICY_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

struct blk_plug_adaptive_sample;

/**
 * blk_plug_policy_mode - a queue's mode was changed
 * @dev: the disk
 * @from: name of the mode until now
 * @to: name of the mode from now on
 */
TRACE_EVENT(blk_plug_policy_mode,
	    TP_PROTO(dev_t dev, const char *from, const char *to),
	    TP_ARGS(dev, from, to),

	    TP_STRUCT__entry(__field(dev_t,	dev)
			     __string(from,	from)
			     __string(to,	to)
	    ),

	    TP_fast_assign(__entry->dev = dev;
			   __assign_str(from);
			   __assign_str(to);
	    ),

	    TP_printk("%d,%d from=%s to=%s",
		      MAJOR(__entry->dev), MINOR(__entry->dev),
		      __get_str(from), __get_str(to))
);

/**
 * blk_plug_policy_group - the policy sends out what a plug holds
 * @rq: the oldest request of the group
 * @nr: number of requests in the group
 */
TRACE_EVENT(blk_plug_policy_group,
	    TP_PROTO(struct request *rq, unsigned int nr),
	    TP_ARGS(rq, nr),

	    TP_STRUCT__entry(__field(dev_t,		dev)
			     __field(unsigned int,	hctx)
			     __field(unsigned int,	nr)
	    ),

	    TP_fast_assign(__entry->dev =
				rq->q->disk ? disk_devt(rq->q->disk) : 0;
			   __entry->hctx = rq->mq_hctx->queue_num;
			   __entry->nr = nr;
	    ),

	    TP_printk("%d,%d hctx=%u nr=%u",
		      MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->hctx, __entry->nr)
);

/**
 * blk_plug_policy_sample - "adaptive" has taken a sample
 * @hctx: hardware queue
 * @s: what it did since the last sample
 */
TRACE_EVENT(blk_plug_policy_sample,
	    TP_PROTO(const struct blk_mq_hw_ctx *hctx,
		     const struct blk_plug_adaptive_sample *s),
	    TP_ARGS(hctx, s),

	    TP_STRUCT__entry(__field(dev_t,		dev)
			     __field(unsigned int,	hctx)
			     __field(u64,		ns)
			     __field(u64,		wait_ns)
			     __field(u32,		nr)
			     __field(u32,		waits)
			     __field(u32,		flushes)
			     __field(u32,		merged)
	    ),

	    TP_fast_assign(__entry->dev = hctx->queue->disk ?
				disk_devt(hctx->queue->disk) : 0;
			   __entry->hctx = hctx->queue_num;
			   __entry->ns = s->ns;
			   __entry->wait_ns = s->wait_ns;
			   __entry->nr = s->nr;
			   __entry->waits = s->waits;
			   __entry->flushes = s->flushes;
			   __entry->merged = s->merged;
	    ),

	    TP_printk("%d,%d hctx=%u ns=%llu nr=%u wait_ns=%llu waits=%u flushes=%u merged=%u",
		      MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->hctx, __entry->ns, __entry->nr,
		      __entry->wait_ns, __entry->waits, __entry->flushes,
		      __entry->merged)
);

/**
 * blk_plug_policy_decide - "adaptive" has changed its decision or state
 * @hctx: hardware queue
 * @from: group size until now
 * @to: group size from now on
 * @state: name of the controller's state from now on
 */
TRACE_EVENT(blk_plug_policy_decide,
	    TP_PROTO(const struct blk_mq_hw_ctx *hctx, unsigned int from,
		     unsigned int to, const char *state),
	    TP_ARGS(hctx, from, to, state),

	    TP_STRUCT__entry(__field(dev_t,		dev)
			     __field(unsigned int,	hctx)
			     __field(unsigned int,	from)
			     __field(unsigned int,	to)
			     __string(state,		state)
	    ),

	    TP_fast_assign(__entry->dev = hctx->queue->disk ?
				disk_devt(hctx->queue->disk) : 0;
			   __entry->hctx = hctx->queue_num;
			   __entry->from = from;
			   __entry->to = to;
			   __assign_str(state);
	    ),

	    TP_printk("%d,%d hctx=%u from=%u to=%u state=%s",
		      MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->hctx, __entry->from, __entry->to,
		      __get_str(state))
);

#endif /* _TRACE_BLK_PLUG_POLICY_H */

#include <trace/define_trace.h>
