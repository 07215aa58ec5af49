/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM blk_plug_policy

#if !defined(_TRACE_BLK_PLUG_POLICY_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BLK_PLUG_POLICY_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

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

#endif /* _TRACE_BLK_PLUG_POLICY_H */

#include <trace/define_trace.h>
