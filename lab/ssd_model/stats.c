// SPDX-License-Identifier: GPL-2.0
/*
 * What is counted, in /sys/kernel/debug/ssd_model/NAME/stats: "name value" per
 * line. Any write sets all to 0 but what is in flight.
 *
 * inflight_hist_N is the time that a queue had N commands (up to the next N) at
 * the device. With several queues, their times are added up.
 */
#include <linux/bitops.h>
#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "ssd_model.h"

static struct dentry *ssdm_debugfs;

/**
 * ssd_model_stats_inflight - the number of commands in flight changes
 * @stats: a queue's, whose lock is held
 * @now: time in ns
 * @more: by how many
 */
void ssd_model_stats_inflight(struct ssd_model_stats *stats, u64 now, int more)
{
	unsigned int bucket = min(fls64(stats->inflight), SSD_MODEL_HIST - 1);

	/* A poll reads the clock before it has the lock. */
	if (now > stats->since) {
		stats->inflight_ns += stats->inflight * (now - stats->since);
		stats->hist[bucket] += now - stats->since;
		stats->since = now;
	}
	stats->inflight += more;
}

static unsigned int ssdm_nr_queues(const struct ssd_model_dev *dev)
{
	return dev->nr_irq_queues + dev->nr_poll_queues;
}

static void ssdm_add(struct ssd_model_stats *sum,
		     const struct ssd_model_stats *one)
{
	u64 *to = (u64 *)sum;
	const u64 *from = (const u64 *)one;
	size_t i;

	BUILD_BUG_ON(sizeof(*sum) % sizeof(u64));
	for (i = 0; i < sizeof(*sum) / sizeof(u64); i++)
		to[i] += from[i];
}

/* Adds up all queues, each as it is at one time. Returns the polls. */
static u64 ssdm_sum(struct ssd_model_dev *dev, struct ssd_model_stats *sum)
{
	unsigned int i;
	u64 polls = 0;

	for (i = 0; i < ssdm_nr_queues(dev); i++) {
		struct ssd_model_queue *q = &dev->queues[i];

		spin_lock_irq(&q->lock);
		ssd_model_stats_inflight(&q->stats, ktime_get_ns(), 0);
		ssdm_add(sum, &q->stats);
		spin_unlock_irq(&q->lock);
		polls += atomic64_read(&q->polls);
	}
	return polls;
}

static void ssdm_show(struct seq_file *m, const char *name, u64 value)
{
	seq_printf(m, "%s %llu\n", name, value);
}

static void ssdm_show_counts(struct seq_file *m,
			     const struct ssd_model_stats *s, u64 polls)
{
	ssdm_show(m, "doorbells", s->doorbells);
	ssdm_show(m, "shadow_doorbells", s->shadow_doorbells);
	ssdm_show(m, "commands", s->commands);
	ssdm_show(m, "reads", s->ops[SSD_MODEL_READ]);
	ssdm_show(m, "writes", s->ops[SSD_MODEL_WRITE]);
	ssdm_show(m, "flushes", s->ops[SSD_MODEL_FLUSH]);
	ssdm_show(m, "bytes", s->bytes);
	ssdm_show(m, "queue_rq", s->queue_rq);
	ssdm_show(m, "queue_rqs", s->queue_rqs);
	ssdm_show(m, "commit_rqs", s->commit_rqs);
	ssdm_show(m, "interrupts", s->interrupts);
	ssdm_show(m, "polls", polls);
	ssdm_show(m, "poll_hits", s->poll_hits);
	ssdm_show(m, "completion_batches", s->completion_batches);
}

static void ssdm_show_inflight(struct seq_file *m,
			       const struct ssd_model_stats *s, u64 elapsed)
{
	ssdm_show(m, "inflight", s->inflight);
	ssdm_show(m, "inflight_mean_milli",
		  mul_u64_u64_div_u64(s->inflight_ns, 1000, max(elapsed, 1)));
	ssdm_show(m, "latency_sum_ns", s->latency_sum_ns);
}

static void ssdm_show_hist(struct seq_file *m, const struct ssd_model_stats *s)
{
	unsigned int i;

	for (i = 0; i < SSD_MODEL_HIST; i++)
		seq_printf(m, "inflight_hist_%u %llu\n", i ? 1 << (i - 1) : 0,
			   s->hist[i]);
}

static int ssdm_stats_show(struct seq_file *m, void *unused)
{
	struct ssd_model_dev *dev = m->private;
	struct ssd_model_stats sum = {};
	u64 polls, now, elapsed, busy, units = dev->media.profile.units;

	polls = ssdm_sum(dev, &sum);
	spin_lock_irq(&dev->media_lock);
	now = ktime_get_ns();
	elapsed = now - dev->stats_since;
	busy = ssd_model_media_busy(&dev->media, now) - dev->busy_before;
	spin_unlock_irq(&dev->media_lock);

	ssdm_show(m, "elapsed_ns", elapsed);
	ssdm_show_counts(m, &sum, polls);
	ssdm_show_inflight(m, &sum, elapsed);
	ssdm_show(m, "units", units);
	ssdm_show(m, "unit_busy_ns", busy);
	ssdm_show(m, "unit_idle_ns", units * elapsed - busy);
	ssdm_show_hist(m, &sum);
	return 0;
}

static void ssdm_reset_queue(struct ssd_model_queue *q)
{
	struct ssd_model_stats *s = &q->stats;

	spin_lock_irq(&q->lock);
	*s = (struct ssd_model_stats){
		.inflight = s->inflight,
		.since = ktime_get_ns(),
	};
	atomic64_set(&q->polls, 0);
	spin_unlock_irq(&q->lock);
}

/**
 * ssd_model_stats_reset - count from now on
 * @dev: the device
 */
void ssd_model_stats_reset(struct ssd_model_dev *dev)
{
	unsigned int i;

	for (i = 0; i < ssdm_nr_queues(dev); i++)
		ssdm_reset_queue(&dev->queues[i]);
	spin_lock_irq(&dev->media_lock);
	dev->stats_since = ktime_get_ns();
	dev->busy_before = ssd_model_media_busy(&dev->media, dev->stats_since);
	spin_unlock_irq(&dev->media_lock);
}

static ssize_t ssdm_stats_write(struct file *file, const char __user *buf,
				size_t count, loff_t *ppos)
{
	struct seq_file *m = file->private_data;

	ssd_model_stats_reset(m->private);
	return count;
}

DEFINE_SHOW_STORE_ATTRIBUTE(ssdm_stats);

/**
 * ssd_model_stats_create - show a device's statistics
 * @dev: the device
 */
void ssd_model_stats_create(struct ssd_model_dev *dev)
{
	dev->debugfs = debugfs_create_dir(dev->name, ssdm_debugfs);
	debugfs_create_file("stats", 0600, dev->debugfs, dev,
			    &ssdm_stats_fops);
}

/**
 * ssd_model_stats_remove - no longer show them
 * @dev: the device
 */
void ssd_model_stats_remove(struct ssd_model_dev *dev)
{
	debugfs_remove(dev->debugfs);
}

/**
 * ssd_model_stats_init - make the directory for all devices
 */
void ssd_model_stats_init(void)
{
	ssdm_debugfs = debugfs_create_dir("ssd_model", NULL);
}

/**
 * ssd_model_stats_exit - remove it
 */
void ssd_model_stats_exit(void)
{
	debugfs_remove(ssdm_debugfs);
}
