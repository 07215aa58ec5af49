/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM blk_plug_stat

#if !defined(_TRACE_BLK_PLUG_STAT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BLK_PLUG_STAT_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

/* A plug that still expects @ios I/Os wanted several tags, and got none. */
TRACE_EVENT(blk_plug_stat_no_batch,
	    TP_PROTO(const struct blk_mq_hw_ctx *hctx, unsigned int ios,
		     const char *reason),
	    TP_ARGS(hctx, ios, reason),

	    TP_STRUCT__entry(__field(dev_t,		dev)
			     __field(unsigned int,	hctx)
			     __field(unsigned int,	ios)
			     __string(reason,		reason)
	    ),

	    TP_fast_assign(__entry->dev = hctx->queue->disk ?
				disk_devt(hctx->queue->disk) : 0;
			   __entry->hctx = hctx->queue_num;
			   __entry->ios = ios;
			   __assign_str(reason);
	    ),

	    TP_printk("%d,%d hctx=%u ios=%u reason=%s",
		      MAJOR(__entry->dev), MINOR(__entry->dev), __entry->hctx,
		      __entry->ios, __get_str(reason))
);

#endif

#include <trace/define_trace.h>
