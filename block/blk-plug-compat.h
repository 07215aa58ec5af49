/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the unit tests of plugs expect and Linux 6.12 does not have, or has
 * under another name.  Later kernels do without this file.
 */
#ifndef BLK_PLUG_COMPAT_H
#define BLK_PLUG_COMPAT_H

#include <linux/blk-mq.h>

/* Namespaces are names, not strings: for unit tests built as modules. */
#ifdef MODULE
#include <linux/module.h>
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)	MODULE_INFO(import_ns, ns)
#endif

/* Hardware queues are in an xarray, where the first one needs no memory. */
static inline void blk_plug_test_set_hctxs(struct request_queue *q,
					   struct blk_mq_hw_ctx **hctxs)
{
	xa_init(&q->hctx_table);
	xa_store(&q->hctx_table, 0, hctxs[0], GFP_KERNEL);
}

/* so that tests need not have their own */
#define blk_plug_test_set_hctxs blk_plug_test_set_hctxs

#endif /* BLK_PLUG_COMPAT_H */
