/* SPDX-License-Identifier: GPL-2.0 */
/* The hardware queues of a request queue that a unit test made up. */
#ifndef BLK_PLUG_HCTXS_H
#define BLK_PLUG_HCTXS_H

#include "../blk-mq.h"

/* Backports to kernels that keep them otherwise define these in blk-mq.h. */
#ifndef blk_plug_test_set_hctxs
static inline int blk_plug_test_set_hctxs(struct request_queue *q,
					  struct blk_mq_hw_ctx **hctxs,
					  unsigned int nr)
{
	q->queue_hw_ctx = hctxs;
	q->nr_hw_queues = nr;
	return 0;
}

static inline void blk_plug_test_free_hctxs(struct request_queue *q)
{
}
#endif

#endif /* BLK_PLUG_HCTXS_H */
