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
 * config.c	configfs
 * main.c	devices and their disks
 */
#ifndef SSD_MODEL_H
#define SSD_MODEL_H

#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

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

/* --- media.c ------------------------------------------------------------- */

/* The longest time that may be set, before time_scale: 10 s */
#define SSD_MODEL_NS_MAX	10000000000ULL
#define SSD_MODEL_SCALE_MAX	10000
#define SSD_MODEL_UNITS_MAX	65536
#define SSD_MODEL_POINTS_MAX	16

/**
 * enum ssd_model_op - what a command does
 * @SSD_MODEL_READ: reads
 * @SSD_MODEL_WRITE: writes
 * @SSD_MODEL_FLUSH: flushes the volatile write cache
 * @SSD_MODEL_OPS: number of the above
 */
enum ssd_model_op {
	SSD_MODEL_READ,
	SSD_MODEL_WRITE,
	SSD_MODEL_FLUSH,
	SSD_MODEL_OPS,
};

/**
 * enum ssd_model_draw - the random numbers that a command may draw
 * @SSD_MODEL_DRAW_LATENCY: for its latency
 * @SSD_MODEL_DRAW_SERVICE: for its time in a unit
 * @SSD_MODEL_DRAW_ROTATION: for the angle of the disk
 * @SSD_MODEL_DRAWS: number of the above
 *
 * Each has its own, so that setting one leaves what the others draw alone.
 */
enum ssd_model_draw {
	SSD_MODEL_DRAW_LATENCY,
	SSD_MODEL_DRAW_SERVICE,
	SSD_MODEL_DRAW_ROTATION,
	SSD_MODEL_DRAWS,
};

/**
 * struct ssd_model_point - a point of a quantile function
 * @below: share of the draws that lie below @ns, times 2^32
 * @ns: the time
 */
struct ssd_model_point {
	u64 below;
	u64 ns;
};

/**
 * struct ssd_model_dist - a distribution of times
 * @nr: number of points; with one, each draw is that
 * @points: the quantile function, linear in between
 */
struct ssd_model_dist {
	unsigned int nr;
	struct ssd_model_point points[SSD_MODEL_POINTS_MAX];
};

/**
 * struct ssd_model_profile - the media as configured
 * @latency: of a read, a write, a flush
 * @service: time a command occupies a unit
 * @latency_per_kb_ns: per KiB beyond the first 4
 * @units: number of units, 0 for any number
 * @bandwidth_mbs: of the link, 0 for any
 * @rotational: there is an arm that seeks
 * @seek_min_ns: shortest seek
 * @seek_max_ns: seek over the whole device
 * @rotation_ns: one rotation
 * @sectors: of the whole device
 * @time_scale: percent by which all times are multiplied
 */
struct ssd_model_profile {
	struct ssd_model_dist latency[SSD_MODEL_OPS];
	struct ssd_model_dist service;
	u64 latency_per_kb_ns;
	u32 units;
	u32 bandwidth_mbs;
	bool rotational;
	u64 seek_min_ns;
	u64 seek_max_ns;
	u64 rotation_ns;
	u64 sectors;
	u32 time_scale;
};

/**
 * struct ssd_model_media - the media at work
 * @profile: with all times scaled
 * @instant: every command completes at once
 * @shared: admission changes what follows in here, so calls need a lock
 * @arm: @profile has an arm, and it takes time to move
 * @link_cost: transfer of a byte, in ns times bandwidth_mbs
 * @link_free: time from which the link is free
 * @link_rest: fraction of a ns beyond @link_free, times bandwidth_mbs
 * @arm_free: time from which the arm may move
 * @arm_sector: where the arm is
 * @unit_ns: service time handed out so far
 * @unit_free: times from which the units are free, as a heap: earliest first
 */
struct ssd_model_media {
	struct ssd_model_profile profile;
	bool instant;
	bool shared;
	bool arm;
	u32 link_cost;
	u64 link_free;
	u64 link_rest;
	u64 arm_free;
	u64 arm_sector;
	u64 unit_ns;
	u64 *unit_free;
};

/**
 * struct ssd_model_access - a command as the media sees it
 * @op: what it does
 * @bytes: length
 * @sector: first one, on the whole device
 * @seed: of the stream of draws
 * @number: of the command, in this stream
 */
