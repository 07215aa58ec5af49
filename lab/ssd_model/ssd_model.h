/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ssd_model: a blk-mq device that models an SSD
 *
 * It takes commands as nvme-pci does, a doorbell for each group of them, and
 * completes each at a time that the model of the media computes when the
 * doorbell rings. Nothing is looked up or moved but what the model needs, so
 * that the CPU time of an I/O is the block layer's.
 *
 * media.c	when a command completes: arithmetic only, no clock, no locks
 * queue.c	the blk-mq operations, doorbells, completion
 * stats.c	what is counted, and debugfs
 * config.c	devices by name; words.h, media_words.h: what they can be
 * main.c	devices and their disks
 */
#ifndef SSD_MODEL_H
#define SSD_MODEL_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "media.h"

/* --- Linux 6.12 ---------------------------------------------------------- */

#ifdef SSD_MODEL_LINUX_6_12
#include <linux/module.h>

/* namespaces are names there, not strings */
#undef EXPORT_SYMBOL_NS_GPL
#define EXPORT_SYMBOL_NS_GPL(sym, ns)	__EXPORT_SYMBOL(sym, "GPL", ns)
#undef MODULE_IMPORT_NS
#define MODULE_IMPORT_NS(ns)		MODULE_INFO(import_ns, ns)

static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *),
	      clockid_t clock_id, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
}

/* or requests that wait for a busy device do not merge */
#define SSD_MODEL_TAG_FLAGS	BLK_MQ_F_SHOULD_MERGE
#else
#define SSD_MODEL_TAG_FLAGS	0
#endif

/* --- config.c ------------------------------------------------------------ */

/* What words.h says, by these names, and the media */
struct ssd_model_config {
#define NUMBER(name, ...)	u64 name
#include "words.h"
	struct ssd_model_profile media;
};

/* --- stats.c ------------------------------------------------------------- */

/**
 * struct ssd_model_stats - what one queue counts, under its lock
 * @doorbells: written
 * @commands: that reached the device
 * @ops: commands by what they do
 * @bytes: of these
 * @commit_rqs: calls
 * @interrupts: that found something due
 * @poll_hits: polls that did
 * @latency_sum_ns: from the doorbell until due
 * @inflight: commands at the device now
 *
 * Shown are the sums over all queues, polled ones, too. A queue is read after
 * the other while commands go on.
 */
struct ssd_model_stats {
	u64 doorbells;
	u64 commands;
	u64 ops[SSD_MODEL_OPS];
	u64 bytes;
	u64 commit_rqs;
	u64 interrupts;
	u64 poll_hits;
	u64 latency_sum_ns;
	u64 inflight;
};

/* --- devices ------------------------------------------------------------- */

struct ssd_model_dev;

/**
 * struct ssd_model_cmd - what belongs to a request
 * @node: in the queue's tree
 * @due: time of completion
 */
struct ssd_model_cmd {
	struct rb_node node;
	u64 due;
};

/**
 * struct ssd_model_queue - a hardware queue, shared by the namespaces
 * @dev: its device
 * @lock: protects all that follows. Taken in the timer's handler, too, so with
 *	interrupts off. The device's media_lock and the timer's own nest in it
 * @pending: commands queued, for which no doorbell has rung
 * @nr_pending: how many
 * @ready: instead of @tree if the device is instant: commands in order
 * @nr_ready: how many
 * @tree: commands that the device has, earliest completion first
 * @next_due: time of the earliest; poll reads it without the lock
 * @fires: time that @timer is set to
 * @seed: of the queue's draws
 * @number: commands admitted
 * @polled: nothing completes but by polling
 * @timer: the interrupt
 * @stats: counts
 * @polls: calls of poll, most of which do without the lock
 */
struct ssd_model_queue {
	struct ssd_model_dev *dev;
	spinlock_t lock; /* of all that follows but @polls */
	struct rq_list pending;
	unsigned int nr_pending;
	unsigned int nr_ready;
	struct rq_list ready;
	struct rb_root_cached tree;
	u64 next_due;
	u64 fires;
	u64 seed;
	u64 number;
	bool polled;
	struct hrtimer timer;
	struct ssd_model_stats stats;
	atomic64_t polls;
} ____cacheline_aligned_in_smp;

/**
 * struct ssd_model_ns - a namespace
 * @dev: its device
 * @disk: its disk, or NULL
 * @data: what is stored, or NULL
 */
struct ssd_model_ns {
	struct ssd_model_dev *dev;
	struct gendisk *disk;
	u8 *data;
};

/**
 * struct ssd_model_dev - a device whose power is on
 * @list: of all devices
 * @name: of its disks, before "n1"
 * @set: tags and queues
 * @media_lock: protects @media if that is shared
 * @media: the model; if it is instant, commands complete at once and in order,
 *	and no tree is needed
 * @doorbell_ns: scaled
 * @nr_irq_queues: queues that interrupt; they come first
 * @nr_poll_queues: queues that are polled
 * @nr_ns: namespaces
 * @ns: the namespaces
 * @debugfs: directory
 * @queues: all hardware queues
 */
struct ssd_model_dev {
	struct list_head list;
	char name[DISK_NAME_LEN];
	struct blk_mq_tag_set set;
	spinlock_t media_lock; /* of the media's state */
	struct ssd_model_media media;
	u64 doorbell_ns;
	unsigned int nr_irq_queues;
	unsigned int nr_poll_queues;
	unsigned int nr_ns;
	struct ssd_model_ns *ns;
	struct dentry *debugfs;
	struct ssd_model_queue queues[];
};

/* main.c */
struct ssd_model_dev *ssd_model_dev_create(const char *name,
					   const struct ssd_model_config *c);
void ssd_model_dev_destroy(struct ssd_model_dev *dev);

/* queue.c */
extern const struct blk_mq_ops ssd_model_mq_ops;
void ssd_model_queue_init(struct ssd_model_dev *dev, unsigned int index,
			  u64 seed);
void ssd_model_queue_exit(struct ssd_model_queue *q);

/* stats.c */
void ssd_model_stats_create(struct ssd_model_dev *dev);
void ssd_model_stats_remove(struct ssd_model_dev *dev);
void ssd_model_stats_init(void);
void ssd_model_stats_exit(void);

#endif /* SSD_MODEL_H */
