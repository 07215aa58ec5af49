/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the code of plugs expects of blk-mq and Linux 6.12 does not have, or has
 * under another name.  Later kernels do without this file.
 */
#ifndef BLK_PLUG_COMPAT_H
#define BLK_PLUG_COMPAT_H

#include <linux/blk-mq.h>
#include <linux/sched/mm.h>

/*
 * blk_mq_tag_set::update_nr_hwq_lock, from outside of everything else that
 * blk_mq_update_nr_hw_queues() takes: hardware queues stay as long as it is
 * held for reading.
 */
#if defined(CONFIG_BLK_PLUG_STAT) || defined(CONFIG_BLK_PLUG_POLICY)
static inline void blk_plug_init_tag_set(struct blk_mq_tag_set *set)
{
	init_rwsem(&set->update_nr_hwq_lock);
}

static inline void blk_plug_lock_hctxs(struct blk_mq_tag_set *set)
{
	down_write(&set->update_nr_hwq_lock);
}

static inline void blk_plug_unlock_hctxs(struct blk_mq_tag_set *set)
{
	up_write(&set->update_nr_hwq_lock);
}

static inline void blk_plug_keep_hctxs(struct blk_mq_tag_set *set)
{
	down_read(&set->update_nr_hwq_lock);
}

static inline void blk_plug_release_hctxs(struct blk_mq_tag_set *set)
{
	up_read(&set->update_nr_hwq_lock);
}
#else
static inline void blk_plug_init_tag_set(struct blk_mq_tag_set *set)
{
}

static inline void blk_plug_lock_hctxs(struct blk_mq_tag_set *set)
{
}

static inline void blk_plug_unlock_hctxs(struct blk_mq_tag_set *set)
{
}

static inline void blk_plug_keep_hctxs(struct blk_mq_tag_set *set)
{
}

static inline void blk_plug_release_hctxs(struct blk_mq_tag_set *set)
{
}
#endif

/*
 * Freezing a queue does not begin a noio scope, as it does later.  The Makefile
 * defines this for the files that expect it.
 */
#ifdef BLK_PLUG_COMPAT_FREEZE
static inline unsigned int blk_plug_freeze_queue(struct request_queue *q)
{
	unsigned int memflags = memalloc_noio_save();

	blk_mq_freeze_queue(q);
	return memflags;
}

static inline void blk_plug_unfreeze_queue(struct request_queue *q,
					   unsigned int memflags)
{
	blk_mq_unfreeze_queue(q);
	memalloc_noio_restore(memflags);
}

#define blk_mq_freeze_queue(q)		blk_plug_freeze_queue(q)
#define blk_mq_unfreeze_queue(q, flags)	blk_plug_unfreeze_queue(q, flags)
#endif

/* Namespaces are names, not strings: for unit tests built as modules. */
#ifdef MODULE
#include <linux/module.h>
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)	MODULE_INFO(import_ns, ns)
#endif

/* Hardware queues are in an xarray: for unit tests that make some up. */
static inline int blk_plug_test_set_hctxs(struct request_queue *q,
					  struct blk_mq_hw_ctx **hctxs,
					  unsigned int nr)
{
	unsigned int i;
	int ret = 0;

	if (!q->nr_hw_queues)
		xa_init(&q->hctx_table);
	q->nr_hw_queues = nr;
	for (i = 0; i < nr && !ret; i++)
		ret = xa_err(xa_store(&q->hctx_table, i, hctxs[i],
				      GFP_KERNEL));
	return ret;
}

static inline void blk_plug_test_free_hctxs(struct request_queue *q)
{
	xa_destroy(&q->hctx_table);
}

/* so that tests need not have their own */
#define blk_plug_test_set_hctxs blk_plug_test_set_hctxs

#endif /* BLK_PLUG_COMPAT_H */