struct ssd_model_access {
	enum ssd_model_op op;
	u32 bytes;
	u64 sector;
	u64 seed;
	u64 number;
};

u64 ssd_model_draw(u64 seed, u64 number, enum ssd_model_draw which);
int ssd_model_dist_parse(struct ssd_model_dist *dist, const char *text);
u64 ssd_model_dist_sample(const struct ssd_model_dist *dist, u64 draw);
int ssd_model_media_init(struct ssd_model_media *media,
			 const struct ssd_model_profile *profile);
void ssd_model_media_exit(struct ssd_model_media *media);
u64 ssd_model_media_admit(struct ssd_model_media *media,
			  const struct ssd_model_access *access, u64 now);
u64 ssd_model_media_busy(const struct ssd_model_media *media, u64 now);
u64 ssd_model_scale(u64 ns, u32 percent);

/* --- config.c ------------------------------------------------------------ */

/*
 * The attributes of /sys/kernel/config/ssd_model/NAME. They are set while
 * power is 0, and answer EBUSY otherwise. What is out of range is refused with
 * EINVAL, and changes nothing.
 *
 * power		1 makes the disks /dev/NAMEn1 ... there, 0 removes them
 *
 * size_mb		size of each namespace, MiB
 * namespaces		disks; all share the queues and the tags
 * queues		hardware queues that interrupt; at most one per CPU is
 *			made, whatever is set
 * poll_queues		hardware queues that are polled; likewise
 * depth		commands per hardware queue
 * max_kb		largest request, KiB
 * backing		1: keeps the data in memory. It is moved when a command
 *			completes. 0: a read leaves its buffer as it is
 * write_cache		1: says that there is a volatile write cache, and FUA
 * rotational		1: a disk with one arm
 * seed			of all random draws
 * time_scale		percent by which every time below is multiplied when
 *			the power goes on, those of transfers too; 0 for none
 * doorbell_ns		time that a doorbell keeps the CPU
 * shadow_doorbell	1: a doorbell costs nothing while the device still
 *			looks at the queue,
 * shadow_idle_ns	which it does for so long after a submission
 * latency_per_kb_ns	added per KiB beyond the first 4
 * units		commands that the media works on at a time, 0 for any
 *			number. The others wait in order
 * bandwidth_mbs	of the one link, in 10^6 bytes/s, 0 for any. Transfers
 *			are served in order of arrival, while the media works;
 *			the command completes when both are done
 * seek_min_ns		with rotational, what a command costs that does not
 * seek_max_ns		begin where the one before ended: from min to max with
 *			the square root of the distance,
 * rotation_ns		and a random part of this. The arm moves once the
 *			transfer before is done, the transfer starts then
 * irq_count		an interrupt comes when so many commands are due,
 * irq_time_ns		or so long after the first one is due. 0: at once,
 *			whatever irq_count is
 *
 * Distributions of times in ns, up to 10 s:
 *
 * read_latency		of a command from when a unit is done with it to its
 * write_latency	completion; occupies nothing
 * flush_latency	all that a flush takes
 * service		time that a command occupies a unit
 *
 *	fixed:NS	always this
 *	uniform:LO-HI	evenly between
 *	table:P=NS,...	percentiles, both ascending, linear in between. P has
 *			up to 7 decimals; the first is 0, the last is 100
 */

#define SSD_MODEL_DIST_TEXT	256

/**
 * struct ssd_model_dist_attr - a distribution that was set
 * @text: as it was written
 * @dist: what that means
 */
struct ssd_model_dist_attr {
	char text[SSD_MODEL_DIST_TEXT];
	struct ssd_model_dist dist;
};

/* struct ssd_model_config - the attributes above, by their names */
struct ssd_model_config {
	u64 size_mb;
	u64 namespaces;
	u64 queues;
	u64 poll_queues;
	u64 depth;
	u64 max_kb;
	u64 backing;
	u64 write_cache;
	u64 rotational;
	u64 seed;
	u64 time_scale;
	u64 doorbell_ns;
	u64 shadow_doorbell;
	u64 shadow_idle_ns;
	u64 latency_per_kb_ns;
	u64 units;
	u64 bandwidth_mbs;
	u64 seek_min_ns;
	u64 seek_max_ns;
	u64 rotation_ns;
	u64 irq_count;
	u64 irq_time_ns;
	struct ssd_model_dist_attr read_latency;
	struct ssd_model_dist_attr write_latency;
	struct ssd_model_dist_attr flush_latency;
	struct ssd_model_dist_attr service;
};

