// SPDX-License-Identifier: GPL-2.0
/*
 * A known cost, for the own test of the benchmark "lines": the parameter
 * probe=1 takes an atomic of all CPUs for each bio that is submitted, probe=2
 * one of this CPU's, on a line of its own, and probe=0 neither.
 */
#include <linux/bio.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/tracepoint.h>

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
	return tracepoint_probe_register(probe_point, probe_bio, NULL);
}
module_init(lines_init);

static void __exit lines_exit(void)
{
	tracepoint_probe_unregister(probe_point, probe_bio, NULL);
	tracepoint_synchronize_unregister();
}
module_exit(lines_exit);

MODULE_DESCRIPTION("A known cost, for a benchmark");
MODULE_LICENSE("GPL");
