// SPDX-License-Identifier: GPL-2.0
/*
 * What is counted, in /sys/kernel/debug/ssd_model/NAME/stats: "name value" per
 * line. Any write sets all to 0 but what is in flight.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>

#include "ssd_model.h"

static struct dentry *ssdm_debugfs;

static unsigned int ssdm_nr_queues(const struct ssd_model_dev *dev)
{
	return dev->nr_irq_queues + dev->nr_poll_queues;
}

/* Adds up all queues, each as it is at one time. Returns the polls. */
static u64 ssdm_sum(struct ssd_model_dev *dev, u64 *sum)
{
	unsigned int i, k;
	u64 polls = 0;

	for (i = 0; i < ssdm_nr_queues(dev); i++) {
		struct ssd_model_queue *q = &dev->queues[i];
		const u64 *one = (const u64 *)&q->stats;

		spin_lock_irq(&q->lock);
		for (k = 0; k < sizeof(q->stats) / sizeof(u64); k++)
			sum[k] += one[k];
		spin_unlock_irq(&q->lock);
		polls += atomic64_read(&q->polls);
	}
	return polls;
}

/* In their order in struct ssd_model_stats */
static const char * const ssdm_names[] = {
	"doorbells", "commands", "reads", "writes", "flushes", "bytes",
	"commit_rqs", "interrupts", "poll_hits", "latency_sum_ns", "inflight",
};

static int ssdm_stats_show(struct seq_file *m, void *unused)
{
	u64 sum[ARRAY_SIZE(ssdm_names)] = {};
	u64 polls = ssdm_sum(m->private, sum);
	unsigned int i;

	BUILD_BUG_ON(sizeof(struct ssd_model_stats) != sizeof(sum));
	for (i = 0; i < ARRAY_SIZE(ssdm_names); i++)
		seq_printf(m, "%s %llu\n", ssdm_names[i], sum[i]);
	seq_printf(m, "polls %llu\n", polls);
	return 0;
}

static void ssdm_reset_queue(struct ssd_model_queue *q)
{
	struct ssd_model_stats *s = &q->stats;

	spin_lock_irq(&q->lock);
	*s = (struct ssd_model_stats){ .inflight = s->inflight };
	atomic64_set(&q->polls, 0);
	spin_unlock_irq(&q->lock);
}

static ssize_t ssdm_stats_write(struct file *file, const char __user *buf,
				size_t count, loff_t *ppos)
{
	struct seq_file *m = file->private_data;
	struct ssd_model_dev *dev = m->private;
	unsigned int i;

	for (i = 0; i < ssdm_nr_queues(dev); i++)
		ssdm_reset_queue(&dev->queues[i]);
	return count;
}

DEFINE_SHOW_STORE_ATTRIBUTE(ssdm_stats);

void ssd_model_stats_create(struct ssd_model_dev *dev)
{
	dev->debugfs = debugfs_create_dir(dev->name, ssdm_debugfs);
	debugfs_create_file("stats", 0600, dev->debugfs, dev,
			    &ssdm_stats_fops);
}

void ssd_model_stats_init(void)
{
	ssdm_debugfs = debugfs_create_dir("ssd_model", NULL);
}

void ssd_model_stats_exit(void)
{
	debugfs_remove(ssdm_debugfs);
}
