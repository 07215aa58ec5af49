// SPDX-License-Identifier: GPL-2.0
/*
 * A load without system calls, for User Mode Linux: start a plug, submit bios,
 * finish the plug, again and again.
 *
 * Write to debugfs/native_load
 *
 *	DISK DISK n=NUMBER announce=NUMBER ...
 *
 * with all names of struct load, in its order; bios go to the two disks in
 * turn, which may be the same. Then read "ns=TIME ios=NUMBER merged=NUMBER".
 */
#include <linux/bio.h>
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/part_stat.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <os.h>

enum {
	MOST = 128,		/* bios in a plug */
	BLOCK = 4096,		/* bytes */
	BLOCKS = 1 << 20,	/* of a disk; a power of two */
	COLD = 256 << 10,	/* bytes, several times an L1 cache */
};

struct load {
	struct block_device *disks[2];
	unsigned int n;		/* bios in a plug */
	unsigned int announce;	/* so many, or 0: without a plug */
	unsigned int follow;	/* of two bios, so many continue the last one */
	unsigned int cold;	/* throw data and code out of L1 caches */
	unsigned int poll;	/* for the completions */
	unsigned int sleep;	/* until they are done, after so many bios */
	unsigned int delay;	/* chains of multiplications before each bio */
	unsigned int ios;	/* in all */
	u64 random;
	u64 block;
	u64 done;
	u64 awaited;
	struct task_struct *task;
};

static struct bio *bios[MOST];
static struct bio_vec bvecs[MOST];
static u8 *cold_data;
static char result[80];

static __always_inline u64 ticks(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc; lfence"
		     : "=a" (low), "=d" (high) : : "memory");
	return (u64)high << 32 | low;
}

/*
 * 64 KB of code: a jump in each of 1024 cache lines, without an alignment,
 * which would undo the shift of all that is linked after it.
 */
static noinline void run_cold_code(void)
{
	asm volatile(".rept 1024\n\t"
		     ".byte 0xeb, 62\n\t"
		     ".skip 62, 0xcc\n\t"
		     ".endr" : : : "memory");
}

static noinline void make_cold(void)
{
	unsigned int i;

	for (i = 0; i < COLD; i += 64)
		READ_ONCE(cold_data[i]);
	run_cold_code();
}

/*
 * Each chain is of 72 cycles. The fences keep other work out of that time, so
 * that two numbers of chains differ by the chains alone.
 */
static noinline void wait_chains(unsigned int n)
{
	unsigned long chain = 3;

	asm volatile("lfence" : : : "memory");
	while (n--)
		asm volatile(".rept 24\n\timul %0, %0\n\t.endr" : "+r" (chain));
	asm volatile("lfence" : : : "memory");
}

static void end_io(struct bio *bio)
{
	struct load *load = bio->bi_private;

	if (++load->done == load->awaited)
		wake_up_process(load->task);
}

/* Random numbers by xorshift, of which any bit will do for a coin. */
static __always_inline u64 next_block(struct load *load)
{
	if (load->follow == 2)
		return ++load->block;
	load->random ^= load->random << 13;
	load->random ^= load->random >> 7;
	load->random ^= load->random << 17;
	if (load->follow && load->random & BIT_ULL(40))
		return ++load->block;
	return load->block = load->random;
}

static __always_inline void submit(struct load *load, unsigned int i)
{
	struct bio *bio = bios[i];

	bio_init(bio, load->disks[i & 1], &bvecs[i], 1,
		 REQ_OP_READ | (load->poll ? REQ_POLLED : 0));
	bio->bi_vcnt = 1;
	bio->bi_iter.bi_size = BLOCK;
	bio->bi_iter.bi_sector = (next_block(load) & (BLOCKS - 1)) *
				 (BLOCK / SECTOR_SIZE);
	bio->bi_end_io = end_io;
	bio->bi_private = load;
	if (load->delay)
		wait_chains(load->delay);
	submit_bio(bio);
}

/* As a task that waits in a plug: schedule() flushes it. */
static void sleep_until(struct load *load, u64 done)
{
	load->awaited = done;
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (load->done >= done)
			break;
		io_schedule();
	}
	__set_current_state(TASK_RUNNING);
	load->awaited = 0;
}

/* As io_uring: one poll for each disk, whose finds complete in a batch. */
static void poll_until(struct load *load, u64 done)
{
	unsigned int i = load->n - 1;

	while (load->done < done) {
		DEFINE_IO_COMP_BATCH(iob);

		bio_poll(bios[i], &iob, 0);
		if (iob.complete)
			iob.complete(&iob);
		i ^= 1;
	}
}

