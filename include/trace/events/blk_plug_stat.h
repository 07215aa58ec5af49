/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM blk_plug_stat

#if !defined(_TRACE_BLK_PLUG_STAT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BLK_PLUG_STAT_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

DECLARE_EVENT_CLASS(blk_plug_stat_reason,
		    TP_PROTO(const struct blk_mq_hw_ctx *hctx, unsigned int nr,
			     const char *reason),
		    TP_ARGS(hctx, nr, reason),

		    TP_STRUCT__entry(__field(dev_t,		dev)
				     __field(unsigned int,	hctx)
				     __field(unsigned int,	nr)
				     __string(reason,		reason)
		    ),

		    TP_fast_assign(__entry->dev = hctx->queue->disk ?
					disk_devt(hctx->queue->disk) : 0;
				   __entry->hctx = hctx->queue_num;
				   __entry->nr = nr;
				   __assign_str(reason);
		    ),

		    TP_printk("%d,%d hctx=%u nr=%u reason=%s",
			      MAJOR(__entry->dev), MINOR(__entry->dev),
			      __entry->hctx, __entry->nr, __get_str(reason))
);

/**
 * blk_plug_stat_flush - a plug sends out what it holds for a hardware queue
 * @hctx: the hardware queue
 * @nr: number of requests
 * @reason: why now
 */
DEFINE_EVENT(blk_plug_stat_reason, blk_plug_stat_flush,
	     TP_PROTO(const struct blk_mq_hw_ctx *hctx, unsigned int nr,
		      const char *reason),
	     TP_ARGS(hctx, nr, reason)
);

/**
 * blk_plug_stat_no_batch - a plug's request gets a tag of its own
 * @hctx: the hardware queue
 * @nr: number of tags wanted
 * @reason: why there is no batch
 */
DEFINE_EVENT(blk_plug_stat_reason, blk_plug_stat_no_batch,
	     TP_PROTO(const struct blk_mq_hw_ctx *hctx, unsigned int nr,
		      const char *reason),
	     TP_ARGS(hctx, nr, reason)
);

#endif /* _TRACE_BLK_PLUG_STAT_H */

#include <trace/define_trace.h>
