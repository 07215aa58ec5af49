/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM blk_plug_policy

#if !defined(_TRACE_BLK_PLUG_POLICY_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_BLK_PLUG_POLICY_H

#include <linux/blk-mq.h>
#include <linux/tracepoint.h>

struct blk_plug_tune;

/**
 * blk_plug_policy_sample - "adaptive" has taken a sample and decided
 * @hctx: hardware queue
 * @tune: its sample, the group size during it, and the decision
 */
TRACE_EVENT(blk_plug_policy_sample,
	    TP_PROTO(const struct blk_mq_hw_ctx *hctx,
		     const struct blk_plug_tune *tune),
	    TP_ARGS(hctx, tune),

	    TP_STRUCT__entry(__field(dev_t,		dev)
			     __field(unsigned int,	hctx)
			     __field(u64,		ns)
			     __field(u32,		nr)
			     __field(u32,		flushes)
			     __field(u32,		in_flight)
			     __field(u8,		group)
			     __field(u8,		from)
			     __field(u8,		trial)
			     __field(u8,		next)
	    ),

	    TP_fast_assign(__entry->dev = hctx->queue->disk ?
				disk_devt(hctx->queue->disk) : 0;
			   __entry->hctx = hctx->queue_num;
			   __entry->ns = tune->sample.ns;
			   __entry->nr = tune->sample.nr;
			   __entry->flushes = tune->sample.flushes;
			   __entry->in_flight = tune->sample.in_flight;
			   __entry->group = tune->group;
			   __entry->from = tune->controller.from;
			   __entry->trial = tune->controller.trial;
			   __entry->next = tune->controller.group;
	    ),

	    TP_printk("%d,%d hctx=%u ns=%llu nr=%u flushes=%u in_flight=%u group=%u best=%u trial=%u next=%u",
		      MAJOR(__entry->dev), MINOR(__entry->dev),
		      __entry->hctx, __entry->ns, __entry->nr,
		      __entry->flushes, __entry->in_flight, __entry->group,
		      __entry->from, __entry->trial, __entry->next)
);

#endif /* _TRACE_BLK_PLUG_POLICY_H */

#include <trace/define_trace.h>