static noinline void batch(struct load *load, u64 before)
{
	struct blk_plug plug;
	unsigned int i;

	if (load->announce)
		blk_start_plug_nr_ios(&plug, load->announce);
	for (i = 0; i < load->n; i++) {
		submit(load, i);
		if (load->sleep && (i + 1) % load->sleep == 0)
			sleep_until(load, before + i + 1);
	}
	if (load->announce)
		blk_finish_plug(&plug);
	if (load->poll)
		poll_until(load, before + load->n);
}

/* Ticks of so many batches. */
static u64 run_warm(struct load *load, unsigned int batches)
{
	u64 start = ticks();
	unsigned int i;

	for (i = 0; i < batches; i++)
		batch(load, i * load->n);
	return ticks() - start;
}

static u64 run_cold(struct load *load, unsigned int batches)
{
	u64 sum = 0, start;
	unsigned int i;

	for (i = 0; i < batches; i++) {
		make_cold();
		start = ticks();
		batch(load, i * load->n);
		sum += ticks() - start;
	}
	return sum;
}

static u64 merged(const struct load *load)
{
	return part_stat_read(load->disks[0], merges[STAT_READ]);
}

static void run(struct load *load)
{
	unsigned int batches = load->ios / load->n;
	u64 own, all, ns, merges;

	run_warm(load, batches / 10);
	load->done = 0;
	merges = merged(load);
	ns = os_nsecs();
	all = ticks();
	own = load->cold ? run_cold(load, batches) : run_warm(load, batches);
	all = ticks() - all;
	ns = os_nsecs() - ns;
	snprintf(result, sizeof(result), "ns=%llu ios=%llu merged=%llu\n",
		 mul_u64_u64_div_u64(ns, own, all), load->done,
		 merged(load) - merges);
}

static int parse(struct load *load, const char *text)
{
	if (sscanf(text, "n=%u announce=%u follow=%u cold=%u poll=%u sleep=%u delay=%u ios=%u",
		   &load->n, &load->announce, &load->follow, &load->cold,
		   &load->poll, &load->sleep, &load->delay, &load->ios) != 8)
		return -EINVAL;
	/* what polls looks at the last two bios */
	if (!load->n || load->n > MOST || load->ios < load->n ||
	    (load->poll && load->n % 2))
		return -EINVAL;
	return 0;
}

static struct file *open_disk(const char *name)
{
	char path[40];

	if (!name || snprintf(path, sizeof(path), "/dev/%s", name) >=
		     sizeof(path))
		return ERR_PTR(-EINVAL);
	return bdev_file_open_by_path(path, BLK_OPEN_READ, NULL, NULL);
}

static int run_text(struct load *load, char *text)
{
	struct file *first = open_disk(strsep(&text, " "));
	struct file *second = open_disk(strsep(&text, " "));
	int error = -ENODEV;

	if (!IS_ERR(first) && !IS_ERR(second) && text) {
		load->disks[0] = file_bdev(first);
		load->disks[1] = file_bdev(second);
		error = parse(load, text);
		if (!error)
			run(load);
	}
	if (!IS_ERR(first))
		bdev_fput(first);
	if (!IS_ERR(second))
		bdev_fput(second);
	return error;
}

static ssize_t load_write(struct file *file, const char __user *from,
			  size_t count, loff_t *pos)
{
	struct load load = { .random = 0x9E3779B97F4A7C15, .task = current };
	char *text = memdup_user_nul(from, count);
	int error;

	if (IS_ERR(text))
		return PTR_ERR(text);
	error = run_text(&load, text);
	kfree(text);
	return error ?: count;
}

static ssize_t load_read(struct file *file, char __user *to, size_t count,
			 loff_t *pos)
{
	return simple_read_from_buffer(to, count, pos, result, strlen(result));
}

static const struct file_operations load_fops = {
	.write = load_write,
	.read = load_read,
};

static int __init load_init(void)
{
	struct page *page = alloc_page(GFP_KERNEL);
	unsigned int i;

	cold_data = kmalloc(COLD, GFP_KERNEL);
	if (!page || !cold_data)
		return -ENOMEM;
	memset(cold_data, 1, COLD);	/* not all of it the zero page */
	for (i = 0; i < MOST; i++) {
		/* at the begin of a cache line, as bios of a mempool are */
		bios[i] = kzalloc(roundup_pow_of_two(sizeof(struct bio)),
				  GFP_KERNEL);
		if (!bios[i])
			return -ENOMEM;
		bvec_set_page(&bvecs[i], page, BLOCK, 0);
	}
	debugfs_create_file("native_load", 0600, NULL, NULL, &load_fops);
	return 0;
}
late_initcall(load_init);
