// SPDX-License-Identifier: GPL-2.0
/*
 * The part of the benchmark "lines" that is in the guest's kernel.
 *
 * What lies where, so that a cache line can be given a name:
 * /sys/kernel/debug/lines_map, once a disk's path has been written to it, has
 *
 *	object TYPE ADDRESS BYTES	of its queue; TYPE as pahole has it
 *	percpu OFFSET			of a CPU's variables from their symbols
 *	slab CACHE ADDRESS BYTES SIZE	objects of SIZE in so many bytes
 *
 * A known cost, for the benchmark's own test: the parameter probe=1 takes an
 * atomic of all CPUs for each bio that is submitted, probe=2 one of this CPU's,
 * on a line of its own, and probe=0 neither.
 */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/io_uring_types.h>
#include <linux/part_stat.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/pfn.h>
#include <linux/seq_file.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>

#include "blk-mq.h"
#include "slab.h"

static struct dentry *map_file;
static char map_path[64];

/* Whose fields pahole is asked for, besides what is used below. */
static struct {
	struct bio bio;
	struct io_kiocb kiocb;
	struct io_ring_ctx ctx;
} *map_types __used;

static void show(struct seq_file *m, const char *type, const void *at,
		 size_t size)
{
	if (at)
		seq_printf(m, "object %s %lx %zu\n", type, (unsigned long)at,
			   size);
}

static void show_bitmap(struct seq_file *m, const struct sbitmap_queue *sbq)
{
	show(m, "sbitmap_word", sbq->sb.map,
	     sbq->sb.map_nr * sizeof(*sbq->sb.map));
	show(m, "sbq_wait_state", sbq->ws, SBQ_WAIT_QUEUES * sizeof(*sbq->ws));
}

static void show_tags(struct seq_file *m, const struct blk_mq_tags *tags,
		      size_t rq_size)
{
	unsigned int i;

	if (!tags)
		return;
	show(m, "blk_mq_tags", tags, sizeof(*tags));
	show_bitmap(m, &tags->bitmap_tags);
	show(m, "tags->rqs", tags->rqs, tags->nr_tags * sizeof(*tags->rqs));
	show(m, "tags->static_rqs", tags->static_rqs,
	     tags->nr_tags * sizeof(*tags->static_rqs));
	for (i = 0; i < tags->nr_tags; i++)
		show(m, "request", tags->static_rqs[i], rq_size);
}

static void show_hctx(struct seq_file *m, const struct blk_mq_hw_ctx *hctx,
		      size_t rq_size)
{
	show(m, "blk_mq_hw_ctx", hctx, sizeof(*hctx));
#ifdef CONFIG_BLK_PLUG_POLICY
	if (hctx->plug_loop)
		show(m, "blk_plug_loop", hctx->plug_loop,
		     ksize(hctx->plug_loop));
#endif
	show_bitmap(m, &hctx->tags->bitmap_tags);
	show_tags(m, hctx->tags, rq_size);
	show_tags(m, hctx->sched_tags, rq_size);
}

static void show_queue(struct seq_file *m, struct request_queue *q)
{
	size_t rq_size = ALIGN(sizeof(struct request) + q->tag_set->cmd_size,
			       cache_line_size());
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;
	int cpu;

	show(m, "request_queue", q, sizeof(*q));
	show(m, "blk_mq_tag_set", q->tag_set, sizeof(*q->tag_set));
	show(m, "gendisk", q->disk, sizeof(*q->disk));
	show(m, "block_device", q->disk->part0, sizeof(*q->disk->part0));
	for_each_possible_cpu(cpu) {
		seq_printf(m, "percpu %lx\n", per_cpu_offset(cpu));
		show(m, "blk_mq_ctx", per_cpu_ptr(q->queue_ctx, cpu),
		     sizeof(struct blk_mq_ctx));
		show(m, "disk_stats", per_cpu_ptr(q->disk->part0->bd_stats,
						  cpu),
		     sizeof(struct disk_stats));
	}
	queue_for_each_hw_ctx(q, hctx, i)
		show_hctx(m, hctx, rq_size);
}

static void show_slabs(struct seq_file *m)
{
	unsigned long pfn, last = PHYS_PFN(__pa(high_memory));

	for (pfn = 0; pfn < last; pfn++) {
		struct page *page = pfn_to_online_page(pfn);
		/* in Linux 6.12, page_slab() is but a cast */
		struct slab *slab = page && PageSlab(page) ?
			page_slab(page) : NULL;

		if (!slab)
			continue;
		seq_printf(m, "slab %s %lx %zu %u\n", slab->slab_cache->name,
			   (unsigned long)slab_address(slab), slab_size(slab),
			   slab->slab_cache->size);
		pfn += (slab_size(slab) >> PAGE_SHIFT) - 1;
	}
}

static int map_show(struct seq_file *m, void *unused)
{
	struct file *file;

	if (!map_path[0])
		return -ENODEV;
	file = bdev_file_open_by_path(map_path, BLK_OPEN_READ, NULL, NULL);
	if (IS_ERR(file))
		return PTR_ERR(file);
	show_queue(m, bdev_get_queue(file_bdev(file)));
	bdev_fput(file);
	show_slabs(m);
	return 0;
}

static int map_open(struct inode *inode, struct file *file)
{
	return single_open_size(file, map_show, NULL, 4 << 20);
}

static ssize_t map_write(struct file *file, const char __user *buf,
			 size_t count, loff_t *pos)
{
	char *path = memdup_user_nul(buf, min(count, sizeof(map_path) - 1));

	if (IS_ERR(path))
		return PTR_ERR(path);
	strscpy(map_path, strim(path));
	kfree(path);
	return count;
}

static const struct file_operations map_fops = {
	.owner = THIS_MODULE,
	.open = map_open,
	.read = seq_read,
	.write = map_write,
	.release = single_release,
};

static int probe;
module_param(probe, int, 0644);
MODULE_PARM_DESC(probe, "atomics per bio: 0 none, 1 shared, 2 of each CPU");

/* Nothing else is on its line. */
static struct {
	atomic_t count;
} ____cacheline_aligned probe_shared;
static DEFINE_PER_CPU_ALIGNED(atomic_t, probe_own);

static struct tracepoint *probe_point;

static void probe_bio(void *unused, struct bio *bio)
{
	if (probe == 1)
		atomic_inc(&probe_shared.count);
	else if (probe == 2)
		atomic_inc(raw_cpu_ptr(&probe_own));
}

static void probe_find(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "block_bio_queue"))
		probe_point = point;
}

static int __init lines_init(void)
{
	for_each_kernel_tracepoint(probe_find, NULL);
	if (!probe_point)
		return -ENOENT;
	map_file = debugfs_create_file("lines_map", 0600, NULL, NULL,
				       &map_fops);
	return tracepoint_probe_register(probe_point, probe_bio, NULL);
}
module_init(lines_init);

static void __exit lines_exit(void)
{
	tracepoint_probe_unregister(probe_point, probe_bio, NULL);
	tracepoint_synchronize_unregister();
	debugfs_remove(map_file);
}
module_exit(lines_exit);

MODULE_DESCRIPTION("What lies where, and a known cost, for a benchmark");
MODULE_LICENSE("GPL");
