/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What nvme-pci tells about submission: per submission queue, counters of
 * commands and of the doorbell writes that carried them, in debugfs.
 *
 * Nothing is counted until "counting" is switched on; until then the hooks
 * below are patched-out branches.  Without CONFIG_BLK_PLUG_POLICY the structs
 * are empty and the hooks do nothing.
 */
#ifndef _NVME_PLUG_H
#define _NVME_PLUG_H

#include <linux/jump_label.h>
#include <linux/types.h>

struct dentry;
struct device;

/**
 * struct nvme_plug_queue - counters of one submission queue
 * @next:	the controller's queue with the next number
 * @doorbells:	writes to the SQ tail doorbell register
 * @commands:	commands that became visible to the controller
 *
 * The counters only grow, from 0 at the first use of the queue, and survive a
 * controller reset.  Written under the queue's sq_lock, read without it.  Fits
 * the hole behind the submission part of &struct nvme_queue.
 */
struct nvme_plug_queue {
#ifdef CONFIG_BLK_PLUG_POLICY
	struct nvme_plug_queue	*next;
	unsigned long		doorbells;
	unsigned long		commands;
#endif
};

/**
 * struct nvme_plug - a controller's counters
 * @dir:	the controller's directory in debugfs, NULL if there is none
 * @queues:	the queues that were added, from the admin queue on
 */
struct nvme_plug {
#ifdef CONFIG_BLK_PLUG_POLICY
	struct dentry		*dir;
	struct nvme_plug_queue	*queues;
#endif
};

#ifdef CONFIG_BLK_PLUG_POLICY

DECLARE_STATIC_KEY_FALSE(nvme_plug_counting);

/**
 * nvme_plug_init - create the directory that all controllers share
 *
 * Context: Module initialisation.  May sleep.  Without debugfs nothing is
 *	shown, which is no error.
 */
void nvme_plug_init(void);

/**
 * nvme_plug_exit - remove the directory that all controllers share
 *
 * Context: Module exit, no controller is left.  May sleep.
 */
void nvme_plug_exit(void);

/**
 * nvme_plug_add_queue - show the counters of a submission queue
 * @plug: the controller's
 * @device: the controller's device, which names its directory
 * @pq: the queue's counters, in memory that lives until nvme_plug_remove()
 *
 * Add queues in the order of their numbers.  One that was added before stays as
 * it is.
 *
 * Context: Process context, may sleep; one caller at a time per controller.
 */
void nvme_plug_add_queue(struct nvme_plug *plug, struct device *device,
			 struct nvme_plug_queue *pq);

/**
 * nvme_plug_remove - stop showing a controller's counters
 * @plug: the controller's; may be removed already, or have no queue
 *
 * Context: Process context, may sleep.  Waits for readers.
 */
void nvme_plug_remove(struct nvme_plug *plug);

/**
 * nvme_plug_count_doorbell - the SQ tail doorbell was written
 * @pq: the queue's counters
 *
 * Context: Any, under the queue's sq_lock.
 */
static inline void nvme_plug_count_doorbell(struct nvme_plug_queue *pq)
{
	if (static_branch_unlikely(&nvme_plug_counting))
		WRITE_ONCE(pq->doorbells, pq->doorbells + 1);
}

/**
 * nvme_plug_count_commands - the SQ tail was published
 * @pq: the queue's counters
 * @tail: the new tail
 * @last_tail: the tail that the controller was told of before
 * @depth: number of entries in the queue
 *
 * Context: Any, under the queue's sq_lock.
 */
static inline void nvme_plug_count_commands(struct nvme_plug_queue *pq,
					    u32 tail, u32 last_tail, u32 depth)
{
	if (static_branch_unlikely(&nvme_plug_counting)) {
		u32 nr = tail >= last_tail ? tail - last_tail :
			 tail + depth - last_tail;

		WRITE_ONCE(pq->commands, pq->commands + nr);
	}
}

#else /* CONFIG_BLK_PLUG_POLICY */

static inline void nvme_plug_init(void)
{
}

static inline void nvme_plug_exit(void)
{
}

static inline void nvme_plug_add_queue(struct nvme_plug *plug,
				       struct device *device,
				       struct nvme_plug_queue *pq)
{
}

static inline void nvme_plug_remove(struct nvme_plug *plug)
{
}

static inline void nvme_plug_count_doorbell(struct nvme_plug_queue *pq)
{
}

static inline void nvme_plug_count_commands(struct nvme_plug_queue *pq,
					    u32 tail, u32 last_tail, u32 depth)
{
}

#endif /* CONFIG_BLK_PLUG_POLICY */
#endif /* _NVME_PLUG_H */