int ssd_model_config_init(void);
void ssd_model_config_exit(void);

/* --- stats.c ------------------------------------------------------------- */

/* Buckets of commands in flight: 0, 1, 2-3, 4-7, ... 1024 and more */
#define SSD_MODEL_HIST	12

/**
 * struct ssd_model_stats - what one queue counts, under its lock
 * @doorbells: written
 * @shadow_doorbells: left out, since the device was looking
 * @commands: that reached the device
 * @ops: commands by what they do
 * @bytes: of these
 * @queue_rq: calls
 * @queue_rqs: groups handed over by queue_rqs calls
 * @commit_rqs: calls
 * @interrupts: that found something due
 * @poll_hits: polls that did
 * @completion_batches: groups of commands completed together
 * @latency_sum_ns: from the doorbell until due
 * @inflight: commands at the device now
 * @since: time when @inflight changed last
 * @inflight_ns: integral of @inflight
 * @hist: time spent per bucket
 *
 * Shown are the sums over all queues, polled ones, too. So the hist values add
 * up to the elapsed time multiplied by the number of queues: an idle queue
 * spends its time in bucket 0. Their buckets are of one queue's commands, not
 * of the device's. The mean number of commands in flight is the whole device's:
 * the sum of inflight_ns by the time that elapsed, once. A queue is read after
 * the other while commands go on, so that sums may be off by what happened
 * meanwhile.
 */
struct ssd_model_stats {
	u64 doorbells;
	u64 shadow_doorbells;
	u64 commands;
	u64 ops[SSD_MODEL_OPS];
	u64 bytes;
	u64 queue_rq;
	u64 queue_rqs;
	u64 commit_rqs;
	u64 interrupts;
	u64 poll_hits;
	u64 completion_batches;
	u64 latency_sum_ns;
	u64 inflight;
	u64 since;
	u64 inflight_ns;
	u64 hist[SSD_MODEL_HIST];
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
 * @looked: time of the last submission that the device has seen, or 0
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
	u64 looked;
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
 * @sector: where it begins on the device
 * @data: what is stored, or NULL
 */
struct ssd_model_ns {
	struct ssd_model_dev *dev;
	struct gendisk *disk;
	u64 sector;
	u8 *data;
};

/**
 * struct ssd_model_dev - a device whose power is on
 * @name: of its directories
 * @set: tags and queues
 * @media_lock: protects @media if that is shared, @stats_since, @busy_before
 * @media: the model
 * @stats_since: time of the last reset of the statistics
 * @busy_before: what the units had worked until then
 * @fifo: commands complete at once and in order: no tree is needed
 * @doorbell_ns: scaled
 * @shadow_idle_ns: scaled; 0 without shadow doorbells
 * @irq_count: completions that an interrupt waits for
 * @irq_time_ns: scaled; how long it waits for them
 * @nr_irq_queues: queues that interrupt; they come first
 * @nr_poll_queues: queues that are polled
 * @nr_ns: namespaces
 * @ns: the namespaces
 * @debugfs: directory
 * @queues: all hardware queues
 */
struct ssd_model_dev {
	const char *name;
	struct blk_mq_tag_set set;
	spinlock_t media_lock; /* of the media's state */
	struct ssd_model_media media;
	u64 stats_since;
	u64 busy_before;
	bool fifo;
	u64 doorbell_ns;
	u64 shadow_idle_ns;
	unsigned int irq_count;
	u64 irq_time_ns;
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
void ssd_model_stats_inflight(struct ssd_model_stats *stats, u64 now, int more);
void ssd_model_stats_reset(struct ssd_model_dev *dev);
void ssd_model_stats_create(struct ssd_model_dev *dev);
void ssd_model_stats_remove(struct ssd_model_dev *dev);
void ssd_model_stats_init(void);
void ssd_model_stats_exit(void);

#endif /* SSD_MODEL_H */
