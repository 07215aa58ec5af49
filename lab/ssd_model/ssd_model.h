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

/*
 * What one queue counts, under its lock
 *
 * Shown are the sums over all queues, polled ones, too. A queue is read after
 * the other while commands go on.
 */
struct ssd_model_stats {
	u64 doorbells;			/* written */
	u64 commands;			/* that reached the device */
	u64 ops[SSD_MODEL_OPS];		/* commands by what they do */
	u64 bytes;			/* of these */
	u64 commit_rqs;			/* calls */
	u64 interrupts;			/* that found something due */
	u64 poll_hits;			/* polls that did */
	u64 latency_sum_ns;		/* from the doorbell until due */
	u64 inflight;			/* commands at the device now */
};

/* --- devices ------------------------------------------------------------- */

struct ssd_model_dev;

/* What belongs to a request */
struct ssd_model_cmd {
	struct rb_node node;		/* in the queue's tree */
	u64 due;			/* time of completion */
};

/* A hardware queue, shared by the namespaces */
struct ssd_model_queue {
	struct ssd_model_dev *dev;	/* its device */
	/*
	 * Protects all that follows but polls. Taken in the timer's handler,
	 * too, so with interrupts off. The device's media_lock and the timer's
	 * own nest in it.
	 */
	spinlock_t lock;
	/* commands queued, for which no doorbell has rung */
	struct rq_list pending;
	unsigned int nr_pending;	/* in pending */
	unsigned int nr_ready;		/* in ready */
	/* instead of tree if the device is instant: commands in order */
	struct rq_list ready;
	/* commands that the device has, earliest completion first */
	struct rb_root_cached tree;
	/* time of the earliest; poll reads it without the lock */
	u64 next_due;
	u64 fires;			/* time that timer is set to */
	u64 seed;			/* of the queue's draws */
	u64 number;			/* commands admitted */
	bool polled;			/* nothing completes but by polling */
	struct hrtimer timer;		/* the interrupt */
	struct ssd_model_stats stats;	/* counts */
	/* calls of poll, most of which do without the lock */
	atomic64_t polls;
} ____cacheline_aligned_in_smp;

/* A namespace */
struct ssd_model_ns {
	struct ssd_model_dev *dev;	/* its device */
	struct gendisk *disk;		/* its disk, or NULL */
	u8 *data;			/* what is stored, or NULL */
};

/* A device whose power is on */
struct ssd_model_dev {
	struct list_head list;		/* of all devices */
	/* of its disks, before "n1", for which there is room */
	char name[DISK_NAME_LEN - sizeof("n4294967295") + 1];
	struct blk_mq_tag_set set;	/* tags and queues */
	spinlock_t media_lock;		/* protects media if that is shared */
	/*
	 * the model; if it is instant, commands complete at once and in order,
	 * and no tree is needed
	 */
	struct ssd_model_media media;
	u64 doorbell_ns;		/* scaled */
	/* queues that interrupt; they come first */
	unsigned int nr_irq_queues;
	unsigned int nr_poll_queues;	/* queues that are polled */
	unsigned int nr_ns;		/* namespaces */
	struct ssd_model_ns *ns;	/* the namespaces */
	struct dentry *debugfs;		/* directory */
	struct ssd_model_queue queues[];	/* all hardware queues */
};

/* main.c */
struct ssd_model_dev *ssd_model_dev_create(const char *name,
					   const struct ssd_model_config *c);
void ssd_model_dev_destroy(struct ssd_model_dev *dev);

/* queue.c */
extern const struct blk_mq_ops ssd_model_mq_ops;
void ssd_model_queue_init(struct ssd_model_dev *dev, unsigned int index,
			  u64 seed);

/* stats.c */
void ssd_model_stats_create(struct ssd_model_dev *dev);
void ssd_model_stats_init(void);
void ssd_model_stats_exit(void);

#endif /* SSD_MODEL_H */
