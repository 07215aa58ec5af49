// SPDX-License-Identifier: GPL-2.0
/*
 * Devices and their disks, from power on to power off
 */
#include <linux/blkdev.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "ssd_model.h"

/* As nvme-pci: room for so many segments, no matter where they begin */
#define SSDM_SEGMENTS	128

static const struct block_device_operations ssdm_fops = {
	.owner	= THIS_MODULE,
};

static struct queue_limits ssdm_limits(const struct ssd_model_config *c)
{
	struct queue_limits lim = {
		.logical_block_size	= SECTOR_SIZE,
		.max_hw_sectors		= c->max_kb * 2,
		.max_segments		= SSDM_SEGMENTS,
		.max_segment_size	= UINT_MAX,
		.dma_alignment		= 3,
	};

	if (c->write_cache)
		lim.features |= BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	return lim;
}

static int ssdm_add_disk(struct ssd_model_dev *dev, unsigned int index,
			 const struct ssd_model_config *c)
{
	struct queue_limits lim = ssdm_limits(c);
	struct ssd_model_ns *ns = &dev->ns[index];
	struct gendisk *disk;
	int err;

	ns->dev = dev;
	if (c->backing) {
		ns->data = vzalloc(c->size_mb << 20);
		if (!ns->data)
			return -ENOMEM;
	}
	disk = blk_mq_alloc_disk(&dev->set, &lim, ns);
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	snprintf(disk->disk_name, sizeof(disk->disk_name), "%sn%u", dev->name,
		 index + 1);
	disk->fops = &ssdm_fops;
	set_capacity(disk, c->size_mb << (20 - SECTOR_SHIFT));
	err = add_disk(disk);
	if (err)
		put_disk(disk);
	else
		ns->disk = disk;
	return err;
}

/*
 * del_gendisk() waits for commands in flight, which the queues complete. All
 * disks must be gone before their data are: a poll of one completes commands
 * of another.
 */
static void ssdm_del_disks(struct ssd_model_dev *dev)
{
	unsigned int i;

	for (i = 0; i < dev->nr_ns; i++) {
		if (dev->ns[i].disk)
			del_gendisk(dev->ns[i].disk);
	}
	for (i = 0; i < dev->nr_ns; i++) {
		if (dev->ns[i].disk)
			put_disk(dev->ns[i].disk);
	}
}

static int ssdm_alloc_tags(struct ssd_model_dev *dev,
			   const struct ssd_model_config *c)
{
	struct blk_mq_tag_set *set = &dev->set;

	set->ops = &ssd_model_mq_ops;
	set->driver_data = dev;
	set->nr_hw_queues = dev->nr_irq_queues + dev->nr_poll_queues;
	set->nr_maps = dev->nr_poll_queues ? HCTX_MAX_TYPES : 1;
	set->queue_depth = c->depth;
	set->numa_node = NUMA_NO_NODE;
	set->cmd_size = sizeof(struct ssd_model_cmd);
	set->flags = SSD_MODEL_TAG_FLAGS;
	return blk_mq_alloc_tag_set(set);
}

static struct ssd_model_dev *ssdm_alloc(const char *name,
					const struct ssd_model_config *c)
{
	unsigned int nr_irq = min(c->queues, nr_cpu_ids);
	unsigned int nr_poll = min(c->poll_queues, nr_cpu_ids);
	struct ssd_model_dev *dev;

	dev = kvzalloc(struct_size(dev, queues, nr_irq + nr_poll), GFP_KERNEL);
	if (!dev)
		return NULL;
	strscpy(dev->name, name);
	dev->nr_irq_queues = nr_irq;
	dev->nr_poll_queues = nr_poll;
	dev->nr_ns = c->namespaces;
	spin_lock_init(&dev->media_lock);
	dev->ns = kcalloc(dev->nr_ns, sizeof(*dev->ns), GFP_KERNEL);
	if (!dev->ns) {
		kvfree(dev);
		return NULL;
	}
	return dev;
}

static void ssdm_free(struct ssd_model_dev *dev)
{
	unsigned int i;

	/* They have no commands any more, but may not be at rest. */
	for (i = 0; i < dev->nr_irq_queues + dev->nr_poll_queues; i++)
		hrtimer_cancel(&dev->queues[i].timer);
	ssd_model_media_exit(&dev->media);
	for (i = 0; i < dev->nr_ns; i++)
		vfree(dev->ns[i].data);
	kfree(dev->ns);
	kvfree(dev);
}

/* Power on; returns the device or an ERR_PTR(). */
struct ssd_model_dev *ssd_model_dev_create(const char *name,
					   const struct ssd_model_config *c)
{
	struct ssd_model_dev *dev = ssdm_alloc(name, c);
	unsigned int i;
	int err;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < dev->nr_irq_queues + dev->nr_poll_queues; i++)
		ssd_model_queue_init(dev, i, c->seed);
	dev->doorbell_ns = ssd_model_scale(c->doorbell_ns, c->media.time_scale);
	err = ssd_model_media_init(&dev->media, &c->media);
	if (err)
		goto free;
	err = ssdm_alloc_tags(dev, c);
	if (err)
		goto free;
	for (i = 0; i < dev->nr_ns && !err; i++)
		err = ssdm_add_disk(dev, i, c);
	if (err)
		goto del;
	ssd_model_stats_create(dev);
	return dev;

del:
	ssdm_del_disks(dev);
	blk_mq_free_tag_set(&dev->set);
free:
	ssdm_free(dev);
	return ERR_PTR(err);
}

/* Power off; commands in flight complete first. */
void ssd_model_dev_destroy(struct ssd_model_dev *dev)
{
	debugfs_remove(dev->debugfs);
	ssdm_del_disks(dev);
	blk_mq_free_tag_set(&dev->set);
	ssdm_free(dev);
}
