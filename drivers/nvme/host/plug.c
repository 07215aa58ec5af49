// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of SQ doorbell writes and of the commands they carried:
 *
 *	nvme_plug/counting		1 to count, 0 (the default) not to
 *	nvme_plug/<ctrl>/doorbells	a line for each submission queue
 *
 * in debugfs.  Commands per doorbell show what holding requests in a plug buys.
 */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/kstrtox.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>

#include "plug.h"

DEFINE_STATIC_KEY_FALSE(nvme_plug_counting);

static struct dentry *nvme_plug_root;

/* Protects the lists of queues while they are shown. */
static DEFINE_MUTEX(nvme_plug_lock);

/* Disabling a key while it is being enabled would warn. */
static DEFINE_MUTEX(nvme_plug_counting_lock);

static int nvme_plug_doorbells_show(struct seq_file *m, void *unused)
{
	struct nvme_plug *plug = m->private;
	struct nvme_plug_queue *pq;
	unsigned int qid = 0;

	mutex_lock(&nvme_plug_lock);
	for (pq = plug->queues; pq; pq = pq->next)
		seq_printf(m, "queue %u doorbells %lu commands %lu\n", qid++,
			   READ_ONCE(pq->doorbells), READ_ONCE(pq->commands));
	mutex_unlock(&nvme_plug_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(nvme_plug_doorbells);

static int nvme_plug_counting_get(void *data, u64 *val)
{
	*val = static_key_enabled(&nvme_plug_counting);
	return 0;
}

static int nvme_plug_counting_set(void *data, u64 val)
{
	if (val > 1)
		return -EINVAL;
	mutex_lock(&nvme_plug_counting_lock);
	if (val)
		static_branch_enable(&nvme_plug_counting);
	else
		static_branch_disable(&nvme_plug_counting);
	mutex_unlock(&nvme_plug_counting_lock);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(nvme_plug_counting_fops, nvme_plug_counting_get,
			 nvme_plug_counting_set, "%llu\n");

void nvme_plug_init(void)
{
	nvme_plug_root = debugfs_create_dir("nvme_plug", NULL);
	debugfs_create_file_unsafe("counting", 0600, nvme_plug_root, NULL,
				   &nvme_plug_counting_fops);
}

void nvme_plug_exit(void)
{
	debugfs_remove_recursive(nvme_plug_root);
}

void nvme_plug_add_queue(struct nvme_plug *plug, struct device *device,
			 struct nvme_plug_queue *pq)
{
	struct nvme_plug_queue **end = &plug->queues;

	if (!plug->dir) {
		plug->dir = debugfs_create_dir(dev_name(device),
					       nvme_plug_root);
		debugfs_create_file("doorbells", 0400, plug->dir, plug,
				    &nvme_plug_doorbells_fops);
	}
	mutex_lock(&nvme_plug_lock);
	/* a reset that brings back more queues adds them again */
	while (*end && *end != pq)
		end = &(*end)->next;
	*end = pq;
	mutex_unlock(&nvme_plug_lock);
}

void nvme_plug_remove(struct nvme_plug *plug)
{
	debugfs_remove_recursive(plug->dir);
	plug->dir = NULL;
}
